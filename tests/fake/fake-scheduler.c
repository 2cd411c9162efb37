/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"

/*
 * Binds pending pods to the node with the fewest that will take them: not cordoned (unless the taint is
 * tolerated), no taint NoSchedule or NoExecute they do not tolerate, not being deleted is no criterion (as
 * in life), Ready, nodeSelector, room for one more pod. What fits nowhere waits for a node to change.
 */

static size_t *pods_on(FakeCluster *c, const char *node) {
        size_t *n = hashmap_get(c->node_pods, node);
        int r;

        if (!n) {
                n = MUST(new0(size_t, 1));
                r = hashmap_put(c->node_pods, node, n);
                assert(r >= 0);
        }
        return n;
}

static const char *counted_on(const FakeVersion *v) {
        const char *node = v ? fj_string(v->json, "spec", "nodeName", NULL) : NULL;

        return !isempty(node) && !fake_pod_is_terminal(v->json) ? node : NULL;
}

static bool is_waiting(const cJSON *pod) {
        return isempty(fj_string(pod, "spec", "nodeName", NULL)) && !fake_pod_is_terminal(pod) &&
               !fj_get(pod, "metadata", "deletionTimestamp", NULL) &&
               streq_ptr(fj_string(pod, "spec", "schedulerName", NULL), "default-scheduler");
}

static void retry_unbound(FakeCluster *c, FakeQueue *q) {
        HashmapIterator it = { 0 };
        const char *key;
        void *v;

        while (hashmap_iterate(c->unbound, &it, &key, &v))
                fake_queue_add(q, key);
}

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        const char *was, *is;
        _cleanup_free_ char *key = NULL;

        if (change->resource->id == FAKE_NODES) {
                retry_unbound(c, q);
                return;
        }
        if (change->resource->id != FAKE_PODS)
                return;

        was = counted_on(change->old);
        is = counted_on(change->new);
        if (was)
                (*pods_on(c, was))--;
        if (is)
                (*pods_on(c, is))++;
        key = fake_change_key(change);
        if (change->new &&is_waiting(change->new->json))
                fake_queue_add(q, key);
        else
                hashmap_remove(c->unbound, key);
}

static void resync(FakeCluster *c, FakeQueue *q) {
        const cJSON *pod;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, NULL)
                if (is_waiting(pod)) {
                        _cleanup_free_ char *key = fake_object_key(pod);

                        fake_queue_add(q, key);
                }
}

static bool selector_fits(const cJSON *pod, const cJSON *node) {
        const cJSON *s;

        cJSON_ArrayForEach (s, fj_get(pod, "spec", "nodeSelector", NULL))
                if (!streq_ptr(fj_string(node, "metadata", "labels", s->string, NULL), s->valuestring))
                        return false;
        return true;
}

static bool fits(FakeCluster *c, const cJSON *pod, const cJSON *node) {
        _cleanup_cjson_ cJSON *cordon =
                fj_parse("{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule'}");
        const char *room = fj_string(node, "status", "allocatable", "pods", NULL);
        const char *name = fj_string(node, "metadata", "name", NULL);
        const cJSON *t;

        if (fj_true(node, "spec", "unschedulable", NULL) && !fake_tolerates(pod, cordon))
                return false;
        if (!fake_condition_is(node, "Ready", "True"))
                return false;
        cJSON_ArrayForEach (t, fj_get(node, "spec", "taints", NULL))
                if (!streq_ptr(fj_string(t, "effect", NULL), "PreferNoSchedule") && !fake_tolerates(pod, t))
                        return false;
        if (room && *pods_on(c, name) >= (size_t) strtoull(room, NULL, 10))
                return false;
        return selector_fits(pod, node);
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_free_ char *ns = NULL, *name = NULL;
        const cJSON *pod, *node, *best = NULL;
        size_t best_n = 0;
        cJSON *new;

        fake_key_split(key, &ns, &name);
        pod = fake_store_get(c->store, FAKE_PODS, ns, name);
        if (!pod || !is_waiting(pod))
                return;

        FAKE_STORE_FOREACH (node, c->store, FAKE_NODES, NULL) {
                size_t n = *pods_on(c, fj_string(node, "metadata", "name", NULL));

                if ((!best || n < best_n) && fits(c, pod, node)) {
                        best = node;
                        best_n = n;
                }
        }

        new = fj_copy(pod);
        if (best) {
                fj_set_string(fj_object(new, "spec"), "nodeName", fj_string(best, "metadata", "name", NULL));
                fake_set_condition(c->store, fj_object(new, "status"), "PodScheduled", "True", NULL, NULL);
        } else {
                (void) hashmap_put(c->unbound, key, q);
                fake_set_condition(c->store, fj_object(new, "status"), "PodScheduled", "False",
                                   "Unschedulable", "no node will take the pod");
        }
        fake_store_update(c->store, FAKE_PODS, new);
}

const FakeController fake_scheduler_controller = { "fake-scheduler", observe, sync, resync };
