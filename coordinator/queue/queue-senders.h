/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who sends how much to the interruption queue: messages and bytes by source and account of the event, as two
 * families of metrics. Both words are the sender's own, so they are bounded and cleaned, and only
 * QUEUE_SENDERS_MAX senders have a series of their own. A sender that is not among them takes the place of the
 * one with the fewest bytes, which then counts as "other". The senders that cost most therefore stay.
 */

#include "metrics.h"

#define QUEUE_SENDERS_MAX 8u

typedef struct QueueSenders {
        Metrics *metrics; /* borrowed; NULL: nothing is counted */
        char *names[QUEUE_SENDERS_MAX];
} QueueSenders;

/* What an earlier leadership of this process has counted goes to "other". -ENOMEM. */
int queue_senders_init(QueueSenders *s, Metrics *metrics);
void queue_senders_done(QueueSenders *s); /* a zeroed one is fine */

/* Counts a message. NULL and "": the message does not say. Without memory it counts as "other". */
void queue_senders_count(QueueSenders *s, const char *source, const char *account, size_t bytes);
