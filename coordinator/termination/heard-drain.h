/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes without NodeClaim that no NodePool wants, and of whose machine the interruption queue told an end ([Queue]
 * Unmanaged=drain): cordoned, and drained by the Eviction API until the announced time. Their machines are never ended, and
 * nothing waits for vesper: no finalizer, no NodeClaim. queue-worker.c writes what was heard on the Node (ANNOTATION_HEARD);
 * heard-rule.h says what becomes of that; all of it stands on the Node, so that the next leader goes on by it.
 *
 * The agent of such a node goes first, as for one that is being removed (agent-drain.h). PodDisruptionBudgets count as
 * there, and a pod whose grace no longer fits before the announced time is deleted (drain-plan.h). Without a time the
 * drain waits for as long as it takes.
 *
 * How far it is stands in the Node's conditions (heard-conditions.h), and how many pods are left in the annotation.
 *
 * Once a NodePool wants the node, or a claim is there, the drain stops: what was heard is written on the claim, which is
 * deleted for it as if the queue had told of it just now.
 */

#include "termination-context.h"
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
/* A pod of that node came, changed or went, as node_termination_on_pod(). */
void heard_drains_on_pod(HeardDrains *h, const char *node, const KubePod *old, const KubePod *new);
