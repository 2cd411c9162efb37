/* SPDX-License-Identifier: Apache-2.0 */
#include "pool-status.h"

#include "adoption.h"
#include "log.h"
#include "marks.h"
#include "string-util.h"
#include "termination-marks.h"

/* What a NodePool may set and nothing acts on yet: whoever makes it work takes its row out. */
static bool sets_expire_after(const KubeNodePool *pool) {
        return pool->expire_after_usec != USEC_INFINITY;
}

static bool sets_group(const KubeNodePool *pool) {
        return pool->provider_group;
}

static const struct {
        const char *field, *instead;
        bool (*is_set)(const KubeNodePool *pool);
} idle_fields[] = {
        { "spec.disruption.expireAfter", "no node is removed for its age", sets_expire_after },
        { "spec.provider.group", "machines are ended one by one, and not through a group", sets_group },
};

/* A condition that holds; message NULL: it does not. */
typedef struct PoolProblem {
        const char *reason;
        char *message;
} PoolProblem;

typedef enum PoolProblemKind {
        PROBLEM_CONFLICT,
        PROBLEM_INVALID,
        PROBLEM_NOT_ADOPTED,
        PROBLEM_IDENTITY,
        PROBLEM_NOT_ACTED_ON,
        _PROBLEM_MAX,
} PoolProblemKind;

static const char *const problem_types[_PROBLEM_MAX] = {
        [PROBLEM_CONFLICT] = POOL_CONFLICT,
        [PROBLEM_INVALID] = POOL_INVALID,
        [PROBLEM_NOT_ADOPTED] = POOL_NOT_ADOPTED,
        [PROBLEM_IDENTITY] = POOL_IDENTITY,
        [PROBLEM_NOT_ACTED_ON] = POOL_NOT_ACTED_ON,
};

typedef struct PoolFigures {
        int64_t nodes, terminating;
        size_t unproved;
        PoolProblem problems[_PROBLEM_MAX];
} PoolFigures;

static void pool_figures_done(PoolFigures *f) {
        for (size_t i = 0; i < _PROBLEM_MAX; i++)
                f->problems[i].message = mfree(f->problems[i].message);
}

static const char *why_invalid(const KubeNodePool *pool) {
        if (pool->object.invalid)
                return pool->object.invalid;
        return selector_is_empty(pool->selector)
                       ? "spec.selector is empty: it would select every node of the cluster"
                       : NULL;
}

/* The first of the nodes that it selects and that are not adopted stands for all of them. */
static void find_unadopted(const ClusterView *v, const CloudProvider *provider, const KubeNodePool *pool,
                           usec_t wall_now_usec, PoolFigures *f) {
        PoolProblem *conflict = f->problems + PROBLEM_CONFLICT, *refused = f->problems + PROBLEM_NOT_ADOPTED;
        size_t more = 0;
        const KubeNode *n;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(v, &it, &n);) {
                const KubeNodePool *first, *other;
                _cleanup_free_ char *message = NULL;
                const char *reason;
                PoolMatch match;

                if (!selector_matches(pool->selector, &n->object.meta.labels))
                        continue;
                match = cluster_view_pool_of_node(v, n, &first, &other);
                if (match == POOL_MATCH_SEVERAL && !conflict->message)
                        *conflict = (PoolProblem){
                                "NodeSelectedTwice",
                                strf("Node %s is selected by NodePool %s too: neither adopts it",
                                     n->object.meta.name, (first == pool ? other : first)->object.meta.name)
                        };
                if (match != POOL_MATCH_ONE || n->object.meta.deletion_usec > 0 ||
                    cluster_view_claim_of_node(v, n))
                        continue;
                reason = adoption_refusal(v, provider, pool, n, wall_now_usec, &message);
                if (message && !refused->message)
                        *refused = (PoolProblem){ reason, TAKE_PTR(message) };
                else if (message)
                        more++;
        }
        if (more > 0) {
                char *all = strf("%s; and %zu more nodes", refused->message, more);

                if (all) {
                        free(refused->message);
                        refused->message = all;
                }
        }
}

/* The first of its claims whose machine is not ended, because nothing proves whose it is, stands for all. */
static void note_identity(PoolFigures *f, const KubeNodeClaim *c) {
        const Condition *k = kube_node_claim_condition(c, CLAIM_IDENTITY_PROVED);

        if (!k || k->status != CONDITION_FALSE)
                return;
        f->unproved++;
        if (!f->problems[PROBLEM_IDENTITY].message)
                f->problems[PROBLEM_IDENTITY] =
                        (PoolProblem){ "NotProved", strf("Node %s: %s", strempty(c->node_name), strempty(k->message)) };
}

static void count_unproved(PoolFigures *f) {
        PoolProblem *p = f->problems + PROBLEM_IDENTITY;
        char *all = f->unproved > 1 && p->message
                            ? strf("%s; and %zu more nodes", p->message, f->unproved - 1)
                            : NULL;

        if (all) {
                free(p->message);
                p->message = all;
        }
}

static char *idle_fields_of(const KubeNodePool *pool) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < ELEMENTSOF(idle_fields); i++)
                if (idle_fields[i].is_set(pool))
                        strbuf_addf(&b, "%s%s (%s)",
                                    b.size > 0 ? ", " : "Set, and not acted on by this release: ",
                                    idle_fields[i].field, idle_fields[i].instead);
        return b.size > 0 ? strbuf_steal(&b) : NULL;
}

static PoolFigures pool_figures(const ClusterView *v, const CloudProvider *provider,
                                const KubeNodePool *pool, usec_t wall_now_usec) {
        const char *invalid = why_invalid(pool);
        const KubeNodeClaim *c;
        PoolFigures f = {};

        for (HashmapIterator it = {}; cluster_view_iterate_claims(v, &it, &c);) {
                if (!streq_ptr(c->node_pool, pool->object.meta.name))
                        continue;
                f.nodes++;
                f.terminating += c->object.meta.deletion_usec > 0;
                note_identity(&f, c);
        }
        count_unproved(&f);
        if (invalid)
                f.problems[PROBLEM_INVALID] =
                        (PoolProblem){ "NotUnderstood",
                                       strf("%s. Its nodes are left as they are, and no others are adopted",
                                            invalid) };
        else if (pool->object.meta.deletion_usec == 0)
                find_unadopted(v, provider, pool, wall_now_usec, &f);
        f.problems[PROBLEM_NOT_ACTED_ON] = (PoolProblem){ "NotImplemented", idle_fields_of(pool) };
        return f;
}

static const Condition *said_of(const KubeNodePool *pool, PoolProblemKind kind) {
        return kube_node_pool_condition(pool, problem_types[kind]);
}

/* What does not hold and was never said is left out. */
static char *body_of(const KubeNodePool *pool, const PoolFigures *f, usec_t wall_now_usec) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "status");
        json_add_int64(w, "nodes", f->nodes);
        json_add_int64(w, "terminating", f->terminating);
        json_add_int64(w, "observedGeneration", pool->object.meta.generation);
        json_open_array(w, "conditions");
        for (PoolProblemKind i = 0; i < _PROBLEM_MAX; i++) {
                const PoolProblem *p = f->problems + i;
                const Condition *old = said_of(pool, i);
                Condition c = { .type = problem_types[i],
                                .status = p->message ? CONDITION_TRUE : CONDITION_FALSE,
                                .reason = p->message ? p->reason : "Resolved",
                                .message = strempty(p->message) };

                c.last_transition_usec = condition_since(old, c.status, wall_now_usec);
                if (p->message || old)
                        condition_write(w, &c, 0, pool->object.meta.generation);
        }
        json_close_array(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *pool_status_body(const ClusterView *view, const CloudProvider *provider, const KubeNodePool *pool,
                       usec_t wall_now_usec) {
        PoolFigures f = pool_figures(view, provider, pool, wall_now_usec);
        char *body = body_of(pool, &f, wall_now_usec);

        pool_figures_done(&f);
        return body;
}

static void put_finalizer(WorkQueue *queue, ObjectWrites *writes, const KubeNodePool *pool,
                          const char *key) {
        ObjectWrite w = { .what = "put the finalizer on",
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

/* Which node stands for the others may change all the time: that is no news. */
static bool is_said(const KubeNodePool *pool, PoolProblemKind kind, const PoolProblem *p) {
        const Condition *old = said_of(pool, kind);

        return old && old->status == CONDITION_TRUE && streq_ptr(old->reason, p->reason) &&
               (kind == PROBLEM_CONFLICT || kind == PROBLEM_NOT_ADOPTED || kind == PROBLEM_IDENTITY ||
                streq_ptr(old->message, p->message));
}

static void tell_problems(const TerminationContext *context, const KubeNodePool *pool,
                          const PoolFigures *f) {
        EventObject o = event_object(&pool->object);

        for (PoolProblemKind i = 0; i < _PROBLEM_MAX; i++)
                if (f->problems[i].message && !is_said(pool, i, f->problems + i))
                        event_record(context->recorder, &o, EVENT_WARNING, problem_types[i], "%s",
                                     f->problems[i].message);
}

void pool_status_reconcile(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                           const char *key, const KubeNodePool *pool) {
        ObjectWrite w = { .what = "write the status of",
                          .target = { .kind = &kube_node_pool_kind,
                                      .name = pool->object.meta.name,
                                      .subresource = "status" },
                          .rank = KUBE_RANK_TELLS };
        usec_t now = loop_wall(context->env->loop);
        PoolFigures f = pool_figures(context->view, context->provider, pool, now);
        _cleanup_free_ char *body = body_of(pool, &f, now);

        if (pool->object.meta.deletion_usec == 0)
                put_finalizer(queue, writes, pool, key);
        /* Decided on nothing but what it says: the same again needs no write. We alone write it. */
        w.state = body;
        w.state_is_body = true;
        w.reconcile_key = key;
        if (!body)
                (void) work_queue_retry(queue, key);
        else if (object_writes_patch(writes, &w, KUBE_PATCH_MERGE, body) > 0)
                tell_problems(context, pool, &f);
        pool_figures_done(&f);
}
