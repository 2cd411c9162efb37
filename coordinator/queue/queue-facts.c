/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-facts.h"

#include "marks.h"
#include "queue-told.h"
#include "string-util.h"

static usec_t now_of(const QueueWorkerOptions *o) {
        return loop_now(o->env->loop);
}

/* -- whose instance it is ------------------------------------------------------------------------------- */

bool queue_is_of_instance(const char *provider_id, const char *instance) {
        const char *id = startswith(strempty(provider_id), "aws://") ? strrchr(provider_id, '/') : NULL;

        return id && streq(id + 1, instance);
}

QueueFound queue_find(const ClusterView *view, const char *instance) {
        const KubeNodeClaim *claim;
        const KubeNode *node;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(view, &it, &node);)
                if (queue_is_of_instance(node->provider_id, instance))
                        return (QueueFound){ node, cluster_view_claim_of_node(view, node) };
        for (HashmapIterator it = {}; cluster_view_iterate_claims(view, &it, &claim);)
                if (queue_is_of_instance(claim->provider_id, instance))
                        return (QueueFound){ NULL, claim };
        return (QueueFound){};
}

/* -- what is known of it -------------------------------------------------------------------------------- */

/* What stands on the claim, or was written and is not in view yet. */
static void read_told(const QueueMemory *memory, const KubeNodeClaim *claim, QueueFacts *f) {
        const WrittenClaim *x = queue_memory_written(memory, claim->object.meta.uid);

        queue_told_of_claim(claim, f);
        if (x && !x->in_flight) {
                f->told_usec = f->is_told ? MIN(f->told_usec, x->end_usec) : x->end_usec;
                f->is_told = true;
                f->is_told_now = f->is_told_now || x->is_now;
        }
        f->is_told_now = f->is_told_now || claim->object.meta.deletion_usec > 0;
}

static bool is_drained(const KubeNodeClaim *claim) {
        const Condition *c = condition_find(claim->conditions, claim->n_conditions, CLAIM_DRAINED);

        return c && c->status == CONDITION_TRUE;
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

int queue_facts_gather(const QueueWorkerOptions *o, QueueMemory *memory, const char *instance, const Notice *notice,
                       const QueueFound *found, QueueFacts *ret) {
        *ret = (QueueFacts){ .is_managed = found->claim,
                             .has_node = found->node,
                             .is_ready = found->node && kube_node_is_ready(found->node),
                             .is_drained = found->claim && is_drained(found->claim),
                             .told_usec = USEC_INFINITY };
        if (found->claim)
                read_told(memory, found->claim, ret);
        else if (found->node && drains_unmanaged(o)) {
                ret->is_drainable = is_drainable(o, found->node);
                queue_told_of_node(found->node, notice, loop_wall(o->env->loop), ret);
        }
        if (found->claim || (found->node && !is_between(o, found->node)))
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
                             .wall_usec = loop_wall(o->env->loop) };
}
