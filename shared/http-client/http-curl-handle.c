/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "alloc-util.h"
#include "http-curl-internal.h"

/*
 * Easy handles that wait for their next call. Making one costs more than a call, so a few are kept, as
 * fresh; and the last that asked plainly (GET, without TLS) is kept as it is, with its URL and headers. Who
 * polls asks the same again, and setting up the question was a quarter of what a poll spent outside libcurl.
 */

bool curl_request_is_plain(const HttpRequest *q) {
        return q->method == HTTP_GET && q->body_size == 0 && startswith(q->url, "http://") &&
               !q->use_proxy && !q->on_data && q->max_response_bytes <= CURL_SMALL_RESPONSE_MAX;
}

CURL *curl_transport_take_handle(CurlTransport *t) {
        return t->n_idle > 0 ? t->idle[--t->n_idle] : curl_easy_init();
}

void curl_transport_return_handle(CurlTransport *t, CURL *easy) {
        if (t->n_idle == CURL_IDLE_HANDLES_MAX) {
                curl_easy_cleanup(easy);
                return;
        }
        curl_easy_reset(easy);
        t->idle[t->n_idle++] = easy;
}

/* -- the one that asked before -------------------------------------------------------------------------- */

static void kept_forget_question(CurlKept *k) {
        k->url = mfree(k->url);
        curl_slist_free_all(TAKE_PTR(k->headers));
}

void curl_transport_keep_handle(CurlTransport *t, CURL *easy, char *url, struct curl_slist *headers) {
        CurlKept *k = &t->kept;

        if (k->easy)
                curl_transport_return_handle(t, k->easy);
        kept_forget_question(k);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL); /* the call's */
        *k = (CurlKept){ .easy = easy, .url = url, .headers = headers };
}

/* The line "Name: value" of this header. */
static bool line_is_header(const char *line, const HttpHeader *h) {
        const char *p = startswith(line, h->name);

        p = p ? startswith(p, ": ") : NULL;
        return p && streq(p, h->value);
}

static bool kept_asks(const CurlKept *k, const HttpRequest *q) {
        const struct curl_slist *line = k->headers;

        if (!k->easy || !streq(k->url, q->url))
                return false;
        for (size_t i = 0; i < q->n_headers; i++, line = line->next)
                if (!line || !line_is_header(line->data, &q->headers[i]))
                        return false;
        return !line;
}

CURL *curl_transport_take_kept(CurlTransport *t, const HttpRequest *q, char **ret_url,
                               struct curl_slist **ret_headers) {
        CurlKept *k = &t->kept;

        if (!kept_asks(k, q))
                return NULL;
        *ret_url = TAKE_PTR(k->url);
        *ret_headers = TAKE_PTR(k->headers);
        return TAKE_PTR(k->easy);
}

void curl_transport_free_handles(CurlTransport *t) {
        while (t->n_idle > 0)
                curl_easy_cleanup(t->idle[--t->n_idle]);
        if (t->kept.easy)
                curl_easy_cleanup(TAKE_PTR(t->kept.easy));
        kept_forget_question(&t->kept);
}
