/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One question to the provider about the machine of a Node that may be in service: does it run? Each question is a new MachineEnd, so
 * that no earlier answer is used again. It is never told to end the machine.
 */

#include "machine-end.h"
#include "termination-context.h"

typedef enum MachineLook {
        MACHINE_LOOK_RUNS, /* it runs, is being terminated, or is not proved to be this Node's machine */
        MACHINE_LOOK_OFF,
        MACHINE_LOOK_GONE,
        MACHINE_LOOK_UNKNOWN, /* the provider gives no answer: machine_end_problem() says why */
} MachineLook;

/* 1: changed() is called once machine_end_has_answered(*ret); 0: nothing names a machine, *ret is NULL; or -ENOMEM. */
int machine_look_ask(const TerminationContext *c, const KubeNode *n, machine_changed_t changed, void *userdata, MachineEnd **ret);
/* Reads the answer; machine_end_has_answered(m) must be true. */
MachineLook machine_look_read(const MachineEnd *m);
