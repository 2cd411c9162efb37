/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"

/*
 * Nodes: what their kubelets say of them, what is made of their silence (pkg/controller/nodelifecycle), and
 * the taints that follow from unschedulable and from the condition Ready.
 */

#define REASON_READY "KubeletReady"
#define MESSAGE_READY "kubelet is posting ready status"
#define GRACE_DEFAULT_USEC (40 * USEC_PER_SEC)

static void observe_nodes(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        if (change->resource->id == FAKE_NODES && change->new)
                fake_queue_add(q, fj_string(change->new->json, "metadata", "name", NULL));
}

static void resync_nodes(FakeCluster *c, FakeQueue *q) {
        const cJSON *node;

        FAKE_STORE_FOREACH (node, c->store, FAKE_NODES, NULL)
                fake_queue_add(q, fj_string(node, "metadata", "name", NULL));
}

/* -- kubelets ------------------------------------------------------------------------------------------ */

bool fake_cluster_kubelet_runs(const FakeCluster *c, const char *node) {
        return !hashmap_contains(c->stopped, node);
}

void fake_cluster_set_kubelet(FakeCluster *c, const char *node, bool running) {
        usec_t *since;
        int r;

        if (running == fake_cluster_kubelet_runs(c, node))
                return;
        if (running) {
                free(hashmap_remove(c->stopped, node));
                fake_kubelet_controller.resync(c, &c->queues[FAKE_CONTROLLER_KUBELET]);
        } else {
                since = MUST(new0(usec_t, 1));
                *since = loop_now(c->loop);
                r = hashmap_put(c->stopped, node, since);
                assert(r >= 0);
        }
        fake_queue_add(&c->queues[FAKE_CONTROLLER_NODE_STATUS], node);
}

/* -- status -------------------------------------------------------------------------------------------- */

static void renew_lease(FakeCluster *c, const char *node) {
        const cJSON *old = fake_store_get(c->store, FAKE_LEASES, "kube-node-lease", node);
        cJSON *lease = old ? fj_copy(old)
                           : fj_parse("{'metadata':{'name':'%s','namespace':'kube-node-lease'},"
                                      "'spec':{'holderIdentity':'%s','leaseDurationSeconds':40}}",
                                      node, node);
        char now[RFC3339_MAX];

        rfc3339_format_micro(loop_wall(c->loop), now);
        fj_set_string(fj_object(lease, "spec"), "renewTime", now);
        fake_put(c, FAKE_LEASES, lease);
}

/* Most of the time it is said already: thousands of nodes are not copied for that. */
static bool says_ready(const cJSON *node) {
        const cJSON *ready = fj_find(fj_get(node, "status", "conditions", NULL), "type", "Ready");

        return streq_ptr(fj_string(ready, "status", NULL), "True") &&
               streq_ptr(fj_string(ready, "reason", NULL), REASON_READY) &&
               streq_ptr(fj_string(ready, "message", NULL), MESSAGE_READY);
}

static void post_ready(FakeCluster *c, FakeQueue *q, const char *name) {
        const cJSON *node = fake_store_get(c->store, FAKE_NODES, NULL, name);

        if (!says_ready(node)) {
                cJSON *new = fj_copy(node);

                fake_set_condition(c->store, fj_object(new, "status"), "Ready", "True", REASON_READY,
                                   MESSAGE_READY);
                fake_store_update(c->store, FAKE_NODES, new);
        }
        if (c->options.heartbeat_usec > 0) {
                renew_lease(c, name);
                fake_queue_add_in(q, name, c->options.heartbeat_usec);
        }
}

/* Its pods serve nobody as long as it is not heard of (MarkPodsNotReady()); its kubelet says when they do. */
static void mark_pods(FakeCluster *c, const char *node, bool ready) {
        const cJSON *pod;

        FAKE_STORE_FOREACH_NODE_POD (pod, c->store, node) {
                cJSON *new;

                if (!streq_ptr(fj_string(pod, "status", "phase", NULL), "Running") ||
                    fake_condition_is(pod, "Ready", ready ? "True" : "False") ||
                    streq_ptr(fj_string(pod, "metadata", "annotations", "fake.vesper.sh/unready", NULL), "true"))
                        continue;
                new = fj_copy(pod);
                fake_set_condition(c->store, fj_object(new, "status"), "Ready", ready ? "True" : "False", NULL,
                                   NULL);
                fake_store_update(c->store, FAKE_PODS, new);
        }
}

static void sync_status(FakeCluster *c, FakeQueue *q, const char *key) {
        const cJSON *node = fake_store_get(c->store, FAKE_NODES, NULL, key);
        usec_t *since = hashmap_get(c->stopped, key), now = loop_now(c->loop), dead;
        cJSON *new;

        if (!node)
                return;
        if (!since) {
                if (!fake_condition_is(node, "Ready", "True"))
                        mark_pods(c, key, true);
                post_ready(c, q, key);
                return;
        }
        dead = *since + (c->options.node_grace_usec > 0 ? c->options.node_grace_usec : GRACE_DEFAULT_USEC);
        if (now < dead) {
                fake_queue_add_in(q, key, dead - now);
                return;
        }
        if (fake_condition_is(node, "Ready", "True"))
                mark_pods(c, key, false);
        new = fj_copy(fake_store_get(c->store, FAKE_NODES, NULL, key));
        fake_set_condition(c->store, fj_object(new, "status"), "Ready", "Unknown", "NodeStatusUnknown",
                           "Kubelet stopped posting node status.");
        fake_store_update(c->store, FAKE_NODES, new);
}

const FakeController fake_node_status_controller = { "fake-node-status", observe_nodes, sync_status,
                                                     resync_nodes };

/* -- taints -------------------------------------------------------------------------------------------- */

static void set_taint(FakeCluster *c, cJSON *node, const char *key, const char *effect, bool wanted) {
        cJSON *spec = fj_object(node, "spec"), *taints = fj_member(spec, "taints"), *t, *next;
        char now[RFC3339_MAX];

        for (t = taints ? taints->child : NULL; t; t = next) {
                next = t->next;
                if (!streq_ptr(fj_string(t, "key", NULL), key) ||
                    !streq_ptr(fj_string(t, "effect", NULL), effect))
                        continue;
                if (wanted)
                        return;
                cJSON_Delete(cJSON_DetachItemViaPointer(taints, t));
        }
        if (wanted) {
                t = fj_parse("{'key':'%s','effect':'%s'}", key, effect);
                fj_set_string(t, "timeAdded", fake_store_timestamp(c->store, now));
                cJSON_AddItemToArray(fj_array(spec, "taints"), t);
        } else if (taints && !taints->child)
                fj_remove(spec, "taints");
}

static void sync_taints(FakeCluster *c, FakeQueue *q, const char *key) {
        const cJSON *node = fake_store_get(c->store, FAKE_NODES, NULL, key), *ready;
        const char *status;
        cJSON *new;

        if (!node)
                return;
        ready = fj_find(fj_get(node, "status", "conditions", NULL), "type", "Ready");
        status = ready ? strempty(fj_string(ready, "status", NULL)) : "False";

        new = fj_copy(node);
        set_taint(c, new, "node.kubernetes.io/unschedulable", "NoSchedule",
                  fj_true(node, "spec", "unschedulable", NULL));
        set_taint(c, new, "node.kubernetes.io/not-ready", "NoSchedule", streq(status, "False"));
        set_taint(c, new, "node.kubernetes.io/not-ready", "NoExecute", streq(status, "False") && ready);
        set_taint(c, new, "node.kubernetes.io/unreachable", "NoSchedule", streq(status, "Unknown"));
        set_taint(c, new, "node.kubernetes.io/unreachable", "NoExecute", streq(status, "Unknown"));
        fake_store_update(c->store, FAKE_NODES, new);
}

const FakeController fake_node_taints_controller = { "fake-node-taints", observe_nodes, sync_taints,
                                                     resync_nodes };
