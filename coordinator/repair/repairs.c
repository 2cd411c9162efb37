/* SPDX-License-Identifier: Apache-2.0 */
#include "repairs.h"

#include "coordinator-metrics.h"
#include "heard-rule.h"
#include "interruption.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "pauses.h"
#include "repair-case.h"
#include "string-util.h"
#include "voluntary-deletes.h"

#define LABEL_ZONE "topology.kubernetes.io/zone"
/* Watches that were down for less hide nothing that matters. */
#define LOST_USEC (30 * USEC_PER_SEC)
/* A Node whose deletion was accepted and does not show is deleted anew. */
#define SENT_USEC (2 * USEC_PER_MINUTE)
/* How long a provider's answer counts that a machine runs, and one that it is off, or that nobody knows. */
#define RUNS_USEC (30 * USEC_PER_SEC)
#define OFF_USEC (2 * USEC_PER_MINUTE)
/* Questions about machines under way at once. */
#define LOOKS_MAX 4u
/* A replacement that could not be announced in time begins so long after its Event at the earliest, or after a third of its rule's time. */
#define ANNOUNCED_USEC USEC_PER_MINUTE

const char *const repair_outcome_names[_REPAIR_OUTCOME_MAX + 1] = {
        [REPAIR_BEGUN] = "begun",
        [REPAIR_PROVED] = "proved",
        [REPAIR_FAILED] = "failed",
};

/* Why nodes of a pool are not repaired now: the first of them stands for all. */
typedef struct Hold {
        char *pool;
        const char *reason; /* NULL: nothing is held any more */
        char *message;
        size_t n_more;
} Hold;

static void *case_free(void *p) {
        RepairCase *c = p;

        machine_end_free(c->asked);
        free(c->look_problem);
        repair_sight_free(c->sight);
        free(c->boot_id);
        free(c->node);
        return mfree(c);
}

static void *hold_free(void *p) {
        Hold *h = p;

        free(h->pool);
        free(h->message);
        return mfree(h);
}

static void mark_repairs(Repairs *r, usec_t at_usec) {
        if (at_usec == USEC_INFINITY)
                return;
        (void) work_queue_add_at(r->queue, REPAIRS_KEY, MAX(at_usec, repairs_now(r)));
}

/* -- our view ------------------------------------------------------------------------------------------- */

const char *repairs_view_trouble(const Repairs *r) {
        usec_t now = repairs_now(r);

        if (!r->stands || !cluster_view_synced(r->context->view))
                return "this coordinator's own watches of the cluster are down";
        if (r->heartbeat_usec == 0 || usec_sub(now, r->heartbeat_usec) > REPAIR_HEARTBEAT_USEC)
                return "no Node's heartbeat has moved for ten minutes, so kubelets may be cut off from the API server";
        return NULL;
}

void repairs_view_changed(Repairs *r, bool stands) {
        if (!stands && r->stands)
                r->lost_usec = repairs_now(r);
        else if (stands && !r->stands && usec_sub(repairs_now(r), r->lost_usec) >= LOST_USEC)
                r->healthy_usec = repairs_now(r);
        r->stands = stands;
        mark_repairs(r, repairs_now(r));
}

static void on_heartbeat(Repairs *r) {
        usec_t now = repairs_now(r);

        if (r->heartbeat_usec == 0 || usec_sub(now, r->heartbeat_usec) > REPAIR_HEARTBEAT_USEC)
                r->healthy_usec = now;
        r->heartbeat_usec = now;
}

static const KubeNodePool *pool_of_node(const Repairs *r, const KubeNode *n, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = NULL;

        if (claim)
                pool = cluster_view_pool(r->context->view, strempty(claim->node_pool));
        else if (cluster_view_pool_of_node(r->context->view, n, &pool, NULL) != POOL_MATCH_ONE)
                pool = NULL;
        return pool && !pool->object.invalid && pool->object.meta.deletion_usec == 0 ? pool : NULL;
}

/* -- cases ---------------------------------------------------------------------------------------------- */

/* When it came, by the loop's clock, of a node that has never been Ready as far as its claim knows. lastTransitionTime does
 * no harm here: it only makes the node younger. */
static usec_t born(const Repairs *r, const KubeNode *n, const KubeNodeClaim *claim) {
        const Condition *seen_ready = claim ? kube_node_claim_condition(claim, CLAIM_INITIALIZED) : NULL;

        if (seen_ready && seen_ready->status == CONDITION_TRUE)
                return USEC_INFINITY;
        return loop_from_wall(r->context->env->loop, MAX(n->object.meta.creation_usec, kube_node_ready_since(n)));
}

static int case_new(Repairs *r, const KubeNode *n, usec_t born_usec, RepairCase **ret) {
        RepairCase *c = new0(RepairCase, 1);
        int k;

        if (!c)
                return -ENOMEM;
        c->owner = r;
        c->due_usec = c->announce_usec = c->well_usec = USEC_INFINITY;
        k = free_and_strdup(&c->node, n->object.meta.name);
        if (k >= 0)
                k = repair_sight_new(n->object.meta.uid, born_usec, &c->sight);
        if (k >= 0)
                k = hashmap_put(r->cases, c->node, c);
        if (k < 0) {
                case_free(c);
                return k;
        }
        *ret = c;
        return 0;
}

/* n: the node as it is now, of which no rule asks anything; NULL: it is gone, another, or of no pool. */
static void case_drop(Repairs *r, RepairCase *c, const KubeNode *n) {
        bool waited = c->waits;

        /* Nobody follows its reboot any more; and the node has changed since a deletion was sent that the API server has not done. */
        if (c->boot_id || n)
                repair_brake_cancel(r->brake, repair_sight_uid(c->sight));

        hashmap_remove(r->cases, c->node);
        case_free(c);
        if (waited)
                mark_repairs(r, repairs_now(r));
}

void repairs_mark_node(Repairs *r, const char *name, usec_t at_usec) {
        _cleanup_free_ char *key = strf("node/%s", name);

        if (!key || work_queue_add_at(r->queue, key, at_usec) < 0)
                work_queue_note_lost(r->queue);
}

bool repair_is_left_alone(const Repairs *r, const KubeNode *n, const KubeNodeClaim *claim) {
        return !claim || claim->object.meta.deletion_usec > 0 || n->object.meta.deletion_usec > 0 ||
               !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) || repair_is_vetoed(n) || kube_node_standing_interruption(n) ||
               heard_is_awaited(n, loop_wall(r->context->env->loop)) ||
               repair_reboot_has_slot(r, n);
}

static int case_judge(const Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool, RepairVerdict *ret) {
        repair_sight_set_rebooted(c->sight, c->reboot == REPAIR_REBOOT_FAILED || repair_reboot_was_done(n, claim));
        return repair_sight_look(c->sight, pool, n, repairs_now(r), ret);
}

/* -- nodes, as they are seen ---------------------------------------------------------------------------- */

/* Returns true if this node may prove the repair of one that it succeeds. */
static bool is_well(const KubeNode *n, const KubeNodePool *pool) {
        return kube_node_is_ready(n) && n->object.meta.deletion_usec == 0 && !(pool && repair_rules_ask(pool, n));
}

void repairs_on_node(Repairs *r, const KubeNode *old, const KubeNode *new) {
        bool same = old && new && streq(old->object.meta.uid, new->object.meta.uid);
        const KubeNodePool *pool;
        RepairVerdict v;
        RepairCase *c;

        if (same && new->heartbeat_usec > old->heartbeat_usec)
                on_heartbeat(r);
        if (repair_brake_n_under_way(r->brake) == 0)
                return;
        if (old && !same)
                repair_brake_forget_node(r->brake, old->object.meta.uid);
        if (!new)
                return;
        pool = pool_of_node(r, new, NULL);
        c = hashmap_get(r->cases, new->object.meta.name);
        if (c && c->boot_id && pool && streq(repair_sight_uid(c->sight), new->object.meta.uid)) {
                if (case_judge(r, c, new, cluster_view_claim_of_node(r->context->view, new), pool, &v) < 0)
                        work_queue_note_lost(r->queue);
                repair_reboot_note(r, c, new, pool);
        }
        if (repair_brake_see_node(r->brake, new->object.meta.uid, !same, pool ? pool->object.meta.name : NULL,
                                  is_well(new, pool), repairs_now(r)) < 0)
                work_queue_note_lost(r->queue);
        if (!same || is_well(old, pool) != is_well(new, pool))
                mark_repairs(r, repairs_now(r));
}

/* was_there: before us. */
static void see_node(Repairs *r, const KubeNode *n, bool was_there) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(r->context->view, n);
        const KubeNodePool *pool = pool_of_node(r, n, claim);
        RepairCase *c = hashmap_get(r->cases, n->object.meta.name);
        RepairVerdict v = {};
        int k;

        if (c && (!pool || !streq(repair_sight_uid(c->sight), n->object.meta.uid))) {
                case_drop(r, c, NULL);
                c = NULL;
        }
        if (!pool || (!c && !repair_reboot_record(claim) && !repair_rules_match(pool, n)))
                return;
        if (!c && case_new(r, n, was_there ? born(r, n, claim) : USEC_INFINITY, &c) < 0) {
                work_queue_note_lost(r->queue);
                return;
        }
        k = case_judge(r, c, n, claim, pool, &v);
        if (k < 0)
                work_queue_note_lost(r->queue);
        if (c->boot_id)
                repair_reboot_see(r, c, n, claim, pool);
        if (k >= 0)
                repair_reboot_forget(r, c, n, claim, pool);
        if (k == REPAIR_SIGHT_CLEAR && !c->boot_id && !repair_reboot_record(claim)) {
                case_drop(r, c, n);
                return;
        }
        if (k != REPAIR_SIGHT_DUE)
                c->announced_usec = 0;
        c->due_usec = k == REPAIR_SIGHT_DUE ? v.due_usec : USEC_INFINITY;
        c->announce_usec = k == REPAIR_SIGHT_DUE && v.rule->action == REPAIR_ACTION_REPLACE && c->announced_usec == 0
                                   ? usec_sub(v.due_usec, v.rule->after_usec / 3)
                                   : USEC_INFINITY;
        if (c->waits || c->due_usec != USEC_INFINITY)
                mark_repairs(r, c->due_usec == USEC_INFINITY ? repairs_now(r) : MIN(c->due_usec, c->announce_usec));
}

void repairs_see_node(Repairs *r, const char *name, const KubeNode *n) {
        RepairCase *c = hashmap_get(r->cases, name);

        if (n && n->object.meta.deletion_usec == 0) {
                see_node(r, n, false);
                repair_reboot_tidy(r, n);
        } else if (c)
                case_drop(r, c, NULL);
}

/* -- holds ---------------------------------------------------------------------------------------------- */

static Hold *hold_take(Repairs *r, const char *pool) {
        Hold *h = hashmap_get(r->holds, pool);

        if (h)
                return h;
        h = new0(Hold, 1);
        if (!h)
                return NULL;
        if (free_and_strdup(&h->pool, pool) < 0 || hashmap_put(r->holds, h->pool, h) < 0)
                return hold_free(h);
        return h;
}

/* message: given away; NULL: want of memory. */
static void hold_case(Repairs *r, RepairCase *c, const KubeNodePool *pool, const char *reason, char *message) {
        Hold *h = hold_take(r, pool->object.meta.name);

        c->waits = true;
        if (h && message && !h->reason) {
                h->reason = reason;
                h->message = message;
                return;
        }
        if (h && message)
                h->n_more++;
        else
                work_queue_note_lost(r->queue);
        free(message);
}

static void begin_holds(Repairs *r) {
        Hold *h;

        HASHMAP_FOREACH (h, r->holds) {
                h->reason = NULL;
                h->message = mfree(h->message);
                h->n_more = 0;
        }
}

static void tell_holds(Repairs *r) {
        Hold *h;

        HASHMAP_FOREACH (h, r->holds) {
                _cleanup_free_ char *more = h->n_more == 0 ? NULL
                                                           : strf("%s; and %zu more node%s", h->message, h->n_more,
                                                                  h->n_more == 1 ? " waits" : "s wait");

                if (!pool_statuses_set_repair_held(r->pool_statuses, h->pool, h->reason, more ? more : h->message))
                        mark_repairs(r, usec_add(repairs_now(r), USEC_PER_SEC));
                else if (!h->reason) {
                        hashmap_remove(r->holds, h->pool);
                        hold_free(h);
                }
        }
}

/* -- repair --------------------------------------------------------------------------------------------- */

/* The Node was deleted. */
static void on_written(const char *name, const ApiError *error, void *userdata) {
        Repairs *r = userdata;
        RepairCase *c = hashmap_get(r->cases, name);

        if (!error)
                return;
        if (c) {
                c->not_before_usec = 0;
                /* Without an answer the API server may have done it. */
                if (error->http >= 400 && error->http < 500) {
                        c->refused = true;
                        repair_brake_cancel(r->brake, repair_sight_uid(c->sight));
                }
        }
        mark_repairs(r, usec_add(repairs_now(r), USEC_PER_SEC));
}

/* "its condition Ready is Unknown, NodeStatusUnknown, for 15min" */
static char *showing(const Repairs *r, const KubeNode *n, const RepairVerdict *v) {
        const Condition *k = kube_node_condition(n, v->rule->condition);
        char since[DURATION_MAX];

        duration_format(usec_sub(repairs_now(r), v->since_usec) / USEC_PER_SEC * USEC_PER_SEC, since);
        return strf("its condition %s is %s%s%s, for %s", v->rule->condition, k ? condition_status_to_string(k->status) : "absent",
                    k && !isempty(k->reason) ? ", " : "", k ? strempty(k->reason) : "", since);
}

static void tell_repair(Repairs *r, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        _cleanup_free_ char *shows = showing(r, n, v), *message = NULL;
        bool reboots = v->rule->action == REPAIR_ACTION_REBOOT;
        char after[DURATION_MAX];
        EventObject o = event_object(&n->object);

        duration_format(v->rule->after_usec, after);
        message = strf("%s: %s, and NodePool %s has that repaired after %s",
                       reboots ? "Asking its agent to reboot it" : "Deleting it, to be replaced",
                       strempty(shows), pool->object.meta.name, after);
        event_record(r->context->recorder, &o, EVENT_WARNING, "NodeRepair", "%s", strempty(message));
        log_event(r->context->env->log, LOG_LEVEL_WARNING, reboots ? MESSAGE_REPAIR_REBOOT_ASKED : MESSAGE_NODE_REPAIRED,
                  LOG_FIELDS({ "NODE", n->object.meta.name }, { "REASON", v->rule->condition }), "Node %s: %s", n->object.meta.name,
                  strempty(message));
}

void repairs_note_begun(Repairs *r, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        metrics_add(r->context->metrics, METRIC_REPAIRS, REPAIR_BEGUN, 1);
        tell_repair(r, n, pool, v);
}

/* Returns true if the claim names the successor of the node, or gets none. Nothing but the claim would say after the deletion
 * that there is to be one. */
static bool successor_is_noted(Repairs *r, const KubeNode *n) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(r->context->view, n);
        _cleanup_free_ char *key = claim ? strf("claim/%s", claim->object.meta.name) : NULL;

        if (!claim || (key && successors_wish(r->successors, claim, key)))
                return true;
        mark_repairs(r, usec_add(repairs_now(r), USEC_PER_SEC));
        return false;
}

static void repair_node(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool, const RepairDomains *d, const RepairVerdict *v) {
        _cleanup_free_ char *key = strf("node/%s", c->node);
        ObjectWrite w = { .what = "delete, to repair it, the",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key,
                          .written = on_written,
                          .userdata = r };

        int k;

        if (!successor_is_noted(r, n))
                return;
        /* A deletion that was not answered is sent again in its place. */
        k = repair_brake_begin(r->brake, n->object.meta.uid, NULL, d, repairs_now(r));
        if (!key || (k < 0 && k != -EEXIST)) {
                work_queue_note_lost(r->queue);
                return;
        }
        if (object_writes_delete(r->context->writes, &w, n->object.meta.uid, n->object.meta.resource_version) <= 0) {
                if (k >= 0)
                        repair_brake_cancel(r->brake, n->object.meta.uid);
                return;
        }
        c->not_before_usec = usec_add(repairs_now(r), SENT_USEC);
        if (k >= 0 && !c->refused)
                repairs_note_begun(r, n, pool, v);
        c->refused = false;
}

static char *full_domain_message(const char *node, const RepairDomains *d, const RepairLimit *limit) {
        return strf("Node %s waits to be repaired: %zu of %zu repairs are under way in %s %s. More are begun at once when these are proved "
                    "by nodes that come and are well for five minutes",
                    node, limit->n_under_way, limit->n_at_once, repair_domain_names[limit->kind], d->names[limit->kind]);
}

/* -- a machine that is not to be ended ------------------------------------------------------------------ */

static void on_look(MachineEnd *m, void *userdata) {
        const RepairCase *c = userdata;

        mark_repairs(c->owner, repairs_now(c->owner));
}

static void note_looks(Repairs *r) {
        RepairCase *c;

        r->n_asked = 0;
        HASHMAP_FOREACH (c, r->cases) {
                if (!c->asked)
                        continue;
                if (!machine_end_has_answered(c->asked)) {
                        r->n_asked++;
                        continue;
                }
                c->look = machine_look_read(c->asked);
                c->look_usec = c->asked_usec;
                free(c->look_problem);
                c->look_problem = strdup(strempty(machine_end_problem(c->asked, NULL)));
                c->asked = machine_end_free(c->asked);
        }
}

/* False: nothing names a machine. */
static bool ask_for_look(Repairs *r, RepairCase *c, const KubeNode *n) {
        int k;

        if (r->n_asked >= LOOKS_MAX)
                return true; /* an answer brings us back */
        c->asked_usec = repairs_now(r);
        k = machine_look_ask(r->context, n, on_look, c, &c->asked);
        if (k < 0)
                work_queue_note_lost(r->queue);
        r->n_asked += k > 0;
        return k != 0;
}

/* Returns true if the machine of a node that is not Ready may be ended. False: the provider has not answered yet, or the case is held. */
static bool machine_may_end(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool) {
        bool held, stands;

        held = c->look_usec > 0 && (c->look == MACHINE_LOOK_OFF || c->look == MACHINE_LOOK_UNKNOWN);
        stands = c->look_usec > 0 && usec_sub(repairs_now(r), c->look_usec) <= (held ? OFF_USEC : RUNS_USEC);
        if (!stands && !c->asked && !ask_for_look(r, c, n))
                return true;
        if (held && c->look == MACHINE_LOOK_OFF)
                hold_case(r, c, pool, "MachineOff",
                          strf("Node %s waits to be repaired: its machine is off, as the provider says, and is not ended by a repair. Start it, or, "
                               "if it is to go, kubectl delete node %s",
                               c->node, c->node));
        else if (held)
                hold_case(r, c, pool, "MachineUnknown",
                          strf("Node %s waits to be repaired: the provider does not say whether its machine is off: %s. vesper asks again every two minutes. "
                               "Check the provider's credentials and region; if the node is to go, kubectl delete node %s",
                               c->node, strempty(c->look_problem), c->node));
        return stands && !held;
}

/* -- one case ------------------------------------------------------------------------------------------- */

/* loop_now(): once it was announced. */
static usec_t may_begin(const RepairCase *c, const RepairVerdict *v) {
        if (v->rule->action != REPAIR_ACTION_REPLACE)
                return v->due_usec;
        return MAX(v->due_usec, usec_add(c->announced_usec, MIN(v->rule->after_usec / 3, ANNOUNCED_USEC)));
}

static void announce(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        _cleanup_free_ char *shows = showing(r, n, v);
        char left[DURATION_MAX], after[DURATION_MAX];
        EventObject o = event_object(&n->object);

        c->announced_usec = repairs_now(r);
        c->announce_usec = USEC_INFINITY;
        duration_format(usec_sub(usec_add(may_begin(c, v), USEC_PER_SEC - 1), repairs_now(r)) / USEC_PER_SEC * USEC_PER_SEC, left);
        duration_format(v->rule->after_usec, after);
        event_record(r->context->recorder, &o, EVENT_WARNING, "NodeRepairAnnounced",
                     "If nothing changes, vesper deletes this Node in %s, to be replaced, and ends its machine: %s, and NodePool %s has that repaired "
                     "after %s. To keep it: kubectl cordon %s, or kubectl annotate node %s " ANNOTATION_DO_NOT_REPAIR "=true",
                     left, strempty(shows), pool->object.meta.name, after, c->node, c->node);
}

/* Returns true if it may begin as far as people are concerned: they were told, and have had the time to say no. */
static bool is_announced(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        if (repair_brake_has(r->brake, repair_sight_uid(c->sight)))
                return true;
        if (c->announced_usec == 0)
                announce(r, c, n, pool, v);
        if (repairs_now(r) >= may_begin(c, v))
                return true;
        mark_repairs(r, may_begin(c, v));
        return false;
}

static bool may_replace(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool) {
        if (kube_node_is_ready(n))
                return voluntary_delete_is_admitted(r->context->deletes, n, pool, "it is to be repaired", REPAIRS_KEY);
        return machine_may_end(r, c, n, pool);
}

/* Returns true if a person keeps the node from repair. */
static bool is_kept_by_people(const Repairs *r, const KubeNode *n, const KubeNodePool *pool) {
        return pauses_is_paused(r->context->pauses, pool) || repair_is_cordoned_by_a_person(n);
}

static void hold_for_people(Repairs *r, RepairCase *c, const KubeNodePool *pool) {
        if (pauses_is_paused(r->context->pauses, pool))
                hold_case(r, c, pool, "Paused",
                          strf("Node %s waits to be repaired: a person has paused removals (" ANNOTATION_PAUSED ")", c->node));
        else
                hold_case(r, c, pool, "Cordoned",
                          strf("Node %s waits to be repaired: it was cordoned by a person or a tool, who may be at work on its machine. kubectl uncordon %s, "
                               "and it is repaired; if it is to go now, kubectl delete node %s",
                               c->node, c->node, c->node));
}

static void reconcile_case(Repairs *r, RepairCase *c, const char *trouble) {
        const KubeNode *n = cluster_view_node(r->context->view, c->node);
        const KubeNodeClaim *claim = n ? cluster_view_claim_of_node(r->context->view, n) : NULL;
        const KubeNodePool *pool = n ? pool_of_node(r, n, claim) : NULL;
        RepairDomains d = {};
        RepairLimit limit;
        RepairVerdict v;
        usec_t settled;

        if (!pool || !streq(n->object.meta.uid, repair_sight_uid(c->sight)))
                return;
        if (c->boot_id) {
                repair_reboot_await_request(r, c, n);
                return;
        }
        if (repair_is_left_alone(r, n, claim) || case_judge(r, c, n, claim, pool, &v) != REPAIR_SIGHT_DUE)
                return;
        if (v.due_usec > repairs_now(r)) {
                if (c->announce_usec <= repairs_now(r) && !trouble && !is_kept_by_people(r, n, pool))
                        announce(r, c, n, pool, &v);
                mark_repairs(r, v.due_usec);
                return;
        }
        d = (RepairDomains){ .names = { [REPAIR_DOMAIN_POOL] = pool->object.meta.name,
                                        [REPAIR_DOMAIN_ZONE] = object_meta_label(&n->object.meta, LABEL_ZONE),
                                        [REPAIR_DOMAIN_CONDITION] = v.rule->condition } };
        settled = usec_add(r->healthy_usec, MIN(v.rule->after_usec, REPAIR_SIGHT_USEC));
        if (!trouble && repairs_now(r) < settled) {
                trouble = "this coordinator's view of the cluster has only just become whole";
                mark_repairs(r, settled);
        }
        if (is_kept_by_people(r, n, pool))
                hold_for_people(r, c, pool);
        else if (trouble)
                hold_case(r, c, pool, "ViewNotHealthy", strf("Node %s waits to be repaired: %s", c->node, trouble));
        else if (!repair_brake_has(r->brake, n->object.meta.uid) && !repair_brake_admits(r->brake, &d, &limit))
                hold_case(r, c, pool, "SlowStart", full_domain_message(c->node, &d, &limit));
        else if (v.rule->action == REPAIR_ACTION_REBOOT)
                repair_reboot_begin(r, c, n, pool, &d, &v); /* the budgets are asked for its slot */
        else if (is_announced(r, c, n, pool, &v) && may_replace(r, c, n, pool))
                repair_node(r, c, n, pool, &d, &v);
}

void repairs_on_ended(const char *node_uid, bool proved, void *userdata) {
        Repairs *r = userdata;
        RepairCase *c;

        metrics_add(r->context->metrics, METRIC_REPAIRS, proved ? REPAIR_PROVED : REPAIR_FAILED, 1);
        if (proved)
                log_info(r->context->env->log,
                         "The repair of the node that had the uid %s is proved: its successor is well, or the node itself is after its reboot", node_uid);
        else
                log_warning(r->context->env->log,
                            "The repair of the node that had the uid %s has failed: no successor is well in time, nor the node itself after a reboot. "
                            "In its NodePool and its zone one node is repaired at a time again",
                            node_uid);
        HASHMAP_FOREACH (c, r->cases)
                if (c->boot_id && streq(repair_sight_uid(c->sight), node_uid)) {
                        bool failed = !proved && c->reboot == REPAIR_REBOOT_ASKED;

                        if (failed)
                                repair_reboot_report_failed(r, c);
                        repair_reboot_end(r, c, failed ? REPAIR_REBOOT_FAILED : REPAIR_REBOOT_NONE);
                }
}

static int order_of_cases(const void *a, const void *b) {
        const RepairCase *x = *(const RepairCase *const *) a, *y = *(const RepairCase *const *) b;

        if (x->due_usec != y->due_usec)
                return x->due_usec < y->due_usec ? -1 : 1;
        return strcmp(x->node, y->node);
}

/* Those that are due, or to be announced, the oldest first; the next time when one is. NULL: want of memory, or none. */
static RepairCase **due_cases(Repairs *r, size_t *ret_n, usec_t *ret_next) {
        RepairCase **list = hashmap_size(r->cases) > 0 ? new0(RepairCase *, hashmap_size(r->cases)) : NULL;
        RepairCase *c;

        *ret_n = 0;
        *ret_next = USEC_INFINITY;
        if (!list && hashmap_size(r->cases) > 0)
                work_queue_note_lost(r->queue);
        HASHMAP_FOREACH (c, r->cases) {
                usec_t at = MAX(MIN(c->due_usec, c->announce_usec), c->not_before_usec);

                c->waits = false;
                if (at > repairs_now(r))
                        *ret_next = MIN(*ret_next, at);
                else if (list)
                        list[(*ret_n)++] = c;
        }
        if (*ret_n > 1)
                qsort(list, *ret_n, sizeof(*list), order_of_cases);
        return list;
}

void repairs_reconcile(Repairs *r) {
        const char *trouble = repairs_view_trouble(r);
        _cleanup_free_ RepairCase **due = NULL;
        usec_t next, ends;
        size_t n;

        /* What is not seen neither proves nor fails. */
        ends = trouble ? USEC_INFINITY : repair_brake_step(r->brake, repairs_now(r), repairs_on_ended, r);
        due = due_cases(r, &n, &next);
        begin_holds(r);
        note_looks(r);
        for (size_t i = 0; i < n; i++)
                reconcile_case(r, due[i], trouble);
        tell_holds(r);
        mark_repairs(r, MIN(next, ends));
        if (n > 0 || (trouble && repair_brake_n_under_way(r->brake) > 0))
                mark_repairs(r, usec_add(repairs_now(r), REPAIRS_AGAIN_USEC));
}

bool repairs_has_deleted(const Repairs *r, const char *node_uid) {
        return repair_brake_has(r->brake, node_uid); /* the deletion of a Node has ended its reboot */
}

void repairs_count(const Repairs *r, size_t *ret_waiting, size_t *ret_under_way) {
        const RepairCase *c;

        *ret_waiting = 0;
        HASHMAP_FOREACH (c, r->cases)
                *ret_waiting += c->waits;
        *ret_under_way = repair_brake_n_under_way(r->brake);
}

/* -- life ----------------------------------------------------------------------------------------------- */

int repairs_new(const TerminationContext *context, WorkQueue *queue, PoolStatuses *pool_statuses, Successors *successors,
                Repairs **ret) {
        _cleanup_(repairs_freep) Repairs *r = new0(Repairs, 1);
        const KubeNode *n;
        int k;

        if (!r)
                return -ENOMEM;
        r->context = context;
        r->queue = queue;
        r->pool_statuses = pool_statuses;
        r->successors = successors;
        r->stands = cluster_view_healthy(context->view);
        r->healthy_usec = repairs_now(r);
        k = repair_brake_new(&r->brake);
        if (k >= 0)
                k = hashmap_new(HASHMAP_BORROW_KEYS, &r->cases);
        if (k >= 0)
                k = hashmap_new(HASHMAP_BORROW_KEYS, &r->holds);
        if (k < 0)
                return k;
        for (HashmapIterator it = {}; cluster_view_iterate_nodes(context->view, &it, &n);)
                if (n->object.meta.deletion_usec == 0)
                        see_node(r, n, true);
        *ret = TAKE_PTR(r);
        return 0;
}

Repairs *repairs_free(Repairs *r) {
        if (!r)
                return NULL;
        hashmap_free_with(r->holds, hold_free);
        hashmap_free_with(r->cases, case_free);
        repair_brake_free(r->brake);
        return mfree(r);
}

void repairs_next_wakeup(const Repairs *r, Wakeups *w) {
        const RepairCase *c;

        HASHMAP_FOREACH (c, r->cases) {
                usec_t at = MAX(MIN(c->due_usec, c->announce_usec), c->not_before_usec);

                if (c->asked)
                        machine_end_next_wakeup(c->asked, w);
                if (at == USEC_INFINITY)
                        continue;
                wakeups_unfinished(w, "repair of node", c->node, c->waits ? "held" : "",
                                   usec_add(usec_sub(at, repairs_now(r)), REPAIRS_WAKEUP_USEC));
                wakeups_key(w, r->queue, REPAIRS_KEY);
        }
        if (repair_brake_n_under_way(r->brake) == 0)
                return;
        wakeups_unfinished(w, "proof of", "repairs", "", REPAIRS_PROOF_WAKEUP_USEC);
        wakeups_key(w, r->queue, REPAIRS_KEY);
}
