/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tests of kube/ stand on: simulated processes on one virtual time, each with a client of its own, and
 * a scripted API server that answers requests in the order of the script and writes down what it saw.
 */

#include "http-inproc.h"
#include "kube-client.h"
#include "string-util.h"

#define RIG_SERVER "http://api"
#define RIG_START_WALL (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */

/* -- one process ---------------------------------------------------------------------------------------- */

typedef struct RigHost {
        Loop *loop;
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        Env env;
} RigHost;

/* Asserts that nothing fails. */
RigHost *rig_host_new(VirtualTime *time, uint64_t seed, const HttpInprocHooks *hooks, http_handler_t handler,
                      void *userdata);
RigHost *rig_host_free(RigHost *h);
DEFINE_FREEP(RigHost, rig_host_free);

/* All timers up to and including at_usec; time then stands there. Fails the test if that takes a million
 * steps. */
void rig_run_until(VirtualTime *time, usec_t at_usec);

/* The decoded value of a query parameter; NULL if absent. Free it. */
char *rig_query(const HttpExchange *x, const char *name);

/* -- the script ----------------------------------------------------------------------------------------- */

typedef struct RigAnswer {
        unsigned status;         /* 0: none, ever */
        const char *body;        /* stream: its first lines */
        bool stream;             /* stays open until rig_end() or the client goes */
        const char *retry_after; /* header, or NULL */
        const char *type;        /* Content-Type; NULL: application/json */
        size_t body_size;        /* 0: strlen(body) */
} RigAnswer;

typedef struct RigRequest {
        usec_t at_usec;
        HttpMethod method;
        char *path, *query, *body, *content_type, *accept;
} RigRequest;

typedef struct Rig {
        VirtualTime *time;
        RigHost *host;
        RigAnswer answers[2048];
        size_t n_answers, next_answer;
        RigRequest requests[2048];
        size_t n_requests;
        usec_t request_delay_usec, reply_delay_usec; /* of each request that begins from here on */
        HttpExchange *open[64]; /* streams, and requests that get no answer */
        size_t n_open;
        /* For one line of the trace; NULL: method and path. */
        void (*describe)(const HttpExchange *x, StrBuf *trace);
        StrBuf trace;
} Rig;

Rig *rig_new(void);
Rig *rig_free(Rig *r);
DEFINE_FREEP(Rig, rig_free);
void rig_answer(Rig *r, unsigned status, const char *body);
void rig_answer_later(Rig *r, unsigned status, const char *retry_after);
void rig_stream(Rig *r, const char *lines);
/* In full: the body is borrowed. */
void rig_answer_with(Rig *r, RigAnswer a);
void rig_silence(Rig *r);
/* To the stream opened last. */
void rig_say(Rig *r, const char *lines);
void rig_say_bytes(Rig *r, const void *data, size_t size);
void rig_end(Rig *r, bool clean);
void rig_run_for(Rig *r, usec_t usec);
/* What was traced since the last call, without the space in front; free it. */
char *rig_take_trace(Rig *r);
#define assert_trace(rig, expected) \
        do { \
                _cleanup_free_ char *_trace = rig_take_trace(rig); \
                assert_string_equal(_trace, expected); \
        } while (0)
