/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands in the API of what the interruption queue told, and how that is written: on a NodeClaim, or, where [Queue]
 * Unmanaged=drain, on a Node that has none and that no NodePool wants. Pure; what lies in memory, and is not in view yet, is the
 * caller's.
 */

#include "interruption.h"
#include "queue-decide.h"

/* Fills is_told, told_usec, is_told_now. Time is of the wall clock. */
void queue_told_of_claim(const KubeNodeClaim *claim, QueueFacts *f);
/* Besides is_overruled and is_drained, of what stands on the Node (ANNOTATION_HEARD). What was told in an earlier boot does not
 * count, and neither does another notice that is overruled, or whose time has passed: the machine has outlived that. */
void queue_told_of_node(const KubeNode *n, const Notice *notice, usec_t wall_usec, QueueFacts *f);

/* A merge patch on the condition that the object is as it was read; NULL: out of memory. */
char *queue_told_claim_body(const KubeNodeClaim *claim, const Notice *notice);
char *queue_told_node_body(const KubeNode *n, const Notice *notice);
