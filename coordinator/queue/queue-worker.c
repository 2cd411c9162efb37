/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-worker.h"

#include "backoff.h"
#include "coordinator-metrics.h"
#include "lifecycle-hook.h"
#include "list.h"
#include "queue-errand.h"
#include "queue-facts.h"
#include "queue-memory.h"
#include "queue-senders.h"
#include "queue-voice.h"
#include "strv.h"
#include "token-bucket.h"

#define WAIT_SEC 20u       /* of a poll */
#define VISIBILITY_SEC 10u /* of what was received; see queue-worker.h */
#define POLLS_MAX 4u
/* Maximum number of messages in work, without those that wait for a drain. At the limit the coordinator
 * receives none. */
#define ITEMS_MAX 500u
/* Maximum number of instances in work, counted likewise; each takes less than 1 KiB. */
#define ERRANDS_MAX 5000u
/* Maximum number of hooks that wait for drains: more than a cluster has Nodes. */
#define HELD_MAX 10000u
/* Maximum number of decisions in one callback, each of which may write and record an Event: some
 * milliseconds. */
#define STEPS_MAX 100u
#define BATCHES_MAX 3u
/* What is done within so long goes in one request. */
#define TOGETHER_USEC (20 * USEC_PER_MSEC)
/* Of what is being worked on: hidden anew when so little is left. */
#define RENEW_USEC (5 * USEC_PER_SEC)
/* A queue that answers at once, and with nothing, is not asked more often. */
#define EMPTY_POLL_USEC USEC_PER_SEC
#define RETRY_BASE_USEC USEC_PER_SEC
#define RETRY_CAP_USEC USEC_PER_MINUTE
#define JITTER_PERMILLE 200u
/* Time for which a message is hidden whose write or hook is refused: a person has to grant a permission. */
#define REFUSED_HIDE_SEC 60u
/* Maximum age of a message in work. SQS hides it for 12 hours at most; an older one is dropped and received
 * anew. */
#define ITEM_AGE_MAX_USEC (11 * USEC_PER_HOUR)
/* 12 hours since it was received; some seconds have passed. */
#define PARK_SEC (12u * 3600u - 60u)

typedef enum ItemState { ITEM_WORKING, ITEM_DELETE, ITEM_HIDE, ITEM_SENT } ItemState;

typedef struct Item {
        ListNode items; /* of the worker */
        ListNode batch; /* of its to_delete, to_hide, or of a Batch; not while WORKING */
        QueueWorker *worker;
        SqsMessage message;
        EventMessage event;
        size_t body_bytes; /* of the message, whose body is not kept */
        QueueErrand *errands;
        size_t n_errands;
        ItemState state;
        unsigned hide_sec;
        usec_t received_usec; /* loop_now() */
        usec_t visible_usec;  /* loop_now(): when it comes again */
} Item;

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
        unsigned asked; /* messages at most */
} Poll;

struct QueueWorker {
        QueueWorkerOptions o;
        HookClient *hooks;
        QueueErrands errands; /* what those of all items share */
        Poll polls[POLLS_MAX];
        unsigned n_polls;
        unsigned batch_size; /* messages that a poll asks for */
        List items, to_delete, to_hide, batches;
        size_t n_errands; /* of all items */
        unsigned steps_left; /* of STEPS_MAX, in this callback */
        Timer *tick, *flush, *rest;
        QueueMemory memory;
        QueueBrake *brake;
        QueueConfirm *confirm;
        QueueSenders senders;
        TokenBucket poison_lines; /* log lines about unreadable messages that are deleted */
        bool polls_fail, batches_fail; /* the last answer was an error, and that was told */
};

static void poll_start(Poll *p);
static void flush(QueueWorker *w);

static usec_t now_of(const QueueWorker *w) {
        return loop_now(w->o.env->loop);
}

/* -- memory --------------------------------------------------------------------------------------------- */

static void item_free(Item *i) {
        list_remove(&i->worker->items, &i->items);
        if (i->state == ITEM_DELETE)
                list_remove(&i->worker->to_delete, &i->batch);
        else if (i->state == ITEM_HIDE)
                list_remove(&i->worker->to_hide, &i->batch);
        i->worker->n_errands -= i->n_errands;
        for (size_t k = 0; k < i->n_errands; k++)
                queue_errand_done(i->errands + k);
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
        const QueueRules rules = queue_rules_now(&i->worker->o);
        bool is_refused = false;

        for (size_t k = 0; k < i->n_errands; k++)
                if (i->errands[k].state == QUEUE_ERRAND_WAITING && i->errands[k].act == QUEUE_LEAVE) {
                        item_free(i);
                        return;
                }
        /* What EC2 said of it counts for now alone. */
        for (size_t k = 0; k < i->n_errands; k++) {
                UnknownInstance *u = queue_memory_unknown(&i->worker->memory, i->errands[k].instance);

                if (u)
                        u->sight = QUEUE_NOT_ASKED;
                is_refused = is_refused || i->errands[k].n_refused > 0;
        }
        item_enqueue(i, ITEM_HIDE, is_refused ? REFUSED_HIDE_SEC : queue_wait_sec(&i->event, &rules));
}

/* Steps an errand, or leaves it to a callback of its own where this one has done enough. */
static void errand_step(QueueWorker *w, QueueErrand *e) {
        if (!queue_errand_is_due(e))
                return;
        if (w->steps_left > 0) {
                w->steps_left--;
                queue_errand_step(e);
        } else if (!timer_is_armed(w->rest))
                timer_arm_in(w->rest, 0);
}

/* May end it. */
static void item_step(Item *i) {
        bool waits = false, is_open = false;

        if (i->state != ITEM_WORKING)
                return;
        for (size_t k = 0; k < i->n_errands; k++) {
                QueueErrand *e = i->errands + k;

                errand_step(i->worker, e);
                waits = waits || e->state == QUEUE_ERRAND_WAITING;
                is_open = is_open || (e->state != QUEUE_ERRAND_WAITING && e->state != QUEUE_ERRAND_DONE);
        }
        if (is_open)
                return;
        if (waits)
                item_wait(i);
        else
                item_enqueue(i, ITEM_DELETE, 0);
}

/* Wakes the errands that wait for a write on this object to end. own: the item of that write, which is left out; NULL: none. */
static void wake_errands(QueueWorker *w, const char *uid, const Item *own) {
        LIST_FOREACH (i, &w->items, Item, items) {
                bool woken = false;

                for (size_t k = 0; i != own && k < i->n_errands; k++)
                        woken = queue_errand_wake(i->errands + k, uid) || woken;
                if (woken)
                        item_step(i);
        }
}

/* on_answered() steps the item of the write itself. */
static void on_written(const char *uid, void *message) {
        const Item *own = message;

        wake_errands(own->worker, uid, own);
}

static void on_confirm_written(const char *uid, void *userdata) {
        wake_errands(userdata, uid, NULL);
}

static void on_answered(void *message) {
        item_step(message);
}

static int item_make_errands(Item *i) {
        size_t n = strv_length(i->event.instances);

        i->errands = n > 0 ? new0(QueueErrand, n) : NULL;
        if (n > 0 && !i->errands)
                return -ENOMEM;
        for (; i->n_errands < n; i->n_errands++) {
                int r = queue_errand_init(i->errands + i->n_errands, &i->worker->errands, i, &i->event,
                                          &i->message, i->event.instances[i->n_errands]);

                if (r < 0)
                        return r;
                i->worker->n_errands++;
        }
        return 0;
}

static bool has_room(const QueueWorker *w) {
        size_t held = MIN(w->errands.n_held, w->items.size);

        return w->items.size - held < ITEMS_MAX && w->n_errands - held < ERRANDS_MAX && held < HELD_MAX;
}

static QueueOrigin origin_of(const QueueWorker *w) {
        return (QueueOrigin){ .account = sqs_client_account(w->o.sqs),
                              .region = sqs_client_region(w->o.sqs),
                              .accounts = w->o.config->queue_accounts,
                              .regions = w->o.config->queue_regions };
}

/* Leaves an unreadable message to come again by itself, QUEUE_POISON_RECEIVES times. Then hides it, so that a
 * person can read it, or deletes it if too many are hidden. May free the item. */
static void item_spoiled(Item *i) {
        QueueWorker *w = i->worker;
        QueueRules rules = queue_rules_now(&w->o);
        bool is_full;
        int r;

        if (!queue_is_poison(i->message.receives, &rules)) {
                item_free(i);
                return;
        }
        r = queue_memory_park(&w->memory, i->message.id, PARK_SEC * USEC_PER_SEC);
        if (r < 0) {
                item_free(i);
                return;
        }
        is_full = r == QUEUE_PARK_FULL;
        metrics_add(w->o.metrics, is_full ? METRIC_QUEUE_POISON_DELETED : METRIC_QUEUE_POISON, 0, 1);
        if (r == QUEUE_PARK_NEW || (is_full && token_bucket_take(&w->poison_lines, now_of(w), NULL)))
                queue_voice_poison(&w->o, &i->message, &i->event, i->body_bytes, is_full);
        item_enqueue(i, is_full ? ITEM_DELETE : ITEM_HIDE, PARK_SEC);
}

/* Ignores the message. Deletes it unless [Queue] Shared=yes. May free the item. */
static void item_ignore(Item *i) {
        QueueWorker *w = i->worker;

        metrics_add(w->o.metrics, METRIC_QUEUE_OTHER_ACCOUNT, 0, 1);
        if (queue_memory_note_elsewhere(&w->memory, i->event.account, i->event.region))
                queue_voice_elsewhere(&w->o, &i->event);
        if (w->o.config->queue_shared)
                item_free(i);
        else
                item_enqueue(i, ITEM_DELETE, 0);
}

/* Reads the message and frees its body: the size of an item is bounded (event-message.h). */
static int item_read(Item *i, const QueueOrigin *origin) {
        int r;

        i->body_bytes = strlen(i->message.body);
        r = event_message_parse(i->message.body, i->body_bytes, &i->event);
        i->message.body = mfree(i->message.body);
        queue_senders_count(&i->worker->senders, i->event.source, i->event.account, origin, i->body_bytes);
        return r;
}

/* Takes the message. SQS delivers it again if there was no room or no memory for it. */
static void item_new(QueueWorker *w, SqsMessage *message) {
        Item *i = has_room(w) ? new0(Item, 1) : NULL;
        const QueueOrigin origin = origin_of(w);
        int r;

        if (!i)
                return;
        i->worker = w;
        i->message = *message;
        *message = (SqsMessage){ 0 };
        i->received_usec = now_of(w);
        i->visible_usec = usec_add(now_of(w), VISIBILITY_SEC * USEC_PER_SEC);
        list_append(&w->items, &i->items);
        r = item_read(i, &origin);
        if (r == -EBADMSG) {
                item_spoiled(i);
                return;
        }
        if (r >= 0) {
                if (i->event.sent_usec == 0) /* how old it is, SQS knows as well */
                        i->event.sent_usec = i->message.sent_usec;
                metrics_add(w->o.metrics, METRIC_QUEUE_RECEIVED, (size_t) i->event.kind, 1);
                if (queue_is_from_elsewhere(&i->event, &origin)) {
                        item_ignore(i);
                        return;
                }
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

        w->steps_left = STEPS_MAX;
        LIST_FOREACH (i, &w->items, Item, items)
                if (i->state == ITEM_WORKING && now_of(w) >= usec_add(i->received_usec, ITEM_AGE_MAX_USEC))
                        item_free(i);
                else
                        item_step(i);
        renew(w);
        flush(w);
        timer_arm_in(w->tick, QUEUE_TICK_USEC);
}

static void on_rest(Timer *t, void *userdata) {
        QueueWorker *w = userdata;

        w->steps_left = STEPS_MAX;
        LIST_FOREACH (i, &w->items, Item, items)
                item_step(i);
}

/* -- polls ---------------------------------------------------------------------------------------------- */

static void on_received(SqsResult *result, void *userdata) {
        Poll *p = userdata;
        QueueWorker *w = p->worker;
        size_t n = result->messages ? result->messages->n : 0;
        bool is_full = n == p->asked, is_too_large = result->outcome == SQS_TOO_LARGE;
        usec_t pause = 0;

        queue_voice_answer(&w->o, result, true, &w->polls_fail);
        p->call = sqs_call_free(p->call);
        w->steps_left = STEPS_MAX;
        for (size_t k = 0; k < n; k++)
                item_new(w, result->messages->at + k);
        if (is_too_large && p->asked > 1)
                w->batch_size = MIN(w->batch_size, sqs_batch_next(p->asked, SIZE_MAX)); /* at once */
        else if (result->outcome != SQS_OK)
                pause = MAX(backoff_next(&p->backoff, w->o.env->random), result->retry_after_usec);
        else {
                backoff_reset(&p->backoff);
                if (p->asked == w->batch_size)
                        w->batch_size = sqs_batch_next(p->asked, result->answer_bytes);
                if (n == 0 && usec_sub(now_of(w), p->begun_usec) < EMPTY_POLL_USEC)
                        pause = EMPTY_POLL_USEC;
        }
        /* One poll waits for what may come; the others help where there is much. */
        if (is_full)
                for (unsigned k = 1; k < w->n_polls; k++)
                        if (!w->polls[k].call)
                                timer_arm_earlier(w->polls[k].again, now_of(w));
        if (p == w->polls || is_full)
                timer_arm_in(p->again, pause);
        flush(w);
}

static void poll_start(Poll *p) {
        QueueWorker *w = p->worker;
        const SqsReceive how = { .wait_sec = WAIT_SEC,
                                 .max_messages = w->batch_size,
                                 .visibility_sec = VISIBILITY_SEC,
                                 .guard = w->o.guard };
        int r;

        if (p->call || !has_room(w))
                return;
        p->begun_usec = now_of(w);
        p->asked = w->batch_size;
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
                r = queue_senders_init(&w->senders, w->o.metrics);
        if (r >= 0)
                r = queue_brake_new(&w->brake);
        if (r >= 0)
                r = queue_brake_count_view(w->brake, w->o.view, w->o.config->interruption_before_usec, loop_wall(loop));
        if (r >= 0)
                r = queue_confirm_new(&w->o, &w->memory, on_confirm_written, w, &w->confirm);
        w->errands = (QueueErrands){ .o = &w->o,
                                     .hooks = w->hooks,
                                     .memory = &w->memory,
                                     .brake = w->brake,
                                     .confirm = w->confirm,
                                     .answered = on_answered,
                                     .written = on_written };
        if (r >= 0)
                r = timer_new(loop, "queue-tick", on_tick, w, &w->tick);
        if (r >= 0)
                r = timer_new(loop, "queue-flush", on_flush, w, &w->flush);
        if (r >= 0)
                r = timer_new(loop, "queue-rest", on_rest, w, &w->rest);
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
        w->batch_size = SQS_BATCH_MAX;
        w->poison_lines = (TokenBucket){ .burst = 1, .per_minute = 1 };
        r = worker_open(w);
        if (r < 0)
                return r;
        timer_arm_in(w->tick, QUEUE_TICK_USEC);
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
        queue_confirm_free(w->confirm);
        queue_brake_free(w->brake);
        hook_client_free(w->hooks);
        timer_free(w->tick);
        timer_free(w->flush);
        timer_free(w->rest);
        queue_memory_done(&w->memory);
        queue_senders_done(&w->senders);
        return mfree(w);
}

size_t queue_worker_n_messages(const QueueWorker *w) {
        return w->items.size;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static void report_item(const Item *i, Wakeups *w) {
        const QueueWorker *q = i->worker;

        for (size_t k = 0; i->state == ITEM_WORKING && k < i->n_errands; k++)
                queue_errand_next_wakeup(i->errands + k, q->tick, w);
        wakeups_unfinished(w, "message", i->message.id,
                           i->state == ITEM_WORKING ? "in work" : "to be deleted or hidden",
                                   QUEUE_WORKER_WAKEUP_USEC);
        wakeups_timer(w, q->tick);
}

void queue_worker_next_wakeup(const QueueWorker *q, Wakeups *w) {
        wakeups_unfinished(w, "poll of queue", sqs_client_queue(q->o.sqs), "", QUEUE_WORKER_WAKEUP_USEC);
        wakeups_timer(w, q->polls[0].again);
        wakeups_await(w, q->polls[0].call || !has_room(q));
        wakeups_unfinished(w, "tick of queue", sqs_client_queue(q->o.sqs), "", QUEUE_TICK_USEC);
        wakeups_timer(w, q->tick);
        LIST_FOREACH (i, &q->items, Item, items)
                report_item(i, w);
        if (q->to_delete.size + q->to_hide.size > 0) {
                wakeups_unfinished(w, "flush of queue", sqs_client_queue(q->o.sqs), "", QUEUE_TICK_USEC);
                wakeups_timer(w, q->flush);
                wakeups_timer(w, q->tick);
                wakeups_await(w, q->batches.size >= BATCHES_MAX);
        }
        LIST_FOREACH (b, &q->batches, Batch, batches) {
                wakeups_unfinished(w, "request about", "messages", b->deletes ? "deletes" : "hides",
                                   QUEUE_WORKER_WAKEUP_USEC);
                wakeups_await(w, b->call);
        }
        queue_confirm_next_wakeup(q->confirm, w);
}
