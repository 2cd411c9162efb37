/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests: a world of one fake cluster on virtual time, and calls that wait for their answer. */

#include "fake-cluster.h"
#include "http-inproc.h"

#define FAKE_ORIGIN "http://fake"
#define FAKE_ADMIN "CN=admin,O=system:masters"

typedef struct FakeWorld {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        FakeCluster *cluster;
        Hashmap *transports; /* by identity */
} FakeWorld;

void fake_world_init(FakeWorld *w, const FakeClusterOptions *options);
void fake_world_done(FakeWorld *w);
/* What this identity says at FAKE_ORIGIN goes there instead of to the cluster. */
void fake_world_route(FakeWorld *w, const char *identity, http_handler_t handler, void *userdata);
/* Lets so much time pass. */
void fake_world_run(FakeWorld *w, usec_t usec);

typedef struct FakeAnswer {
        int error; /* 0: an answer came */
        unsigned status;
        cJSON *json; /* NULL: the body is no JSON */
        char *body;
        uint64_t retry_after_sec; /* of the header */
        char *warning;            /* the first one; NULL: none */
} FakeAnswer;

void fake_answer_done(FakeAnswer *a);
#define _cleanup_answer_ _cleanup_(fake_answer_done)

/* identity NULL: nobody. type NULL: application/json if there is a body. */
FakeAnswer fake_call(FakeWorld *w, const char *identity, HttpMethod method, const char *path,
                     const char *type, const char *body);
/* The same as FAKE_ADMIN, with a body by fj_parse()'s rules (' for "). */
FakeAnswer fake_ask(FakeWorld *w, HttpMethod method, const char *path, const char *type, const char *body);

/* A watch that collects what comes. */
typedef struct FakeTail {
        HttpCall *call;
        StrBuf bytes;
        bool done;
        int error;
} FakeTail;

void fake_tail_start(FakeTail *t, FakeWorld *w, const char *identity, const char *path);
void fake_tail_done(FakeTail *t);
#define _cleanup_tail_ _cleanup_(fake_tail_done)
/* "ADDED a, DELETED a" (BOOKMARK and ERROR with resourceVersion and code), of what came since the last call;
 * free it. */
char *fake_tail_take(FakeTail *t);
