/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The volumes that are attached to a drained node: its machine is not ended while they detach. Those of pods that stay
 * are not waited for (staying-volumes.h), and no other for longer than 2 min after the last change in their number: a
 * driver may hang, and whose volume it is may not be known.
 */

#include "staying-volumes.h"
#include "termination-context.h"

typedef struct NodeVolumes {
        size_t n_waited;  /* that are waited for */
        size_t n_staying; /* of pods that stay */
        usec_t moved_usec; /* loop_now(): when n_waited was another */
        StayingVolumes *staying;
} NodeVolumes;

/* The node has just been drained. */
void node_volumes_begin(NodeVolumes *v, usec_t now_usec);
/* Forgets which stay; drops the calls that ask for that. */
void node_volumes_done(NodeVolumes *v);
/* Counts those in view. Returns until when they are waited for (loop_now()), now_usec at the latest where there are none. */
usec_t node_volumes_update(NodeVolumes *v, const ClusterView *view, const char *node, usec_t now_usec);
