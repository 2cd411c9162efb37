/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-facts.h"

#include "marks.h"
#include "string-util.h"

static usec_t now_of(const QueueWorkerOptions *o) {
        return loop_now(o->env->loop);
}

/* -- whose instance it is ------------------------------------------------------------------------------- */

QueueFound queue_find(const ClusterView *view, const char *instance) {
        const KubeNodeClaim *claim;
        const KubeNode *node;

        if (cluster_view_iterate_nodes_of_instance(view, instance, &(HashmapIterator){}, &node))
                return (QueueFound){ node, cluster_view_claim_of_node(view, node) };
        if (cluster_view_iterate_claims_of_instance(view, instance, &(HashmapIterator){}, &claim))
                return (QueueFound){ NULL, claim };
        return (QueueFound){};
}

/* -- what is known of it -------------------------------------------------------------------------------- */

/* A person's claim that is on its way, or that is refused (termination/standalone.h) and stays so. */
static bool is_not_taken(const KubeNodeClaim *claim) {
        return claim && kube_node_claim_is_standalone(claim) && !kube_node_claim_is_adopted(claim);
}

const KubeNodeClaim *queue_claim_that_counts(const KubeNodeClaim *claim) {
        return is_not_taken(claim) ? NULL : claim;
}

static bool is_drained(const KubeNodeClaim *claim) {
        const Condition *c = condition_find(claim->conditions, claim->n_conditions, CLAIM_DRAINED);

        return c && c->status == CONDITION_TRUE;
}

/* Returns true if the drain of a Node without claim is done, and was for a notice in its list. */
static bool is_free_drained(const KubeNode *n) {
        const Interruption *i = kube_node_standing_heard(n);

        return i && i->phase == INTERRUPTION_DRAINED && announced_list_find(&n->announced, i->notice->id);
}

static PoolMatch pools_of(const ClusterView *view, const KubeNode *n) {
        const KubeNodePool *pool, *other;

        return cluster_view_pool_of_node(view, n, &pool, &other);
}

static bool drains_unmanaged(const QueueWorkerOptions *o) {
        return o->config->queue_unmanaged == QUEUE_UNMANAGED_DRAIN;
}

/* Its claim is on its way; or a pool lets go of it just now, and what would be written on it meanwhile goes with that. */
static bool is_between(const QueueWorkerOptions *o, const KubeNode *n) {
        return pools_of(o->view, n) == POOL_MATCH_ONE ||
               (drains_unmanaged(o) && object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION));
}

static bool is_drainable(const QueueWorkerOptions *o, const KubeNode *n) {
        return pools_of(o->view, n) == POOL_MATCH_NONE && !kube_node_is_unmanaged(n) && n->object.meta.deletion_usec == 0 &&
               !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
}

int queue_facts_gather(const QueueWorkerOptions *o, QueueMemory *memory, const char *instance, const QueueFound *found, QueueFacts *ret) {
        bool is_refused = found->node && is_not_taken(found->claim);
        const KubeNodeClaim *claim = is_refused ? NULL : found->claim;
        const KubeNode *free = claim ? NULL : found->node;

        *ret = (QueueFacts){ .is_managed = claim,
                             .has_node = found->node,
                             .is_ready = found->node && kube_node_is_ready(found->node),
                             .is_drainable = free && drains_unmanaged(o) && is_drainable(o, free),
                             .is_drained = claim ? is_drained(claim) : free && is_free_drained(free),
                             .is_going = claim && claim->object.meta.deletion_usec > 0,
                             .announced = claim ? &claim->announced : free ? &free->announced : NULL,
                             .ready_since_usec = found->node ? kube_node_ready_since(found->node) : 0 };
        if (claim || (found->node && !is_refused && !is_between(o, found->node)))
                queue_memory_forget_unknown(memory, instance);
        else {
                UnknownInstance *u = queue_memory_note_unknown(memory, instance);

                if (!u)
                        return -ENOMEM;
                ret->unknown_usec = usec_sub(now_of(o), u->since_usec);
                if (found->node && u->joined_usec == 0)
                        u->joined_usec = now_of(o);
                ret->is_joining = found->node && usec_sub(now_of(o), u->joined_usec) < QUEUE_UNKNOWN_USEC;
                ret->sight = u->sight;
        }
        return 0;
}

QueueRules queue_rules_now(const QueueWorkerOptions *o) {
        return (QueueRules){ .is_shared = o->config->queue_shared,
                             .drains_unmanaged = drains_unmanaged(o),
                             .deletes = (InterruptionDelete) o->config->interruption_delete,
                             .before_usec = o->config->interruption_before_usec,
                             .wall_usec = loop_wall(o->env->loop) };
}
