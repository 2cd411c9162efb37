/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <errno.h>

#include "http-transport.h"

static inline int refusing_transport_start(HttpTransport *t, const HttpRequest *request, http_done_t done, void *userdata,
                                           HttpCall **ret) {
        return -ENOMEM;
}

/* Initializer of a transport on which no request can begin. */
#define REFUSING_TRANSPORT { &(const HttpTransportOps){ .start = refusing_transport_start } }
