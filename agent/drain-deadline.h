/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When this node has to be empty: by what its notice announces, by the coordinator's T if that is earlier (policy.h), or by when a
 * machine that goes down will be off. It is kept on the boot-time clock, which nobody sets. The times of pods are of the wall
 * clock, and people read that: so it is told by the wall clock, and told anew when that was set. Pure.
 */

#include "notice.h"

typedef struct DrainDeadline {
        usec_t claim_usec;       /* the coordinator's T, by the API server's clock; 0: none */
        usec_t machine_end_usec; /* of a shutdown under way, boot-time clock; USEC_INFINITY: none, or not said */
        usec_t told_usec;        /* as it was told last, wall clock */
        usec_t booted_usec;      /* when the machine booted, by the wall clock as it was last known to be */
} DrainDeadline;

typedef enum DrainDeadlineNews {
        DRAIN_DEADLINE_SAME,
        DRAIN_DEADLINE_CHANGED,
        DRAIN_DEADLINE_NEARER, /* than what was announced: people hear of it */
} DrainDeadlineNews;

/* booted_usec, here and below: when the machine booted, by its wall clock as that is now; server_booted_usec: the same by the API
 * server's clock. */
DrainDeadline drain_deadline_new(usec_t booted_usec);
/* Boot-time clock; USEC_INFINITY: not said. */
usec_t drain_deadline_at(const DrainDeadline *d, const Notice *n, usec_t server_booted_usec);
/* wall_usec: drain_deadline_at(), by the wall clock. Returns that, or what was told last where the two differ by no more than two
 * clocks do that are never read in one instant. */
usec_t drain_deadline_tell(DrainDeadline *d, usec_t wall_usec);
/* claim_usec: what stands on the Node now. It may go again, or give way to a later one: what set it is over. */
DrainDeadlineNews drain_deadline_see_claim(DrainDeadline *d, const Notice *n, usec_t claim_usec, usec_t server_booted_usec);
/* True: the wall clock was set since it was asked last, by more than some set it by again and again. */
bool drain_deadline_clock_was_set(DrainDeadline *d, usec_t booted_usec);
