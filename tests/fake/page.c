/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "fake-json.h"
#include "string-util.h"

typedef struct Exchange {
        HttpExchange x;
        Page page;
} Exchange;

static void on_reply(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                     const void *body, size_t body_size) {
        Exchange *e = CONTAINER_OF(x, Exchange, x);
        const char *type = http_header_find(headers, n_headers, "Content-Type");

        e->page = (Page){ .status = status,
                          .type = MUST(strdup(strempty(type))),
                          .body = MUST(memdup_str(body, body_size)) };
}

Page page_ask(http_handler_t handler, void *userdata, HttpMethod method, const char *path) {
        static const HttpExchangeOps ops = { .reply = on_reply };
        Exchange e = { .x = { .ops = &ops, .method = method, .path = path, .query = "" } };

        handler(&e.x, userdata);
        assert(e.page.body);
        return e.page;
}

double page_sum(const Page *p, const char *family) {
        double sum = 0;

        for (const char *line = p->body; line; line = strchr(line, '\n')) {
                const char *rest = startswith(line += *line == '\n', family);

                if (rest && (*rest == '{' || *rest == ' '))
                        sum += strtod(rest + strcspn(rest, " "), NULL);
        }
        return sum;
}

void page_done(Page *p) {
        free(p->type);
        free(p->body);
}
