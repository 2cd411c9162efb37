/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What befalls the next requests to a small fake: no answer, a failure, or nonsense. The fake says what its
 * parts are. */

#include "http-message.h"
#include "list.h"

typedef struct FakeFault {
        unsigned parts, n, status;
        char *body;
        List hanging;
} FakeFault;

/* The next n requests (UINT_MAX: for ever; 0: none any more) to these parts; the last call counts. status 0:
 * they hang. body NULL: the fake's own for that status. */
void fake_fault_set(FakeFault *f, unsigned parts, unsigned n, unsigned status, const char *body);
/* What hangs must be gone before: free the transports first. */
void fake_fault_done(FakeFault *f);

typedef enum FakeFate {
        FAKE_FATE_SERVED,
        FAKE_FATE_HANGS,  /* the exchange is taken */
        FAKE_FATE_FAILS,  /* with *ret_status, the body is the fake's own */
        FAKE_FATE_GARBLED /* with *ret_status and *ret_body (borrowed) */
} FakeFate;

FakeFate fake_fault_meet(FakeFault *f, HttpExchange *x, unsigned part, unsigned *ret_status,
                         const char **ret_body);
/* No answer, ever. */
void fake_fault_hang(FakeFault *f, HttpExchange *x);
