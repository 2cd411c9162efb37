/* SPDX-License-Identifier: Apache-2.0 */
#include "pool-status.h"

#include "log.h"
#include "marks.h"
#include "string-util.h"
#include "termination-marks.h"

typedef struct PoolFigures {
        int64_t nodes, terminating;
        const char *conflict_node, *conflict_pool; /* an example; NULL: none */
        const char *invalid;                       /* NULL: it can be understood */
} PoolFigures;

static const char *why_invalid(const KubeNodePool *pool) {
        if (pool->object.invalid)
                return pool->object.invalid;
        return selector_is_empty(pool->selector)
                       ? "spec.selector is empty: it would select every node of the cluster"
                       : NULL;
}

static void find_conflict(const ClusterView *v, const KubeNodePool *pool, PoolFigures *f) {
        const KubeNode *n;

        if (f->invalid || pool->object.meta.deletion_usec > 0)
                return;
        for (HashmapIterator it = {}; cluster_view_iterate_nodes(v, &it, &n);) {
                const KubeNodePool *first, *other;

                if (!selector_matches(pool->selector, &n->object.meta.labels) ||
                    cluster_view_pool_of_node(v, n, &first, &other) != POOL_MATCH_SEVERAL)
                        continue;
                f->conflict_node = n->object.meta.name;
                f->conflict_pool = (first == pool ? other : first)->object.meta.name;
                return;
        }
}

static PoolFigures pool_figures(const ClusterView *v, const KubeNodePool *pool) {
        PoolFigures f = { .invalid = why_invalid(pool) };
        const KubeNodeClaim *c;

        for (HashmapIterator it = {}; cluster_view_iterate_claims(v, &it, &c);) {
                if (!streq_ptr(c->node_pool, pool->object.meta.name))
                        continue;
                f.nodes++;
                f.terminating += c->object.meta.deletion_usec > 0;
        }
        find_conflict(v, pool, &f);
        return f;
}

/* False and never said before: left out. */
static void add_condition(JsonWriter *w, const KubeNodePool *pool, const char *type, bool holds,
                          const char *reason, const char *message, usec_t now_usec) {
        const Condition *old = kube_node_pool_condition(pool, type);
        ConditionStatus status = holds ? CONDITION_TRUE : CONDITION_FALSE;
        Condition c = { .type = type,
                        .status = status,
                        .reason = holds ? reason : "Resolved",
                        .message = holds ? message : "",
                        .last_transition_usec = condition_since(old, status, now_usec) };

        if (holds || old)
                condition_write(w, &c, 0, pool->object.meta.generation);
}

static void add_conditions(JsonWriter *w, const KubeNodePool *pool, const PoolFigures *f, usec_t now_usec) {
        _cleanup_free_ char *conflict = NULL;

        if (f->conflict_node)
                conflict = strf("Node %s is selected by NodePool %s too: neither adopts it",
                                f->conflict_node, f->conflict_pool);
        json_open_array(w, "conditions");
        add_condition(w, pool, POOL_CONFLICT, f->conflict_node, "NodeSelectedTwice", strempty(conflict),
                      now_usec);
        add_condition(w, pool, POOL_INVALID, f->invalid, "NotUnderstood", f->invalid, now_usec);
        json_close_array(w);
}

char *pool_status_body(const ClusterView *view, const KubeNodePool *pool, usec_t wall_now_usec) {
        PoolFigures f = pool_figures(view, pool);
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "status");
        json_add_int64(w, "nodes", f.nodes);
        json_add_int64(w, "terminating", f.terminating);
        json_add_int64(w, "observedGeneration", pool->object.meta.generation);
        add_conditions(w, pool, &f, wall_now_usec);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static void put_finalizer(WorkQueue *queue, ObjectWrites *writes, const KubeNodePool *pool,
                          const char *key) {
        ObjectWrite w = { .what = "adopt",
                          .target = { .kind = &kube_node_pool_kind, .name = pool->object.meta.name },
                          .state = pool->object.meta.resource_version,
                          .reconcile_key = key };
        _cleanup_free_ char *body = NULL;
        int r;

        r = termination_add_finalizer_patch(&pool->object, &body);
        if (r < 0)
                (void) work_queue_retry(queue, key);
        else if (r > 0)
                (void) object_writes_patch(writes, &w, KUBE_PATCH_MERGE, body);
}

void pool_status_reconcile(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                           const char *key, const KubeNodePool *pool) {
        ObjectWrite w = { .what = "pool",
                          .target = { .kind = &kube_node_pool_kind,
                                      .name = pool->object.meta.name,
                                      .subresource = "status" },
                          .rank = KUBE_RANK_TELLS };
        _cleanup_free_ char *body = pool_status_body(context->view, pool, loop_wall(context->env->loop));
        const char *invalid = why_invalid(pool);

        if (!body) {
                (void) work_queue_retry(queue, key);
                return;
        }
        if (pool->object.meta.deletion_usec == 0)
                put_finalizer(queue, writes, pool, key);
        if (invalid) {
                EventObject o = event_object(&pool->object);

                event_record(context->recorder, &o, EVENT_WARNING, POOL_INVALID,
                             "%s. Its nodes are left as they are, and no others are adopted", invalid);
        }
        /* Decided on nothing but what it says: the same again needs no write. We alone write it. */
        w.state = body;
        w.reconcile_key = key;
        (void) object_writes_patch(writes, &w, KUBE_PATCH_MERGE, body);
}
