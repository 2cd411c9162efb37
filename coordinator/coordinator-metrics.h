/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The coordinator's metrics: the index of each family in its table. */

#include "metrics.h"

typedef enum CoordinatorMetric {
        METRIC_LEADER,       /* 1: this process leads */
        METRIC_SYNCED,       /* 1: the view is complete */
        METRIC_NODES,        /* nodes in view */
        METRIC_CLAIMS,       /* NodeClaims in view */
        METRIC_ADOPTIONS,    /* nodes adopted */
        METRIC_RELEASES,     /* nodes released */
        METRIC_TERMINATIONS, /* by state, now */
        METRIC_TERMINATIONS_STARTED,
        METRIC_TERMINATIONS_FINISHED,
        METRIC_TERMINATION_SECONDS, /* from deletionTimestamp seen to gone */
        METRIC_TERMINATION_TOKENS,  /* left of the rate of terminations */
        METRIC_BLOCKED,             /* removals, by what they wait for, now */
        METRIC_BLOCKED_SECONDS,     /* that they did, by reason */
        METRIC_PROTECTED_SECONDS,   /* that drains waited for pods which opted out */
        METRIC_EVICTIONS,           /* by answer */
        METRIC_EVICTIONS_IN_FLIGHT,
        METRIC_EVICTIONS_WAITING,
        METRIC_EVICTION_WINDOW,
        METRIC_API_REQUESTS, /* by verb */
        METRIC_CLOUD_CALLS,  /* answers, by provider, operation and outcome */
        METRIC_QUEUE_DEPTH,
        METRIC_ORPHANS, /* claims without node */
        METRIC_ORPHANED_INSTANCES, /* instances without either, by provider */
        METRIC_BUDGETS,         /* NodeDisruptionBudgets in view */
        METRIC_BUDGETS_INVALID, /* of these */
        METRIC_BUDGET_ANSWERS,  /* by answer */
        METRIC_WEBHOOK_ANSWERS, /* by answer */
        METRIC_WEBHOOK_REFUSED, /* by reason */
        METRIC_REBOOTS_GRANTED,
        METRIC_REBOOT_SLOTS_HELD,
        METRIC_REBOOTS_WAITING,
        METRIC_REPAIRS,           /* by outcome */
        METRIC_REPAIRS_UNDER_WAY, /* begun, and neither proved nor failed */
        METRIC_REPAIRS_WAITING,
        METRIC_OUTLOOK_NODES,          /* that pools ask about, by method and what stands in the way */
        METRIC_OUTLOOK_OLDEST_SECONDS, /* since when one would go */
        METRIC_OUTLOOK_ROUND_SECONDS,  /* that the last round has judged */
        METRIC_OUTLOOK_ROUND_AGE_SECONDS,
        METRIC_COSTLIEST_NAMESPACE_BYTES, /* of the namespace whose pods take most memory */
        METRIC_CROWDED_NAMESPACES, /* with more than 1,000 PodDisruptionBudgets */
        METRIC_QUEUE_ANSWERS,  /* of SQS, by outcome */
        METRIC_QUEUE_RECEIVED, /* messages, by kind */
        METRIC_QUEUE_SENDER_MESSAGES, /* by source and account: queue-senders.h */
        METRIC_QUEUE_SENDER_BYTES,    /* the same */
        METRIC_QUEUE_DELETED,
        METRIC_QUEUE_FOREIGN, /* instances that nobody knows */
        METRIC_QUEUE_POISON,
        METRIC_QUEUE_POISON_DELETED,
        METRIC_QUEUE_OTHER_ACCOUNT, /* messages about another account or region */
        METRIC_QUEUE_TOO_LATE, /* instances in messages that came too late to end anything */
        METRIC_QUEUE_WORKING, /* messages that there is work on */
        METRIC_QUEUE_DRAINS,  /* nodes of no pool that are being drained for it */
        METRIC_QUEUE_HELD,    /* nodes that are drained for a notice that the brake of the queue holds */
        METRIC_QUEUE_SECONDS, /* from sent to durable in the API */
        METRIC_NOTIFICATIONS, /* by outcome and phase */
        _COORDINATOR_METRIC_MAX,
} CoordinatorMetric;

/* As the manual page lists them. */
extern const MetricFamily coordinator_metric_families[_COORDINATOR_METRIC_MAX];
int coordinator_metrics_new(Metrics **ret);
