/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-voice.h"

#include "coordinator-metrics.h"
#include "interruption.h"
#include "log-catalog.h"
#include "log.h"
#include "notify-sender.h"
#include "string-util.h"

/* -- a node --------------------------------------------------------------------------------------------- */

static const struct {
        const char *done;  /* of the log line */
        const char *event; /* of the Event; what is done by the announced time, or now where none is said, ... */
        const char *rest;  /* ... and behind that; NULL: no time concerns it */
        bool acts;
} voices[_QUEUE_VOICE_MAX] = {
        [QUEUE_VOICE_REPORTS] = { "Nothing is done about it here", "The coordinator does nothing about it", NULL, false },
        [QUEUE_VOICE_DELETES] = { "Its NodeClaim is deleted for that", "The coordinator deletes its NodeClaim, so that the node is drained",
                                  " and its machine ended", true },
        [QUEUE_VOICE_HELD] = { "The brake of the queue holds this notice: vesper drains the node under PodDisruptionBudgets and does not end its machine",
                               "The brake of the queue holds the notice. The coordinator evicts this node's pods under their PodDisruptionBudgets, and does "
                               "not end the machine until AWS, the node's agent or a person confirms the notice", NULL, true },
        [QUEUE_VOICE_DRAINS] = { "It has no NodeClaim, and [Queue] Unmanaged=drain: it is cordoned and drained, and its machine is left to its cloud",
                                 "The coordinator cordons and drains the node", ", and leaves its machine to its cloud", true },
        [QUEUE_VOICE_DRAINS_MANAGED] = { "It is cordoned and drained, and kept: that does not terminate its machine",
                                         "The coordinator cordons and drains the node",
                                         ", and keeps it, as that does not terminate its machine", true },
        [QUEUE_VOICE_LOOKS] = { "Its machine is looked at anew", "The coordinator looks at the machine anew", NULL, false },
        [QUEUE_VOICE_KNOWN] = { "Its NodeClaim is being deleted already, for a notice that is no later",
                                "The coordinator deletes its NodeClaim already, for a notice that is no later", NULL, false },
        [QUEUE_VOICE_CALLS_OFF] = { "That is called off, or over: nothing is done for it any more",
                                    "That is called off, or over: nothing is done for it any more", NULL, true },
        [QUEUE_VOICE_CALLED_OFF_ELSE] = { "That is called off, or over. Nothing waits for it here; a removal that has begun goes on",
                                          "That is called off, or over. Nothing waits for it; a removal that has begun goes on", NULL, false },
        [QUEUE_VOICE_CONTINUES] = { "It is Ready, and its group goes on", "The node is Ready, and its group is told to go on", NULL, false },
};

/* Returns ". That begins at TIME": when the coordinator acts upon a change that is far. NULL: now, or out of memory. */
static char *from_when(const QueueWorkerOptions *o, const Notice *n, QueueVoiceAct act) {
        char text[RFC3339_MAX];
        usec_t due = n ? usec_sub(notice_announced(n), o->config->interruption_before_usec) : 0;

        if ((!voices[act].rest && act != QUEUE_VOICE_HELD) || !n || n->kind != NOTICE_MAINTENANCE || due <= loop_wall(o->env->loop))
                return NULL;
        rfc3339_format(due, text);
        return strf(". That begins at %s ([Interruption] BeforeSec=)", text);
}

/* By when it is done; a change whose time has passed may begin until its window ends. */
static char *by_when(const QueueWorkerOptions *o, const Notice *n) {
        usec_t wall = loop_wall(o->env->loop), at = n ? notice_announced(n) : USEC_INFINITY;
        char text[RFC3339_MAX];

        if (at == USEC_INFINITY || (at <= wall && notice_window_end(n) <= wall))
                return strdup(" now");
        if (at > wall)
                return strdup(" by then");
        rfc3339_format(notice_window_end(n), text);
        return strf(" before its window ends at %s", text);
}

/* Returns why nothing is done, or what a person can do. NULL: there is nothing to say, or no memory. */
static char *why_reported(const QueueSaid *said, const KubeNode *n, QueueVoiceAct act) {
        if (act == QUEUE_VOICE_HELD)
                return strf(". If AWS takes the machine, 'vesperctl let-go %s' shows what follows if you confirm that", n->object.meta.name);
        if (act != QUEUE_VOICE_REPORTS || !said->why)
                return NULL;
        return strf(", because %s%s%s", said->why, notice_ends_machine(said->notice) ? ". If its agent does not drain it: vesperctl drain " : "",
                    notice_ends_machine(said->notice) ? n->object.meta.name : "");
}

void queue_voice_node(const QueueWorkerOptions *o, const QueueSaid *said, const KubeNode *n, QueueVoiceAct act) {
        const char *action = said->notice && said->event->kind != EVENT_MESSAGE_STATE_CHANGE ? said->notice->action : said->event->action;
        _cleanup_free_ char *what = str_sanitize(strempty(action), 60), *from = from_when(o, said->notice, act), *why = why_reported(said, n, act),
                            *by = voices[act].rest ? by_when(o, said->notice) : NULL;
        EventObject object = event_object(&n->object);
        char when[RFC3339_MAX] = "a time that is not said";
        const char *kind = event_message_kind_names[said->event->kind];
        bool acts = voices[act].acts, is_lost = why && notice_ends_machine(said->notice) && said->notice->certainty == NOTICE_CERTAIN;

        if (said->notice && notice_announced(said->notice) != USEC_INFINITY)
                rfc3339_format(notice_announced(said->notice), when);
        log_event(o->env->log, is_lost ? LOG_LEVEL_WARNING : acts ? LOG_LEVEL_NOTICE : LOG_LEVEL_INFO, MESSAGE_QUEUE_NOTICE,
                  LOG_FIELDS({ "NODE", n->object.meta.name }, { "INSTANCE", said->instance }),
                  "Queue %s announces for node %s (%s): %s%s%s, at %s. %s%s%s", sqs_client_queue(o->sqs), n->object.meta.name, said->instance, kind,
                  isempty(what) ? "" : ", ", strempty(what), when, voices[act].done, strempty(from), strempty(why));
        event_record(o->recorder, &object, is_lost || (acts && act != QUEUE_VOICE_CALLS_OFF) ? EVENT_WARNING : EVENT_NORMAL,
                     act == QUEUE_VOICE_CALLS_OFF ? "InterruptionCalledOff"
                     : acts                       ? "InterruptionAnnounced"
                                                  : "NoticeReported",
                     "The interruption queue announces for instance %s: %s%s%s, at %s. %s%s%s%s%s", said->instance, kind, isempty(what) ? "" : ", ",
                     strempty(what), when, voices[act].event, strempty(by), strempty(voices[act].rest), strempty(from), strempty(why));
}

/* What its agent has reported is the agent's to tell. */
void queue_voice_receiver(const QueueWorkerOptions *o, const QueueSaid *said, const KubeNode *n) {
        _cleanup_free_ char *text = NULL;

        if (!o->notify || !said->notice || (o->config->notify_agents_tell && kube_node_standing_interruption(n)))
                return;
        text = strf("The interruption queue announces for node %s (%s): %s, %s. The coordinator does nothing about it.", n->object.meta.name,
                    said->instance, notice_kind_to_string(said->notice->kind), strempty(said->notice->action));
        if (!text)
                return;
        notify_sender_tell(o->notify, &(NotifyFacts){ .phase = NOTIFY_REPORTED,
                                                      .node = n->object.meta.name,
                                                      .node_uid = n->object.meta.uid,
                                                      .notice_id = said->notice->id,
                                                      .kind = notice_kind_to_string(said->notice->kind),
                                                      .source = said->notice->source,
                                                      .action = said->notice->action,
                                                      .deadline_usec = notice_announced(said->notice),
                                                      .pods_left = -1,
                                                      .message = text });
}

/* -- the queue ------------------------------------------------------------------------------------------ */

static const char *advice(SqsOutcome o) {
        switch (o) {
        case SQS_DENIED:
                return ". Grant sqs:ReceiveMessage, sqs:DeleteMessage and sqs:ChangeMessageVisibility on it, and kms:Decrypt if it is "
                       "encrypted";
        case SQS_GONE:
                return ". There is no such queue in that region and account";
        case SQS_TOO_LARGE:
                return ". The coordinator asks for fewer messages at a time until they fit";
        case SQS_OK:
        case SQS_RETRY:
        case _SQS_OUTCOME_MAX:
                break;
        }
        return "";
}

void queue_voice_answer(const QueueWorkerOptions *o, const SqsResult *result, bool is_poll, bool *fails) {
        bool failed = result->outcome != SQS_OK;

        metrics_add(o->metrics, METRIC_QUEUE_ANSWERS, (size_t) result->outcome, 1);
        if (failed && !*fails)
                log_event(
                        o->env->log, LOG_LEVEL_WARNING, MESSAGE_QUEUE_FAILING,
                        LOG_FIELDS({ "REASON", sqs_outcome_names[result->outcome] }),
                        is_poll ? "Queue %s ([Queue] Url=) in region %s is not heard, retrying: %s. Notices reach only nodes with an "
                                  "agent meanwhile%s"
                                : "Queue %s ([Queue] Url=) in region %s does not let go of messages that are done with, retrying: %s. "
                                  "They come again, and change nothing%s",
                        sqs_client_queue(o->sqs), sqs_client_region(o->sqs), result->message, advice(result->outcome));
        else if (!failed && *fails)
                log_event(o->env->log, LOG_LEVEL_NOTICE, MESSAGE_QUEUE_BACK, NULL, 0, "Queue %s answers again", sqs_client_queue(o->sqs));
        *fails = failed;
}

void queue_voice_poison(const QueueWorkerOptions *o, const SqsMessage *message, const EventMessage *event,
                        size_t body_bytes, bool is_deleted) {
        _cleanup_free_ char *source = str_sanitize(strempty(event->source), 60),
                            *account = str_sanitize(strempty(event->account), 60);

        log_event(o->env->log, LOG_LEVEL_WARNING, MESSAGE_QUEUE_POISON,
                  LOG_FIELDS({ "QUEUE", sqs_client_queue(o->sqs) }),
                  "Message %.64s of queue %s cannot be read and was received %u times. It has %zu bytes, source %s "
                  "and account %s. %s",
                  message->id, sqs_client_queue(o->sqs), message->receives, body_bytes,
                  isempty(source) ? "(none)" : source, isempty(account) ? "(none)" : account,
                  is_deleted ? "The coordinator deletes it unread, because 1,000 such messages are hidden already. Correct the rule or "
                               "program that sends them. More deletions within a minute are only counted"
                             : "The coordinator hides it for 12 hours. When it is visible again, read it in the queue with aws sqs "
                               "receive-message. It ends with the queue's retention period, usually before it "
                               "reaches the maxReceiveCount of a redrive policy");
}

void queue_voice_elsewhere(const QueueWorkerOptions *o, const EventMessage *event) {
        _cleanup_free_ char *account = str_sanitize(event->account, 60),
                            *region = str_sanitize(event->region, 60);

        log_event(o->env->log, LOG_LEVEL_WARNING, MESSAGE_QUEUE_ELSEWHERE,
                  LOG_FIELDS({ "QUEUE", sqs_client_queue(o->sqs) }),
                  "Queue %s gets messages of account %s and region %s, ignoring: the queue is of account %s and "
                  "region %s. If nodes of this cluster run there, set [Queue] Accounts= or Regions=; else correct "
                  "the queue's policy or the rule that sends them",
                  sqs_client_queue(o->sqs), isempty(account) ? "(none)" : account,
                  isempty(region) ? "(none)" : region, strempty(sqs_client_account(o->sqs)),
                  sqs_client_region(o->sqs));
}

void queue_voice_brake(const QueueWorkerOptions *o, size_t n, size_t limit) {
        log_event(o->env->log, LOG_LEVEL_WARNING, MESSAGE_QUEUE_BRAKE, LOG_FIELDS({ "QUEUE", sqs_client_queue(o->sqs) }),
                  "Queue %s alone announced interruptions of %zu machines within ten minutes; the limit is %zu. The nodes of further notices are cordoned "
                  "and drained under PodDisruptionBudgets, and their machines stay until AWS, the node's agent or a person confirms the notice "
                  "(vesperctl let-go NODE --yes). vesperctl status shows the nodes. More notices are only counted",
                  sqs_client_queue(o->sqs), n, limit);
}

void queue_voice_confirmed(const QueueWorkerOptions *o, const KubeNode *n, const Notice *notice, const char *words) {
        const char *name = n->object.meta.name, *kind = notice_kind_to_string(notice->kind) ?: "unknown";
        EventObject object = event_object(&n->object);

        log_event(o->env->log, LOG_LEVEL_NOTICE, MESSAGE_INTERRUPTION_LET_GO, LOG_FIELDS({ "NODE", name }),
                  "The brake of the queue no longer holds the %s notice of node %s: AWS confirms it, %s", kind, name, words);
        event_record(o->recorder, &object, EVENT_NORMAL, "InterruptionLetGo",
                     "The brake of the queue no longer holds the %s notice: AWS confirms it, %s. vesper now acts upon it ([Interruption] Delete=; without "
                     "NodeClaim [Queue] Unmanaged=)",
                     kind, words);
}

void queue_voice_unconfirmed(const QueueWorkerOptions *o, const char *permission, const char *message, bool is_denied) {
        log_event(o->env->log, LOG_LEVEL_WARNING, MESSAGE_QUEUE_UNCONFIRMED, LOG_FIELDS({ "QUEUE", sqs_client_queue(o->sqs) }),
                  "Failed to ask AWS about machines whose notices the brake of queue %s holds, retrying: %s. They stay held until the node's agent "
                  "confirms them, or a person lets them go (vesperctl let-go)%s%s",
                  sqs_client_queue(o->sqs), message, is_denied ? ". Grant " : "", is_denied ? permission : "");
}

/* Whose machines run in it no message says. In a queue that others read it comes again and again, and is said once. */
void queue_voice_capacity_block(const QueueWorkerOptions *o, const SqsMessage *message, const EventMessage *event) {
        _cleanup_free_ char *reservation = str_sanitize(event->reservation, 60);
        char when[RFC3339_MAX] = "a time that is not said";

        if (o->config->queue_shared && message->receives > 1)
                return;
        if (event->not_before_usec > 0)
                rfc3339_format(event->not_before_usec, when);
        log_event(o->env->log, LOG_LEVEL_WARNING, MESSAGE_QUEUE_CAPACITY_BLOCK, LOG_FIELDS({ "QUEUE", sqs_client_queue(o->sqs) }),
                  "Queue %s announces that Capacity Block %s ends at %s. The message names a reservation and no instance, so no node is drained for it here. "
                  "Each agent in the block drains its own node where the instance has the tag vesper.sh:capacity-block-end: vesper-agent --check says on the node whether it knows the end",
                  sqs_client_queue(o->sqs), isempty(reservation) ? "(without a name)" : reservation, when);
}
