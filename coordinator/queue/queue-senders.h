/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts messages and bytes of the interruption queue by the event's source and account, as two families of
 * metrics. The sender chooses both texts, so only these have a series of their own: a source that vesper
 * reads, for the queue's own account or one of [Queue] Accounts=. Every other sender counts as "other". The
 * number of series therefore stays bounded over time, too.
 *
 * At most QUEUE_SENDERS_MAX series exist at once. A sender that is not among them takes the place of the one
 * with the fewest bytes, which then counts as "other". The senders that cost most therefore stay.
 */

#include "metrics.h"
#include "queue-decide.h"

#define QUEUE_SENDERS_MAX 8u

typedef struct QueueSenders {
        Metrics *metrics; /* borrowed; NULL: nothing is counted */
        char *names[QUEUE_SENDERS_MAX];
} QueueSenders;

/* Starts counting. Adds the counts of an earlier leadership of this process to "other". metrics: borrowed. 0
 * or -ENOMEM. */
int queue_senders_init(QueueSenders *s, Metrics *metrics);
void queue_senders_done(QueueSenders *s); /* a zeroed one is fine */

/* Counts a message. source, account: NULL and "": the message has none. origin: the known accounts. On ENOMEM
 * the message counts as "other". */
void queue_senders_count(QueueSenders *s, const char *source, const char *account, const QueueOrigin *origin, size_t bytes);
