/* SPDX-License-Identifier: Apache-2.0 */
#include "drain-deadline.h"

#include "policy.h"

/* Between two readings of two clocks, and by what chrony slews meanwhile. */
#define WALL_DIFFERS_USEC (100 * USEC_PER_MSEC)
/* Some set their clock by milliseconds again and again: no news either. */
#define CLOCK_STEP_USEC (2 * USEC_PER_SEC)

static usec_t between(usec_t a, usec_t b) {
        return MAX(a, b) - MIN(a, b);
}

DrainDeadline drain_deadline_new(usec_t booted_usec) {
        return (DrainDeadline){ .machine_end_usec = USEC_INFINITY, .booted_usec = booted_usec };
}

usec_t drain_deadline_at(const DrainDeadline *d, const Notice *n, usec_t server_booted_usec) {
        usec_t at = policy_drain_deadline(n, d->claim_usec, server_booted_usec);

        return MIN(at, usec_sub(d->machine_end_usec, POLICY_MARGIN_USEC));
}

usec_t drain_deadline_tell(DrainDeadline *d, usec_t wall_usec) {
        if (between(wall_usec, d->told_usec) > WALL_DIFFERS_USEC)
                d->told_usec = wall_usec;
        return d->told_usec;
}

DrainDeadlineNews drain_deadline_see_claim(DrainDeadline *d, const Notice *n, usec_t claim_usec, usec_t server_booted_usec) {
        usec_t before = drain_deadline_at(d, n, server_booted_usec);

        if (claim_usec == d->claim_usec)
                return DRAIN_DEADLINE_SAME;
        d->claim_usec = claim_usec;
        return drain_deadline_at(d, n, server_booted_usec) < before && claim_usec < notice_announced(n) ? DRAIN_DEADLINE_NEARER
                                                                                                 : DRAIN_DEADLINE_CHANGED;
}

bool drain_deadline_clock_was_set(DrainDeadline *d, usec_t booted_usec) {
        if (between(d->booted_usec, booted_usec) < CLOCK_STEP_USEC)
                return false;
        d->booted_usec = booted_usec;
        return true;
}
