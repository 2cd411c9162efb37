/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Sends the questions of confirmation.h to EC2 and Auto Scaling in one region. A caller has one client per region, because the
 * instances of a cluster may be in another region than its queue. Nothing is retried here, except what AwsQuery retries (clock and
 * keys): the caller asks again, with backoff.
 */

#include "confirmation.h"
#include "sqs-client.h"

typedef struct ConfirmationClient ConfirmationClient;
typedef struct ConfirmationCall ConfirmationCall;

typedef enum ConfirmationOutcome {
        CONFIRMATION_OK,     /* AWS answered for all instances */
        CONFIRMATION_RETRY,  /* a temporary failure, or an answer that is not AWS's */
        CONFIRMATION_DENIED, /* credentials or permissions: a person must change them */
        _CONFIRMATION_OUTCOME_MAX,
} ConfirmationOutcome;

typedef struct ConfirmationResult {
        ConfirmationOutcome outcome;
        const char *message;     /* one sanitized sentence for a person; "" with CONFIRMATION_OK */
        usec_t retry_after_usec; /* the pause that AWS asks for; 0: none */
        /* Whatever the outcome: an answer of several pages confirms notices before a later page fails. An instance without an
         * entry is not confirmed; only CONFIRMATION_OK means that AWS says so. Borrowed for the callback, but for the words. */
        const Confirmed *confirmed;
        size_t n_confirmed;
} ConfirmationResult;

/* Borrowed for the callback. */
typedef void (*confirmation_done_t)(const ConfirmationResult *result, void *userdata);

/* Uses the credentials and endpoints of that queue's client, which must outlive this one. ec2_endpoint: in place of the environment's; NULL or "":
 * none. -EINVAL: the region or an endpoint is
 * not valid. -ENOMEM. */
int confirmation_client_new(Env *env, SqsClient *sqs, const char *region, const char *ec2_endpoint, ConfirmationClient **ret);
ConfirmationClient *confirmation_client_free(ConfirmationClient *c); /* all calls must be freed before */
DEFINE_FREEP(ConfirmationClient, confirmation_client_free);

/* Asks one question about these instances; a NULL-terminated vector, copied. guard: may be NULL; its userdata must outlive the call.
 * A slot: dropping it cancels, and no callback comes after that. `done` comes once, from the loop, and may free its slot.
 * -EINVAL: no instance, more than CONFIRMATION_BATCH_MAX, or one that is no id of an EC2 instance. -ENOMEM. */
int confirmation_ask(ConfirmationClient *c, ConfirmationQuestion q, char *const *instances, const HttpGuard *guard,
                     confirmation_done_t done, void *userdata, ConfirmationCall **ret);
ConfirmationCall *confirmation_call_free(ConfirmationCall *c);
DEFINE_FREEP(ConfirmationCall, confirmation_call_free);
