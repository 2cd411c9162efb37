/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-worker.h"

#include "backoff.h"
#include "coordinator-metrics.h"
#include "lifecycle-hook.h"
#include "list.h"
#include "log.h"
#include "queue-facts.h"
#include "queue-memory.h"
#include "queue-told.h"
#include "queue-voice.h"
#include "string-util.h"
#include "strv.h"

#define WAIT_SEC 20u       /* of a poll */
#define VISIBILITY_SEC 10u /* of what was received; see queue-worker.h */
#define POLLS_MAX 4u
/* Nothing more is received while there is work on so many messages, besides those that wait for a drain. */
#define ITEMS_MAX 500u
#define BATCHES_MAX 3u
/* What is done within so long goes in one request. */
#define TOGETHER_USEC (20 * USEC_PER_MSEC)
#define TICK_USEC USEC_PER_SEC
/* Of what is being worked on: hidden anew when so little is left. */
#define RENEW_USEC (5 * USEC_PER_SEC)
/* A queue that answers at once, and with nothing, is not asked more often. */
#define EMPTY_POLL_USEC USEC_PER_SEC
/* The shortest time of a hook is 30 s. */
#define BEAT_USEC (12 * USEC_PER_SEC)
#define RETRY_BASE_USEC USEC_PER_SEC
#define RETRY_CAP_USEC USEC_PER_MINUTE
#define ERRAND_RETRY_CAP_USEC (10 * USEC_PER_SEC)
#define JITTER_PERMILLE 200u
/* After so many conflicts in a row the view is what is old. */
#define CONFLICTS_MAX 2u
/* How long one that nobody knows is hidden. */
#define UNKNOWN_HIDE_SEC 20u
/* 12 hours since it was received; some seconds have passed. */
#define PARK_SEC (12u * 3600u - 60u)

/* What its message says of the instance of an Errand, for queue-voice.h. */
#define SAID(e) ((QueueSaid){ .event = &(e)->item->event, .instance = (e)->instance, .notice = (e)->notice })

typedef struct Item Item;

typedef enum ErrandState {
        ERRAND_OPEN,    /* to be decided */
        ERRAND_SENT,    /* written, or asked about: not answered */
        ERRAND_SHARED,  /* another one writes the same on that claim */
        ERRAND_WAITING, /* not now */
        ERRAND_DONE,
} ErrandState;

/* What a message means for one instance. */
typedef struct Errand {
        Item *item;
        char *instance;
        Notice *notice; /* NULL: none */
        ErrandState state;
        QueueAct act; /* as decided last */
        char *claim;  /* uid of that which is written on, or of the Node */
        bool on_node; /* it is the Node */
        usec_t told_usec; /* the time that stood there; USEC_INFINITY: none */
        bool is_told_now; /* and that it is now */
        KubeCall *write;
        CloudCall *ask;
        HookCall *hook;
        bool is_held;      /* its group waits for us */
        unsigned n_conflicts; /* in a row, of its write */
        usec_t beat_usec;  /* the next heartbeat */
        usec_t again_usec; /* open, and not before then */
        Backoff backoff;
} Errand;

typedef enum ItemState { ITEM_WORKING, ITEM_DELETE, ITEM_HIDE, ITEM_SENT } ItemState;

struct Item {
        ListNode items; /* of the worker */
        ListNode batch; /* of its to_delete, to_hide, or of a Batch; not while WORKING */
        QueueWorker *worker;
        SqsMessage message;
        EventMessage event;
        Errand *errands;
        size_t n_errands;
        ItemState state;
        unsigned hide_sec;
        usec_t visible_usec; /* loop_now(): when it comes again */
};

/* One request to delete or to hide. */
typedef struct Batch {
        ListNode batches;
        QueueWorker *worker;
        List items; /* its own; of a renewal none */
        bool deletes;
        SqsCall *call;
} Batch;

typedef struct Poll {
        QueueWorker *worker;
        SqsCall *call;
        Timer *again;
        Backoff backoff;
        usec_t begun_usec;
} Poll;

struct QueueWorker {
        QueueWorkerOptions o;
        HookClient *hooks;
        size_t n_held; /* errands whose hooks are held */
        Poll polls[POLLS_MAX];
        unsigned n_polls;
        List items, to_delete, to_hide, batches;
        Timer *tick, *flush;
        QueueMemory memory;
        bool polls_fail, batches_fail; /* the last answer was an error, and that was told */
};

static void poll_start(Poll *p);
static void item_step(Item *i);
static void flush(QueueWorker *w);

static usec_t now_of(const QueueWorker *w) {
        return loop_now(w->o.env->loop);
}

/* -- memory --------------------------------------------------------------------------------------------- */

static void errand_done(Errand *e) {
        e->item->worker->n_held -= e->is_held;
        hook_call_free(e->hook);
        kube_call_free(e->write);
        cloud_call_free(e->ask);
        notice_free(e->notice);
        free(e->instance);
        free(e->claim);
}

static void item_free(Item *i) {
        list_remove(&i->worker->items, &i->items);
        if (i->state == ITEM_DELETE)
                list_remove(&i->worker->to_delete, &i->batch);
        else if (i->state == ITEM_HIDE)
                list_remove(&i->worker->to_hide, &i->batch);
        for (size_t k = 0; k < i->n_errands; k++)
                errand_done(i->errands + k);
        free(i->errands);
        event_message_done(&i->event);
        sqs_message_done(&i->message);
        free(i);
}

static void batch_free(Batch *b) {
        LIST_FOREACH (i, &b->items, Item, batch) {
                list_remove(&b->items, &i->batch);
                item_free(i);
        }
        sqs_call_free(b->call);
        list_remove(&b->worker->batches, &b->batches);
        free(b);
}

/* -- errands -------------------------------------------------------------------------------------------- */

static void errand_retry(Errand *e) {
        QueueWorker *w = e->item->worker;

        e->state = ERRAND_OPEN;
        e->again_usec = usec_add(now_of(w), backoff_next(&e->backoff, w->o.env->random));
}

static void errand_finish(Errand *e) {
        e->state = ERRAND_DONE;
}

/* What is written, and not done: its group waits until the node is drained. */
static void errand_hold(Errand *e) {
        e->item->worker->n_held += !e->is_held;
        e->is_held = true;
        e->state = ERRAND_OPEN;
        e->again_usec = usec_add(now_of(e->item->worker), TICK_USEC);
}

/* What waited for this write: is decided anew, by what is so now. The item of the write itself is left to
 * its caller. */
static void wake_sharers(QueueWorker *w, const char *uid, const Item *but) {
        LIST_FOREACH (i, &w->items, Item, items) {
                bool woken = false;

                for (size_t k = 0; i != but && k < i->n_errands; k++)
                        if (i->errands[k].state == ERRAND_SHARED && streq_ptr(i->errands[k].claim, uid)) {
                                i->errands[k].state = ERRAND_OPEN;
                                woken = true;
                        }
                if (woken)
                        item_step(i);
        }
}

/* Its claim, or Node, has changed since it was read: it is decided anew by what the view shows in a moment. */
static void note_conflict(Errand *e) {
        QueueWorker *w = e->item->worker;

        if (++e->n_conflicts < CONFLICTS_MAX)
                return;
        e->n_conflicts = 0;
        w->o.view_is_old(e->on_node ? &kube_node_kind : &kube_node_claim_kind, w->o.userdata);
}

static void on_written(const KubeReply *reply, void *userdata) {
        Errand *e = userdata;
        Item *i = e->item;
        QueueWorker *w = i->worker;
        WrittenClaim *x = queue_memory_written(&w->memory, e->claim);
        _cleanup_free_ char *uid = TAKE_PTR(e->claim);

        if (x)
                x->in_flight = false;
        /* What stands on a Node is taken off again: the view alone says what does. */
        if (uid && (reply->error || e->on_node))
                queue_memory_forget_written(&w->memory, uid);
        if (!reply->error) {
                if (i->event.kind == EVENT_MESSAGE_ASG_TERMINATE)
                        errand_hold(e);
                else
                        errand_finish(e);
                if (i->message.sent_usec > 0)
                        metrics_observe(w->o.metrics, METRIC_QUEUE_SECONDS, 0,
                                        (double) usec_sub(loop_wall(w->o.env->loop), i->message.sent_usec) /
                                                (double) USEC_PER_SEC);
        } else {
                e->n_conflicts = reply->error->http == 409 ? e->n_conflicts : 0;
                if (reply->error->http == 409)
                        note_conflict(e);
                else if (e->backoff.failures == 0)
                        log_warning(
                                w->o.env->log,
                                "Failed to write on the %s of instance %s what queue %s told, retrying: %s",
                                e->on_node ? "Node" : "NodeClaim", e->instance, sqs_client_queue(w->o.sqs), strempty(reply->error->message));
                errand_retry(e);
        }
        if (uid)
                wake_sharers(w, uid, i);
        e->write = kube_call_free(e->write);
        item_step(i); /* may end it */
}

/* What stood on the claim, or Node, stays, with what is new. */
static void add_told(Errand *e) {
        Notice *n = e->notice;
        bool is_now = notice_is_now(n) || e->is_told_now;

        if (e->told_usec < notice_announced(n))
                n->announced_usec = e->told_usec;
        if (is_now && !notice_is_now(n))
                n->not_before_usec = MIN(loop_wall(e->item->worker->o.env->loop), n->announced_usec - 1);
}

static int errand_write(Errand *e, const QueueFound *found, bool on_node) {
        QueueWorker *w = e->item->worker;
        const KubeObject *o = on_node ? &found->node->object : &found->claim->object;
        const KubeTarget target = { .kind = o->kind, .name = o->meta.name };
        const KubeCallOptions options = { .guard = w->o.guard, .object_unread = true };
        _cleanup_free_ char *body = NULL;
        const char *uid = o->meta.uid;
        bool is_new = !queue_memory_written(&w->memory, uid);
        WrittenClaim *x;
        int r;

        e->on_node = on_node;
        r = free_and_strdup(&e->claim, uid);
        x = r >= 0 ? queue_memory_note_written(&w->memory, uid) : NULL;
        if (!x)
                return -ENOMEM;
        if (x->in_flight) {
                e->state = ERRAND_SHARED;
                return 0;
        }
        add_told(e);
        body = on_node ? queue_told_node_body(found->node, e->notice) : queue_told_claim_body(found->claim, e->notice);
        r = body ? kube_patch(w->o.client, &target, KUBE_PATCH_MERGE, body, &options, on_written, e, &e->write) : -ENOMEM;
        if (r < 0) {
                if (is_new) /* else what was not written would count as told, and the message be deleted */
                        queue_memory_forget_written(&w->memory, uid);
                return r;
        }
        x->end_usec = notice_announced(e->notice);
        x->is_now = notice_is_now(e->notice);
        x->in_flight = true;
        e->state = ERRAND_SENT;
        if (found->node && e->backoff.failures == 0)
                queue_voice_node(&w->o, &SAID(e), found->node, on_node ? QUEUE_VOICE_DRAINS : QUEUE_VOICE_DELETES);
        return 0;
}

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
        Errand *e = userdata;
        Item *i = e->item;
        UnknownInstance *u = queue_memory_unknown(&i->worker->memory, e->instance);

        if (u)
                u->sight = sight_of(result);
        e->state = ERRAND_OPEN;
        e->ask = cloud_call_free(e->ask);
        item_step(i); /* may end it */
}

/* Of the instance no more is known than where the message came from. */
static int errand_ask(Errand *e) {
        QueueWorker *w = e->item->worker;
        CloudProvider *ec2 = cloud_registry_named(w->o.cloud, "ec2");
        const char *region = e->item->event.region;
        _cleanup_free_ char *id = NULL;
        int r;

        if (!ec2) {
                e->state = ERRAND_WAITING;
                return 0;
        }
        id = strf("aws:///%s/%s", isempty(region) ? sqs_client_region(w->o.sqs) : region, e->instance);
        if (!id)
                return -ENOMEM;
        r = cloud_describe(ec2, &(CloudMachine){ .provider_id = id }, on_described, e, &e->ask);
        if (r >= 0)
                e->state = ERRAND_SENT;
        return r;
}

static void on_hook(HookOutcome outcome, const char *message, void *userdata) {
        Errand *e = userdata;
        Item *i = e->item;
        QueueWorker *w = i->worker;

        if (outcome == HOOK_OVER || (outcome == HOOK_OK && e->act == QUEUE_CONTINUE)) {
                log_info(w->o.env->log, "Auto Scaling group %s goes on with instance %s: its hook %s %s",
                         i->event.group, e->instance, i->event.hook,
                         outcome == HOOK_OVER ? "is over" : "was answered with CONTINUE");
                errand_finish(e);
        } else if (outcome == HOOK_OK) {
                backoff_reset(&e->backoff);
                errand_hold(e);
        } else {
                if (e->backoff.failures == 0)
                        log_warning(
                                w->o.env->log,
                                "Failed to answer hook %s of Auto Scaling group %s for instance %s, retrying: %s. It takes "
                                "autoscaling:CompleteLifecycleAction and autoscaling:RecordLifecycleActionHeartbeat",
                                i->event.hook, i->event.group, e->instance, message);
                errand_retry(e);
        }
        e->hook = hook_call_free(e->hook);
        item_step(i); /* may end it */
}

static int errand_beat(Errand *e) {
        QueueWorker *w = e->item->worker;
        int r;

        errand_hold(e);
        if (now_of(w) < e->beat_usec)
                return 0;
        r = hook_heartbeat(w->hooks, &e->item->event, e->instance, &w->o.guard, on_hook, e, &e->hook);
        if (r < 0)
                return r;
        e->beat_usec = usec_add(now_of(w), BEAT_USEC);
        e->state = ERRAND_SENT;
        return 0;
}

static int errand_continue(Errand *e) {
        QueueWorker *w = e->item->worker;
        int r = hook_continue(w->hooks, &e->item->event, e->instance, &w->o.guard, on_hook, e, &e->hook);

        if (r >= 0)
                e->state = ERRAND_SENT;
        return r;
}

static int errand_act(Errand *e, const QueueFound *found) {
        QueueWorker *w = e->item->worker;

        switch (e->act) {
        case QUEUE_TELL:
                queue_voice_node(&w->o, &SAID(e), found->node, QUEUE_VOICE_REPORTS);
                queue_voice_receiver(&w->o, &SAID(e), found->node);
                break;
        case QUEUE_LOOK:
                if (found->node)
                        w->o.look(found->node->object.meta.name, w->o.userdata);
                break;
        case QUEUE_WRITE:
                return errand_write(e, found, false);
        case QUEUE_WRITE_NODE:
                return errand_write(e, found, true);
        case QUEUE_BEAT:
                return errand_beat(e);
        case QUEUE_CONTINUE:
                return errand_continue(e);
        case QUEUE_ASK:
                return errand_ask(e);
        case QUEUE_WAIT:
        case QUEUE_LEAVE:
                e->state = ERRAND_WAITING;
                return 0;
        case QUEUE_SOON:
                e->again_usec = usec_add(now_of(w), TICK_USEC);
                return 0;
        case QUEUE_FOREIGN: /* since when it is unknown counts for other messages that name it, too */
                metrics_add(w->o.metrics, METRIC_QUEUE_FOREIGN, 0, 1);
                break;
        case QUEUE_NOTHING:
        case _QUEUE_ACT_MAX:
        case _QUEUE_ACT_INVALID:
                break;
        }
        errand_finish(e);
        return 0;
}

static void errand_step(Errand *e) {
        QueueWorker *w = e->item->worker;
        QueueRules rules = queue_rules_now(&w->o);
        QueueFound found = queue_find(w->o.view, e->instance);
        QueueFacts facts;
        int r;

        r = queue_facts_gather(&w->o, &w->memory, e->instance, e->notice, &found, &facts);
        if (r >= 0) {
                facts.is_held = e->is_held;
                e->told_usec = facts.told_usec;
                e->is_told_now = facts.is_told && facts.is_told_now;
                e->act = queue_decide(&e->item->event, e->notice, &facts, &rules);
                r = errand_act(e, &found);
        }
        if (r < 0) {
                log_warning_errno(w->o.env->log, r,
                                  "Failed to act on what queue %s told of instance %s, retrying: %m",
                                  sqs_client_queue(w->o.sqs), e->instance);
                errand_retry(e);
        }
}

/* -- items ---------------------------------------------------------------------------------------------- */

static void item_enqueue(Item *i, ItemState state, unsigned hide_sec) {
        QueueWorker *w = i->worker;
        List *to = state == ITEM_DELETE ? &w->to_delete : &w->to_hide;

        i->state = state;
        i->hide_sec = hide_sec;
        list_append(to, &i->batch);
        timer_arm_earlier(w->flush, usec_add(now_of(w), to->size >= SQS_BATCH_MAX ? 0 : TOGETHER_USEC));
}

/* It is hidden for a while, or comes again by itself, and begins anew then. May end it. */
static void item_wait(Item *i) {
        for (size_t k = 0; k < i->n_errands; k++)
                if (i->errands[k].state == ERRAND_WAITING && i->errands[k].act == QUEUE_LEAVE) {
                        item_free(i);
                        return;
                }
        /* What EC2 said of it counts for now alone. */
        for (size_t k = 0; k < i->n_errands; k++) {
                UnknownInstance *u = queue_memory_unknown(&i->worker->memory, i->errands[k].instance);

                if (u)
                        u->sight = QUEUE_NOT_ASKED;
        }
        item_enqueue(i, ITEM_HIDE, UNKNOWN_HIDE_SEC);
}

/* May end it. */
static void item_step(Item *i) {
        usec_t now = now_of(i->worker);
        bool waits = false, is_open = false;

        if (i->state != ITEM_WORKING)
                return;
        for (size_t k = 0; k < i->n_errands; k++) {
                Errand *e = i->errands + k;

                if (e->state == ERRAND_OPEN && now >= e->again_usec)
                        errand_step(e);
                waits = waits || e->state == ERRAND_WAITING;
                is_open = is_open || (e->state != ERRAND_WAITING && e->state != ERRAND_DONE);
        }
        if (is_open)
                return;
        if (waits)
                item_wait(i);
        else
                item_enqueue(i, ITEM_DELETE, 0);
}

static int item_make_errands(Item *i) {
        size_t n = strv_length(i->event.instances);

        i->errands = n > 0 ? new0(Errand, n) : NULL;
        if (n > 0 && !i->errands)
                return -ENOMEM;
        for (; i->n_errands < n; i->n_errands++) {
                Errand *e = i->errands + i->n_errands;
                int r;

                *e = (Errand){ .item = i,
                               .backoff = { .base_usec = RETRY_BASE_USEC / 4,
                                            .cap_usec = ERRAND_RETRY_CAP_USEC,
                                            .jitter_permille = JITTER_PERMILLE } };
                r = free_and_strdup(&e->instance, i->event.instances[i->n_errands]);
                if (r >= 0)
                        r = event_message_notice(&i->event, e->instance, &e->notice);
                if (r < 0 && r != -ENODATA) {
                        errand_done(e);
                        return r;
                }
        }
        return 0;
}

/* It comes again by itself, until it has come so often that nobody will ever read it. May end it. */
static void item_spoiled(Item *i) {
        QueueWorker *w = i->worker;
        QueueRules rules = queue_rules_now(&w->o);

        if (!queue_is_poison(i->message.receives, &rules)) {
                item_free(i);
                return;
        }
        metrics_add(w->o.metrics, METRIC_QUEUE_POISON, 0, 1);
        if (queue_memory_note_poison(&w->memory, i->message.id))
                queue_voice_poison(&w->o, &i->message);
        item_enqueue(i, ITEM_HIDE, PARK_SEC);
}

/* Takes the message. It comes again where there was no memory for it. */
static void item_new(QueueWorker *w, SqsMessage *message) {
        Item *i = new0(Item, 1);
        int r;

        if (!i)
                return;
        i->worker = w;
        i->message = *message;
        *message = (SqsMessage){ 0 };
        i->visible_usec = usec_add(now_of(w), VISIBILITY_SEC * USEC_PER_SEC);
        list_append(&w->items, &i->items);
        r = event_message_parse(i->message.body, strlen(i->message.body), &i->event);
        if (r == -EBADMSG) {
                item_spoiled(i);
                return;
        }
        if (r >= 0) {
                metrics_add(w->o.metrics, METRIC_QUEUE_RECEIVED, (size_t) i->event.kind, 1);
                if (i->event.kind == EVENT_MESSAGE_CAPACITY_BLOCK)
                        queue_voice_capacity_block(&w->o, &i->message, &i->event);
                r = item_make_errands(i);
        }
        if (r < 0)
                item_free(i);
        else if (i->n_errands == 0 && w->o.config->queue_shared)
                item_free(i); /* somebody else may know it */
        else
                item_step(i);
}

/* -- batches -------------------------------------------------------------------------------------------- */

/* Whatever was not done comes again, and is done already. */
static void on_batch(SqsResult *result, void *userdata) {
        Batch *b = userdata;
        QueueWorker *w = b->worker;
        unsigned at = 0, n = 0;

        queue_voice_answer(&w->o, result, false, &w->batches_fail);
        LIST_FOREACH (i, &b->items, Item, batch)
                n += !(result->failed & (1u << at++));
        if (b->deletes)
                metrics_add(w->o.metrics, METRIC_QUEUE_DELETED, 0, n);
        batch_free(b);
        flush(w);
}

static Batch *batch_new(QueueWorker *w, bool deletes) {
        Batch *b = new0(Batch, 1);

        if (!b)
                return NULL;
        b->worker = w;
        b->deletes = deletes;
        list_append(&w->batches, &b->batches);
        return b;
}

static void batch_send(Batch *b, const SqsEntry *entries, size_t n) {
        QueueWorker *w = b->worker;
        int r = b->deletes ? sqs_delete(w->o.sqs, entries, n, &w->o.guard, on_batch, b, &b->call)
                           : sqs_hide(w->o.sqs, entries, n, &w->o.guard, on_batch, b, &b->call);

        if (r < 0)
                batch_free(b); /* they come again */
}

static void flush_list(QueueWorker *w, List *from, bool deletes) {
        while (from->size > 0 && w->batches.size < BATCHES_MAX) {
                Batch *b = batch_new(w, deletes);
                SqsEntry entries[SQS_BATCH_MAX];
                size_t n = 0;

                if (!b)
                        return;
                LIST_FOREACH (i, from, Item, batch) {
                        if (n == SQS_BATCH_MAX)
                                break;
                        list_remove(from, &i->batch);
                        list_append(&b->items, &i->batch);
                        i->state = ITEM_SENT;
                        entries[n++] = (SqsEntry){ i->message.receipt, i->hide_sec };
                }
                batch_send(b, entries, n);
        }
}

static void flush(QueueWorker *w) {
        flush_list(w, &w->to_delete, true);
        flush_list(w, &w->to_hide, false);
        if (!w->polls[0].call && !timer_is_armed(w->polls[0].again))
                poll_start(w->polls); /* there may be room again */
}

static void on_flush(Timer *t, void *userdata) {
        flush(userdata);
}

/* What is still being worked on stays hidden. */
static void renew(QueueWorker *w) {
        usec_t now = now_of(w);
        SqsEntry entries[SQS_BATCH_MAX];
        size_t n = 0;

        LIST_FOREACH (i, &w->items, Item, items) {
                Batch *b;

                if (i->state == ITEM_WORKING && i->visible_usec <= usec_add(now, RENEW_USEC)) {
                        i->visible_usec = usec_add(now, VISIBILITY_SEC * USEC_PER_SEC);
                        entries[n++] = (SqsEntry){ i->message.receipt, VISIBILITY_SEC };
                }
                if (n < SQS_BATCH_MAX && (i->items.next || n == 0))
                        continue;
                b = batch_new(w, false);
                if (!b)
                        return;
                batch_send(b, entries, n);
                n = 0;
        }
}

static void on_tick(Timer *t, void *userdata) {
        QueueWorker *w = userdata;

        LIST_FOREACH (i, &w->items, Item, items)
                item_step(i);
        renew(w);
        flush(w);
        timer_arm_in(w->tick, TICK_USEC);
}

/* -- polls ---------------------------------------------------------------------------------------------- */

static void on_received(SqsResult *result, void *userdata) {
        Poll *p = userdata;
        QueueWorker *w = p->worker;
        size_t n = result->messages ? result->messages->n : 0;
        usec_t pause = 0;

        queue_voice_answer(&w->o, result, true, &w->polls_fail);
        p->call = sqs_call_free(p->call);
        for (size_t k = 0; k < n; k++)
                item_new(w, result->messages->at + k);
        if (result->outcome != SQS_OK)
                pause = MAX(backoff_next(&p->backoff, w->o.env->random), result->retry_after_usec);
        else {
                backoff_reset(&p->backoff);
                if (n == 0 && usec_sub(now_of(w), p->begun_usec) < EMPTY_POLL_USEC)
                        pause = EMPTY_POLL_USEC;
        }
        /* One poll waits for what may come; the others help where there is much. */
        if (n == SQS_BATCH_MAX)
                for (unsigned k = 1; k < w->n_polls; k++)
                        if (!w->polls[k].call)
                                timer_arm_earlier(w->polls[k].again, now_of(w));
        if (p == w->polls || n == SQS_BATCH_MAX)
                timer_arm_in(p->again, pause);
        flush(w);
}

static void poll_start(Poll *p) {
        QueueWorker *w = p->worker;
        const SqsReceive how = { .wait_sec = WAIT_SEC,
                                 .visibility_sec = VISIBILITY_SEC,
                                 .guard = w->o.guard };
        int r;

        if (p->call || w->items.size - MIN(w->items.size, w->n_held) >= ITEMS_MAX)
                return;
        p->begun_usec = now_of(w);
        r = sqs_receive(w->o.sqs, &how, on_received, p, &p->call);
        if (r < 0)
                timer_arm_in(p->again, backoff_next(&p->backoff, w->o.env->random));
}

static void on_poll_again(Timer *t, void *userdata) {
        poll_start(userdata);
}

/* -- life ----------------------------------------------------------------------------------------------- */

static int worker_open(QueueWorker *w) {
        Loop *loop = w->o.env->loop;
        int r;

        r = hook_client_new(w->o.env, w->o.sqs, &w->hooks);
        if (r >= 0)
                r = queue_memory_init(&w->memory, loop);
        if (r >= 0)
                r = timer_new(loop, "queue-tick", on_tick, w, &w->tick);
        if (r >= 0)
                r = timer_new(loop, "queue-flush", on_flush, w, &w->flush);
        for (w->n_polls = 0; r >= 0 && w->n_polls < w->o.config->queue_polls && w->n_polls < POLLS_MAX;
             w->n_polls++) {
                Poll *p = w->polls + w->n_polls;

                *p = (Poll){ .worker = w,
                             .backoff = { .base_usec = RETRY_BASE_USEC,
                                          .cap_usec = RETRY_CAP_USEC,
                                          .jitter_permille = JITTER_PERMILLE } };
                r = timer_new(loop, "queue-poll", on_poll_again, p, &p->again);
        }
        return r;
}

int queue_worker_new(const QueueWorkerOptions *o, QueueWorker **ret) {
        _cleanup_(queue_worker_freep) QueueWorker *w = NULL;
        int r;

        assert(o && o->env && o->config && o->sqs && o->client && o->view && o->cloud && o->recorder &&
               o->metrics && o->look && o->view_is_old && ret);
        w = new0(QueueWorker, 1);
        if (!w)
                return -ENOMEM;
        w->o = *o;
        r = worker_open(w);
        if (r < 0)
                return r;
        timer_arm_in(w->tick, TICK_USEC);
        timer_arm_in(w->polls[0].again, 0);
        *ret = TAKE_PTR(w);
        return 0;
}

QueueWorker *queue_worker_free(QueueWorker *w) {
        if (!w)
                return NULL;
        for (unsigned k = 0; k < POLLS_MAX; k++) {
                sqs_call_free(w->polls[k].call);
                timer_free(w->polls[k].again);
        }
        LIST_FOREACH (b, &w->batches, Batch, batches)
                batch_free(b);
        LIST_FOREACH (i, &w->items, Item, items)
                item_free(i);
        hook_client_free(w->hooks);
        timer_free(w->tick);
        timer_free(w->flush);
        queue_memory_done(&w->memory);
        return mfree(w);
}

size_t queue_worker_n_messages(const QueueWorker *w) {
        return w->items.size;
}
