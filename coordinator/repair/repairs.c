/* SPDX-License-Identifier: Apache-2.0 */
#include "repairs.h"

#include "coordinator-metrics.h"
#include "hashmap.h"
#include "heard-rule.h"
#include "interruption.h"
#include "log-catalog.h"
#include "log.h"
#include "machine-look.h"
#include "marks.h"
#include "pauses.h"
#include "reboot-slots.h"
#include "repair-brake.h"
#include "repair-sight.h"
#include "string-util.h"
#include "termination-marks.h"
#include "voluntary-deletes.h"

#define LABEL_ZONE "topology.kubernetes.io/zone"
/* What waits for our view or for room is looked at again after so long, whatever happens. */
#define AGAIN_USEC (30 * USEC_PER_SEC)
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

/* The reboot that repairs a node:
 *
 *      NONE --a rule is due--> ASKED --why_taken_back()--> TAKEN_BACK --it holds no slot, or its repair ends--> NONE
 *       | ^                     |  |
 *       | +-------proved--------+  +--failed--> FAILED --well for five minutes, or its case ends--> NONE
 *       +--the node says no boot id---------------^
 */
typedef enum RepairReboot {
        REPAIR_REBOOT_NONE,
        REPAIR_REBOOT_ASKED,
        REPAIR_REBOOT_TAKEN_BACK, /* the request goes; the place is kept until it is sure that the machine is not rebooted for that */
        REPAIR_REBOOT_FAILED,     /* rules that say Reboot are passed over */
} RepairReboot;

/* A node that some rule of its pool matches, or that was rebooted not long ago. */
typedef struct Case {
        char *node;
        RepairSight *sight;
        usec_t due_usec; /* loop_now(); USEC_INFINITY: no rule asks for anything now */
        usec_t not_before_usec; /* loop_now(): decide again at the earliest then; 0: at once */
        RepairReboot reboot;
        char *boot_id; /* that a reboot is to end; NULL in NONE and FAILED */
        bool waits;    /* due, and held */
        bool refused;  /* the API server refused its deletion last: its begin was counted and reported */
        bool has_asked; /* its agent was seen to ask for the slot of this reboot */
        usec_t well_usec;      /* loop_now(): since when it is well, after a reboot; USEC_INFINITY: it is not, or was not rebooted */
        usec_t announce_usec;  /* loop_now(): when its replacement is to be announced; USEC_INFINITY: not, or it was */
        usec_t announced_usec; /* loop_now(): when it was; 0: not yet */
        struct Repairs *owner;
        MachineEnd *asked;  /* a question about its machine, under way (machine-look.h); NULL: none is */
        usec_t asked_usec;  /* loop_now() */
        MachineLook look;   /* the provider's last answer */
        usec_t look_usec;   /* loop_now(): when that question was asked; 0: no answer yet */
        char *look_problem; /* of MACHINE_LOOK_UNKNOWN: the provider's error */
} Case;

/* Why nodes of a pool are not repaired now: the first of them stands for all. */
typedef struct Hold {
        char *pool;
        const char *reason; /* NULL: nothing is held any more */
        char *message;
        size_t n_more;
} Hold;

struct Repairs {
        const TerminationContext *context;
        WorkQueue *queue;
        PoolStatuses *pool_statuses;
        RepairBrake *brake;
        Hashmap *cases; /* by node */
        Hashmap *holds; /* by pool; those that are told */
        bool stands;
        usec_t heartbeat_usec; /* loop_now(): when one moved last; 0: none has */
        usec_t lost_usec;      /* loop_now(): when the last of its watches went down */
        usec_t healthy_usec;   /* loop_now(): since when the view is healthy, but for moments */
        size_t n_asked;        /* questions about machines under way, as of this pass */
};

static void *case_free(void *p) {
        Case *c = p;

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

static usec_t now_of(const Repairs *r) {
        return loop_now(r->context->env->loop);
}

static void mark_repairs(Repairs *r, usec_t at_usec) {
        if (at_usec == USEC_INFINITY)
                return;
        (void) work_queue_add_at(r->queue, REPAIRS_KEY, MAX(at_usec, now_of(r)));
}

/* -- our view ------------------------------------------------------------------------------------------- */

/* NULL: it is healthy; else what people may read. */
static const char *view_trouble(const Repairs *r) {
        usec_t now = now_of(r);

        if (!r->stands || !cluster_view_synced(r->context->view))
                return "this coordinator's own watches of the cluster are down";
        if (r->heartbeat_usec == 0 || usec_sub(now, r->heartbeat_usec) > REPAIR_HEARTBEAT_USEC)
                return "no Node's heartbeat has moved for ten minutes, so kubelets may be cut off from the API server";
        return NULL;
}

void repairs_view_changed(Repairs *r, bool stands) {
        if (!stands && r->stands)
                r->lost_usec = now_of(r);
        else if (stands && !r->stands && usec_sub(now_of(r), r->lost_usec) >= LOST_USEC)
                r->healthy_usec = now_of(r);
        r->stands = stands;
        mark_repairs(r, now_of(r));
}

static void on_heartbeat(Repairs *r) {
        usec_t now = now_of(r);

        if (r->heartbeat_usec == 0 || usec_sub(now, r->heartbeat_usec) > REPAIR_HEARTBEAT_USEC)
                r->healthy_usec = now;
        r->heartbeat_usec = now;
        if (r->healthy_usec == now)
                mark_repairs(r, now);
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

static int case_new(Repairs *r, const KubeNode *n, usec_t born_usec, Case **ret) {
        Case *c = new0(Case, 1);
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
static void case_drop(Repairs *r, Case *c, const KubeNode *n) {
        bool waited = c->waits;

        /* Nobody follows its reboot any more; and the node has changed since a deletion was sent that the API server has not done. */
        if (c->boot_id || n)
                repair_brake_cancel(r->brake, repair_sight_uid(c->sight));

        hashmap_remove(r->cases, c->node);
        case_free(c);
        if (waited)
                mark_repairs(r, now_of(r));
}

static void mark_node(Repairs *r, const char *name, usec_t at_usec) {
        _cleanup_free_ char *key = strf("node/%s", name);

        if (!key || work_queue_add_at(r->queue, key, at_usec) < 0)
                work_queue_note_lost(r->queue);
}

static bool holds_reboot_slot(const Repairs *r, const KubeNode *n) {
        RebootCase c = {};
        bool holds = reboot_case_read(n, loop_wall(r->context->env->loop), r->context->config->reboot_slot_usec, &c) < 0 ||
                     c.request_state == REBOOT_REQUEST_HOLDS_SLOT;

        reboot_case_done(&c);
        return holds;
}

static bool is_left_alone(const Repairs *r, const KubeNode *n, const KubeNodeClaim *claim) {
        return !claim || claim->object.meta.deletion_usec > 0 || n->object.meta.deletion_usec > 0 ||
               !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) || repair_is_vetoed(n) || kube_node_standing_interruption(n) ||
               heard_is_awaited(n, loop_wall(r->context->env->loop)) ||
               holds_reboot_slot(r, n);
}

/* -- reboots -------------------------------------------------------------------------------------------- */

static const char *reboot_asked_of(const KubeNode *n) {
        return object_meta_annotation(&n->object.meta, ANNOTATION_REBOOT_FOR_REPAIR);
}

/* The boot id that the node was asked to end, as its claim says; NULL: it was not, or was well for long enough since. */
static const char *reboot_recorded_on(const KubeNodeClaim *claim) {
        return claim ? object_meta_annotation(&claim->object.meta, ANNOTATION_REBOOTED_FOR_REPAIR) : NULL;
}

static bool was_rebooted(const KubeNode *n, const KubeNodeClaim *claim) {
        const char *ended = reboot_recorded_on(claim);

        return boot_id_differs(ended, n->boot_id);
}

static int case_judge(const Repairs *r, Case *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool, RepairVerdict *ret) {
        repair_sight_set_rebooted(c->sight, c->reboot == REPAIR_REBOOT_FAILED || was_rebooted(n, claim));
        return repair_sight_look(c->sight, pool, n, now_of(r), ret);
}

/* boot_id NULL: takes the annotation off. False: the write could not be sent. */
static bool write_annotation(Repairs *r, const KubeNode *n, const char *what, const KubeKind *kind, const KubeObject *o, const char *annotation,
                             const char *boot_id) {
        _cleanup_free_ char *key = strf("node/%s", n->object.meta.name), *body = NULL;
        ObjectWrite w = { .what = what,
                          .target = { .kind = kind, .name = o->meta.name },
                          .state = o->meta.resource_version,
                          .reconcile_key = key };

        if (!key || termination_annotation_patch(o, annotation, boot_id, &body) < 0) {
                work_queue_note_lost(r->queue);
                return false;
        }
        return body && object_writes_patch(r->context->writes, &w, KUBE_PATCH_MERGE, body) > 0;
}

static bool write_request(Repairs *r, const KubeNode *n, const char *boot_id) {
        return write_annotation(r, n, "write the request for a reboot on", &kube_node_kind, &n->object, ANNOTATION_REBOOT_FOR_REPAIR, boot_id);
}

static bool write_record(Repairs *r, const KubeNode *n, const KubeNodeClaim *claim, const char *boot_id) {
        return write_annotation(r, n, "write the reboot of a repair on", &kube_node_claim_kind, &claim->object, ANNOTATION_REBOOTED_FOR_REPAIR, boot_id);
}

static void see_rebooted(Repairs *r, const Case *c, const KubeNode *n, const KubeNodePool *pool) {
        repair_brake_see_rebooted(r->brake, n->object.meta.uid, n->boot_id, kube_node_is_ready(n) && n->object.meta.deletion_usec == 0,
                                  repair_sight_ails(c->sight, pool), now_of(r));
}

/* Why the reboot that was asked for is not to be any more; NULL: it is. */
static const char *why_taken_back(const Repairs *r, const Case *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        if (was_rebooted(n, claim))
                return "it was rebooted for that already, as its NodeClaim says";
        if (!repair_sight_ails(c->sight, pool))
                return "no rule of its NodePool asks for a repair any more";
        if (repair_is_vetoed(n))
                return "a person keeps the node from repair (" ANNOTATION_DO_NOT_REPAIR ", " ANNOTATION_KARPENTER_DO_NOT_REPAIR " or " ANNOTATION_UNMANAGED ")";
        if (repair_is_cordoned_by_a_person(n))
                return "the node was cordoned by a person or a tool, who may be at work on its machine";
        if (!reboot_asked_of(n) && is_left_alone(r, n, claim))
                return "the node is interrupted, being removed, or in a slot to reboot";
        return NULL;
}

#define ASKED_AGAIN "It is asked again when that is over and a rule of its NodePool is due still"

static void take_back(Repairs *r, Case *c, const KubeNode *n, const char *why) {
        const char *late = holds_reboot_slot(r, n) ? ". It has a slot: a reboot that has begun by now goes on" : "";
        EventObject o = event_object(&n->object);

        c->reboot = REPAIR_REBOOT_TAKEN_BACK;
        event_record(r->context->recorder, &o, EVENT_NORMAL, "NodeRepair",
                     "Not asking its agent any more to reboot it: %s%s. " ASKED_AGAIN, why, late);
        log_event(r->context->env->log, LOG_LEVEL_NOTICE, MESSAGE_REPAIR_REBOOT_TAKEN_BACK, LOG_FIELDS({ "NODE", c->node }),
                  "Node %s: not asking its agent any more to reboot it: %s%s. " ASKED_AGAIN, c->node, why, late);
}

/* Ends the reboot. state: REPAIR_REBOOT_NONE or _FAILED. */
static void end_reboot(Repairs *r, Case *c, RepairReboot state) {
        c->reboot = state;
        c->boot_id = mfree(c->boot_id);
        c->not_before_usec = 0;
        mark_node(r, c->node, now_of(r));
}

/* The claim says first that the node is rebooted. A leader whose view of the claim is old cannot write there, and asks for no reboot. */
static void ask_agent(Repairs *r, Case *c, const KubeNode *n, const KubeNodeClaim *claim) {
        if (!streq_ptr(reboot_recorded_on(claim), c->boot_id))
                (void) write_record(r, n, claim, c->boot_id);
        else if (!reboot_asked_of(n) && write_request(r, n, c->boot_id))
                c->not_before_usec = usec_add(now_of(r), REPAIR_TAKEN_UP_USEC);
}

static bool asks_to_reboot(const Repairs *r, const KubeNode *n) {
        RebootCase c = {};
        bool asks = reboot_case_read(n, loop_wall(r->context->env->loop), r->context->config->reboot_slot_usec, &c) < 0 ||
                    c.request_state == REBOOT_REQUEST_WAITING || c.request_state == REBOOT_REQUEST_HOLDS_SLOT;

        reboot_case_done(&c);
        return asks;
}

/* Follows the reboot that a node is asked for. */
static void see_reboot(Repairs *r, Case *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        const char *why;

        see_rebooted(r, c, n, pool);
        c->has_asked = c->has_asked || asks_to_reboot(r, n);
        if (!boot_id_equal(c->boot_id, n->boot_id))
                return;
        why = c->reboot == REPAIR_REBOOT_ASKED ? why_taken_back(r, c, n, claim, pool) : NULL;
        if (why)
                take_back(r, c, n, why);
        if (c->reboot == REPAIR_REBOOT_ASKED)
                ask_agent(r, c, n, claim);
        else if (!holds_reboot_slot(r, n)) {
                repair_brake_cancel(r->brake, repair_sight_uid(c->sight));
                end_reboot(r, c, REPAIR_REBOOT_NONE);
                c->not_before_usec = usec_add(now_of(r), AGAIN_USEC); /* a veto may come and go often */
        }
}

/* Removes the record of the reboot once the node has been well for REPAIR_PROOF_USEC: a later fault may be repaired by a reboot again. */
static void forget_reboot(Repairs *r, Case *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        usec_t now = now_of(r), over;

        if (!reboot_recorded_on(claim) || !kube_node_is_ready(n) || repair_sight_ails(c->sight, pool)) {
                c->well_usec = USEC_INFINITY;
                return;
        }
        c->well_usec = MIN(c->well_usec, now);
        over = usec_add(c->well_usec, REPAIR_PROOF_USEC);
        if (view_trouble(r))
                over = MAX(over, usec_add(now, AGAIN_USEC));
        if (now < over) {
                mark_node(r, c->node, over);
                return;
        }
        if (c->boot_id) /* its repair is about to be proved */
                return;
        c->reboot = REPAIR_REBOOT_NONE;
        (void) write_record(r, n, claim, NULL);
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
        Case *c;

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
                see_rebooted(r, c, new, pool);
        }
        if (repair_brake_see_node(r->brake, new->object.meta.uid, !same, pool ? pool->object.meta.name : NULL,
                                  is_well(new, pool), now_of(r)) < 0)
                work_queue_note_lost(r->queue);
        if (!same || is_well(old, pool) != is_well(new, pool))
                mark_repairs(r, now_of(r));
}

/* was_there: before us. */
static void see_node(Repairs *r, const KubeNode *n, bool was_there) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(r->context->view, n);
        const KubeNodePool *pool = pool_of_node(r, n, claim);
        Case *c = hashmap_get(r->cases, n->object.meta.name);
        RepairVerdict v = {};
        int k;

        if (c && (!pool || !streq(repair_sight_uid(c->sight), n->object.meta.uid))) {
                case_drop(r, c, NULL);
                c = NULL;
        }
        if (!pool || (!c && !reboot_recorded_on(claim) && !repair_rules_match(pool, n)))
                return;
        if (!c && case_new(r, n, was_there ? born(r, n, claim) : USEC_INFINITY, &c) < 0) {
                work_queue_note_lost(r->queue);
                return;
        }
        k = case_judge(r, c, n, claim, pool, &v);
        if (k < 0)
                work_queue_note_lost(r->queue);
        if (c->boot_id)
                see_reboot(r, c, n, claim, pool);
        if (k >= 0)
                forget_reboot(r, c, n, claim, pool);
        if (k == REPAIR_SIGHT_CLEAR && !c->boot_id && !reboot_recorded_on(claim)) {
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
                mark_repairs(r, c->due_usec == USEC_INFINITY ? now_of(r) : MIN(c->due_usec, c->announce_usec));
}

/* The agent withdraws its request for a slot, and says that the Events tell why. */
static void tell_new_leader(Repairs *r, const KubeNode *n) {
        EventObject o = event_object(&n->object);

        event_record(r->context->recorder, &o, EVENT_NORMAL, "NodeRepair",
                     "The request of an earlier leader to reboot this node is taken off. The coordinator that leads now counts the fault anew, and asks again if "
                     "it lasts and the node was not rebooted for it");
}

/* Removes the request from the Node unless this leader still asks for that reboot. */
static void tidy_request(Repairs *r, const KubeNode *n) {
        const char *asked = reboot_asked_of(n);
        const Case *c = hashmap_get(r->cases, n->object.meta.name);

        if (!asked || !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) ||
            (c && boot_id_equal(c->boot_id, asked) && boot_id_equal(n->boot_id, asked) && c->reboot == REPAIR_REBOOT_ASKED))
                return;
        if (write_request(r, n, NULL) && !(c && c->boot_id))
                tell_new_leader(r, n);
}

void repairs_see_node(Repairs *r, const char *name, const KubeNode *n) {
        Case *c = hashmap_get(r->cases, name);

        if (n && n->object.meta.deletion_usec == 0) {
                see_node(r, n, false);
                tidy_request(r, n);
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
static void hold_case(Repairs *r, Case *c, const KubeNodePool *pool, const char *reason, char *message) {
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
                _cleanup_free_ char *more = h->n_more > 0 ? strf("%s; and %zu more nodes wait", h->message, h->n_more) : NULL;

                if (!pool_statuses_set_repair_held(r->pool_statuses, h->pool, h->reason, more ? more : h->message))
                        mark_repairs(r, usec_add(now_of(r), USEC_PER_SEC));
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
        Case *c = hashmap_get(r->cases, name);

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
        mark_repairs(r, usec_add(now_of(r), USEC_PER_SEC));
}

/* "its condition Ready is Unknown, NodeStatusUnknown, for 15min" */
static char *showing(const Repairs *r, const KubeNode *n, const RepairVerdict *v) {
        const Condition *k = kube_node_condition(n, v->rule->condition);
        char since[DURATION_MAX];

        duration_format(usec_sub(now_of(r), v->since_usec) / USEC_PER_SEC * USEC_PER_SEC, since);
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

static void note_begun(Repairs *r, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        metrics_add(r->context->metrics, METRIC_REPAIRS, REPAIR_BEGUN, 1);
        tell_repair(r, n, pool, v);
}

static void repair_node(Repairs *r, Case *c, const KubeNode *n, const KubeNodePool *pool, const RepairDomains *d, const RepairVerdict *v) {
        _cleanup_free_ char *key = strf("node/%s", c->node);
        ObjectWrite w = { .what = "delete, to repair it, the",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key,
                          .written = on_written,
                          .userdata = r };

        int k;

        /* A deletion that was not answered is sent again in its place. */
        k = repair_brake_begin(r->brake, n->object.meta.uid, NULL, d, now_of(r));
        if (!key || (k < 0 && k != -EEXIST)) {
                work_queue_note_lost(r->queue);
                return;
        }
        if (object_writes_delete(r->context->writes, &w, n->object.meta.uid, n->object.meta.resource_version) <= 0) {
                if (k >= 0)
                        repair_brake_cancel(r->brake, n->object.meta.uid);
                return;
        }
        c->not_before_usec = usec_add(now_of(r), SENT_USEC);
        if (k >= 0 && !c->refused)
                note_begun(r, n, pool, v);
        c->refused = false;
}

/* Its agent takes it from there. */
static void reboot_node(Repairs *r, Case *c, const KubeNode *n, const KubeNodePool *pool, const RepairDomains *d, const RepairVerdict *v) {
        int k;

        if (!n->boot_id) { /* nobody could tell that it has booted */
                c->reboot = REPAIR_REBOOT_FAILED;
                return;
        }
        if (reboot_asked_of(n)) /* an earlier request is being taken off */
                return;
        k = free_and_strdup(&c->boot_id, n->boot_id);
        if (k >= 0)
                k = repair_brake_begin(r->brake, n->object.meta.uid, n->boot_id, d, now_of(r));
        if (k < 0 && k != -EEXIST) {
                c->boot_id = mfree(c->boot_id);
                work_queue_note_lost(r->queue);
                return;
        }
        c->reboot = REPAIR_REBOOT_ASKED;
        c->has_asked = false;
        c->not_before_usec = usec_add(now_of(r), REPAIR_TAKEN_UP_USEC);
        if (k >= 0)
                note_begun(r, n, pool, v);
        mark_node(r, c->node, now_of(r));
}

static void on_ended(const char *node_uid, bool proved, void *userdata);

/* A reboot is under way: until it is proved or has failed its agent has to have asked for it. */
static void follow_reboot(Repairs *r, Case *c, const KubeNode *n) {
        c->not_before_usec = usec_add(now_of(r), AGAIN_USEC);
        if (!boot_id_equal(c->boot_id, n->boot_id) || asks_to_reboot(r, n))
                return;
        if (c->reboot == REPAIR_REBOOT_ASKED && reboot_asked_of(n))
                repair_brake_fail(r->brake, repair_sight_uid(c->sight), now_of(r), on_ended, r);
        else /* the request is not written yet, or not taken off */
                mark_node(r, c->node, now_of(r));
}

static char *full_domain_message(const char *node, const RepairDomains *d, const RepairLimit *limit) {
        return strf("Node %s waits to be repaired: %zu of %zu repairs are under way in %s %s. More are begun at once when these are proved "
                    "by nodes that come and are well for five minutes",
                    node, limit->n_under_way, limit->n_at_once, repair_domain_names[limit->kind], d->names[limit->kind]);
}

/* -- a machine that is not to be ended ------------------------------------------------------------------ */

static void on_look(MachineEnd *m, void *userdata) {
        const Case *c = userdata;

        mark_repairs(c->owner, now_of(c->owner));
}

static void note_looks(Repairs *r) {
        Case *c;

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
static bool ask_for_look(Repairs *r, Case *c, const KubeNode *n) {
        int k;

        if (r->n_asked >= LOOKS_MAX)
                return true; /* an answer brings us back */
        c->asked_usec = now_of(r);
        k = machine_look_ask(r->context, n, on_look, c, &c->asked);
        if (k < 0)
                work_queue_note_lost(r->queue);
        r->n_asked += k > 0;
        return k != 0;
}

/* Returns true if the machine of a node that is not Ready may be ended. False: the provider has not answered yet, or the case is held. */
static bool machine_may_end(Repairs *r, Case *c, const KubeNode *n, const KubeNodePool *pool) {
        bool held, stands;

        held = c->look_usec > 0 && (c->look == MACHINE_LOOK_OFF || c->look == MACHINE_LOOK_UNKNOWN);
        stands = c->look_usec > 0 && usec_sub(now_of(r), c->look_usec) <= (held ? OFF_USEC : RUNS_USEC);
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
static usec_t may_begin(const Case *c, const RepairVerdict *v) {
        if (v->rule->action != REPAIR_ACTION_REPLACE)
                return v->due_usec;
        return MAX(v->due_usec, usec_add(c->announced_usec, MIN(v->rule->after_usec / 3, ANNOUNCED_USEC)));
}

static void announce(Repairs *r, Case *c, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        _cleanup_free_ char *shows = showing(r, n, v);
        char left[DURATION_MAX], after[DURATION_MAX];
        EventObject o = event_object(&n->object);

        c->announced_usec = now_of(r);
        c->announce_usec = USEC_INFINITY;
        duration_format(usec_sub(usec_add(may_begin(c, v), USEC_PER_SEC - 1), now_of(r)) / USEC_PER_SEC * USEC_PER_SEC, left);
        duration_format(v->rule->after_usec, after);
        event_record(r->context->recorder, &o, EVENT_WARNING, "NodeRepairAnnounced",
                     "If nothing changes, vesper deletes this Node in %s, to be replaced, and ends its machine: %s, and NodePool %s has that repaired "
                     "after %s. To keep it: kubectl cordon %s, or kubectl annotate node %s " ANNOTATION_DO_NOT_REPAIR "=true",
                     left, strempty(shows), pool->object.meta.name, after, c->node, c->node);
}

/* Returns true if it may begin as far as people are concerned: they were told, and have had the time to say no. */
static bool is_announced(Repairs *r, Case *c, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v) {
        if (repair_brake_has(r->brake, repair_sight_uid(c->sight)))
                return true;
        if (c->announced_usec == 0)
                announce(r, c, n, pool, v);
        if (now_of(r) >= may_begin(c, v))
                return true;
        mark_repairs(r, may_begin(c, v));
        return false;
}

static bool may_replace(Repairs *r, Case *c, const KubeNode *n, const KubeNodePool *pool) {
        if (kube_node_is_ready(n))
                return voluntary_delete_is_admitted(r->context->deletes, n, pool, "it is to be repaired", REPAIRS_KEY);
        return machine_may_end(r, c, n, pool);
}

/* Returns true if a person keeps the node from repair. */
static bool is_kept_by_people(const Repairs *r, const KubeNode *n, const KubeNodePool *pool) {
        return pauses_is_paused(r->context->pauses, pool) || repair_is_cordoned_by_a_person(n);
}

static void hold_for_people(Repairs *r, Case *c, const KubeNodePool *pool) {
        if (pauses_is_paused(r->context->pauses, pool))
                hold_case(r, c, pool, "Paused",
                          strf("Node %s waits to be repaired: a person has paused removals (" ANNOTATION_PAUSED ")", c->node));
        else
                hold_case(r, c, pool, "Cordoned",
                          strf("Node %s waits to be repaired: it was cordoned by a person or a tool, who may be at work on its machine. kubectl uncordon %s, "
                               "and it is repaired; if it is to go now, kubectl delete node %s",
                               c->node, c->node, c->node));
}

static void reconcile_case(Repairs *r, Case *c, const char *trouble) {
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
                follow_reboot(r, c, n);
                return;
        }
        if (is_left_alone(r, n, claim) || case_judge(r, c, n, claim, pool, &v) != REPAIR_SIGHT_DUE)
                return;
        if (v.due_usec > now_of(r)) {
                if (c->announce_usec <= now_of(r) && !trouble && !is_kept_by_people(r, n, pool))
                        announce(r, c, n, pool, &v);
                mark_repairs(r, v.due_usec);
                return;
        }
        d = (RepairDomains){ .names = { [REPAIR_DOMAIN_POOL] = pool->object.meta.name,
                                        [REPAIR_DOMAIN_ZONE] = object_meta_label(&n->object.meta, LABEL_ZONE),
                                        [REPAIR_DOMAIN_CONDITION] = v.rule->condition } };
        settled = usec_add(r->healthy_usec, MIN(v.rule->after_usec, REPAIR_SIGHT_USEC));
        if (!trouble && now_of(r) < settled) {
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
                reboot_node(r, c, n, pool, &d, &v); /* the budgets are asked for its slot */
        else if (is_announced(r, c, n, pool, &v) && may_replace(r, c, n, pool))
                repair_node(r, c, n, pool, &d, &v);
}

static const char *why_reboot_failed(const Repairs *r, const Case *c, const KubeNode *n) {
        if (!boot_id_equal(c->boot_id, n->boot_id))
                return "It was rebooted to be repaired, and is not well: it is not Ready, or shows what a rule of its NodePool is about";
        if (holds_reboot_slot(r, n))
                return "It has a slot to reboot, and was not rebooted within half an hour: its agent waits for pods, of which its journal tells (journalctl -u vesper-agent)";
        if (asks_to_reboot(r, n))
                return "It was to be rebooted, and has not got a slot within half an hour. Events of the Node say why";
        if (c->has_asked)
                return "It was to be rebooted, and its agent has taken its request for a slot back: its journal says why (journalctl -u vesper-agent)";
        return "It was to be rebooted, and its agent has not asked for a slot within five minutes: it is away, or set to RepairReboots=no";
}

static void tell_reboot_failed(Repairs *r, const Case *c) {
        const KubeNode *n = cluster_view_node(r->context->view, c->node);
        EventObject o;

        if (!n)
                return;
        o = event_object(&n->object);
        event_record(r->context->recorder, &o, EVENT_WARNING, "NodeRepair",
                     "%s. It is not asked again for what it shows. If a rule of its NodePool with action Replace matches, that decides next; else the node stays "
                     "as it is, and 'kubectl delete node %s' has it replaced",
                     why_reboot_failed(r, c, n), c->node);
        log_warning(r->context->env->log, "Node %s: %s", c->node, why_reboot_failed(r, c, n));
}

static void on_ended(const char *node_uid, bool proved, void *userdata) {
        Repairs *r = userdata;
        Case *c;

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
                                tell_reboot_failed(r, c);
                        end_reboot(r, c, failed ? REPAIR_REBOOT_FAILED : REPAIR_REBOOT_NONE);
                }
}

static int order_of_cases(const void *a, const void *b) {
        const Case *x = *(const Case *const *) a, *y = *(const Case *const *) b;

        if (x->due_usec != y->due_usec)
                return x->due_usec < y->due_usec ? -1 : 1;
        return strcmp(x->node, y->node);
}

/* Those that are due, or to be announced, the oldest first; the next time when one is. NULL: want of memory, or none. */
static Case **due_cases(Repairs *r, size_t *ret_n, usec_t *ret_next) {
        Case **list = hashmap_size(r->cases) > 0 ? new0(Case *, hashmap_size(r->cases)) : NULL;
        Case *c;

        *ret_n = 0;
        *ret_next = USEC_INFINITY;
        if (!list && hashmap_size(r->cases) > 0)
                work_queue_note_lost(r->queue);
        HASHMAP_FOREACH (c, r->cases) {
                usec_t at = MAX(MIN(c->due_usec, c->announce_usec), c->not_before_usec);

                c->waits = false;
                if (at > now_of(r))
                        *ret_next = MIN(*ret_next, at);
                else if (list)
                        list[(*ret_n)++] = c;
        }
        if (*ret_n > 1)
                qsort(list, *ret_n, sizeof(*list), order_of_cases);
        return list;
}

void repairs_reconcile(Repairs *r) {
        const char *trouble = view_trouble(r);
        _cleanup_free_ Case **due = NULL;
        usec_t next, ends;
        size_t n;

        /* What is not seen neither proves nor fails. */
        ends = trouble ? USEC_INFINITY : repair_brake_step(r->brake, now_of(r), on_ended, r);
        due = due_cases(r, &n, &next);
        begin_holds(r);
        note_looks(r);
        for (size_t i = 0; i < n; i++)
                reconcile_case(r, due[i], trouble);
        tell_holds(r);
        mark_repairs(r, MIN(next, ends));
        if (n > 0 || (trouble && repair_brake_n_under_way(r->brake) > 0))
                mark_repairs(r, usec_add(now_of(r), AGAIN_USEC));
}

void repairs_count(const Repairs *r, size_t *ret_waiting, size_t *ret_under_way) {
        const Case *c;

        *ret_waiting = 0;
        HASHMAP_FOREACH (c, r->cases)
                *ret_waiting += c->waits;
        *ret_under_way = repair_brake_n_under_way(r->brake);
}

/* -- life ----------------------------------------------------------------------------------------------- */

int repairs_new(const TerminationContext *context, WorkQueue *queue, PoolStatuses *pool_statuses, Repairs **ret) {
        _cleanup_(repairs_freep) Repairs *r = new0(Repairs, 1);
        const KubeNode *n;
        int k;

        if (!r)
                return -ENOMEM;
        r->context = context;
        r->queue = queue;
        r->pool_statuses = pool_statuses;
        r->stands = cluster_view_healthy(context->view);
        r->healthy_usec = now_of(r);
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
        const Case *c;

        HASHMAP_FOREACH (c, r->cases) {
                usec_t at = MAX(MIN(c->due_usec, c->announce_usec), c->not_before_usec);

                if (c->asked)
                        machine_end_next_wakeup(c->asked, w);
                if (at == USEC_INFINITY)
                        continue;
                wakeups_unfinished(w, "repair of node", c->node, c->waits ? "held" : "",
                                   usec_add(usec_sub(at, now_of(r)), REPAIRS_WAKEUP_USEC));
                wakeups_key(w, r->queue, REPAIRS_KEY);
        }
        if (repair_brake_n_under_way(r->brake) == 0)
                return;
        wakeups_unfinished(w, "proof of", "repairs", "", REPAIRS_PROOF_WAKEUP_USEC);
        wakeups_key(w, r->queue, REPAIRS_KEY);
}
