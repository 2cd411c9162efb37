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
                            .sent_usec = received->sent_usec,
                            .is_again = received->receives > 1,
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

static void errand_finish(QueueErrand *e) {
        e->state = QUEUE_ERRAND_DONE;
}

/* What is written, and not done: its group waits until the node is drained. */
static void errand_hold(QueueErrand *e) {
        e->shared->n_held += !e->is_held;
        e->is_held = true;
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

/* Another notice is moved out of the way; then this one is decided anew. */
static bool is_first_half(QueueAct act) {
        return act == QUEUE_MAKE_ROOM || act == QUEUE_SWAP;
}

static void on_written(const KubeReply *reply, void *userdata) {
        QueueErrand *e = userdata;
        QueueErrands *q = e->shared;
        _cleanup_free_ char *uid = TAKE_PTR(e->object_uid);

        /* Somebody may take the annotation off again, so that only the view says whether it is there. */
        if (uid)
                queue_memory_end_write(q->memory, uid);
        if (!reply->error && is_first_half(e->act))
                e->state = QUEUE_ERRAND_OPEN;
        else if (!reply->error) {
                if (e->event->kind == EVENT_MESSAGE_ASG_TERMINATE)
                        errand_hold(e);
                else
                        errand_finish(e);
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
                errand_retry(e);
        }
        if (uid)
                q->written(uid, e->message);
        e->write = kube_call_free(e->write);
        e->shared->answered(e->message); /* may end the errand */
}

/* Returns the notice that the claim or Node carries already, if it counts (QueueTold.is_told). NULL: none. Borrowed. */
static const Notice *told_there(const QueueErrand *e, const QueueFound *found) {
        const Interruption *i = e->on_node ? found->node->heard : found->claim->heard;

        return e->is_told && i ? i->notice : NULL;
}

/* Returns true if the message's notice replaces the one that is there: because it ends the machine for good and the other one does not, or
 * not now; or because the other one is a hibernation, which has no time to which the record could go back, and this one is still to come. */
static bool takes_place(const QueueErrand *e, const Notice *told) {
        const Notice *seen = e->notice;

        if (!told || streq(told->id, seen->id))
                return true;
        /* A claim is deleted for either: what comes first may be called off, and the other is not forgotten. */
        if (interruption_delete_counts((InterruptionDelete) e->shared->o->config->interruption_delete, told) &&
            notice_announced(told) != USEC_INFINITY && !notice_is_now(seen))
                return false;
        if (notice_announced(told) == USEC_INFINITY && !notice_ends_for_good(told) && !notice_is_now(seen))
                return true;
        return notice_ends_for_good(seen) && (!notice_ends_for_good(told) || (notice_is_now(seen) && !notice_is_now(told)));
}

/* A machine is not ended earlier for what it comes back from. */
static bool is_end_before(const QueueErrand *e, const Notice *n, const Notice *told) {
        InterruptionDelete d = (InterruptionDelete) e->shared->o->config->interruption_delete;

        return !e->on_node && n->kind == NOTICE_MAINTENANCE && interruption_delete_counts(d, n) &&
               (!interruption_delete_counts(d, told) || !interruption_delete_counts(d, e->notice));
}

/* Of two notices one stands, with the earlier of their times; and what was to be now still is. A
 * message about the one that stands says what is new of it; the time of another that came nearer stays. */
static int merge_told(const QueueErrand *e, const Notice *told, Notice **ret) {
        const Notice *seen = e->notice;
        usec_t wall = loop_wall(e->shared->o->env->loop), soon = usec_add(wall, e->shared->o->config->interruption_before_usec);
        bool is_same = told && streq(told->id, seen->id), is_now = notice_is_now(seen) || (told && !is_same && notice_is_now(told));
        usec_t nearer = told ? MIN(notice_announced(told), notice_announced(seen)) : USEC_INFINITY;
        int r = notice_copy(takes_place(e, told) ? seen : told, ret);

        if (r < 0 || !told || (is_same && told->own_announced_usec == 0))
                return r;
        /* A claim that is deleted now has its end by then. A Node that is drained now, and opened when that is outlived, does not wait for it. */
        if ((!e->on_node || notice_announced(*ret) != USEC_INFINITY || nearer <= soon) && !is_end_before(e, *ret, told))
                notice_bring_nearer(*ret, nearer);
        if (is_now && !notice_is_now(*ret))
                (*ret)->not_before_usec = MIN(wall, (*ret)->announced_usec - 1);
        return 0;
}

/* Returns the patch that the decided act calls for. NULL: out of memory. */
static char *body_to_write(const QueueErrand *e, const QueueFound *found) {
        _cleanup_(notice_freep) Notice *n = NULL;

        if (e->act == QUEUE_TAKE_BACK)
                return queue_told_claim_body(found->claim, e->notice, INTERRUPTION_CANCELLED, found->node);
        if (e->act == QUEUE_CANCEL_NODE)
                return queue_told_node_body(found->node, e->notice, INTERRUPTION_CANCELLED);
        if (e->act == QUEUE_MAKE_ROOM)
                return queue_told_node_body(found->node, found->claim->heard->notice, INTERRUPTION_PLANNED);
        if (e->act == QUEUE_SWAP)
                return queue_told_claim_body(found->claim, found->node->heard->notice, INTERRUPTION_PHASE_NONE, found->node);
        if (merge_told(e, told_there(e, found), &n) < 0)
                return NULL;
        return e->on_node ? queue_told_node_body(found->node, n, INTERRUPTION_PLANNED)
                          : queue_told_claim_body(found->claim, n, INTERRUPTION_PHASE_NONE, found->node);
}

static QueueVoiceAct voice_of(const QueueErrand *e) {
        if (e->act == QUEUE_TAKE_BACK || e->act == QUEUE_CANCEL_NODE)
                return QUEUE_VOICE_CALLS_OFF;
        if (e->act == QUEUE_WRITE_NODE && !e->is_managed)
                return QUEUE_VOICE_DRAINS;
        return e->deletes ? QUEUE_VOICE_DELETES : QUEUE_VOICE_DRAINS_MANAGED;
}

static int errand_write(QueueErrand *e, const QueueFound *found) {
        QueueErrands *q = e->shared;
        bool on_node = e->act == QUEUE_WRITE_NODE || e->act == QUEUE_CANCEL_NODE || e->act == QUEUE_MAKE_ROOM;
        const KubeObject *o = on_node ? &found->node->object : &found->claim->object;
        const KubeTarget target = { .kind = o->kind, .name = o->meta.name };
        const KubeCallOptions options = { .guard = q->o->guard, .object_unread = true };
        _cleanup_free_ char *body = NULL;
        int r;

        e->on_node = on_node;
        r = free_and_strdup(&e->object_uid, o->meta.uid);
        if (r >= 0)
                r = queue_memory_begin_write(q->memory, o->meta.uid);
        if (r < 0)
                return r;
        if (r == 0) {
                e->state = QUEUE_ERRAND_SHARED;
                return 0;
        }
        body = body_to_write(e, found);
        r = body ? kube_patch(q->o->client, &target, KUBE_PATCH_MERGE, body, &options, on_written, e, &e->write) : -ENOMEM;
        if (r < 0) {
                queue_memory_end_write(q->memory, o->meta.uid);
                return r;
        }
        e->state = QUEUE_ERRAND_SENT;
        if (found->node && e->backoff.failures == 0 && !is_first_half(e->act))
                queue_voice_node(q->o, &SAID(e), found->node, voice_of(e));
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

static void on_hook(HookOutcome outcome, const char *message, void *userdata) {
        QueueErrand *e = userdata;
        QueueErrands *q = e->shared;

        if (outcome == HOOK_OVER || (outcome == HOOK_OK && e->act == QUEUE_CONTINUE)) {
                log_info(q->o->env->log, "Auto Scaling group %s goes on with instance %s: its hook %s %s",
                         e->event->group, e->instance, e->event->hook,
                         outcome == HOOK_OVER ? "is over" : "was answered with CONTINUE");
                const KubeNode *n = e->event->kind == EVENT_MESSAGE_ASG_LAUNCH ? queue_find(q->o->view, e->instance).node : NULL;

                if (n)
                        queue_voice_node(q->o, &SAID(e), n, QUEUE_VOICE_CONTINUES);
                errand_finish(e);
        } else if (outcome == HOOK_OK) {
                backoff_reset(&e->backoff);
                errand_hold(e);
        } else {
                if (e->backoff.failures == 0)
                        log_warning(
                                q->o->env->log,
                                "Failed to answer hook %s of Auto Scaling group %s for instance %s, retrying: %s. It takes "
                                "autoscaling:CompleteLifecycleAction and autoscaling:RecordLifecycleActionHeartbeat",
                                e->event->hook, e->event->group, e->instance, message);
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

static int errand_continue(QueueErrand *e) {
        QueueErrands *q = e->shared;
        int r = hook_continue(q->hooks, e->event, e->instance, &q->o->guard, on_hook, e, &e->hook);

        if (r >= 0)
                e->state = QUEUE_ERRAND_SENT;
        return r;
}

/* -- the step ------------------------------------------------------------------------------------------- */

static void errand_tell(const QueueErrand *e, const KubeNode *n, QueueVoiceAct act) {
        if (!e->is_again)
                queue_voice_node(e->shared->o, &SAID(e), n, act);
}

static int errand_act(QueueErrand *e, const QueueFound *found) {
        QueueErrands *q = e->shared;

        switch (e->act) {
        case QUEUE_TELL:
                errand_tell(e, found->node, e->event->closed ? QUEUE_VOICE_CALLED_OFF_ELSE : QUEUE_VOICE_REPORTS);
                if (!e->is_again && !e->event->closed)
                        queue_voice_receiver(q->o, &SAID(e), found->node);
                break;
        case QUEUE_KNOWN:
                errand_tell(e, found->node, QUEUE_VOICE_KNOWN);
                break;
        case QUEUE_LOOK:
                errand_tell(e, found->node, QUEUE_VOICE_LOOKS);
                q->o->look(found->node->object.meta.name, q->o->userdata);
                break;
        case QUEUE_WRITE:
        case QUEUE_WRITE_NODE:
        case QUEUE_MAKE_ROOM:
        case QUEUE_SWAP:
        case QUEUE_TAKE_BACK:
        case QUEUE_CANCEL_NODE:
                return errand_write(e, found);
        case QUEUE_BEAT:
                return errand_beat(e);
        case QUEUE_CONTINUE:
                return errand_continue(e);
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

void queue_errand_step(QueueErrand *e) {
        QueueErrands *q = e->shared;
        QueueRules rules;
        QueueFound found;
        QueueFacts facts;
        int r;

        if (e->state != QUEUE_ERRAND_OPEN || now_of(q) < e->again_usec)
                return;
        rules = queue_rules_now(q->o);
        found = queue_find(q->o->view, e->instance);
        r = queue_facts_gather(q->o, q->memory, e->instance, e->notice, &found, &facts);
        if (r >= 0) {
                facts.is_held = e->is_held;
                e->act = queue_decide(e->event, e->notice, &facts, &rules);
                e->is_told = (e->act == QUEUE_WRITE_NODE ? facts.on_node.is_told : facts.told.is_told) && !facts.told.is_on_node;
                e->is_managed = facts.is_managed;
                e->deletes = e->notice && interruption_delete_counts(rules.deletes, e->notice);
                r = errand_act(e, &found);
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
