/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Questions to one handler, in process and on virtual time: the client's end of tests of small fakes.
 * Include after cmocka.h. */

#include "http-inproc.h"

#define ASK_T0 (UINT64_C(1800000000) * USEC_PER_SEC)

typedef struct HttpAsk {
        VirtualTime *time;
        Loop *loop;
        HttpTransport *transport;
} HttpAsk;

/* Before the handler is there; then the handler. */
void http_ask_init(HttpAsk *h);
void http_ask_route(HttpAsk *h, http_handler_t handler, void *userdata);
/* In two steps, for handlers want their clients gone first and their loop last. */
void http_ask_close(HttpAsk *h);
void http_ask_done(HttpAsk *h);
void http_ask_run(HttpAsk *h, usec_t usec);

typedef struct Asked {
        bool done;
        int error;
        unsigned status;
        char *body;
        char *headers; /* "Name: value\n" of each */
        usec_t took_usec;
        HttpCall *call;
} Asked;

void asked_done(Asked *a);
#define _cleanup_asked_ _cleanup_(asked_done)
/* The value of a header of the answer, borrowed until the next call; "" if absent. */
const char *asked_header(const Asked *a, const char *name, char ret[256]);

/* headers: "Name: value\n..." or NULL; body with ' for ", or NULL. */
void http_ask_start(HttpAsk *h, Asked *ret, HttpMethod method, const char *path, const char *headers,
                    const char *body);
/* Waits for the answer, an hour at most. */
Asked http_ask(HttpAsk *h, HttpMethod method, const char *path, const char *headers, const char *body);

/* One question and what is to come: shared by the tables. */
typedef struct AskRow {
        const char *what;
        HttpMethod method;
        const char *path, *headers, *body;
        unsigned status;
        const char *
                expected; /* the whole body, or with '*' in front what it contains; NULL: nothing is asked */
} AskRow;

void http_ask_rows(HttpAsk *h, const AskRow *rows, size_t n);
