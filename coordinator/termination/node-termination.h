/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The end of one managed Node, from its deletionTimestamp to its last finalizer. The state lives in the API objects;
 * this object is what one leader knows in between, and is built anew by the next.
 *
 *   CHECKING --its machine is gone (machine-end.h), Node not Ready------------------------> FINISHING
 *      |           \
 *      |            PAUSED: a person has paused removals, or they resume one by one (pauses.h)
 *      |            BUDGETS: a NodeDisruptionBudget has not charged it yet (budget-gate.h); back to PAUSED where that comes
 *      v           /
 *   CORDONING --ack--> PROTECTED --no such pod left--> LOAD_BALANCERS --wait over--> DRAINING
 *      DRAINING --Drained--> VOLUMES --detached--> TERMINATING --terminating or gone--> FINISHING
 *         ^--------a pod was bound to it----+--(not accepted yet)--+
 *      FINISHING --finalizers off--> DONE
 *
 *   An interruption, which the agent reports and which ends the machine, waits for no protected pod: PROTECTED goes on,
 *   and DRAINING evicts them with the others.
 *
 *   At T (node-deadline.h) PAUSED and BUDGETS go on to CORDONING, and PROTECTED .. VOLUMES to TERMINATING, whatever is left.
 *
 *   TERMINATING lasts, with the condition vesper.sh/TerminationBlocked and retried for ever, while the cloud cannot say
 *   or refuses, while nothing proves that the machine is this Node's (machine-end.h), while another Node calls it its own
 *   and still needs it (shared-machine.h), and while nothing proves that no pod is left (drain-proof.h). It also lasts
 *   where the machine is another Node's by name: then a person has to act.
 */

#include "blocked-by.h"
#include "termination-context.h"
#include "wakeup.h"

typedef enum NodeTerminationState {
        NODE_TERMINATION_CHECKING,
        NODE_TERMINATION_PAUSED,
        NODE_TERMINATION_BUDGETS,
        NODE_TERMINATION_CORDONING,
        NODE_TERMINATION_PROTECTED,
        NODE_TERMINATION_LOAD_BALANCERS,
        NODE_TERMINATION_DRAINING,
        NODE_TERMINATION_VOLUMES,
        NODE_TERMINATION_TERMINATING,
        NODE_TERMINATION_FINISHING,
        NODE_TERMINATION_DONE,
        _NODE_TERMINATION_STATE_MAX,
        _NODE_TERMINATION_STATE_INVALID = -EINVAL,
} NodeTerminationState;

const char *node_termination_state_to_string(NodeTerminationState s); /* the claim's phase: "Draining" */

typedef struct NodeTermination NodeTermination;

/* For a Node with our finalizer and a deletionTimestamp. */
int node_termination_new(const TerminationContext *context, const KubeNode *node, NodeTermination **ret);
NodeTermination *node_termination_free(NodeTermination *t); /* calls under way are dropped; marks stay */
DEFINE_FREEP(NodeTermination, node_termination_free);
/* Level-triggered: does what view and time call for. Call after every change of the node, its claim, pods,
 * volumes. */
void node_termination_step(NodeTermination *t);
/* The same, and its drain looks at its pods again: what their PDBs say may have changed. */
void node_termination_reconsider(NodeTermination *t);
void node_termination_on_pod(NodeTermination *t, const KubePod *old, const KubePod *new);
/* By a drain of our own, which hears of its pods itself. */
bool node_termination_drains(const NodeTermination *t);
/* Is what its pods do what it waits for? They hold it, or its agent drains them; not while all that are left
 * are held by budgets, nor in the hands of load balancers, of volumes or of its cloud. */
bool node_termination_awaits_pods(const NodeTermination *t);
/* What keeps it from going on, now. */
void node_termination_blocked_by(const NodeTermination *t, bool ret[_BLOCKED_BY_MAX]);
PodReturns *node_termination_returns(const NodeTermination *t); /* TerminationContext.returns_of */
NodeTerminationState node_termination_state(const NodeTermination *t); /* DONE: free it */
const char *node_termination_uid(const NodeTermination *t);            /* of the Node it was made for */
const char *node_termination_claim(const NodeTermination *t);          /* its name; NULL: there is none */
/* When its deletion began, wall clock, for durations: its deletionTimestamp is in whole seconds, so one that
 * has only just come into view began now. Pure. */
usec_t node_termination_begun(const KubeNode *n, usec_t wall_now_usec);
/* Reports the removal, its drain, its machine, and each write that is due for it. queue: the queue in which
 * context->requeue() marks the node. A removal that no call, watch or other module will wake is reconciled
 * again within NODE_TERMINATION_WAKEUP_USEC. The wait for load balancers may be longer, if [Drain]
 * configures that. */
#define NODE_TERMINATION_WAKEUP_USEC (15 * USEC_PER_MINUTE)
void node_termination_next_wakeup(const NodeTermination *t, const WorkQueue *queue, Wakeups *w);
