/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-senders.h"

#include "coordinator-metrics.h"
#include "string-util.h"
#include "strv.h"

#define OTHER QUEUE_SENDERS_MAX

static const CoordinatorMetric families[] = { METRIC_QUEUE_SENDER_MESSAGES, METRIC_QUEUE_SENDER_BYTES };

static uint64_t bytes_of(const QueueSenders *s, size_t i) {
        return (uint64_t) metrics_value(s->metrics, METRIC_QUEUE_SENDER_BYTES, i);
}

/* Names the series of a place in both families, from 0; what they counted until now was another sender's. */
static int place_rename(QueueSenders *s, size_t i, const char *name) {
        int r = 0;

        for (size_t f = 0; f < ELEMENTSOF(families) && r >= 0; f++) {
                uint64_t n = (uint64_t) metrics_value(s->metrics, families[f], i);

                r = metrics_name(s->metrics, families[f], i, name);
                if (r >= 0 && i != OTHER)
                        metrics_add(s->metrics, families[f], OTHER, n);
        }
        return r;
}

int queue_senders_init(QueueSenders *s, Metrics *metrics) {
        int r = 0;

        *s = (QueueSenders){ .metrics = metrics };
        for (size_t f = 0; f < ELEMENTSOF(families) && r >= 0; f++)
                if (metrics_value(metrics, families[f], OTHER) == 0)
                        r = metrics_name(metrics, families[f], OTHER, "other");
        for (size_t i = 0; i < QUEUE_SENDERS_MAX && r >= 0; i++)
                r = place_rename(s, i, NULL);
        return r;
}

void queue_senders_done(QueueSenders *s) {
        for (size_t i = 0; i < QUEUE_SENDERS_MAX; i++)
                free(s->names[i]);
        *s = (QueueSenders){};
}

/* A message of a lifecycle hook that no EventBridge rule passed on has no source. */
static bool is_known(const char *source, const char *account, const QueueOrigin *o) {
        return (isempty(source) || event_message_knows_source(source)) && !isempty(account) &&
               (streq_ptr(account, o->account) || strv_contains(o->accounts, account));
}

/* "aws.ec2/123456789012" */
static char *name_of(const char *source, const char *account) {
        return strf("%s/%s", isempty(source) ? "(none)" : source, account);
}

/* Returns the sender's place, a free one, or the one with the fewest bytes. */
static size_t find_place(const QueueSenders *s, const char *name) {
        size_t best = 0;

        for (size_t i = 0; i < QUEUE_SENDERS_MAX; i++) {
                if (!s->names[i] || streq(s->names[i], name))
                        return i;
                if (bytes_of(s, i) < bytes_of(s, best))
                        best = i;
        }
        return best;
}

void queue_senders_count(QueueSenders *s, const char *source, const char *account, const QueueOrigin *origin, size_t bytes) {
        _cleanup_free_ char *name = is_known(source, account, origin) ? name_of(source, account) : NULL;
        size_t i = name ? find_place(s, name) : OTHER;

        if (i != OTHER && !streq_ptr(s->names[i], name)) {
                if (place_rename(s, i, name) >= 0) {
                        free(s->names[i]);
                        s->names[i] = TAKE_PTR(name);
                } else
                        i = OTHER;
        }
        metrics_add(s->metrics, METRIC_QUEUE_SENDER_MESSAGES, i, 1);
        metrics_add(s->metrics, METRIC_QUEUE_SENDER_BYTES, i, bytes);
}
