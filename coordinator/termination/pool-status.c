/* SPDX-License-Identifier: Apache-2.0 */
#include "pool-status.h"

#include <inttypes.h>

#include "adoption.h"
#include "claim-status.h"
#include "hashmap.h"
#include "late-status.h"
#include "marks.h"
#include "pauses.h"
#include "string-util.h"
#include "termination-marks.h"

/* A drain that a PodDisruptionBudget holds up for less is an ordinary one: vesper(7). */
#define HELD_USEC (30 * USEC_PER_SEC)

/* What a NodePool may set and nothing acts on yet: whoever makes it work takes its row out. vesperctl plan reads what stands
 * in spec.disruption, spec.template and spec.offerings. */
/* Then spec.limits, spec.provider.group and spec.template.startupTaints are acted on, for the machines that are asked for. */
static bool asks_for_machines(const KubeNodePool *pool) {
        return pool->disruption.on_interruption == ON_INTERRUPTION_REPLACE;
}

static bool sets_empty_after(const KubeNodePool *pool) {
        return pool->disruption.empty_after_usec != USEC_INFINITY;
}

static bool sets_expire_after(const KubeNodePool *pool) {
        return pool->disruption.expire_after_usec != USEC_INFINITY;
}

static bool sets_expire_hard_after(const KubeNodePool *pool) {
        return pool->disruption.expire_hard_after_usec != USEC_INFINITY;
}

static bool sets_drift(const KubeNodePool *pool) {
        return pool->disruption.drift;
}

static bool sets_consolidation(const KubeNodePool *pool) {
        const PoolDisruption *d = &pool->disruption;

        return d->consolidation != CONSOLIDATION_NEVER || d->consolidate_after_usec > 0 || d->minimum_savings_permille > 0 ||
               d->ignores_preferences;
}

static bool sets_naked_pods(const KubeNodePool *pool) {
        return pool->disruption.naked_pods_block;
}

static bool sets_max_concurrent(const KubeNodePool *pool) {
        return pool->disruption.max_concurrent > 0;
}

static bool sets_budgets(const KubeNodePool *pool) {
        return !pool->disruption.has_default_budget;
}

static bool sets_windows(const KubeNodePool *pool) {
        return pool->disruption.n_windows > 0;
}

static bool sets_offerings(const KubeNodePool *pool) {
        return pool->n_offerings > 0;
}

static bool sets_limits(const KubeNodePool *pool) {
        return pool->limits.n_items > 0 && !asks_for_machines(pool);
}

static bool sets_weight(const KubeNodePool *pool) {
        return pool->weight != 0;
}

static bool sets_template(const KubeNodePool *pool) {
        const PoolTemplate *t = &pool->template;

        return t->labels.n_items > 0 || t->annotations.n_items > 0 || t->n_taints > 0 ||
               (t->n_startup_taints > 0 && !asks_for_machines(pool)) ||
               t->n_requirements > 0 || t->kubelet_version || t->os_image;
}

static bool sets_group(const KubeNodePool *pool) {
        return pool->provider_group && !asks_for_machines(pool);
}

static const struct {
        const char *field, *instead;
        bool (*is_set)(const KubeNodePool *pool);
} idle_fields[] = {
        { "spec.disruption.emptyAfter", "no node is removed for being empty", sets_empty_after },
        { "spec.disruption.expireAfter", "no node is removed for its age", sets_expire_after },
        { "spec.disruption.expireHardAfter", "no node is removed for its age", sets_expire_hard_after },
        { "spec.disruption.drift", "no node is removed for having drifted", sets_drift },
        { "spec.disruption.consolidation", "no node is removed because its pods fit elsewhere", sets_consolidation },
        { "spec.disruption.nakedPods", "no node is removed that nobody has asked to be removed", sets_naked_pods },
        { "spec.disruption.maxConcurrent", "no node is removed that nobody has asked to be removed", sets_max_concurrent },
        { "spec.disruption.budgets", "no node is removed that nobody has asked to be removed", sets_budgets },
        { "spec.disruption.windows", "no node is removed that nobody has asked to be removed", sets_windows },
        { "spec.offerings", "no machine is asked for", sets_offerings },
        { "spec.limits", "no machine is asked for", sets_limits },
        { "spec.weight", "no machine is asked for", sets_weight },
        { "spec.template but its terminationGracePeriod", "nodes are neither made nor changed after it", sets_template },
        { "spec.provider.group", "machines are ended one by one, and not through a group", sets_group },
};

/* A condition that holds; message NULL: it does not. */
typedef struct PoolProblem {
        const char *reason; /* while it does not hold: why not; NULL: "Resolved" */
        char *message;
} PoolProblem;

typedef enum PoolProblemKind {
        PROBLEM_CONFLICT,
        PROBLEM_INVALID,
        PROBLEM_NOT_ADOPTED,
        PROBLEM_IDENTITY,
        PROBLEM_NOT_ACTED_ON,
        PROBLEM_PAUSED,
        PROBLEM_INTERRUPTIONS_HELD,
        PROBLEM_REPAIR_HELD, /* told by repair/, and not found here */
        _PROBLEM_MAX,
} PoolProblemKind;

static const char *const problem_types[_PROBLEM_MAX] = {
        [PROBLEM_CONFLICT] = POOL_CONFLICT,
        [PROBLEM_INVALID] = POOL_INVALID,
        [PROBLEM_NOT_ADOPTED] = POOL_NOT_ADOPTED,
        [PROBLEM_IDENTITY] = POOL_IDENTITY,
        [PROBLEM_NOT_ACTED_ON] = POOL_NOT_ACTED_ON,
        [PROBLEM_PAUSED] = POOL_PAUSED,
        [PROBLEM_INTERRUPTIONS_HELD] = POOL_INTERRUPTIONS_HELD,
        [PROBLEM_REPAIR_HELD] = POOL_REPAIR_HELD,
};

typedef struct PoolFigures {
        int64_t nodes, removing, blocked, adopting;
        const KubeNodeClaim *held; /* the first by name whose removal waits for something; borrowed */
        usec_t next_usec; /* wall clock: when one more counts as held, unless it goes on before; USEC_INFINITY: none */
        size_t unproved;
        size_t n_held_notices; /* NodeClaims, not being deleted, with a notice that the brake of the queue holds */
        const KubeNodeClaim *held_notice; /* the first of them by name; borrowed */
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
static void find_unadopted(const ClusterView *v, const CloudRegistry *cloud, const KubeNodePool *pool,
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
                reason = adoption_refusal(v, cloud, pool, n, wall_now_usec, &message);
                if (!message)
                        f->adopting++;
                else if (!refused->message)
                        *refused = (PoolProblem){ reason, TAKE_PTR(message) };
                else
                        more++;
        }
        if (more > 0) {
                char *all = strf("%s; and %zu more node%s", refused->message, more, more == 1 ? "" : "s");

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
                            ? strf("%s; and %zu more node%s", p->message, f->unproved - 1, f->unproved == 2 ? "" : "s")
                            : NULL;

        if (all) {
                free(p->message);
                p->message = all;
        }
}

/* What its removal has waited for the longest, of what does not pass by itself. */
static const ClaimBlocker *holder_of(const KubeNodeClaim *c) {
        const ClaimBlocker *first = NULL;

        for (size_t i = 0; i < c->n_blockers; i++)
                if (!pod_wait_passes(pod_wait_from_string(c->blockers[i].reason)) &&
                    (!first || c->blockers[i].since_usec < first->since_usec))
                        first = c->blockers + i;
        return first;
}

/* Of what is being removed. What its cloud does not end is held at once. */
static bool is_held(PoolFigures *f, const KubeNodeClaim *c, usec_t wall_now_usec) {
        const ClaimBlocker *b = holder_of(c);
        usec_t at;

        if (!b || c->last_cloud_error)
                return c->last_cloud_error;
        at = usec_add(b->since_usec, HELD_USEC);
        if (at > wall_now_usec)
                f->next_usec = MIN(f->next_usec, at);
        return at <= wall_now_usec;
}

static void note_held_notices(PoolFigures *f, const KubeNodeClaim *c) {
        if (c->object.meta.deletion_usec > 0 || !announced_list_first(&c->announced, ANNOUNCED_HELD))
                return;
        f->n_held_notices++;
        if (!f->held_notice || strcmp(c->object.meta.name, f->held_notice->object.meta.name) < 0)
                f->held_notice = c;
}

static char *held_notices_text(const PoolFigures *f) {
        const char *node = f->held_notice ? strempty(f->held_notice->node_name) : NULL;

        if (!node)
                return NULL;
        return strf("The brake of the queue holds what the interruption queue alone announced for %zu node%s, first %s: pods are evicted under their "
                    "PodDisruptionBudgets (for a scheduled change, when it comes near), and no machine is ended until AWS, the node's agent or a person "
                    "confirms the notice. 'vesperctl let-go %s' shows what follows if you confirm it",
                    f->n_held_notices, f->n_held_notices == 1 ? "" : "s", node, node);
}

static void count_claim(PoolFigures *f, const KubeNodeClaim *c, usec_t wall_now_usec) {
        f->nodes += !kube_node_claim_is_new(c) || c->node_name; /* of a machine that is no node yet, none */
        note_identity(f, c);
        note_held_notices(f, c);
        if (c->object.meta.deletion_usec == 0)
                return;
        f->removing++;
        if (!is_held(f, c, wall_now_usec))
                return;
        f->blocked++;
        if (!f->held || strcmp(c->object.meta.name, f->held->object.meta.name) < 0)
                f->held = c;
}

/* No provider that may serve the pool can launch. */
static bool launches_nothing(const CloudRegistry *cloud, const KubeNodePool *pool) {
        if (pool->provider_name) {
                const CloudProvider *p = cloud_registry_named(cloud, pool->provider_name);

                return !p || !cloud_provider_has(p, CLOUD_LAUNCH);
        }
        for (size_t i = 0; i < cloud->n_providers; i++)
                if (cloud_provider_has(cloud->providers[i], CLOUD_LAUNCH))
                        return false;
        return true;
}

static char *idle_fields_of(const CloudRegistry *cloud, const KubeNodePool *pool) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < ELEMENTSOF(idle_fields); i++)
                if (idle_fields[i].is_set(pool))
                        strbuf_addf(&b, "%s%s (%s)",
                                    b.size > 0 ? ", " : "Set, and not acted on by this release: ",
                                    idle_fields[i].field, idle_fields[i].instead);
        if (pool->disruption.on_interruption == ON_INTERRUPTION_REPLACE && launches_nothing(cloud, pool))
                strbuf_addf(&b, "%sspec.disruption.onInterruption (its provider cannot launch machines)",
                            b.size > 0 ? ", " : "Set, and not acted on by this release: ");
        return b.size > 0 ? strbuf_steal(&b) : NULL;
}

static PoolFigures pool_figures(const TerminationContext *context, const KubeNodePool *pool) {
        usec_t wall_now_usec = loop_wall(context->env->loop);
        const ClusterView *v = context->view;
        PoolProblem *paused;
        const char *invalid = why_invalid(pool);
        const KubeNodeClaim *c;
        PoolFigures f = { .next_usec = USEC_INFINITY };

        for (HashmapIterator it = {}; cluster_view_iterate_claims(v, &it, &c);) {
                if (!streq_ptr(c->node_pool, pool->object.meta.name))
                        continue;
                count_claim(&f, c, wall_now_usec);
        }
        count_unproved(&f);
        f.problems[PROBLEM_INTERRUPTIONS_HELD] = (PoolProblem){ "QueueAlone", held_notices_text(&f) };
        if (!f.problems[PROBLEM_INTERRUPTIONS_HELD].message)
                f.problems[PROBLEM_INTERRUPTIONS_HELD].reason = NULL;
        if (invalid)
                f.problems[PROBLEM_INVALID] =
                        (PoolProblem){ "NotUnderstood",
                                       strf("%s. Its nodes are left as they are, and no others are adopted",
                                            invalid) };
        else if (pool->object.meta.deletion_usec == 0)
                find_unadopted(v, context->cloud, pool, wall_now_usec, &f);
        f.problems[PROBLEM_NOT_ACTED_ON] = (PoolProblem){ .message = idle_fields_of(context->cloud, pool) };
        if (f.problems[PROBLEM_NOT_ACTED_ON].message)
                f.problems[PROBLEM_NOT_ACTED_ON].reason = "NotImplemented";
        paused = f.problems + PROBLEM_PAUSED;
        (void) pauses_condition(context->pauses, pool, &paused->reason, &paused->message);
        return f;
}

/* -- one pool ------------------------------------------------------------------------------------------- */

typedef struct PoolStatus {
        const TerminationContext *context;
        char *name, *uid;
        LateStatus *late;
        int64_t nodes, removing, blocked, generation; /* as told or about to be; -1: not yet */
} PoolStatus;

struct PoolStatuses {
        const TerminationContext *context;
        WorkQueue *queue;
        Hashmap *map; /* PoolStatus by name */
};

static PoolStatus *pool_status_free(PoolStatus *s) {
        if (!s)
                return NULL;
        late_status_free(s->late);
        free(s->name);
        free(s->uid);
        return mfree(s);
}
DEFINE_FREEP(PoolStatus, pool_status_free);

static void *pool_status_free_value(void *value) {
        return pool_status_free(value);
}

static const KubeObject *on_object_now(void *userdata) {
        const PoolStatus *s = userdata;
        const KubeNodePool *pool = cluster_view_pool(s->context->view, s->name);

        return pool && streq(pool->object.meta.uid, s->uid) ? &pool->object : NULL;
}

static void on_add_fields(JsonWriter *w, void *userdata) {
        const PoolStatus *s = userdata;

        json_add_int64(w, "nodes", s->nodes);
        json_add_int64(w, "removing", s->removing);
        json_add_int64(w, "blocked", s->blocked);
        json_add_int64(w, "observedGeneration", s->generation);
}

static int pool_status_new(PoolStatuses *p, const KubeNodePool *pool, PoolStatus **ret) {
        _cleanup_(pool_status_freep) PoolStatus *s = new0(PoolStatus, 1);
        LateStatusOptions o = { .client = p->context->client,
                                .guard = p->context->guard,
                                .kind = &kube_node_pool_kind,
                                .name = pool->object.meta.name,
                                .object_now = on_object_now,
                                .add_fields = on_add_fields,
                                .userdata = s };
        int r;

        if (!s)
                return -ENOMEM;
        s->context = p->context;
        s->nodes = s->removing = s->blocked = s->generation = -1;
        if (free_and_strdup(&s->name, pool->object.meta.name) < 0 ||
            free_and_strdup(&s->uid, pool->object.meta.uid) < 0)
                return -ENOMEM;
        r = late_status_new(&o, &s->late);
        if (r >= 0)
                r = hashmap_put(p->map, s->name, s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

static void pool_status_set_counts(PoolStatus *s, const PoolFigures *f, int64_t generation) {
        if (s->nodes == f->nodes && s->removing == f->removing && s->blocked == f->blocked &&
            s->generation == generation)
                return;
        s->nodes = f->nodes;
        s->removing = f->removing;
        s->blocked = f->blocked;
        s->generation = generation;
        late_status_changed(s->late, true);
}

/* -- what tools wait for -------------------------------------------------------------------------------- */

/* What keeps the pool from doing what it says, whatever is under way. */
static const PoolProblemKind not_ready_kinds[] = { PROBLEM_INVALID, PROBLEM_CONFLICT, PROBLEM_NOT_ADOPTED,
                                                   PROBLEM_IDENTITY };

/* No figures in texts: they change with each node, and a text that changes is told at once, not at the pace of
 * counts. */
static char *held_text(const PoolFigures *f) {
        const ClaimBlocker *b = holder_of(f->held);
        const char *node = f->held->node_name ? f->held->node_name : f->held->object.meta.name;

        return strf("%s held, the others go on: node %s by %s%s%s%s",
                    f->blocked > 1 ? "Removals are" : "A removal is", node, b && b->pod ? "pod " : "",
                    b && b->pod ? b->pod : "", b && b->pod ? ", " : "", b ? strempty(b->reason) : "its cloud");
}

/* Static. */
static const char *progress_text(const PoolFigures *f, const char **ret_reason) {
        *ret_reason = f->removing > 0 ? "Removing" : f->adopting > 0 ? "Adopting" : "Idle";
        return f->removing > 0   ? "Nodes are being removed, as many as status.removing says"
               : f->adopting > 0 ? "Nodes are about to be adopted"
                                 : "No node comes or goes";
}

static char *ready_text(const PoolFigures *f, const char **ret_reason) {
        for (size_t i = 0; i < ELEMENTSOF(not_ready_kinds); i++) {
                const PoolProblem *p = f->problems + not_ready_kinds[i];

                if (p->message) {
                        *ret_reason = problem_types[not_ready_kinds[i]];
                        return strdup(p->message);
                }
        }
        if (f->blocked > 0) {
                *ret_reason = "Blocked";
                return held_text(f);
        }
        return strdup(progress_text(f, ret_reason));
}

/* Whoever waits need not go on: as long as the pool is as it is, nothing changes. */
static void pool_status_set_stalled(PoolStatus *s, const PoolProblem *invalid) {
        Condition said;

        if (invalid->message)
                late_status_set_condition(s->late, POOL_STALLED, CONDITION_TRUE, POOL_INVALID, invalid->message);
        else if (late_status_condition(s->late, POOL_STALLED, &said))
                late_status_set_condition(s->late, POOL_STALLED, CONDITION_FALSE, "Resolved", "");
}

/* kubectl wait --for=condition=Ready, and whatever else goes by observedGeneration and these two conditions
 * (sigs.k8s.io/cli-utils: kstatus). */
static void pool_status_set_ready(PoolStatus *s, const PoolFigures *f) {
        const char *why_ready, *why_progress;
        _cleanup_free_ char *ready = ready_text(f, &why_ready);
        const char *progress = progress_text(f, &why_progress);

        if (!ready)
                return; /* short of memory: told the next time */
        late_status_set_condition(s->late, POOL_PROGRESSING,
                                  f->removing + f->adopting > 0 ? CONDITION_TRUE : CONDITION_FALSE, why_progress,
                                  progress);
        late_status_set_condition(s->late, POOL_READY, streq(why_ready, "Idle") ? CONDITION_TRUE : CONDITION_FALSE,
                                  why_ready, ready);
}

/* Which node stands for the others may change all the time: that is no news. */
static bool is_news(PoolProblemKind kind, const PoolProblem *p, const Condition *said) {
        return !said || said->status != CONDITION_TRUE || !streq_ptr(said->reason, p->reason) ||
               (kind != PROBLEM_CONFLICT && kind != PROBLEM_NOT_ADOPTED && kind != PROBLEM_IDENTITY && kind != PROBLEM_REPAIR_HELD &&
                !streq_ptr(said->message, p->message));
}

/* What does not hold and was never said is left out. */
static void pool_status_set_problem(PoolStatus *s, const KubeNodePool *pool, PoolProblemKind kind,
                                    const PoolProblem *p) {
        EventObject o = event_object(&pool->object);
        Condition said;
        bool is_said = late_status_condition(s->late, problem_types[kind], &said);

        if (p->message && is_news(kind, p, is_said ? &said : NULL))
                event_record(s->context->recorder, &o, EVENT_WARNING, problem_types[kind], "%s", p->message);
        if (p->message)
                late_status_set_condition(s->late, problem_types[kind], CONDITION_TRUE, p->reason, p->message);
        else if (is_said || p->reason)
                late_status_set_condition(s->late, problem_types[kind], CONDITION_FALSE, p->reason ? p->reason : "Resolved", "");
}

/* -- all pools ------------------------------------------------------------------------------------------ */

int pool_statuses_new(const TerminationContext *context, WorkQueue *queue, PoolStatuses **ret) {
        _cleanup_(pool_statuses_freep) PoolStatuses *p = NULL;
        int r;

        assert(context && queue && ret);
        p = new0(PoolStatuses, 1);
        if (!p)
                return -ENOMEM;
        p->context = context;
        p->queue = queue;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &p->map);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

PoolStatuses *pool_statuses_free(PoolStatuses *p) {
        if (!p)
                return NULL;
        hashmap_free_with(p->map, pool_status_free_value);
        return mfree(p);
}

void pool_statuses_forget(PoolStatuses *p, const char *pool) {
        pool_status_free(hashmap_remove(p->map, pool));
}

bool pool_statuses_set_repair_held(PoolStatuses *p, const char *pool, const char *reason, const char *message) {
        const KubeNodePool *object = cluster_view_pool(p->context->view, pool);
        PoolStatus *s = hashmap_get(p->map, pool);
        PoolProblem held = { .reason = reason };
        int r = 0;

        if (!object)
                return true;
        if (!s || !streq(s->uid, object->object.meta.uid))
                return false;
        if (reason)
                r = free_and_strdup(&held.message, message);
        if (r >= 0)
                pool_status_set_problem(s, object, PROBLEM_REPAIR_HELD, &held);
        free(held.message);
        return r >= 0;
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

void pool_statuses_reconcile(PoolStatuses *p, const char *key, const KubeNodePool *pool) {
        const TerminationContext *c = p->context;
        PoolStatus *s = hashmap_get(p->map, pool->object.meta.name);
        PoolFigures f;

        if (pool->object.meta.deletion_usec == 0)
                put_finalizer(p->queue, c->writes, pool, key);
        if (s && !streq(s->uid, pool->object.meta.uid)) {
                pool_statuses_forget(p, pool->object.meta.name);
                s = NULL;
        }
        if (!s && pool_status_new(p, pool, &s) < 0) {
                (void) work_queue_retry(p->queue, key);
                return;
        }
        late_status_see(s->late);
        f = pool_figures(c, pool);
        pool_status_set_counts(s, &f, pool->object.meta.generation);
        for (PoolProblemKind i = 0; i < _PROBLEM_MAX; i++)
                if (i != PROBLEM_REPAIR_HELD)
                        pool_status_set_problem(s, pool, i, f.problems + i);
        pool_status_set_ready(s, &f);
        pool_status_set_stalled(s, f.problems + PROBLEM_INVALID);
        if (f.next_usec != USEC_INFINITY)
                (void) work_queue_add_at(p->queue, key, loop_from_wall(c->env->loop, f.next_usec));
        pool_figures_done(&f);
}

void pool_statuses_next_wakeup(const PoolStatuses *p, Wakeups *w) {
        const PoolStatus *s;

        HASHMAP_FOREACH (s, p->map)
                late_status_next_wakeup(s->late, w);
}
