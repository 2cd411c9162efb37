/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-controllers.h"

/*
 * pkg/controller/tainteviction: pods of a node with a NoExecute taint are deleted, at once or when the time
 * is over for which they tolerate it. Admission (DefaultTolerationSeconds) gives each pod 300 s for a node
 * that is not ready or unreachable; so has one that was put into the store past it. Keys are nodes.
 */

#define DEFAULT_TOLERATION_SEC 300

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        const cJSON *o = change->new ? change->new->json : NULL, *taints;

        if (!o)
                return;
        if (change->resource->id == FAKE_NODES) {
                taints = fj_get(o, "spec", "taints", NULL);
                if (taints && fj_find(taints, "effect", "NoExecute"))
                        fake_queue_add(q, fj_string(o, "metadata", "name", NULL));
        } else if (change->resource->id == FAKE_PODS && !change->old &&
                   !isempty(fj_string(o, "spec", "nodeName", NULL)))
                fake_queue_add(q, fj_string(o, "spec", "nodeName", NULL));
}

static void resync(FakeCluster *c, FakeQueue *q) {
        const cJSON *node;

        FAKE_STORE_FOREACH (node, c->store, FAKE_NODES, NULL)
                fake_queue_add(q, fj_string(node, "metadata", "name", NULL));
}

/* How long the pod stays with this taint; USEC_INFINITY: for ever. */
static usec_t tolerated_usec(const cJSON *pod, const cJSON *taint) {
        const char *key = strempty(fj_string(taint, "key", NULL));
        bool by_default = streq(key, "node.kubernetes.io/not-ready") || streq(key, "node.kubernetes.io/unreachable");
        const cJSON *t;

        cJSON_ArrayForEach (t, fj_get(pod, "spec", "tolerations", NULL)) {
                _cleanup_cjson_ cJSON *one = fj_parse("{'spec':{'tolerations':[]}}");

                cJSON_AddItemToArray(fj_array(fj_object(one, "spec"), "tolerations"), fj_copy(t));
                if (fake_tolerates(one, taint)) {
                        int64_t sec = fj_int(t, -1, "tolerationSeconds", NULL);

                        return sec < 0 ? USEC_INFINITY : (usec_t) sec * USEC_PER_SEC;
                }
        }
        return by_default ? DEFAULT_TOLERATION_SEC * USEC_PER_SEC : 0;
}

static usec_t due_usec(const cJSON *pod, const cJSON *node, usec_t now) {
        usec_t due = USEC_INFINITY, since;
        const cJSON *taint;

        cJSON_ArrayForEach (taint, fj_get(node, "spec", "taints", NULL)) {
                if (!streq_ptr(fj_string(taint, "effect", NULL), "NoExecute"))
                        continue;
                if (rfc3339_parse(strempty(fj_string(taint, "timeAdded", NULL)), &since) < 0)
                        since = now;
                due = MIN(due, usec_add(since, tolerated_usec(pod, taint)));
        }
        return due;
}

/* The next one whose time is over, or when that will be. */
static char *find_due(FakeCluster *c, const cJSON *node, usec_t now, char **ret_ns, usec_t *ret_next) {
        const char *name = fj_string(node, "metadata", "name", NULL);
        const cJSON *pod;

        *ret_next = USEC_INFINITY;
        FAKE_STORE_FOREACH_NODE_POD (pod, c->store, name) {
                usec_t due;

                if (fj_get(pod, "metadata", "deletionTimestamp", NULL))
                        continue;
                due = due_usec(pod, node, now);
                if (due <= now) {
                        *ret_ns = MUST(strdup(fj_string(pod, "metadata", "namespace", NULL)));
                        return MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
                }
                *ret_next = MIN(*ret_next, due);
        }
        return NULL;
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        usec_t now = loop_wall(c->loop), next;

        for (;;) {
                const cJSON *node = fake_store_get(c->store, FAKE_NODES, NULL, key);
                _cleanup_free_ char *ns = NULL, *name = NULL;

                if (!node || !fj_find(fj_get(node, "spec", "taints", NULL), "effect", "NoExecute"))
                        return;
                name = find_due(c, node, now, &ns, &next);
                if (!name)
                        break;
                fake_delete(c, FAKE_PODS, ns, name, -1);
        }
        if (next != USEC_INFINITY)
                fake_queue_add_in(q, key, next - now);
}

const FakeController fake_taint_eviction_controller = { "fake-taint-eviction", observe, sync, resync };
