/* SPDX-License-Identifier: Apache-2.0 */
#include "termination-report.h"

#include <inttypes.h>

#include "late-status.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "pauses.h"
#include "pod-names.h"
#include "pod-voice.h"
#include "removal-notify.h"
#include "string-util.h"
#include "termination-marks.h"
#include "token-bucket.h"

/* Of very many nodes, what comes so soon behind "Drained" is told with it. */
#define TOGETHER_USEC (5 * USEC_PER_SEC)

struct TerminationReport {
        const TerminationContext *context;
        Log *log;
        char *node, *uid;
        const char *no_deadline; /* a sentence: its claim sets none; NULL: it does */
        bool draining_told, rate_told, expired_told, trouble_noted;
        char *blocked_reason, *blocked_message;
        LateStatus *node_status; /* its conditions */
        RemovalNotify notify;
        usec_t deadline_usec; /* wall clock, as it was said last */
        Timer *drained; /* runs while an Event says that it is drained, or the next one does along */
};

static void on_drained(Timer *t, void *userdata);

static const KubeObject *on_node_now(void *userdata) {
        const TerminationReport *r = userdata;
        const KubeNode *n = cluster_view_node(r->context->view, r->node);

        return n && streq(n->object.meta.uid, r->uid) ? &n->object : NULL;
}

int termination_report_new(const TerminationContext *context, const char *node, const char *uid,
                           TerminationReport **ret) {
        _cleanup_(termination_report_freep) TerminationReport *r = new0(TerminationReport, 1);
        LateStatusOptions o = { .client = context->client,
                                .guard = context->guard,
                                .kind = &kube_node_kind,
                                .name = node,
                                .object_now = on_node_now,
                                .userdata = r };
        int k;

        if (!r)
                return -ENOMEM;
        r->context = context;
        r->log = context->env->log;
        r->deadline_usec = USEC_INFINITY;
        r->notify = (RemovalNotify){ .sender = context->notify, .agents_tell = context->config->notify_agents_tell };
        if (free_and_strdup(&r->node, node) < 0 || free_and_strdup(&r->uid, uid) < 0)
                return -ENOMEM;
        k = late_status_new(&o, &r->node_status);
        if (k < 0)
                return k;
        k = timer_new(context->env->loop, "drained", on_drained, r, &r->drained);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

TerminationReport *termination_report_free(TerminationReport *r) {
        if (!r)
                return NULL;
        late_status_free(r->node_status);
        timer_free(r->drained);
        removal_notify_done(&r->notify);
        free(r->node);
        free(r->uid);
        free(r->blocked_reason);
        free(r->blocked_message);
        free(r);
        return NULL;
}

static EventObject node_object(const TerminationReport *r) {
        return (EventObject){ .api_version = "v1", .kind = "Node", .name = r->node, .uid = r->uid };
}

/* own_drain: what it says is of the coordinator's own drain. */
static void tell_receiver(TerminationReport *r, NotifyPhase phase, bool own_drain, const char *text) {
        const KubeObject *o = on_node_now(r);
        const KubeNode *n = (const KubeNode *) o;

        if (text)
                removal_notify_tell(&r->notify, phase, r->node, r->uid, n, n ? cluster_view_claim_of_node(r->context->view, n) : NULL,
                                    own_drain, r->deadline_usec, text);
}

static void tell_receiver_node(TerminationReport *r, NotifyPhase phase, const char *what) {
        _cleanup_free_ char *text = strf("Node %s %s.", r->node, what);

        tell_receiver(r, phase, r->draining_told, text);
}

/* That its claim sets no deadline, and why; NULL: it does. */
static const char *no_deadline_of(const KubeNodeClaim *claim) {
        if (claim && claim->termination_grace_usec != USEC_INFINITY)
                return NULL;
        return claim && claim->object.invalid
                       ? " Its NodeClaim is invalid, as its condition Invalid says, so no deadline is known: the node waits for as long as it takes"
                       : " No terminationGracePeriod is set: without an announced end of its machine, the node waits for as long as it takes";
}

void termination_report_see_node(TerminationReport *r) {
        late_status_see(r->node_status);
}

void termination_report_started(TerminationReport *r, const KubeNodeClaim *claim) {
        EventObject o = node_object(r);

        r->no_deadline = no_deadline_of(claim);
        log_event(r->log, LOG_LEVEL_NOTICE, MESSAGE_NODE_TERMINATION_STARTED,
                  LOG_FIELDS({ "NODE", r->node }),
                  "Node %s is being deleted: cordoning, draining and ending its machine.%s", r->node,
                  strempty(r->no_deadline));
        event_record(r->context->recorder, &o, EVENT_NORMAL, "TerminationStarted",
                     "Node is being deleted: it is cordoned and drained, then its machine is ended");
        tell_receiver_node(r, NOTIFY_NOTICED, "is being deleted: it is cordoned and drained, then its machine is ended");
}

void termination_report_phase(TerminationReport *r, const char *from, const char *to, const char *why) {
        log_event(r->log, LOG_LEVEL_INFO, MESSAGE_TERMINATION_PHASE_CHANGED,
                  LOG_FIELDS({ "NODE", r->node }, { "PHASE", to }, { "REASON", why }),
                  "Node %s: %s -> %s, %s", r->node, from, to, why);
}

void termination_report_deadline(TerminationReport *r, usec_t wall_usec, const char *why) {
        char when[RFC3339_MAX];
        EventObject o = node_object(r);

        r->deadline_usec = wall_usec;
        if (wall_usec == USEC_INFINITY) {
                log_event(r->log, LOG_LEVEL_NOTICE, MESSAGE_TERMINATION_PHASE_CHANGED,
                          LOG_FIELDS({ "NODE", r->node }),
                          "Node %s has no deadline any more: the interruption that set it is over", r->node);
                event_record(r->context->recorder, &o, EVENT_NORMAL, "TerminationDeadline",
                             "Node has no deadline any more: the interruption that set it is over");
                return;
        }
        rfc3339_format(wall_usec, when);
        log_event(
                r->log, LOG_LEVEL_NOTICE, MESSAGE_TERMINATION_PHASE_CHANGED,
                LOG_FIELDS({ "NODE", r->node }, { "DEADLINE", when }),
                "Node %s has a deadline, %s, set by %s: its machine is ended then; pods whose grace period ends later are deleted before it",
                r->node, when, why);
        event_record(r->context->recorder, &o, EVENT_WARNING, "TerminationDeadline",
                     "Node goes at %s whatever is left, by %s; a pod whose grace no longer fits is deleted without asking its PodDisruptionBudget",
                     when, why);
}

static bool condition_names_repair(const TerminationReport *r, const char *type) {
        Condition c;

        return late_status_condition(r->node_status, type, &c) &&
               streq_ptr(c.reason, CONDITION_REASON_REPAIR);
}

/* Returns true if a repair deleted the Node: this leader's, or that of an earlier one, which a condition of the Node
 * records. While a pause or a budget holds the removal, that is MaintenancePlanned. */
static bool is_deleted_by_repair(const TerminationReport *r) {
        return r->context->is_repaired(r->uid, r->context->userdata) ||
               condition_names_repair(r, CONDITION_MAINTENANCE_PLANNED) ||
               condition_names_repair(r, CONDITION_MAINTENANCE_IN_PROGRESS);
}

static const char *deletion_reason(const TerminationReport *r) {
        return is_deleted_by_repair(r) ? CONDITION_REASON_REPAIR : CONDITION_REASON_ADMIN;
}

void termination_report_begins(TerminationReport *r, bool by_admin) {
        const char *reason = by_admin ? deletion_reason(r) : CONDITION_REASON_COORDINATOR;
        Condition planned;

        if (late_status_condition(r->node_status, CONDITION_MAINTENANCE_PLANNED, &planned) &&
            planned.status == CONDITION_TRUE)
                late_status_set_condition(r->node_status, CONDITION_MAINTENANCE_PLANNED, CONDITION_FALSE, reason,
                                          "vesper-coordinator has begun to remove this node");
        late_status_set_condition(r->node_status, CONDITION_MAINTENANCE_IN_PROGRESS, CONDITION_TRUE, reason,
                                  !by_admin ? "vesper-coordinator removes this node: its machine is about to end"
                                  : streq(reason, CONDITION_REASON_REPAIR)
                                          ? "vesper-coordinator removes this node: a repair deleted it"
                                          : "vesper-coordinator removes this node: it was deleted");
}

void termination_report_cordoned(TerminationReport *r) {
        tell_receiver_node(r, NOTIFY_CORDONED, "is cordoned: no new pod comes");
}

void termination_report_draining(TerminationReport *r) {
        if (r->draining_told)
                return;
        r->draining_told = true;
        log_event(r->log, LOG_LEVEL_INFO, MESSAGE_DRAIN_STARTED, LOG_FIELDS({ "NODE", r->node }),
                  "Draining node %s", r->node);
        late_status_set_condition(r->node_status, CONDITION_DRAIN_IN_PROGRESS, CONDITION_TRUE, CONDITION_REASON_COORDINATOR,
                            "vesper evicts this node's pods: it is being deleted");
        tell_receiver_node(r, NOTIFY_DRAINING, "is being drained: its pods are evicted");
}

/* -- pods ----------------------------------------------------------------------------------------------- */

static void report_blocked_pod(TerminationReport *r, const KubePod *pod, const DrainBlocker *b,
                               usec_t deadline_usec) {
        EventObject o = node_object(r);
        _cleanup_free_ char *text = pod_voice_blocked(r->context, &o, pod, b, deadline_usec, r->no_deadline);

        if (text)
                tell_receiver(r, NOTIFY_BLOCKED, true, text);
}

static void report_deleted_pod(TerminationReport *r, const KubePod *pod, usec_t deadline_usec) {
        char when[RFC3339_MAX] = "";
        EventObject node = node_object(r);

        pod_voice_deleted(r->context, &node, pod, deadline_usec, false);
        if (deadline_usec != USEC_INFINITY)
                rfc3339_format(deadline_usec, when);
        event_record(r->context->recorder, &node, EVENT_WARNING, "PodDeletedAtDeadline",
                     "Pod %s/%s was deleted, its PodDisruptionBudget not asked: its grace of %" PRIi64
                     " s ends at the deadline %s",
                     pod->object.meta.ns, pod->object.meta.name, pod->grace_sec, when);
}

static void report_evicted_pod(TerminationReport *r, const KubePod *pod, const EvictionReport *report) {
        log_debug(r->log, "Evicted pod %s/%s of node %s, attempt %u", pod->object.meta.ns,
                  pod->object.meta.name, r->node, report ? report->attempts : 0);
        pod_voice_evicted(r->context, pod, r->node, true);
}

void termination_report_pod(TerminationReport *r, DrainPodEvent e, const KubePod *pod,
                            const DrainBlocker *blocker, const EvictionReport *report,
                            usec_t deadline_usec) {
        switch (e) {
        case DRAIN_POD_EVICTED:
                report_evicted_pod(r, pod, report);
                break;
        case DRAIN_POD_BLOCKED:
                report_blocked_pod(r, pod, blocker, deadline_usec);
                break;
        case DRAIN_POD_DELETED:
                report_deleted_pod(r, pod, deadline_usec);
                break;
        case DRAIN_POD_STAYS:
        case DRAIN_POD_LEFT_ALONE: {
                EventObject node = node_object(r);

                (e == DRAIN_POD_STAYS ? pod_voice_stays : pod_voice_left_alone)(r->context, &node, pod);
                break;
        }
        case DRAIN_POD_GONE:
                log_debug(r->log, "Pod %s/%s has left node %s", pod->object.meta.ns, pod->object.meta.name,
                          r->node);
                break;
        }
}

/* -- Events of nodes that are drained ------------------------------------------------------------------------ */

static void on_drained(Timer *t, void *userdata) {
        TerminationReport *r = userdata;
        EventObject o = node_object(r);

        event_record(r->context->recorder, &o, EVENT_NORMAL, "Drained", "No pod is left to wait for");
}

/* Nothing comes any more that could be told together with it. */
static void tell_drained(TerminationReport *r) {
        if (!timer_is_armed(r->drained))
                return;
        timer_disarm(r->drained);
        on_drained(r->drained, r);
}

void termination_report_drained(TerminationReport *r, ClaimStatus *s) {
        usec_t at, now = loop_now(r->context->env->loop);

        log_event(r->log, LOG_LEVEL_NOTICE, MESSAGE_NODE_DRAINED, LOG_FIELDS({ "NODE", r->node }),
                  "Node %s is drained", r->node);
        tell_receiver_node(r, NOTIFY_DRAINED, "is drained: no pod is left to wait for");
        if (token_bucket_take(r->context->drained_events, now, &at))
                on_drained(r->drained, r);
        else
                timer_arm_in(r->drained, TOGETHER_USEC);
        late_status_set_condition(r->node_status, CONDITION_DRAINED, CONDITION_TRUE, CONDITION_REASON_COORDINATOR,
                            "one consistent list shows no pod to wait for");
        if (r->draining_told)
                late_status_set_condition(r->node_status, CONDITION_DRAIN_IN_PROGRESS, CONDITION_FALSE, CONDITION_REASON_COORDINATOR,
                                    "the drain has ended");
        if (s)
                claim_status_set_condition(s, CLAIM_DRAINED, CONDITION_TRUE, "Drained",
                                           "no pod is left to wait for");
}

void termination_report_drains_again(TerminationReport *r, ClaimStatus *s, const char *reason) {
        timer_disarm(r->drained);
        r->draining_told = false;
        late_status_set_condition(r->node_status, CONDITION_DRAINED, CONDITION_FALSE, CONDITION_REASON_COORDINATOR, reason);
        if (s)
                claim_status_set_condition(s, CLAIM_DRAINED, CONDITION_FALSE, "Draining", reason);
}

void termination_report_volumes(TerminationReport *r, ClaimStatus *s, size_t left, size_t staying) {
        if (left > 0)
                log_event(r->log, LOG_LEVEL_WARNING, MESSAGE_TERMINATION_PHASE_CHANGED,
                          LOG_FIELDS({ "NODE", r->node }),
                          "Node %s still has %zu volumes attached that no pod which stays is known to mount; their driver may hang. "
                          "Ending its machine all the same",
                          r->node, left);
        if (s)
                claim_status_set_condition(
                        s, CLAIM_VOLUMES_DETACHED, left == 0 ? CONDITION_TRUE : CONDITION_FALSE,
                        left == 0 ? "Detached" : "WaitEnded",
                        left > 0      ? "volumes were still attached when the wait ended"
                        : staying > 0 ? "no volume is attached but those of pods that stay"
                                      : "no volume is attached");
}

static char *names_left(NodeDrain *drain) {
        _cleanup_strbuf_ StrBuf b = {};
        const DrainBlocker *left;
        size_t n = 0;

        left = drain ? node_drain_blockers(drain, &n) : NULL;
        (void) pod_names_add(&b, left, n, 10, false);
        return strbuf_steal(&b);
}

void termination_report_expired(TerminationReport *r, NodeDrain *drain) {
        _cleanup_free_ char *names = names_left(drain), *text = NULL;
        EventObject o = node_object(r);

        if (r->expired_told)
                return;
        r->expired_told = true;
        log_event(r->log, LOG_LEVEL_WARNING, MESSAGE_DRAIN_FAILED, LOG_FIELDS({ "NODE", r->node }),
                  "The deadline of node %s has passed: ending its machine with these pods left: %s", r->node,
                  strempty(names));
        event_record(r->context->recorder, &o, EVENT_WARNING, "DeadlinePassed",
                     "The deadline has passed; the machine is ended with these pods left: %s",
                     strempty(names));
        text = strf("The deadline of node %s has passed: its machine is ended with these pods left: %s", r->node, strempty(names));
        tell_receiver(r, NOTIFY_EXPIRED, r->draining_told, text);
}

void termination_report_machine_ended(TerminationReport *r, ClaimStatus *s) {
        EventObject o = node_object(r);

        termination_report_unblocked(r, s);
        log_event(r->log, LOG_LEVEL_NOTICE, MESSAGE_INSTANCE_TERMINATED, LOG_FIELDS({ "NODE", r->node }),
                  "The machine of node %s is gone or cannot come back", r->node);
        event_record(r->context->recorder, &o, EVENT_NORMAL, "InstanceTerminated",
                     timer_is_armed(r->drained)
                             ? "No pod was left to wait for. The cloud says that the machine is gone or cannot come back"
                             : "The cloud says that the machine is gone or cannot come back");
        timer_disarm(r->drained);
        if (s)
                claim_status_set_condition(s, CLAIM_INSTANCE_TERMINATING, CONDITION_TRUE, "Accepted",
                                           "the machine is gone or cannot come back");
}

static bool note_blocked(TerminationReport *r, const char *reason, const char *message) {
        if (streq_ptr(r->blocked_reason, reason) && streq_ptr(r->blocked_message, message))
                return false;
        (void) free_and_strdup(&r->blocked_reason, reason);
        (void) free_and_strdup(&r->blocked_message, message);
        late_status_set_condition(r->node_status, CONDITION_TERMINATION_BLOCKED, CONDITION_TRUE, reason, message);
        return true;
}

void termination_report_held(TerminationReport *r, ClaimStatus *s, const char *reason, const char *message) {
        bool budget = streq(reason, WAITING_FOR_BUDGET), first = !streq_ptr(r->blocked_reason, reason);
        EventObject o = node_object(r);

        if (!note_blocked(r, reason, message))
                return;
        if (s)
                claim_status_set_held(s, reason, message, loop_wall(r->context->env->loop));
        late_status_set_condition(r->node_status, CONDITION_MAINTENANCE_PLANNED, CONDITION_TRUE, deletion_reason(r),
                                  "vesper-coordinator removes this node, which was deleted, as soon as nothing holds that up");
        if (!first) /* who uses a budget up, and how many wait, changes as it goes */
                return;
        log_event(r->log, LOG_LEVEL_NOTICE, budget ? MESSAGE_WAITING_FOR_BUDGET : MESSAGE_REMOVAL_PAUSED,
                  LOG_FIELDS({ "NODE", r->node }), "Node %s is being deleted, and is neither cordoned nor drained yet: %s", r->node,
                  message);
        event_record(r->context->recorder, &o, EVENT_NORMAL, reason, "Neither cordoned nor drained yet: %s", message);
        tell_receiver(r, NOTIFY_HELD, false, message);
}

void termination_report_blocked(TerminationReport *r, ClaimStatus *s, const char *reason, const char *message,
                                bool retried) {
        const char *stop = full_stop(message);
        _cleanup_free_ char *text = NULL;
        EventObject o = node_object(r);

        if (!note_blocked(r, reason, message))
                return;
        /* Once: one that stays stuck, whatever its cloud says each time, must not keep all others slow. */
        if (!r->trouble_noted)
                pauses_note_trouble(r->context->pauses);
        r->trouble_noted = true;
        if (retried)
                log_event(r->log, LOG_LEVEL_WARNING, MESSAGE_TERMINATION_BLOCKED,
                          LOG_FIELDS({ "NODE", r->node }, { "REASON", reason }),
                          "The machine of node %s does not end (%s): %s%s The node is kept, and the termination is retried",
                          r->node, reason, message, stop);
        else
                log_event(r->log, LOG_LEVEL_WARNING, MESSAGE_TERMINATION_BLOCKED,
                          LOG_FIELDS({ "NODE", r->node }, { "REASON", reason }),
                          "The machine of node %s does not end (%s): %s%s The node is kept", r->node, reason, message,
                          stop);
        event_record(r->context->recorder, &o, EVENT_WARNING, "TerminationBlocked", "%s: %s%s The node is kept%s", reason,
                     message, stop, retried ? ", and the termination is retried" : "");
        text = strf("The machine of node %s does not end (%s): %s", r->node, reason, message);
        tell_receiver(r, NOTIFY_MACHINE_BLOCKED, false, text);
        if (s) {
                _cleanup_free_ char *error = strf("%s: %s", reason, message);

                claim_status_set_cloud_error(s, error);
        }
}

void termination_report_unblocked(TerminationReport *r, ClaimStatus *s) {
        bool budget = streq_ptr(r->blocked_reason, WAITING_FOR_BUDGET), paused = streq_ptr(r->blocked_reason, REMOVAL_PAUSED);

        if (!r->blocked_reason)
                return;
        r->blocked_reason = mfree(r->blocked_reason);
        r->blocked_message = mfree(r->blocked_message);
        late_status_set_condition(r->node_status, CONDITION_TERMINATION_BLOCKED, CONDITION_FALSE, "Resolved",
                                  budget   ? "no NodeDisruptionBudget holds its removal any more"
                                  : paused ? "its removal is paused no more"
                                           : "what kept its machine from ending is over");
        if (s && (budget || paused))
                claim_status_set_held(s, NULL, NULL, 0);
        else if (s)
                claim_status_set_cloud_error(s, NULL);
}

const char *termination_report_blocked_reason(const TerminationReport *r) {
        return r->blocked_reason;
}

void termination_report_rate_limited(TerminationReport *r) {
        if (r->rate_told)
                return;
        r->rate_told = true;
        log_info(r->log, "Node %s waits for the rate limit of terminations: %u a minute beyond a burst of %u ([Provider] TerminationsPerMinute=)",
                 r->node, r->context->config->terminations_per_minute, r->context->config->terminations_burst);
}

void termination_report_finishing(TerminationReport *r, ClaimStatus *s, bool node_stays, bool claim_stays) {
        tell_drained(r); /* there was no machine to end */
        tell_receiver_node(r, NOTIFY_ENDED, "goes: its machine is gone or cannot come back");
        if (node_stays)
                late_status_flush(r->node_status);
        else
                late_status_hold(r->node_status);
        if (s && claim_stays)
                claim_status_flush(s);
        else if (s)
                claim_status_hold(s);
}

void termination_report_node_gone(TerminationReport *r) {
        tell_drained(r);
        late_status_end(r->node_status);
}

void termination_report_finished(TerminationReport *r, usec_t took_usec) {
        char took[DURATION_MAX];

        log_event(r->log, LOG_LEVEL_NOTICE, MESSAGE_FINALIZER_REMOVED, LOG_FIELDS({ "NODE", r->node }),
                  "The removal of node %s is complete: its finalizer was removed %s after its deletion", r->node,
                  duration_format(took_usec, took));
}

void termination_report_next_wakeup(const TerminationReport *r, Wakeups *w) {
        late_status_next_wakeup(r->node_status, w);
}
