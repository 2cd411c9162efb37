/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "cmocka-test.h"
#include "h2-rig.h"
#include "kubeconfig.h"
#include "tls-fixture.h"

static const char *const fault_table[_H2_FAULT_MAX] = {
        [H2_NO_FAULT] = "no fault",
        [H2_REFUSED_STREAM] = "REFUSED_STREAM",
        [H2_RESET_BEFORE] = "reset before the effect",
        [H2_RESET_AFTER] = "reset after the effect",
        [H2_GOAWAY_ABOVE] = "GOAWAY, above the last stream",
        [H2_GOAWAY_BELOW] = "GOAWAY, below the last stream",
        [H2_GOAWAY_CALM] = "GOAWAY ENHANCE_YOUR_CALM",
        [H2_NOTIFY_BEFORE] = "closed before the effect",
        [H2_FIN_AFTER] = "FIN after the effect",
        [H2_RST_AFTER] = "TCP reset after the effect",
        [H2_CUT_BODY] = "body cut by a reset",
        [H2_CUT_BODY_FIN] = "body cut by FIN",
        [H2_HUGE_HEADER] = "huge header",
        [H2_TRAILERS] = "trailers",
        [H2_INFORMED] = "103 first",
        [H2_ANSWER_THEN_FIN] = "FIN behind the answer",
        [H2_SILENT] = "stalled stream",
        [H2_FROZEN] = "dead without FIN",
};

const char *h2_fault_to_string(H2Fault f) {
        return fault_table[f];
}

/* -- certificates --------------------------------------------------------------------------------------- */

typedef struct Certificates {
        TestCert *ca, *server;
} Certificates;

int h2_certificates_new(void **state) {
        Certificates *c = new0(Certificates, 1);

        assert_non_null(c);
        c->ca = test_cert_new(NULL, NULL, "ca", NULL);
        c->server = test_cert_new(c->ca, NULL, "server", "IP:127.0.0.1");
        *state = c;
        return 0;
}

int h2_certificates_free(void **state) {
        Certificates *c = *state;

        test_cert_free(c->ca);
        test_cert_free(c->server);
        free(c);
        return 0;
}

/* -- the server's side ---------------------------------------------------------------------------------- */

static H2Count *count_of(H2World *w, const char *what) {
        for (size_t i = 0; i < w->n_counts; i++)
                if (streq(w->counts[i].what, what))
                        return w->counts + i;
        assert_true(w->n_counts < ELEMENTSOF(w->counts));
        w->counts[w->n_counts] = (H2Count){ .what = strdup(what) };
        assert_non_null(w->counts[w->n_counts].what);
        return w->counts + w->n_counts++;
}

static H2Count *count_of_stream(H2World *w, const H2Stream *s) {
        _cleanup_free_ char *what = strf("%s %.*s", s->method, (int) strcspn(s->path, "?"), s->path);

        assert_non_null(what);
        return count_of(w, what);
}

H2Count h2_count(const H2World *w, const char *what) {
        for (size_t i = 0; i < w->n_counts; i++)
                if (streq(w->counts[i].what, what))
                        return w->counts[i];
        return (H2Count){ 0 };
}

void h2_count_reset(H2World *w) {
        while (w->n_counts > 0)
                free(w->counts[--w->n_counts].what);
}

#define LIST_ANSWER \
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}"
#define WATCH_LINE \
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," \
        "\"metadata\":{\"resourceVersion\":\"8\"}}}\n"

static bool is_watch(const H2Stream *s) {
        return strstr(s->path, "watch=true");
}

void h2_answer(H2World *w, H2Stream *s) {
        count_of_stream(w, s)->effects++;
        if (is_watch(s)) {
                h2_stream_begin(s, 200, -1, NULL, NULL);
                h2_stream_data(s, WATCH_LINE);
        } else
                h2_stream_respond(s, 200, LIST_ANSWER);
}

static void play_goaway(H2Stream *s, int32_t last_stream_id, uint32_t code) {
        h2_connection_goaway(s->connection, last_stream_id, code);
        h2_connection_close(s->connection, H2_CLOSE_NOTIFY);
}

static void play_cut_body(H2World *w, H2Stream *s, bool fin) {
        count_of_stream(w, s)->effects++;
        h2_stream_begin(s, 200, is_watch(s) ? -1 : 1000, NULL, NULL);
        h2_stream_data(s, "{\"kind\":");
        if (fin)
                h2_connection_close(s->connection, H2_CLOSE_FIN);
        else
                h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
}

static void play_huge_header(H2World *w, H2Stream *s) {
        char huge[40001];

        memset(huge, 'h', sizeof(huge) - 1);
        huge[sizeof(huge) - 1] = 0;
        count_of_stream(w, s)->effects++;
        h2_stream_begin(s, 200, -1, "x-huge", huge);
        h2_stream_data(s, LIST_ANSWER);
        h2_stream_end(s, false);
}

void h2_play(H2World *w, H2Stream *s, H2Fault fault) {
        switch (fault) {
        case H2_NO_FAULT:
                h2_answer(w, s);
                return;
        case H2_REFUSED_STREAM:
                h2_stream_reset(s, NGHTTP2_REFUSED_STREAM);
                return;
        case H2_RESET_BEFORE:
                h2_stream_reset(s, NGHTTP2_INTERNAL_ERROR);
                return;
        case H2_RESET_AFTER:
                count_of_stream(w, s)->effects++;
                h2_stream_reset(s, NGHTTP2_CANCEL);
                return;
        case H2_GOAWAY_ABOVE:
                play_goaway(s, s->id > 1 ? s->id - 2 : 0, NGHTTP2_NO_ERROR);
                return;
        case H2_GOAWAY_BELOW:
                h2_connection_goaway(s->connection, s->id, NGHTTP2_NO_ERROR);
                h2_answer(w, s);
                if (is_watch(s))
                        h2_stream_end(s, false);
                return;
        case H2_GOAWAY_CALM:
                play_goaway(s, 0, NGHTTP2_ENHANCE_YOUR_CALM);
                return;
        case H2_NOTIFY_BEFORE:
                h2_connection_close(s->connection, H2_CLOSE_NOTIFY);
                return;
        case H2_FIN_AFTER:
        case H2_RST_AFTER:
                count_of_stream(w, s)->effects++;
                h2_connection_close(s->connection, fault == H2_RST_AFTER ? H2_CLOSE_RST : H2_CLOSE_FIN);
                return;
        case H2_CUT_BODY:
        case H2_CUT_BODY_FIN:
                play_cut_body(w, s, fault == H2_CUT_BODY_FIN);
                return;
        case H2_HUGE_HEADER:
                play_huge_header(w, s);
                return;
        case H2_TRAILERS:
                count_of_stream(w, s)->effects++;
                h2_stream_begin(s, 200, -1, NULL, NULL);
                h2_stream_data(s, is_watch(s) ? WATCH_LINE : LIST_ANSWER);
                h2_stream_end(s, true);
                return;
        case H2_INFORMED:
                h2_stream_inform(s, 103);
                h2_answer(w, s);
                if (is_watch(s))
                        h2_stream_end(s, false);
                return;
        case H2_ANSWER_THEN_FIN:
                h2_answer(w, s);
                if (is_watch(s))
                        h2_stream_end(s, false);
                h2_connection_close(s->connection, H2_CLOSE_FIN);
                return;
        case H2_SILENT:
                count_of_stream(w, s)->effects++;
                return;
        case H2_FROZEN:
                count_of_stream(w, s)->effects++;
                h2_connection_freeze(s->connection);
                return;
        case _H2_FAULT_MAX:
                break;
        }
        assert_true(false);
}

static void on_request(H2Stream *s, void *userdata) {
        H2World *w = userdata;

        count_of_stream(w, s)->requests++;
        w->last_connection = h2_connection_number(s->connection);
        if (w->on_request && w->on_request(s, w->userdata))
                return;
        if (w->fault_times == 0) {
                h2_answer(w, s);
                return;
        }
        w->fault_times--;
        h2_play(w, s, w->fault);
}

/* -- the world ------------------------------------------------------------------------------------------ */

static void open_client(H2World *w, const Certificates *certs) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;

        w->env = (Env){ .loop = w->loop, .random = w->random, .transport = w->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(w->origin, &config), 0);
        config->ca_data_size = strlen(certs->ca->cert_pem);
        config->ca_data = memdup_str(certs->ca->cert_pem, config->ca_data_size);
        assert_non_null(config->ca_data);
        assert_return_code(kube_auth_new(w->loop, NULL, NULL, config, NULL, NULL, &w->auth, &message), 0);
        assert_return_code(kube_client_new(&w->env, w->auth, w->origin, "test", &w->client), 0);
}

H2World *h2_world_new(void **state, const H2ServerOptions *o) {
        const Certificates *certs = *state;
        H2ServerOptions options = o ? *o : (H2ServerOptions){ 0 };
        const HttpTlsConfig tls = { .ca_pem = certs->ca->cert_pem,
                                    .ca_pem_size = strlen(certs->ca->cert_pem) };
        H2World *w = new0(H2World, 1);

        assert_non_null(w);
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(random_new(1, &w->random), 0);
        assert_return_code(http_tls_new(&tls, &w->tls), 0);
        assert_return_code(http_curl_new(w->loop, NULL, NULL, &w->transport), 0);
        options.cert_pem = certs->server->cert_pem;
        options.key_pem = certs->server->key_pem;
        w->server = h2_server_new(w->loop, &options, on_request, w);
        w->origin = strf("https://127.0.0.1:%u", h2_server_port(w->server));
        assert_non_null(w->origin);
        open_client(w, certs);
        return w;
}

H2World *h2_world_free(H2World *w) {
        if (!w)
                return NULL;
        kube_client_free(w->client);
        kube_auth_free(w->auth);
        http_transport_free(w->transport);
        h2_server_free(w->server);
        http_tls_unref(w->tls);
        random_free(w->random);
        loop_free(w->loop);
        h2_count_reset(w);
        free(w->origin);
        return mfree(w);
}

void h2_run_until(H2World *w, bool (*until)(void *userdata), void *userdata, const char *what) {
        usec_t deadline = loop_now(w->loop) + H2_PATIENCE_USEC;

        while (!until(userdata)) {
                if (loop_now(w->loop) > deadline)
                        fail_msg("Waited %u s in vain: %s", (unsigned) (H2_PATIENCE_USEC / USEC_PER_SEC),
                                 what);
                assert_true(loop_iterate(w->loop, 100 * USEC_PER_MSEC) >= 0);
        }
}

void h2_run_for(H2World *w, usec_t usec) {
        usec_t end = loop_now(w->loop) + usec;

        for (usec_t now = loop_now(w->loop); now < end; now = loop_now(w->loop))
                assert_true(loop_iterate(w->loop, end - now) >= 0);
}

void h2_run_until_quiet(H2World *w) {
        int r;

        while ((r = loop_iterate(w->loop, 5 * USEC_PER_MSEC)) > 0)
                ;
        assert_return_code(r, -r);
}

void h2_skip(H2World *w, usec_t usec) {
        h2_run_until_quiet(w);
        clock_skip(usec);
        h2_run_until_quiet(w);
}

/* -- one HTTP call -------------------------------------------------------------------------------------- */

static void on_done(const HttpResponse *r, void *userdata) {
        H2Call *c = userdata;

        assert_false(c->done);
        c->done = true;
        c->error = r->error;
        c->maybe_sent = r->maybe_sent;
        c->status = r->status;
        c->http_version = r->http_version;
        c->body_size = r->body_size;
        c->ended_usec = r->finished_usec;
}

static int on_data(const void *data, size_t size, void *userdata) {
        H2Call *c = userdata;

        c->n_data += size;
        return 0;
}

void h2_call_start(H2World *w, H2Call *c, const char *path, HttpRequest q) {
        _cleanup_free_ char *url = strf("%s%s", w->origin, path);

        assert_non_null(url);
        *c = (H2Call){ .world = w, .began_usec = loop_now(w->loop) };
        q.url = url;
        q.tls = w->tls;
        if (q.timeout_usec == 0)
                q.timeout_usec = H2_PATIENCE_USEC;
        if (q.max_response_bytes == 0)
                q.max_response_bytes = 1000000;
        if (q.lane == HTTP_LANE_WATCH)
                q.on_data = on_data;
        assert_return_code(http_call_start(w->transport, &q, on_done, c, &c->call), 0);
}

static bool call_is_done(void *userdata) {
        return ((H2Call *) userdata)->done;
}

void h2_call_finish(H2Call *c) {
        h2_run_until(c->world, call_is_done, c, "the end of a call");
        c->call = http_call_free(c->call);
}

void h2_call_cancel(H2Call *c) {
        c->call = http_call_free(c->call);
}

const char *h2_call_outcome(const H2Call *c) {
        static char text[64];

        if (c->error == 0)
                (void) snprintf(text, sizeof(text), "%u", c->status);
        else
                (void) snprintf(text, sizeof(text), "%s%s", strerrorname_np(-c->error),
                                c->maybe_sent ? "?" : "");
        return text;
}
