/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes that are drained for what the interruption queue told of their machines, and kept: cordoned, and drained by the Eviction API until
 * the announced time. Their machines are not ended.
 *
 *      a managed node                     for what it comes back from: a stop, a hibernation, a reboot, a maintenance
 *      a node without NodeClaim that no   for every end, and every scheduled change ([Queue] Unmanaged=drain). Nothing waits for vesper:
 *      NodePool wants                     no finalizer, no NodeClaim
 *
 * queue-errand.c writes each notice into the list ANNOTATION_ANNOUNCED, on the claim, or on a Node that has none. heard-rule.h decides what
 * follows. While the drain runs, its progress stands on the Node (ANNOTATION_HEARD). The next leader goes on by both.
 *
 * The node's agent goes first, as for one that is being removed (agent-drain.h). PodDisruptionBudgets count as
 * there, and a pod whose grace no longer fits before the announced time is deleted (drain-plan.h). Without a time the
 * drain waits for as long as it takes.
 *
 * How far it is stands in the Node's conditions (heard-conditions.h), and how many pods are left in the annotation.
 *
 * Once a node has its claim, the Node's list is written there, and a drain for what ends its machine stops: the claim is deleted for that.
 */

#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

typedef struct HeardDrains HeardDrains;

/* All borrowed. */
int heard_drains_new(const TerminationContext *context, WorkQueue *queue, HeardDrains **ret);
HeardDrains *heard_drains_free(HeardDrains *h); /* drains under way are dropped; before the evictor */
DEFINE_FREEP(HeardDrains, heard_drains_free);

/* Level-triggered; n NULL: it is gone. key: "node/NAME", dirty again when there is more to do. True: what is on this Node is
 * kept for what was heard, and adoption.c has nothing to release there. */
bool heard_drains_see_node(HeardDrains *h, const char *name, const KubeNode *n, const char *key);
/* Nodes whose drain has not ended. */
size_t heard_drains_under_way(const HeardDrains *h);
/* Returns the number of nodes that are cordoned and drained, or were, for a notice that the brake of the queue holds (queue-brake.h). */
size_t heard_drains_held(const HeardDrains *h);
/* A pod of that node came, changed or went, as node_termination_on_pod(). */
void heard_drains_on_pod(HeardDrains *h, const char *node, const KubePod *old, const KubePod *new);
/* Reports each node that is drained for a notice of the queue, its drain, and each write for it. The node is
 * reconciled again within HEARD_DRAIN_WAKEUP_USEC, unless its drain reports itself. The wait for load
 * balancers may be longer, if [Drain] configures that. */
#define HEARD_DRAIN_WAKEUP_USEC (15 * USEC_PER_MINUTE)
void heard_drains_next_wakeup(const HeardDrains *h, Wakeups *w);
