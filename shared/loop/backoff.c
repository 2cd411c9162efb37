/* SPDX-License-Identifier: Apache-2.0 */
#include "backoff.h"

#include <limits.h>

usec_t backoff_next(Backoff *b, Random *r) {
        usec_t delay;

        assert(b);

        delay = MIN(b->base_usec, b->cap_usec);
        for (unsigned i = 0; i < b->failures && delay > 0 && delay < b->cap_usec; i++)
                delay = MIN(usec_add(delay, delay), b->cap_usec);
        if (b->failures < UINT_MAX)
                b->failures++;
        return random_jitter(r, delay, b->jitter_permille);
}
