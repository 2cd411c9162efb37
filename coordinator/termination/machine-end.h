/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The machine behind one Node: is it still there, and, once asked for, its end. Turns the cloud's answers
 * into something that may be acted on, and retries for ever with backoff. Knows nothing of Nodes.
 *
 * Whose it is. Where the provider proves identities, a machine is told to end only after a describe of its own
 * has shown that the instance is the Node's: by name, or, where the pool says so, by providerID alone
 * (machine_end_trust()). What its claim keeps of an earlier proof (MachineEndOptions.identity) says that answers
 * about this id are about the right instance: what EC2 calls terminated has no name any more.
 *
 * Gone. What the cloud calls ended is gone, if its identity was proved once. Of an id that was never proved, and
 * of one that the cloud merely does not find, a second describe at least 10 s after the first has to agree, and even
 * then it is only MISSING: it does not count where the Node is Ready. An instance that is not found in its first
 * 10 minutes may only not be visible yet: that says nothing.
 *
 *   describe    one question to the cloud; where a second one is needed, it follows
 *   terminate   prove whose machine it is, reserve a place at the provider (and prove it again in there, if that took longer than
 *               10 s), have the owner prove that the machine may go as things are now, send; once accepted, describe until the
 *               machine cannot come back. An answer without error is an acceptance, whatever state it tells; a state that it
 *               tells counts at once
 *
 *   IDLE, DESCRIBED --describe--> DESCRIBING --answer--> DESCRIBED, or DESCRIBE_DUE --10 s--> DESCRIBING
 *     |
 *     v terminate
 *   PROVING --ends already--> OVER
 *     |
 *     v it is there, and the Node's
 *   RESERVED --the owner confirms, it is accepted--> ACCEPTED <--answer, after a while--> WATCHING --ends--> OVER
 *     |
 *     +--refused, failed--> RETRYING
 *
 *   From RETRYING after a while, from ACCEPTED a minute after it was accepted and while it still stands, it begins again with
 *   PROVING. Not proved: to RETRYING. hold() leads from PROVING, RETRYING, and from RESERVED until the request is sent, back to
 *   IDLE. Providers that prove nothing have no PROVING.
 *
 * A place may take long (a cloud's rate, no credentials), so the owner is asked when it has come: what he saw before may not be so
 * any more. Nor does what he confirms last: a slow owner loses the place and has the next (CloudReservation of cloud.h).
 */

#include "cloud.h"
#include "kube-kinds.h"
#include "wakeup.h"

typedef enum MachineState {
        MACHINE_UNKNOWN, /* not asked yet, or no answer that may be acted on */
        MACHINE_PRESENT, /* running or not: machine_end_is_off() */
        MACHINE_ENDING,  /* on its way out, cannot come back */
        MACHINE_GONE,    /* proven */
        MACHINE_MISSING, /* two describes did not find it: gone, unless its Node is Ready */
} MachineState;

typedef struct MachineEnd MachineEnd;
typedef void (*machine_changed_t)(MachineEnd *m, void *userdata); /* may free the machine as last act */

typedef struct MachineEndOptions {
        CloudProvider *provider; /* borrowed */
        HttpGuard guard;
        const CloudMachine *machine;
        const char *op_id;             /* stable for one termination, over leaders too */
        const char *pool;              /* NULL: not known */
        const ClaimIdentity *identity; /* what its claim keeps; NULL: nothing */
        usec_t born_usec;              /* wall clock: it is at least as old as that; 0: not known, and old */
        machine_changed_t changed;
        void *userdata;
} MachineEndOptions;

/* Copies what it needs. */
int machine_end_new(Env *env, const MachineEndOptions *o, MachineEnd **ret);
MachineEnd *machine_end_free(MachineEnd *m);
DEFINE_FREEP(MachineEnd, machine_end_free);

/* Its pool takes spec.providerID for proof enough, or not (any more): at first it does not. Not any more: what has not
 * been sent yet is proved anew. */
void machine_end_trust(MachineEnd *m, bool trusted);
/* The id was proved to be the Node's, now or earlier, or is trusted. */
bool machine_end_is_proved(const MachineEnd *m);
/* ... by a describe of this very MachineEnd, or is trusted: what its claim keeps of earlier is not enough. */
bool machine_end_is_proved_anew(const MachineEnd *m);
/* Describes once (twice, where that is needed), unless a describe is under way or termination has begun. */
void machine_end_describe(MachineEnd *m);
/* Starts the termination. The request leaves when the owner confirms. A second call changes nothing. */
void machine_end_terminate(MachineEnd *m);
/* It has its place, and waits for the owner to confirm: what he knew before may not be so any more. He was told
 * (changed()). */
bool machine_end_asks(const MachineEnd *m);
/* Where it asks (else nothing happens): the terminate is sent as cloud_call_send() says. */
void machine_end_confirm(MachineEnd *m, usec_t until_usec);
/* How long a confirmation of what is so now holds. */
#define MACHINE_END_CONFIRMED_USEC (5 * USEC_PER_SEC)
/* Not now: no terminate is sent until it is asked for again, and its place is given back. False: too late, one was sent, or
 * was accepted and none is due; what was sent and has not left this host yet does not leave. */
bool machine_end_hold(MachineEnd *m);

MachineState machine_end_state(const MachineEnd *m);
/* PRESENT, of an instance that was proved to be the Node's, and the last answer says that it is shut off. */
bool machine_end_is_off(const MachineEnd *m);
bool machine_end_has_answered(const MachineEnd *m); /* the last describe has ended, whatever it said; false once it is to end */
/* What keeps it from ending; NULL: nothing. reason: "TerminationProtected", "CloudDenied",
 * "CloudUnavailable", "IdentityUnproved", ... */
const char *machine_end_problem(const MachineEnd *m, const char **ret_reason);
/* Reports the machine while a describe is under way, or a requested termination is not complete. While it asks, the owner
 * reports that he proves. The backoff timer is due within
 * MACHINE_END_WAKEUP_USEC. */
#define MACHINE_END_WAKEUP_USEC (15 * USEC_PER_MINUTE)
void machine_end_next_wakeup(const MachineEnd *m, Wakeups *w);
/* Returns true if machine_end_next_wakeup() reports the machine, so that its owner hears of the result. */
bool machine_end_will_report(const MachineEnd *m);
