/* SPDX-License-Identifier: Apache-2.0 */
#include "address-rates.h"

#include <assert.h>
#include <string.h>

static AddressRate *rate_of(AddressRates *r, const struct in6_addr *ip, usec_t now_usec) {
        AddressRate *oldest = r->rates;

        for (size_t i = 0; i < r->n; i++) {
                AddressRate *a = r->rates + i;

                if (memcmp(&a->ip, ip, sizeof(*ip)) == 0) {
                        a->seen_usec = now_usec;
                        return a;
                }
                if (a->seen_usec < oldest->seen_usec)
                        oldest = a;
        }
        if (r->n < ADDRESS_RATES_MAX)
                oldest = r->rates + r->n++;
        *oldest = (AddressRate){
                .ip = *ip,
                .seen_usec = now_usec,
                .bytes = { .burst = r->limits.burst_bytes, .per_minute = 60 * r->limits.bytes_per_sec },
                .connections = { .burst = r->limits.burst_connections,
                                 .per_minute = 60 * r->limits.connections_per_sec },
        };
        return oldest;
}

bool address_rates_take_body(AddressRates *r, const struct in6_addr *ip, size_t bytes, usec_t now_usec) {
        TokenBucket *b;

        assert(r && ip);
        if (r->limits.burst_bytes == 0)
                return true;
        b = &rate_of(r, ip, now_usec)->bytes;
        if (bytes > r->limits.small_body_bytes &&
            !token_bucket_has(b, bytes + r->limits.burst_bytes / 2, now_usec, NULL))
                return false;
        return token_bucket_take_n(b, bytes, now_usec, NULL);
}

bool address_rates_take_connection(AddressRates *r, const struct in6_addr *ip, usec_t now_usec) {
        assert(r && ip);
        return r->limits.burst_connections == 0 ||
               token_bucket_take(&rate_of(r, ip, now_usec)->connections, now_usec, NULL);
}
