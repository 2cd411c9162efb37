/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cluster/: the indexed view of nodes, pods, both kinds of budgets, volumes, pools, claims and the pause. Informers feed it;
 * everything above reads it and is told which node or pool became dirty. It decides nothing and writes
 * nothing. Every replica keeps it warm, the leader or not, so that a takeover need not list.
 *
 * Its pods are each a KubeScheduledPod, its nodes a KubeScheduledNode: whoever simulates where pods would go needs no watch of
 * its own for them.
 */

#include "informer.h"
#include "kube-kinds.h"
#include "vanished-pods.h"
#include "wakeup.h"

typedef struct ClusterView ClusterView;

typedef struct ClusterViewHandler {
        /* Something about this node changed: the Node, its claim, its volumes, a PDB that matches one of its
         * pods. A pod's own change is told by on_pod alone. `node` is borrowed. */
        void (*on_node_dirty)(const char *node, void *userdata);
        void (*on_pool_dirty)(const char *pool, void *userdata);
        /* A claim changed; its node may not exist. */
        void (*on_claim_dirty)(const char *claim, void *userdata);
        /* A pod bound to a node came, changed (if only its resourceVersion did) or went; exactly one of old
         * and new may be NULL; a pod that moved (never in practice) comes as gone from the one and new on
         * the other. Whether this makes the node dirty is for the callback to say. */
        void (*on_pod)(const char *node, const KubePod *old, const KubePod *new, void *userdata);
        /* The same of each pod, bound or not, once, and before it. May be NULL. */
        void (*on_any_pod)(const KubePod *old, const KubePod *new, void *userdata);
        /* new NULL: the PDB is gone. */
        void (*on_pdb)(const KubePdb *old, const KubePdb *new, void *userdata);
        /* A NodeDisruptionBudget, or a Node, came (old NULL), changed, or went (new NULL). May be NULL. */
        void (*on_budget)(const KubeNodeBudget *old, const KubeNodeBudget *new, void *userdata);
        void (*on_node)(const KubeNode *old, const KubeNode *new, void *userdata);
        void (*on_pause)(void *userdata); /* cluster_view_is_paused() may be another. May be NULL. */
        void (*on_synced)(void *userdata); /* once: all informers are complete */
        /* changes only: all watches stand, or not */
        void (*on_health)(bool connected, const char *why, void *userdata);
        void *userdata;
} ClusterViewHandler;

/* pause_namespace: of which it is seen whether it is annotated ANNOTATION_PAUSED. */
int cluster_view_new(KubeClient *c, const char *pause_namespace, const ClusterViewHandler *h, ClusterView **ret);
ClusterView *cluster_view_free(ClusterView *v);
DEFINE_FREEP(ClusterView, cluster_view_free);
bool cluster_view_synced(const ClusterView *v);
bool cluster_view_healthy(const ClusterView *v); /* all watches stand */
bool cluster_view_is_paused(const ClusterView *v); /* the namespace is annotated so */
const char *cluster_view_pause_namespace(const ClusterView *v);
/* The resourceVersion up to which the view has the Nodes; NULL: it has none. Borrowed until the next loop
 * iteration. */
const char *cluster_view_nodes_version(const ClusterView *v);
size_t cluster_view_n_nodes(const ClusterView *v);
size_t cluster_view_n_claims(const ClusterView *v);
void cluster_view_kick(ClusterView *v); /* the network came back */
/* What is seen of this kind is refused as old: informer_distrust(). */
void cluster_view_distrust(ClusterView *v, const KubeKind *kind);

/* All borrowed until the next loop iteration; NULL if absent. */
const KubeNode *cluster_view_node(const ClusterView *v, const char *name);
const KubeNodePool *cluster_view_pool(const ClusterView *v, const char *name);
const KubeNodeClaim *cluster_view_claim(const ClusterView *v, const char *name);
const KubeNodeBudget *cluster_view_budget(const ClusterView *v, const char *name);
/* The claim of this Node: same providerID, or it names its machine by this Node (MACHINE_ID_BY_NAME); unless it
 * names another Node that has that providerID, too; of several
 * the one that is not being deleted, then the one that names this Node. A standalone claim is that of a Node only if it has no
 * rival, and, before it is adopted, names this Node or leaves no doubt which it is. */
const KubeNodeClaim *cluster_view_claim_of_node(const ClusterView *v, const KubeNode *n);
/* The claim that keeps this standalone one from being acted on, for both name one machine: any claim of a pool; another
 * standalone one, unless this one is adopted and the other is not. NULL: none, and of a pool's claim always. */
const KubeNodeClaim *cluster_view_rival_of_claim(const ClusterView *v, const KubeNodeClaim *c);
/* The name of the Node that this claim is of: of its status, or before that is written the one that it was made for. NULL:
 * not told. Borrowed. */
const char *cluster_view_node_named_by(const KubeNodeClaim *c);
/* The Node with this providerID; or NULL. One that names its Node (MACHINE_ID_BY_NAME) is of the Node of that name alone,
 * whatever the others say. *ret_several (if wanted): more than one has it. */
const KubeNode *cluster_view_node_of_provider_id(const ClusterView *v, const char *provider_id,
                                                 bool *ret_several);

bool cluster_view_iterate_nodes(const ClusterView *v, HashmapIterator *it, const KubeNode **ret);
/* All that have this spec.providerID. */
bool cluster_view_iterate_nodes_of_provider_id(const ClusterView *v, const char *provider_id, HashmapIterator *it,
                                               const KubeNode **ret);
/* All Nodes, and all NodeClaims, whose providerID names this instance of EC2, whatever its zone. */
bool cluster_view_iterate_nodes_of_instance(const ClusterView *v, const char *instance, HashmapIterator *it,
                                            const KubeNode **ret);
bool cluster_view_iterate_claims_of_instance(const ClusterView *v, const char *instance, HashmapIterator *it,
                                             const KubeNodeClaim **ret);
bool cluster_view_iterate_pools(const ClusterView *v, HashmapIterator *it, const KubeNodePool **ret);
bool cluster_view_iterate_claims(const ClusterView *v, HashmapIterator *it, const KubeNodeClaim **ret);
bool cluster_view_iterate_budgets(const ClusterView *v, HashmapIterator *it, const KubeNodeBudget **ret);
bool cluster_view_iterate_pdbs(const ClusterView *v, HashmapIterator *it, const KubePdb **ret);
/* Pods bound to this node. */
bool cluster_view_iterate_pods(const ClusterView *v, const char *node, HashmapIterator *it,
                               const KubePod **ret);
bool cluster_view_iterate_all_pods(const ClusterView *v, HashmapIterator *it, const KubePod **ret); /* bound or not */
/* Pods that left since the view is complete, and whose successors have not come: as of now. They are incomplete for VANISHED_USEC after each list
 * of pods. */
const VanishedPods *cluster_view_vanished(const ClusterView *v);
/* VolumeAttachments of this node. */
bool cluster_view_iterate_volumes(const ClusterView *v, const char *node, HashmapIterator *it,
                                  const KubeVolumeAttachment **ret);
/* How many pods were compared with a PDB because the PDB was edited, since the start. For tests: only the
 * bound pods of its own namespace are. */
uint64_t cluster_view_n_compared(const ClusterView *v);
/* Number of comparisons of a pod with a PDB that cluster_view_pdb_of_pod() has made, since the start. For
 * tests: each pod is compared once until the pod, or the spec of a matching PDB, changes. */
uint64_t cluster_view_n_matched(const ClusterView *v);
/* Returns the number of namespaces with so many PDBs that the view finds no pod's PDB there: vesper(7), LIMITS. */
size_t cluster_view_n_crowded_namespaces(const ClusterView *v);
/* Returns the namespace whose pods take most memory in the view, by KubeObject.kept_bytes; NULL: there are
 * no pods. Borrowed. */
const char *cluster_view_costliest_namespace(const ClusterView *v, size_t *ret_n_pods, size_t *ret_bytes);

/* The pools whose selector matches the node: 0, 1 or "more than one". *ret_pool is the first by name. Pools
 * that are invalid match nothing; pools being deleted match nothing; a node that a person keeps from vesper
 * (kube_node_is_unmanaged()) is matched by none. */
typedef enum PoolMatch { POOL_MATCH_NONE, POOL_MATCH_ONE, POOL_MATCH_SEVERAL } PoolMatch;
PoolMatch cluster_view_pool_of_node(const ClusterView *v, const KubeNode *n, const KubeNodePool **ret_pool,
                                    const KubeNodePool **ret_other);

/* The PDB that the API server would ask before evicting this pod: its one match, unless the API would pass
 * it by: pod Pending, terminal or terminating; not Ready under AlwaysAllow, or under IfHealthyBudget with
 * currentHealthy >= desiredHealthy > 0. NULL: none, or several (then the API server answers 500 and says
 * so). */
const KubePdb *cluster_view_pdb_of_pod(ClusterView *v, const KubePod *pod); /* pod: of this view */
void cluster_view_next_wakeup(const ClusterView *v, Wakeups *w); /* reports each informer */
