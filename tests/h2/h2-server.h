/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A small HTTP/2 server that misbehaves as it is told: nghttp2 over TLS (ALPN h2) on loopback, in the test's
 * own loop, so that nothing happens between two iterations. It knows nothing of Kubernetes. Each request
 * that has arrived whole goes to on_request, which does to its stream or its connection whatever the test
 * wants, at once or later. Whatever a handler does to the connection it is called for happens after the
 * handler has returned.
 */

#include "list.h"
#include "loop.h"
#include "string-util.h"

typedef struct H2Server H2Server;
typedef struct H2Connection H2Connection;

/* One request and its answer. Gone when the stream is closed: find it again by h2_server_find(). */
typedef struct H2Stream {
        H2Connection *connection;
        ListNode streams;
        int32_t id;
        unsigned number; /* of the request at this server, from 1 */
        char *method, *path;
        StrBuf body;

        StrBuf out; /* what is still to be sent */
        size_t out_at;
        uint64_t filler; /* bytes of 'x' to follow `out` */
        bool ended, begun, with_trailers, resets;
        bool ends_apart; /* by an empty frame, as answers of Go's server that are larger than 4 kB; for a
                            test to set */
        uint32_t reset_code;
} H2Stream;

typedef void (*h2_request_t)(H2Stream *s, void *userdata);

typedef struct H2ServerOptions {
        const char *cert_pem, *key_pem;
        uint32_t max_concurrent_streams; /* 0: 250, as kube-apiserver grants */
        uint32_t upload_window;          /* of each stream; 0: 65535 */
        usec_t settings_delay_usec;      /* the server's first word comes so late */
} H2ServerOptions;

typedef struct H2ServerStats {
        unsigned accepted, open; /* connections */
        unsigned requests;       /* that arrived whole */
        unsigned most_streams;   /* open at once on one connection */
        unsigned client_resets;  /* RST_STREAM by the client */
        unsigned pongs;          /* PINGs answered by the client */
} H2ServerStats;

H2Server *h2_server_new(Loop *l, const H2ServerOptions *o, h2_request_t on_request, void *userdata);
H2Server *h2_server_free(H2Server *s);
DEFINE_FREEP(H2Server, h2_server_free);
uint16_t h2_server_port(const H2Server *s);
H2ServerStats h2_server_stats(const H2Server *s);
/* The stream of that request if it is still open, or NULL. */
H2Stream *h2_server_find(H2Server *s, unsigned number);
/* The connection accepted as the n-th (from 1) if it is still open, or NULL. */
H2Connection *h2_server_connection(H2Server *s, unsigned number);
/* For new connections. */
void h2_server_set_max_streams(H2Server *s, uint32_t max);
/* The next so many connections are accepted by the kernel, and that is all that happens to them. */
void h2_server_freeze_next(H2Server *s, unsigned n);
void h2_server_set_delay(H2Server *s, usec_t settings_delay_usec);

/* -- one answer ----------------------------------------------------------------------------------------- */

void h2_stream_respond(H2Stream *s, unsigned status, const char *body);
/* In pieces: head (content_length < 0: not said), data, filler, end. extra: a further header, or NULL. */
void h2_stream_begin(H2Stream *s, unsigned status, int64_t content_length, const char *extra_name,
                     const char *extra_value);
void h2_stream_data(H2Stream *s, const char *text);
void h2_stream_fill(H2Stream *s, uint64_t n_bytes);
void h2_stream_end(H2Stream *s, bool with_trailers);
void h2_stream_inform(H2Stream *s, unsigned status);    /* 1xx */
void h2_stream_reset(H2Stream *s, uint32_t error_code); /* behind what was said before */

/* -- one connection ------------------------------------------------------------------------------------- */

typedef enum H2Close {
        H2_CLOSE_NOTIFY, /* TLS close_notify, FIN: as a server that shuts down */
        H2_CLOSE_FIN,    /* FIN alone */
        H2_CLOSE_RST,    /* what was still to be sent is lost */
} H2Close;

unsigned h2_connection_number(const H2Connection *c);
/* last_stream_id < 0: of the last request that came. */
void h2_connection_goaway(H2Connection *c, int32_t last_stream_id, uint32_t error_code);
/* What was said before goes out first. */
void h2_connection_close(H2Connection *c, H2Close how);
/* Neither reads nor writes any more: the socket stays, the kernel acknowledges, nobody answers. */
void h2_connection_freeze(H2Connection *c);
void h2_connection_thaw(H2Connection *c);
void h2_connection_ping(H2Connection *c);
void h2_connection_set_max_streams(H2Connection *c, uint32_t max);
