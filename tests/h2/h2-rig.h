/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client of ours, on the real transport, and the HTTP/2 server that it talks to: one loop, real time. The
 * server counts for each method and path what arrived and what took effect, and plays a fault on the first
 * so many requests. Everything asserts. */

#include "clock-skip.h"
#include "h2-server.h"
#include "http-curl.h"
#include "kube-client.h"

#define H2_PATIENCE_USEC (60 * USEC_PER_SEC)

/* What happens to one request. "Effect": the server does what it was asked. */
typedef enum H2Fault {
        H2_NO_FAULT,
        H2_REFUSED_STREAM,  /* no effect: RFC 9113 section 8.7 */
        H2_RESET_BEFORE,    /* RST_STREAM INTERNAL_ERROR, no effect */
        H2_RESET_AFTER,     /* effect, then RST_STREAM CANCEL */
        H2_GOAWAY_ABOVE,    /* GOAWAY whose last stream lies below this one: no effect; connection ends */
        H2_GOAWAY_BELOW,    /* GOAWAY that includes this stream: effect and answer; connection ends */
        H2_GOAWAY_CALM,     /* GOAWAY ENHANCE_YOUR_CALM with last stream 0, connection ends: no effect */
        H2_NOTIFY_BEFORE,   /* TLS end and FIN without an answer, no effect */
        H2_FIN_AFTER,       /* effect, FIN */
        H2_RST_AFTER,       /* effect, TCP reset */
        H2_CUT_BODY,        /* effect, half of the body, then RST_STREAM */
        H2_CUT_BODY_FIN,    /* effect, half of the body, then FIN */
        H2_HUGE_HEADER,     /* effect, an answer with 40 kB of header */
        H2_TRAILERS,        /* effect, a good answer with trailers */
        H2_INFORMED,        /* effect, 103 and then a good answer */
        H2_ANSWER_THEN_FIN, /* effect, a good answer, and FIN right behind it */
        H2_SILENT,          /* effect, no answer */
        H2_FROZEN,          /* effect, and the connection is dead without a word */
        _H2_FAULT_MAX,
} H2Fault;

const char *h2_fault_to_string(H2Fault f);

typedef struct H2Count {
        char *what; /* "POST /path" without the query */
        unsigned requests, effects;
} H2Count;

typedef struct H2World {
        Loop *loop;
        HttpTransport *transport;
        H2Server *server;
        HttpTls *tls;
        Random *random;
        Env env;
        KubeAuth *auth;
        KubeClient *client;
        char *origin; /* "https://127.0.0.1:port" */

        H2Fault fault;
        unsigned fault_times; /* on so many requests from now on */
        /* Before anything else; true: it has dealt with the request. NULL: no. */
        bool (*on_request)(H2Stream *s, void *userdata);
        void *userdata;
        H2Count counts[32];
        size_t n_counts;
        unsigned last_connection; /* that a request came on */
} H2World;

/* For group set-up and tear-down: the certificates. */
int h2_certificates_new(void **state);
int h2_certificates_free(void **state);

/* state: what h2_certificates_new() made. The server's options but its certificate; NULL: none. */
H2World *h2_world_new(void **state, const H2ServerOptions *o);
H2World *h2_world_free(H2World *w);
DEFINE_FREEP(H2World, h2_world_free);

/* until: NULL: for so long. Fails the test when `what` has not come in H2_PATIENCE_USEC. */
void h2_run_until(H2World *w, bool (*until)(void *userdata), void *userdata, const char *what);
void h2_run_for(H2World *w, usec_t usec);
/* Runs until neither side has anything to read or to send. Both are in this process. */
void h2_run_until_quiet(H2World *w);
/* Runs until neither side has work, advances all clocks by usec, and runs again. */
void h2_skip(H2World *w, usec_t usec);

/* What was counted for "POST /path"; zeroes if it never came. */
H2Count h2_count(const H2World *w, const char *what);
void h2_count_reset(H2World *w);
/* A good answer to it, by method and query; counts the effect. */
void h2_answer(H2World *w, H2Stream *s);
/* Plays the fault, now. */
void h2_play(H2World *w, H2Stream *s, H2Fault fault);

/* -- one HTTP call -------------------------------------------------------------------------------------- */

typedef struct H2Call {
        H2World *world;
        HttpCall *call;
        bool done;
        int error;
        bool maybe_sent;
        unsigned status, http_version;
        size_t body_size, n_data;
        usec_t began_usec, ended_usec;
} H2Call;

/* url, TLS, a time-out of H2_PATIENCE_USEC and a limit of 1 MB are filled in where they are missing. */
void h2_call_start(H2World *w, H2Call *c, const char *path, HttpRequest q);
void h2_call_finish(H2Call *c); /* runs the loop until it is done, and frees it */
void h2_call_cancel(H2Call *c);
/* "200", "ECONNRESET?" (it may have been sent), "ETIMEDOUT" (certainly not); static */
const char *h2_call_outcome(const H2Call *c);
