/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The memory of a leader beside the messages that it works on: instances that nobody knows, or that have no
 * claim yet, objects that it is writing on, unreadable messages that it keeps hidden, and messages that it
 * has reported. All of it is bounded, and none of it is needed: the next leader begins without.
 */

#include "hashmap.h"
#include "loop.h"
#include "queue-decide.h"

typedef struct UnknownInstance {
        char *instance;
        usec_t since_usec, seen_usec; /* loop_now(): the first time, the last time */
        usec_t joined_usec;           /* when it was first seen to have a Node that a pool wants; 0: it has none */
        QueueSight sight;             /* what EC2 said last */
} UnknownInstance;


typedef struct QueueMemory {
        const Loop *loop;
        Hashmap *unknown, *writes, *parked, *elsewhere, *reported;
} QueueMemory;

int queue_memory_init(QueueMemory *m, const Loop *loop);
void queue_memory_done(QueueMemory *m); /* a zeroed one is fine */

/* Nobody knows it now; since when is noted the first time. NULL: out of memory. */
UnknownInstance *queue_memory_note_unknown(QueueMemory *m, const char *instance);
UnknownInstance *queue_memory_unknown(const QueueMemory *m,
                                      const char *instance); /* NULL: it is known, as far as we know */
void queue_memory_forget_unknown(QueueMemory *m, const char *instance);

/* A write on this object (its uid) begins, and ends. 1: it may; 0: another one is under way; -ENOMEM: out of memory, or very many are. */
int queue_memory_begin_write(QueueMemory *m, const char *uid);
void queue_memory_end_write(QueueMemory *m, const char *uid);

/* Maximum number of unreadable messages that a leader keeps hidden. SQS hands out no more messages once
 * 120,000 are hidden. */
#define QUEUE_PARKED_MAX 1000u

typedef enum QueuePark {
        QUEUE_PARK_NEW,   /* hide it: the first time */
        QUEUE_PARK_AGAIN, /* hide it again */
        QUEUE_PARK_FULL,  /* QUEUE_PARKED_MAX others are hidden */
} QueuePark;

/* Decides whether to hide the unreadable message for that time, and records it. An entry expires ten minutes
 * after its message becomes visible without being received. Returns a QueuePark or -ENOMEM. */
int queue_memory_park(QueueMemory *m, const char *message_id, usec_t for_usec);
/* Records that the message was reported, or acted upon, for that instance: SQS may deliver it again. Returns
 * true the first time, and on ENOMEM. The newest 20,000 are remembered. */
bool queue_memory_note_reported(QueueMemory *m, const char *message_id, const char *instance);
/* Returns true the first time for this account and region, for 20 pairs at most; false on ENOMEM, too. */
bool queue_memory_note_elsewhere(QueueMemory *m, const char *account, const char *region);
/* Returns true if a write on this object is under way. */
bool queue_memory_is_written(const QueueMemory *m, const char *uid);
