/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asks EC2 and Auto Scaling about each machine whose notice the brake of the queue holds (queue-brake.h), and lets the notices go that they
 * confirm: the state Held of the notice is taken off its NodeClaim or Node (announced.h), and then it stands.
 *
 * A round asks all questions (confirmation.h) about each of them, in batches and one request at a time, whatever the kind of its notice: a forged notice
 * may have displaced a true one of another kind. A question that fails is not asked again in that round. The requests of a round are bounded by the number
 * of machines; scheduled events are read for 200 machines of a region in each round, in turn. The first round begins when the process starts to lead, another one 200 ms
 * after a notice is written as held. The pause between rounds grows from 5 seconds to a minute, and is short again when another notice is held. An
 * answer that confirms nothing, or no answer, changes nothing: a person may confirm the notice.
 *
 * Exists while this process leads.
 */

#include "queue-memory.h"
#include "queue-worker.h"
#include "wakeup.h"

typedef struct QueueConfirm QueueConfirm;

/* Called when a write on the object of this uid has ended: others that wait to write on it may go on. */
typedef void (*queue_confirm_written_t)(const char *uid, void *userdata);

/* All borrowed. The first round begins at once: an earlier leader may have left notices held. -ENOMEM. */
int queue_confirm_new(const QueueWorkerOptions *o, QueueMemory *memory, queue_confirm_written_t written, void *userdata, QueueConfirm **ret);
QueueConfirm *queue_confirm_free(QueueConfirm *c); /* drops its calls */
DEFINE_FREEP(QueueConfirm, queue_confirm_free);
/* Returns true if AWS has confirmed such a notice of this instance within the last five minutes: it is not held again. */
bool queue_confirm_knows(const QueueConfirm *c, const char *instance, const Notice *n);
/* A notice was written as held: asks about it soon. */
void queue_confirm_note_held(QueueConfirm *c);
/* Reports the rounds of DescribeInstances. A request is under way, or the next round begins within
 * QUEUE_CONFIRM_WAKEUP_USEC. */
#define QUEUE_CONFIRM_WAKEUP_USEC (20 * USEC_PER_MINUTE)
void queue_confirm_next_wakeup(const QueueConfirm *c, Wakeups *w);
