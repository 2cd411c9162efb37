/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rates at which one address may have bodies parsed and connections accepted. Pure: time in, decisions
 * out. Each address has two token buckets, which outlive its connections. Memory is bounded: beyond
 * ADDRESS_RATES_MAX addresses, a new one takes the place of the one that was seen longest ago, which begins
 * with full buckets when it comes back. A client that can give itself more addresses counts as that many.
 */

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "token-bucket.h"

#define ADDRESS_RATES_MAX 128u

/* Limits of each address. */
typedef struct AddressLimits {
        uint64_t burst_bytes, bytes_per_sec; /* of bodies; burst_bytes 0: no limit */
        /* A larger body needs half of the burst in reserve, which stays for small ones. Large bodies of a
         * hostile client behind the address of an API server leave the API server's reviews that half. */
        uint64_t small_body_bytes;
        uint64_t burst_connections, connections_per_sec; /* burst_connections 0: no limit */
} AddressLimits;

typedef struct AddressRate {
        struct in6_addr ip;
        usec_t seen_usec;
        TokenBucket bytes, connections;
} AddressRate;

typedef struct AddressRates {
        AddressLimits limits;
        AddressRate rates[ADDRESS_RATES_MAX];
        size_t n;
} AddressRates;

/* Takes a body of so many bytes, or a new connection, from the buckets of the address. False: the address is
 * over its rate, and nothing is taken. A body that is larger than half of burst_bytes and than small_body_bytes
 * is never taken. */
bool address_rates_take_body(AddressRates *r, const struct in6_addr *ip, size_t bytes, usec_t now_usec);
bool address_rates_take_connection(AddressRates *r, const struct in6_addr *ip, usec_t now_usec);
