/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The whole cluster: API server and controllers on one loop. fake_cluster_handle() with the cluster as
 * userdata is the http_handler_t of both faces.
 *
 * Annotations of a pod that its kubelet obeys:
 *      fake.vesper.sh/stop-seconds: "20"   takes so long to stop, at most its grace (else it stops at once)
 *      fake.vesper.sh/stuck: "true"        never stops; only a delete with grace 0 removes it
 *      fake.vesper.sh/unready: "true"      runs, but is never Ready
 */

#include "fake-api.h"
#include "list.h"

typedef struct FakeCluster FakeCluster;

typedef enum FakeControllerId {
        FAKE_CONTROLLER_PDB,
        FAKE_CONTROLLER_REPLICASET,
        FAKE_CONTROLLER_STATEFULSET,
        FAKE_CONTROLLER_VOLUME, /* VolumeAttachments of claims that pods name */
        FAKE_CONTROLLER_SCHEDULER,
        FAKE_CONTROLLER_KUBELET,     /* pods bound to nodes */
        FAKE_CONTROLLER_NODE_STATUS, /* the kubelets' word on their nodes, and its absence */
        FAKE_CONTROLLER_NODE_TAINTS, /* from unschedulable and the conditions */
        FAKE_CONTROLLER_TAINT_EVICTION, /* pods that do not tolerate a NoExecute taint any longer */
        FAKE_CONTROLLER_POD_GC,      /* pods of nodes that are gone or out of service */
        FAKE_CONTROLLER_GC,          /* owners gone; foregroundDeletion and orphan finalizers */
        FAKE_CONTROLLER_NAMESPACE,
        _FAKE_CONTROLLER_MAX,
        _FAKE_CONTROLLER_INVALID = -EINVAL,
} FakeControllerId;

#define FAKE_CONTROLLERS_ALL ((1u << _FAKE_CONTROLLER_MAX) - 1)

typedef struct FakeClusterOptions {
        FakeApiOptions api;
        size_t history;           /* changes kept per resource; 0: 50,000 */
        unsigned controllers_off; /* bits 1u << FakeControllerId */
        usec_t delay_usec;     /* of a controller's reaction, on average (half to one and a half); 0: 5 ms */
        usec_t pod_start_usec; /* bound to Running; 0: 50 ms */
        usec_t node_grace_usec; /* kubelet silent until Ready is Unknown; 0: 40 s */
        usec_t heartbeat_usec;  /* of Leases in kube-node-lease; 0: none are written */
        usec_t pod_gc_usec;     /* node gone until its pods are; 0: 40 s */
        usec_t detach_usec;     /* of a volume that no pod needs any more; 0: 2 s */
        bool even;              /* each delay is the average one, not a random one */
} FakeClusterOptions;

/* Loop and random are borrowed and outlive the cluster. Namespaces default, kube-system, kube-public,
 * kube-node-lease are there. */
FakeCluster *fake_cluster_new(Loop *loop, Random *random, const FakeClusterOptions *options);
FakeCluster *fake_cluster_free(FakeCluster *c);
DEFINE_FREEP(FakeCluster, fake_cluster_free);

void fake_cluster_handle(HttpExchange *x, void *cluster);
FakeApi *fake_cluster_api(FakeCluster *c);
FakeStore *fake_cluster_store(FakeCluster *c);
FakeAuthz *fake_cluster_authz(FakeCluster *c);

/* Switched on again, a controller looks at everything. */
void fake_cluster_set_controller(FakeCluster *c, FakeControllerId id, bool on);
/* A node's kubelet dies (nothing on the node happens any more) or comes back. */
void fake_cluster_set_kubelet(FakeCluster *c, const char *node, bool running);
bool fake_cluster_kubelet_runs(const FakeCluster *c, const char *node);
/* From the end of a pod's last container until its kubelet takes it off the API; 0, as it begins: at once.
 */
void fake_cluster_set_kubelet_lag(FakeCluster *c, usec_t lag_usec);
/* A container of that pod runs: Running, and not stopped to the end by its kubelet. */
bool fake_cluster_containers_run(const FakeCluster *c, const cJSON *pod);
/* The HTTPS server of that node's kubelet (http_handler_t): /runningpods/, which repeats the runtime for 3 s. */
typedef struct FakeRunningPods {
        FakeCluster *cluster;
        const char *node;
        unsigned status; /* of a refusal; 0: whoever asks may read */
        char *body;      /* the last answer; free it at last */
        usec_t made_usec;
} FakeRunningPods;
void fake_running_pods_handle(HttpExchange *x, void *running_pods);
/* Called when the last one of a pod has ended, whoever takes the pod off the API then. Borrowed until it is
 * taken off. */
typedef struct FakeContainerWatch {
        ListNode node;
        void (*on_ended)(const cJSON *pod, void *userdata);
        void *userdata;
} FakeContainerWatch;
void fake_cluster_watch_containers(FakeCluster *c, FakeContainerWatch *w);
void fake_cluster_unwatch_containers(FakeCluster *c, FakeContainerWatch *w);
/* Compacts the history: watches from before get 410, continue tokens too. */
void fake_cluster_compact(FakeCluster *c);
/* fake_store_restore(), with the API server away for so long: it is started anew. As a real one, it lets a watch begin
 * from a version that is not yet, and such a watch hears nothing before. Controllers and kubelets go on from what is
 * there now. */
void fake_cluster_restore(FakeCluster *c, const FakeBackup *b, uint64_t bump, usec_t away_usec);

/* -- direct access, past authorization and admission --------------------------------------------------- */

/* Borrowed until the next write; without kind and apiVersion. ns NULL for cluster-scoped ones. */
const cJSON *fake_get(FakeCluster *c, FakeResourceId id, const char *ns, const char *name);
/* Creates or replaces; the object is taken. Missing uid and creationTimestamp are made. kind and apiVersion
 * are dropped. */
void fake_put(FakeCluster *c, FakeResourceId id, cJSON *object);
/* Merges the patch (RFC 7386, format as fj_parse()) into the stored object, status and all. */
void fake_merge(FakeCluster *c, FakeResourceId id, const char *ns, const char *name, const char *fmt, ...)
        _printf_(5, 6);
/* As DELETE with that grace (< 0: the object's own): finalizers hold it. False if it was not there. */
bool fake_delete(FakeCluster *c, FakeResourceId id, const char *ns, const char *name, int64_t grace_sec);
/* Out of the store at once, whatever holds it. */
bool fake_remove(FakeCluster *c, FakeResourceId id, const char *ns, const char *name);
size_t fake_count(FakeCluster *c, FakeResourceId id);
#define FAKE_FOREACH(object, c, id, ns) FAKE_STORE_FOREACH (object, fake_cluster_store(c), id, ns)
/* A list of objects ({"items": [...]} or an array), each with kind and apiVersion. Number put; -EINVAL: one
 * is of no kind. */
int fake_load(FakeCluster *c, const cJSON *list);

/* -- makers -------------------------------------------------------------------------------------------- */

/* Ready, providerID "aws:///ZONE/INSTANCE" if instance is given (zone NULL: "us-east-1a"), labelled with
 * hostname and pool (NULL: none: vesper.sh/pool). */
void fake_add_node(FakeCluster *c, const char *name, const char *zone, const char *instance,
                   const char *pool);
/* Returns the object that fake_add_node() puts, for fake_put(). */
cJSON *fake_make_node(FakeCluster *c, const char *name, const char *zone, const char *instance, const char *pool);

typedef struct FakePod {
        const char *ns; /* NULL: "default" */
        const char *name;
        const char *node;             /* NULL: the scheduler's */
        const char *app;              /* label app; NULL: none */
        const char *owner_kind;       /* "ReplicaSet", "DaemonSet"; NULL: none */
        const char *owner;            /* its name */
        int64_t grace_sec;            /* 0: 30 */
        int64_t stop_sec;             /* 0: at once */
        bool stuck, unready, pending; /* pending: not started by us, the kubelet will */
        const char *annotations;      /* JSON object with ' for "; NULL: none */
} FakePod;

/* Running and Ready if it has a node. */
void fake_add_pod(FakeCluster *c, const FakePod *pod);
/* n pods of label app under a ReplicaSet that keeps them: the controller makes them. */
void fake_add_replicaset(FakeCluster *c, const char *ns, const char *name, const char *app, int replicas);
/* value: "2", "50%"; min: minAvailable, else maxUnavailable. */
void fake_add_pdb(FakeCluster *c, const char *ns, const char *name, const char *app, bool min,
                  const char *value);
/* Selects the nodes with label vesper.sh/pool=name. termination_grace: "30m" or NULL; provider: name ("ec2",
 * "exec"). */
void fake_add_nodepool(FakeCluster *c, const char *name, const char *termination_grace,
                       const char *provider);
