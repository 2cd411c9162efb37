/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The drain of one node: evict (or, at the deadline, delete) what
 * drain-plan.h says, wait until nothing is left to wait for, then prove it by one consistent list. Begins
 * after the cordon or taint was acknowledged.
 *
 *      DRAINING --nothing left in view--> PROVING --list empty, watch brought none since--> DRAINED
 *          ^                                 |
 *          +------------a pod was there------+          at T: EXPIRED, whatever is left
 *
 * A delete that asks for a certain grace holds only for the pod that it was decided on (its
 * resourceVersion): a pod that somebody has deleted meanwhile would get next to none, as the API server
 * counts from then. Refused for that (409), one consistent list is looked at, and the plan made anew; three
 * times in a row, then the look just made has to do. An eviction with less than the pod's own grace follows
 * a look within two seconds. In the last second before T nothing is looked at any more.
 *
 * Level-triggered: node_drain_wake() recomputes everything from the pods in view. Knows nothing of marks on
 * the Node, of volumes or of clouds.
 */

#include "drain-plan.h"
#include "evictor.h"
#include "hashmap.h"
#include "pod-wait.h"
#include "wakeup.h"

typedef struct NodeDrain NodeDrain;

/* A list of a node's pods that takes longer is given up, and asked for again. */
#define NODE_DRAIN_LIST_USEC (15 * USEC_PER_SEC)

typedef enum NodeDrainState {
        NODE_DRAIN_DRAINING,
        NODE_DRAIN_PROVING,
        NODE_DRAIN_DRAINED,
        NODE_DRAIN_EXPIRED, /* T passed: what is left is in the blockers; deletes at T were sent */
        _NODE_DRAIN_STATE_MAX,
        _NODE_DRAIN_STATE_INVALID = -EINVAL,
} NodeDrainState;

const char *node_drain_state_to_string(NodeDrainState s);

/* One pod that is still there, and why. Strings are borrowed until the loop goes on. */
typedef struct DrainBlocker {
        const char *ns, *name, *uid;
        PodWait wait;
        const char *detail;  /* the PDB's name, the webhook's, the controller's, the annotation's key, or "" */
        const char *message; /* the webhook's or the server's words, the controller's kind, or "" */
        usec_t since_usec;   /* wall clock: when this reason began, or the pod that came back was made */
        usec_t end_usec; /* wall clock: when the grace of one that is terminating is over; 0: it is not */
} DrainBlocker;

/* What happened to one pod, for journal and Event. */
typedef enum DrainPodEvent {
        DRAIN_POD_EVICTED, /* accepted; or sent, and not answered before it was gone and the node proved empty */
        DRAIN_POD_BLOCKED, /* a new reason that it is not evicted */
        DRAIN_POD_DELETED, /* at the deadline, its PDB not asked: accepted */
        DRAIN_POD_STAYS,   /* it has come back too often (pod-returns.h); once for each controller */
        DRAIN_POD_LEFT_ALONE, /* pod_static_doubt(): once for each, of the first few of a drain */
        DRAIN_POD_GONE,    /* it has left the node; told last */
} DrainPodEvent;

typedef struct NodeDrainHandler {
        /* state, pods left or blockers changed; may free the drain as last act */
        void (*on_changed)(NodeDrain *d, void *userdata);
        /* report is NULL for GONE, DELETED, STAYS and LEFT_ALONE, and for EVICTED without an answer;
         * blocker is NULL for STAYS and LEFT_ALONE. May be NULL. */
        void (*on_pod)(NodeDrain *d, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                       const EvictionReport *report, void *userdata);
        /* T will end this pod: still there at at_usec (wall clock) it is deleted, or its grace is cut. Comes from
         * drain_plan_warn_at() on, each time that the drain looks at the pod: the handler remembers whom it has
         * warned of which T. False: not now, ask again in a few seconds. May be NULL. */
        bool (*on_due)(NodeDrain *d, const KubePod *pod, usec_t at_usec, void *userdata);
        /* The PDB that the API server would ask about this pod, borrowed, or NULL (nobody knows, or none). May be NULL: never
         * known. */
        const KubePdb *(*pdb_of)(const KubePod *pod, void *userdata);
        /* The containers of this terminating pod have ended, as somebody on its node has seen himself: not
         * what the API says. Such a pod is not waited for but taken off the API (drain_may_finish()), which
         * its kubelet does seconds later. May be NULL: never known. */
        bool (*has_ended)(const KubePod *pod, void *userdata);
        /* The pods in view that are bound to this node; start with a zeroed iterator. */
        bool (*iterate)(HashmapIterator *it, const KubePod **ret, void *userdata);
        /* It is about to act by the wall clock: may set another deadline, if that was set. May be NULL. */
        void (*before_act)(NodeDrain *d, void *userdata);
        void *userdata;
} NodeDrainHandler;

typedef struct NodeDrainOptions {
        const char *node;
        DrainRules rules; /* wall-clock times; rules.returns outlives the drain */
        HttpGuard guard;
} NodeDrainOptions;

/* evictor and client are borrowed. Deletes need the evictor's permit, too: when it is given after it was
 * not, wake. The first wake is the caller's. */
int node_drain_new(KubeClient *c, Evictor *evictor, const NodeDrainOptions *o, const NodeDrainHandler *h,
                   NodeDrain **ret);
NodeDrain *node_drain_free(NodeDrain *d); /* withdraws what is not yet sent */
DEFINE_FREEP(NodeDrain, node_drain_free);

/* Something in view changed. Work happens in the next loop iteration, once for many calls, and not within 20
 * ms of the last time. */
void node_drain_wake(NodeDrain *d);
/* As wake, but of what calls for no act of ours in a hurry: within half a second of the last time. */
void node_drain_tell_later(NodeDrain *d);
/* A pod in view is another than before. Where that is what its eviction has brought about, it is only to be
 * told: within half a second of the last time. Else as wake. */
void node_drain_pod_changed(NodeDrain *d, const KubePod *pod);
/* A pod was bound to the node, or came into view: the proof under way (if any) does not count. Implies
 * wake. */
void node_drain_pod_seen(NodeDrain *d, const KubePod *pod);
/* A pod left. As wake if it was the last, or others were held until it went; else it is only to be told. */
void node_drain_pod_gone(NodeDrain *d, const KubePod *pod);
/* T from here on, earlier or later (USEC_INFINITY: none): whoever sets it knows which deadlines stand. What
 * was asked for stays asked for. */
void node_drain_set_deadline(NodeDrain *d, usec_t wall_usec);
/* DrainRules.protected_policy from here on. What was asked for stays asked for. */
void node_drain_set_protected(NodeDrain *d, ProtectedPolicy policy);
/* Says of each pod whose delete or eviction is sent but not answered, and that is going or gone in view, that it was deleted
 * or evicted (a watch is often faster than the answer): for who drops the drain next, and would never hear. */
void node_drain_tell_unanswered(NodeDrain *d);
/* A delete is sent that neither its answer nor the watch tells of yet: who drops the drain now would not know whether it was
 * of effect. The drain says when it has come to something. */
bool node_drain_awaits_answers(const NodeDrain *d);
/* DrainRules.stuck_after_usec from here on. */
void node_drain_set_stuck_after(NodeDrain *d, usec_t usec);

/* Has the node been drained, as a list says that was asked for no longer ago, or, where the API server is slow, whose
 * answer came within the last second? The watch has brought no pod since it was asked for. If only an older list says so,
 * the pods are listed again (PROVING): on_changed tells. What a late answer says was true NODE_DRAIN_LIST_USEC earlier at
 * the most. */
bool node_drain_confirm(NodeDrain *d, usec_t max_age_usec);
/* No pod is in view, and since then (loop_now()) no list has proved that none is left; 0: not so. */
usec_t node_drain_unproven_since(const NodeDrain *d);

/* Is what its pods do what it waits for: one that is going, has opted out, or is to be proven gone? Not so
 * while each that is left waits for an answer to its eviction, or for room in its budget, or for those that
 * do. */
bool node_drain_awaits_pods(const NodeDrain *d);

NodeDrainState node_drain_state(const NodeDrain *d);
/* Number of pods that the drain waits for. Before the first step of the drain: counted from the informer. */
size_t node_drain_pods_left(const NodeDrain *d);
/* Those still there now, in the order in which they were seen. None when memory is short. */
const DrainBlocker *node_drain_blockers(NodeDrain *d, size_t *ret_n);
/* The same, and behind them the pods that the drain does not wait for because they came back too often (POD_WAIT_COMES_BACK). */
const DrainBlocker *node_drain_blockers_and_returns(NodeDrain *d, size_t *ret_n);
/* Reports the drain, if it is not drained or expired, and each of its pods. A drain has no timer if a watch
 * or a call wakes each of its pods. Any other pod is checked again within NODE_DRAIN_WAKEUP_USEC. */
#define NODE_DRAIN_WAKEUP_USEC (11 * USEC_PER_MINUTE)
#define NODE_DRAIN_PROOF_WAKEUP_USEC (10 * USEC_PER_SEC)
void node_drain_next_wakeup(const NodeDrain *d, Wakeups *w);
/* Returns true if node_drain_next_wakeup() reports the drain, so that on_changed() will be called. */
bool node_drain_will_report(const NodeDrain *d);
