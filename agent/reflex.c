/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex.h"

#include "agent-metrics.h"
#include "drain-deadline.h"
#include "log.h"
#include "node-marks.h"
#include "node-report.h"
#include "policy.h"
#include "reflex-rule.h"
#include "reflex-wish.h"
#include "string-util.h"
#include "strv.h"

/* The kubelet reports volumes every 10 s when something changed; what has not moved for three of those does
 * not move soon. */
#define VOLUMES_STALL_USEC (30 * USEC_PER_SEC)

/* No pod is ended on the word of an older Node. Longer than node-report.h lets pass between two writes of a
 * drain that moves: only one that is held up reads besides. */
#define NODE_FRESH_USEC (15 * USEC_PER_SEC)

struct Reflex {
        ReflexContext c;
        NodeReport *report;
        ReflexState state;
        Notice *notice;
        usec_t answered_usec;       /* USEC_INFINITY: before this start */
        usec_t cordoned_usec;       /* when the notice was first seen for which the node is only cordoned */
        usec_t since_usec;          /* wall clock: when the drain began */
        usec_t lb_wait_usec;
        NodeDrain *drain;
        PodReturns *returns; /* of the drains of this start */
        Timer *timer;     /* LB_WAIT, VOLUMES */
        size_t n_volumes; /* when they changed last */
        bool expired_said, ending;
        bool only_cordon; /* in CORDONED: the pods stay */
        bool held;                    /* pods are not ended until the Node is read */
        DrainDeadline deadline;
};

static const char *const state_table[_REFLEX_STATE_MAX] = {
        [REFLEX_IDLE] = "Idle",       [REFLEX_PLANNED] = "Planned",   [REFLEX_CORDONED] = "Cordoned",
        [REFLEX_LB_WAIT] = "LBWait",  [REFLEX_DRAINING] = "Draining", [REFLEX_VOLUMES] = "Volumes",
        [REFLEX_DRAINED] = "Drained", [REFLEX_ENDING] = "Ending",     [REFLEX_CANCELLED] = "Cancelled",
};

#define TO(s) (1u << REFLEX_##s)

/* The diagram of reflex.h: edges[from] has bit `to`. IDLE also leads to where a restart finds it. */
static const unsigned edges[_REFLEX_STATE_MAX] = {
        [REFLEX_IDLE] = TO(PLANNED) | TO(CORDONED) | TO(DRAINING) | TO(DRAINED) | TO(CANCELLED),
        [REFLEX_PLANNED] = TO(CORDONED) | TO(CANCELLED),
        [REFLEX_CORDONED] = TO(LB_WAIT) | TO(DRAINING) | TO(CANCELLED),
        [REFLEX_LB_WAIT] = TO(DRAINING) | TO(CANCELLED),
        [REFLEX_DRAINING] = TO(VOLUMES) | TO(CANCELLED),
        [REFLEX_VOLUMES] = TO(DRAINING) | TO(DRAINED) | TO(CANCELLED),
        [REFLEX_DRAINED] = TO(ENDING) | TO(CANCELLED),
        [REFLEX_ENDING] = TO(DRAINED),
        [REFLEX_CANCELLED] = TO(IDLE),
};

static void reflex_enter_draining(Reflex *r);
static void reflex_enter_drained(Reflex *r);
static void reflex_enter_overruled(Reflex *r);
static void reflex_check_volumes(Reflex *r);

const char *reflex_state_to_string(ReflexState s) {
        return s >= 0 && s < _REFLEX_STATE_MAX ? state_table[s] : NULL;
}

ReflexState reflex_state(const Reflex *r) {
        return r->state;
}

const Notice *reflex_notice_now(const Reflex *r) {
        return r->notice;
}

usec_t reflex_only_cordoned_since(const Reflex *r) {
        return r->only_cordon && !r->ending && (r->state == REFLEX_PLANNED || r->state == REFLEX_CORDONED) ? r->cordoned_usec
                                                                                                         : USEC_INFINITY;
}

const KubeNode *reflex_node(const Reflex *r) {
        return node_report_view(r->report);
}

/* The only writer of the state. */
static void reflex_set_state(Reflex *r, ReflexState to, const char *reason) {
        assert(edges[r->state] & (1u << to));
        log_debug(r->c.env->log, "Interruption of node %s: %s -> %s: %s", r->c.config->node_name,
                  state_table[r->state], state_table[to], reason);
        metrics_set(r->c.metrics, AGENT_METRIC_PHASE, (size_t) r->state, 0);
        metrics_set(r->c.metrics, AGENT_METRIC_PHASE, (size_t) to, 1);
        timer_disarm(r->timer);
        r->state = to;
        node_voice_set_phase(r->c.voice, state_table[to]);
        if (r->c.on_state)
                r->c.on_state(r->c.userdata);
}

/* -- pods --------------------------------------------------------------------------------------- */

static bool iterate_pods(HashmapIterator *it, const KubePod **ret, void *userdata) {
        Reflex *r = userdata;
        KubeObject *o;

        if (!informer_iterate(r->c.pods, it, &o))
                return false;
        *ret = (const KubePod *) o;
        return true;
}

size_t reflex_pods_on_node(const Reflex *r) {
        const DrainRules rules = { .returns = r->returns };
        KubeObject *o;
        size_t n = 0;

        if (r->drain)
                return node_drain_pods_left(r->drain);
        if (!informer_synced(r->c.pods))
                return SIZE_MAX;
        INFORMER_FOREACH (o, r->c.pods)
                n += drain_waits_for((const KubePod *) o, &rules, loop_server_wall(r->c.env->loop));
        return n;
}

size_t reflex_pods_left(const Reflex *r) {
        const KubeNode *node = reflex_node(r);

        if (r->drain)
                return node_drain_pods_left(r->drain);
        if (r->state == REFLEX_IDLE || r->state >= REFLEX_DRAINED)
                return 0;
        if (!informer_synced(r->c.pods)) {
                const Interruption *i = node && node_is_marked_with(node, r->notice->id, r->c.env->boot_id) ? node_interruption(node) : NULL;

                return i && i->pods_left > 0 ? (size_t) i->pods_left : 0;
        }
        return reflex_pods_on_node(r);
}

/* -- the report --------------------------------------------------------------------------------- */

static NodeWish wish_of(const Reflex *r) {
        return reflex_wish(r->state, r->notice, r->only_cordon, reflex_pods_left(r));
}

static void reflex_report(Reflex *r) {
        NodeWish w = wish_of(r);

        if (node_report_mark(r->report, &w) < 0)
                log_warning(r->c.env->log, "Failed to report phase %s of node %s, ignoring: out of memory",
                            interruption_phase_to_string(w.phase), r->c.config->node_name);
        metrics_set(r->c.metrics, AGENT_METRIC_PODS_LEFT, 0, (double) w.pods_left);
        node_voice_set_status(r->c.voice, w.pods_left);
        if (r->c.on_state)
                r->c.on_state(r->c.userdata);
}

bool reflex_is_reported(const Reflex *r) {
        return node_report_is_done(r->report);
}

/* -- the drain ---------------------------------------------------------------------------------- */

bool reflex_waits_for_protected(const Reflex *r) {
        return r->notice && !r->ending && notice_waits_for_protected(r->notice);
}

static ProtectedPolicy protected_policy(const Reflex *r) {
        return reflex_waits_for_protected(r) ? PROTECTED_WAIT : PROTECTED_IGNORE;
}

/* The zero of the boot-time clock, by the wall clock as it is. */
static usec_t booted(const Reflex *r) {
        return loop_to_wall(r->c.env->loop, 0);
}

/* The same by the API server's clock, which the coordinator's T is of. */
static usec_t booted_by_server(const Reflex *r) {
        return loop_to_server_wall(r->c.env->loop, 0);
}

/* Boot-time clock. */
static usec_t drain_deadline(const Reflex *r) {
        return drain_deadline_at(&r->deadline, r->notice, booted_by_server(r));
}

usec_t reflex_deadline(const Reflex *r) {
        return r->notice ? loop_to_server_wall(r->c.env->loop, drain_deadline(r)) : USEC_INFINITY;
}

static usec_t wall_deadline(Reflex *r) {
        return drain_deadline_tell(&r->deadline, reflex_deadline(r));
}

static void on_drain_pod(NodeDrain *d, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                         const EvictionReport *report, void *userdata) {
        Reflex *r = userdata;

        switch (e) {
        case DRAIN_POD_EVICTED:
                node_voice_pod_evicted(r->c.voice, pod);
                break;
        case DRAIN_POD_BLOCKED:
                node_voice_pod_blocked(r->c.voice, pod, blocker, wall_deadline(r));
                break;
        case DRAIN_POD_DELETED:
                node_voice_pod_deleted(r->c.voice, pod, wall_deadline(r));
                break;
        case DRAIN_POD_STAYS:
                node_voice_pod_stays(r->c.voice, pod);
                break;
        case DRAIN_POD_LEFT_ALONE:
                node_voice_pod_left_alone(r->c.voice, pod);
                break;
        case DRAIN_POD_GONE:
                break;
        }
}

/* Only a machine that goes down is in such a hurry. */
static bool has_ended(const KubePod *pod, void *userdata) {
        Reflex *r = userdata;

        return r->ending && containers_have_ended(r->c.containers, pod->object.meta.uid);
}

/* The wall clock may have been set a moment ago, and that be told only in the next. */
static void before_drain_acts(NodeDrain *d, void *userdata) {
        node_drain_set_deadline(d, wall_deadline(userdata));
}

static void reflex_enter_volumes(Reflex *r) {
        reflex_set_state(r, REFLEX_VOLUMES, "no pod is left");
        r->n_volumes = SIZE_MAX;
        reflex_check_volumes(r);
}

static void on_drain_changed(NodeDrain *d, void *userdata) {
        Reflex *r = userdata;
        const DrainBlocker *blockers;
        size_t n;

        switch (node_drain_state(d)) {
        case NODE_DRAIN_DRAINED:
                if (r->state == REFLEX_DRAINING)
                        reflex_enter_volumes(r); /* may free the drain */
                return;
        case NODE_DRAIN_EXPIRED:
                blockers = node_drain_blockers(d, &n);
                if (!r->expired_said && n > 0) {
                        r->expired_said = true;
                        node_voice_expired(r->c.voice, blockers, n);
                }
                break;
        case NODE_DRAIN_DRAINING:
        case NODE_DRAIN_PROVING:
                break;
        case _NODE_DRAIN_STATE_MAX:
        case _NODE_DRAIN_STATE_INVALID:
                assert(false && "a drain in no state");
        }
        if (r->state == REFLEX_VOLUMES)
                reflex_set_state(r, REFLEX_DRAINING, "a pod came in between");
        reflex_report(r);
}

/* Waits for the pods' first list, without which nothing could be evicted. */
static void reflex_start_drain(Reflex *r) {
        const NodeDrainHandler handler = {
                .on_changed = on_drain_changed,
                .on_pod = on_drain_pod,
                .iterate = iterate_pods,
                .has_ended = has_ended,
                .before_act = before_drain_acts,
                .userdata = r,
        };
        const NodeDrainOptions options = {
                .node = r->c.config->node_name,
                .rules = {
                        .returns = r->returns,
                        .deadline_usec = wall_deadline(r),
                        .protected_policy = protected_policy(r),
                        .evict_first = true,
                },
        };

        if (r->drain || !informer_synced(r->c.pods))
                return;
        if (node_drain_new(r->c.client, r->c.evictor, &options, &handler, &r->drain) < 0) {
                log_error(r->c.env->log, "Failed to begin the drain of node %s, retrying: out of memory",
                          r->c.config->node_name);
                timer_arm_in(r->timer, USEC_PER_SEC);
                return;
        }
        node_drain_wake(r->drain);
}

static void reflex_enter_draining(Reflex *r) {
        size_t n = reflex_pods_left(r);

        reflex_set_state(r, REFLEX_DRAINING, "the node is cordoned");
        if (r->since_usec == 0)
                r->since_usec = loop_wall(r->c.env->loop);
        reflex_start_drain(r);
        intent_log_note(r->c.intents, r->notice, INTENT_DRAINING, r->since_usec);
        node_voice_draining(r->c.voice, n, wall_deadline(r));
        reflex_report(r);
}

/* -- volumes ------------------------------------------------------------------------------------ */

static void reflex_check_volumes(Reflex *r) {
        const KubeNode *view = reflex_node(r);
        size_t n = view ? strv_length(view->volumes_in_use) : 0;

        if (n == 0) {
                reflex_enter_drained(r);
                return;
        }
        if (n == r->n_volumes)
                return;
        if (r->n_volumes == SIZE_MAX)
                node_voice_volumes(r->c.voice, view->volumes_in_use);
        r->n_volumes = n;
        timer_arm_in(r->timer, VOLUMES_STALL_USEC);
        timer_arm_earlier(r->timer, drain_deadline(r));
}

/* May be called out of the drain, which it frees last. */
static void reflex_enter_drained(Reflex *r) {
        usec_t took = r->answered_usec == USEC_INFINITY
                              ? USEC_INFINITY
                              : usec_sub(loop_now(r->c.env->loop), r->answered_usec);
        NodeDrain *drain = TAKE_PTR(r->drain);

        reflex_set_state(r, REFLEX_DRAINED, "nothing that had to leave is left");
        if (took != USEC_INFINITY)
                metrics_observe(r->c.metrics, AGENT_METRIC_NOTICE_TO_DRAINED, 0,
                                (double) took / USEC_PER_SEC);
        reflex_report(r);
        node_voice_drained(r->c.voice, took);
        intent_log_note(r->c.intents, r->notice, INTENT_DRAINED, r->since_usec);
        if (r->ending)
                reflex_set_state(r, REFLEX_ENDING, "the machine goes down");
        node_drain_free(drain);
}

/* -- the beginning ------------------------------------------------------------------------------ */

static void go_on(Reflex *r) {
        if (!r->held)
                return;
        r->held = false;
        evictor_go_on(r->c.evictor);
        if (r->drain)
                node_drain_wake(r->drain);
}

static void reflex_leave_cordoned(Reflex *r) {
        r->only_cordon = false;
        if (r->lb_wait_usec > 0) {
                reflex_set_state(r, REFLEX_LB_WAIT, "load balancers let go");
                timer_arm_in(r->timer, r->lb_wait_usec);
                intent_log_note(r->c.intents, r->notice, INTENT_CORDONED, 0);
                reflex_report(r);
        } else
                reflex_enter_draining(r);
}

static void on_cordoned(NodeReport *report, usec_t sent_usec, bool claimed, void *userdata) {
        Reflex *r = userdata;
        usec_t now = loop_now(r->c.env->loop), delay = USEC_INFINITY;

        if (r->answered_usec != USEC_INFINITY && sent_usec > 0)
                delay = usec_sub(sent_usec, r->answered_usec);
        if (r->state != REFLEX_PLANNED) {
                /* The Node was made anew, or etcd restored. What has come meanwhile came onto an open node. */
                pod_returns_clear(r->returns);
                node_voice_cordoned(r->c.voice, USEC_INFINITY, claimed);
                go_on(r);
                return;
        }
        reflex_set_state(r, REFLEX_CORDONED, "acknowledged");
        /* The view may be older than the answer: marks of an earlier boot say nothing about this cordon. */
        if (!r->ending && node_was_uncordoned(reflex_node(r)) &&
            node_is_marked_with(reflex_node(r), r->notice->id, r->c.env->boot_id)) {
                reflex_enter_overruled(r);
                return;
        }
        if (r->answered_usec != USEC_INFINITY)
                metrics_observe(r->c.metrics, AGENT_METRIC_NOTICE_TO_CORDON, 0,
                                (double) usec_sub(now, r->answered_usec) / USEC_PER_SEC);
        node_voice_cordoned(r->c.voice, delay, claimed);
        if (r->only_cordon && !r->ending) {
                intent_log_note(r->c.intents, r->notice, INTENT_CORDONED, loop_to_wall(r->c.env->loop, r->cordoned_usec));
                reflex_report(r);
        } else
                reflex_leave_cordoned(r);
}

int reflex_begin(Reflex *r, const Notice *n, const Plan *plan, usec_t answered_usec) {
        NodeWish w;
        int k;

        assert(r->state == REFLEX_IDLE && plan->act >= PLAN_CORDON);
        k = notice_copy(n, &r->notice);
        if (k < 0)
                return k;
        r->answered_usec = r->cordoned_usec = answered_usec;
        r->since_usec = r->deadline.claim_usec = 0;
        r->lb_wait_usec = plan->lb_wait_usec;
        r->only_cordon = plan->act == PLAN_CORDON;
        r->expired_said = r->held = false;
        pod_returns_clear(r->returns);
        node_voice_set_notice(r->c.voice, r->notice);
        reflex_set_state(r, REFLEX_PLANNED, plan->why);
        w = wish_of(r);
        k = node_report_mark(r->report, &w);
        if (k < 0) {
                reflex_set_state(r, REFLEX_CANCELLED, "out of memory");
                reflex_set_state(r, REFLEX_IDLE, "out of memory");
                node_voice_set_notice(r->c.voice, NULL);
                r->notice = notice_free(r->notice);
                return k;
        }

        node_voice_notice_seen(r->c.voice, plan);
        node_voice_set_status(r->c.voice, w.pods_left);
        if (reflex_node(r))
                r->deadline.claim_usec = node_claim_deadline(reflex_node(r));
        return 0;
}

/* What the machine gives to its own shutdown is announced by this very clock, which may have been set. */
static void announce_own(Reflex *r) {
        if (r->notice->kind == NOTICE_SHUTDOWN && r->notice->deadline_usec != USEC_INFINITY)
                r->notice->announced_usec = loop_to_wall(r->c.env->loop, r->notice->deadline_usec);
}

int reflex_resume(Reflex *r, const Notice *n, IntentPhase phase, usec_t since_usec, bool only_cordon) {
        static const ReflexState states[_INTENT_PHASE_MAX] = {
                [INTENT_CORDONED] = REFLEX_CORDONED,
                [INTENT_DRAINING] = REFLEX_DRAINING,
                [INTENT_DRAINED] = REFLEX_DRAINED,
        };
        NodeWish w;
        int k;

        assert(r->state == REFLEX_IDLE && phase >= 0 && phase < INTENT_RELEASED);
        k = notice_copy(n, &r->notice);
        if (k < 0)
                return k;
        if (n->deadline_usec == USEC_INFINITY && n->announced_usec > 0) { /* an agent of before left it out */
                r->notice->deadline_usec = loop_from_wall(r->c.env->loop, n->announced_usec);
                r->notice->estimated = true;
        }
        announce_own(r);
        r->answered_usec = USEC_INFINITY;
        r->since_usec = phase == INTENT_CORDONED ? 0
                        : since_usec > 0         ? since_usec
                                                 : loop_wall(r->c.env->loop);
        r->deadline.claim_usec = reflex_node(r) ? node_claim_deadline(reflex_node(r)) : 0;
        r->lb_wait_usec = 0;
        r->only_cordon = only_cordon && phase == INTENT_CORDONED;
        r->cordoned_usec = loop_now(r->c.env->loop);
        if (r->only_cordon && since_usec > 0)
                r->cordoned_usec = MIN(r->cordoned_usec, loop_from_wall(r->c.env->loop, since_usec));
        r->expired_said = false;
        node_voice_set_notice(r->c.voice, r->notice);
        reflex_set_state(r, states[phase], "begun before this start");
        node_voice_resumed(r->c.voice);

        w = wish_of(r);
        k = node_report_resume(r->report, &w);
        if (k < 0)
                log_warning_errno(r->c.env->log, k, "Failed to write the state of the drain to node %s, ignoring: %m",
                                  r->c.config->node_name);
        if (phase == INTENT_CORDONED && !r->only_cordon)
                reflex_enter_draining(r);
        else if (phase == INTENT_DRAINING)
                reflex_start_drain(r);
        node_voice_set_status(r->c.voice, w.pods_left);
        return 0;
}

/* -- news --------------------------------------------------------------------------------------- */

static void reflex_deadline_changed(Reflex *r) {
        usec_t deadline = drain_deadline(r);

        if (r->drain) {
                node_drain_set_deadline(r->drain, wall_deadline(r));
                node_drain_set_protected(r->drain, protected_policy(r));
        }
        if (r->state == REFLEX_VOLUMES)
                timer_arm_earlier(r->timer, deadline);
        if (r->state == REFLEX_LB_WAIT && policy_lb_wait(deadline, r->lb_wait_usec, loop_now(r->c.env->loop)) == 0)
                reflex_enter_draining(r);
}

void reflex_clock_was_set(Reflex *r) {
        if (!drain_deadline_clock_was_set(&r->deadline, booted(r)))
                return;
        if (!r->notice || r->state == REFLEX_CANCELLED || drain_deadline(r) == USEC_INFINITY)
                return;
        announce_own(r);
        node_voice_set_notice(r->c.voice, r->notice);
        node_voice_clock_was_set(r->c.voice, wall_deadline(r));
        reflex_deadline_changed(r);
        reflex_report(r);
}

/* That its cordon was long enough stays noted, for as long as it is announced (notices.c). */
static void reflex_forget(Reflex *r, const char *id) {
        const Intent *known = intent_log_find(r->c.intents, id);

        if (!known || known->phase != INTENT_OVER)
                intent_log_forget(r->c.intents, id);
}

/* A shutdown's stays noted: by when the machine was to be off holds for as long as that is on (shutdown.c). */
int reflex_replace(Reflex *r, const Notice *n) {
        Notice *copy, *old = r->notice;
        int k;

        assert(old && r->state != REFLEX_CANCELLED);
        k = notice_copy(n, &copy);
        if (k < 0)
                return k;
        r->notice = copy;
        node_voice_set_notice(r->c.voice, copy);
        if (!streq(old->id, n->id) && old->kind != NOTICE_SHUTDOWN)
                reflex_forget(r, old->id);
        intent_log_note(r->c.intents, copy, reflex_phase(r->state), r->since_usec);
        reflex_deadline_changed(r);
        if (r->only_cordon && reflex_rule_wants_empty(old, copy)) {
                if (r->state == REFLEX_CORDONED)
                        reflex_leave_cordoned(r);
                r->only_cordon = false;
        }
        notice_free(old);
        reflex_report(r);
        return 0;
}

static bool reflex_gives_way(Reflex *r, const Notice *n, const Plan *plan) {
        _cleanup_(notice_freep) Notice *copy = NULL;

        if (!reflex_rule_gives_way(r->notice, r->only_cordon, n, plan) || notice_copy(n, &copy) < 0)
                return false;
        copy->by_hand = r->notice->by_hand;
        if (r->only_cordon)
                r->lb_wait_usec = plan->lb_wait_usec;
        if (reflex_replace(r, copy) < 0)
                return false;
        r->answered_usec = loop_now(r->c.env->loop);
        r->expired_said = false;
        node_voice_notice_took_over(r->c.voice);
        return true;
}

bool reflex_notice(Reflex *r, const Notice *n, const Plan *plan) {
        ReflexNews news;

        if (!r->notice || r->state == REFLEX_CANCELLED)
                return false;
        if (!streq(r->notice->id, n->id)) {
                if (n->kind == NOTICE_SHUTDOWN)
                        return false; /* reflex_machine_ends() has said by when, and that may be taken back */
                if (reflex_gives_way(r, n, plan))
                        return true;
        }
        if (reflex_rule_take(r->notice, n, &news) < 0 || !news.is_changed)
                return false;
        if (news.is_nearer)
                node_voice_notice_nearer(r->c.voice, loop_to_wall(r->c.env->loop, r->notice->deadline_usec));
        node_voice_set_notice(r->c.voice, r->notice);
        if (news.is_deadline_changed)
                reflex_deadline_changed(r);
        if (news.is_for_others)
                reflex_report(r);
        return false;
}

static void see_claim_deadline(Reflex *r, const KubeNode *n) {
        usec_t claim_usec = node_claim_deadline(n);

        switch (drain_deadline_see_claim(&r->deadline, r->notice, claim_usec, booted_by_server(r))) {
        case DRAIN_DEADLINE_SAME:
                return;
        case DRAIN_DEADLINE_NEARER:
                node_voice_notice_nearer(r->c.voice, claim_usec);
                break;
        case DRAIN_DEADLINE_CHANGED:
                break;
        }
        reflex_deadline_changed(r);
}

static void reflex_stop(Reflex *r, void (*take_off)(NodeReport *report), const char *reason) {
        r->drain = node_drain_free(r->drain);
        reflex_set_state(r, REFLEX_CANCELLED, reason);
        metrics_set(r->c.metrics, AGENT_METRIC_PODS_LEFT, 0, 0);
        take_off(r->report);
}

static bool can_stop(const Reflex *r) {
        return r->state != REFLEX_IDLE && r->state != REFLEX_ENDING && r->state != REFLEX_CANCELLED &&
               !r->ending;
}

/* What it was acted upon for is over, and the node stays out of service all the same. */
static bool reflex_falls_back(Reflex *r, const char *why) {
        const Notice *other = r->c.stands ? r->c.stands(r->c.userdata) : NULL;

        if (!other || streq(other->id, r->notice->id))
                return false;
        node_voice_falls_back(r->c.voice, why);
        if (reflex_replace(r, other) < 0)
                return false;
        r->answered_usec = USEC_INFINITY;
        return true;
}

void reflex_cancel(Reflex *r, const char *why) {
        if (!can_stop(r) || reflex_falls_back(r, why))
                return;
        node_voice_cancelled(r->c.voice, why);
        reflex_forget(r, r->notice->id);
        reflex_stop(r, node_report_unmark, why);
}

/* First in the intent log, then on the Node: a crash in between must not cordon again. */
static void reflex_enter_overruled(Reflex *r) {
        node_voice_overruled(r->c.voice);
        if (r->c.on_overruled)
                r->c.on_overruled(r->c.userdata);
        intent_log_note(r->c.intents, r->notice, INTENT_RELEASED, r->since_usec);
        reflex_stop(r, node_report_overruled, "a person un-cordoned");
}

void reflex_clean(Reflex *r, bool released, const char *why) {
        assert(r->state == REFLEX_IDLE);
        node_voice_left_over(r->c.voice, why);
        reflex_set_state(r, REFLEX_CANCELLED, why);
        if (released)
                node_report_overruled(r->report);
        else
                node_report_unmark(r->report);
}

static void on_undone(NodeReport *report, bool uncordoned, void *userdata) {
        Reflex *r = userdata;

        node_voice_undone(r->c.voice, uncordoned);
        reflex_set_state(r, REFLEX_IDLE, "vesper's marks were removed");
        node_voice_set_notice(r->c.voice, NULL);
        node_voice_set_status(r->c.voice, 0);
        r->notice = notice_free(r->notice);
}

static void on_api(NodeReport *report, const ApiError *error, bool first, void *userdata) {
        Reflex *r = userdata;

        if (!error) {
                node_voice_api_back(r->c.voice);
                return;
        }
        metrics_add(r->c.metrics, AGENT_METRIC_API_ERRORS, agent_api_error_kind(error), 1);
        if (first)
                node_voice_api_lost(r->c.voice, error);
}

bool reflex_may_end_pods(Reflex *r) {
        /* Of a machine that goes down it does not matter who opens the node. */
        if (!can_stop(r))
                return true;
        if (!node_report_is_fresh(r->report, NODE_FRESH_USEC))
                node_report_read(r->report);
        else if (node_report_is_cordoned(r->report)) /* else that comes first, again */
                return true;
        r->held = true;
        return false;
}

void reflex_machine_ends(Reflex *r, usec_t deadline_usec) {
        if (r->ending) {
                if (deadline_usec >= r->deadline.machine_end_usec)
                        return;
                r->deadline.machine_end_usec = deadline_usec;
                if (r->notice && r->state != REFLEX_CANCELLED)
                        reflex_deadline_changed(r);
                return;
        }
        r->ending = true;
        r->deadline.machine_end_usec = deadline_usec;
        node_voice_ending(r->c.voice);
        go_on(r);
        if (r->state == REFLEX_DRAINED)
                reflex_set_state(r, REFLEX_ENDING, "the machine goes down");
        else if (r->state == REFLEX_LB_WAIT || (r->state == REFLEX_CORDONED && r->only_cordon)) {
                r->only_cordon = false;
                reflex_enter_draining(r); /* the machine waits for it */
        } else if (r->notice && r->state != REFLEX_CANCELLED)
                reflex_deadline_changed(r);
}

void reflex_machine_stays(Reflex *r) {
        if (!r->ending)
                return;
        r->ending = false;
        r->deadline.machine_end_usec = USEC_INFINITY;
        if (r->state == REFLEX_ENDING)
                reflex_set_state(r, REFLEX_DRAINED, "the machine stays");
        if (!r->notice || r->state == REFLEX_CANCELLED)
                return;
        if (r->notice->kind == NOTICE_SHUTDOWN)
                reflex_cancel(r, "the shutdown was cancelled");
        else
                reflex_deadline_changed(r);
}

/* The newest Node known, from the watch or read by ourselves: a watch may be silent for minutes. */
static void see_view(Reflex *r) {
        const KubeNode *view = reflex_node(r);

        if (view)
                node_voice_set_node(r->c.voice, view);
        if (!view || r->state == REFLEX_IDLE || r->state == REFLEX_CANCELLED)
                return;
        /* Before our cordon is answered, marks are those of an earlier boot; or ours, and the answer was
         * lost. */
        if (can_stop(r) && node_was_uncordoned(view) &&
            (r->state != REFLEX_PLANNED || node_is_marked_with(view, r->notice->id, r->c.env->boot_id))) {
                reflex_enter_overruled(r);
                return;
        }
        see_claim_deadline(r, view);
        if (r->state == REFLEX_VOLUMES)
                reflex_check_volumes(r);
}

static void on_read(NodeReport *report, void *userdata) {
        Reflex *r = userdata;

        see_view(r);
        go_on(r);
}

/* Reports the change to those who wait for reflex_is_reported(). */
static void on_done(NodeReport *report, void *userdata) {
        Reflex *r = userdata;

        if (r->c.on_state)
                r->c.on_state(r->c.userdata);
}

void reflex_see_node(Reflex *r, const KubeNode *n) {
        node_report_see(r->report, n);
        see_view(r);
        if (!n)
                go_on(r);
}

void reflex_node_listed(Reflex *r, const KubeNode *n, const char *version) {
        node_report_listed(r->report, n, version);
        see_view(r);
}

/* The list that ended the drain may have come between two pods of a controller: nobody evicts the second one. */
static void reflex_warn_of_return(Reflex *r, const KubePod *pod) {
        const DrainRules rules = { .returns = r->returns };

        if ((r->state == REFLEX_DRAINED || r->state == REFLEX_ENDING) && drain_lets_stay(pod, &rules, loop_server_wall(r->c.env->loop)) &&
            pod_returns_should_warn(r->returns, pod))
                node_voice_pod_stays(r->c.voice, pod);
}

void reflex_see_pod(Reflex *r, InformerEvent e, const KubePod *pod) {
        if (!r->drain) {
                if (e == INFORMER_ADDED)
                        reflex_warn_of_return(r, pod);
                return;
        }
        switch (e) {
        case INFORMER_ADDED:
                node_drain_pod_seen(r->drain, pod);
                break;
        case INFORMER_MODIFIED:
                node_drain_wake(r->drain);
                break;
        case INFORMER_DELETED:
                node_drain_pod_gone(r->drain, pod);
                break;
        }
}

void reflex_pods_synced(Reflex *r) {
        if (r->state == REFLEX_DRAINING)
                reflex_start_drain(r);
        else if (r->state != REFLEX_IDLE && r->state < REFLEX_DRAINED)
                reflex_report(r);
}

void reflex_containers_ended(Reflex *r) {
        if (r->drain)
                node_drain_wake(r->drain);
}

int reflex_plan(Reflex *r, NoticeKind kind, const char *text) {
        return node_report_plan(r->report, kind, text);
}

void reflex_kick(Reflex *r) {
        node_report_kick(r->report);
}

static void on_timer(Timer *t, void *userdata) {
        Reflex *r = userdata;
        const KubeNode *view = reflex_node(r);

        if (r->state == REFLEX_LB_WAIT)
                reflex_enter_draining(r);
        else if (r->state == REFLEX_DRAINING)
                reflex_start_drain(r);
        else if (r->state == REFLEX_VOLUMES) {
                if (view)
                        node_voice_volumes_given_up(r->c.voice, view->volumes_in_use);
                reflex_enter_drained(r);
        }
}

/* -- new, free ---------------------------------------------------------------------------------- */

int reflex_new(const ReflexContext *context, Reflex **ret) {
        _cleanup_(reflex_freep) Reflex *r = NULL;
        NodeReportHandler handler = { .on_cordoned = on_cordoned, .on_undone = on_undone, .on_api = on_api,
                                      .on_read = on_read, .on_done = on_done };
        int k;

        assert(context && ret);
        r = new0(Reflex, 1);
        if (!r)
                return -ENOMEM;
        r->c = *context;
        r->deadline = drain_deadline_new(booted(r));
        handler.userdata = r;
        k = node_report_new(r->c.client, r->c.config->node_name, &handler, &r->report);
        if (k < 0)
                return k;
        k = timer_new(r->c.env->loop, "reflex", on_timer, r, &r->timer);
        if (k < 0)
                return k;
        k = pod_returns_new(&r->returns);
        if (k < 0)
                return k;
        node_voice_set_phase(r->c.voice, state_table[REFLEX_IDLE]);
        metrics_set(r->c.metrics, AGENT_METRIC_PHASE, REFLEX_IDLE, 1);
        *ret = TAKE_PTR(r);
        return 0;
}

Reflex *reflex_free(Reflex *r) {
        if (!r)
                return NULL;
        node_drain_free(r->drain);
        pod_returns_free(r->returns);
        node_report_free(r->report);
        timer_free(r->timer);
        notice_free(r->notice);
        return mfree(r);
}

/* -- tests -------------------------------------------------------------------------------------- */

void reflex_next_wakeup(const Reflex *r, Wakeups *w) {
        /* the drain has ended with pods left: only the end of the machine is to come */
        bool is_expired = r->drain && node_drain_state(r->drain) == NODE_DRAIN_EXPIRED;
        bool is_written = r->state == REFLEX_PLANNED || r->state == REFLEX_CANCELLED;

        node_report_next_wakeup(r->report, w);
        if (r->drain)
                node_drain_next_wakeup(r->drain, w);
        if (r->state == REFLEX_IDLE || r->state == REFLEX_DRAINED || r->state == REFLEX_ENDING ||
            (r->state == REFLEX_CORDONED && r->only_cordon))
                return;
        wakeups_unfinished(w, "interruption of node", r->c.config->node_name, state_table[r->state],
                           USEC_INFINITY);
        wakeups_timer(w, r->timer);
        /* node_report_next_wakeup() above reports the write, or the informer reports the missing Node */
        wakeups_await(w, is_written && !node_report_is_done(r->report));
        wakeups_await(w, r->state == REFLEX_DRAINING && r->drain &&
                      (is_expired || node_drain_will_report(r->drain)));
        wakeups_await(w, r->state == REFLEX_DRAINING && !informer_synced(r->c.pods));
        if (!r->held || !r->drain)
                return;
        wakeups_unfinished(w, "permit to end pods of node", r->c.config->node_name, "the Node is to be read",
                           USEC_INFINITY);
        wakeups_await(w, node_report_reads(r->report) || !node_report_is_cordoned(r->report));
}
