/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The machine behind one Node: is it still there, and, once asked for, its end. Turns the cloud's answers
 * into something that may be acted on, and retries for ever with backoff. Knows nothing of Nodes.
 *
 *   look        describe; "gone" counts only when a second look, at least a second later, agrees
 *   terminate   wait for a turn at the provider, then for the owner's word, then terminate at once; once
 *               accepted, describe until the machine cannot come back. An answer without error is an
 *               acceptance, whatever state it tells; a state that it tells counts at once
 *
 *   IDLE --look--> LOOKING --answer--> IDLE, or LOOK_DUE --a second--> LOOKING
 *     |
 *     v terminate
 *   WAITING --its turn has come--> ASKING --the word--> SENT --accepted--> ACCEPTED <--answer-- WATCHING
 *     ^  ^                           |                   |  |                |   |                ^  |
 *     |  +--10 s and no word: -------+                   |  |                |   +--after a while-+  |
 *     |     the turn is given back                       |  |                |                       |
 *     +--after a while-- RETRYING <--refused, failed-----+  +---ends-> OVER <------ends--------------+
 *     +--a minute after it was accepted, and it still stands-----------------+
 *
 *   hold() leads from WAITING, ASKING and RETRYING back to IDLE; no turn leads from WAITING to RETRYING.
 *
 * A turn may take long (a cloud's rate, no credentials), so the word is asked for when it has come: what the
 * owner saw before may not be so any more. Nor does a word last (machine_end_confirm()). Turns come in the
 * order in which they were asked for: whoever cannot give his word keeps nobody else from his end, and is
 * asked again for as long as it takes.
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
/* From now on: end it, on the owner's word. Called again it changes nothing. */
void machine_end_terminate(MachineEnd *m);
/* It is its turn, and it waits for the owner's word: what he knew before may not be so any more. He was told
 * (changed()). */
bool machine_end_asks(const MachineEnd *m);
/* The word, where it asks (else nothing happens): the terminate is sent now. On its way it may still have to
 * wait for a connection or for new keys: nothing leaves after until_usec (loop_now()), but the word is asked
 * for again. USEC_INFINITY: whatever happens meanwhile. */
void machine_end_confirm(MachineEnd *m, usec_t until_usec);
/* Such a time for what is so now, and may not be so for long. */
#define MACHINE_END_WORD_USEC (5 * USEC_PER_SEC)
/* Not now: no terminate is sent until it is asked for again, and a turn is given back. False: too late, one
 * is under way, or was accepted and none is due. */
bool machine_end_hold(MachineEnd *m);

MachineState machine_end_state(const MachineEnd *m);
bool machine_end_has_answered(const MachineEnd *m); /* a look has ended, whatever it said */
/* What keeps it from ending; NULL: nothing. reason: "TerminationProtected", "CloudDenied",
 * "CloudUnavailable", ... */
const char *machine_end_problem(const MachineEnd *m, const char **ret_reason);
