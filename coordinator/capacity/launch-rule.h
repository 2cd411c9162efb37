/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The next step of a NodeClaim whose machine is asked for and has no providerID yet. Pure.
 *
 *   record   the request is written into the claim (status.group), in its place at the provider, and is sent when that is
 *            written: a new leader finds every request that may have left
 *   find     the cloud is asked for the machine of that request
 *   take     the cloud has named the machine: the claim gets its providerID
 *
 * A request whose answer did not come, or was "unknown", may have launched a machine. So may one that was accepted without a
 * name. Then `find` comes before everything else. A refusal proves nothing about an earlier request with the same token: a
 * claim goes without a machine only when find sees none, and, after a request that may have launched one, not before
 * LAUNCH_SETTLED_USEC. (reference: R1, R8, R10, R12 of the providers' contract suite.)
 */

#include "cloud.h"

/* So long the cloud is asked for a machine. */
#define LAUNCH_ASKED_USEC (15 * USEC_PER_MINUTE)
/* A machine that is not asked for any more may still appear for so long after the last request that may have launched one. */
#define LAUNCH_SETTLED_USEC (10 * USEC_PER_MINUTE)
/* An accepted request without a name is found within that, or sent again: it is the identical one. */
#define LAUNCH_NAMED_USEC (5 * USEC_PER_MINUTE)

typedef struct LaunchFacts {
        bool deleting;      /* the claim is being deleted */
        bool is_wanted;     /* its NodePool is there, is not being deleted, and its provider can launch */
        bool lacks_provider; /* no provider is there that can be asked about the requests */
        bool may_begin;     /* the machine of an earlier attempt is gone, and the pool's limits have room */
        bool is_asked;      /* a request is in the claim */
        bool is_stale;      /* what the machine replaces is gone, and the claim is older than LAUNCH_ASKED_USEC */
        bool maybe;         /* ... and it, or an earlier one, may have launched a machine */
        bool can_find;      /* the provider has find */
        bool is_final;      /* the last answer says that the request can never work */
        bool has_id;        /* the cloud has named the machine */
        bool is_accepted;   /* the last answer */
        usec_t since_usec, time_usec; /* wall clock: of the first request, of the last */
        usec_t looked_usec; /* wall clock: the last find since the last request that saw no machine was sent then; 0: there is none */
        usec_t now_usec;
        usec_t again_usec;  /* by the back-off, not before; 0: at once */
} LaunchFacts;

typedef enum LaunchAct {
        LAUNCH_WAIT,    /* until *ret_usec (wall clock; USEC_INFINITY: until something changes) */
        LAUNCH_REQUEST, /* record, and send */
        LAUNCH_FIND,
        LAUNCH_TAKE,
        LAUNCH_GIVE_UP, /* delete the claim */
        LAUNCH_RELEASE, /* its finalizer goes: there is no machine */
        _LAUNCH_ACT_MAX,
} LaunchAct;

LaunchAct launch_act(const LaunchFacts *f, usec_t *ret_usec);
