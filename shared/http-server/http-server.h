/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * http-server/: libmicrohttpd in the loop's sd-event (epoll fd as io source, one timer from
 * MHD_get_timeout). Serves metrics and health (http-face.h), later the webhook; the fake cluster's real
 * face in tests. HTTP/1.1.
 */

#include <stddef.h>
#include <stdint.h>

#include "http-message.h"
#include "loop.h"

typedef struct HttpServer HttpServer;

typedef struct HttpServerOptions {
        const char *address;            /* "127.0.0.1", "::1"; NULL with listen_fd */
        uint16_t port;                  /* 0: any; see http_server_port() */
        int listen_fd;                  /* >= 0: taken over, address and port ignored; -EBADF else */
        const char *cert_pem, *key_pem; /* both: HTTPS */
        /* HTTPS: ask for client certificates of this CA. Without one, or with one of another CA, a client is
         * let in without an identity. */
        const char *client_ca_pem;
        size_t max_body_bytes;    /* larger: 413 before the handler; required */
        unsigned max_connections; /* 0: 64. Further ones wait to be accepted, or see on_refused */
        /* Of one client's address; further ones are closed at once. 0: as many as max_connections. Clients
         * of a unix socket have no address, and no such limit. */
        unsigned max_per_address;
        usec_t idle_timeout_usec; /* of a connection; 0: 60 s; USEC_INFINITY: none */
        /* So long a connection lives, whatever goes on there: one that sends a byte now and then is never
         * idle. 0: for ever */
        usec_t max_age_usec;
        /* For clients that had rather be turned away than wait: each beyond max_connections is closed at once,
         * and this is told of it, with the handler's userdata. It may not touch the server. NULL: they wait. */
        void (*on_refused)(void *userdata);
} HttpServerOptions;

/* The PEM texts are copied; a rotated certificate is a new server on the same socket (http_server_dup_socket()). -EINVAL (options), -EIO (the library: a
 * certificate it cannot read), or the errno of socket(), bind(), listen(). */
int http_server_new(Loop *l, const HttpServerOptions *options, http_handler_t handler, void *userdata,
                    HttpServer **ret);
/* Open exchanges end as if the client had gone. Not from inside a handler. */
HttpServer *http_server_free(HttpServer *s);
DEFINE_FREEP(HttpServer, http_server_free);
uint16_t http_server_port(const HttpServer *s);
/* The socket that it listens on, for a successor's listen_fd: nobody who connects meanwhile is refused. -EBADF: it is retired. */
int http_server_dup_socket(const HttpServer *s);
/* Accepts no connection any more; those that it has end after their next answer, or when they have been idle for too long. */
void http_server_retire(HttpServer *s);
size_t http_server_n_connections(const HttpServer *s);
