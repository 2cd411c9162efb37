/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server's side of AWS Signature Version 4: an implementation of its own, so that signer and verifier
 * cannot share a misreading. */

#include "http-message.h"
#include "time-util.h"

typedef struct FakeAwsKeys {
        const char *access_key_id;
        const char *secret_access_key;
        const char *session_token; /* NULL: must not be sent */
} FakeAwsKeys;

typedef struct FakeAwsScope {
        char region[64];
        char service[32];
} FakeAwsScope;

typedef struct FakeAwsRefusal {
        unsigned status;
        const char *code;
        char message[200];
} FakeAwsRefusal;

/* What the Authorization header says it is for, unchecked. False: there is none that could be read. */
bool fake_aws_scope(const HttpExchange *x, FakeAwsScope *ret);
/* True: signed with these keys, for its scope, within max_skew_usec of wall_usec. */
bool fake_aws_verify(const HttpExchange *x, const FakeAwsKeys *keys, usec_t wall_usec, usec_t max_skew_usec,
                     FakeAwsRefusal *ret);
