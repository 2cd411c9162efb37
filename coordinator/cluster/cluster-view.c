/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster-view.h"

#include <stdio.h>

#include "hashmap.h"
#include "kube-scheduling.h"
#include "log.h"
#include "marks.h"
#include "object-index.h"
#include "string-util.h"
#include "token-bucket.h"

/*
 * Eight informers and eight indexes over them. An index entry borrows the informer's object by reference,
 * and is changed only in the informer's event, so the two can never disagree.
 *
 *   pods by node            node name -> (pod key -> KubePod)
 *   namespaces              namespace -> ViewNamespace: its bound KubePods, and the memory of all its pods
 *   volumes by node         node name -> (name -> KubeVolumeAttachment)
 *   nodes by providerID     providerID -> (name -> KubeNode)
 *   claims by providerID    providerID -> (name -> KubeNodeClaim)
 *   nodes by instance       id of EC2's instance -> (name -> KubeNode)
 *   claims by instance      id of EC2's instance -> (name -> KubeNodeClaim)
 *   budgets by namespace    namespace -> (name -> KubePdb)
 *
 * The list of a namespace takes no references: its pods are exactly those that the index by node holds.
 *
 * The view finds the PodDisruptionBudget of a bound pod once and caches it in the pod, until a matching one
 * is created, deleted or gets another spec: drains ask for it in every pass, and a tenant may make any
 * number of them. In a namespace with more than PDBS_MAX the API server's answers decide: its pods count as
 * pods without a PodDisruptionBudget.
 *
 * A claim that names its machine by its Node (MACHINE_ID_BY_NAME) is that Node's, whatever providerID that
 * has: it needs no index.
 */

#define NODE_NAME_MAX 253u /* a DNS subdomain */
/* PodDisruptionBudgets of one namespace that a pod is compared with. A comparison takes at most some 2 us,
 * so all of them take a quarter of a second for the 110 pods of a node. */
#define PDBS_MAX 1000u

typedef enum ViewKind {
        VIEW_NODES,
        VIEW_PODS,
        VIEW_PDBS,
        VIEW_VOLUMES,
        VIEW_POOLS,
        VIEW_CLAIMS,
        VIEW_BUDGETS,
        VIEW_NAMESPACE, /* one: of the pause */
        _VIEW_KIND_MAX,
} ViewKind;

/* Exists while the namespace has pods. */
typedef struct ViewNamespace {
        List bound;          /* KubePod.in_namespace */
        size_t n_pods;       /* bound or not */
        size_t pods_bytes;   /* their KubeObject.kept_bytes */
} ViewNamespace;

struct ClusterView {
        Env *env;
        char *pause_ns;
        ClusterViewHandler handler;
        Informer *informers[_VIEW_KIND_MAX];
        bool connected[_VIEW_KIND_MAX];
        bool synced, healthy;
        ObjectIndex pods_by_node, volumes_by_node, nodes_by_id, claims_by_id, pdbs_by_ns;
        ObjectIndex nodes_by_instance, claims_by_instance; /* of EC2 alone */
        Hashmap *namespaces; /* of ViewNamespace */
        VanishedPods *vanished;
        uint64_t n_compared, n_matched; /* see cluster_view_n_compared(), cluster_view_n_matched() */
        size_t n_crowded; /* namespaces with more than PDBS_MAX PDBs */
        TokenBucket cut_pod_lines, cut_node_lines, crowded_lines;
};

static const KubeKind *const view_kinds[_VIEW_KIND_MAX] = {
        [VIEW_NODES] = &kube_scheduled_node_kind, [VIEW_PODS] = &kube_scheduled_pod_kind,
        [VIEW_PDBS] = &kube_pdb_kind,        [VIEW_VOLUMES] = &kube_volume_attachment_kind,
        [VIEW_POOLS] = &kube_node_pool_kind, [VIEW_CLAIMS] = &kube_node_claim_kind,
        [VIEW_BUDGETS] = &kube_node_budget_kind, [VIEW_NAMESPACE] = &kube_namespace_kind,
};

/* -- namespaces and indexes ----------------------------------------------------------------------------- */

static void *namespace_free(void *ns) {
        return mfree(ns); /* pods_by_node holds the references to the pods */
}

static ViewNamespace *namespace_get(const ClusterView *v, const KubePod *pod) {
        return hashmap_get(v->namespaces, strempty(pod->object.meta.ns));
}

static int namespace_add(ClusterView *v, const KubePod *pod, ViewNamespace **ret) {
        ViewNamespace *ns = namespace_get(v, pod);
        int r = 0;

        if (!ns) {
                ns = new0(ViewNamespace, 1);
                if (!ns)
                        return -ENOMEM;
                r = hashmap_put(v->namespaces, strempty(pod->object.meta.ns), ns);
                if (r < 0) {
                        free(ns);
                        return r;
                }
        }
        ns->n_pods++;
        ns->pods_bytes += pod->object.kept_bytes;
        *ret = ns;
        return 0;
}

static void namespace_remove(ClusterView *v, KubePod *pod) {
        ViewNamespace *ns = namespace_get(v, pod);
        ListNode *n = &pod->in_namespace;

        if (!ns) /* namespace_add() found no memory */
                return;
        if (ns->bound.first == n || n->prev)
                list_remove(&ns->bound, n);
        ns->n_pods--;
        ns->pods_bytes -= pod->object.kept_bytes;
        if (ns->n_pods == 0)
                free(hashmap_remove(v->namespaces, strempty(pod->object.meta.ns)));
}

static int namespace_move(ClusterView *v, KubePod *old, KubePod *new) {
        ViewNamespace *ns = NULL;
        int r = new ? namespace_add(v, new, &ns) : 0;

        if (r >= 0 && new && new->node_name)
                list_append(&ns->bound, &new->in_namespace);
        if (old)
                namespace_remove(v, old);
        return r;
}

/* A pod that is not found by its node would not be drained, one that is found after its end would be waited
 * for, both for ever: a process that has no memory for an index ends, and the next one reads everything
 * anew. */
static void exit_if_lost(ClusterView *v, int r) {
        if (r >= 0)
                return;
        log_error_errno(
                v->env->log, r,
                "Failed to update the view of the cluster, exiting so that the next start lists anew: %m");
        loop_exit(v->env->loop, r);
}

/* The object moves from where `old` stood to where `new` stands. */
static void index_move(ClusterView *v, ObjectIndex *i, const char *old_outer, KubeObject *old,
                       const char *new_outer, KubeObject *new) {
        exit_if_lost(v, object_index_move(i, old_outer, old, new_outer, new));
}

/* -- who becomes dirty ---------------------------------------------------------------------------------- */

static void node_dirty(ClusterView *v, const char *node) {
        if (node)
                v->handler.on_node_dirty(node, v->handler.userdata);
}

/* The claims that name their machine by this Node. */
static Hashmap *claims_by_name(const ClusterView *v, const KubeNode *n) {
        char id[sizeof(MACHINE_ID_BY_NAME) + NODE_NAME_MAX];

        (void) snprintf(id, sizeof(id), MACHINE_ID_BY_NAME "%s", n->object.meta.name);
        return object_index_inner(&v->claims_by_id, id);
}

static void nodes_of_id_dirty(ClusterView *v, const char *provider_id) {
        KubeObject *n;

        node_dirty(v, machine_id_node_name(provider_id));
        for (HashmapIterator it = {}; provider_id && object_index_iterate(&v->nodes_by_id, provider_id, &it, &n);)
                node_dirty(v, n->meta.name);
}

static void claims_dirty(ClusterView *v, Hashmap *inner) {
        KubeObject *c;

        HASHMAP_FOREACH (c, inner)
                v->handler.on_claim_dirty(c->meta.name, v->handler.userdata);
}

/* Both indexes of a kind that has a providerID. */
static void move_by_id(ClusterView *v, ObjectIndex *by_id, ObjectIndex *by_instance, const char *from, KubeObject *old,
                       const char *to, KubeObject *new) {
        index_move(v, by_id, from, old, to, new);
        index_move(v, by_instance, machine_id_ec2_instance(from), old, machine_id_ec2_instance(to), new);
}

static void on_node(ClusterView *v, KubeNode *old, KubeNode *new) {
        const KubeNode *n = new ? new : old;

        move_by_id(v, &v->nodes_by_id, &v->nodes_by_instance, old ? old->provider_id : NULL,
                   (KubeObject *) old, new ? new->provider_id : NULL, (KubeObject *) new);
        if (v->handler.on_node)
                v->handler.on_node(old, new, v->handler.userdata);
        node_dirty(v, n->object.meta.name);
        claims_dirty(v, object_index_inner(&v->claims_by_id, n->provider_id));
        claims_dirty(v, claims_by_name(v, n));
}

static void on_pod(ClusterView *v, KubePod *old, KubePod *new) {
        const char *from = old ? old->node_name : NULL, *to = new ? new->node_name : NULL;

        if (v->synced)
                vanished_pods_see(v->vanished, old, new, loop_now(v->env->loop));
        if (v->handler.on_any_pod)
                v->handler.on_any_pod(old, new, v->handler.userdata);
        exit_if_lost(v, namespace_move(v, old, new));
        index_move(v, &v->pods_by_node, from, (KubeObject *) old, to, (KubeObject *) new);
        if (from && !streq_ptr(from, to))
                v->handler.on_pod(from, old, NULL, v->handler.userdata);
        if (to)
                v->handler.on_pod(to, streq_ptr(from, to) ? old : NULL, new, v->handler.userdata);
}

/* Updates n_crowded after the number of PDBs of a namespace has crossed PDBS_MAX in either direction, and logs that.
 * A tenant can cause this at will, so the lines are rate-limited. */
static void note_crowded(ClusterView *v, const char *ns, bool is_crowded) {
        v->n_crowded = is_crowded ? v->n_crowded + 1 : v->n_crowded - 1;
        if (!token_bucket_take(&v->crowded_lines, loop_now(v->env->loop), NULL))
                return;
        if (is_crowded)
                log_warning(v->env->log,
                            "Namespace %s has more than 1,000 PodDisruptionBudgets, so vesper does not match pods to budgets "
                            "there. The API server's answers to evictions decide (vesper(7), LIMITS). Delete those that "
                            "nobody needs",
                            ns);
        else
                log_notice(v->env->log,
                           "Namespace %s has 1,000 PodDisruptionBudgets again. vesper matches its pods to them", ns);
}

/* A change of what a PDB allows wakes its eviction queue, through the handler. Which pods the PDB matches
 * changes only with its spec, or when unready pods begin or cease to pass it by: then the nodes of the pods
 * that it matches are dirty, and of those that it matched before. All of them are in its namespace. */
static void on_pdb(ClusterView *v, KubePdb *old, KubePdb *new) {
        const char *name = strempty((new ? new : old)->object.meta.ns);
        ViewNamespace *ns = hashmap_get(v->namespaces, name);
        bool passes_max; /* the number of PDBs passes PDBS_MAX: forget every pod's result */
        size_t n;

        index_move(v, &v->pdbs_by_ns, old ? old->object.meta.ns : NULL, (KubeObject *) old,
                   new ? new->object.meta.ns : NULL, (KubeObject *) new);
        n = hashmap_size(object_index_inner(&v->pdbs_by_ns, name));
        passes_max = (!old && n == PDBS_MAX + 1) || (!new && n == PDBS_MAX);
        if (passes_max)
                note_crowded(v, name, n > PDBS_MAX);
        v->handler.on_pdb(old, new, v->handler.userdata);
        if (old && new && old->object.meta.generation == new->object.meta.generation &&
            kube_pdb_lets_unready_pass(old) == kube_pdb_lets_unready_pass(new))
                return;
        if (!ns)
                return;
        LIST_FOREACH (pod, &ns->bound, KubePod, in_namespace) {
                v->n_compared++;
                if (!passes_max && !(old && kube_pdb_matches(old, pod)) &&
                    !(new && kube_pdb_matches(new, pod)))
                        continue;
                pod->pdb_is_known = false;
                node_dirty(v, pod->node_name);
        }
}

static void on_volume(ClusterView *v, KubeVolumeAttachment *old, KubeVolumeAttachment *new) {
        const char *from = old ? old->node_name : NULL, *to = new ? new->node_name : NULL;

        index_move(v, &v->volumes_by_node, from, (KubeObject *) old, to, (KubeObject *) new);
        node_dirty(v, to ? to : from);
}

static void on_claim(ClusterView *v, KubeNodeClaim *old, KubeNodeClaim *new) {
        const KubeNodeClaim *c = new ? new : old;

        move_by_id(v, &v->claims_by_id, &v->claims_by_instance, old ? old->provider_id : NULL,
                   (KubeObject *) old, new ? new->provider_id : NULL, (KubeObject *) new);
        v->handler.on_claim_dirty(c->object.meta.name, v->handler.userdata);
        if (hashmap_size(object_index_inner(&v->claims_by_id, c->provider_id)) > (new ? 1u : 0u)) /* rivals */
                claims_dirty(v, object_index_inner(&v->claims_by_id, c->provider_id));
        nodes_of_id_dirty(v, c->provider_id);
}

static void on_budget(ClusterView *v, const KubeNodeBudget *old, const KubeNodeBudget *new) {
        if (v->handler.on_budget)
                v->handler.on_budget(old, new, v->handler.userdata);
}

/* Logs that an object is too large to be kept whole, or cannot be read whole. Tenants can make any number of
 * such pods: pods get at most one line a minute, and so do Nodes. */
static void warn_if_cut(ClusterView *v, TokenBucket *lines, const KubeObject *old, const KubeObject *new) {
        size_t n_pods, bytes;
        const char *most;
        usec_t at;

        if (!new || !new->invalid || (old && streq_ptr(old->invalid, new->invalid)) ||
            !token_bucket_take(lines, loop_now(v->env->loop), &at))
                return;
        most = cluster_view_costliest_namespace(v, &n_pods, &bytes);
        log_warning(v->env->log,
                    "%s %s%s%s cannot be read whole: %s. vesper goes on with the rest (vesper(7), LIMITS). The namespace whose pods take most memory is %s: "
                    "%zu KiB for %zu pods",
                    new->kind->kind, strempty(new->meta.ns), new->meta.ns ? "/" : "", new->meta.name,
                    new->invalid, most ? most : "none", bytes / 1024, n_pods);
}

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        ClusterView *v = userdata;
        const KubeObject *o = new ? new : old;

        if (o->kind == &kube_scheduled_pod_kind || o->kind == &kube_scheduled_node_kind)
                warn_if_cut(v,
                            o->kind == &kube_scheduled_pod_kind ? &v->cut_pod_lines : &v->cut_node_lines,
                            old, new);
        if (o->kind == &kube_scheduled_pod_kind)
                on_pod(v, (KubePod *) old, (KubePod *) new);
        else if (o->kind == &kube_scheduled_node_kind)
                on_node(v, (KubeNode *) old, (KubeNode *) new);
        else if (o->kind == &kube_pdb_kind)
                on_pdb(v, (KubePdb *) old, (KubePdb *) new);
        else if (o->kind == &kube_volume_attachment_kind)
                on_volume(v, (KubeVolumeAttachment *) old, (KubeVolumeAttachment *) new);
        else if (o->kind == &kube_node_claim_kind)
                on_claim(v, (KubeNodeClaim *) old, (KubeNodeClaim *) new);
        else if (o->kind == &kube_node_budget_kind)
                on_budget(v, (KubeNodeBudget *) old, (KubeNodeBudget *) new);
        else if (o->kind == &kube_namespace_kind) {
                if (v->handler.on_pause)
                        v->handler.on_pause(v->handler.userdata);
        } else
                v->handler.on_pool_dirty(o->meta.name, v->handler.userdata);
}

static void on_synced(Informer *i, void *userdata) {
        ClusterView *v = userdata;

        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++)
                if (!informer_synced(v->informers[k]))
                        return;
        if (v->synced)
                return;
        v->synced = true;
        vanished_pods_note_gap(v->vanished, loop_now(v->env->loop));
        v->handler.on_synced(v->handler.userdata);
}

static void on_listed(Informer *i, void *userdata) {
        ClusterView *v = userdata;

        /* The API server's etcd was restored, so the watches of the other kinds may be mute: their informers list, too. */
        if (informer_went_back(i))
                for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++)
                        informer_distrust(v->informers[k]);
        /* A list does not tell which pods were made and deleted since the watch before it broke. */
        if (i == v->informers[VIEW_PODS] && v->synced)
                vanished_pods_note_gap(v->vanished, loop_now(v->env->loop));
}

static void on_health(Informer *i, bool connected, const char *why, void *userdata) {
        ClusterView *v = userdata;
        bool healthy = true;

        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++) {
                if (v->informers[k] == i)
                        v->connected[k] = connected;
                healthy = healthy && v->connected[k];
        }
        if (healthy == v->healthy)
                return;
        v->healthy = healthy;
        if (v->handler.on_health)
                v->handler.on_health(healthy, why, v->handler.userdata);
}

/* -- life ----------------------------------------------------------------------------------------------- */

int cluster_view_new(KubeClient *c, const char *pause_namespace, const ClusterViewHandler *h, ClusterView **ret) {
        _cleanup_(cluster_view_freep) ClusterView *v = NULL;
        _cleanup_free_ char *only = strf("metadata.name=%s", pause_namespace);
        ObjectIndex *indexes[7];
        int r;

        assert(c && h && h->on_node_dirty && h->on_pool_dirty && h->on_claim_dirty && h->on_pod &&
               h->on_pdb && h->on_synced && ret);
        v = new0(ClusterView, 1);
        if (!v)
                return -ENOMEM;
        v->env = kube_client_env(c);
        v->handler = *h;
        v->crowded_lines = (TokenBucket){ .burst = 20, .per_minute = 2 };
        v->cut_pod_lines = v->cut_node_lines = (TokenBucket){ .burst = 1, .per_minute = 1 };
        v->pause_ns = strdup(pause_namespace);
        if (!v->pause_ns || !only)
                return -ENOMEM;

        indexes[0] = &v->pods_by_node;
        indexes[1] = &v->volumes_by_node;
        indexes[2] = &v->nodes_by_id;
        indexes[3] = &v->claims_by_id;
        indexes[4] = &v->pdbs_by_ns;
        indexes[5] = &v->nodes_by_instance;
        indexes[6] = &v->claims_by_instance;
        for (size_t i = 0; i < ELEMENTSOF(indexes); i++) {
                r = object_index_init(indexes[i]);
                if (r < 0)
                        return r;
        }
        r = hashmap_new(0, &v->namespaces);
        if (r >= 0)
                r = vanished_pods_new(&v->vanished);
        if (r < 0)
                return r;
        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++) {
                InformerHandler handler = {
                        .on_event = on_event, .on_synced = on_synced, .on_listed = on_listed,
                        .on_health = on_health, .userdata = v
                };

                InformerOptions o = { .coalesced = k == VIEW_PODS, .field_selector = k == VIEW_NAMESPACE ? only : NULL };

                r = informer_new(c, view_kinds[k], &o, &handler, &v->informers[k]);
                if (r < 0)
                        return r;
        }

        *ret = TAKE_PTR(v);
        return 0;
}

ClusterView *cluster_view_free(ClusterView *v) {
        if (!v)
                return NULL;
        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++)
                informer_free(v->informers[k]);
        vanished_pods_free(v->vanished);
        hashmap_free_with(v->namespaces, namespace_free);
        object_index_done(&v->pods_by_node);
        object_index_done(&v->volumes_by_node);
        object_index_done(&v->nodes_by_id);
        object_index_done(&v->claims_by_id);
        object_index_done(&v->pdbs_by_ns);
        object_index_done(&v->nodes_by_instance);
        object_index_done(&v->claims_by_instance);
        free(v->pause_ns);
        free(v);
        return NULL;
}

bool cluster_view_synced(const ClusterView *v) {
        return v->synced;
}

bool cluster_view_healthy(const ClusterView *v) {
        return v->healthy;
}

const char *cluster_view_nodes_version(const ClusterView *v) {
        return informer_resource_version(v->informers[VIEW_NODES]);
}

size_t cluster_view_n_nodes(const ClusterView *v) {
        return informer_size(v->informers[VIEW_NODES]);
}

size_t cluster_view_n_claims(const ClusterView *v) {
        return informer_size(v->informers[VIEW_CLAIMS]);
}

uint64_t cluster_view_n_compared(const ClusterView *v) {
        return v->n_compared;
}

uint64_t cluster_view_n_matched(const ClusterView *v) {
        return v->n_matched;
}

void cluster_view_kick(ClusterView *v) {
        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++)
                informer_kick(v->informers[k]);
}

void cluster_view_distrust(ClusterView *v, const KubeKind *kind) {
        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++)
                if (streq(view_kinds[k]->plural, kind->plural) && streq(view_kinds[k]->group, kind->group))
                        informer_distrust(v->informers[k]);
}

bool cluster_view_is_paused(const ClusterView *v) {
        const KubeObject *ns = informer_get(v->informers[VIEW_NAMESPACE], NULL, v->pause_ns);

        return ns && streq_ptr(object_meta_annotation(&ns->meta, ANNOTATION_PAUSED), "true");
}

const char *cluster_view_pause_namespace(const ClusterView *v) {
        return v->pause_ns;
}

/* -- reading -------------------------------------------------------------------------------------------- */

const KubeNode *cluster_view_node(const ClusterView *v, const char *name) {
        return (const KubeNode *) informer_get(v->informers[VIEW_NODES], NULL, name);
}

const KubeNodePool *cluster_view_pool(const ClusterView *v, const char *name) {
        return (const KubeNodePool *) informer_get(v->informers[VIEW_POOLS], NULL, name);
}

const KubeNodeClaim *cluster_view_claim(const ClusterView *v, const char *name) {
        return (const KubeNodeClaim *) informer_get(v->informers[VIEW_CLAIMS], NULL, name);
}

const KubeNodeBudget *cluster_view_budget(const ClusterView *v, const char *name) {
        return (const KubeNodeBudget *) informer_get(v->informers[VIEW_BUDGETS], NULL, name);
}

const char *cluster_view_node_named_by(const KubeNodeClaim *c) {
        const char *name = isempty(c->node_name) ? c->made_for : c->node_name;

        return isempty(name) ? NULL : name;
}

static bool is_rival(const KubeNodeClaim *other, const KubeNodeClaim *c) {
        if (streq(other->object.meta.name, c->object.meta.name))
                return false;
        return !kube_node_claim_is_standalone(other) || kube_node_claim_is_adopted(other) || !kube_node_claim_is_adopted(c);
}

/* A pool's goes before a person's. */
static const KubeNodeClaim *rival_among(Hashmap *inner, const KubeNodeClaim *c, const KubeNodeClaim *found) {
        const KubeNodeClaim *other;

        HASHMAP_FOREACH (other, inner)
                if (is_rival(other, c) && (!found || (kube_node_claim_is_standalone(found) && !kube_node_claim_is_standalone(other))))
                        found = other;
        return found;
}

const KubeNodeClaim *cluster_view_rival_of_claim(const ClusterView *v, const KubeNodeClaim *c) {
        const KubeNode *n = cluster_view_node_of_provider_id(v, c->provider_id, NULL);
        const KubeNodeClaim *found;

        if (!kube_node_claim_is_standalone(c))
                return NULL;
        found = rival_among(object_index_inner(&v->claims_by_id, c->provider_id), c, NULL);
        if (!n)
                return found;
        found = rival_among(object_index_inner(&v->claims_by_id, n->provider_id), c, found);
        return rival_among(claims_by_name(v, n), c, found);
}

/* Before it is adopted nothing but a person's word says whose it is. */
static bool standalone_is_of_another(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n) {
        bool several = false;

        if (cluster_view_rival_of_claim(v, c))
                return true;
        if (kube_node_claim_is_adopted(c))
                return false;
        if (c->made_for)
                return !streq(c->made_for, n->object.meta.name);
        (void) cluster_view_node_of_provider_id(v, c->provider_id, &several);
        return several;
}

/* It names its machine by another Node, or it names a Node that is there and has this machine, too. */
static bool claim_is_of_another(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n) {
        const char *name = machine_id_node_name(c->provider_id), *node = cluster_view_node_named_by(c);
        const KubeNode *named;

        if (kube_node_claim_is_standalone(c) && standalone_is_of_another(v, c, n))
                return true;
        if (name)
                return !streq(name, n->object.meta.name);
        if (!node || streq(node, n->object.meta.name))
                return false;
        named = cluster_view_node(v, node);
        return named && streq_ptr(named->provider_id, n->provider_id);
}

/* Higher is better. */
static unsigned claim_rank(const KubeNodeClaim *c, const KubeNode *n) {
        return (c->object.meta.deletion_usec == 0 ? 4 : 0) + (kube_node_claim_is_launched(c) ? 2 : 0) +
               (streq_ptr(c->node_name, n->object.meta.name) ? 1 : 0);
}

static const KubeNodeClaim *better_claim(const ClusterView *v, const KubeNode *n, Hashmap *inner,
                                         const KubeNodeClaim *found) {
        KubeNodeClaim *c;

        HASHMAP_FOREACH (c, inner)
                if (!claim_is_of_another(v, c, n) && (!found || claim_rank(c, n) > claim_rank(found, n)))
                        found = c;
        return found;
}

const KubeNodeClaim *cluster_view_claim_of_node(const ClusterView *v, const KubeNode *n) {
        const KubeNodeClaim *found =
                better_claim(v, n, object_index_inner(&v->claims_by_id, n->provider_id), NULL);

        return better_claim(v, n, claims_by_name(v, n), found);
}

const KubeNode *cluster_view_node_of_provider_id(const ClusterView *v, const char *provider_id,
                                                 bool *ret_several) {
        Hashmap *inner = object_index_inner(&v->nodes_by_id, provider_id);
        const char *name = machine_id_node_name(provider_id);

        if (ret_several)
                *ret_several = !name && hashmap_size(inner) > 1;
        if (name) /* whoever else has written that as its own providerID */
                return cluster_view_node(v, name);
        return inner ? hashmap_first(inner, NULL) : NULL;
}

bool cluster_view_iterate_nodes(const ClusterView *v, HashmapIterator *it, const KubeNode **ret) {
        return informer_iterate(v->informers[VIEW_NODES], it, (KubeObject **) ret);
}

bool cluster_view_iterate_nodes_of_provider_id(const ClusterView *v, const char *provider_id, HashmapIterator *it,
                                               const KubeNode **ret) {
        return object_index_iterate(&v->nodes_by_id, provider_id, it, (KubeObject **) ret);
}

bool cluster_view_iterate_nodes_of_instance(const ClusterView *v, const char *instance, HashmapIterator *it,
                                            const KubeNode **ret) {
        return object_index_iterate(&v->nodes_by_instance, instance, it, (KubeObject **) ret);
}

bool cluster_view_iterate_claims_of_instance(const ClusterView *v, const char *instance, HashmapIterator *it,
                                             const KubeNodeClaim **ret) {
        return object_index_iterate(&v->claims_by_instance, instance, it, (KubeObject **) ret);
}

bool cluster_view_iterate_pools(const ClusterView *v, HashmapIterator *it, const KubeNodePool **ret) {
        return informer_iterate(v->informers[VIEW_POOLS], it, (KubeObject **) ret);
}

bool cluster_view_iterate_claims(const ClusterView *v, HashmapIterator *it, const KubeNodeClaim **ret) {
        return informer_iterate(v->informers[VIEW_CLAIMS], it, (KubeObject **) ret);
}

bool cluster_view_iterate_budgets(const ClusterView *v, HashmapIterator *it, const KubeNodeBudget **ret) {
        return informer_iterate(v->informers[VIEW_BUDGETS], it, (KubeObject **) ret);
}

bool cluster_view_iterate_pdbs(const ClusterView *v, HashmapIterator *it, const KubePdb **ret) {
        return informer_iterate(v->informers[VIEW_PDBS], it, (KubeObject **) ret);
}

bool cluster_view_iterate_pods(const ClusterView *v, const char *node, HashmapIterator *it,
                               const KubePod **ret) {
        return object_index_iterate(&v->pods_by_node, node, it, (KubeObject **) ret);
}

bool cluster_view_iterate_all_pods(const ClusterView *v, HashmapIterator *it, const KubePod **ret) {
        return informer_iterate(v->informers[VIEW_PODS], it, (KubeObject **) ret);
}

const VanishedPods *cluster_view_vanished(const ClusterView *v) {
        vanished_pods_expire(v->vanished, loop_now(v->env->loop));
        return v->vanished;
}

bool cluster_view_iterate_volumes(const ClusterView *v, const char *node, HashmapIterator *it,
                                  const KubeVolumeAttachment **ret) {
        return object_index_iterate(&v->volumes_by_node, node, it, (KubeObject **) ret);
}

PoolMatch cluster_view_pool_of_node(const ClusterView *v, const KubeNode *n, const KubeNodePool **ret_pool,
                                    const KubeNodePool **ret_other) {
        const KubeNodePool *first = NULL, *other = NULL, *p;

        for (HashmapIterator it = {}; !kube_node_is_unmanaged(n) && cluster_view_iterate_pools(v, &it, &p);) {
                if (p->object.invalid || p->object.meta.deletion_usec > 0 ||
                    selector_is_empty(p->selector) || !selector_matches(p->selector, &n->object.meta.labels))
                        continue;
                if (!first || strcmp(p->object.meta.name, first->object.meta.name) < 0) {
                        other = first ? first : other;
                        first = p;
                } else
                        other = p;
        }
        if (ret_pool)
                *ret_pool = first;
        if (ret_other)
                *ret_other = other;
        return !first ? POOL_MATCH_NONE : other ? POOL_MATCH_SEVERAL : POOL_MATCH_ONE;
}

/* Returns the only PDB that matches the pod; NULL: none, or several. Borrowed. */
static const KubePdb *match_pdb(ClusterView *v, const KubePod *pod) {
        const KubePdb *found = NULL;
        KubeObject *o;

        if (hashmap_size(object_index_inner(&v->pdbs_by_ns, pod->object.meta.ns)) > PDBS_MAX)
                return NULL;
        for (HashmapIterator it = {}; object_index_iterate(&v->pdbs_by_ns, pod->object.meta.ns, &it, &o);) {
                const KubePdb *pdb = (const KubePdb *) o;

                v->n_matched++;
                if (!kube_pdb_matches(pdb, pod))
                        continue;
                if (found)
                        return NULL;
                found = pdb;
        }
        return found;
}

static const KubePdb *pdb_named(const ClusterView *v, const char *ns, const char *name) {
        return (const KubePdb *) informer_get(v->informers[VIEW_PDBS], ns, name);
}

const KubePdb *cluster_view_pdb_of_pod(ClusterView *v, const KubePod *pod) {
        KubePod *kept = (KubePod *) (uintptr_t) pod; /* the cached PDB is no part of the pod's state */
        const KubePdb *found;

        if (pod->pdb_is_known)
                found = pod->pdb_name ? pdb_named(v, pod->object.meta.ns, pod->pdb_name) : NULL;
        else {
                const char *name;

                found = match_pdb(v, pod);
                name = found ? intern(pod->object.pool, found->object.meta.name) : NULL;
                intern_unref(pod->object.pool, pod->pdb_name);
                kept->pdb_name = name;
                /* on_pdb() clears the cache of bound pods only. */
                kept->pdb_is_known = pod->node_name && !name == !found;
        }
        return found && !kube_pdb_passes_by(found, pod) ? found : NULL;
}

size_t cluster_view_n_crowded_namespaces(const ClusterView *v) {
        return v->n_crowded;
}

const char *cluster_view_costliest_namespace(const ClusterView *v, size_t *ret_n_pods, size_t *ret_bytes) {
        const ViewNamespace *most = NULL;
        const char *name = NULL, *key;
        void *ns;

        for (HashmapIterator it = {}; hashmap_iterate(v->namespaces, &it, &key, &ns);)
                if (!most || ((ViewNamespace *) ns)->pods_bytes > most->pods_bytes) {
                        most = ns;
                        name = key;
                }
        *ret_n_pods = most ? most->n_pods : 0;
        *ret_bytes = most ? most->pods_bytes : 0;
        return name;
}

void cluster_view_next_wakeup(const ClusterView *v, Wakeups *w) {
        for (ViewKind k = 0; k < _VIEW_KIND_MAX; k++)
                informer_next_wakeup(v->informers[k], w);
}
