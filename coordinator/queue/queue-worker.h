/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * queue/: the interruption queue, AWS SQS: what EventBridge, AWS Health and Auto Scaling tell of instances.
 * For nodes whose agent cannot hear it, or that have none. Calls cluster/, cloud/, shared/notice; called by
 * leading.c.
 *
 *      sqs-client.c     the queue's calls; sqs-url.c, sqs-answer.c: pure
 *      lifecycle-hook.c the two calls by which an Auto Scaling group's hook is answered
 *      queue-decide.c   pure: what a message means for an instance
 *      queue-brake.c    pure: how many machines the queue may end by itself
 *      queue-confirm.c  asks AWS about the notices that the brake holds; confirmation-client.c, confirmation.c (pure)
 *      queue-errand.c   what a message means for one instance, until that is done
 *      queue-facts.c    what is known of an instance, to decide by
 *      queue-memory.c   what a leader remembers beside the messages
 *      queue-senders.c  counts messages and bytes by sender, as metrics
 *      queue-told.c     pure: the patch that writes it on a NodeClaim or Node
 *      queue-voice.c    what is said of messages and of the queue
 *      queue-worker.c   the polls, and each message from its receipt to its deletion, by its errands
 *
 *                  .------------- its work failed: tried again, with backoff -------------.
 *                  v                                                                      |
 *      received -> errands, one for each instance: decided, written or asked about -------+
 *         |        |             |
 *         |        |             '-> all done: deleted, in batches. What is not deleted for some reason
 *         |        |                 comes again, and is done already
 *         |        |-> a group waits for the drain: heartbeats, until it can go on
 *         |        '-> some wait: hidden for a while, and forgotten until it comes again
 *         '-> cannot be read: comes again by itself, then hidden for 12 hours, counted and told once; deleted
 *             if QUEUE_PARKED_MAX are hidden: at SQS's limit of hidden messages nobody would receive any
 *
 * A message is deleted only when what it caused is durable in the API: the notice stands as an annotation on
 * the NodeClaim (interruption_of_claim()), by which whoever leads deletes the claim (adoption.c). So
 * messages that come twice, late, or in another order, and a leader that dies anywhere in between, change
 * nothing. Received messages are hidden for ten seconds, and again as long as there is work on them: what a
 * leader leaves behind the next one gets within that time. The message of a hook stays until its group has
 * been answered.
 *
 * A claim is written on as it was read: what an earlier leader has just written there, and the view does not show yet, is not
 * overwritten by a later time.
 *
 * Of a Node without claim that no pool wants the same stands on the Node itself, where [Queue] Unmanaged=drain: its drain is
 * termination/heard-drain.c's.
 *
 * Exists while this process leads. Freeing it drops all polls and calls.
 */

#include "cloud-registry.h"
#include "cluster-view.h"
#include "coordinator-config.h"
#include "event-recorder.h"
#include "metrics.h"
#include "sqs-client.h"
#include "wakeup.h"

typedef struct QueueWorker QueueWorker;

typedef struct QueueWorkerOptions {
        Env *env;
        const CoordinatorConfig *config;
        SqsClient *sqs;
        KubeClient *client;
        const ClusterView *view;
        const CloudRegistry *cloud;
        EventRecorder *recorder;
        struct NotifySender *notify; /* NULL: nobody is told */
        Metrics *metrics;
        HttpGuard guard;                                /* the leader's */
        void (*look)(const char *node, void *userdata); /* please look at this node anew */
        /* What is in view of this kind is behind: writes that were decided on it are refused again and again. */
        void (*view_is_old)(const KubeKind *kind, void *userdata);
        void *userdata;
} QueueWorkerOptions;

/* All borrowed; polls at once. */
int queue_worker_new(const QueueWorkerOptions *o, QueueWorker **ret);
QueueWorker *queue_worker_free(QueueWorker *w);
DEFINE_FREEP(QueueWorker, queue_worker_free);
/* Messages that there is work on. */
size_t queue_worker_n_messages(const QueueWorker *w);
/* Reports the poll of the queue, which repeats for ever, each message and each request about messages. The
 * next poll begins, and the worker checks each message, within QUEUE_WORKER_WAKEUP_USEC. */
#define QUEUE_WORKER_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void queue_worker_next_wakeup(const QueueWorker *q, Wakeups *w);
