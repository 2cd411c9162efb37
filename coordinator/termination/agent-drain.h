/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Does a node's agent drain it, and get on with that? Judged by what
 * changes, seen on our own clock, never by comparing timestamps: the agent's annotation, and the pods that
 * go. 15 s without a change, and its drain is helped. Pure.
 */

#include "kube-kinds.h"

typedef struct AgentDrain {
        uint64_t fingerprint; /* of what was seen last */
        usec_t moved_usec;    /* loop_now(): when that changed; the owner begins with now */
} AgentDrain;

/* pods: node_pods_fingerprint(). True: it does; *ret_until_usec (loop_now()): until then, if nothing
 * changes. */
bool agent_drain_moves(AgentDrain *a, const KubeNode *n, uint64_t pods, usec_t now_usec,
                       usec_t *ret_until_usec);
