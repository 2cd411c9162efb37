/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "fake-client.h"
#include "http-inproc.h"
#include "kubeconfig.h"
#include "kubelet-pods.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"
#include "texts.h"

#define S USEC_PER_SEC
#define LIST(items) "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":" items "}"
#define POD(uid, containers) "{\"metadata\":{\"uid\":\"" uid "\"},\"spec\":{\"containers\":" containers "},\"status\":{}}"
#define APP "[{\"name\":\"app\",\"image\":\"i\",\"resources\":{}}]"

/* -- pure --------------------------------------------------------------------------------------- */

TEST_CASE(test_parse) {
        static const struct {
                const char *what, *body, *uids;
                int r;
        } rows[] = {
                { "two pods", LIST("[" POD("a-1", APP) "," POD("b-2", APP) "]"), "a-1 b-2", 0 },
                { "a pod without a container", LIST("[" POD("a", "null") "," POD("b", "[]") "," POD("c", APP) "]"), "c", 0 },
                { "spec without containers", LIST("[{\"metadata\":{\"uid\":\"a\"},\"spec\":{}}]"), "", 0 },
                { "nothing runs", LIST("null"), "", 0 },
                { "nothing runs, written otherwise", LIST("[]"), "", 0 },
                { "unknown fields", LIST("[{\"x\":1,\"metadata\":{\"uid\":\"a\",\"y\":[]},\"spec\":{\"containers\":[{}],\"z\":{}}}]"), "a", 0 },
                { "another list", "{\"kind\":\"List\",\"items\":[]}", NULL, -EBADMSG },
                { "no kind", "{\"items\":[]}", NULL, -EBADMSG },
                { "an empty object", "{}", NULL, -EBADMSG },
                { "a pod without uid", LIST("[{\"metadata\":{},\"spec\":{\"containers\":" APP "}}]"), NULL, -EBADMSG },
                { "an empty uid", LIST("[" POD("", APP) "]"), NULL, -EBADMSG },
                { "a pod without spec", LIST("[{\"metadata\":{\"uid\":\"a\"}}]"), NULL, -EBADMSG },
                { "containers of another type", LIST("[" POD("a", "{}") "]"), NULL, -EBADMSG },
                { "a pod that is none", LIST("[7]"), NULL, -EBADMSG },
                { "items of another type", LIST("{}"), NULL, -EBADMSG },
                { "cut short", "{\"kind\":\"PodList\",\"items\":[", NULL, -EBADMSG },
                { "text", "Forbidden", NULL, -EBADMSG },
                { "nothing", "", NULL, -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strv_free_ char **uids = NULL;
                _cleanup_free_ char *joined = NULL;
                int r = kubelet_pods_parse(rows[i].body, strlen(rows[i].body), &uids);

                joined = strv_join(uids, " ");
                if (r != rows[i].r || !streq(joined, strempty(rows[i].uids)))
                        fail_msg("%s: %d, %s", rows[i].what, r, joined);
        }
}

/* Neither a long answer nor one with many pods is read in part: a pod that was left out would seem to have ended. */
TEST_CASE(test_parse_bounds) {
        for (unsigned extra = 0; extra <= 1; extra++) {
                _cleanup_strv_free_ char **uids = NULL;
                _cleanup_strbuf_ StrBuf b = { 0 };

                for (unsigned i = 0; i < KUBELET_PODS_MAX + extra; i++)
                        strbuf_addf(&b, "%s" POD("%u", APP), i > 0 ? "," : "{\"kind\":\"PodList\",\"items\":[", i);
                strbuf_add(&b, "]}");
                assert_int_equal(kubelet_pods_parse(b.data, b.size, &uids), extra > 0 ? -E2BIG : 0);
                assert_int_equal(strv_length(uids), extra > 0 ? 0 : KUBELET_PODS_MAX);
                uids = strv_free(uids);
                while (b.size <= KUBELET_PODS_BYTES_MAX)
                        strbuf_add(&b, "                ");
                assert_int_equal(kubelet_pods_parse(b.data, b.size, &uids), -E2BIG);
        }
}

TEST_CASE(test_state) {
        static const struct {
                int error;
                unsigned status;
                bool is_list, is_watching;
                KubeletPodsState expected;
        } rows[] = {
                { 0, 200, true, false, KUBELET_PODS_READABLE },
                { 0, 200, false, false, KUBELET_PODS_FAILING },
                { 0, 403, false, false, KUBELET_PODS_REFUSED },
                { 0, 403, false, true, KUBELET_PODS_REFUSED },
                { 0, 401, false, false, KUBELET_PODS_REFUSED },
                /* The kubelet could not ask the API server whose token it is. */
                { 0, 401, false, true, KUBELET_PODS_FAILING },
                /* enableDebuggingHandlers: false */
                { 0, 404, false, false, KUBELET_PODS_REFUSED },
                { 0, 400, false, false, KUBELET_PODS_REFUSED },
                { 0, 499, false, false, KUBELET_PODS_REFUSED },
                { 0, 399, false, false, KUBELET_PODS_FAILING },
                { 0, 429, false, false, KUBELET_PODS_FAILING },
                { 0, 500, false, false, KUBELET_PODS_FAILING },
                { 0, 302, false, false, KUBELET_PODS_FAILING },
                { -ECONNREFUSED, 0, false, false, KUBELET_PODS_FAILING },
                { -EMSGSIZE, 0, false, false, KUBELET_PODS_FAILING },
                { -EKEYREJECTED, 0, false, true, KUBELET_PODS_REFUSED },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (kubelet_pods_state_after(rows[i].error, rows[i].status, rows[i].is_list, rows[i].is_watching) !=
                    rows[i].expected)
                        fail_msg("row %zu", i);
}

/* The cluster's authority; its key is lost. */
static const char authority[] =
        "-----BEGIN CERTIFICATE-----\n"
        "MIIBcTCCARegAwIBAgIUTCZuTG6MToTdfSt7w6MJa9hKmBwwCgYIKoZIzj0EAwIw\n"
        "DTELMAkGA1UEAwwCY2EwIBcNMjYxMTI3MTgzMzE5WhgPMjEyNjExMDMxODMzMTla\n"
        "MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ3TVVJ9L\n"
        "A/qEUCY03c0izdMlIpitu+YNpq8uY+qxqeAbAGz4xANi5+DHaGj26xWpe+Bc4M6c\n"
        "DTfvldkbXyYl6KNTMFEwHQYDVR0OBBYEFEDctX77SM3o7RkEHouxmoBsoKhNMB8G\n"
        "A1UdIwQYMBaAFEDctX77SM3o7RkEHouxmoBsoKhNMA8GA1UdEwEB/wQFMAMBAf8w\n"
        "CgYIKoZIzj0EAwIDSAAwRQIhAM3xNFnpmSzJ32i8nVIA7fPQalDID8LzojwSyJwO\n"
        "jwYhAiBKa7r8TqQESJ3PV6iMrTDJFNxQiUeobBu3yb773uF0vw==\n"
        "-----END CERTIFICATE-----\n";

/* -- asking it ---------------------------------------------------------------------------------- */

typedef struct Rig {
        FakeWorld world;
        Log *log;
        HttpTransport *transport;
        KubeAuth *auth;
        Env env;
        KubeletClient *client;
        KubeletPods *pods;
        StrBuf lines;
        /* the kubelet */
        unsigned status;
        const char *body;
        unsigned n_asked;
        /* what was reported */
        unsigned n_reports;
        int error;
        char uids[64];
} Rig;

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields, size_t n_fields,
                   void *userdata) {
        Rig *r = userdata;

        strbuf_addf(&r->lines, "%s %s\n", log_level_to_string(level), text);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        Rig *r = userdata;

        assert_string_equal(request->url, "https://127.0.0.1:10250/runningpods/");
        assert_int_equal(request->method, HTTP_GET);
        r->n_asked++;
}

static void on_kubelet(HttpExchange *x, void *userdata) {
        Rig *r = userdata;

        http_reply_text(x, r->status, "application/json", r->body);
}

static void on_pods(int error, char *const *uids, usec_t begun_usec, void *userdata) {
        _cleanup_free_ char *joined = strv_join(uids, " ");
        Rig *r = userdata;

        assert_true(begun_usec > 0 && begun_usec <= loop_now(r->world.loop));
        r->n_reports++;
        r->error = error;
        (void) snprintf(r->uids, sizeof(r->uids), "%s", joined);
}

static void serve(Rig *r, unsigned status, const char *body) {
        r->status = status;
        r->body = body;
        assert_return_code(http_inproc_route(r->transport, "https://127.0.0.1:10250", status > 0 ? on_kubelet : NULL, r), 0);
}

static Rig *rig_with(const KubeConfig *config) {
        Rig *r = new0(Rig, 1);
        const HttpInprocHooks hooks = { .on_request = on_request, .userdata = r };
        char *message = NULL;

        fake_world_init(&r->world, &(FakeClusterOptions){ 0 });
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &r->log), 0);
        log_set_hook(r->log, on_log, r);
        assert_return_code(http_inproc_new(r->world.loop, NULL, &hooks, &r->transport), 0);
        r->env = (Env){ .loop = r->world.loop, .transport = r->transport, .log = r->log };
        if (kube_auth_new(r->world.loop, r->log, NULL, config, NULL, NULL, &r->auth, &message) < 0)
                fail_msg("%s", message);
        assert_return_code(kubelet_client_new(&r->env, r->auth, "n1", &r->client), 0);
        assert_return_code(kubelet_pods_new(&r->env, r->client, on_pods, r, &r->pods), 0);
        return r;
}

static Rig *rig(void) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;

        assert_return_code(kubeconfig_plain("http://api", &config), 0);
        return rig_with(config);
}

static void rig_freep(Rig **r) {
        kubelet_pods_free((*r)->pods);
        kubelet_client_free((*r)->client);
        kube_auth_free((*r)->auth);
        http_transport_free((*r)->transport);
        fake_world_done(&(*r)->world);
        log_free((*r)->log);
        strbuf_done(&(*r)->lines);
        free(*r);
}

/* How often the kubelet was asked meanwhile. */
static unsigned run(Rig *r, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(r->world.time), usec);
        unsigned before = r->n_asked;

        while (virtual_time_step(r->world.time, until) > 0)
                ;
        assert_int_equal(assert_awake(r->world.loop, kubelet_pods_next_wakeup, r->pods), 1);
        return r->n_asked - before;
}

static unsigned n_lines(Rig *r, const char *part) {
        return text_count(strbuf_str(&r->lines), part);
}

TEST_CASE(test_pace) {
        static const struct {
                const char *what;
                unsigned status;
                const char *body;
                unsigned slow_per_hour, watched_per_minute;
                const char *line; /* NULL: nothing is logged */
        } rows[] = {
                { "readable", 200, LIST("[" POD("a", APP) "]"), 60, 60, "info The kubelet's /runningpods/ can be read" },
                { "forbidden", 403, "Forbidden (user=system:node:n1)", 1, 0,
                  "info The kubelet's /runningpods/ cannot be read (HTTP 403: Forbidden (user=system:node:n1)), asking again each hour" },
                { "no answer to requests", 500, "trouble", 60, 60, NULL },
                { "no list", 200, "{}", 60, 60, NULL },
                { "nobody is there", 0, "", 60, 60, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(rig_freep) Rig *r = rig();
                unsigned n;

                print_message("%s\n", rows[i].what);
                serve(r, rows[i].status, rows[i].body);
                assert_int_equal(run(r, 29 * S), 0);
                assert_int_equal(run(r, 2 * S), 1);
                for (unsigned hour = 0; hour < 3; hour++)
                        assert_int_equal(run(r, USEC_PER_HOUR), rows[i].slow_per_hour);
                assert_int_equal(r->n_reports, 0);
                kubelet_pods_watch(r->pods, true);
                n = run(r, USEC_PER_MINUTE);
                assert_true(n <= rows[i].watched_per_minute + 1 && n + 1 >= rows[i].watched_per_minute);
                assert_int_equal(r->n_reports, n);
                kubelet_pods_watch(r->pods, false);
                (void) run(r, 2 * S);
                assert_true(run(r, USEC_PER_HOUR) <= rows[i].slow_per_hour);
                assert_int_equal(n_lines(r, "\n"), rows[i].line ? 1 : 0);
                assert_true(!rows[i].line || startswith(strbuf_str(&r->lines), rows[i].line));
        }
}

/* Each change is logged once. */
TEST_CASE(test_changes) {
        _cleanup_(rig_freep) Rig *r = rig();

        serve(r, 403, "Forbidden");
        (void) run(r, 31 * S);
        serve(r, 200, LIST("[" POD("a", APP) "," POD("b", "null") "]"));
        (void) run(r, USEC_PER_HOUR);
        assert_int_equal(n_lines(r, "can be read"), 1);
        kubelet_pods_watch(r->pods, true);
        (void) run(r, 10 * S);
        assert_string_equal(r->uids, "a");
        assert_int_equal(r->error, 0);
        serve(r, 500, "Authorization error");
        (void) run(r, 10 * S);
        assert_true(r->error < 0);
        assert_string_equal(r->uids, "");
        assert_int_equal(n_lines(r, "cannot be read any more, retrying: HTTP 500: Authorization error"), 1);
        serve(r, 200, LIST("null"));
        (void) run(r, 10 * S);
        assert_int_equal(r->error, 0);
        assert_int_equal(n_lines(r, "can be read"), 2);
        serve(r, 403, "Forbidden");
        (void) run(r, 10 * S);
        assert_int_equal(n_lines(r, "asking again each hour"), 2);
        assert_int_equal(n_lines(r, "\n"), 5);
}

/* A transport that sends nothing, and keeps how the last request would have been sent. */
typedef struct Spy {
        HttpTransport transport;
        bool is_verified, has_token, trusts_authority;
        char name[32], url[64];
} Spy;

static int spy_start(HttpTransport *t, const HttpRequest *request, http_done_t done, void *userdata, HttpCall **ret) {
        const HttpTlsConfig *tls = request->tls ? http_tls_config(request->tls) : &(HttpTlsConfig){ 0 };
        Spy *s = CONTAINER_OF(t, Spy, transport);

        s->has_token = http_header_find(request->headers, request->n_headers, "Authorization");
        s->is_verified = !tls->insecure;
        s->trusts_authority = tls->ca_pem && memmem(tls->ca_pem, tls->ca_pem_size, authority, strlen(authority));
        (void) snprintf(s->name, sizeof(s->name), "%s", strempty(tls->server_name));
        (void) snprintf(s->url, sizeof(s->url), "%s", request->url);
        return -ENOMEM;
}

static void on_response(const HttpResponse *response, void *userdata) {
}

/* A request that cannot begin is tried again at the same pace. */
TEST_CASE(test_cannot_ask) {
        static const HttpTransportOps ops = { .start = spy_start };
        Spy spy = { .transport = { &ops } };
        _cleanup_(rig_freep) Rig *r = rig();

        serve(r, 200, LIST("[]"));
        r->env.transport = &spy.transport;
        assert_int_equal(run(r, 31 * S), 0);
        assert_string_equal(spy.url, "https://127.0.0.1:10250/runningpods/");
        spy.url[0] = 0;
        assert_int_equal(run(r, USEC_PER_MINUTE), 0);
        assert_string_equal(spy.url, "https://127.0.0.1:10250/runningpods/");
        r->env.transport = r->transport;
        assert_int_equal(run(r, USEC_PER_MINUTE), 1);
        assert_int_equal(n_lines(r, "can be read"), 1);
}

/* Whatever the kubeconfig says: the kubelet is verified, for the node's name, before it sees a token. */
TEST_CASE(test_verified) {
        static const HttpTransportOps ops = { .start = spy_start };
        static const struct {
                int64_t port;
                const char *url;
        } ports[] = {
                { 0, "https://127.0.0.1:10250/configz" },     { -1, "https://127.0.0.1:10250/configz" },
                { 65536, "https://127.0.0.1:10250/configz" }, { 65535, "https://127.0.0.1:65535/configz" },
                { 0, "https://127.0.0.1:65535/configz" },
        };

        for (unsigned insecure = 0; insecure <= 1; insecure++) {
                Spy spy = { .transport = { &ops } };
                KubeConfig config = {
                        .server = (char *) "https://api:6443",
                        .tls_server_name = (char *) "api.example",
                        .insecure_skip_tls_verify = insecure > 0,
                        .ca_data = insecure > 0 ? NULL : (char *) authority,
                        .ca_data_size = insecure > 0 ? 0 : strlen(authority),
                        .token = (char *) "secret",
                };
                _cleanup_(rig_freep) Rig *r = rig_with(&config);
                HttpCall *call = NULL;

                r->env.transport = &spy.transport;
                assert_int_equal(kubelet_client_get(r->client, "/configz", S, 1, on_response, NULL, &call), -ENOMEM);
                assert_true(spy.has_token && spy.is_verified);
                assert_true(spy.trusts_authority == (insecure == 0));
                assert_string_equal(spy.name, "n1");
                for (size_t i = 0; i < ELEMENTSOF(ports); i++) {
                        kubelet_client_set_port(r->client, ports[i].port);
                        assert_int_equal(kubelet_client_get(r->client, "/configz", S, 1, on_response, NULL, &call), -ENOMEM);
                        assert_string_equal(spy.url, ports[i].url);
                }
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse), cmocka_unit_test(test_parse_bounds), cmocka_unit_test(test_state),
                cmocka_unit_test(test_pace),  cmocka_unit_test(test_changes),      cmocka_unit_test(test_verified), cmocka_unit_test(test_cannot_ask),
        };

        return cmocka_run_group_tests_name("kubelet-pods", tests, NULL, NULL);
}
