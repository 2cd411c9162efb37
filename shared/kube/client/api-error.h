/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What went wrong with one call to the API server: a metav1.Status, or a transport failure in the same clothes. Filled by
 * the client, borrowed for the callback; copy what must stay.
 */

#include <stdbool.h>
#include <stddef.h>

#include "json.h"
#include "time-util.h"

#define API_ERROR_CAUSES_MAX 8u

typedef struct ApiCause {
        char *reason;  /* "DisruptionBudget", "NamespaceTerminating" */
        char *message; /* "The disruption budget web needs 3 healthy pods and has 3 currently" */
        char *field;
} ApiCause;

/* The longest wait that an answer can impose. The API server asks for 1 to 10 s; a proxy or an admission webhook may ask for a day, while a
 * machine ends in two minutes. */
#define API_RETRY_AFTER_MAX_USEC USEC_PER_MINUTE

typedef struct ApiError {
        unsigned http;          /* status; 0: no HTTP answer */
        int error;              /* negative errno of the transport when http == 0; else 0 */
        bool maybe_sent;        /* http == 0: the call may have taken effect */
        char *reason;           /* Status.reason: "Conflict", "NotFound", "TooManyRequests"; NULL if the body was none */
        char *message;          /* for people: sanitized, at most 1 KiB; never NULL after api_error_from_* */
        ApiCause *causes;
        size_t n_causes;
        usec_t retry_after_usec; /* details.retryAfterSeconds or the header, the larger, API_RETRY_AFTER_MAX_USEC at most; 0: not said */
} ApiError;

void api_error_done(ApiError *e);
/* body: what came with an HTTP status >= 300, JSON or protobuf; neither or no Status is fine: http alone then speaks. 0 or -ENOMEM. */
int api_error_from_body(unsigned http, const char *body, size_t size, usec_t retry_after_header_usec, ApiError *ret);
int api_error_from_transport(int error, const char *text, bool maybe_sent, ApiError *ret);

/* Who refused a request in the API server's place, and in which words; borrowed from the message. */
typedef struct ApiWebhook {
        const char *name; /* name_size bytes of it, at most 253: letters, digits, '.', '-' */
        size_t name_size;
        const char *words; /* its own; where it gave none, or could not be called, the API server's */
} ApiWebhook;

/* Was this answered by an admission webhook, or for one that could not be called? It takes whatever status it likes, so the
 * message alone tells (apiserver/pkg/admission/plugin/webhook/errors and .../generic):
 *
 *      admission webhook "NAME" denied the request: WORDS
 *      admission webhook "NAME" denied the request without explanation
 *      Internal error occurred: failed calling webhook "NAME": WORDS
 */
bool api_error_is_of_webhook(const ApiError *e, ApiWebhook *ret);

bool api_error_has_cause(const ApiError *e, const char *reason);
/* A negative errno that stands for it in logs: 404 -ENOENT, 409 -EBUSY (AlreadyExists: -EEXIST), 403/401 -EACCES, 410 -ESTALE,
 * 422/400 -EINVAL, 429/503 -EAGAIN, other 5xx -EREMOTEIO, transport: its own. */
int api_error_to_errno(const ApiError *e);
