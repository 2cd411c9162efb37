/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the controllers live: each has a queue of keys ("ns/name" or "name"). A write marks keys; some time
 * later, one at a time, sync() looks at the store as it is then. A key that is marked twice is looked at
 * once.
 */

#include "fake-cluster.h"
#include "fake-handlers.h"

typedef struct FakeQueue {
        FakeCluster *cluster;
        Hashmap *items; /* FakeQueueItem by key */
        bool on;
} FakeQueue;

typedef struct FakeController {
        const char *name;
        void (*observe)(FakeCluster *c, FakeQueue *q, const FakeChange *change);
        void (*sync)(FakeCluster *c, FakeQueue *q, const char *key);
        void (*resync)(FakeCluster *c, FakeQueue *q);
} FakeController;

/* What a kubelet knows of one pod that it stops. */
typedef struct FakeStop {
        usec_t begun_usec, kill_usec;
        usec_t ended_usec; /* its last container has; USEC_INFINITY: not yet */
        int64_t grace_sec;
} FakeStop;

struct FakeCluster {
        Loop *loop;
        Random *random;
        FakeClusterOptions options;
        FakeStore *store;
        FakeAuthz *authz;
        FakeApi *api;
        FakeQueue queues[_FAKE_CONTROLLER_MAX];
        Hashmap *stopped;   /* usec_t * by node: kubelets that do not run, since when */
        Hashmap *stops;     /* FakeStop * by uid of the pod */
        List container_watches;
        usec_t kubelet_lag_usec;
        Hashmap *node_pods; /* size_t * by node: pods bound and not terminal, for the scheduler */
        Hashmap *unbound;   /* pods without node that no node would take: retried when nodes change */
};

extern const FakeController fake_pdb_controller, fake_replicaset_controller, fake_statefulset_controller,
        fake_volume_controller, fake_scheduler_controller,
        fake_kubelet_controller, fake_node_status_controller, fake_node_taints_controller,
        fake_taint_eviction_controller, fake_pod_gc_controller, fake_gc_controller, fake_namespace_controller;

/* After a controller's usual delay; at the latest. */
void fake_queue_add(FakeQueue *q, const char *key);
void fake_queue_add_in(FakeQueue *q, const char *key, usec_t delay_usec);
/* The key of what changed; free it. */
char *fake_change_key(const FakeChange *change);
static inline const cJSON *fake_change_object(const FakeChange *change) {
        return change->new ? change->new->json : change->old->json;
}
/* "ns/name" in two; false: there is no ns. Free both. */
bool fake_key_split(const char *key, char **ret_ns, char **ret_name);

/* As POST by somebody who may do everything; the object is taken. What the server would refuse is a bug of
 * the caller. */
void fake_create(FakeCluster *c, FakeResourceId id, cJSON *object);
/* Puts or changes a condition; lastTransitionTime moves with the status. True: something changed. */
bool fake_set_condition(const FakeStore *s, cJSON *status, const char *type, const char *value,
                        const char *reason, const char *message);
bool fake_condition_is(const cJSON *object, const char *type, const char *value);
/* The owner with controller=true, or NULL. */
const cJSON *fake_controller_of(const cJSON *object);
/* A kubelet starts a pod only when its volumes are there. */
bool fake_volumes_attached(FakeCluster *c, const cJSON *pod);
bool fake_pod_is_terminal(const cJSON *pod);
bool fake_tolerates(const cJSON *pod, const cJSON *taint);
char *fake_random_suffix(Random *r, char ret[6]);
/* Returns random_jitter(), or usec unchanged if FakeClusterOptions.even is set. */
usec_t fake_cluster_jitter(FakeCluster *c, usec_t usec, unsigned permille);
