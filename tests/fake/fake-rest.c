/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-rest.h"

#include <strings.h>

#include "strv.h"

static char *copy(const char *s) {
        return s ? MUST(strdup(s)) : NULL;
}

void fake_rest_init(FakeRest *f, Loop *loop, const char *token) {
        *f = (FakeRest) { .loop = loop, .token = copy(token), .troubles = fake_troubles_new() };
}

void fake_rest_done(FakeRest *f) {
        fake_troubles_free(f->troubles);
        free(f->token);
        *f = (FakeRest) { 0 };
}

void fake_rest_set_token(FakeRest *f, const char *token) {
        free(f->token);
        f->token = copy(token);
        f->expired = false;
}

static FakeBearer look(const FakeRest *f, const HttpExchange *x) {
        const char *header = http_header_find(x->headers, x->n_headers, "Authorization");
        const char *token = header ? startswith(header, "Bearer ") : NULL;

        if (isempty(token))
                return FAKE_BEARER_MISSING;
        if (f->token && !streq(token, f->token))
                return FAKE_BEARER_UNKNOWN;
        return f->expired ? FAKE_BEARER_EXPIRED : FAKE_BEARER_GOOD;
}

FakeBearer fake_rest_bearer(FakeRest *f, const HttpExchange *x) {
        FakeBearer b = look(f, x);

        f->n_refused += b != FAKE_BEARER_GOOD;
        return b;
}

bool fake_rest_play_trouble(FakeRest *f, const char *operation, HttpExchange **x,
                            void (*send_error)(HttpExchange *x, const FakeTrouble *t)) {
        const FakeTrouble *t = fake_troubles_take(f->troubles, operation, x);
        HttpHeader type = { "Content-Type", "application/json; charset=utf-8" };

        if (t && t->kind == FAKE_TROUBLE_BODY)
                (*x)->ops->reply(*x, t->status, &type, 1, t->body, strlen(t->body));
        else if (t)
                send_error(*x, t);
        return t || !*x;
}

char **fake_path_split(const char *path) {
        char **l = NULL;

        for (const char *p = path + (path[0] == '/');; p++) {
                size_t n = strcspn(p, "/");
                _cleanup_free_ char *segment = fake_url_decode(p, n, false);
                int r = strv_extend(&l, segment);

                assert(r >= 0);
                p += n;
                if (!*p)
                        return l;
        }
}

bool fake_path_is(char *const *segments, const char *pattern, bool any_case, const char **ret,
                  size_t n_ret) {
        _cleanup_strv_free_ char **wanted = fake_path_split(pattern);
        size_t n = 0;

        if (strv_length(wanted) != strv_length(segments))
                return false;
        for (size_t i = 0; wanted[i]; i++) {
                if (streq(wanted[i], "*")) {
                        if (!*segments[i])
                                return false;
                        assert(n < n_ret);
                        ret[n++] = segments[i];
                } else if (any_case ? strcasecmp(wanted[i], segments[i]) != 0
                                    : !streq(wanted[i], segments[i]))
                        return false;
        }
        return true;
}

void fake_rest_reply(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                     const cJSON *o) {
        HttpHeader all[FAKE_REST_HEADERS_MAX + 1] = { { "Content-Type",
                                                        "application/json; charset=utf-8" } };
        _cleanup_free_ char *text = o ? fj_print(o) : NULL;

        assert(n_headers <= FAKE_REST_HEADERS_MAX);
        for (size_t i = 0; i < n_headers; i++)
                all[i + 1] = headers[i];
        x->ops->reply(x, status, all, n_headers + 1, strempty(text), strlen(strempty(text)));
}
