/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages of one process on their way: made and queued at once, sent from the loop, in a lane of the transport that
 * nothing else uses.
 *
 *      told --> waiting --> in flight --2xx--> sent
 *                  ^            |---the receiver does not want it---> failed
 *                  '--backoff---'---its time is over----------------> failed
 *      a queue that is full drops its oldest message that is not in flight
 *
 * Messages of one Node go one after the other, in their order: a phase never overtakes an earlier one. Those of several
 * Nodes go side by side, NOTIFY_IN_FLIGHT_MAX at most, and the Nodes take turns. While the receiver fails,
 * one message goes at a time.
 */

#include "env.h"
#include "metrics.h"
#include "notify-settings.h"
#include "wakeup.h"

#define NOTIFY_IN_FLIGHT_MAX 4u

typedef enum NotifyOutcome {
        NOTIFY_OUTCOME_SENT,
        NOTIFY_OUTCOME_FAILED,  /* not wanted, or not taken while it was news */
        NOTIFY_OUTCOME_DROPPED, /* there was no room in the queue, or no memory */
        _NOTIFY_OUTCOME_MAX,
} NotifyOutcome;

/* Labels of the family of counters that each daemon has: outcome, then phase. */
extern const char *const notify_outcome_names[_NOTIFY_OUTCOME_MAX + 1];
extern const MetricLabel notify_more_labels[];
#define NOTIFY_METRIC(prefix) \
        { \
                .name = prefix "_notifications_total", .type = METRIC_COUNTER, \
                .help = "Messages to the receiver of [Notify], by what became of them and by the phase that they tell.", \
                .label = "outcome", .values = notify_outcome_names, .more = notify_more_labels \
        }

typedef struct NotifySender NotifySender;

typedef struct NotifySenderOptions {
        Env *env;
        const NotifySettings *settings;
        const char *reporter; /* static: "vesper-agent" */
        Metrics *metrics;
        size_t family; /* of metrics: NOTIFY_METRIC() */
        size_t max_messages, max_bytes; /* of the queue; bytes are those of bodies */
} NotifySenderOptions;

/* All borrowed. Files that cannot be read are said in the log, and nobody is told; 0 all the same. -ENOMEM. */
int notify_sender_new(const NotifySenderOptions *o, NotifySender **ret);
/* What is under way or waits is lost. */
NotifySender *notify_sender_free(NotifySender *s);
DEFINE_FREEP(NotifySender, notify_sender_free);

/* Reads settings and files again. What cannot be used is said in the log, and what was in force stays. */
void notify_sender_reload(NotifySender *s);
/* Never fails, and sends nothing inside. reporter and time_usec of the facts are the sender's to fill. NULL: nobody is
 * told. */
void notify_sender_tell(NotifySender *s, const NotifyFacts *f);

size_t notify_sender_n_waiting(const NotifySender *s); /* in flight included */
size_t notify_sender_n_in_flight(const NotifySender *s);
/* Number of times that the sender has visited a message, since it was made. A message takes a bounded
 * number of visits per try, however many others wait. Tests count on it. */
uint64_t notify_sender_n_steps(const NotifySender *s);
/* Reports each message: its request, or the step that sends it; and the timer that gives it up in time. */
void notify_sender_next_wakeup(const NotifySender *s, Wakeups *w);
