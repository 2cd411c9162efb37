/* SPDX-License-Identifier: Apache-2.0 */
#include "http-face.h"

#include "listen-address.h"
#include "string-util.h"

#define REQUEST_MAX_BYTES 4096u

static const HttpServerOptions limits[_HTTP_FACE_MAX] = {
        [HTTP_FACE_METRICS] = { .max_connections = 16, .max_per_address = 4 },
        [HTTP_FACE_HEALTH] = { .max_connections = 32,
                               .max_per_address = 8,
                               .idle_timeout_usec = 5 * USEC_PER_SEC,
                               .max_age_usec = 10 * USEC_PER_SEC },
};

int http_face_new(Loop *l, HttpFace face, const char *listen, const char *default_address,
                  http_handler_t handler, void *userdata, HttpServer **ret) {
        const char *path = listen_address_unix_path(listen);
        _cleanup_free_ char *address = NULL;
        HttpServerOptions o = limits[face];
        int r;

        o.listen_fd = -EBADF;
        o.max_body_bytes = REQUEST_MAX_BYTES;
        r = path ? listen_unix(path) : listen_address_parse(listen, default_address, &address, &o.port);
        if (r < 0)
                return r;
        if (path)
                o.listen_fd = r;
        else {
                o.address = address;
                if (listen_address_is_loopback(address))
                        o.max_per_address = 0;
        }
        return http_server_new(l, &o, handler, userdata, ret);
}
