/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An errand: what one message of the interruption queue means for one of the instances that it names, until that is done. It is
 * decided (queue-decide.h) by what is known of the instance then (queue-facts.h), and, after each answer, again: what was
 * decided on may have changed.
 *
 *       .--------- that failed, or its group is to wait on: decided anew after a while ---------.
 *       v                                                                                       |
 *      OPEN --its claim or Node is written on, EC2 is asked, its group is answered--> SENT ------+--answered--> DONE
 *       |  ^                                                                                                     ^
 *       |  '--another errand, which writes on that object just now, is answered---- SHARED                       |
 *       |                                                                                                        |
 *       +--not now, or refused too often: the message is hidden--> WAITING                                       |
 *       '--there is nothing to be done---------------------------------------------------------------------------'
 *
 * The message, and when it goes or comes again, is queue-worker.c's.
 */

#include "backoff.h"
#include "lifecycle-hook.h"
#include "queue-brake.h"
#include "queue-confirm.h"
#include "queue-memory.h"
#include "queue-worker.h"
#include "wakeup.h"

/* An errand that is put off for a moment waits for so long; its owner steps as often. */
#define QUEUE_TICK_USEC USEC_PER_SEC

typedef enum QueueErrandState {
        QUEUE_ERRAND_OPEN,    /* to be decided */
        QUEUE_ERRAND_SENT,    /* written, or asked about: not answered */
        QUEUE_ERRAND_SHARED,  /* another one writes on that claim or Node just now */
        QUEUE_ERRAND_WAITING, /* not now */
        QUEUE_ERRAND_DONE,
} QueueErrandState;

/* What all errands of a leader have in common. All borrowed. */
typedef struct QueueErrands {
        const QueueWorkerOptions *o;
        HookClient *hooks;
        QueueMemory *memory;
        QueueBrake *brake;
        QueueConfirm *confirm;
        bool is_over_limit; /* of the brake: more machines than its limit were counted at the last notice */
        size_t n_held; /* errands whose group waits for us */
        /* An errand of this message was answered: all of them are to be stepped. May free the message, with its errands. */
        void (*answered)(void *message);
        /* ... and before that, if it had written: the errands of other messages that wait to write on this object (its uid)
         * are to be woken. */
        void (*written)(const char *uid, void *message);
} QueueErrands;

typedef struct QueueErrand {
        QueueErrands *shared;
        void *message;             /* the owner's */
        const EventMessage *event; /* borrowed of the message */
        const char *message_id;    /* borrowed of the message */
        usec_t sent_usec;          /* SqsMessage.sent_usec */
        char *instance;
        Notice *notice; /* NULL: none */
        QueueErrandState state;
        QueueAct act; /* as decided last */
        char *object_uid; /* of the NodeClaim or Node that is written on; NULL: of none now */
        bool on_node;     /* it is the Node */
        AnnouncedState written_as; /* of the notice, in that write */
        bool is_newly_held; /* ... which the brake holds, and did not hold before */
        bool has_waited;    /* the group has answered that it waits */
        bool hook_is_over;  /* the group does not wait, and the brake holds the notice: it is called off */
        KubeCall *write;
        CloudCall *ask;
        HookCall *hook;
        bool is_held;         /* its group waits for us */
        unsigned n_conflicts; /* in a row, of its write */
        unsigned n_refused;   /* refusals in a row, by the API server or by AWS */
        usec_t beat_usec;     /* the next heartbeat */
        usec_t again_usec;    /* open, and not before then */
        Backoff backoff;
} QueueErrand;

/* A zeroed one; instance is copied. Its address must not change from then on. -ENOMEM, or why the notice could not be made: then
 * nothing is left of it. */
int queue_errand_init(QueueErrand *e, QueueErrands *shared, void *message, const EventMessage *event, const SqsMessage *received,
                      const char *instance);
void queue_errand_done(QueueErrand *e); /* drops its calls */

/* Returns true if queue_errand_step() would decide now: the errand is open and its time has come. */
bool queue_errand_is_due(const QueueErrand *e);
/* Decides, and does what is decided, if it is open and its time has come. */
void queue_errand_step(QueueErrand *e);
/* The object of this uid was written on by another errand. True: this one has waited for that, and is open again. */
bool queue_errand_wake(QueueErrand *e, const char *uid);
/* Reports the errand, unless it is done or waits. tick: the timer of the owner's steps. The next step of an
 * errand without a call under way is due within QUEUE_ERRAND_WAKEUP_USEC. */
#define QUEUE_ERRAND_WAKEUP_USEC (15 * USEC_PER_SEC)
void queue_errand_next_wakeup(const QueueErrand *e, const Timer *tick, Wakeups *w);
