/* SPDX-License-Identifier: Apache-2.0 */
#include "http-face.h"

#include "listen-address.h"
#include "string-util.h"

#define REQUEST_MAX_BYTES 4096u
/* An object of the largest size that the API server stores, in a review of it. */
#define WEBHOOK_MAX_BYTES (3u << 20)

/* A coordinator with a view of 5,000 nodes takes 260 MiB of its limit of 512 MiB, 512 connections with TLS
 * some 50 MiB, and the tree of one review of 3 MiB some 100 MiB while it is read. The bound is 64 KiB per
 * connection: if 512 connections use it up, any smaller review displaces a larger body. */
#define WEBHOOK_MAX_BODIES_BYTES (32u << 20)
/* Half of the connections. One API server asks about as many nodes at once as its clients delete at once,
 * some hundred; all API servers may come from one address (konnectivity, a NAT). */
#define WEBHOOK_MAX_REQUESTS_PER_ADDRESS 256u
/* The tree of a review takes about 20 ms of processor time for each MiB. 16 MiB/s of one address are a third of
 * a processor, and 500 reviews a second of a Node with 50 images and its managed fields (32 KiB). The burst is a
 * thousand of them: all API servers may come from one address. */
#define WEBHOOK_ADDRESS_BURST_BYTES (32u << 20)
#define WEBHOOK_ADDRESS_BYTES_PER_SEC (16u << 20)
/* More than a review of a Node with 50 images and many labels has. */
#define WEBHOOK_SMALL_BYTES (128u << 10)
/* A TLS handshake takes about a millisecond of processor time. An API server keeps 25 idle connections and
 * opens one for each further review that it sends at the same time. */
#define WEBHOOK_ADDRESS_BURST_CONNECTIONS 1024u
#define WEBHOOK_ADDRESS_CONNECTIONS_PER_SEC 200u
#define WEBHOOK_MAX_TURN_BYTES (1u << 20)
/* The API server gives up after 3 s, a probe after 1 s, Prometheus after 10 s; their requests are complete
 * in milliseconds. */
#define REQUEST_TIMEOUT_USEC (5 * USEC_PER_SEC)

static const HttpServerOptions limits[_HTTP_FACE_MAX] = {
        [HTTP_FACE_METRICS] = { .max_connections = 32, .idle_timeout_usec = USEC_PER_MINUTE },
        [HTTP_FACE_HEALTH] = { .max_connections = 32, .idle_timeout_usec = 5 * USEC_PER_SEC },
        [HTTP_FACE_WEBHOOK] = { .max_connections = 512,
                                .idle_timeout_usec = 100 * USEC_PER_SEC,
                                .max_requests_per_address = WEBHOOK_MAX_REQUESTS_PER_ADDRESS,
                                .max_body_bytes = WEBHOOK_MAX_BYTES,
                                .max_bodies_bytes = WEBHOOK_MAX_BODIES_BYTES,
                                .max_turn_bytes = WEBHOOK_MAX_TURN_BYTES,
                                .per_address = { .burst_bytes = WEBHOOK_ADDRESS_BURST_BYTES,
                                                 .bytes_per_sec = WEBHOOK_ADDRESS_BYTES_PER_SEC,
                                                 .small_body_bytes = WEBHOOK_SMALL_BYTES,
                                                 .burst_connections = WEBHOOK_ADDRESS_BURST_CONNECTIONS,
                                                 .connections_per_sec = WEBHOOK_ADDRESS_CONNECTIONS_PER_SEC },
                                .drop_bodies = true },
};

/* Lifts the limits of one address, where everybody has the same address. */
static void lift_address_limits(HttpServerOptions *o) {
        o->max_requests_per_address = 0;
        o->per_address = (AddressLimits) { 0 };
}

static HttpServerOptions options_of(HttpFace face, const HttpFaceTls *tls) {
        HttpServerOptions o = limits[face];

        o.listen_fd = -EBADF;
        o.cert_pem = tls->certificate;
        o.key_pem = tls->key;
        o.client_ca_pem = tls->client_ca;
        o.on_headers = tls->on_headers;
        o.on_refused = tls->on_refused;
        o.displaces = true;
        o.request_timeout_usec = REQUEST_TIMEOUT_USEC;
        if (o.max_body_bytes == 0)
                o.max_body_bytes = REQUEST_MAX_BYTES;
        return o;
}

int http_face_succeed(Loop *l, HttpFace face, HttpServer *old, const HttpFaceTls *tls, http_handler_t handler, void *userdata,
                      HttpServer **ret) {
        HttpServerOptions o = options_of(face, tls);
        int r;

        if (http_server_max_requests_per_address(old) == 0)
                lift_address_limits(&o);
        o.listen_fd = http_server_dup_socket(old);
        r = o.listen_fd < 0 ? o.listen_fd : http_server_new(l, &o, handler, userdata, ret);
        if (r >= 0)
                http_server_retire(old);
        return r;
}

int http_face_new_tls(Loop *l, HttpFace face, const char *listen, const char *default_address, const HttpFaceTls *tls,
                      http_handler_t handler, void *userdata, HttpServer **ret) {
        const char *path = listen_address_unix_path(listen);
        _cleanup_free_ char *address = NULL;
        HttpServerOptions o = options_of(face, tls);
        int r;

        r = path ? listen_unix(path) : listen_address_parse(listen, default_address, &address, &o.port);
        if (r < 0)
                return r;
        if (path)
                o.listen_fd = r;
        else
                o.address = address;
        if (path || listen_address_is_loopback(address))
                lift_address_limits(&o);
        return http_server_new(l, &o, handler, userdata, ret);
}

int http_face_new(Loop *l, HttpFace face, const char *listen, const char *default_address,
                  http_handler_t handler, void *userdata, HttpServer **ret) {
        return http_face_new_tls(l, face, listen, default_address, &(HttpFaceTls){ 0 }, handler, userdata, ret);
}
