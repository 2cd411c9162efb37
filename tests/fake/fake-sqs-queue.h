/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between fake-sqs-queue.c (messages as time goes by) and fake-sqs.c (the API). */

#include "list.h"
#include "loop.h"
#include "random.h"

typedef struct SqsMessage {
        ListNode messages;
        char *id, *body;
        char md5[33];
        uint64_t n_receives;
        usec_t sent_wall_usec, sent_usec;
        usec_t first_receive_wall_usec, received_usec; /* the last receive */
        usec_t visible_usec;                           /* not given out before */
        uint64_t handle;                               /* the newest; 0: none yet */
} SqsMessage;

typedef struct SqsQueue SqsQueue;

struct SqsQueue {
        ListNode queues;
        Loop *loop;
        char *name;
        usec_t visibility_usec, retention_usec, wait_usec, created_wall_usec;
        List messages;
        List polls; /* of the API's; first come, first served */
        Timer *timer;
        uint64_t last_handle, last_id;
        unsigned n_duplicates;
        Random *random;
        void (*on_visible)(SqsQueue *q); /* somebody waits, and there may be something for him */
        void (*on_delete)(const char *id, void *userdata); /* NULL: nobody wants to know */
        void *on_delete_userdata;
};

SqsQueue *sqs_queue_new(Loop *loop, const char *name);
SqsQueue *sqs_queue_free(SqsQueue *q);

SqsMessage *sqs_queue_send(SqsQueue *q, const char *body, usec_t delay_usec);
/* The next that is visible, and is not for so long; NULL: none is. handle is the message's own then. */
SqsMessage *sqs_queue_receive(SqsQueue *q, usec_t visibility_usec);
void sqs_queue_drop(SqsQueue *q, SqsMessage *m);
/* By a handle that was given out for it, if it is still there; *ret_known: this queue gave it out. */
SqsMessage *sqs_queue_find(SqsQueue *q, const char *handle, bool *ret_known);
/* Of a message that was received. */
char *sqs_message_handle(const SqsQueue *q, const SqsMessage *m);
bool sqs_message_in_flight(const SqsQueue *q, const SqsMessage *m);
bool sqs_message_delayed(const SqsQueue *q, const SqsMessage *m);
/* What has outlived its retention goes; the timer is set if somebody polls. */
void sqs_queue_run(SqsQueue *q);
