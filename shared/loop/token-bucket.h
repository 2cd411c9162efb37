/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rate limit by tokens. A plain value: embed it, zero `tokens_micro` and `at_usec` mean "full at first use". */

#include <stdbool.h>
#include <stdint.h>

#include "time-util.h"

typedef struct TokenBucket {
        uint64_t burst;
        uint64_t per_minute;
        bool started;
        uint64_t tokens_micro; /* millionths of a token */
        usec_t at_usec;
} TokenBucket;

/* Takes one token. True: taken. False: none; *ret_at_usec is when one will be there. */
bool token_bucket_take(TokenBucket *b, usec_t now_usec, usec_t *ret_at_usec);
/* Takes n tokens, or none. Returns as token_bucket_has(). */
bool token_bucket_take_n(TokenBucket *b, uint64_t n, usec_t now_usec, usec_t *ret_at_usec);
/* Are so many there? Takes none. False: *ret_at_usec is when they will be; USEC_INFINITY for more than it ever
 * holds. */
bool token_bucket_has(TokenBucket *b, uint64_t n, usec_t now_usec, usec_t *ret_at_usec);
