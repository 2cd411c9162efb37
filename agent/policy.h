/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * policy.c: what to do about which notice. Pure: a notice and the configuration in, a plan out.
 *
 *      advisory, rebalance            an Event: the machine may live on for hours (vesper(7), INTERRUPTION)
 *      everything certain             drained, against the deadline
 *      a shutdown                     drained at once: somebody waits for the machine
 *      ... leaving 5 minutes or more  first [Drain] LoadBalancerWaitSec= for load balancers to let go
 */

#include "notice.h"

/* Kept of the time for the deletes at the end and for the last report. */
#define POLICY_MARGIN_USEC (2 * USEC_PER_SEC)

typedef struct PolicySettings {
        usec_t lb_wait_usec;
} PolicySettings;

typedef struct Plan {
        bool drain;          /* false: an Event and nothing else */
        usec_t lb_wait_usec; /* between cordon and first eviction */
        const char *why;     /* static, for people */
} Plan;

/* now_usec: boot-time clock. */
Plan policy_decide(const Notice *n, const PolicySettings *settings, usec_t now_usec);

/* When the drain has to be over (boot-time clock): what was announced, or the coordinator's T (wall clock; 0: none)
 * if that is earlier than what was announced, less what the last calls need. booted_usec: what the wall clock, as it
 * is, said at the zero of the boot-time clock. USEC_INFINITY: never. */
usec_t policy_drain_deadline(const Notice *n, usec_t claim_deadline_usec, usec_t booted_usec);
