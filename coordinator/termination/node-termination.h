/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * termination/: adoption of a pool's nodes, the end of one node, release, orphans. Calls cluster/, cloud/,
 * shared/drain; is driven by the coordinator's work queue.
 *
 * node-termination.c: the end of one managed Node, from its deletionTimestamp to its last finalizer (seed
 * 000, seed 002; design.md section 5). The state lives in the API objects; this object is what one leader
 * knows in between, and is built anew by the next.
 *
 *   CHECKING --its machine is gone (machine-end.h), Node not Ready------------------------> FINISHING
 *      |
 *      v
 *   CORDONING --ack--> PROTECTED --no such pod left--> LOAD_BALANCERS --wait over--> DRAINING
 *      DRAINING --Drained--> VOLUMES --detached--> TERMINATING --terminating or gone--> FINISHING
 *         ^--------a pod was bound to it----+--(not accepted yet)--+
 *      FINISHING --finalizers off--> DONE
 *
 *   An interruption, the agent's word that the machine ends, waits for no protected pod: PROTECTED goes on,
 *   and DRAINING evicts them with the others.
 *
 *   At T (claim's deletionTimestamp + TGP, or an earlier notice) PROTECTED .. VOLUMES go on to TERMINATING,
 *   whatever is left. A cloud that cannot say or will not, a machine that nothing proves to be this Node's, or that
 *   another Node calls its own and still needs, or that is another Node's by name: stays in TERMINATING, with the condition vesper.sh/TerminationBlocked, retried for ever.
 */

#include "blocked-by.h"
#include "cloud.h"
#include "cluster-view.h"
#include "coordinator-config.h"
#include "event-recorder.h"
#include "metrics.h"
#include "node-drain.h"
#include "object-writes.h"

typedef enum NodeTerminationState {
        NODE_TERMINATION_CHECKING,
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

/* What every termination of one leader shares. Borrowed by each. */
typedef struct TerminationContext {
        Env *env;
        const CoordinatorConfig *config;
        KubeClient *client;
        ClusterView *view;
        Evictor *evictor;
        ObjectWrites *writes;
        CloudProvider *provider;
        EventRecorder *recorder;
        Metrics *metrics;
        HttpGuard guard; /* the leader's */
        /* Please reconcile this node again at that time (loop_now()). */
        void (*requeue)(const char *node, usec_t at_usec, void *userdata);
        /* A pod of a node that is being removed begins to go, as the answer to us says: its changes are
         * awaited from now on. No step inside. */
        void (*moved)(void *userdata);
        void *userdata;
        struct TokenBucket *rate;       /* node terminations: 60 a minute beyond a burst of 200 */
        struct TokenBucket *progress;   /* writes of pods left, over all claims */
        struct TokenBucket *tales;      /* Events about pods that went as they should */
        struct TokenBucket *warnings;   /* Events about pods that a deadline will end */
        struct TokenBucket *milestones; /* Events of their own about nodes that are drained */
} TerminationContext;

typedef struct NodeTermination NodeTermination;

/* For a Node with our finalizer and a deletionTimestamp. */
int node_termination_new(const TerminationContext *context, const KubeNode *node, NodeTermination **ret);
NodeTermination *node_termination_free(NodeTermination *t); /* calls under way are dropped; marks stay */
DEFINE_FREEP(NodeTermination, node_termination_free);
/* Level-triggered: does what view and time call for. Call after every change of the node, its claim, pods,
 * volumes. */
void node_termination_step(NodeTermination *t);
/* The same, and its drain looks at its pods again: what their PDBs say may have changed. */
void node_termination_look(NodeTermination *t);
void node_termination_on_pod(NodeTermination *t, const KubePod *old, const KubePod *new);
/* By a drain of our own, which hears of its pods itself. */
bool node_termination_drains(const NodeTermination *t);
/* Is what its pods do what it waits for? They hold it, or its agent drains them; not while all that are left
 * are held by budgets, nor in the hands of load balancers, of volumes or of its cloud. */
bool node_termination_awaits_pods(const NodeTermination *t);
/* What keeps it from going on, now. */
void node_termination_blocked_by(const NodeTermination *t, bool ret[_BLOCKED_BY_MAX]);
NodeTerminationState node_termination_state(const NodeTermination *t); /* DONE: free it */
const char *node_termination_uid(const NodeTermination *t);            /* of the Node it was made for */
/* When its deletion began, wall clock, for durations: its deletionTimestamp is in whole seconds, so one that
 * has only just come into view began now. Pure. */
usec_t node_termination_begun(const KubeNode *n, usec_t wall_now_usec);
