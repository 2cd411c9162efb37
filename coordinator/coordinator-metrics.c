/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator-metrics.h"

#include "event-message.h"
#include "eviction.h"
#include "kube-client.h"
#include "node-termination.h"
#include "node-webhook.h"
#include "notify-sender.h"
#include "outlook-rule.h"
#include "queue-senders.h"
#include "repairs.h"
#include "sqs-client.h"

static const char *const state_values[_NODE_TERMINATION_STATE_MAX + 1] = {
        [NODE_TERMINATION_CHECKING] = "checking",
        [NODE_TERMINATION_PAUSED] = "paused",
        [NODE_TERMINATION_BUDGETS] = "budgets",
        [NODE_TERMINATION_CORDONING] = "cordoning",
        [NODE_TERMINATION_PROTECTED] = "protected",
        [NODE_TERMINATION_LOAD_BALANCERS] = "load_balancers",
        [NODE_TERMINATION_DRAINING] = "draining",
        [NODE_TERMINATION_VOLUMES] = "volumes",
        [NODE_TERMINATION_TERMINATING] = "terminating",
        [NODE_TERMINATION_FINISHING] = "finishing",
        [NODE_TERMINATION_DONE] = "done",
};

static const char *const verb_values[_KUBE_VERB_MAX + 1] = {
        [KUBE_VERB_GET] = "get",       [KUBE_VERB_LIST] = "list",     [KUBE_VERB_WATCH] = "watch",
        [KUBE_VERB_CREATE] = "create", [KUBE_VERB_UPDATE] = "update", [KUBE_VERB_PATCH] = "patch",
        [KUBE_VERB_DELETE] = "delete", [KUBE_VERB_EVICT] = "evict",
};

static const double seconds_buckets[] = { 0.3, 1, 3, 10, 30, 60, 180, 600, 1800, 3600, 21600, 86400 };

static const MetricLabel more_of_cloud_calls[] = {
        { "operation", cloud_operation_names },
        { "outcome", cloud_outcome_names },
        {},
};

static const MetricLabel more_of_outlook[] = {
        { "code", outlook_word_names },
        {},
};

#define GAUGE(n, h) \
        { .name = "vesper_coordinator_" n, .type = METRIC_GAUGE, .help = h }
#define COUNTER(n, h) \
        { .name = "vesper_coordinator_" n, .type = METRIC_COUNTER, .help = h }

const MetricFamily coordinator_metric_families[_COORDINATOR_METRIC_MAX] = {
        [METRIC_LEADER] = GAUGE("leader", "1 while this process leads."),
        [METRIC_SYNCED] = GAUGE("synced", "1 once the view of the cluster is complete."),
        [METRIC_NODES] = GAUGE("nodes", "Nodes in view."),
        [METRIC_CLAIMS] = GAUGE("nodeclaims", "NodeClaims in view: the nodes that are managed."),
        [METRIC_ADOPTIONS] = COUNTER("adoptions_total", "Nodes that were adopted."),
        [METRIC_RELEASES] = COUNTER("releases_total", "Nodes that were released."),
        [METRIC_TERMINATIONS] = { .name = "vesper_coordinator_terminations",
                                  .type = METRIC_GAUGE,
                                  .help = "Nodes that are being removed, by state.",
                                  .label = "state",
                                  .values = state_values },
        [METRIC_TERMINATIONS_STARTED] =
                COUNTER("terminations_started_total", "Removals of nodes taken up by this process."),
        [METRIC_TERMINATIONS_FINISHED] =
                COUNTER("terminations_finished_total", "Removals of nodes that this process finished."),
        [METRIC_TERMINATION_SECONDS] = { .name = "vesper_coordinator_termination_duration_seconds",
                                         .type = METRIC_HISTOGRAM,
                                         .help = "From the deletion of a node to its end, of removals that "
                                                 "were finished.",
                                         .buckets = seconds_buckets,
                                         .n_buckets = ELEMENTSOF(seconds_buckets) },
        [METRIC_TERMINATION_TOKENS] =
                GAUGE("termination_tokens", "Machines that may be ended at once before the rate holds."),
        [METRIC_BLOCKED] = { .name = "vesper_coordinator_removals_blocked",
                             .type = METRIC_GAUGE,
                             .help = "Nodes whose removal waits for something of that kind, now. One that "
                                     "waits for "
                                     "several counts for each.",
                             .label = "reason",
                             .values = blocked_by_names },
        [METRIC_BLOCKED_SECONDS] = { .name = "vesper_coordinator_removals_blocked_seconds_total",
                                     .type = METRIC_COUNTER,
                                     .help = "Seconds that removals waited so, as they were from one scrape "
                                             "to the "
                                             "next.",
                                     .label = "reason",
                                     .values = blocked_by_names },
        [METRIC_PROTECTED_SECONDS] =
                COUNTER("protected_seconds_total",
                        "Seconds that drains waited for pods which opted out of eviction, so far."),
        [METRIC_EVICTIONS] = { .name = "vesper_coordinator_evictions_total",
                               .type = METRIC_COUNTER,
                               .help = "Answers to evictions.",
                               .label = "answer",
                               .values = eviction_answer_names },
        [METRIC_EVICTIONS_IN_FLIGHT] = GAUGE("evictions_in_flight", "Evictions without an answer yet."),
        [METRIC_EVICTIONS_WAITING] = GAUGE("evictions_waiting", "Pods that are to be evicted."),
        [METRIC_EVICTION_WINDOW] = GAUGE("eviction_window", "Evictions that may be in flight together."),
        [METRIC_API_REQUESTS] = { .name = "vesper_coordinator_api_requests_total",
                                  .type = METRIC_COUNTER,
                                  .help = "Requests to the API server.",
                                  .label = "verb",
                                  .values = verb_values },
        [METRIC_CLOUD_CALLS] = { .name = "vesper_coordinator_cloud_calls_total",
                                 .type = METRIC_COUNTER,
                                 .help = "Answers of the cloud, or of the provider's command; each outcome "
                                         "but ok is "
                                         "an error. A turn is the wait for rate and credentials before a "
                                         "terminate.",
                                 .label = "provider",
                                 .values = cloud_provider_names,
                                 .more = more_of_cloud_calls },
        [METRIC_QUEUE_DEPTH] = GAUGE("queue_depth", "Keys that wait to be reconciled."),
        [METRIC_CROWDED_NAMESPACES] =
                GAUGE("crowded_namespaces", "Namespaces with more than 1,000 PodDisruptionBudgets, where the API server's "
                                            "answers to evictions decide."),
        [METRIC_COSTLIEST_NAMESPACE_BYTES] = { .name = "vesper_coordinator_costliest_namespace_bytes",
                                               .type = METRIC_GAUGE,
                                               .help = "Memory that the pods of one namespace take in the coordinator's view, about: of "
                                                       "the namespace that takes most.",
                                               .label = "namespace",
                                               .n_named = 1 },
        [METRIC_ORPHANS] = GAUGE("orphans", "NodeClaims without a Node."),
        [METRIC_ORPHANED_INSTANCES] = { .name = "vesper_coordinator_orphaned_instances",
                                        .type = METRIC_GAUGE,
                                        .help = "Instances that the provider lists as its own, without a Node and a NodeClaim.",
                                        .label = "provider",
                                        .values = cloud_provider_names },
        [METRIC_BUDGETS] = GAUGE("node_disruption_budgets", "NodeDisruptionBudgets in view."),
        [METRIC_BUDGETS_INVALID] = GAUGE("node_disruption_budgets_invalid",
                                         "NodeDisruptionBudgets that cannot be read: they refuse all they select, or select nothing."),
        [METRIC_BUDGET_ANSWERS] = { .name = "vesper_coordinator_budget_answers_total",
                                    .type = METRIC_COUNTER,
                                    .help = "Disruptions of nodes that this process was asked for, by what the budgets said.",
                                    .label = "answer",
                                    .values = budget_answer_names },
        [METRIC_WEBHOOK_ANSWERS] = { .name = "vesper_coordinator_webhook_answers_total",
                                     .type = METRIC_COUNTER,
                                     .help = "Deletions that the API server asked this process about, by answer.",
                                     .label = "answer",
                                     .values = webhook_answer_names },
        [METRIC_WEBHOOK_REFUSED] = { .name = "vesper_coordinator_webhook_refused_total",
                                     .type = METRIC_COUNTER,
                                     .help = "Connections and requests to the webhook that were ended "
                                             "without their review having been read, by reason.",
                                     .label = "reason",
                                     .values = webhook_refusal_names },
        [METRIC_REBOOTS_GRANTED] =
                COUNTER("reboots_granted_total", "Reboots that this process has granted."),
        [METRIC_REBOOT_SLOTS_HELD] =
                GAUGE("reboot_slots_held", "Nodes that may reboot now, or are not back yet."),
        [METRIC_REBOOTS_WAITING] = GAUGE("reboots_waiting", "Nodes that wait for a slot to reboot."),
        [METRIC_REPAIRS] = { .name = "vesper_coordinator_repairs_total",
                             .type = METRIC_COUNTER,
                             .help = "Repairs of nodes that this process has begun, and what became of them.",
                             .label = "outcome",
                             .values = repair_outcome_names },
        [METRIC_REPAIRS_UNDER_WAY] = GAUGE("repairs_under_way", "Repairs of nodes that are neither proved nor failed yet."),
        [METRIC_REPAIRS_WAITING] =
                GAUGE("repairs_waiting", "Nodes that are to be repaired and are held: NodePools say why in RepairHeld."),
        [METRIC_OUTLOOK_NODES] = { .name = "vesper_coordinator_voluntary_disruption_nodes",
                                   .type = METRIC_GAUGE,
                                   .help = "Nodes that a NodePool has judged by spec.disruption, by method and by what stands in the way of "
                                           "their removal, each by itself. Nothing is removed.",
                                   .label = "method",
                                   .values = outlook_method_names,
                                   .more = more_of_outlook },
        [METRIC_OUTLOOK_OLDEST_SECONDS] =
                GAUGE("voluntary_disruption_oldest_candidate_seconds", "Age in seconds of the oldest candidate: for how long the node has been removable that has been so longest; 0: none."),
        [METRIC_OUTLOOK_ROUND_SECONDS] =
                GAUGE("voluntary_disruption_round_seconds", "How long the last round over all nodes has judged."),
        [METRIC_OUTLOOK_ROUND_AGE_SECONDS] =
                GAUGE("voluntary_disruption_round_age_seconds", "How long ago the last such round has ended, or the first NodePool has asked for one."),
        [METRIC_QUEUE_ANSWERS] = { .name = "vesper_coordinator_queue_answers_total",
                                   .type = METRIC_COUNTER,
                                   .help = "Answers of the interruption queue; each outcome but ok is an error.",
                                   .label = "outcome",
                                   .values = sqs_outcome_names },
        [METRIC_QUEUE_RECEIVED] = { .name = "vesper_coordinator_queue_messages_received_total",
                                    .type = METRIC_COUNTER,
                                    .help = "Messages of the interruption queue, each time that they came.",
                                    .label = "kind",
                                    .values = event_message_kind_names },
        [METRIC_QUEUE_SENDER_MESSAGES] = { .name = "vesper_coordinator_queue_sender_messages_total",
                                           .type = METRIC_COUNTER,
                                           .help = "Messages of the interruption queue, each time that they "
                                                   "came, by the event's source and account "
                                                   "(aws.ec2/123456789012). Known sources and accounts only: the "
                                                   "eight with the most bytes. All others count as other.",
                                           .label = "sender",
                                           .n_named = QUEUE_SENDERS_MAX + 1 },
        [METRIC_QUEUE_SENDER_BYTES] = { .name = "vesper_coordinator_queue_sender_bytes_total",
                                        .type = METRIC_COUNTER,
                                        .help = "Bytes of messages of the interruption queue, by the "
                                                "event's source and account.",
                                        .label = "sender",
                                        .n_named = QUEUE_SENDERS_MAX + 1 },
        [METRIC_QUEUE_DELETED] = COUNTER("queue_messages_deleted_total", "Messages that were done with and deleted from the queue."),
        [METRIC_QUEUE_FOREIGN] =
                COUNTER("queue_instances_foreign_total", "Instances in messages that were deleted although no Node or NodeClaim is theirs."),
        [METRIC_QUEUE_POISON] =
                COUNTER("queue_messages_poison_total", "Messages that cannot be read and were hidden for 12 hours, each time."),
        [METRIC_QUEUE_POISON_DELETED] =
                COUNTER("queue_messages_poison_deleted_total",
                        "Messages that cannot be read and were deleted, because 1,000 such messages were hidden."),
        [METRIC_QUEUE_OTHER_ACCOUNT] =
                COUNTER("queue_messages_other_account_total",
                        "Messages about another account or region than the queue's own ([Queue] Accounts=, "
                        "Regions=), for which nothing was done."),
        [METRIC_QUEUE_TOO_LATE] =
                COUNTER("queue_instances_too_late_total",
                        "Instances in messages that came too late to end anything: more than ten minutes "
                        "after the announced time, or for a lifecycle hook that its group no longer waits for."),
        [METRIC_QUEUE_WORKING] = GAUGE("queue_messages_working", "Messages that were received and are not done with."),
        [METRIC_QUEUE_DRAINS] = GAUGE("queue_drains", "Nodes that are drained for the interruption queue and kept, and whose drain has not ended."),
        [METRIC_QUEUE_HELD] = GAUGE("queue_held_nodes", "Nodes that are cordoned and drained for a notice that the brake of the queue holds."),
        [METRIC_QUEUE_SECONDS] = { .name = "vesper_coordinator_queue_durable_seconds",
                                   .type = METRIC_HISTOGRAM,
                                   .help = "From the sending of a notice until it stood on its NodeClaim.",
                                   .buckets = seconds_buckets,
                                   .n_buckets = ELEMENTSOF(seconds_buckets) },
        [METRIC_NOTIFICATIONS] = NOTIFY_METRIC("vesper_coordinator"),
};

int coordinator_metrics_new(Metrics **ret) {
        return metrics_new(coordinator_metric_families, ELEMENTSOF(coordinator_metric_families), ret);
}
