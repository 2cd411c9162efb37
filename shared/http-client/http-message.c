/* SPDX-License-Identifier: Apache-2.0 */
#include "http-message.h"

#include <string.h>
#include <strings.h>

#include "string-util.h"

static const char *const method_table[_HTTP_METHOD_MAX] = {
        [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD",   [HTTP_POST] = "POST",
        [HTTP_PUT] = "PUT", [HTTP_PATCH] = "PATCH", [HTTP_DELETE] = "DELETE",
};

const char *http_method_to_string(HttpMethod m) {
        return m >= 0 && m < _HTTP_METHOD_MAX ? method_table[m] : NULL;
}

HttpMethod http_method_from_string(const char *s) {
        if (s)
                for (size_t i = 0; i < ELEMENTSOF(method_table); i++)
                        if (streq(method_table[i], s))
                                return (HttpMethod) i;
        return _HTTP_METHOD_INVALID;
}

const char *http_header_find(const HttpHeader *headers, size_t n_headers, const char *name) {
        for (size_t i = 0; i < n_headers; i++)
                if (strcasecmp(headers[i].name, name) == 0)
                        return headers[i].value;
        return NULL;
}

int http_headers_copy(const HttpHeader *headers, size_t n_headers, HttpHeader **ret) {
        size_t need = n_headers * sizeof(HttpHeader);
        HttpHeader *copy;
        char *p;

        *ret = NULL;
        if (n_headers == 0)
                return 0;

        for (size_t i = 0; i < n_headers; i++)
                need += strlen(headers[i].name) + strlen(headers[i].value) + 2;
        copy = malloc(need);
        if (!copy)
                return -ENOMEM;

        p = (char *) (copy + n_headers);
        for (size_t i = 0; i < n_headers; i++) {
                copy[i].name = p;
                p = stpcpy(p, headers[i].name) + 1;
                copy[i].value = p;
                p = stpcpy(p, headers[i].value) + 1;
        }

        *ret = copy;
        return 0;
}

void http_reply_text(HttpExchange *x, unsigned status, const char *content_type, const char *body) {
        const HttpHeader header = { "Content-Type", content_type };

        x->ops->reply(x, status, &header, 1, body, strlen(body));
}
