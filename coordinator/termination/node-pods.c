/* SPDX-License-Identifier: Apache-2.0 */
#include "node-pods.h"

#include "string-util.h"

static PodClass class_of(const KubePod *pod, usec_t wall_now_usec) {
        return pod_classify(pod, wall_now_usec, NULL, NULL);
}

NodePodsCount node_pods_count(const ClusterView *view, const char *node, const DrainRules *rules,
                              usec_t wall_now_usec) {
        NodePodsCount c = {};
        const KubePod *pod;

        for (HashmapIterator it = {}; cluster_view_iterate_pods(view, node, &it, &pod);) {
                if (!drain_waits_for(pod, rules, wall_now_usec))
                        continue;
                c.waited++;
                if (class_of(pod, wall_now_usec) == POD_CLASS_PROTECTED)
                        c.protected ++;
        }
        return c;
}

usec_t node_pods_first_due(const ClusterView *view, const char *node, const DrainRules *rules,
                           usec_t wall_now_usec) {
        return node_pods_first_due_of(view, node, rules, USEC_INFINITY, wall_now_usec);
}

usec_t node_pods_first_due_of(const ClusterView *view, const char *node, const DrainRules *rules, usec_t shorter_than_usec,
                              usec_t wall_now_usec) {
        usec_t due = rules->deadline_usec;
        const KubePod *pod;

        if (due == USEC_INFINITY)
                return due;
        for (HashmapIterator it = {}; cluster_view_iterate_pods(view, node, &it, &pod);)
                if (drain_waits_for(pod, rules, wall_now_usec) &&
                    class_of(pod, wall_now_usec) != POD_CLASS_TERMINATING && pod->grace_sec > 0 &&
                    (shorter_than_usec == USEC_INFINITY || drain_grace(pod->grace_sec) < shorter_than_usec))
                        due = MIN(due, usec_sub(rules->deadline_usec, drain_grace(pod->grace_sec)));
        return due;
}

uint64_t node_pods_fingerprint(const ClusterView *view, const char *node, const DrainRules *rules,
                               usec_t wall_now_usec) {
        const KubePod *pod;
        uint64_t h = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_pods(view, node, &it, &pod);)
                if (class_of(pod, wall_now_usec) == POD_CLASS_TERMINATING)
                        h += 3 * hash64(pod->object.meta.uid, strlen(pod->object.meta.uid));
                else if (drain_waits_for(pod, rules, wall_now_usec))
                        h += hash64(pod->object.meta.uid, strlen(pod->object.meta.uid));
        return h;
}
