/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-drift.h"

#include "string-util.h"

static int say(char **ret, char *text) {
        *ret = text;
        return text ? 1 : -ENOMEM;
}

/* Each: 1 with *ret: it has drifted; 0; -ENOMEM. */
static int drift_of_values(const char *what, const KeyValues *wanted, const KeyValues *is, char **ret) {
        for (size_t i = 0; i < wanted->n_items; i++) {
                const KeyValue *w = wanted->items + i;
                const char *value = key_values_get(is, w->key);

                if (streq_ptr(value, w->value))
                        continue;
                return say(ret, value ? strf("%s %s is '%s', and spec.template says '%s'", what, w->key, value, w->value)
                                      : strf("it has no %s %s, and spec.template says '%s'", what, w->key, w->value));
        }
        return 0;
}

/* Of a Node no others are kept. */
static int drift_of_annotations(const KubeNode *n, const PoolTemplate *t, char **ret) {
        for (size_t i = 0; i < t->annotations.n_items; i++) {
                KeyValues one = { t->annotations.items + i, 1 };
                int r;

                if (!n->object.kind->annotation_wanted || !n->object.kind->annotation_wanted(one.items->key))
                        continue;
                r = drift_of_values("annotation", &one, &n->object.meta.annotations, ret);
                if (r != 0)
                        return r;
        }
        return 0;
}

static int drift_of_taints(const KubeNode *n, const PoolTemplate *t, char **ret) {
        for (size_t i = 0; i < t->n_taints; i++) {
                const Taint *w = t->taints + i;
                bool is_there = false;

                for (size_t k = 0; k < n->n_taints; k++)
                        is_there = is_there || taint_equal(w, n->taints + k);
                if (!is_there)
                        return say(ret, strf("it has no taint %s=%s:%s, which spec.template says", w->key, w->value, w->effect));
        }
        return 0;
}

static int drift_of_requirements(const KubeNode *n, const PoolTemplate *t, char **ret) {
        for (size_t i = 0; i < t->n_requirements; i++) {
                const PoolRequirement *w = t->requirements + i;
                const char *value = object_meta_label(&n->object.meta, w->key);
                _cleanup_strbuf_ StrBuf b = {};

                if (pool_requirement_holds(w, &n->object.meta.labels))
                        continue;
                if (value)
                        strbuf_addf(&b, "label %s is '%s', and spec.template requires %s", w->key, value,
                                    pool_operator_to_string(w->operator));
                else
                        strbuf_addf(&b, "it has no label %s, and spec.template requires %s", w->key,
                                    pool_operator_to_string(w->operator));
                for (size_t k = 0; k < w->n_values; k++)
                        strbuf_addf(&b, "%s%s", k == 0 ? " " : ", ", w->values[k]);
                return say(ret, strbuf_steal(&b));
        }
        return 0;
}

static int drift_of_grace(const KubeNodeClaim *claim, const KubeNodePool *pool, char **ret) {
        char is[DURATION_MAX], wanted[DURATION_MAX];

        if (!claim || claim->termination_grace_usec == pool->termination_grace_usec)
                return 0;
        return say(ret, strf("its claim has terminationGracePeriod %s, and spec.template says %s",
                             duration_format(claim->termination_grace_usec, is),
                             duration_format(pool->termination_grace_usec, wanted)));
}

static int drift_of_info(const char *what, const char *is, const char *wanted, char **ret) {
        if (!wanted || streq_ptr(is, wanted))
                return 0;
        return say(ret, strf("its %s is %s, and spec.template.nodeInfo says %s", what, isempty(is) ? "not known" : is, wanted));
}

int node_drift(const KubeScheduledNode *scheduled, const KubeNodeClaim *claim, const KubeNodePool *pool, char **ret) {
        const PoolTemplate *t = &pool->template;
        const KubeNode *n = &scheduled->node;
        int r;

        *ret = NULL;
        r = drift_of_values("label", &t->labels, &n->object.meta.labels, ret);
        if (r == 0)
                r = drift_of_annotations(n, t, ret);
        if (r == 0)
                r = drift_of_taints(n, t, ret);
        if (r == 0)
                r = drift_of_requirements(n, t, ret);
        if (r == 0)
                r = drift_of_info("kubelet", scheduled->kubelet_version, t->kubelet_version, ret);
        if (r == 0)
                r = drift_of_info("operating system", scheduled->os_image, t->os_image, ret);
        if (r == 0)
                r = drift_of_grace(claim, pool, ret);
        return r < 0 ? r : 0;
}
