/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-class.h"

#include "marks.h"
#include "parse-util.h"
#include "string-util.h"

/* k8s.io/kubernetes scheduling.SystemCriticalPriority */
#define SYSTEM_CRITICAL_PRIORITY INT64_C(2000000000)

static const char *const class_table[_POD_CLASS_MAX] = {
        [POD_CLASS_STATIC] = "static",       [POD_CLASS_DAEMON] = "daemon",
        [POD_CLASS_TERMINAL] = "terminal",   [POD_CLASS_TERMINATING] = "terminating",
        [POD_CLASS_PROTECTED] = "protected", [POD_CLASS_ORDINARY] = "ordinary",
};

static const struct {
        const char *key, *value;
} opt_outs[] = {
        { "vesper.sh/do-not-evict", "true" },
        { "karpenter.sh/do-not-evict", "true" },
        { "karpenter.sh/do-not-disrupt", "true" },
        { "cluster-autoscaler.kubernetes.io/safe-to-evict", "false" },
};

const char *pod_class_to_string(PodClass c) {
        return c >= 0 && c < _POD_CLASS_MAX ? class_table[c] : NULL;
}

static const char *opt_out_key(const ObjectMeta *m) {
        for (size_t i = 0; i < ELEMENTSOF(opt_outs); i++)
                if (streq_ptr(object_meta_annotation(m, opt_outs[i].key), opt_outs[i].value) ||
                    streq_ptr(object_meta_label(m, opt_outs[i].key), opt_outs[i].value))
                        return opt_outs[i].key;
        return NULL;
}

/* do-not-disrupt: "2h" protects for two hours from the pod's start. */
static bool protected_for_a_time(const KubePod *pod, usec_t wall_now_usec, usec_t *ret_until_usec) {
        const char *v = object_meta_annotation(&pod->object.meta, "karpenter.sh/do-not-disrupt");
        usec_t d;

        if (!v || duration_parse_go(v, &d) < 0 || d == 0)
                return false;

        *ret_until_usec = pod->start_usec == 0 ? USEC_INFINITY : usec_add(pod->start_usec, d);
        return *ret_until_usec > wall_now_usec;
}

static bool pod_is_protected(const KubePod *pod, usec_t wall_now_usec, const char **ret_key,
                             usec_t *ret_until_usec) {
        const char *key = opt_out_key(&pod->object.meta);
        usec_t until = USEC_INFINITY;

        if (!key) {
                if (!protected_for_a_time(pod, wall_now_usec, &until))
                        return false;
                key = "karpenter.sh/do-not-disrupt";
        }
        if (ret_key)
                *ret_key = key;
        if (ret_until_usec)
                *ret_until_usec = until;
        return true;
}

PodClass pod_classify(const KubePod *pod, usec_t wall_now_usec, const char **ret_key,
                      usec_t *ret_until_usec) {
        assert(pod);

        if (pod->is_static)
                return POD_CLASS_STATIC;
        if (pod->is_daemon)
                return POD_CLASS_DAEMON;
        if (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED)
                return POD_CLASS_TERMINAL;
        if (pod->object.meta.deletion_usec > 0)
                return POD_CLASS_TERMINATING;
        if (pod_is_protected(pod, wall_now_usec, ret_key, ret_until_usec))
                return POD_CLASS_PROTECTED;
        return POD_CLASS_ORDINARY;
}

static bool is_owned_by_its_node(const KubePod *pod) {
        const ObjectMeta *m = &pod->object.meta;

        for (size_t i = 0; i < m->n_owners; i++)
                if (streq_ptr(m->owners[i].kind, "Node") && streq_ptr(m->owners[i].api_version, "v1") &&
                    streq_ptr(m->owners[i].name, pod->node_name))
                        return true;
        return false;
}

const char *pod_static_doubt(const KubePod *pod) {
        assert(pod);
        if (!pod->is_static)
                return NULL;
        if (!object_meta_annotation(&pod->object.meta, ANNOTATION_MIRROR))
                return "its owner is a Node, as that of a static pod, but it lacks the annotation "
                       ANNOTATION_MIRROR ", which a kubelet sets";
        if (!is_owned_by_its_node(pod))
                return "it has the annotation " ANNOTATION_MIRROR " of a static pod, but its owner is not "
                       "the Node that it runs on";
        return NULL;
}

char *pod_left_alone_format(const KubePod *pod, const char *node) {
        const ObjectMeta *m = &pod->object.meta;

        return strf("Pod %s/%s is neither evicted from node %s nor waited for: %s. It runs on until the "
                    "machine ends. If it is no static pod, delete it before that: kubectl delete pod %s -n %s",
                    strempty(m->ns), m->name, node, strempty(pod_static_doubt(pod)), m->name,
                    strempty(m->ns));
}

bool pod_is_critical(const KubePod *pod) {
        assert(pod);
        return pod->priority >= SYSTEM_CRITICAL_PRIORITY ||
               streq_ptr(pod->priority_class, "system-cluster-critical") ||
               streq_ptr(pod->priority_class, "system-node-critical");
}
