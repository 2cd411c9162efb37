/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worlds with an interruption queue (sim-queue.h), drawn from a seed: two coordinators that hear it, and machines whose agent
 * lives, gets no CPU now and then, is dead, or never was; one of no pool; two whose Node comes up to three minutes after their first
 * message; one that nothing announces the end of. [Interruption] Delete=, [Queue] Shared= and
 * Unmanaged=, and a terminationGracePeriod are drawn. Spot interruptions (with and without the metadata's word, which may take it back), rebalances, changes of state,
 * scheduled changes of several instances, hooks of a group by EventBridge, SNS or by themselves, foreign instances and what
 * nobody can read; messages twice, in another order, again; SQS and Auto Scaling fail, throttle, hang, lose their answer;
 * leaders die right after they have received, or sleep while the other leads; watches stall.
 *
 * A sixth of the worlds have eight machines more, and a forger who announces the end of nearly all of them at once, later another time of his
 * scheduled changes. There, people let notices go, delete claims of held machines, and open what stays drained.
 *
 * All of it is drawn before the life begins: an entry draws nothing when it is played.
 */

#include "sim-plan.h"

/* Plays the plan, like sim_plan_play(). */
void sim_queues_play(uint64_t seed, bool report, bool trace, SimOutcome *ret);
