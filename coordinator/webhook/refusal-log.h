/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses whose connections and requests the webhook has refused, and when the log names them: one line
 * per address and minute, REFUSAL_LINES_PER_MINUTE of all addresses together. Pure: time in, lines out.
 *
 * A line has the numbers of refusals since the last line of its address. Memory is bounded: a new address
 * takes the place of the one that was refused longest ago. Refusals that no line has counted by then appear in
 * a later line as refusals of other addresses.
 */

#include <netinet/in.h>

#include "http-server.h"
#include "token-bucket.h"

#define REFUSAL_LOG_ADDRESSES_MAX 64u
#define REFUSAL_LINES_PER_MINUTE 10u
/* Number of slow connections of one address within a minute that make a line by themselves. An API server may
 * open a few connections that it never uses. */
#define REFUSAL_SLOW_MIN 10u

/* Why a client was refused: an HttpRefusal, or one of these. */
typedef unsigned Refusal;
enum {
        REFUSAL_CERTIFICATE = _HTTP_REFUSAL_MAX, /* 401: ClientCAFile= is set, and there is no certificate of that CA */
        REFUSAL_PATH,                            /* 404 or 405: not POST /admission */
        REFUSAL_REVIEW,                          /* 400: the body is no AdmissionReview */
        _REFUSAL_MAX,
};

typedef struct RefusedAddress {
        char text[INET6_ADDRSTRLEN]; /* printable */
        usec_t first_usec;           /* of the refusals in n */
        usec_t last_usec;            /* of the latest refusal */
        usec_t next_line_usec;       /* no line before */
        uint64_t n[_REFUSAL_MAX];    /* since the last line */
} RefusedAddress;

/* Zeroed: empty. */
typedef struct RefusalLog {
        RefusedAddress addresses[REFUSAL_LOG_ADDRESSES_MAX];
        size_t n_addresses;
        uint64_t n_forgotten; /* refusals of addresses that gave way, in no line yet */
        TokenBucket lines;
} RefusalLog;

/* Counts a refusal at now_usec. address: text of the client's address; NULL: not known. Returns the line that
 * is to be logged now (free it), or NULL: none, or no memory for it. */
char *refusal_log_add(RefusalLog *l, const char *address, Refusal why, usec_t now_usec);
