/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cloud-http/: how clouds are asked over plain HTTP, by agent and coordinator alike.
 *
 * imds-client.c: the instance metadata service of EC2, version 2; version 1 only for whom allows it
 * (docs.aws.amazon.com: instancedata-data-retrieval). One question at a time.
 *
 * A session token is asked for with PUT, lives for TTL seconds and is renewed at half-life; while an old one
 * is still good, a renewal that fails fails nothing. 401 on a question: one new token, and the question once
 * more. So in steady state a question is one request.
 *
 * Metadata lane, 2 s a request, at most 64 KiB, no proxy.
 */

#include "env.h"
#include "http-transport.h"

typedef struct ImdsClient ImdsClient;

typedef enum ImdsOutcome {
        IMDS_ANSWERED, /* 200 */
        IMDS_ABSENT,   /* 404: whether it means "none" depends on who says it */
        IMDS_FAILED,   /* everything else: nothing is known */
} ImdsOutcome;

typedef struct ImdsAnswer {
        ImdsOutcome outcome;
        const char *body; /* ANSWERED: NUL-terminated, borrowed until the next question */
        size_t size;
        const char *why;      /* FAILED: for people */
        int error;            /* FAILED: the transport's (-ETIMEDOUT, ...); -EREMOTEIO: it answered; -ENOMEM */
        usec_t answered_usec; /* loop_now() when the answer was whole */
        usec_t date_usec;     /* what the service's clock said a little earlier, cut to its second; 0: it did not tell */
} ImdsAnswer;

typedef void (*imds_done_t)(const ImdsAnswer *answer, void *userdata);

/* endpoint: "http://169.254.169.254", without a slash at its end. */
int imds_client_new(Env *env, const char *endpoint, ImdsClient **ret);
ImdsClient *imds_client_free(ImdsClient *c); /* no callback comes after */
DEFINE_FREEP(ImdsClient, imds_client_free);

/* Where to ask when there is no way to the endpoint (no route: IPv6 alone), for as long as that answers. 0 or -ENOMEM. */
int imds_client_set_other_endpoint(ImdsClient *c, const char *endpoint);
/* Asks without a token where the service gives none (403, 404, 405, or nothing in time), for ten minutes; then it is asked for
 * one again. Whoever can answer in the service's place is believed then as is whoever gives a token. */
void imds_client_allow_v1(ImdsClient *c);

/* path: below /latest/ ("meta-data/instance-id"). `done` comes once, from the loop; a question that is under
 * way is dropped. 0 or -ENOMEM. */
int imds_client_get(ImdsClient *c, const char *path, imds_done_t done, void *userdata);

/* Counts the tokens received, and the times at which it went on without: with each the endpoint has to prove again who it is. */
unsigned imds_client_token_generation(const ImdsClient *c);
bool imds_client_is_asked(const ImdsClient *c); /* a request is under way */
