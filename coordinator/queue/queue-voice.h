/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the interruption queue's worker says to people and to the receiver of [Notify]: log lines, Events, messages. Decides
 * nothing, and keeps nothing but what its caller hands it.
 */

#include "event-message.h"
#include "queue-worker.h"

/* What a message says of one instance. Borrowed. */
typedef struct QueueSaid {
        const EventMessage *event;
        const char *instance;
        const Notice *notice; /* NULL: none */
        const char *why;      /* of QUEUE_VOICE_REPORTS: queue_why_reported(); NULL: it announces nothing */
} QueueSaid;

/* What is done about it. */
typedef enum QueueVoiceAct {
        QUEUE_VOICE_REPORTS, /* nothing */
        QUEUE_VOICE_DELETES, /* its NodeClaim is deleted */
        QUEUE_VOICE_HELD,    /* the brake holds the notice: the Node is cordoned and drained under PodDisruptionBudgets */
        QUEUE_VOICE_DRAINS,  /* the Node, which has none, is cordoned and drained */
        QUEUE_VOICE_DRAINS_MANAGED, /* the Node is drained and kept */
        QUEUE_VOICE_LOOKS,     /* the Node is looked at anew */
        QUEUE_VOICE_KNOWN,     /* its NodeClaim is being deleted, with an earlier T */
        QUEUE_VOICE_CALLS_OFF, /* nothing any more */
        QUEUE_VOICE_CALLED_OFF_ELSE, /* something that does not stand here, or for which a removal goes on */
        QUEUE_VOICE_CONTINUES, /* the Node is Ready, and its group goes on */
        _QUEUE_VOICE_MAX,
} QueueVoiceAct;

/* Log line and Event on the instance's Node: kind, time, and what vesper does. A scheduled change is acted upon when it is near. */
void queue_voice_node(const QueueWorkerOptions *o, const QueueSaid *said, const KubeNode *n, QueueVoiceAct act);
/* The receiver of [Notify] hears of what is only reported: of what is acted upon the removal tells. */
void queue_voice_receiver(const QueueWorkerOptions *o, const QueueSaid *said, const KubeNode *n);
/* An answer of the queue; *fails: whether the last one of its sort (poll or batch) was an error. Told when that changes. */
void queue_voice_answer(const QueueWorkerOptions *o, const SqsResult *result, bool is_poll, bool *fails);
/* Warns that an unreadable message is hidden, or deleted because as many as possible are hidden. */
void queue_voice_poison(const QueueWorkerOptions *o, const SqsMessage *message, const EventMessage *event,
                        size_t body_bytes, bool is_deleted);
/* Warns that a message is about another account or region and was ignored. */
void queue_voice_elsewhere(const QueueWorkerOptions *o, const EventMessage *event);
/* Warns that the brake of the queue (queue-brake.h) holds further notices. n: machines announced within the window. */
void queue_voice_brake(const QueueWorkerOptions *o, size_t n, size_t limit);
/* Reports in a log line and an Event that the brake no longer holds the notice, because AWS confirms it. words: "EC2 reports ...". */
void queue_voice_confirmed(const QueueWorkerOptions *o, const KubeNode *n, const Notice *notice, const char *words);
/* Warns that AWS cannot be asked to confirm held notices. permission: the IAM action. */
void queue_voice_unconfirmed(const QueueWorkerOptions *o, const char *permission, const char *message, bool is_denied);
/* The end of a Capacity Block, which names no instance. */
void queue_voice_capacity_block(const QueueWorkerOptions *o, const SqsMessage *message, const EventMessage *event);
