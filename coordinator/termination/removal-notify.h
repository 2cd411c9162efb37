/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the receiver of [Notify] is told of one removal. It goes under the notice that the removal is for: its agent's, which
 * stands on the Node; else the queue's, which stands on the claim; else the deletion itself. That is settled when the
 * removal begins, so that all of it has one id; and where agent and coordinator both tell, they do so by the same keys.
 *
 * With [Notify] AgentsTell= the phases of a drain that a node's agent has reported are left to that agent, until it is
 * silent and the coordinator drains in its place.
 */

#include "kube-kinds.h"
#include "notify-sender.h"

#define REMOVAL_NOTIFY_DELETION "deletion" /* id and kind where there is no notice */

typedef struct RemovalNotify {
        NotifySender *sender; /* borrowed; NULL: nobody is told */
        bool agents_tell;
        Notice *notice; /* NULL: the Node was deleted, and that is all */
        bool settled;
        unsigned told; /* bit 1 << NotifyPhase */
} RemovalNotify;

void removal_notify_done(RemovalNotify *r);

/* Pure: returns the notice that a removal is for. NULL: none. n and claim may be NULL. Borrowed from them. */
const Notice *removal_notify_notice(const KubeNode *n, const KubeNodeClaim *claim);
/* Pure: is that phase told by the node's agent? own_drain: the coordinator has begun to drain. n may be NULL. */
bool removal_notify_is_agents(const KubeNode *n, NotifyPhase phase, bool own_drain);

/* Once each phase. node: as it is now, NULL: gone; deadline_usec: wall clock, USEC_INFINITY: none. */
void removal_notify_tell(RemovalNotify *r, NotifyPhase phase, const char *name, const char *uid, const KubeNode *n,
                         const KubeNodeClaim *claim, bool own_drain, usec_t deadline_usec, const char *text);
