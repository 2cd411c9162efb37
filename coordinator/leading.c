/* SPDX-License-Identifier: Apache-2.0 */
#include "leading.h"

#include "adoption.h"
#include "claim-status.h"
#include "cloud-reboots.h"
#include "coordinator-metrics.h"
#include "event-acks.h"
#include "hashmap.h"
#include "heard-drain.h"
#include "instance-orphans.h"
#include "launches.h"
#include "log.h"
#include "marks.h"
#include "object-writes.h"
#include "orphan.h"
#include "out-of-service.h"
#include "outlook.h"
#include "pauses.h"
#include "pool-status.h"
#include "queue-worker.h"
#include "reboot-grants.h"
#include "release.h"
#include "removals.h"
#include "repairs.h"
#include "string-util.h"
#include "voluntary-deletes.h"

/* What is told of very many nodes at once must not hold up their evictions: pods left in the claims' status,
 * an Event on each pod that was evicted or that a deadline will end, and one of its own on each node that is
 * drained. */
#define PROGRESS_BURST 20u
#define PROGRESS_PER_MINUTE 600u
#define EVICTION_EVENTS_BURST 100u
#define EVICTION_EVENTS_PER_MINUTE 60u
#define WARNINGS_BURST 100u
#define WARNINGS_PER_MINUTE 300u
#define DRAINED_EVENTS_BURST 20u
#define DRAINED_EVENTS_PER_MINUTE 60u
#define RETRY_BASE_USEC (200 * USEC_PER_MSEC)
#define RETRY_CAP_USEC (60 * USEC_PER_SEC)
#define POOL_STATUS_USEC USEC_PER_SEC /* a pool's figures follow its claims at most so often */

struct Leading {
        LeadingOptions o;
        Env *env;
        TerminationContext context;
        WorkQueue *queue;
        Evictor *evictor;
        EvictorStats told; /* what the metrics have of its answers */
        ObjectWrites *writes;
        VoluntaryDeletes *deletes;
        Pauses *pauses;
        Release *release;
        Adoption *adoption;
        HeardDrains *heard;
        Orphans *orphans;
        OutOfService *out_of_service;
        InstanceOrphans *instance_orphans;
        RebootGrants *reboots;
        CloudReboots *cloud_reboots;
        EventAcks *acks;
        Successors *successors;
        Launches *launches;
        Repairs *repairs;
        Outlook *outlook;
        QueueWorker *queue_worker; /* NULL: no interruption queue is heard */
        PoolStatuses *pool_statuses;
        Removals *removals;
        Hashmap *pools;    /* name -> what its nodes were last looked at for: generation and deletion */
};

static void on_key(const char *key, void *userdata);
static void on_moved(void *userdata);
static PodReturns *on_returns_of(const char *node, void *userdata);
static void on_requeue(const char *node, usec_t at_usec, void *userdata);

/* What is not noted now would never be looked at: the next process looks at everything. */
static void start_anew(Leading *l, int error) {
        log_error(l->env->log, "Exiting, to be restarted by the service manager");
        loop_exit(l->env->loop, error);
}

static void on_lost(void *userdata) {
        Leading *l = userdata;

        log_error(l->env->log, "Failed to queue an object to be reconciled: out of memory");
        start_anew(l, -ENOMEM);
}

static void mark(Leading *l, const char *room, const char *name, usec_t at_usec) {
        _cleanup_strbuf_ StrBuf key = { 0 };

        strbuf_make_room(&key, strlen(room) + 1 + strlen(name));
        strbuf_add(&key, room);
        strbuf_add_char(&key, '/');
        strbuf_add(&key, name);
        if (key.failed)
                work_queue_note_lost(l->queue);
        else if (at_usec == 0)
                (void) work_queue_add(l->queue, key.data);
        else
                (void) work_queue_add_at(l->queue, key.data, at_usec);
}

/* -- life ----------------------------------------------------------------------------------------------- */

static void set_allowed(Leading *l, const KubePdb *p) {
        int r;

        /* What it allows the API server knows, who reads it himself: its pods ask, one after the other. */
        if (p->object.invalid) {
                evictor_forget_pdb(l->evictor, p->object.meta.ns, p->object.meta.name);
                return;
        }
        r = evictor_set_allowed(l->evictor, p->object.meta.ns, p->object.meta.name, kube_pdb_allowed(p));
        if (r < 0) {
                log_error_errno(l->env->log, r, "Failed to note what PodDisruptionBudget %s/%s allows: %m",
                                p->object.meta.ns, p->object.meta.name);
                start_anew(l, r);
                return;
        }
        evictor_set_never(l->evictor, p->object.meta.ns, p->object.meta.name, kube_pdb_never_allows(p));
}

static void tell_of_invalid_pdb(Leading *l, const KubePdb *p) {
        EventObject o = event_object(&p->object);

        log_warning(l->env->log, "PodDisruptionBudget %s/%s is invalid: %s", p->object.meta.ns,
                    p->object.meta.name, p->object.invalid);
        event_record(
                l->o.recorder, &o, EVENT_WARNING, "Invalid",
                "%s. "
                "The evictions of its pods are left to the API server, which reads it itself: they are tried one after the other",
                p->object.invalid);
}

static void tell_of_invalid_budget(Leading *l, const KubeNodeBudget *b) {
        EventObject o = event_object(&b->object);

        log_warning(l->env->log, "NodeDisruptionBudget %s is invalid: %s", b->object.meta.name, b->object.invalid);
        event_record(l->o.recorder, &o, EVENT_WARNING, BUDGET_INVALID, "%s. %s", b->object.invalid,
                     b->selector ? "The budget refuses the disruption of each node that it selects"
                                 : "The budget selects no node, so it protects none");
}

static void mark_nodes(Leading *l) {
        const KubeNode *n;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(l->o.view, &it, &n);)
                mark(l, "node", n->object.meta.name, 0);
}

static void mark_all(Leading *l) {
        const KubeNodeClaim *claim;
        const KubeNodePool *pool;
        const KubeNodeBudget *budget;
        const KubePdb *pdb;

        for (HashmapIterator it = {}; cluster_view_iterate_pdbs(l->o.view, &it, &pdb);) {
                if (pdb->object.invalid)
                        tell_of_invalid_pdb(l, pdb);
                set_allowed(l, pdb);
        }
        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->o.view, &it, &budget);)
                if (budget->object.invalid)
                        tell_of_invalid_budget(l, budget);
        mark_nodes(l);
        for (HashmapIterator it = {}; cluster_view_iterate_claims(l->o.view, &it, &claim);)
                mark(l, "claim", claim->object.meta.name, 0);
        for (HashmapIterator it = {}; cluster_view_iterate_pools(l->o.view, &it, &pool);)
                mark(l, "pool", pool->object.meta.name, 0);
}

static void on_view_is_old(const KubeKind *kind, void *userdata) {
        Leading *l = userdata;

        cluster_view_distrust(l->o.view, kind);
}

static void on_look(const char *node, void *userdata) {
        mark(userdata, "node", node, 0);
}

static bool on_is_repaired(const char *node_uid, void *userdata) {
        const Leading *l = userdata;

        return repairs_has_deleted(l->repairs, node_uid);
}

static bool on_keeps_claim(const KubeNodeClaim *claim, void *userdata) {
        const Leading *l = userdata;

        return successors_keep(l->successors, claim);
}

static int hear_queue(Leading *l) {
        return queue_worker_new(&(QueueWorkerOptions){ .env = l->env,
                                                       .config = l->o.config,
                                                       .sqs = l->o.queue,
                                                       .client = l->o.client,
                                                       .view = l->o.view,
                                                       .cloud = l->o.cloud,
                                                       .recorder = l->o.recorder,
                                                       .notify = l->o.notify,
                                                       .metrics = l->o.metrics,
                                                       .guard = l->o.guard,
                                                       .look = on_look,
                                                       .view_is_old = on_view_is_old,
                                                       .userdata = l },
                                &l->queue_worker);
}

static int make_rooms(Leading *l) {
        EvictorOptions evictor = { .guard = l->o.guard,
                                   .window_start = l->o.config->evictions_at_once,
                                   .window_max = l->o.config->evictions_at_once,
                                   .per_second = l->o.config->evictions_per_second };
        int r;

        r = hashmap_new(0, &l->pools);
        if (r < 0)
                return r;
        r = work_queue_new(l->env->loop, l->env->random, "coordinator", RETRY_BASE_USEC, RETRY_CAP_USEC,
                           on_key, l, &l->queue);
        if (r < 0)
                return r;
        work_queue_set_lost(l->queue, on_lost);
        r = evictor_new(l->o.client, &evictor, &l->evictor);
        if (r < 0)
                return r;
        r = object_writes_new(l->o.client, l->queue, l->o.guard, &l->writes);
        if (r < 0)
                return r;
        object_writes_set_view_is_old(l->writes, on_view_is_old, l);
        l->context = (TerminationContext){
                .env = l->env,
                .config = l->o.config,
                .client = l->o.client,
                .view = l->o.view,
                .evictor = l->evictor,
                .writes = l->writes,
                .cloud = l->o.cloud,
                .ledger = l->o.ledger,
                .recorder = l->o.recorder,
                .notify = l->o.notify,
                .metrics = l->o.metrics,
                .guard = l->o.guard,
                .requeue = on_requeue,
                .moved = on_moved,
                .returns_of = on_returns_of,
                .is_repaired = on_is_repaired,
                .keeps_claim = on_keeps_claim,
                .userdata = l,
                .rate = &l->o.pace->terminations,
                .progress = &l->o.pace->progress,
                .eviction_events = &l->o.pace->eviction_events,
                .warnings = &l->o.pace->warnings,
                .drained_events = &l->o.pace->drained_events,
        };
        r = removals_new(&l->context, &l->removals);
        if (r < 0)
                return r;
        r = voluntary_deletes_new(&l->context, l->queue, &l->deletes);
        if (r < 0)
                return r;
        l->context.deletes = l->deletes;
        r = pauses_new(&l->context, l->queue, &l->pauses);
        if (r < 0)
                return r;
        l->context.pauses = l->pauses;
        r = pool_statuses_new(&l->context, l->queue, &l->pool_statuses);
        if (r < 0)
                return r;
        r = release_new(&l->context, l->queue, l->writes, &l->release);
        if (r < 0)
                return r;
        r = adoption_new(&l->context, l->queue, l->writes, l->release, &l->adoption);
        if (r < 0)
                return r;
        r = heard_drains_new(&l->context, l->queue, &l->heard);
        if (r < 0)
                return r;
        r = orphans_new(&l->context, l->queue, l->writes, l->release, &l->orphans);
        if (r < 0)
                return r;
        r = out_of_service_new(&l->context, l->queue, l->writes, &l->out_of_service);
        if (r >= 0)
                r = instance_orphans_new(&l->context, l->queue, &l->instance_orphans);
        if (r < 0)
                return r;
        r = reboot_grants_new(&l->context, l->queue, l->writes, &l->reboots);
        if (r >= 0)
                r = cloud_reboots_new(&l->context, l->queue, &l->cloud_reboots);
        if (r >= 0)
                r = event_acks_new(&l->context, l->queue, l->writes, &l->acks);
        if (r < 0)
                return r;
        r = successors_new(&l->context, l->queue, &l->successors);
        if (r >= 0)
                r = launches_new(&l->context, l->queue, l->successors, &l->launches);
        if (r >= 0)
                r = repairs_new(&l->context, l->queue, l->pool_statuses, l->successors, &l->repairs);
        if (r >= 0)
                r = outlook_new(&l->context, l->queue, &l->o.pace->outlook_writes, &l->o.pace->outlook_events, &l->outlook);
        return r < 0 || !l->o.queue ? r : hear_queue(l);
}

void leading_pace_init(LeadingPace *p, const CoordinatorConfig *config) {
        *p = (LeadingPace){
                .terminations = { .burst = config->terminations_burst, .per_minute = config->terminations_per_minute },
                .progress = { .burst = PROGRESS_BURST, .per_minute = PROGRESS_PER_MINUTE },
                .eviction_events = { .burst = EVICTION_EVENTS_BURST, .per_minute = EVICTION_EVENTS_PER_MINUTE },
                .warnings = { .burst = WARNINGS_BURST, .per_minute = WARNINGS_PER_MINUTE },
                .drained_events = { .burst = DRAINED_EVENTS_BURST, .per_minute = DRAINED_EVENTS_PER_MINUTE },
                .outlook_writes = { .burst = OUTLOOK_WRITES_BURST, .per_minute = OUTLOOK_WRITES_PER_MINUTE },
                .outlook_events = { .burst = OUTLOOK_EVENTS_BURST, .per_minute = OUTLOOK_EVENTS_PER_MINUTE },
        };
}

/* BudgetHolders: of the kinds other than DELETE, only reboot slots hold charges. */
static bool on_holder(NodeChargeKind kind, const char *node, const char *holder, void *userdata) {
        const Leading *l = userdata;

        return kind == NODE_CHARGE_REBOOT && reboot_grants_has_slot(l->reboots, node, holder);
}

int leading_new(const LeadingOptions *o, Leading **ret) {
        _cleanup_(leading_freep) Leading *l = NULL;
        int r;

        assert(o && o->env && o->config && o->client && o->view && o->cloud && o->ledger && o->recorder && o->pace &&
               ret);
        l = new0(Leading, 1);
        if (!l)
                return -ENOMEM;
        l->o = *o;
        l->env = o->env;
        r = make_rooms(l);
        if (r < 0)
                return r;
        orphans_view_changed(l->orphans, cluster_view_healthy(o->view));
        out_of_service_view_changed(l->out_of_service, cluster_view_healthy(o->view));
        budget_ledger_lead(o->ledger, o->guard,
                           &(BudgetHolders) { .holder_exists = on_holder, .userdata = l });
        mark_all(l);

        *ret = TAKE_PTR(l);
        return 0;
}

/* Whoever leads next measures all of that. */
static void unmeasure(Leading *l) {
        static const CoordinatorMetric gauges[] = {
                METRIC_TERMINATION_TOKENS,  METRIC_QUEUE_DEPTH,       METRIC_ORPHANS,
                METRIC_EVICTIONS_IN_FLIGHT, METRIC_EVICTIONS_WAITING, METRIC_EVICTION_WINDOW,
                METRIC_REBOOT_SLOTS_HELD,   METRIC_REBOOTS_WAITING,
                METRIC_REPAIRS_UNDER_WAY,   METRIC_REPAIRS_WAITING,   METRIC_QUEUE_WORKING,
                METRIC_QUEUE_DRAINS,        METRIC_QUEUE_HELD,
        };

        for (size_t i = 0; i < ELEMENTSOF(gauges); i++)
                metrics_set(l->o.metrics, gauges[i], 0, 0);
        removals_unmeasure(l->o.metrics);
        for (size_t i = 0; cloud_provider_names[i]; i++)
                metrics_set(l->o.metrics, METRIC_ORPHANED_INSTANCES, i, 0);
        outlook_unmeasure(l->o.metrics);
}

Leading *leading_free(Leading *l) {
        if (!l)
                return NULL;
        unmeasure(l);
        removals_free(l->removals);
        if (l->o.ledger)
                budget_ledger_follow(l->o.ledger);
        queue_worker_free(l->queue_worker);
        outlook_free(l->outlook);
        repairs_free(l->repairs);
        launches_free(l->launches);
        successors_free(l->successors);
        pool_statuses_free(l->pool_statuses);
        event_acks_free(l->acks);
        cloud_reboots_free(l->cloud_reboots);
        reboot_grants_free(l->reboots);
        out_of_service_free(l->out_of_service);
        instance_orphans_free(l->instance_orphans);
        orphans_free(l->orphans);
        heard_drains_free(l->heard);
        adoption_free(l->adoption);
        release_free(l->release);
        pauses_free(l->pauses);
        voluntary_deletes_free(l->deletes);
        object_writes_free(l->writes);
        evictor_free(l->evictor);
        work_queue_free(l->queue);
        hashmap_free_with(l->pools, mfree);
        free(l);
        return NULL;
}

/* -- from the view -------------------------------------------------------------------------------------- */

static void on_requeue(const char *node, usec_t at_usec, void *userdata) {
        mark(userdata, "node", node, at_usec);
}

static PodReturns *on_returns_of(const char *node, void *userdata) {
        Leading *l = userdata;
        const NodeTermination *t = removals_get(l->removals, node);

        return t ? node_termination_returns(t) : NULL;
}

static void on_moved(void *userdata) {
        Leading *l = userdata;

        removals_moved(l->removals);
}

void leading_node_dirty(Leading *l, const char *node) {
        mark(l, "node", node, removals_due(l->removals, node));
}

void leading_pool_dirty(Leading *l, const char *pool) {
        mark(l, "pool", pool, 0);
}

void leading_claim_dirty(Leading *l, const char *claim) {
        const KubeNodeClaim *c = cluster_view_claim(l->o.view, claim);
        usec_t at = usec_add(loop_now(l->env->loop), POOL_STATUS_USEC);
        const KubeNodePool *pool;

        mark(l, "claim", claim, 0);
        if (!c)
                removals_on_claim_gone(l->removals, claim);
        for (HashmapIterator it = {}; cluster_view_iterate_pools(l->o.view, &it, &pool);)
                if (!c || streq_ptr(c->node_pool, pool->object.meta.name))
                        mark(l, "pool", pool->object.meta.name, at);
        outlook_on_claim(l->outlook, c);
}

void leading_on_pod(Leading *l, const char *node, const KubePod *old, const KubePod *new) {
        bool is_removed;

        heard_drains_on_pod(l->heard, node, old, new);
        is_removed = removals_on_pod(l->removals, node, old, new);
        /* What a removal sent may be waiting for nothing but a newer state of the pod. */
        if (is_removed || !old || !new || !kube_pod_says_same(old, new))
                leading_node_dirty(l, node);
}

void leading_on_any_pod(Leading *l, const KubePod *old, const KubePod *new) {
        outlook_on_pod(l->outlook, old, new);
}

void leading_on_pdb(Leading *l, const KubePdb *old, const KubePdb *new) {
        const ObjectMeta *m = new ? &new->object.meta : &old->object.meta;

        if (new && new->object.invalid && !(old && streq_ptr(old->object.invalid, new->object.invalid)))
                tell_of_invalid_pdb(l, new);
        if (new)
                set_allowed(l, new);
        else
                evictor_forget_pdb(l->evictor, m->ns, m->name);
        if (!old || !new || old->object.meta.generation != m->generation)
                evictor_pdb_edited(l->evictor, m->ns);
        outlook_changed(l->outlook);
}

void leading_on_budget(Leading *l, const KubeNodeBudget *old, const KubeNodeBudget *new) {
        if (new && new->object.invalid && !(old && streq_ptr(old->object.invalid, new->object.invalid)))
                tell_of_invalid_budget(l, new);
        reboot_grants_budgets_changed(l->reboots);
        voluntary_deletes_budgets_changed(l->deletes);
        outlook_changed(l->outlook);
}

void leading_on_pause(Leading *l) {
        const KubeNodePool *pool;

        pauses_see(l->pauses, NULL);
        outlook_changed(l->outlook);
        for (HashmapIterator it = {}; cluster_view_iterate_pools(l->o.view, &it, &pool);)
                mark(l, "pool", pool->object.meta.name, 0);
}

void leading_on_node(Leading *l, const KubeNode *old, const KubeNode *new) {
        repairs_on_node(l->repairs, old, new);
        outlook_on_node(l->outlook, old, new);
}

void leading_view_health(Leading *l, bool stands) {
        repairs_view_changed(l->repairs, stands);
        outlook_view_changed(l->outlook, stands);
        orphans_view_changed(l->orphans, stands);
        out_of_service_view_changed(l->out_of_service, stands);
        if (stands)
                evictor_kick(l->evictor);
}

void leading_reconfigured(Leading *l) {
        mark_all(l);
        (void) work_queue_add(l->queue, REBOOT_GRANTS_KEY);
}

/* -- reconcile ------------------------------------------------------------------------------------------ */

static void reconcile_node(Leading *l, const char *name, const char *key) {
        const KubeNode *n = cluster_view_node(l->o.view, name);
        const NodeTermination *t;
        bool heard;
        int r;

        if (n)
                removals_end_others(l->removals, n);
        t = removals_get(l->removals, name);
        if (!n)
                object_writes_forget(l->writes, &kube_node_kind, NULL, name);
        reboot_grants_see_node(l->reboots, name, n);
        cloud_reboots_see_node(l->cloud_reboots, name, n, key);
        event_acks_see_node(l->acks, name, n);
        repairs_see_node(l->repairs, name, n);
        out_of_service_see_node(l->out_of_service, name, n,
                                t && node_termination_state(t) >= NODE_TERMINATION_TERMINATING, key);
        heard = heard_drains_see_node(l->heard, name, n, key);
        if (t) {
                removals_step(l->removals, name);
                return;
        }
        if (!n || n->object.meta.deletion_usec > 0 || heard) {
                adoption_forget_node(l->adoption, name);
                voluntary_deletes_forget(l->deletes, name);
        }
        if (!n)
                return;
        if (heard)
                return;
        if (n->object.meta.deletion_usec == 0) {
                adoption_reconcile_node(l->adoption, n);
                return;
        }
        if (!object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION))
                return; /* not ours, or done */
        r = removals_begin(l->removals, n);
        if (r < 0) {
                log_error_errno(l->env->log, r, "Failed to begin the removal of node %s, retrying: %m",
                                name);
                (void) work_queue_retry(l->queue, key);
        }
}

/* Which nodes are a pool's, and whether they may go, changes with its spec, its deletion and a pause, not with its status. */
static void note_pool(Leading *l, const char *name, const KubeNodePool *pool) {
        _cleanup_free_ char *now = NULL;
        const char *before = hashmap_get(l->pools, name);
        void *old = NULL;

        if (!pool) {
                free(hashmap_remove(l->pools, name));
                mark_nodes(l);
                outlook_pools_changed(l->outlook);
                return;
        }
        now = strf("%s %lld %d %d %d", pool->object.meta.uid, (long long) pool->object.meta.generation,
                   pool->object.meta.deletion_usec > 0, pauses_is_paused(l->pauses, pool),
                   object_meta_has_finalizer(&pool->object.meta, FINALIZER_TERMINATION));
        if (now && streq_ptr(before, now))
                return;
        if (now && hashmap_replace(l->pools, name, now, &old) >= 0) {
                TAKE_PTR(now);
                free(old);
        }
        mark_nodes(l);
        outlook_pools_changed(l->outlook);
}

static void reconcile_pool(Leading *l, const char *key, const char *name) {
        const KubeNodePool *pool = cluster_view_pool(l->o.view, name);

        if (pool)
                pauses_see(l->pauses, pool);
        else
                pauses_forget_pool(l->pauses, name);
        note_pool(l, name, pool);
        if (!pool) {
                object_writes_forget(l->writes, &kube_node_pool_kind, NULL, name);
                pool_statuses_forget(l->pool_statuses, name);
                return;
        }
        pool_statuses_reconcile(l->pool_statuses, key, pool);
        if (pool->object.meta.deletion_usec > 0)
                release_pool(l->release, pool);
}

/* The condition is its status' writer's: of its node, or of its removal. */
static void tell_of_invalid_claim(Leading *l, const KubeNodeClaim *claim) {
        EventObject o = event_object(&claim->object);
        Condition c;

        if (!claim->object.invalid || !claim_invalid_condition(claim, &c) || condition_is_said(&claim->object, &c))
                return;
        log_warning(l->env->log, "NodeClaim %s is invalid: %s", claim->object.meta.name,
                    claim->object.invalid);
        event_record(l->o.recorder, &o, EVENT_WARNING, CLAIM_INVALID,
                     "%s. "
                     "Its node is managed all the same; a terminationGracePeriod that cannot be read ends no wait",
                     claim->object.invalid);
}

static void reconcile_claim(Leading *l, const char *name, const char *key) {
        const KubeNodeClaim *claim = cluster_view_claim(l->o.view, name);

        if (claim) {
                tell_of_invalid_claim(l, claim);
                successors_see_claim(l->successors, claim, key);
        }
        if (!launches_reconcile_claim(l->launches, name, claim, key))
                orphans_reconcile_claim(l->orphans, name, claim);
        if (!claim)
                object_writes_forget(l->writes, &kube_node_claim_kind, NULL, name);
}

static void on_key(const char *key, void *userdata) {
        Leading *l = userdata;
        const char *name;

        if ((name = startswith(key, "node/")))
                reconcile_node(l, name, key);
        else if ((name = startswith(key, "pool/")))
                reconcile_pool(l, key, name);
        else if ((name = startswith(key, "claim/")))
                reconcile_claim(l, name, key);
        else if (streq(key, REBOOT_GRANTS_KEY))
                reboot_grants_reconcile(l->reboots);
        else if (streq(key, EVENT_ACKS_KEY))
                event_acks_reconcile(l->acks);
        else if (streq(key, INSTANCE_ORPHANS_KEY))
                instance_orphans_reconcile(l->instance_orphans);
        else if (streq(key, REPAIRS_KEY))
                repairs_reconcile(l->repairs);
        else if (streq(key, OUTLOOK_KEY))
                outlook_reconcile(l->outlook);
        else
                assert(false && "a key of no room");
}

/* -- metrics -------------------------------------------------------------------------------------------- */

static void measure_evictor(Leading *l) {
        EvictorStats s = evictor_stats(l->evictor);

        for (size_t i = 0; i < _EVICTION_ANSWER_MAX; i++)
                metrics_add(l->o.metrics, METRIC_EVICTIONS, i, s.answers[i] - l->told.answers[i]);
        l->told = s;
        metrics_set(l->o.metrics, METRIC_EVICTIONS_IN_FLIGHT, 0, (double) s.in_flight);
        metrics_set(l->o.metrics, METRIC_EVICTIONS_WAITING, 0, (double) s.waiting);
        metrics_set(l->o.metrics, METRIC_EVICTION_WINDOW, 0, s.window);
}

static void measure_reboots(Leading *l) {
        size_t held, waiting;

        reboot_grants_count(l->reboots, &held, &waiting);
        metrics_set(l->o.metrics, METRIC_REBOOT_SLOTS_HELD, 0, (double) held);
        metrics_set(l->o.metrics, METRIC_REBOOTS_WAITING, 0, (double) waiting);
}

void leading_measure(Leading *l) {
        size_t repairs_waiting, repairs_under_way;
        const TokenBucket *rate = &l->o.pace->terminations;
        double tokens = rate->started ? (double) rate->tokens_micro / 1e6 : (double) rate->burst;

        removals_measure(l->removals);
        metrics_set(l->o.metrics, METRIC_TERMINATION_TOKENS, 0, tokens);
        metrics_set(l->o.metrics, METRIC_QUEUE_DEPTH, 0, (double) work_queue_depth(l->queue));
        metrics_set(l->o.metrics, METRIC_ORPHANS, 0, (double) orphans_size(l->orphans));
        instance_orphans_measure(l->instance_orphans);
        outlook_measure(l->outlook);
        measure_evictor(l);
        measure_reboots(l);
        repairs_count(l->repairs, &repairs_waiting, &repairs_under_way);
        metrics_set(l->o.metrics, METRIC_REPAIRS_WAITING, 0, (double) repairs_waiting);
        if (l->queue_worker)
                metrics_set(l->o.metrics, METRIC_QUEUE_WORKING, 0, (double) queue_worker_n_messages(l->queue_worker));
        metrics_set(l->o.metrics, METRIC_QUEUE_DRAINS, 0, (double) heard_drains_under_way(l->heard));
        metrics_set(l->o.metrics, METRIC_QUEUE_HELD, 0, (double) heard_drains_held(l->heard));
        metrics_set(l->o.metrics, METRIC_REPAIRS_UNDER_WAY, 0, (double) repairs_under_way);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

void leading_next_wakeup(const Leading *l, Wakeups *w) {
        evictor_next_wakeup(l->evictor, w);
        removals_next_wakeup(l->removals, l->queue, w);
        pauses_next_wakeup(l->pauses, w);
        orphans_next_wakeup(l->orphans, w);
        pool_statuses_next_wakeup(l->pool_statuses, w);
        adoption_next_wakeup(l->adoption, w);
        heard_drains_next_wakeup(l->heard, w);
        out_of_service_next_wakeup(l->out_of_service, w);
        instance_orphans_next_wakeup(l->instance_orphans, w);
        reboot_grants_next_wakeup(l->reboots, w);
        cloud_reboots_next_wakeup(l->cloud_reboots, w);
        event_acks_next_wakeup(l->acks, w);
        successors_next_wakeup(l->successors, w);
        launches_next_wakeup(l->launches, w);
        repairs_next_wakeup(l->repairs, w);
        outlook_next_wakeup(l->outlook, w);
        if (l->queue_worker)
                queue_worker_next_wakeup(l->queue_worker, w);
}
