/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmocka-test.h"
#include "kube-rig.h"
#include "kubeconfig.h"

#define STEPS_MAX 1000000u

/* -- one process ---------------------------------------------------------------------------------------- */

RigHost *rig_host_new(VirtualTime *time, uint64_t seed, const HttpInprocHooks *hooks, http_handler_t handler,
                      void *userdata) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        RigHost *h = new0(RigHost, 1);

        assert_non_null(h);
        assert_return_code(loop_new_virtual(time, &h->loop), 0);
        assert_return_code(random_new(seed, &h->random), 0);
        assert_return_code(http_inproc_new(h->loop, "CN=test,O=system:masters", hooks, &h->transport), 0);
        assert_return_code(http_inproc_route(h->transport, RIG_SERVER, handler, userdata), 0);
        h->env = (Env){ .loop = h->loop, .random = h->random, .transport = h->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(RIG_SERVER, &config), 0);
        assert_return_code(kube_auth_new(h->loop, NULL, NULL, config, NULL, NULL, &h->auth, &message), 0);
        assert_return_code(kube_client_new(&h->env, h->auth, RIG_SERVER, "test", &h->client), 0);
        return h;
}

RigHost *rig_host_free(RigHost *h) {
        if (!h)
                return NULL;
        kube_client_free(h->client);
        kube_auth_free(h->auth);
        http_transport_free(h->transport);
        random_free(h->random);
        loop_free(h->loop);
        return mfree(h);
}

void rig_run_until(VirtualTime *time, usec_t at_usec) {
        for (unsigned i = 0; virtual_time_step(time, at_usec) > 0; i++)
                assert_true(i < STEPS_MAX);
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c - 'a' + 10;
}

char *rig_query(const HttpExchange *x, const char *name) {
        for (const char *p = x->query; *p != 0;) {
                size_t n = strcspn(p, "&"), k = strlen(name);
                StrBuf value = { 0 };

                if (n > k && strncmp(p, name, k) == 0 && p[k] == '=') {
                        for (size_t i = k + 1; i < n; i++)
                                if (p[i] == '%') {
                                        strbuf_add_char(&value, (char) (hex_digit(p[i + 1]) << 4 |
                                                                        hex_digit(p[i + 2])));
                                        i += 2;
                                } else
                                        strbuf_add_char(&value, p[i]);
                        return strbuf_steal(&value);
                }
                p += n + (p[n] == '&');
        }
        return NULL;
}

/* -- the script ----------------------------------------------------------------------------------------- */

static void forget_open(Rig *r, size_t at) {
        r->n_open--;
        for (size_t i = at; i < r->n_open; i++)
                r->open[i] = r->open[i + 1];
}

static void on_gone(HttpExchange *x, void *userdata) {
        Rig *r = userdata;

        for (size_t i = 0; i < r->n_open; i++)
                if (r->open[i] == x) {
                        forget_open(r, i);
                        return;
                }
        assert_true(false);
}

static void keep_open(Rig *r, HttpExchange *x) {
        assert_true(r->n_open < ELEMENTSOF(r->open));
        r->open[r->n_open++] = x;
        x->on_gone = on_gone;
        x->userdata = r;
}

static void rig_record(Rig *r, const HttpExchange *x) {
        RigRequest *q = &r->requests[r->n_requests++];

        assert_true(r->n_requests <= ELEMENTSOF(r->requests));
        *q = (RigRequest){
                .at_usec = virtual_time_now(r->time),
                .method = x->method,
                .path = strdup(x->path),
                .query = strdup(x->query),
                .body = memdup_str(x->body_size > 0 ? x->body : "", x->body_size),
                .content_type = strdup(strempty(http_header_find(x->headers, x->n_headers, "Content-Type"))),
                .accept = strdup(strempty(http_header_find(x->headers, x->n_headers, "Accept"))),
        };
        strbuf_add_char(&r->trace, ' ');
        if (r->describe)
                r->describe(x, &r->trace);
        else
                strbuf_addf(&r->trace, "%s %s", http_method_to_string(x->method), x->path);
}

static void serve(HttpExchange *x, void *userdata) {
        Rig *r = userdata;
        const RigAnswer *a;
        size_t size;
        HttpHeader headers[] = { { "Content-Type", "application/json" }, { "Retry-After", NULL } };

        rig_record(r, x);
        if (r->next_answer >= r->n_answers || r->answers[r->next_answer].status == 0) {
                r->next_answer += r->next_answer < r->n_answers;
                keep_open(r, x);
                return;
        }

        a = &r->answers[r->next_answer++];
        headers[0].value = a->type ?: "application/json";
        headers[1].value = a->retry_after;
        size = a->body_size > 0 ? a->body_size : strlen(strempty(a->body));
        if (!a->stream) {
                x->ops->reply(x, a->status, headers, a->retry_after ? 2 : 1, a->body, size);
                return;
        }
        keep_open(r, x);
        x->ops->stream_begin(x, a->status, headers, 1);
        if (size > 0)
                x->ops->stream_data(x, a->body, size);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        const Rig *r = userdata;

        ret_fault->request_delay_usec = r->request_delay_usec;
        ret_fault->reply_delay_usec = r->reply_delay_usec;
}

Rig *rig_new(void) {
        Rig *r = new0(Rig, 1);
        HttpInprocHooks hooks = { .on_request = on_request, .userdata = r };

        assert_non_null(r);
        assert_return_code(virtual_time_new(RIG_START_WALL, &r->time), 0);
        r->host = rig_host_new(r->time, 1, &hooks, serve, r);
        return r;
}

Rig *rig_free(Rig *r) {
        if (!r)
                return NULL;
        rig_host_free(r->host);
        virtual_time_free(r->time);
        for (size_t i = 0; i < r->n_requests; i++) {
                free(r->requests[i].path);
                free(r->requests[i].query);
                free(r->requests[i].body);
                free(r->requests[i].content_type);
                free(r->requests[i].accept);
        }
        strbuf_done(&r->trace);
        return mfree(r);
}

static void rig_add(Rig *r, RigAnswer a) {
        assert_true(r->n_answers < ELEMENTSOF(r->answers));
        r->answers[r->n_answers++] = a;
}

void rig_answer_with(Rig *r, RigAnswer a) {
        rig_add(r, a);
}

void rig_answer(Rig *r, unsigned status, const char *body) {
        rig_add(r, (RigAnswer){ .status = status, .body = body });
}

void rig_answer_later(Rig *r, unsigned status, const char *retry_after) {
        rig_add(r, (RigAnswer){ .status = status, .body = "", .retry_after = retry_after });
}

void rig_stream(Rig *r, const char *lines) {
        rig_add(r, (RigAnswer){ .status = 200, .body = lines, .stream = true });
}

void rig_silence(Rig *r) {
        rig_add(r, (RigAnswer){ .status = 0 });
}

void rig_say_bytes(Rig *r, const void *data, size_t size) {
        HttpExchange *x;

        assert_true(r->n_open > 0);
        x = r->open[r->n_open - 1];
        x->ops->stream_data(x, data, size);
}

void rig_say(Rig *r, const char *lines) {
        rig_say_bytes(r, lines, strlen(lines));
}

void rig_end(Rig *r, bool clean) {
        HttpExchange *x;

        assert_true(r->n_open > 0);
        x = r->open[--r->n_open];
        x->ops->stream_end(x, clean);
}

void rig_run_for(Rig *r, usec_t usec) {
        rig_run_until(r->time, virtual_time_now(r->time) + usec);
}

char *rig_take_trace(Rig *r) {
        char *all = strbuf_steal(&r->trace), *ret;

        assert_non_null(all);
        ret = strdup(all[0] == ' ' ? all + 1 : all);
        free(all);
        return ret;
}
