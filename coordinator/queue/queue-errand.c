/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-errand.h"

#include "coordinator-metrics.h"
#include "log.h"
#include "queue-facts.h"
#include "queue-told.h"
#include "queue-voice.h"
#include "string-util.h"

/* The shortest time of a hook is 30 s. */
#define BEAT_USEC (12 * USEC_PER_SEC)
#define RETRY_BASE_USEC (USEC_PER_SEC / 4)
#define RETRY_CAP_USEC (10 * USEC_PER_SEC)
#define JITTER_PERMILLE 200u
/* After so many conflicts in a row the view is what is old. */
#define CONFLICTS_MAX 2u
/* After so many refusals in a row, within half a minute, the message gives its place to others. */
#define REFUSALS_MAX 8u

/* What its message says of the instance of an errand, for queue-voice.h. */
#define SAID(e) ((QueueSaid){ .event = (e)->event, .instance = (e)->instance, .notice = (e)->notice })

static usec_t now_of(const QueueErrands *q) {
        return loop_now(q->o->env->loop);
}

int queue_errand_init(QueueErrand *e, QueueErrands *shared, void *message, const EventMessage *event, const SqsMessage *received,
                      const char *instance) {
        int r;

        *e = (QueueErrand){ .shared = shared,
                            .message = message,
                            .event = event,
                            .message_id = received->id,
                            .sent_usec = received->sent_usec,
                            .backoff = { .base_usec = RETRY_BASE_USEC,
                                         .cap_usec = RETRY_CAP_USEC,
                                         .jitter_permille = JITTER_PERMILLE } };
        r = free_and_strdup(&e->instance, instance);
        if (r >= 0)
                r = event_message_notice(event, e->instance, &e->notice);
        if (r < 0 && r != -ENODATA) {
                queue_errand_done(e);
                return r;
        }
        return 0;
}

void queue_errand_done(QueueErrand *e) {
        e->shared->n_held -= e->is_held;
        hook_call_free(e->hook);
        kube_call_free(e->write);
        cloud_call_free(e->ask);
        notice_free(e->notice);
        free(e->instance);
        free(e->object_uid);
}

/* -- how it goes on ------------------------------------------------------------------------------------- */

static void errand_retry(QueueErrand *e) {
        QueueErrands *q = e->shared;

        e->state = QUEUE_ERRAND_OPEN;
        e->again_usec = usec_add(now_of(q), backoff_next(&e->backoff, q->o->env->random));
}

/* Retries, and hides the message after REFUSALS_MAX refusals: only a person can grant the permission. */
static void errand_refused(QueueErrand *e) {
        errand_retry(e);
        if (++e->n_refused >= REFUSALS_MAX)
                e->state = QUEUE_ERRAND_WAITING;
}

static void errand_finish(QueueErrand *e) {
        e->state = QUEUE_ERRAND_DONE;
}

/* What is written, and not done: its group waits until the node is drained. */
static void errand_hold(QueueErrand *e) {
        e->shared->n_held += !e->is_held;
        e->is_held = true;
        e->n_refused = 0;
        e->state = QUEUE_ERRAND_OPEN;
        e->again_usec = usec_add(now_of(e->shared), QUEUE_TICK_USEC);
}

/* -- its claim, or Node --------------------------------------------------------------------------------- */

/* Its claim, or Node, has changed since it was read: it is decided anew by what the view shows in a moment. */
static void note_conflict(QueueErrand *e) {
        QueueErrands *q = e->shared;

        if (++e->n_conflicts < CONFLICTS_MAX)
                return;
        e->n_conflicts = 0;
        q->o->view_is_old(e->on_node ? &kube_node_kind : &kube_node_claim_kind, q->o->userdata);
}

/* Returns true if a retry cannot succeed: no permission, or the object fails schema, admission or the size
 * limit. */
static bool write_is_refused(const ApiError *error) {
        return error->http == 400 || error->http == 403 || error->http == 413 || error->http == 422;
}

static void on_written(const KubeReply *reply, void *userdata) {
        QueueErrand *e = userdata;
        QueueErrands *q = e->shared;
        _cleanup_free_ char *uid = TAKE_PTR(e->object_uid);

        /* Somebody may take the annotation off again, so that only the view says whether it is there. */
        if (uid)
                queue_memory_end_write(q->memory, uid);
        if (!reply->error) {
                (void) queue_memory_note_reported(q->memory, e->message_id, e->instance);
                if (e->event->kind == EVENT_MESSAGE_ASG_TERMINATE && !e->hook_is_over)
                        errand_hold(e);
                else
                        errand_finish(e);
                if (e->is_newly_held)
                        queue_confirm_note_held(q->confirm);
                if (e->sent_usec > 0)
                        metrics_observe(q->o->metrics, METRIC_QUEUE_SECONDS, 0,
                                        (double) usec_sub(loop_wall(q->o->env->loop), e->sent_usec) /
                                                (double) USEC_PER_SEC);
        } else {
                e->n_conflicts = reply->error->http == 409 ? e->n_conflicts : 0;
                if (reply->error->http == 409)
                        note_conflict(e);
                else if (e->backoff.failures == 0)
                        log_warning(
                                q->o->env->log,
                                "Failed to write on the %s of instance %s what queue %s told, retrying: %s",
                                e->on_node ? "Node" : "NodeClaim", e->instance, sqs_client_queue(q->o->sqs), strempty(reply->error->message));
                if (write_is_refused(reply->error))
                        errand_refused(e);
                else
                        errand_retry(e);
        }
        if (uid)
                q->written(uid, e->message);
        e->write = kube_call_free(e->write);
        e->shared->answered(e->message); /* may end the errand */
}

/* Decides whether the brake holds the notice, and counts it. -ENOMEM. */
static int errand_brake(QueueErrand *e, const QueueFound *found, const QueueFacts *facts, const char *uid) {
        QueueErrands *q = e->shared;
        const Interruption *agents = found->node ? kube_node_standing_interruption(found->node) : NULL;
        const Announced *same = announced_list_find(facts->announced, e->notice->id);
        usec_t wall = loop_wall(q->o->env->loop), before = q->o->config->interruption_before_usec;
        size_t n, limit = queue_brake_limit(facts->is_managed ? cluster_view_n_claims(q->o->view) : cluster_view_n_nodes(q->o->view));
        int r;

        e->written_as = ANNOUNCED_CALLED_OFF;
        e->is_newly_held = false;
        if (e->event->closed || e->hook_is_over)
                return 0;
        e->notice->said_usec = MIN(e->notice->said_usec, wall - wall % USEC_PER_SEC); /* a sender may write any time */
        e->notice->received_usec = wall - wall % USEC_PER_SEC; /* as an annotation holds it */
        r = interruption_confirms(agents, e->notice) ? 1 : queue_brake_count(q->brake, uid, e->notice, before, wall);
        if (r < 0)
                return r;
        n = r == 0 ? SIZE_MAX : queue_brake_n_counted(q->brake, e->notice, before, wall);
        if (r > 0 && n > limit && !q->is_over_limit)
                queue_voice_brake(q->o, n, limit);
        q->is_over_limit = r > 0 ? n > limit : q->is_over_limit; /* one machine without room says nothing about the others */
        e->written_as = queue_confirm_knows(q->confirm, e->instance, e->notice) ? ANNOUNCED_STANDS : queue_brake_decide(e->notice, same, agents, n, limit);
        e->is_newly_held = e->written_as == ANNOUNCED_HELD && !(same && same->state == ANNOUNCED_HELD);
        return 0;
}

static QueueVoiceAct voice_of(const QueueErrand *e, const QueueFacts *facts) {
        const Announced *same = announced_list_find(facts->announced, e->notice->id);

        if (e->event->closed || e->hook_is_over)
                return same && !facts->is_going ? QUEUE_VOICE_CALLS_OFF : QUEUE_VOICE_CALLED_OFF_ELSE;
        if (e->written_as == ANNOUNCED_HELD)
                return QUEUE_VOICE_HELD;
        if (!facts->is_managed)
                return QUEUE_VOICE_DRAINS;
        return interruption_delete_counts((InterruptionDelete) e->shared->o->config->interruption_delete, e->notice) ? QUEUE_VOICE_DELETES
                                                                                                                      : QUEUE_VOICE_DRAINS_MANAGED;
}

static int errand_write(QueueErrand *e, const QueueFound *found, const QueueFacts *facts) {
        QueueErrands *q = e->shared;
        const KubeObject *o = facts->is_managed ? &found->claim->object : &found->node->object;
        const KubeTarget target = { .kind = o->kind, .name = o->meta.name };
        const KubeCallOptions options = { .guard = q->o->guard, .object_unread = true };
        _cleanup_free_ char *body = NULL;
        int r;

        e->on_node = !facts->is_managed;
        r = free_and_strdup(&e->object_uid, o->meta.uid);
        if (r >= 0)
                r = queue_memory_begin_write(q->memory, o->meta.uid);
        if (r < 0)
                return r;
        if (r == 0) {
                e->state = QUEUE_ERRAND_SHARED;
                return 0;
        }
        r = errand_brake(e, found, facts, o->meta.uid);
        if (r < 0) {
                queue_memory_end_write(q->memory, o->meta.uid);
                return r;
        }
        body = queue_told_body(o, facts->announced, e->notice, e->written_as, found->node);
        r = body ? kube_patch(q->o->client, &target, KUBE_PATCH_MERGE, body, &options, on_written, e, &e->write) : -ENOMEM;
        if (r < 0) {
                queue_memory_end_write(q->memory, o->meta.uid);
                return r;
        }
        e->state = QUEUE_ERRAND_SENT;
        if (found->node && e->backoff.failures == 0)
                queue_voice_node(q->o, &SAID(e), found->node, voice_of(e, facts));
        return 0;
}

/* -- EC2 ------------------------------------------------------------------------------------------------ */

static QueueSight sight_of(const CloudResult *result) {
        if (result->outcome != CLOUD_OK)
                return QUEUE_UNCLEAR;
        switch (result->state) {
        case INSTANCE_PRESENT:
        case INSTANCE_OFF:
                return QUEUE_SEEN;
        case INSTANCE_TERMINATING:
        case INSTANCE_GONE:
                return QUEUE_ENDED;
        case INSTANCE_NOT_FOUND:
                return QUEUE_NOT_SEEN;
        case INSTANCE_UNKNOWN:
        case _INSTANCE_STATE_MAX:
        case _INSTANCE_STATE_INVALID:
                break;
        }
        return QUEUE_UNCLEAR;
}

static void on_described(const CloudResult *result, void *userdata) {
        QueueErrand *e = userdata;
        UnknownInstance *u = queue_memory_unknown(e->shared->memory, e->instance);

        if (u)
                u->sight = sight_of(result);
        e->state = QUEUE_ERRAND_OPEN;
        e->ask = cloud_call_free(e->ask);
        e->shared->answered(e->message); /* may end the errand */
}

/* Of the instance no more is known than where the message came from. */
static int errand_ask(QueueErrand *e) {
        QueueErrands *q = e->shared;
        CloudProvider *ec2 = cloud_registry_named(q->o->cloud, "ec2");
        const char *region = e->event->region;
        _cleanup_free_ char *id = NULL;
        int r;

        if (!ec2) {
                e->state = QUEUE_ERRAND_WAITING;
                return 0;
        }
        id = strf("aws:///%s/%s", isempty(region) ? sqs_client_region(q->o->sqs) : region, e->instance);
        if (!id)
                return -ENOMEM;
        r = cloud_describe(ec2, &(CloudMachine){ .provider_id = id }, on_described, e, &e->ask);
        if (r >= 0)
                e->state = QUEUE_ERRAND_SENT;
        return r;
}

/* -- its group ------------------------------------------------------------------------------------------ */

/* Finishes an old message of a hook whose group does not wait any more: the message ends nothing. */
static void errand_report_unconfirmed(QueueErrand *e) {
        QueueErrands *q = e->shared;
        const KubeNode *n = queue_find(q->o->view, e->instance).node;
        QueueSaid said = SAID(e);

        said.why = "the message is old, and its Auto Scaling group does not wait any more";
        metrics_add(q->o->metrics, METRIC_QUEUE_TOO_LATE, 0, 1);
        if (n)
                queue_voice_node(q->o, &said, n, QUEUE_VOICE_REPORTS);
        errand_finish(e);
}

/* Returns true if the group has never waited for this leader, and its answer denies a notice that the brake holds. Only a group of the queue's own account
 * and region can be asked. */
static bool errand_is_denied(const QueueErrand *e) {
        const QueueOrigin own = { .account = sqs_client_account(e->shared->o->sqs), .region = sqs_client_region(e->shared->o->sqs) };
        QueueFound found = queue_find(e->shared->o->view, e->instance);
        const KubeNodeClaim *claim = queue_claim_that_counts(found.claim);
        const AnnouncedList *l = claim ? &claim->announced : found.node ? &found.node->announced : NULL;
        const Announced *same = l ? announced_list_find(l, e->notice->id) : NULL;

        return same && same->state == ANNOUNCED_HELD && !e->has_waited && !queue_is_from_elsewhere(e->event, &own);
}

static void on_hook(HookOutcome outcome, const char *message, void *userdata) {
        QueueErrand *e = userdata;
        QueueErrands *q = e->shared;

        if (outcome == HOOK_OVER && e->act == QUEUE_CONFIRM)
                errand_report_unconfirmed(e);
        else if (outcome == HOOK_OVER && e->act == QUEUE_BEAT && errand_is_denied(e)) {
                e->hook_is_over = true;
                e->state = QUEUE_ERRAND_OPEN;
        } else if (outcome == HOOK_OVER || (outcome == HOOK_OK && e->act == QUEUE_CONTINUE)) {
                log_info(q->o->env->log, "Auto Scaling group %s goes on with instance %s: its hook %s %s%s",
                         e->event->group, e->instance, e->event->hook,
                         outcome == HOOK_OVER ? "is over: " : "was answered with CONTINUE",
                         outcome == HOOK_OVER ? message : "");
                const KubeNode *n = e->event->kind == EVENT_MESSAGE_ASG_LAUNCH ? queue_find(q->o->view, e->instance).node : NULL;

                if (n)
                        queue_voice_node(q->o, &SAID(e), n, QUEUE_VOICE_CONTINUES);
                errand_finish(e);
        } else if (outcome == HOOK_OK) {
                backoff_reset(&e->backoff);
                e->has_waited = true;
                errand_hold(e);
        } else {
                if (e->backoff.failures == 0)
                        log_warning(
                                q->o->env->log,
                                "Failed to answer hook %s of Auto Scaling group %s for instance %s, retrying: %s. It takes "
                                "autoscaling:CompleteLifecycleAction and autoscaling:RecordLifecycleActionHeartbeat",
                                e->event->hook, e->event->group, e->instance, message);
                if (outcome == HOOK_DENIED)
                        errand_refused(e);
                else
                        errand_retry(e);
        }
        e->hook = hook_call_free(e->hook);
        e->shared->answered(e->message); /* may end the errand */
}

static int errand_beat(QueueErrand *e) {
        QueueErrands *q = e->shared;
        int r;

        errand_hold(e);
        if (now_of(q) < e->beat_usec)
                return 0;
        r = hook_heartbeat(q->hooks, e->event, e->instance, &q->o->guard, on_hook, e, &e->hook);
        if (r < 0)
                return r;
        e->beat_usec = usec_add(now_of(q), BEAT_USEC);
        e->state = QUEUE_ERRAND_SENT;
        return 0;
}

/* A heartbeat is the one question that a group answers about its hook. */
static int errand_confirm(QueueErrand *e) {
        QueueErrands *q = e->shared;
        int r = hook_heartbeat(q->hooks, e->event, e->instance, &q->o->guard, on_hook, e, &e->hook);

        if (r >= 0)
                e->state = QUEUE_ERRAND_SENT;
        return r;
}

static int errand_continue(QueueErrand *e) {
        QueueErrands *q = e->shared;
        int r = hook_continue(q->hooks, e->event, e->instance, &q->o->guard, on_hook, e, &e->hook);

        if (r >= 0)
                e->state = QUEUE_ERRAND_SENT;
        return r;
}

/* -- the step ------------------------------------------------------------------------------------------- */

/* Reports the message. Returns false if this leader has reported it, or acted upon it, before. */
static bool errand_tell(const QueueErrand *e, const KubeNode *n, QueueVoiceAct act,
                        const QueueFacts *facts) {
        bool is_first = queue_memory_note_reported(e->shared->memory, e->message_id, e->instance);
        QueueRules rules = queue_rules_now(e->shared->o);
        QueueSaid said = SAID(e);

        said.why = queue_why_reported(e->event, e->notice, facts, &rules);
        if (is_first || queue_is_outlived(e->event, e->notice, &rules)) /* decided only once */
                queue_voice_node(e->shared->o, &said, n, act);
        return is_first;
}

static void count_outlived(const QueueErrand *e) {
        const QueueWorkerOptions *o = e->shared->o;
        QueueRules rules = queue_rules_now(o);

        metrics_add(o->metrics, METRIC_QUEUE_TOO_LATE, 0, queue_is_outlived(e->event, e->notice, &rules));
}

static int errand_act(QueueErrand *e, const QueueFound *found, const QueueFacts *facts) {
        QueueErrands *q = e->shared;

        switch (e->act) {
        case QUEUE_TELL:
                count_outlived(e);
                if (errand_tell(e, found->node,
                                e->event->closed ? QUEUE_VOICE_CALLED_OFF_ELSE : QUEUE_VOICE_REPORTS,
                                facts) &&
                    !e->event->closed)
                        queue_voice_receiver(q->o, &SAID(e), found->node);
                break;
        case QUEUE_KNOWN:
                (void) errand_tell(e, found->node, QUEUE_VOICE_KNOWN, facts);
                break;
        case QUEUE_LOOK:
                (void) errand_tell(e, found->node, QUEUE_VOICE_LOOKS, facts);
                q->o->look(found->node->object.meta.name, q->o->userdata);
                break;
        case QUEUE_WRITE:
                return errand_write(e, found, facts);
        case QUEUE_BEAT:
                return errand_beat(e);
        case QUEUE_CONTINUE:
                return errand_continue(e);
        case QUEUE_CONFIRM:
                return errand_confirm(e);
        case QUEUE_ASK:
                return errand_ask(e);
        case QUEUE_WAIT:
        case QUEUE_LEAVE:
                e->state = QUEUE_ERRAND_WAITING;
                return 0;
        case QUEUE_SOON:
                e->again_usec = usec_add(now_of(q), QUEUE_TICK_USEC);
                return 0;
        case QUEUE_FOREIGN: /* since when it is unknown counts for other messages that name it, too */
                count_outlived(e);
                metrics_add(q->o->metrics, METRIC_QUEUE_FOREIGN, 0, 1);
                break;
        case QUEUE_NOTHING:
        case _QUEUE_ACT_MAX:
        case _QUEUE_ACT_INVALID:
                break;
        }
        errand_finish(e);
        return 0;
}

bool queue_errand_is_due(const QueueErrand *e) {
        return e->state == QUEUE_ERRAND_OPEN && now_of(e->shared) >= e->again_usec;
}

void queue_errand_step(QueueErrand *e) {
        QueueErrands *q = e->shared;
        QueueRules rules;
        QueueFound found;
        QueueFacts facts;
        int r;

        if (!queue_errand_is_due(e))
                return;
        rules = queue_rules_now(q->o);
        found = queue_find(q->o->view, e->instance);
        r = queue_facts_gather(q->o, q->memory, e->instance, &found, &facts);
        if (r >= 0) {
                facts.is_held = e->is_held;
                facts.hook_is_over = e->hook_is_over;
                e->act = queue_decide(e->event, e->notice, &facts, &rules);
                r = errand_act(e, &found, &facts);
        }
        if (r < 0) {
                log_warning_errno(q->o->env->log, r,
                                  "Failed to act on what queue %s told of instance %s, retrying: %m",
                                  sqs_client_queue(q->o->sqs), e->instance);
                errand_retry(e);
        }
}

bool queue_errand_wake(QueueErrand *e, const char *uid) {
        if (e->state != QUEUE_ERRAND_SHARED || !streq_ptr(e->object_uid, uid))
                return false;
        e->state = QUEUE_ERRAND_OPEN;
        return true;
}

void queue_errand_next_wakeup(const QueueErrand *e, const Timer *tick, Wakeups *w) {
        static const char *const names[] = { [QUEUE_ERRAND_OPEN] = "open",
                [QUEUE_ERRAND_SENT] = "sent",
                                             [QUEUE_ERRAND_SHARED] = "another writes",
                                                     [QUEUE_ERRAND_WAITING] = "waiting",
                                             [QUEUE_ERRAND_DONE] = "done" };

        if (e->state == QUEUE_ERRAND_WAITING || e->state == QUEUE_ERRAND_DONE)
                return;
        wakeups_unfinished(w, "message about instance", e->instance, names[e->state],
                           QUEUE_ERRAND_WAKEUP_USEC);
        if (e->state == QUEUE_ERRAND_OPEN && timer_is_armed(tick))
                wakeups_at(w, MAX(e->again_usec, timer_due(tick)));
        wakeups_await(w, e->state == QUEUE_ERRAND_SENT && (e->write || e->ask || e->hook));
        wakeups_await(w, e->state == QUEUE_ERRAND_SHARED && e->object_uid &&
                      queue_memory_is_written(e->shared->memory, e->object_uid));
}
