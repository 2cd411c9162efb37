/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Random worlds in which a NodePool has ill nodes rebooted, and replaced if that does not help: the machines of sim-reboots.h as
 * nodes of a pool, two coordinators, one or two slots. Nodes fall ill, and are well again after their reboot, or by themselves, or
 * never. Agents and coordinators are killed, requests get lost, watches stall; people cordon nodes and ask for reboots of their
 * own. Then the faults stop: each node that is ill must be rebooted or replaced within a bound, and no annotation be left.
 */

#include "sim-plan.h"

/* As sim_plan_play(). */
void sim_repairs_play(uint64_t seed, bool report, bool trace, SimOutcome *ret);
