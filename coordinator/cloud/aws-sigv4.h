/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * AWS Signature Version 4, header form. Pure: the parts of a request, credentials and an instant go in, the
 * two or three headers that make it a signed one come out. No clock, no I/O.
 *
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
 */

#include "http-message.h"
#include "time-util.h"

typedef struct SigV4Request {
        HttpMethod method;
        const char *path;          /* as it stands in the URL: absolute, percent-encoded; NULL or "": "/" */
        const char *query;         /* as it stands in the URL, without '?'; a '+' is a plus; NULL: none */
        const HttpHeader *headers; /* all are signed; "host" must be among them; no name twice */
        size_t n_headers;
        const void *body;
        size_t body_size;
        const char *region;
        const char *service;
        const char *access_key_id;
        const char *secret_access_key;
        const char *session_token; /* NULL for permanent credentials; else signed as X-Amz-Security-Token */
        usec_t wall_usec;          /* of the signature */
} SigV4Request;

#define SIGV4_HEADERS_MAX 3

/* What is to be added to the headers of the request. Values are owned. */
typedef struct SigV4Headers {
        HttpHeader headers[SIGV4_HEADERS_MAX]; /* X-Amz-Date, Authorization, and X-Amz-Security-Token */
        size_t n_headers;
        char date[RFC3339_MAX];
        char *authorization;
        char *session_token;
} SigV4Headers;

/* -EINVAL: no host, a header given twice, or an empty region, service or key; -ENOMEM; -EIO if the crypto
 * library fails. */
int sigv4_sign(const SigV4Request *request, SigV4Headers *ret);
void sigv4_headers_done(SigV4Headers *h); /* a zeroed one is fine; secrets are erased */
