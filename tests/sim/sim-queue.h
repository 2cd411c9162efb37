/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The interruption queue of a simulated world: SQS and Auto Scaling as the coordinators reach them, what was sent there, and
 * what has to be so of it. In the words of sim-check.h:
 *
 *      queue   a message that announces the end of a managed machine is deleted only when its claim says so in the API, no
 *              later than the message does, or that machine is gone; where nothing is in the way its claim is being deleted
 *              within a bound after it was sent (or its node has joined, or its terminationGracePeriod begins)
 *              (of a scheduled change, when that is near); of what the machine comes back from its node is closed within that bound
 *              the time that stands on a claim never becomes a later one before it has passed, and nothing stands there that was not announced
 *              what nobody can read is never deleted; of an instance that is nobody's only what asks for nothing, or what
 *              EC2 has not known for two minutes, and nothing at all in a queue that others read
 *      hook    a group is told to go on with an instance only when its node is drained, or is Ready, and never to abandon it;
 *              it goes on by itself only where something was in the way; its message stays until it has been answered
 *
 * What is announced for a machine whose Node is of no pool calls for nothing here: invariants `evicted` and `ended`. With [Queue]
 * Unmanaged=drain it calls for a cordon and a drain: a message is deleted only when its Node says so in the API; where nothing is in
 * the way the Node is closed within a bound, and Drained, or Ending, when its time is over; and nobody makes a claim of it. That its
 * machine is never ended is still invariant `ended`.
 */

#include "fake-autoscaling.h"
#include "fake-aws-event.h"
#include "fake-sqs.h"
#include "http-transport.h"
#include "sim-brake.h"
#include "sim-world.h"

#define SIM_QUEUE_URL "https://sqs.us-east-1.amazonaws.com/123456789012/q"
#define SIM_QUEUE "q"
#define SIM_GROUPS "https://autoscaling.us-east-1.amazonaws.com"
#define SIM_CONFIRMS "https://ec2.us-east-1.amazonaws.com" /* EC2, as coordinators ask it about what the queue announces */
#define SIM_GROUP "g"

typedef struct SimQueue SimQueue;

SimQueue *sim_queue_new(SimWorld *w);
SimQueue *sim_queue_free(SimQueue *q); /* after all transports */
void sim_queue_route(SimQueue *q, HttpTransport *transport);
FakeSqs *sim_queue_sqs(SimQueue *q);
FakeAutoscaling *sim_queue_groups(SimQueue *q);
SimBrake *sim_queue_brake(SimQueue *q);

/* Sends an event in the form of EventBridge, or of SNS; wall_usec is now's. EC2 shows what is announced. */
void sim_queue_send(SimQueue *q, const FakeAwsEvent *event, bool by_sns);
/* The same by somebody who is not AWS: EC2 and Auto Scaling show nothing of it. */
void sim_queue_forge(SimQueue *q, const FakeAwsEvent *event);
/* The forger announces another time for up to n of his scheduled changes. */
void sim_queue_forge_times(SimQueue *q, size_t n, usec_t in_usec);
void sim_queue_expect_forger(SimQueue *q); /* before anything is sent */
/* Sends a message that nobody can read. */
void sim_queue_send_text(SimQueue *q, const char *text);
/* The last one comes a second time. */
void sim_queue_repeat(SimQueue *q);
/* The last scheduled change that was not called off is. */
void sim_queue_call_off(SimQueue *q);
/* The group lets go of this machine, and waits for its hook: which sends `kind`, FAKE_AWS_EVENT_TERMINATE_ACTION or
 * FAKE_AWS_EVENT_HOOK. False: it is no member, or is on its way already. */
bool sim_queue_scale_in(SimQueue *q, size_t machine, FakeAwsEventKind kind, bool by_sns);

/* Something was sent for which its claim may be deleted, and is near. */
bool sim_queue_calls_for_end(const SimQueue *q, size_t machine);
/* Something was sent for which its Node may be drained, be it a pool's or, with [Queue] Unmanaged=drain, of none. */
bool sim_queue_calls_for_drain(const SimQueue *q, size_t machine);
/* Fewer things stand announced for this instance than a list holds at the least. */
bool sim_queue_has_room(const SimQueue *q, const char *instance);
/* Returns true if an announced change that was not called off begins within this time from now. */
bool sim_queue_is_awaited(const SimQueue *q, usec_t within_usec);
/* Returns true if the machine has a notice that is not outlived, and its Node is not drained. */
bool sim_queue_waits(const SimQueue *q, size_t machine);
/* [Queue] Unmanaged=drain: machines of no pool are members of the group, too. Before anything is sent. */
void sim_queue_drain_unmanaged(SimQueue *q);
/* Machines that have ended because their hook was answered. */
unsigned sim_queue_n_answered(const SimQueue *q);
/* When all is over: what is left in the queue is what has to stay, and conditions of nodes of no pool say what is so. */
void sim_queue_check_left(SimQueue *q);

/* By sim-check: of a NodeClaim; each second; a message is deleted (also by tests, of one that is not). */
void sim_queue_claim_changed(SimQueue *q, const cJSON *old, const cJSON *new);
void sim_queue_look(SimQueue *q);
void sim_queue_note_deleted(SimQueue *q, size_t message);
