/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a leader knows of an instance that a message of the interruption queue names, for queue-decide.h: its Node and its
 * NodeClaim in view, what stands on them (announced.h), and what lies in memory beside that (queue-memory.h), where it also
 * notes since when nobody knows the instance. Asks nobody.
 */

#include "queue-decide.h"
#include "queue-memory.h"
#include "queue-worker.h"

/* Borrowed from the view; NULL: none. */
typedef struct QueueFound {
        const KubeNode *node;
        const KubeNodeClaim *claim;
} QueueFound;

/* Looks up two indexes: the cost does not depend on the number of Nodes. */
QueueFound queue_find(const ClusterView *view, const char *instance);
/* Returns the claim, or NULL for a person's claim that the coordinator has not taken: then its Node is written on. */
const KubeNodeClaim *queue_claim_that_counts(const KubeNodeClaim *claim);
/* All but is_held, which is the message's. -ENOMEM. */
int queue_facts_gather(const QueueWorkerOptions *o, QueueMemory *memory, const char *instance, const QueueFound *found, QueueFacts *ret);
/* As the configuration has them now. */
QueueRules queue_rules_now(const QueueWorkerOptions *o);
