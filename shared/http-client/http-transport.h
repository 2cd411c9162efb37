/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * http-client/: everything remote goes through HttpTransport: Kubernetes, clouds, metadata. Implementations:
 * libcurl multi (http-curl.c); tests bring one without a network. Calls base, loop, log; called
 * by kube/, agent/, coordinator/.
 *
 * Five lanes that cannot starve each other: urgent (lease, cordon, conditions), bulk (lists, evictions,
 * cloud), watches, the machine's own metadata, asked every second or two, and receivers of notifications, which may be
 * anybody's and hang. With curl each lane is a multi
 * handle with its own connections, HTTP/2 where the server speaks it. Coalesced watches are apart from the
 * others there, so that these hear at once whatever goes on in those.
 *
 * A call is a slot: dropping it cancels, and no callback comes after. `done` comes exactly once, from the
 * loop, never inside http_call_start(). Nothing is retried here, no redirect is followed, and the proxy of
 * the environment is used only if the request says so.
 *
 * What goes wrong on a connection, and what comes of it (tests/h2 plays each against the curl transport):
 *
 *   the server refuses the stream (REFUSED_STREAM),   -ECONNRESET, maybe_sent. It was of no effect, but
 *   or says GOAWAY with a last stream below it        libcurl does not tell it from the next row. The
 *                                                     streams below the last one come to their answer.
 *   RST_STREAM, FIN, TCP reset, a body cut short      -ECONNRESET, maybe_sent: of effect or not. After a
 *                                                     RST_STREAM the other streams live on.
 *   GOAWAY while this stream may be served            the answer
 *   the limit of streams known, and reached           the call waits, or gets another connection
 *   the limit not known yet (a new connection)        up to 100 streams go out: what is above the limit is
 *                                                     refused, as above
 *   an idle connection was closed by the server       another is made, and nothing is lost. If that crosses
 *                                                     with the request: -ECONNRESET, maybe_sent.
 *   no answer: a stalled stream, a dead connection    -ETIMEDOUT, maybe_sent, at timeout_usec (or after
 *                                                     stall_usec of silence, answer_usec before the first
 *                                                     byte). The other streams live on, to their own
 *                                                     deadlines. Calls of this lane that begin later get a
 *                                                     new connection.
 *   bytes that nobody acknowledges (the peer or the   -ECONNRESET or -ETIMEDOUT of all streams there after
 *   path is gone)                                     6 s (urgent) or 15 s, if that is sooner;
 *                                                     of metadata at timeout_usec alone
 *   no answer to the connection's handshake           -ETIMEDOUT, not sent, at timeout_usec; calls that
 *                                                     waited for this connection get another
 *   a call is dropped while others use the            the server hears RST_STREAM with the next thing that
 *   connection                                        is said there
 *   1xx, trailers                                     passed over
 *
 * libcurl itself would send a request again, POST too, when its kept connection dies or its stream is
 * refused before the first byte of an answer. It is not let: one http_call_start() is at most one request at
 * the server.
 */

#include <stdbool.h>
#include <stddef.h>

#include "http-message.h"
#include "loop.h"

typedef enum HttpLane {
        HTTP_LANE_URGENT,
        HTTP_LANE_BULK,
        HTTP_LANE_WATCH,
        HTTP_LANE_METADATA,
        HTTP_LANE_NOTIFY,
        _HTTP_LANE_MAX,
} HttpLane;

typedef struct HttpTransport HttpTransport;
typedef struct HttpCall HttpCall;

/* How to speak TLS to one kind of server. Immutable and reference-counted: a rotated certificate is a new
 * object, which makes new connections while calls in flight keep the old one. */
typedef struct HttpTls HttpTls;

typedef struct HttpTlsConfig {
        const void *ca_pem; /* NULL: the system's */
        size_t ca_pem_size;
        const void *client_cert_pem; /* both or neither */
        size_t client_cert_pem_size;
        const void *client_key_pem;
        size_t client_key_pem_size;
        const char *server_name; /* NULL: from the URL */
        bool insecure;           /* verify nothing */
} HttpTlsConfig;

int http_tls_new(const HttpTlsConfig *config, HttpTls **ret); /* copies; keys are erased when freed */
HttpTls *http_tls_ref(HttpTls *t);
HttpTls *http_tls_unref(HttpTls *t);
DEFINE_FREEP(HttpTls, http_tls_unref);
const HttpTlsConfig *http_tls_config(const HttpTls *t);

/* Asked in the last moment before the request leaves (after connecting and queueing): false = it must not be
 * sent any more, and the call ends with -ESTALE. So no guarded call is sent once the lease has ended. */
typedef struct HttpGuard {
        bool (*may_send)(void *userdata);
        void *userdata; /* must outlive the call */
} HttpGuard;

typedef struct HttpRequest {
        HttpMethod method;
        const char *url; /* http:// or https:// */
        const HttpHeader *headers;
        size_t n_headers;
        const void *body;
        size_t body_size;
        HttpLane lane;
        bool coalesced; /* a watch of what changes all the time: see http_transport_set_immediate() */
        /* For the whole call; required; USEC_INFINITY only with on_data and stall_usec. */
        usec_t timeout_usec;
        /* -ETIMEDOUT when no byte came for so long; 0: no such limit. Until the first one: answer_usec, if that
         * is not 0; once for the connection, and again from when the request left: where thousands connect at
         * once, who gave up after both together would begin with a handshake again. */
        usec_t stall_usec, answer_usec;
        /* Of the body; required. With on_data it holds for what is not handed to it (64 kB if 0): the
         * consumer of a stream bounds its own frames. */
        size_t max_response_bytes;
        HttpTls *tls; /* for https; NULL: system CA, no client certificate */
        bool use_proxy;
        HttpGuard guard; /* may_send NULL: unguarded. It may not touch the transport or any call. */
        /* Stream: pieces of a 2xx body as they come (any other status is collected into the response as
         * usual). Returning < 0 ends the call with that error. */
        int (*on_data)(const void *data, size_t size, void *userdata);
        /* The headers of such an answer, once, before the first piece; borrowed. It may not free the
         * call. NULL: not asked for. */
        void (*on_headers)(const HttpHeader *headers, size_t n_headers, void *userdata);
} HttpRequest;

typedef struct HttpResponse {
        /* 0: an HTTP answer arrived whole. Else: -ETIMEDOUT, -ECONNREFUSED, -ECONNRESET (and every other way
         * a connection dies), -EHOSTUNREACH (no route, no such host), -EKEYREJECTED (TLS: not who it should
         * be), -EPROTO (not HTTP), -EMSGSIZE (body or headers too large), -ESTALE (guard), -ENOMEM, or what
         * on_data returned. On an error all but the times is empty. */
        int error;
        const char *error_text; /* for people; never NULL */
        bool maybe_sent;        /* error != 0: the server may have acted on the request. False is certain. */
        unsigned status;
        unsigned http_version; /* 10, 11, 20, 30; 0: nothing came over a network */
        const HttpHeader *headers;
        size_t n_headers;
        const char *body; /* NUL-terminated; "" for streams */
        size_t body_size;
        /* loop_now() when the request left (when the call began, if it never did), and when all was over. */
        usec_t started_usec, finished_usec;
} HttpResponse;

/* Response and request are borrowed for the callback. */
typedef void (*http_done_t)(const HttpResponse *response, void *userdata);

typedef struct HttpTransportOps {
        int (*start)(HttpTransport *t, const HttpRequest *request, http_done_t done, void *userdata,
                     HttpCall **ret);
        void (*cancel)(HttpCall *c);
        void (*set_immediate)(HttpTransport *t, bool is_immediate);
        void (*free)(HttpTransport *t);
} HttpTransportOps;

/* Implementations embed these first. */
struct HttpTransport {
        const HttpTransportOps *ops;
};
struct HttpCall {
        HttpTransport *transport;
};

/* Calls with a slot must be freed before; those without end unheard. */
HttpTransport *http_transport_free(HttpTransport *t);
DEFINE_FREEP(HttpTransport, http_transport_free);

/* Everything of the request is copied, but the guard's userdata. ret NULL: the call frees itself after
 * `done`. Only -EINVAL (no timeout, no size, not a URL) and -ENOMEM come back here; every other failure
 * comes to `done`. The slot stays the caller's after `done` and may be freed inside it (the response stays
 * valid until it returns). */
int http_call_start(HttpTransport *t, const HttpRequest *request, http_done_t done, void *userdata,
                    HttpCall **ret);
HttpCall *http_call_free(HttpCall *c);
DEFINE_FREEP(HttpCall, http_call_free);

/* Whether somebody waits for what coalesced watches bring. True: it is read as it comes, and at once what has
 * come. False, as at first: much of it may lie for a moment (HttpCurlOptions.rest_usec), to be read
 * together. No callback comes inside. */
void http_transport_set_immediate(HttpTransport *t, bool is_immediate);

/* Retry-After of a response in microseconds from wall_now_usec (seconds or a date); 0 if absent or not
 * understood. */
usec_t http_retry_after(const HttpResponse *r, usec_t wall_now_usec);
/* Date of a response: the server's wall clock, cut to its second, at some moment between started_usec and
 * finished_usec (RFC 9110 6.6.1; a cache between would make it older). 0 if absent or not understood. */
usec_t http_date(const HttpResponse *r);
