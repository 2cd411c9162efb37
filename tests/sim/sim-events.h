/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Worlds in which clouds announce reboots, drawn from a seed: agents take them early, coordinators have the cloud reboot their
 * machines, and say which event of several machines may be acknowledged. In every second one the cloud is Azure: machines of one
 * set, whose events name one or two of them; in the others EC2, where half of the reboots do not end their event. Agents and
 * coordinators are killed, requests get lost, watches stall, events are called off. Then that ends, and nothing may be left of it.
 *
 *   early         the cloud is told to reboot a machine only while its node is drained for that event (or was half a minute before,
 *                 so long may a request be under way), and no machine is rebooted twice for one event
 *   acknowledged  an event is acknowledged only while all nodes that it names are drained for it (or were, as above)
 *   slots         of sim-check.h: a machine that the cloud is told to reboot holds a slot
 *
 * That some reboots are taken early, and some events acknowledged, is checked as well: a world in which nothing happens shows nothing.
 */

#include "sim-plan.h"

/* As sim_plan_play(). */
void sim_events_play(uint64_t seed, bool report, bool trace, SimOutcome *ret);

/* Announces an event in this machine's metadata and in EC2's API. id: of this occurrence. at_usec: wall
 * clock. */
void sim_events_schedule(SimWorld *w, size_t machine, const char *id, const char *code, usec_t at_usec);
/* Makes the first n machines instances of one scale set of Azure, with one document of events (SimWorld.azure). Before the agents
 * start, or before they are started again: agents read the source of notices at their start. acknowledge: an Acknowledge. */
void sim_events_move_to_azure(SimWorld *w, size_t n, int acknowledge);
/* Lets the agent of the machine take announced reboots early, and else drain an hour before them. */
void sim_events_take_early(SimWorld *w, size_t machine);
/* Name of the machine in Azure. Free it. */
char *sim_events_vm(size_t machine);
/* Withdraws all events from the metadata. */
void sim_events_complete(SimWorld *w, size_t machine);
