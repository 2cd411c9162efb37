/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HttpTransport without a network: requests go to handlers in the same process, through timers of the loop,
 * so that nothing is ever delivered inside a call. A fault hook decides about each request and each answer;
 * a simulation draws from its seed there.
 */

#include "http-transport.h"

typedef struct HttpFault {
        usec_t request_delay_usec; /* before the handler sees it */
        usec_t reply_delay_usec;   /* before the caller sees the answer (and each piece of a stream) */
        bool lose_request;         /* never arrives: the call ends by its time-out */
        bool lose_reply;           /* takes effect, but the answer never arrives */
        bool refuse;               /* connection refused */
        bool no_route;             /* nor is there a way to it */
        unsigned status; /* != 0: answered so by something in between, without reaching the handler */
        const char *retry_after; /* with status: header value or NULL */
        bool watched;            /* on_over() is told when its call is over */
} HttpFault;

typedef struct HttpInprocHooks {
        /* Each request as it starts; *ret_fault is zeroed. `peer` is the host[:port] part of the URL. May be
         * NULL. */
        void (*on_request)(const HttpRequest *request, const char *peer, HttpFault *ret_fault,
                           void *userdata);
        /* A call whose request was `watched` is answered, given up or cancelled: it is under way no more. */
        void (*on_over)(void *userdata);
        void *userdata;
} HttpInprocHooks;

/* identity: shown to handlers as client_identity; may be NULL. A call that is freed or times out after its
 * request left does not take the request back: it arrives, and on_gone follows. Freeing the transport drops
 * what has not arrived and tells handlers on_gone at once; they must still be there. */
int http_inproc_new(Loop *l, const char *identity, const HttpInprocHooks *hooks, HttpTransport **ret);
/* Requests whose URL has this "scheme://host[:port]" go there. All others: connection refused. The same
 * origin again replaces the handler, NULL takes it away. 0 or -ENOMEM. */
int http_inproc_route(HttpTransport *t, const char *origin, http_handler_t handler, void *userdata);
/* Cuts all streams that are open now (as a broken connection does). */
void http_inproc_cut_streams(HttpTransport *t);
/* The server of this origin has died: its handlers are told on_gone at once, and its clients see the connection break. What
 * has not arrived yet finds the route as it is then. */
void http_inproc_break(HttpTransport *t, const char *origin);
/* No answer and no piece of a stream from this origin comes before that time (loop_now()); nothing is lost.
 * Calls made before are meant, too. */
void http_inproc_hold(HttpTransport *t, const char *origin, usec_t until_usec);
/* What http_transport_set_immediate() was told last. */
bool http_inproc_is_immediate(const HttpTransport *t);
/* For invariants: calls under way. */
size_t http_inproc_pending(const HttpTransport *t);
