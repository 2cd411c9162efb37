/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One call of AWS's query protocol: a form by POST, signed, answered with XML; or of its JSON protocol, the same with
 * JSON both ways and the operation in a header. Clients exist per service, region and endpoint. Two things are mended here, once per call each, because only here can they be told
 * from the rest: a wrong clock (the Date of the refusal becomes the offset of every later signature) and
 * keys that the service no longer accepts.
 */

#include "aws-credentials.h"
#include "http-transport.h"

/* Maximum size of an answer; a larger one fails with -EMSGSIZE. */
#define AWS_QUERY_ANSWER_MAX_BYTES (8u * 1024u * 1024u)

typedef struct AwsQuery AwsQuery;
typedef struct AwsQueryCall AwsQueryCall;

typedef struct AwsQueryResult {
        /* 0: answered, see below. -ESTALE: the guard said no. -EKEYREJECTED and every other negative errno:
         * no answer, or no credentials; `message` says which. */
        int error;
        bool credentials_failed; /* error < 0: it was the credentials; `error` is theirs */
        const char *message;     /* error < 0, and of an error document: one sentence; never NULL */
        const char *code; /* status is no 2xx: of the error document; NULL if there was none to be read */
        unsigned status;
        const char *body;
        size_t body_size;
        const char *principal;   /* whose keys signed it; see AwsIdentity */
        usec_t retry_after_usec; /* 0: not said */
} AwsQueryResult;

/* Borrowed for the callback. */
typedef void (*aws_query_done_t)(const AwsQueryResult *result, void *userdata);

/* endpoint NULL: the published one of the region. Credentials are borrowed. -EINVAL: region or endpoint are
 * none. */
int aws_query_new(Env *env, AwsCredentials *credentials, const char *service, const char *region,
                  const char *endpoint, AwsQuery **ret);
AwsQuery *aws_query_free(AwsQuery *q); /* all calls must be freed before */
DEFINE_FREEP(AwsQuery, aws_query_free);

/* form: "Action=...&Version=...&...", values percent-encoded. A slot: `done` comes once, from the loop, and
 * not after the slot was freed; it may be freed inside. guard may be NULL; its userdata must outlive the
 * call. */
int aws_query_start(AwsQuery *q, const char *form, const HttpGuard *guard, aws_query_done_t done,
                    void *userdata, AwsQueryCall **ret);
/* The same of the JSON protocol. target: "AmazonSQS.ReceiveMessage". */
typedef struct AwsJsonRequest {
        const char *target;
        const char *body;
        HttpLane lane;       /* a long poll keeps its connection from all others of its lane */
        usec_t timeout_usec; /* 0: as of a form */
        HttpGuard guard;     /* may_send NULL: unguarded */
} AwsJsonRequest;

int aws_query_start_json(AwsQuery *q, const AwsJsonRequest *request, aws_query_done_t done, void *userdata,
                         AwsQueryCall **ret);
AwsQueryCall *aws_query_call_free(AwsQueryCall *c);
DEFINE_FREEP(AwsQueryCall, aws_query_call_free);
