/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands in the API of what the interruption queue told, and how that is written: on a NodeClaim, or on a Node: of one that no
 * NodePool wants, where [Queue] Unmanaged=drain, and of a managed one what has no room on its claim. Pure.
 */

#include "interruption.h"
#include "queue-decide.h"

/* Fills told and is_going. n: its Node; NULL: none. notice: of the message; NULL: none. Time is of the wall clock. What the machine comes
 * back from, and has passed, does not count. */
void queue_told_of_claim(const KubeNodeClaim *claim, const KubeNode *n, const Notice *notice, InterruptionDelete deletes, usec_t wall_usec,
                         QueueFacts *f);
/* Fills on_node and is_overruled, of what stands on the Node (ANNOTATION_HEARD). What was told in an earlier boot does not
 * count, and neither does another notice that is overruled, or whose time has passed: the machine has outlived that. */
void queue_told_of_node(const KubeNode *n, const Notice *notice, InterruptionDelete deletes, usec_t wall_usec, QueueFacts *f);

/* Return merge patches that take effect only on the object as it was read. NULL: out of memory.
 * phase: of a claim NONE, of a Node PLANNED; of either CANCELLED, if AWS called the notice off. n: the claim's Node; NULL: none. */
char *queue_told_claim_body(const KubeNodeClaim *claim, const Notice *notice, InterruptionPhase phase, const KubeNode *n);
char *queue_told_node_body(const KubeNode *n, const Notice *notice, InterruptionPhase phase);
