/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The brake of the interruption queue: bounds how many machines the queue can end by itself. Pure.
 *
 * Whoever may send to the queue could end the whole cluster. The brake therefore counts the machines of which the queue alone announced
 * something that the coordinator acts upon, within QUEUE_BRAKE_WINDOW_USEC: by the time at which the coordinator received the notice, and by
 * the announced time, so that notices collected over days do not fall due together. Up to queue_brake_limit() are acted upon as announced.
 * Each notice beyond that is written as ANNOUNCED_HELD: the coordinator cordons the node and evicts its pods under their
 * PodDisruptionBudgets. A held notice gives no deadline, deletes no NodeClaim and answers no lifecycle hook with CONTINUE.
 *
 * A held notice is let go, one by one, by the first of these:
 *
 *      the node's agent reports an interruption that is at least as severe (heard-rule.c)
 *      AWS, that is EC2 or Auto Scaling, confirms the notice (queue-confirm.c)
 *      a person confirms it: ANNOTATION_LET_GO, vesperctl let-go (heard-rule.c)
 *
 * A notice other than a scheduled change whose time is later than the window is always held: AWS sends none.
 *
 * A notice that the agent has reported already is neither counted nor held; after a change of the leader it is counted. If a message moves a notice
 * to another time, the brake counts and decides again.
 *
 * A new leader reads from NodeClaims and Nodes what was announced. It does not know of machines that have ended since
 * then, so a change of the leader may let one more QUEUE_BRAKE_MIN machines or tenth of the machines pass.
 *
 * Specified in vesper(7), WHO MAY DO WHAT.
 */

#include "cluster-view.h"

#define QUEUE_BRAKE_WINDOW_USEC (10 * USEC_PER_MINUTE)
#define QUEUE_BRAKE_MIN 10u
#define QUEUE_BRAKE_PERCENT 10u

typedef struct QueueBrake QueueBrake;

int queue_brake_new(QueueBrake **ret);
QueueBrake *queue_brake_free(QueueBrake *b);
DEFINE_FREEP(QueueBrake, queue_brake_free);

/* Returns how many machines the queue alone may end within the window: max(QUEUE_BRAKE_MIN, QUEUE_BRAKE_PERCENT of n_machines). */
size_t queue_brake_limit(size_t n_machines);

/* All times are of the wall clock of the API server. before_usec: [Interruption] BeforeSec=.
 *
 * Counts the notice for the machine of this NodeClaim, or of this Node without one: at notice->received_usec, but not after now_usec, at the announced
 * time, and at the time before that at which the coordinator acts upon a scheduled change. 1; 0: there is no room, hold the notice; -ENOMEM. */
int queue_brake_count(QueueBrake *b, const char *uid, const Notice *notice, usec_t before_usec, usec_t now_usec);
/* Counts the open notices of all NodeClaims and Nodes. 0 or -ENOMEM. */
int queue_brake_count_view(QueueBrake *b, const ClusterView *view, usec_t before_usec, usec_t now_usec);
/* Returns the number of machines that were counted within the window of now_usec, or of a later time of the notice, whichever are more. */
size_t queue_brake_n_counted(QueueBrake *b, const Notice *notice, usec_t before_usec, usec_t now_usec);

/* Returns the state in which a notice is written on a NodeClaim or Node. same: the notice of that id that stands there; NULL: none. agents: what
 * the agent reports; NULL: nothing. n_counted: with this machine. limit: queue_brake_limit(). */
AnnouncedState queue_brake_decide(const Notice *notice, const Announced *same, const Interruption *agents, size_t n_counted, size_t limit);
