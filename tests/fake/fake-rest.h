/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the fakes of GCE and Azure share: bearer tokens, paths taken apart, JSON answers, pages. */

#include "fake-json.h"
#include "fake-query.h"
#include "fake-trouble.h"
#include "loop.h"

typedef struct FakeRest {
        Loop *loop;
        char *token; /* the one that is known; NULL: any */
        bool expired;
        size_t n_refused;
        FakeTroubles *troubles;
} FakeRest;

typedef enum FakeBearer {
        FAKE_BEARER_GOOD,
        FAKE_BEARER_MISSING,
        FAKE_BEARER_UNKNOWN,
        FAKE_BEARER_EXPIRED,
} FakeBearer;

void fake_rest_init(FakeRest *f, Loop *loop, const char *token);
void fake_rest_done(FakeRest *f);
/* From now on this token is good, and none has run out. */
void fake_rest_set_token(FakeRest *f, const char *token);
/* Counts what is not good. */
FakeBearer fake_rest_bearer(FakeRest *f, const HttpExchange *x);

/* Plays the trouble that is set for this operation, if any: *x as fake_troubles_take() says. send_error:
 * tells one in the words of its cloud. True: the request is answered, or never will be. */
bool fake_rest_play_trouble(FakeRest *f, const char *operation, HttpExchange **x,
                            void (*send_error)(HttpExchange *x, const FakeTrouble *t));

/* The decoded segments of a path; an empty one (of "//", or of a '/' at the end) is kept. */
char **fake_path_split(const char *path);
/* In a pattern, a segment '*' stands for any segment that is not empty, and comes back in ret (borrowed), in
 * order. Azure's paths are read without regard to case. */
bool fake_path_is(char *const *segments, const char *pattern, bool any_case, const char **ret, size_t n_ret);

#define FAKE_REST_HEADERS_MAX 6

/* o may be NULL: no body. */
void fake_rest_reply(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                     const cJSON *o);
