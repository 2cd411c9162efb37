/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The front door of one fake AWS service in one region: which keys it knows, what its clock says, and what
 * is to go wrong. EC2, Auto Scaling and SQS stand behind it.
 */

#include "fake-aws-auth.h"
#include "fake-trouble.h"
#include "loop.h"
#include "string-util.h"

typedef struct FakeAwsFrontOptions {
        Loop *loop;
        const char *region;        /* of the endpoint; NULL: all, the scope of the signature picks one */
        const char *account;       /* NULL: 123456789012 */
        const char *access_key_id; /* NULL: no signature is asked for (a region is then needed) */
        const char *secret_access_key;
        const char *session_token; /* NULL: permanent keys */
        usec_t max_skew_usec;
} FakeAwsFrontOptions;

typedef struct FakeAwsFront {
        Loop *loop;
        char *region, *account;
        char *access_key_id, *secret, *session_token;
        char *expired_code;
        usec_t max_skew_usec;
        int64_t skew_usec; /* the cloud's clock runs ahead of the loop's wall clock by so much */
        size_t n_refused;
        FakeTroubles *troubles;
} FakeAwsFront;

void fake_aws_front_init(FakeAwsFront *f, const FakeAwsFrontOptions *options);
void fake_aws_front_done(FakeAwsFront *f);

/* The keys that are known from now on. */
void fake_aws_front_set_keys(FakeAwsFront *f, const char *access_key_id, const char *secret,
                             const char *session_token);
/* The keys known now have run out: answered with this code. */
void fake_aws_front_expire_keys(FakeAwsFront *f, const char *code);
usec_t fake_aws_front_wall(const FakeAwsFront *f);

/* services: NULL-terminated, of which the scope must name one. ret_scope: the region that is meant, and the
 * service ("" if nobody said). False: refused, in EC2's words. */
bool fake_aws_front_admit(FakeAwsFront *f, const HttpExchange *x, const char *const *services,
                          FakeAwsScope *ret_scope, FakeAwsRefusal *ret);

#define FAKE_AWS_REQUEST_ID "59dbff89-35bd-4eac-99ed-be587EXAMPLE"

/* With Date and x-amzn-RequestId. `extra` may be NULL; its value NULL: none. */
void fake_aws_front_reply(const FakeAwsFront *f, HttpExchange *x, unsigned status, const char *content_type,
                          const HttpHeader *extra, const char *body);

void fake_xml_add_escaped(StrBuf *b, const char *s);
void fake_xml_add_element(StrBuf *b, const char *name, const char *text);
