/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between http-curl.c (lanes, sockets, dispatch), http-curl-call.c (one call), http-curl-request.c (what its handle is
 * told of the request) and http-curl-handle.c (easy handles between two calls); for nobody else. */

#include <curl/curl.h>
#include <systemd/sd-event.h>

#include "http-curl.h"
#include "list.h"
#include "string-util.h"
#include "token-bucket.h"

#define CURL_HANDLES_MAX 16u /* that wait for a call, fresh or not */
#define CURL_SMALL_RESPONSE_MAX (256u * 1024)

typedef struct CurlTransport CurlTransport;
typedef struct CurlCall CurlCall;

/* One multi handle: its own connections, sockets and timer. Made when the first call comes; retired when one
 * of its calls was not answered in time, and gone when the last of its calls is. */
typedef struct CurlLane {
        CurlTransport *t;
        HttpLane lane;
        bool coalesced; /* of watches, those that may rest */
        CURLM *multi;
        Timer *timer;
        List sockets;      /* of CurlSocket: of all open connections, idle ones too, and the resolver's */
        Timer *rested;     /* coalesced: when the sockets that rest are read again */
        TokenBucket reads; /* coalesced: those that may come at once */
        size_t n_bytes;    /* of bodies, brought by the reading under way */
        size_t n_calls;    /* in the multi handle */
        size_t n_https;    /* of them */
        ListNode retired;
        bool is_retired;
} CurlLane;

/* A handle whose last call was by TLS and came to its answer, with all that such calls have in common. */
typedef struct CurlReady {
        CURL *easy;
        HttpTls *tls; /* may be NULL */
        struct curl_slist *headers;
        HttpMethod method;
        bool body;
} CurlReady;

struct CurlTransport {
        HttpTransport transport;
        Loop *loop;
        Log *log;
        char *user_agent;
        unsigned max_connections_per_host, max_bulk_streams;
        bool keep_tls_buffers, is_immediate;
        usec_t rest_usec;
        CurlLane *lanes[_HTTP_LANE_MAX]; /* for new calls; NULL: none yet */
        CurlLane *coalesced;               /* so, too */
        List retired;                    /* lanes that take no new calls */
        List calls;
        CURL *idle[CURL_HANDLES_MAX]; /* easy handles to use again */
        size_t n_idle;
        CurlReady ready_handles[CURL_HANDLES_MAX]; /* the one used last comes last */
        size_t n_ready_handles;
        CurlCall *kept; /* the last plain one, over and gone for its owner; NULL: none */
        char *origin;   /* "https://host:port", the last that libcurl could read; NULL: none yet */
        List ready;     /* calls that have something for their owner */
        Timer *ready_timer;
        bool dispatching, dead;
};

struct CurlCall {
        HttpCall call;
        CurlTransport *t;
        CurlLane *lane;
        CURL *easy; /* NULL once it is over, or never began; of a plain call kept beyond */
        ListNode calls, ready;
        bool in_ready, owned, in_callback, freed;
        bool completed;   /* by libcurl */
        bool finished;    /* `error` says how */
        bool sent;        /* the request may have left */
        unsigned n_begun; /* of libcurl's attempts, by a connection */
        bool https;       /* others may share its connection */
        bool common;      /* its handle may serve the next call that is like it, but for URL and body */
        bool has_body;
        HttpMethod method;
        char *plain_url;        /* of a plain call, which is kept when it has come to its answer */
        CURLU *plain_parts;     /* of it, which the handle reads */
        CurlLane *handles_lane; /* of a kept one: that the handle was told of */

        HttpGuard guard;
        HttpTls *tls;
        struct curl_slist *headers, *connect_to;
        char *body; /* of the request */

        http_done_t done;
        int (*on_data)(const void *data, size_t size, void *userdata);
        void (*on_headers)(const HttpHeader *headers, size_t n_headers, void *userdata); /* NULL: told */
        void *userdata;
        Timer *deadline;
        usec_t deadline_usec, stall_usec, answer_usec, last_byte_usec, started_usec, finished_usec;
        size_t max_body_bytes;

        StrBuf response_headers; /* name, NUL, value, NUL, ... */
        size_t n_response_headers;
        bool headers_ended;
        bool heard;           /* something of the answer came */
        StrBuf response_body; /* of streams: what on_data has not seen yet */
        unsigned status, http_version;
        int error;
        const char *error_text;
        char curl_text[CURL_ERROR_SIZE];
};

/* An empty one, for the methods that come with one. */
bool curl_request_has_body(const HttpRequest *q);
/* Any proxy, body, stream or certificate makes a call one of its own. */
bool curl_request_is_plain(const HttpRequest *q);
/* An easy handle, fresh or as fresh; NULL on ENOMEM. */
CURL *curl_transport_take_handle(CurlTransport *t);
void curl_transport_return_handle(CurlTransport *t, CURL *easy);
/* A call that asked this plain question before, all set but what is the request's; NULL: there is none. */
CurlCall *curl_transport_take_kept(CurlTransport *t, const HttpRequest *q);
/* Takes a call that left its handle as it is. */
void curl_transport_keep_call(CurlTransport *t, CurlCall *c);
/* By TLS, and nothing is special about it. */
bool curl_request_is_common(const HttpRequest *q);
/* One that is set up for such a call, all but its URL, its body, and what is the call's own; NULL: there is
 * none. */
CURL *curl_transport_take_ready(CurlTransport *t, const HttpRequest *q, struct curl_slist **ret_headers);
/* Takes handle and headers; in place of the one that was not used for longest. */
void curl_transport_keep_ready(CurlTransport *t, CURL *easy, const CurlCall *like,
                               struct curl_slist *headers);
void curl_transport_free_handles(CurlTransport *t);
/* The owner will be told in this turn of dispatching, or in the next iteration. */
void curl_transport_make_ready(CurlTransport *t, CurlCall *c);
void curl_transport_dispatch(CurlTransport *t);
/* The lane for a new call. */
int curl_lane_open(CurlTransport *t, const HttpRequest *q, CurlLane **ret);
/* New calls get new connections from now on; those under way here go on. */
void curl_lane_retire(CurlLane *lane);
/* One call more; one less: the lane may be gone soon, not at once. */
void curl_lane_enter(CurlLane *lane, bool https);
void curl_lane_leave(CurlLane *lane, bool https);
/* A new connection of the lane, and the end of one. */
int curl_lane_add_connection(CurlLane *lane, int fd);
int curl_lane_close_connection(CurlLane *lane, int fd);

/* http-curl-request.c: the call's handle is told of the request. Each int: 0, -ENOMEM, -EINVAL for a URL that libcurl
 * cannot read. */
int curl_call_set_headers(CurlCall *c, const HttpRequest *q); /* in c->headers alone */
int curl_call_set_plain_url(CurlCall *c, const HttpRequest *q);
int curl_call_set_url(CurlCall *c, const HttpRequest *q);
void curl_call_set_tls(CurlCall *c);
void curl_call_set_body(CurlCall *c, const HttpRequest *q);
void curl_call_set_method(CurlCall *c, const HttpRequest *q); /* and the body */

int curl_call_start(HttpTransport *t, const HttpRequest *request, http_done_t done, void *userdata,
                    HttpCall **ret);
void curl_call_cancel(HttpCall *call);
void curl_call_destroy(CurlCall *c);
/* Of one that is kept. */
void curl_call_free(CurlCall *c);
/* libcurl is done with it. */
void curl_call_complete(CurlCall *c, CURLcode result);
/* Calls on_data and done as there is cause; the call may be gone afterwards. */
void curl_call_deliver(CurlCall *c);
