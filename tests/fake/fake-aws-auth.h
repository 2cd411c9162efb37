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

typedef enum FakeAwsReason {
        FAKE_AWS_NOT_SIGNED,
        FAKE_AWS_UNKNOWN_KEYS,
        FAKE_AWS_WRONG_SCOPE,
        FAKE_AWS_WRONG_CLOCK,
        FAKE_AWS_WRONG_SIGNATURE,
        FAKE_AWS_KEYS_EXPIRED,
        _FAKE_AWS_REASON_MAX,
} FakeAwsReason;

/* A refusal speaks EC2's words first. */
typedef struct FakeAwsRefusal {
        FakeAwsReason reason;
        unsigned status;
        const char *code;
        char message[200];
} FakeAwsRefusal;

/* What the Authorization header says it is for, unchecked. False: there is none that could be read. */
bool fake_aws_scope(const HttpExchange *x, FakeAwsScope *ret);
/* True: signed with these keys, for its scope, within max_skew_usec of wall_usec. */
bool fake_aws_verify(const HttpExchange *x, const FakeAwsKeys *keys, usec_t wall_usec, usec_t max_skew_usec,
                     FakeAwsRefusal *ret);

/* The same refusal in the words of the other query services (Auto Scaling, STS), or of the JSON ones (SQS).
 * Only EC2 has AuthFailure and RequestExpired; the others call a wrong clock a wrong signature. */
void fake_aws_refusal_as_query(FakeAwsRefusal *r);
void fake_aws_refusal_as_json(FakeAwsRefusal *r);
