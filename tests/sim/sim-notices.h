/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worlds in which notices of all kinds are given, drawn from a seed: scheduled events of EC2 (which move, and are cancelled in
 * so many words or by being there no more), rebalance recommendations, target lifecycle states, ends of Capacity Blocks, spot
 * notices, and a file. Several of them at once, with other times and other acts. [Policy] is drawn for each world. Metadata
 * services hang, fail, answer what is no answer, or with no instance's id, or another's; files hold what is no list; agents die and
 * machines start anew. In each second world there are coordinators and a NodePool that leaves interrupted nodes alone.
 *
 * In the words of sim-check.h, invariant `notice` here:
 *
 *      what is announced and is to be acted upon by the rule of its kind has its node marked and cordoned within a bound after
 *      its time has come (a poll of its feed, and half a minute), where nothing is in the way; the gravest of what is due is
 *      what stands on the Node; what is not due any more has its marks taken off within two minutes
 *      nothing is evicted but for a notice whose rule says to drain, and whose time has come; nothing is cordoned but for one
 *      whose rule says at least that
 *      when its time has passed the node is drained, or has no pods (`late`)
 *
 * A spot notice that is shown no more is kept until it is outlived, which it is ten minutes after its own time; where it is only
 * cordoned for, not longer than its rule says. What a node was cordoned for long enough it is not cordoned for again in that boot.
 *
 * At the end, when nothing is in the way, one of each kind is given to one machine, so that each rule of each world is played.
 */

#include "sim-plan.h"

typedef struct SimNotices SimNotices;

/* As sim_plan_play(). */
void sim_notices_play(uint64_t seed, bool report, bool trace, SimOutcome *ret);

/* Is, or was until just now, anything announced to this machine for which it may be cordoned; for which its pods may be ended? */
bool sim_notices_may_cordon(const SimNotices *s, size_t machine);
bool sim_notices_may_drain(const SimNotices *s, size_t machine);
