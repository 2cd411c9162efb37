/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-scheduler's NodeUnschedulable, TaintToleration and NodeAffinity. What they say of a pod and a node depends on the
 * pod's template, and of the node on its taints and on those labels that some template asks for: nodes that have these in
 * common are a class, and each template asks each class once.
 */
#include "alloc-util.h"
#include "marks.h"
#include "simulator-internal.h"
#include "string-util.h"

/* -- classes -------------------------------------------------------------------------------------------- */

static int ask(Hashmap *keys, const char *key) {
        int r = key ? hashmap_put(keys, key, (void *) key) : 0;

        return r == -EEXIST ? 0 : r;
}

static int ask_for_terms(Hashmap *keys, const NodeTerms *t) {
        int r = 0;

        for (size_t i = 0; i < t->n_items && r >= 0; i++)
                for (size_t k = 0; k < t->items[i].n_requirements && r >= 0; k++)
                        r = ask(keys, t->items[i].requirements[k].key);
        return r;
}

static int asked_labels(const Simulator *s, Hashmap *keys) {
        for (uint32_t i = 0; i < s->n_templates; i++) {
                const PodTemplate *t = s->templates[i].parsed;
                int r = ask_for_terms(keys, &t->required);

                for (size_t k = 0; k < t->node_selector.n_items && r >= 0; k++)
                        r = ask(keys, t->node_selector.items[k].key);
                if (r < 0)
                        return r;
        }
        return 0;
}

static char *class_text(const Simulator *s, const SimulatorNode *n, const Hashmap *keys) {
        _cleanup_(strbuf_done) StrBuf b = {};
        const KubeNode *node = &n->object->node;
        const char *key;

        for (size_t i = 0; i < node->n_taints; i++)
                strbuf_addf(&b, "%s=%s:%s\n", strempty(node->taints[i].key), strempty(node->taints[i].value),
                            strempty(node->taints[i].effect));
        HASHMAP_FOREACH (key, keys) {
                const char *value = key_values_get(&n->labels, key);

                strbuf_addf(&b, "%c%s\n", value ? '=' : '-', strempty(value));
        }
        return strbuf_steal(&b);
}

int simulator_classify_nodes(Simulator *s) {
        _cleanup_(hashmap_freep) Hashmap *keys = NULL, *classes = NULL;
        int r = hashmap_new(HASHMAP_BORROW_KEYS, &keys);

        if (r >= 0)
                r = hashmap_new(0, &classes);
        if (r >= 0)
                r = asked_labels(s, keys);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                _cleanup_free_ char *text = class_text(s, s->nodes + i, keys);
                uintptr_t number;

                if (!text)
                        return -ENOMEM;
                number = (uintptr_t) hashmap_get(classes, text);
                if (number == 0) {
                        number = hashmap_size(classes) + 1;
                        r = hashmap_put(classes, text, (void *) number);
                        if (r < 0)
                                return r;
                }
                s->nodes[i].class_number = (uint32_t) (number - 1);
        }
        s->n_classes = (uint32_t) hashmap_size(classes);
        for (uint32_t i = 0; i < s->n_templates; i++)
                s->templates[i].mask = NULL;
        free(s->masks);
        free(s->verdicts);
        s->masks = new0(uint64_t, s->n_templates * (s->nodes_allocated / BLOCK_NODES + 1) + 1);
        s->verdicts = new0(uint8_t, (size_t) s->n_classes * s->n_templates + 1);
        return s->masks && s->verdicts ? 0 : -ENOMEM;
}

/* -- the filters ------------------------------------------------------------------------------------------ */

static FitReason judge(const PodTemplate *t, const SimulatorNode *n) {
        const KubeNode *node = &n->object->node;

        if (!pod_template_tolerates_all(t, node->taints, node->n_taints))
                return FIT_TAINT;
        return pod_template_matches_node(t, &n->labels, n->name) ? FIT_OK : FIT_NODE_AFFINITY;
}

FitReason fit_node(Simulator *s, uint32_t template, uint32_t node) {
        const SimulatorTemplate *t = s->templates + template;
        const SimulatorNode *n = s->nodes + node;
        uint8_t *verdict = s->verdicts + (size_t) template * s->n_classes + n->class_number;

        if (t->asks_for_name)
                return judge(t->parsed, n);
        if (*verdict == 0)
                *verdict = (uint8_t) (1 + judge(t->parsed, n));
        return (FitReason) (*verdict - 1);
}

const uint64_t *template_mask(Simulator *s, uint32_t template) {
        SimulatorTemplate *t = s->templates + template;

        if (t->mask)
                return t->mask;
        t->mask = s->masks + template * (s->nodes_allocated / BLOCK_NODES + 1);
        for (uint32_t i = 0; i < s->n_nodes; i++)
                if (fit_node(s, template, i) == FIT_OK)
                        t->mask[i / BLOCK_NODES] |= UINT64_C(1) << (i % BLOCK_NODES);
        return t->mask;
}
