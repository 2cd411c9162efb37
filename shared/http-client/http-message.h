/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The words of HTTP that client and server share. */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

typedef enum HttpMethod {
        HTTP_GET,
        HTTP_HEAD,
        HTTP_POST,
        HTTP_PUT,
        HTTP_PATCH,
        HTTP_DELETE,
        _HTTP_METHOD_MAX,
        _HTTP_METHOD_INVALID = -EINVAL,
} HttpMethod;

const char *http_method_to_string(HttpMethod m);
HttpMethod http_method_from_string(const char *s);

typedef struct HttpHeader {
        const char *name;
        const char *value;
} HttpHeader;

/* The value of the first header of that name (any case), or NULL. */
const char *http_header_find(const HttpHeader *headers, size_t n_headers, const char *name);
/* Array and texts in one allocation: free() it. *ret is NULL for none. 0 or -ENOMEM. */
int http_headers_copy(const HttpHeader *headers, size_t n_headers, HttpHeader **ret);

/* A request and its answer, as the real server (http-server/) and the in-process transport hand them to a
 * handler. The handler answers now or later, whole or as a stream. Everything of the request is borrowed until
 * the exchange ends. */
typedef struct HttpExchange HttpExchange;

typedef struct HttpExchangeOps {
        /* The whole answer; the exchange is gone afterwards. */
        void (*reply)(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                      const void *body, size_t body_size);
        /* Status and headers of an answer whose body follows in pieces. */
        void (*stream_begin)(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers);
        void (*stream_data)(HttpExchange *x, const void *data, size_t size);
        /* Ends the body; `clean` false: the connection breaks in the middle. The exchange is gone
         * afterwards. */
        void (*stream_end)(HttpExchange *x, bool clean);
} HttpExchangeOps;

/* Answers whole, with a NUL-terminated body. */
void http_reply_text(HttpExchange *x, unsigned status, const char *content_type, const char *body);

struct HttpExchange {
        const HttpExchangeOps *ops;
        HttpMethod method;
        const char *path;  /* undecoded, without query: "/api/v1/nodes" */
        const char *query; /* undecoded, without '?'; "" if none */
        const HttpHeader *headers;
        size_t n_headers;
        const void *body;
        size_t body_size;
        const char *client_identity; /* server: subject of the verified client certificate as "CN=..,O=..";
                                        else NULL */
        const char *client_address; /* server: "192.0.2.1", "2001:db8::1", "unix" (a unix socket); NULL: not known */
        /* Called if the client went away (cancelled, cut) before the answer was complete; the exchange is
         * gone when it returns. The handler sets it when it keeps the exchange. */
        void (*on_gone)(HttpExchange *x, void *userdata);
        void *userdata;
};

typedef void (*http_handler_t)(HttpExchange *x, void *userdata);
