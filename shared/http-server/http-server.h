/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * http-server/: libmicrohttpd in the loop's sd-event (epoll fd as io source, one timer from
 * MHD_get_timeout). Serves metrics, health and the webhook (http-face.h), and in tests the fake cluster.
 * HTTP/1.1.
 */

#include <stddef.h>
#include <stdint.h>

#include "address-rates.h"
#include "http-message.h"
#include "loop.h"

typedef struct HttpServer HttpServer;

/* How a limit kept a client from its answer. */
typedef enum HttpRefusal {
        HTTP_REFUSED_CONNECTION, /* closed at once: every other connection waits for the handler */
        HTTP_REFUSED_ADDRESS,    /* 503: max_requests_per_address */
        HTTP_REFUSED_BODIES,     /* 503: max_bodies_bytes, and no larger body gives way */
        HTTP_REFUSED_SIZE,       /* 413: max_body_bytes */
        HTTP_REFUSED_RATE,       /* 503: per_address.burst_bytes, bytes_per_sec */
        HTTP_REFUSED_HANDSHAKES, /* closed at once: per_address.burst_connections, connections_per_sec */
        HTTP_REFUSED_SLOW,       /* cut: request_timeout_usec */
        HTTP_REFUSED_DISPLACED,  /* cut, so that another client gets its place or the bytes of its body */
        _HTTP_REFUSAL_MAX,
} HttpRefusal;

/* See HttpServerOptions.on_headers. */
typedef unsigned (*http_headers_fn)(const HttpExchange *x, void *userdata, const char **ret_text);

/* See HttpServerOptions.on_refused. */
typedef void (*http_refused_fn)(HttpRefusal why, const char *address, void *userdata);

typedef struct HttpServerOptions {
        const char *address;            /* "127.0.0.1", "::1"; NULL with listen_fd */
        uint16_t port;                  /* 0: any; see http_server_port() */
        int listen_fd;                  /* >= 0: taken over, address and port ignored; -EBADF else */
        const char *cert_pem, *key_pem; /* both: HTTPS */
        /* HTTPS: ask for client certificates of this CA. Without one, or with one of another CA, a client is
         * let in without an identity. */
        const char *client_ca_pem;
        /* Larger: 413 before the handler; required. No byte of such a body is kept. */
        size_t max_body_bytes;
        /* Memory of all bodies together, as reserved (by Content-Length, or as a body in chunks grows):
         * while the bound is reached, larger bodies that are not complete give way to smaller ones, and
         * bodies of the address that has most to those of another (connection-table.h); where none does, 503
         * before the body is read. 0: no bound. */
        size_t max_bodies_bytes;
        /* The handler does not read the body after it returns, so it is freed then. */
        bool drop_bodies;
        unsigned max_connections; /* 0: 64. Further ones wait to be accepted, or see displaces */
        /* Further connections displace those that are there (connection-table.h), and are closed at once
         * only where all of these wait for the handler. */
        bool displaces;
        /* Maximum number of requests of one address that are not answered; 503 beyond it. 0: no limit.
         * Clients of a unix socket count as one address. */
        unsigned max_requests_per_address;
        /* Rates of each address. 503 for a body beyond them; a connection beyond them is closed before its TLS
         * handshake. max_body_bytes may be half of burst_bytes at most. */
        AddressLimits per_address;
        /* Maximum number of bytes of bodies that the handler gets in one turn: from one descriptor that the
         * loop dispatches to the next. A turn takes its first body whatever its size. Further requests wait
         * for the next turns, in the order in which they were complete. 0: no bound. */
        size_t max_turn_bytes;
        usec_t idle_timeout_usec; /* of a connection without traffic; 0: 60 s; USEC_INFINITY: none */
        /* A request is cut if it is not complete so long after its first byte, or after the beginning of its
         * connection: the TLS handshake counts, and so does silence before the first request. A client that
         * sends a byte now and then gains nothing by it. While a client reads an answer, and between two
         * requests, idle_timeout_usec is the limit, whatever is sent. 0: no such limits. */
        usec_t request_timeout_usec;
        /* Looks at a request whose body has not come: 0, or the status with which it is refused before a
         * byte of the body is kept, and *ret_text (borrowed) as the body of the answer. NULL: every request
         * is read. */
        http_headers_fn on_headers;
        /* Called for each refusal, with the handler's userdata; it may not touch the server. address: as
         * HttpExchange.client_address, borrowed. NULL: refusals are not reported. */
        http_refused_fn on_refused;
} HttpServerOptions;

/* The PEM texts are copied; a rotated certificate is a new server on the same socket (http_server_dup_socket()). -EINVAL (options), -EIO (the library: a
 * certificate it cannot read), or the errno of socket(), bind(), listen(). */
int http_server_new(Loop *l, const HttpServerOptions *options, http_handler_t handler, void *userdata,
                    HttpServer **ret);
/* Open exchanges end as if the client had gone. Not from inside a handler. */
HttpServer *http_server_free(HttpServer *s);
DEFINE_FREEP(HttpServer, http_server_free);
uint16_t http_server_port(const HttpServer *s);
unsigned http_server_max_requests_per_address(const HttpServer *s); /* HttpServerOptions.max_requests_per_address */
/* The socket that it listens on, for a successor's listen_fd: nobody who connects meanwhile is refused. -EBADF: it is retired. */
int http_server_dup_socket(const HttpServer *s);
/* Accepts no connection any more; those that it has end after their next answer, or when they have been idle for too long. */
void http_server_retire(HttpServer *s);
size_t http_server_n_connections(const HttpServer *s);
size_t http_server_body_bytes(const HttpServer *s); /* see max_bodies_bytes */
