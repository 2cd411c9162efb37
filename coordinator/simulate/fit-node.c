/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-scheduler's NodeUnschedulable, TaintToleration and NodeAffinity. What they say of a pod and a node depends on the
 * pod's template, and of the node on its taints and on those labels that some template asks for: nodes that have these in
 * common are a class, and each template asks each class once.
 */
#include <string.h>

#include "alloc-util.h"
#include "marks.h"
#include "simulator-internal.h"
#include "string-util.h"

/* Room for so many classes more than there are: nodes that are added bring them one by one. */
#define SPARE_CLASSES 8u

/* -- classes -------------------------------------------------------------------------------------------- */

/* 1: it is asked for the first time. */
static int ask(Simulator *s, const char *key) {
        int r = hashmap_put(s->asked_labels, key, (void *) key);

        return r == -EEXIST ? 0 : r < 0 ? r : 1;
}

static int ask_for_terms(Simulator *s, const NodeTerms *t) {
        int news = 0;

        for (size_t i = 0; i < t->n_items; i++)
                for (size_t k = 0; k < t->items[i].n_requirements; k++) {
                        const char *key = t->items[i].requirements[k].key;
                        int r = key ? ask(s, key) : 0;

                        if (r < 0)
                                return r;
                        news |= r;
                }
        return news;
}

/* 1: the template asks for labels by which nodes have not been told apart. */
static int ask_for_labels(Simulator *s, const PodTemplate *t) {
        int news = ask_for_terms(s, &t->required);

        for (size_t i = 0; i < t->node_selector.n_items && news >= 0; i++) {
                int r = ask(s, t->node_selector.items[i].key);

                news = r < 0 ? r : news | r;
        }
        return news;
}

static char *class_text(const Simulator *s, const SimulatorNode *n) {
        _cleanup_(strbuf_done) StrBuf b = {};
        const KubeNode *node = &n->object->node;
        const char *key;

        for (size_t i = 0; i < node->n_taints; i++)
                strbuf_addf(&b, "%s=%s:%s\n", strempty(node->taints[i].key), strempty(node->taints[i].value),
                            strempty(node->taints[i].effect));
        HASHMAP_FOREACH (key, s->asked_labels) {
                const char *value = key_values_get(&n->labels, key);

                strbuf_addf(&b, "%c%s\n", value ? '=' : '-', strempty(value));
        }
        return strbuf_steal(&b);
}

/* What a template has to say of classes and nodes, not said yet. */
static int clear_verdicts(Simulator *s, uint32_t template) {
        SimulatorTemplate *t = s->templates + template;

        free(t->verdicts);
        free(t->mask);
        t->verdicts = new0(uint8_t, s->classes_allocated);
        t->mask = new0(uint64_t, s->nodes_allocated / BLOCK_NODES + 1);
        t->n_masked = 0;
        t->n_refusing = -1;
        return t->verdicts && t->mask ? 0 : -ENOMEM;
}

/* 1: it is the first of its class. */
static int find_class(Simulator *s, SimulatorNode *n) {
        _cleanup_free_ char *text = class_text(s, n);
        uintptr_t number = text ? (uintptr_t) hashmap_get(s->classes, text) : 0;
        int r = 0;

        if (!text)
                return -ENOMEM;
        if (number == 0) {
                number = hashmap_size(s->classes) + 1;
                r = hashmap_put(s->classes, text, (void *) number);
                if (r < 0)
                        return r;
                r = 1;
        }
        n->class_number = (uint32_t) (number - 1);
        return r;
}

static int classify(Simulator *s) {
        int r;

        s->classes = hashmap_free(s->classes);
        r = hashmap_new(0, &s->classes);
        for (uint32_t i = 0; i < s->n_nodes && r >= 0; i++)
                r = find_class(s, s->nodes + i);
        if (r < 0)
                return r;
        s->n_classes = (uint32_t) hashmap_size(s->classes);
        s->classes_allocated = s->n_classes + SPARE_CLASSES;
        for (uint32_t i = 0; i < s->n_templates && r >= 0; i++)
                r = clear_verdicts(s, i);
        return MIN(r, 0);
}

/* Room for what templates say of one class more, not said yet. */
static int reserve_class(Simulator *s) {
        uint32_t allocated = s->classes_allocated + SPARE_CLASSES;

        if (s->n_classes < s->classes_allocated)
                return 0;
        for (uint32_t i = 0; i < s->n_templates; i++) {
                uint8_t *bigger = realloc(s->templates[i].verdicts, allocated);

                if (!bigger)
                        return -ENOMEM;
                memset(bigger + s->classes_allocated, 0, SPARE_CLASSES);
                s->templates[i].verdicts = bigger;
        }
        s->classes_allocated = allocated;
        return 0;
}

int simulator_classify_added(Simulator *s, uint32_t node) {
        int r = reserve_class(s);

        if (r >= 0)
                r = find_class(s, s->nodes + node);
        if (r < 0)
                return r;
        s->n_classes += (uint32_t) r;
        return 0;
}

int simulator_classify_nodes(Simulator *s) {
        int r = s->asked_labels ? 0 : hashmap_new(HASHMAP_BORROW_KEYS, &s->asked_labels);

        for (uint32_t i = 0; i < s->n_templates && r >= 0; i++)
                r = ask_for_labels(s, s->templates[i].parsed);
        return r < 0 ? r : classify(s);
}

int simulator_classify_new(Simulator *s) {
        int r = ask_for_labels(s, s->templates[s->n_templates - 1].parsed);

        return r < 0 ? r : r > 0 ? classify(s) : clear_verdicts(s, s->n_templates - 1);
}

/* -- the filters ------------------------------------------------------------------------------------------ */

static FitReason judge(const PodTemplate *t, const SimulatorNode *n) {
        const KubeNode *node = &n->object->node;

        if (!pod_template_tolerates_all(t, node->taints, node->n_taints))
                return FIT_TAINT;
        return pod_template_matches_node(t, &n->labels, n->name) ? FIT_OK : FIT_NODE_AFFINITY;
}

FitReason fit_node(Simulator *s, uint32_t template, uint32_t node) {
        SimulatorTemplate *t = s->templates + template;
        const SimulatorNode *n = s->nodes + node;
        uint8_t *verdict = t->verdicts + n->class_number;

        if (t->asks_for_name)
                return judge(t->parsed, n);
        if (*verdict == 0)
                *verdict = (uint8_t) (1 + judge(t->parsed, n));
        return (FitReason) (*verdict - 1);
}

/* Behind those of the snapshot others may stand by now. */
static void forget_added(const Simulator *s, SimulatorTemplate *t) {
        uint32_t n = MIN(t->n_masked, s->n_first_nodes);

        for (uint32_t i = n; i < t->n_masked; i++)
                t->mask[i / BLOCK_NODES] &= ~(UINT64_C(1) << (i % BLOCK_NODES));
        t->n_masked = n;
        t->drops_seen = s->n_drops;
        t->n_refusing = -1;
}

const uint64_t *template_mask(Simulator *s, uint32_t template) {
        SimulatorTemplate *t = s->templates + template;

        if (t->drops_seen != s->n_drops)
                forget_added(s, t);
        for (; t->n_masked < s->n_nodes; t->n_masked++) {
                if (fit_node(s, template, t->n_masked) == FIT_OK)
                        t->mask[t->n_masked / BLOCK_NODES] |= UINT64_C(1) << (t->n_masked % BLOCK_NODES);
                t->n_refusing = -1;
        }
        return t->mask;
}
