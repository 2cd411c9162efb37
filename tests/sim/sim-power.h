/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * logind and PID 1 of a simulated machine (fake-power.h), with the agent as the unit that they stop. When
 * the machine is off, what ran there is gone, and it boots again after a while.
 *
 * Violations that it finds:
 *
 *   power       a shutdown is delayed by the agent for longer than what it may be, or by force only
 *   inhibitor   an agent that runs does not hold logind's inhibitor while it has reason to
 */

#include "fake-power.h"
#include "sim-process.h"

typedef struct SimPower SimPower;

typedef struct SimPowerOptions {
        FakePowerLimits limits; /* all 0: as our drop-in has it */
        usec_t max_usec;        /* [Shutdown] MaxSec= of the agent; 0: 10 min */
        usec_t away_usec;       /* from off to booted */
        bool cgroupfs;          /* its kubelet's cgroup driver: PID 1 knows nothing of pods */
        bool running_pods;      /* its agent may read the kubelet's /runningpods/ */
} SimPowerOptions;

/* Gives the machine one; its agent begins anew. */
SimPower *sim_power_attach(SimWorld *w, size_t machine, const SimPowerOptions *o);

/* A person, or a program, ends the machine, or changes his mind. False: it is at it already, or too late. */
bool sim_power_shutdown(SimWorld *w, size_t machine, const char *kind, bool announced);
bool sim_power_cancel(SimWorld *w, size_t machine);
/* systemctl restart vesper-agent */
void sim_power_restart_unit(SimWorld *w, size_t machine);
void sim_power_set_bus(SimWorld *w, size_t machine, bool there);
/* Whether somebody else is the cause of delay from here on: the API server or the bus does not answer. */
void sim_power_look(SimWorld *w);
/* As sim_world_run(), with such a look after each step. */
bool sim_power_run(SimWorld *w, usec_t usec);
FakePower *sim_power_machine(SimWorld *w, size_t machine);
/* Times that it was off, by a shutdown. */
unsigned sim_power_n_off(SimWorld *w, size_t machine);

/* By sim-process and sim-world. */
void sim_power_equip(SimPower *p, SimLife *l);
void sim_power_unequip(SimPower *p, SimLife *l);
void sim_power_notify(SimPower *p, const char *text);
void sim_power_booted(SimPower *p);
SimPower *sim_power_free(SimPower *p);
