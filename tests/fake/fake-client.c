/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-client.h"

#include <stdlib.h>

#include "http-transport.h"
#include "parse-util.h"

#define START_WALL_USEC (1767225600 * USEC_PER_SEC) /* 2026-01-01 */

static void *transport_free(void *p) {
        return http_transport_free(p);
}

void fake_world_init(FakeWorld *w, const FakeClusterOptions *options) {
        int r;

        *w = (FakeWorld){ 0 };
        r = virtual_time_new(START_WALL_USEC, &w->time);
        assert(r >= 0);
        r = loop_new_virtual(w->time, &w->loop);
        assert(r >= 0);
        r = random_new(1, &w->random);
        assert(r >= 0);
        r = hashmap_new(0, &w->transports);
        assert(r >= 0);
        w->cluster = fake_cluster_new(w->loop, w->random, options);
}

void fake_world_done(FakeWorld *w) {
        fake_cluster_free(w->cluster);
        hashmap_free_with(w->transports, transport_free);
        random_free(w->random);
        loop_free(w->loop);
        virtual_time_free(w->time);
        *w = (FakeWorld){ 0 };
}

void fake_world_run(FakeWorld *w, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(w->time), usec);

        while (virtual_time_step(w->time, until) > 0)
                ;
}

void fake_world_route(FakeWorld *w, const char *identity, http_handler_t handler, void *userdata) {
        HttpTransport *t = NULL;
        int r = http_inproc_new(w->loop, identity, NULL, &t);

        assert(r >= 0);
        r = http_inproc_route(t, FAKE_ORIGIN, handler, userdata);
        assert(r >= 0);
        r = hashmap_put(w->transports, strempty(identity), t);
        assert(r >= 0);
}

static HttpTransport *transport_of(FakeWorld *w, const char *identity) {
        if (!hashmap_contains(w->transports, strempty(identity)))
                fake_world_route(w, identity, fake_cluster_handle, w->cluster);
        return hashmap_get(w->transports, strempty(identity));
}

void fake_answer_done(FakeAnswer *a) {
        cJSON_Delete(a->json);
        free(a->body);
        free(a->warning);
        *a = (FakeAnswer){ 0 };
}

typedef struct Waiting {
        FakeAnswer answer;
        bool done;
} Waiting;

static void on_answer(const HttpResponse *response, void *userdata) {
        Waiting *wait = userdata;
        const char *retry = http_header_find(response->headers, response->n_headers, "Retry-After");
        const char *warning = http_header_find(response->headers, response->n_headers, "Warning");

        wait->done = true;
        wait->answer.error = response->error;
        wait->answer.status = response->status;
        wait->answer.body = MUST(strdup(response->body));
        wait->answer.json = cJSON_Parse(response->body);
        wait->answer.warning = warning ? MUST(strdup(warning)) : NULL;
        if (retry)
                (void) parse_uint64(retry, &wait->answer.retry_after_sec);
}

FakeAnswer fake_call(FakeWorld *w, const char *identity, HttpMethod method, const char *path,
                     const char *type, const char *body) {
        _cleanup_free_ char *url = MUST(strf("%s%s", FAKE_ORIGIN, path));
        HttpHeader header = { "Content-Type", type ? type : "application/json" };
        HttpRequest request = {
                .method = method,
                .url = url,
                .headers = &header,
                .n_headers = body ? 1 : 0,
                .body = body,
                .body_size = body ? strlen(body) : 0,
                .timeout_usec = USEC_PER_MINUTE,
                .max_response_bytes = 64u << 20,
        };
        Waiting wait = { 0 };
        int r = http_call_start(transport_of(w, identity), &request, on_answer, &wait, NULL);

        assert(r >= 0);
        while (!wait.done && virtual_time_step(w->time, USEC_INFINITY) > 0)
                ;
        assert(wait.done);
        return wait.answer;
}

FakeAnswer fake_ask(FakeWorld *w, HttpMethod method, const char *path, const char *type, const char *body) {
        _cleanup_free_ char *text = body ? MUST(strdup(body)) : NULL;

        for (char *p = text; p && *p; p++)
                if (*p == '\'')
                        *p = '"';
        return fake_call(w, FAKE_ADMIN, method, path, type, text);
}

/* -- watches ------------------------------------------------------------------------------------------- */

static int on_data(const void *data, size_t size, void *userdata) {
        FakeTail *t = userdata;

        strbuf_add_n(&t->bytes, data, size);
        return 0;
}

static void on_end(const HttpResponse *response, void *userdata) {
        FakeTail *t = userdata;

        t->done = true;
        t->error = response->error;
}

void fake_tail_start(FakeTail *t, FakeWorld *w, const char *identity, const char *path) {
        _cleanup_free_ char *url = MUST(strf("%s%s", FAKE_ORIGIN, path));
        HttpRequest request = {
                .method = HTTP_GET,
                .url = url,
                .lane = HTTP_LANE_WATCH,
                .timeout_usec = USEC_INFINITY,
                .stall_usec = USEC_PER_HOUR,
                .max_response_bytes = 1u << 20,
                .on_data = on_data,
        };
        int r;

        *t = (FakeTail){ 0 };
        r = http_call_start(transport_of(w, identity), &request, on_end, t, &t->call);
        assert(r >= 0);
}

void fake_tail_done(FakeTail *t) {
        http_call_free(t->call);
        strbuf_done(&t->bytes);
        *t = (FakeTail){ 0 };
}

char *fake_tail_take(FakeTail *t) {
        _cleanup_free_ char *bytes = MUST(strbuf_steal(&t->bytes));
        _cleanup_strbuf_ StrBuf out = { 0 };
        char *line, *rest = bytes;

        while ((line = strsep(&rest, "\n")) && rest) {
                _cleanup_cjson_ cJSON *event = MUST(cJSON_Parse(line));
                const char *type = fj_string(event, "type", NULL);

                strbuf_addf(&out, "%s%s ", out.size > 0 ? ", " : "", type);
                if (streq(type, "BOOKMARK"))
                        strbuf_add(&out, fj_string(event, "object", "metadata", "resourceVersion", NULL));
                else if (streq(type, "ERROR"))
                        strbuf_addf(&out, "%d", (int) fj_int(event, 0, "object", "code", NULL));
                else
                        strbuf_add(&out, fj_string(event, "object", "metadata", "name", NULL));
        }
        return MUST(strbuf_steal(&out));
}
