/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One queue of SQS by its JSON protocol. Each call is one request; nothing is retried here but what AwsQuery
 * mends (clock, keys). Polls go over the lane of watches, for a poll lasts twenty seconds and must not keep
 * a deletion from its connection. Receipts and bodies are never logged.
 */

#include "aws-credentials.h"
#include "env.h"
#include "http-transport.h"
#include "sqs-answer.h"

typedef struct SqsClient SqsClient;
typedef struct SqsCall SqsCall;

typedef enum SqsOutcome {
        SQS_OK,
        SQS_RETRY,  /* passing: throttled, 5xx, no connection, an answer that cannot be read */
        SQS_DENIED, /* credentials, permissions or the key of an encrypted queue; a person must see to it */
        SQS_GONE,   /* there is no such queue */
        SQS_TOO_LARGE, /* the messages exceed SQS_ANSWER_MAX_BYTES together: fewer have to be asked for */
        _SQS_OUTCOME_MAX,
} SqsOutcome;

extern const char *const sqs_outcome_names[_SQS_OUTCOME_MAX + 1]; /* NULL behind the last */

typedef struct SqsResult {
        SqsOutcome outcome;
        const char *message;     /* one sanitized sentence for a person; "" when all is well */
        usec_t retry_after_usec; /* 0: not said */
        size_t answer_bytes;     /* size of the answer; 0: there was none */
        SqsMessages *messages;   /* of a receive that is OK: what is taken out is the taker's; else NULL */
        unsigned failed;         /* of a batch: the bit of each entry that was not done */
} SqsResult;

/* Borrowed for the callback. */
typedef void (*sqs_done_t)(SqsResult *result, void *userdata);

typedef struct SqsConfig {
        const char *url;    /* sqs-url.h */
        const char *region; /* if the URL does not contain it; NULL: AWS_REGION, AWS_DEFAULT_REGION */
        const char *(*getenv)(const char *name, void *userdata); /* NULL: nothing is set */
        void *getenv_userdata;
} SqsConfig;

/* -EINVAL with *reterr_message (static) for a URL that cannot work. */
int sqs_client_new(Env *env, const SqsConfig *config, SqsClient **ret, const char **reterr_message);
SqsClient *sqs_client_free(SqsClient *c); /* all calls must be freed before */
DEFINE_FREEP(SqsClient, sqs_client_free);
const char *sqs_client_queue(const SqsClient *c); /* its name */
const char *sqs_client_region(const SqsClient *c);
const char *sqs_client_account(const SqsClient *c); /* NULL: the URL does not contain it */
/* For other services of the same account and region. */
AwsCredentials *sqs_client_credentials(SqsClient *c);
const AwsSettings *sqs_client_settings(const SqsClient *c);

typedef struct SqsReceive {
        unsigned wait_sec, visibility_sec;
        unsigned max_messages; /* 1 to SQS_BATCH_MAX */
        HttpGuard guard;
} SqsReceive;

/* Slots: dropping one cancels, no callback comes after; `done` comes once, from the loop, and may free its
 * slot. What a poll that was dropped has received comes again after its visibility. */
int sqs_receive(SqsClient *c, const SqsReceive *how, sqs_done_t done, void *userdata, SqsCall **ret);

typedef struct SqsEntry {
        const char *receipt;
        unsigned visibility_sec; /* of sqs_hide() */
} SqsEntry;

/* One to SQS_BATCH_MAX entries; copied. */
int sqs_delete(SqsClient *c, const SqsEntry *entries, size_t n, const HttpGuard *guard, sqs_done_t done,
               void *userdata, SqsCall **ret);
/* They are not received for so long from now on, 12 hours after they were received at most. */
int sqs_hide(SqsClient *c, const SqsEntry *entries, size_t n, const HttpGuard *guard, sqs_done_t done,
             void *userdata, SqsCall **ret);
SqsCall *sqs_call_free(SqsCall *c);
DEFINE_FREEP(SqsCall, sqs_call_free);
