/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The command of provider "exec" (cloud-exec.h), as a simulated coordinator runs it: it knows the world's
 * machines by the names of their Nodes, and ends them where the fake EC2 keeps them. It takes its time, and
 * fails, in the windows of SIM_FAULT_CLOUD and SIM_FAULT_PARTITION_CLOUD and with the troubles of the fake
 * EC2, in ways of its own: killed when its time is up, with or without having done its work; exit 75;
 * failure; no answer of the protocol; errors; {} for what it has not done; "unknown". What it says of a
 * machine is true, though: "gone" is final. In worlds with machines to launch (sim-stock.h) it has the operations launch and
 * find, too.
 *
 * A child outlives a coordinator that is killed: what it was about to do may still happen.
 */

#include "sim-process.h"

#define SIM_EXEC "http://exec.sim"
#define SIM_EXEC_PEER "exec.sim"
#define SIM_EXEC_COMMAND "/usr/local/bin/my-machines"

/* Of the coordinator of this life. */
ChildRunner *sim_exec_new(SimLife *life);
/* Children that nobody waits for any more, when the world ends. */
void sim_exec_forget(SimWorld *w);
