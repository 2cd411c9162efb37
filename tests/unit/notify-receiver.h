/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What [Notify] Url= leads to in tests: it writes down each request, and answers as the test wants. Included by one file
 * of a program. */

#include "http-inproc.h"
#include "json.h"
#include "string-util.h"

#define RECEIVER_ORIGIN "https://hooks.example"
#define RECEIVER_URL RECEIVER_ORIGIN "/services/T0/s3cr3t"

typedef struct Receiver {
        unsigned status; /* of answers; 0: there is none, ever */
        const char *retry_after;
        StrBuf got; /* "NODE PHASE STATUS\n" of each request */
        StrBuf last; /* its body */
        char key[64], signature[80], timestamp[32], type[64], authorization[64];
        size_t n, n_open, n_open_max;
} Receiver;

static void receiver_keep(const HttpExchange *x, const char *name, char *to, size_t size) {
        (void) snprintf(to, size, "%s", strempty(http_header_find(x->headers, x->n_headers, name)));
}

static void on_receiver_gone(HttpExchange *x, void *userdata) {
        Receiver *r = userdata;

        r->n_open--;
}

static void receiver_handle(HttpExchange *x, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Receiver *r = userdata;
        const char *node = "?";

        if (json_parse(x->body, x->body_size, x->body_size, &doc, NULL) >= 0)
                node = json_string_or_null(json_get(json_root(doc), "node")) ?: "?";
        r->n++;
        strbuf_addf(&r->got, "%s %s %u\n", node, strempty(http_header_find(x->headers, x->n_headers, "X-Vesper-Phase")), r->status);
        strbuf_truncate(&r->last, 0);
        strbuf_add_n(&r->last, x->body, x->body_size);
        receiver_keep(x, "Idempotency-Key", r->key, sizeof(r->key));
        receiver_keep(x, "X-Vesper-Signature", r->signature, sizeof(r->signature));
        receiver_keep(x, "X-Vesper-Timestamp", r->timestamp, sizeof(r->timestamp));
        receiver_keep(x, "Content-Type", r->type, sizeof(r->type));
        receiver_keep(x, "Authorization", r->authorization, sizeof(r->authorization));
        if (r->status == 0) {
                x->on_gone = on_receiver_gone;
                x->userdata = r;
                if (++r->n_open > r->n_open_max)
                        r->n_open_max = r->n_open;
        } else
                x->ops->reply(x, r->status, &(HttpHeader){ "Retry-After", r->retry_after }, r->retry_after ? 1 : 0, "", 0);
}

static void receiver_done(Receiver *r) {
        strbuf_done(&r->got);
        strbuf_done(&r->last);
}
