/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The machine behind one Node: is it still there, and, once asked for, its end. Turns the cloud's answers
 * into something that may be acted on, and retries for ever with backoff. Knows nothing of Nodes.
 *
 *   look        describe; "gone" counts only when a second look, at least a second later, agrees
 *   terminate   terminate, and once that is accepted describe until the machine cannot come back. What the
 *               cloud says in answer to our own terminate counts at once. Each terminate goes on its owner's
 *               word: refused or failed, or accepted a minute ago by a cloud in which the machine still
 *               stands, it is due again after a while, and the owner is asked anew (machine_end_asks())
 */

#include "cloud.h"

typedef enum MachineState {
        MACHINE_UNKNOWN, /* not asked yet, or no answer that may be acted on */
        MACHINE_PRESENT,
        MACHINE_ENDING, /* on its way out, cannot come back */
        MACHINE_GONE,   /* proven */
} MachineState;

typedef struct MachineEnd MachineEnd;
typedef void (*machine_changed_t)(MachineEnd *m, void *userdata); /* may free the machine as last act */

/* Texts are copied. op_id: stable for one termination, over leaders too. */
int machine_end_new(Env *env, CloudProvider *provider, HttpGuard guard, const char *provider_id,
                    const char *op_id, const char *pool, machine_changed_t changed, void *userdata,
                    MachineEnd **ret);
MachineEnd *machine_end_free(MachineEnd *m);
DEFINE_FREEP(MachineEnd, machine_end_free);

/* Looks once (twice, if the first says gone), unless a look is under way or termination has begun. */
void machine_end_look(MachineEnd *m);
/* From now on: end it. Called again it gives the word for another terminate, if one is due. */
void machine_end_terminate(MachineEnd *m);
/* A terminate is due again, and waits for the owner's word: what he knew when he gave the last may not be so
 * any more. He was told (changed()). */
bool machine_end_asks(const MachineEnd *m);
/* Not now: no terminate is sent until it is asked for again. False: too late, one is under way, or was
 * accepted and none is due. */
bool machine_end_hold(MachineEnd *m);

MachineState machine_end_state(const MachineEnd *m);
bool machine_end_has_answered(const MachineEnd *m); /* a look has ended, whatever it said */
/* What keeps it from ending; NULL: nothing. reason: "TerminationProtected", "CloudDenied",
 * "CloudUnavailable", ... */
const char *machine_end_problem(const MachineEnd *m, const char **ret_reason);
