/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The brake of the interruption queue in a simulated world (sim-queue.h). AWS shows in EC2 what it announces in the queue; a forger can
 * send messages, and changes nothing in EC2 or Auto Scaling. In the words of sim-check.h:
 *
 *      brake   a coordinator acts for at most max(10, 10 % of the machines) machines that only the queue has announced within ten
 *              minutes. To act means: it deletes the claim, asks the cloud to end the machine, answers a lifecycle hook with CONTINUE, or
 *              deletes a pod instead of evicting it. No machine counts of which the cloud has shown the end, or the agent, or which a
 *              person has let go, nor one whose Node or claim somebody else has deleted. A leader does not know of machines
 *              whose Node and claim had gone before it wrote for the first time, so these count only for the leaders before it
 *              a coordinator acts for no machine of which everything that the queue announced is held
 *              no held notice becomes one that stands before the cloud, the agent or a person has confirmed something of its machine
 *              no notice is held while the queue has announced something for no more machines than that
 *              the node of a held notice that is due is cordoned within a bound
 *              a held notice that the cloud shows, or that a person lets go, is acted upon within a bound: sim-queue.c asks
 *              sim_brake_due_usec()
 *
 * A held notice gives no deadline: invariants `grace`, `budget` and `protected` know of no time of it in worlds with a forger.
 */

#include "fake-aws-event.h"
#include "sim-world.h"

typedef struct SimBrake SimBrake;

SimBrake *sim_brake_new(SimWorld *w);
SimBrake *sim_brake_free(SimBrake *b);

/* AWS itself has sent this: EC2 shows it within sim_brake's bound. n: number of the message. */
void sim_brake_show(SimBrake *b, size_t n, const FakeAwsEvent *event);
/* The scheduled change of this id is called off, or is over. */
void sim_brake_call_off(SimBrake *b, const char *instance, const char *change);
/* The queue announces something for this machine, true or not. */
void sim_brake_note_sent(SimBrake *b, size_t machine);
void sim_brake_let_go(SimBrake *b, size_t machine); /* a person sets vesper.sh/let-go */
bool sim_brake_has_held(SimBrake *b, size_t machine); /* a held notice stands on its claim, or on its Node without claim */

/* Returns when this notice is due: due_usec, unless it is held. n: number of its message. notice: as it stands on the claim or Node; NULL: it does
 * not. USEC_INFINITY: not yet. */
usec_t sim_brake_due_usec(const SimBrake *b, size_t n, size_t machine, const cJSON *notice, usec_t due_usec);

/* By sim-check: each second; a Node or NodeClaim changes (old NULL: it is new; new NULL: it has gone). */
void sim_brake_look(SimBrake *b);
void sim_brake_changed(SimBrake *b, size_t machine, bool is_claim, const cJSON *old, const cJSON *new);
/* This process acts for a machine that was there until now. what: as a message has it. */
void sim_brake_acted(SimBrake *b, size_t machine, const SimProcess *who, const char *what);
