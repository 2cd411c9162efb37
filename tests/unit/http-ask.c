/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <strings.h>

#include "cmocka-test.h"
#include "http-ask.h"
#include "string-util.h"
#include "strv.h"

#define ORIGIN "http://169.254.169.254"

void http_ask_init(HttpAsk *h) {
        assert_return_code(virtual_time_new(ASK_T0, &h->time), 0);
        assert_return_code(loop_new_virtual(h->time, &h->loop), 0);
        assert_return_code(http_inproc_new(h->loop, NULL, NULL, &h->transport), 0);
}

void http_ask_route(HttpAsk *h, http_handler_t handler, void *userdata) {
        assert_return_code(http_inproc_route(h->transport, ORIGIN, handler, userdata), 0);
}

void http_ask_close(HttpAsk *h) {
        h->transport = http_transport_free(h->transport);
}

void http_ask_done(HttpAsk *h) {
        loop_free(h->loop);
        virtual_time_free(h->time);
}

void http_ask_run(HttpAsk *h, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(h->time), usec);

        while (virtual_time_step(h->time, until) > 0)
                ;
}

void asked_done(Asked *a) {
        http_call_free(a->call);
        free(a->body);
        free(a->headers);
        *a = (Asked){ 0 };
}

const char *asked_header(const Asked *a, const char *name, char ret[256]) {
        _cleanup_strv_free_ char **lines = NULL;
        size_t n = strlen(name);

        assert_return_code(strv_split(strempty(a->headers), "\n", &lines), 0);
        ret[0] = 0;
        STRV_FOREACH (line, lines)
                if (strncasecmp(*line, name, n) == 0 && startswith(*line + n, ": "))
                        (void) snprintf(ret, 256, "%s", *line + n + 2);
        return ret;
}

static void on_done(const HttpResponse *response, void *userdata) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        Asked *a = userdata;

        for (size_t i = 0; i < response->n_headers; i++)
                strbuf_addf(&b, "%s: %s\n", response->headers[i].name, response->headers[i].value);
        a->done = true;
        a->error = response->error;
        a->status = response->status;
        a->body = strdup(response->body);
        a->headers = strbuf_steal(&b);
        a->took_usec = response->finished_usec - response->started_usec;
        assert_non_null(a->body);
}

void http_ask_start(HttpAsk *h, Asked *ret, HttpMethod method, const char *path, const char *headers,
                    const char *body) {
        _cleanup_strv_free_ char **lines = NULL;
        _cleanup_free_ char *url = strf("%s%s", ORIGIN, path), *text = body ? strdup(body) : NULL;
        HttpHeader list[8];
        size_t n = 0;

        assert_return_code(strv_split(strempty(headers), "\n", &lines), 0);
        STRV_FOREACH (line, lines) {
                char *colon = strstr(*line, ": ");

                assert_non_null(colon);
                assert_true(n < ELEMENTSOF(list));
                *colon = 0;
                list[n++] = (HttpHeader){ *line, colon + 2 };
        }
        for (char *p = text; p && *p; p++)
                if (*p == '\'')
                        *p = '"';
        *ret = (Asked){ 0 };
        assert_return_code(http_call_start(h->transport,
                                           &(HttpRequest){
                                                   .method = method,
                                                   .url = url,
                                                   .headers = list,
                                                   .n_headers = n,
                                                   .body = text,
                                                   .body_size = strlen(strempty(text)),
                                                   .timeout_usec = USEC_PER_HOUR,
                                                   .max_response_bytes = 64 * 1024,
                                           },
                                           on_done, ret, &ret->call),
                           0);
}

Asked http_ask(HttpAsk *h, HttpMethod method, const char *path, const char *headers, const char *body) {
        Asked *a = new0(Asked, 1), answer;

        assert_non_null(a);
        http_ask_start(h, a, method, path, headers, body);
        while (!a->done && virtual_time_step(h->time, USEC_INFINITY) > 0)
                ;
        assert_true(a->done);
        a->call = http_call_free(a->call);
        answer = *a;
        free(a);
        return answer;
}

void http_ask_rows(HttpAsk *h, const AskRow *rows, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const AskRow *row = &rows[i];
                _cleanup_asked_ Asked a = http_ask(h, row->method, row->path, row->headers, row->body);
                bool fits = !row->expected || (row->expected[0] == '*' ? !!strstr(a.body, row->expected + 1)
                                                                       : streq(a.body, row->expected));

                print_message("  %s\n", row->what);
                assert_int_equal(a.error, 0);
                if (a.status != row->status || !fits)
                        fail_msg("%s: expected %u '%s', seen %u '%s'", row->what, row->status,
                                 strempty(row->expected), a.status, a.body);
        }
}
