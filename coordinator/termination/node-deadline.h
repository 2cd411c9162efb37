/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * T, the time at which a node that is being deleted goes whatever is left: its claim's deletion plus
 * terminationGracePeriod, the end that its agent has read of, what the interruption queue told of that its claim says
 * (an end, or a scheduled change; none that the brake of the queue holds), or the time that a person has put on the claim (ANNOTATION_FORCE_DEADLINE), the earliest of them.
 * Each only moves to earlier; but a notice of the agent's that is withdrawn, overruled or of an earlier boot binds nobody any
 * more, and neither does what AWS has called off. Once T has passed the machine is being ended, and nothing takes it back.
 * Pure: all times are of the wall clock.
 */

#include "drain-plan.h"
#include "kube-kinds.h"

/* What is announced for later makes no haste: pods that opted out are waited for until then. */
#define HEARD_SOON_USEC USEC_PER_HOUR

typedef struct NodeDeadline {
        usec_t at_usec; /* T; USEC_INFINITY: there is none */
        usec_t claim_usec, notice_usec, heard_usec, forced_usec;
        char *notice_id; /* its agent's; NULL: none stands */
        bool is_heard;   /* the queue told of one that is now, or less than HEARD_SOON_USEC away */
} NodeDeadline;

#define NODE_DEADLINE_NONE \
        (NodeDeadline) { \
                .at_usec = USEC_INFINITY, .claim_usec = USEC_INFINITY, .notice_usec = USEC_INFINITY, \
                .heard_usec = USEC_INFINITY, .forced_usec = USEC_INFINITY \
        }

void node_deadline_done(NodeDeadline *d);

/* What Node and claim (NULL: none) say now. True: T is another. What cannot be read changes nothing. */
bool node_deadline_update(NodeDeadline *d, const KubeNode *n, const KubeNodeClaim *claim, usec_t wall_now_usec);
bool node_deadline_passed(const NodeDeadline *d, usec_t wall_now_usec);
/* Which of them T is, as a log line names it; for a T that is there. Static. */
const char *node_deadline_source(const NodeDeadline *d);
/* Such a notice stands, whatever its time: the node is interrupted, and waits for no pod that opted out of
 * drains. */
bool node_deadline_has_notice(const NodeDeadline *d);
/* How that Node is drained until then. policy: of pods that opted out of drains, unless a notice stands. */
DrainRules node_deadline_rules(const NodeDeadline *d, const KubeNode *n, ProtectedPolicy policy);
