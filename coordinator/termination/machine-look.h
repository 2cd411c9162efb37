/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One question to the provider about the machine of a Node that may be in service: does it run? Nothing of an earlier answer
 * stands in for this one, so each question is a MachineEnd of its own, which is never told to end.
 */

#include "machine-end.h"
#include "termination-context.h"

typedef enum MachineLook {
        MACHINE_LOOK_RUNS, /* or it may: on its way out, or nothing proves that the instance is this Node's */
        MACHINE_LOOK_OFF,
        MACHINE_LOOK_GONE,
        MACHINE_LOOK_UNKNOWN, /* the provider gives no answer: machine_end_problem() says why */
} MachineLook;

/* 1: changed() is called once machine_end_has_answered(*ret); 0: nothing names a machine, *ret is NULL; or -ENOMEM. */
int machine_look_ask(const TerminationContext *c, const KubeNode *n, machine_changed_t changed, void *userdata, MachineEnd **ret);
/* Of one that has answered. */
MachineLook machine_look_read(const MachineEnd *m);
