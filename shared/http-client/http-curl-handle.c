/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "alloc-util.h"
#include "http-curl-internal.h"

/*
 * Easy handles that wait for their next call. Making one costs more than a call, so a few are kept, as
 * fresh; and the last call that asked plainly (GET, without TLS) is kept whole: its handle, which goes on
 * pointing to it, its headers, its buffers. Who polls asks the same again, and what a poll costs is the
 * memory that it touches: after a second of sleep, nothing of it is in a cache any more. Its URL is given to
 * libcurl in parts, which would take a text apart, and put it together, for each poll.
 *
 * A few of those that asked by TLS are kept as they are, too. Calls to one API server differ in method, URL
 * and body; the other 40 options, and the headers with the token, are the same for thousands of evictions.
 */

bool curl_request_has_body(const HttpRequest *q) {
        return q->body_size > 0 || q->method == HTTP_POST || q->method == HTTP_PUT ||
               q->method == HTTP_PATCH;
}

bool curl_request_is_plain(const HttpRequest *q) {
        return q->method == HTTP_GET && q->body_size == 0 && startswith(q->url, "http://") &&
               !q->use_proxy && !q->on_data && q->max_response_bytes <= CURL_SMALL_RESPONSE_MAX;
}

static CurlReady take_ready_at(CurlTransport *t, size_t i) {
        CurlReady h = t->ready_handles[i];

        t->n_ready_handles--;
        memmove(t->ready_handles + i, t->ready_handles + i + 1, (t->n_ready_handles - i) * sizeof(h));
        return h;
}

/* As fresh: it looks at neither its headers nor its keys any more. */
static CURL *take_oldest_ready(CurlTransport *t) {
        CurlReady h = take_ready_at(t, 0);

        curl_easy_reset(h.easy);
        curl_slist_free_all(h.headers);
        http_tls_unref(h.tls);
        return h.easy;
}

CURL *curl_transport_take_handle(CurlTransport *t) {
        if (t->n_idle > 0)
                return t->idle[--t->n_idle];
        return t->n_ready_handles == CURL_HANDLES_MAX ? take_oldest_ready(t) : curl_easy_init();
}

void curl_transport_return_handle(CurlTransport *t, CURL *easy) {
        if (t->n_idle + t->n_ready_handles == CURL_HANDLES_MAX) {
                curl_easy_cleanup(easy);
                return;
        }
        curl_easy_reset(easy);
        t->idle[t->n_idle++] = easy;
}

/* -- the one that asked before -------------------------------------------------------------------------- */

void curl_transport_keep_call(CurlTransport *t, CurlCall *c) {
        if (t->kept) {
                curl_transport_return_handle(t, TAKE_PTR(t->kept->easy));
                curl_call_free(t->kept);
        }
        t->kept = c;
}

/* The line "Name: value" of this header. */
static bool line_is_header(const char *line, const HttpHeader *h) {
        const char *p = startswith(line, h->name);

        p = p ? startswith(p, ": ") : NULL;
        return p && streq(p, h->value);
}

/* The first lines are these headers; what follows them, or NULL; false: they are not. */
static bool lines_are_headers(const struct curl_slist *line, const HttpRequest *q,
                              const struct curl_slist **ret_rest) {
        for (size_t i = 0; i < q->n_headers; i++, line = line->next)
                if (!line || !line_is_header(line->data, &q->headers[i]))
                        return false;
        *ret_rest = line;
        return true;
}

static bool call_asks(const CurlCall *c, const HttpRequest *q) {
        const struct curl_slist *rest;

        return streq(c->plain_url, q->url) && lines_are_headers(c->headers, q, &rest) && !rest;
}

CurlCall *curl_transport_take_kept(CurlTransport *t, const HttpRequest *q) {
        return t->kept && call_asks(t->kept, q) ? TAKE_PTR(t->kept) : NULL;
}

/* -- those that asked by TLS ---------------------------------------------------------------------------- */

bool curl_request_is_common(const HttpRequest *q) {
        return startswith(q->url, "https://") && !q->use_proxy && !q->on_data && q->method != HTTP_HEAD &&
               !(q->tls && http_tls_config(q->tls)->server_name);
}

/* Behind the caller's headers stand those that keep libcurl from its own: as many as the call has need of,
 * which follows from its method, body and headers. */
static bool ready_is_like(const CurlReady *h, const HttpRequest *q) {
        const struct curl_slist *rest;

        return h->method == q->method && h->body == curl_request_has_body(q) && h->tls == q->tls &&
               lines_are_headers(h->headers, q, &rest) && h->body == !!rest &&
               (!rest || streq(rest->data, "Expect:"));
}

CURL *curl_transport_take_ready(CurlTransport *t, const HttpRequest *q, struct curl_slist **ret_headers) {
        for (size_t i = t->n_ready_handles; i > 0; i--)
                if (ready_is_like(t->ready_handles + i - 1, q)) {
                        CurlReady h = take_ready_at(t, i - 1);

                        http_tls_unref(h.tls); /* the call has a reference */
                        *ret_headers = h.headers;
                        return h.easy;
                }
        return NULL;
}

void curl_transport_keep_ready(CurlTransport *t, CURL *easy, const CurlCall *like,
                               struct curl_slist *headers) {
        if (t->n_idle + t->n_ready_handles == CURL_HANDLES_MAX)
                curl_easy_cleanup(t->n_idle > 0 ? t->idle[--t->n_idle] : take_oldest_ready(t));
        /* The call's. */
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
        if (like->has_body)
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
        t->ready_handles[t->n_ready_handles++] = (CurlReady){
                .easy = easy,
                .tls = http_tls_ref(like->tls),
                .headers = headers,
                .method = like->method,
                .body = like->has_body,
        };
}

void curl_transport_free_handles(CurlTransport *t) {
        while (t->n_ready_handles > 0)
                curl_easy_cleanup(take_oldest_ready(t));
        while (t->n_idle > 0)
                curl_easy_cleanup(t->idle[--t->n_idle]);
        if (t->kept) {
                curl_easy_cleanup(TAKE_PTR(t->kept->easy));
                curl_call_free(TAKE_PTR(t->kept));
        }
        t->origin = mfree(t->origin);
}
