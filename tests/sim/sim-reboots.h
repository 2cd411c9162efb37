/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Random worlds in which machines ask to be rebooted (those of sim-plan.h have no logind: there machines
 * just reboot): four of them, two coordinators, one or two slots. People ask, take it back, reboot without
 * asking; agents and coordinators are killed, requests get lost, watches stall, in half of them clocks of
 * machines are wrong. Then the faults stop, and each request must come to its end, and nothing of it be
 * left.
 */

#include "sim-plan.h"

/* Such a world, which also the scenarios of sim-reboot.c begin with: [Shutdown] RebootPatienceSec= (of the
 * last machine the half of it) and [Budget] RebootSlotSec=. */
#define SIM_REBOOTS_PATIENCE_USEC (10 * USEC_PER_MINUTE)
#define SIM_REBOOTS_SLOT_USEC (4 * USEC_PER_MINUTE)
extern const SimOptions sim_reboots_options;

/* Of a world just made: each machine gets its logind, and the leader settles. False: it does not. */
bool sim_reboots_settle(SimWorld *w);
/* By the agent's object on D-Bus: "RequestReboot", "CancelReboot". False: nobody takes it. */
bool sim_reboots_ask(SimWorld *w, size_t machine, const char *method);
/* Nobody asks, and no grant is left. */
bool sim_reboots_none(SimWorld *w);

/* For a while requests of one process get lost, fail or are late, or watches stall. */
void sim_reboots_trouble(SimWorld *w);

/* As sim_plan_play(). */
void sim_reboots_play(uint64_t seed, bool report, bool trace, SimOutcome *ret);
