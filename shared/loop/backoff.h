/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Exponential backoff with full cap and jitter. A plain value: embed it. */

#include "random.h"

typedef struct Backoff {
        usec_t base_usec;
        usec_t cap_usec;
        unsigned jitter_permille;
        unsigned failures;
} Backoff;

/* The delay before the next try, and one more failure counted: base * 2^failures, capped, then jittered. */
usec_t backoff_next(Backoff *b, Random *r);
static inline void backoff_reset(Backoff *b) {
        b->failures = 0;
}
