/* SPDX-License-Identifier: Apache-2.0 */
#include "token-bucket.h"

#include <assert.h>

#include "macro.h"

#define MICRO UINT64_C(1000000)

__extension__ typedef unsigned __int128 uint128_t;

static void refill(TokenBucket *b, usec_t now_usec) {
        uint64_t full = b->burst > UINT64_MAX / MICRO ? UINT64_MAX : b->burst * MICRO;
        uint128_t sixtieths, gained;

        if (!b->started) {
                b->started = true;
                b->tokens_micro = full;
                b->at_usec = now_usec;
                return;
        }

        /* per_minute tokens a minute are per_minute / 60 millionths a microsecond. What is less than a
         * millionth stays with the time, so that many small steps fill the bucket as fast as a large one. */
        sixtieths = (uint128_t) usec_sub(now_usec, b->at_usec) * b->per_minute;
        gained = sixtieths / 60;
        if (gained >= full || b->tokens_micro >= full - (uint64_t) gained) {
                b->tokens_micro = full;
                b->at_usec = MAX(b->at_usec, now_usec);
        } else if (gained > 0) {
                b->tokens_micro += (uint64_t) gained;
                b->at_usec = now_usec - (usec_t) (sixtieths % 60 / b->per_minute);
        }
}

/* Microseconds in which this much comes in, rounded up. */
static usec_t time_to_gain(const TokenBucket *b, uint64_t micro) {
        if (b->per_minute == 0 || b->burst == 0)
                return USEC_INFINITY;
        return (usec_t) (((uint128_t) micro * 60 + b->per_minute - 1) / b->per_minute);
}

bool token_bucket_has(TokenBucket *b, uint64_t n, usec_t now_usec, usec_t *ret_at_usec) {
        uint128_t needed = (uint128_t) n * MICRO;

        assert(b);

        refill(b, now_usec);
        if (b->tokens_micro >= needed)
                return true;
        if (ret_at_usec)
                *ret_at_usec = n > b->burst ? USEC_INFINITY
                                            : usec_add(b->at_usec,
                                                       time_to_gain(b, (uint64_t) needed - b->tokens_micro));
        return false;
}

bool token_bucket_take_n(TokenBucket *b, uint64_t n, usec_t now_usec, usec_t *ret_at_usec) {
        if (!token_bucket_has(b, n, now_usec, ret_at_usec))
                return false;
        b->tokens_micro -= n * MICRO;
        return true;
}

bool token_bucket_take(TokenBucket *b, usec_t now_usec, usec_t *ret_at_usec) {
        return token_bucket_take_n(b, 1, now_usec, ret_at_usec);
}
