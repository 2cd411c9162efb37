/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "awake-check.h"
#include "budget-ledger.h"
#include "certificate-plan.h"
#include "clock-skip.h"
#include "cmocka-test.h"
#include "fake-cluster.h"
#include "file-util.h"
#include "http-curl.h"
#include "http-inproc.h"
#include "kubeconfig.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"
#include "texts.h"
#include "webhook-server.h"

#define NS "vesper-system"
#define SERVICE "vesper-webhook." NS ".svc"
#define OTHER_NAME "webhook.example"
#define PATIENCE_USEC USEC_PER_MINUTE /* only ends a test that hangs */

/* A webhook of one coordinator on loopback, beside a fake API server, on the real clock. */
typedef struct World {
        Loop *loop;
        Random *random;
        Log *log;
        FakeCluster *cluster;
        HttpTransport *api, *curl;
        KubeAuth *auth;
        KubeClient *client;
        Env env;
        ClusterView *view;
        BudgetLedger *ledger;
        NodeWebhook *webhook;
        CoordinatorConfig config;
        WebhookServer *server;
        char folder[32];
        uint16_t port;
        StrBuf said;
        unsigned status; /* status of the last answer */
        int error;
        bool is_answered;
} World;

static char *names[] = { (char *) SERVICE, (char *) OTHER_NAME, NULL };

static bool always(void *userdata) {
        return true;
}

static const HttpGuard guard = { .may_send = always };

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        strbuf_addf(userdata, "%s\n", text);
}

static void on_name(const char *name, void *userdata) {
}

static void on_pod(const char *node, const KubePod *old, const KubePod *new, void *userdata) {
}

static void on_pdb(const KubePdb *old, const KubePdb *new, void *userdata) {
}

static void on_synced(void *userdata) {
}

/* Returns a loopback address for this process alone, so that nobody takes the port before the server
 * listens. */
static struct in_addr own_address(void) {
        return (struct in_addr){ htonl(UINT32_C(0x7f400000) | ((uint32_t) getpid() & 0x3fffff)) };
}

static uint16_t free_port(void) {
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = own_address() };
        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        socklen_t size = sizeof(a);

        assert_return_code(bind(fd, (struct sockaddr *) &a, sizeof(a)), errno);
        assert_return_code(getsockname(fd, (struct sockaddr *) &a, &size), errno);
        return ntohs(a.sin_port);
}

static void world_begin(World *w) {
        static const ClusterViewHandler view = { .on_node_dirty = on_name,
                                                 .on_pool_dirty = on_name,
                                                 .on_claim_dirty = on_name,
                                                 .on_pod = on_pod,
                                                 .on_pdb = on_pdb,
                                                 .on_synced = on_synced };
        static const FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };
        static const HttpCurlOptions curl = { .user_agent = "test/1", .max_connections_per_host = 1 };
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;

        *w = (World){ .folder = "/tmp/vesper-webhook-XXXXXX", .port = free_port() };
        assert_non_null(mkdtemp(w->folder));
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(random_new(1, &w->random), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "c", &w->log), 0);
        log_set_hook(w->log, on_log, &w->said);
        w->cluster = fake_cluster_new(w->loop, w->random, &quiet);
        assert_return_code(http_inproc_new(w->loop, "CN=a,O=system:masters", NULL, &w->api), 0);
        assert_return_code(http_inproc_route(w->api, "http://fake", fake_cluster_handle, w->cluster), 0);
        assert_return_code(http_curl_new(w->loop, NULL, &curl, &w->curl), 0);
        w->env = (Env){
                .loop = w->loop, .random = w->random, .log = w->log, .transport = w->api, .version = "0"
        };
        assert_return_code(kubeconfig_plain("http://fake", &config), 0);
        assert_return_code(kube_auth_new(w->loop, NULL, NULL, config, NULL, NULL, &w->auth, &message), 0);
        assert_return_code(kube_client_new(&w->env, w->auth, "http://fake", "test", &w->client), 0);
        assert_return_code(cluster_view_new(w->client, NS, &view, &w->view), 0);
        assert_return_code(budget_ledger_new(w->client, w->view, &w->ledger), 0);
        assert_return_code(node_webhook_new(w->client, w->view, w->ledger, NS, NULL, false, &w->webhook), 0);
        w->config = (CoordinatorConfig){ .lease_namespace = (char *) NS,
                                         .webhook_listen = MUST(strf("%s:%u", inet_ntoa(own_address()), w->port)),
                                         .webhook_configuration = (char *) "vesper-nodes" };
}

static void world_end(World *w) {
        _cleanup_free_ char *remove = strf("rm -r %s", w->folder);

        webhook_server_free(w->server);
        node_webhook_free(w->webhook);
        budget_ledger_free(w->ledger);
        cluster_view_free(w->view);
        kube_client_free(w->client);
        kube_auth_free(w->auth);
        http_transport_free(w->curl);
        http_transport_free(w->api);
        fake_cluster_free(w->cluster);
        log_free(w->log);
        random_free(w->random);
        loop_free(w->loop);
        free(w->config.webhook_listen);
        strbuf_done(&w->said);
        assert_int_equal(system(remove), 0);
}

static void on_answer(const HttpResponse *response, void *userdata) {
        World *w = userdata;

        w->is_answered = true;
        w->error = response->error;
        w->status = response->status;
}

/* Returns the status of an answer to GET /admission; 0: the client does not trust the server. */
static unsigned ask(World *w, const char *ca, const char *name) {
        const HttpTlsConfig config = { .ca_pem = ca, .ca_pem_size = strlen(ca), .server_name = name };
        _cleanup_free_ char *url = strf("https://%s:%u/admission", inet_ntoa(own_address()), w->port);
        HttpTls *tls = NULL;

        w->is_answered = false;
        w->status = 0;
        assert_return_code(http_tls_new(&config, &tls), 0);
        assert_return_code(http_call_start(w->curl,
                                           &(HttpRequest){ .method = HTTP_GET,
                                                           .url = url,
                                                           .tls = tls,
                                                           .timeout_usec = PATIENCE_USEC,
                                                           .max_response_bytes = 1000 },
                                           on_answer, w, NULL),
                           0);
        while (!w->is_answered)
                assert_true(loop_iterate(w->loop, 10 * USEC_PER_MSEC) >= 0);
        http_tls_unref(tls);
        return w->error < 0 ? 0 : w->status;
}

static unsigned n_said(World *w, const char *part) {
        return text_count(strbuf_str(&w->said), part);
}

/* Lets the timers of the next minute run. */
static void skip_minute(World *w) {
        clock_skip(USEC_PER_MINUTE + USEC_PER_SEC);
        for (unsigned i = 0; i < 50; i++)
                assert_true(loop_iterate(w->loop, 0) >= 0);
        (void) assert_awake(w->loop, webhook_server_next_wakeup, w->server);
}

static void write_pem(World *w, const char *name, const char *pem) {
        _cleanup_free_ char *path = strf("%s/%s", w->folder, name);
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fputs(pem, f);
        fclose(f);
}

static CertificateSet set_made(void) {
        CertificateSet s = { 0 };

        assert_return_code(certificate_plan_apply(CERTIFICATE_MAKE, NULL, names,
                                                  (usec_t) time(NULL) * USEC_PER_SEC, &s),
                           0);
        return s;
}

/* The server reads its files each minute. A pair that does not fit is reported once, and the server keeps
 * the last good pair. */
TEST_CASE(test_files) {
        CertificateSet one = set_made(), other = set_made();
        _cleanup_free_ char *certificate = NULL, *key = NULL;
        World w;

        world_begin(&w);
        w.config.webhook_certificate = certificate = strf("%s/tls.crt", w.folder);
        w.config.webhook_key = key = strf("%s/tls.key", w.folder);
        print_message("  none: it does not start\n");
        assert_int_equal(webhook_server_new(w.client, &w.config, w.webhook, &w.server), -ENOENT);
        assert_int_equal(n_said(&w, "/tls.crt ([Webhook] CertificateFile=): No such file"), 1);
        write_pem(&w, "tls.crt", one.certificate);
        write_pem(&w, "tls.key", other.key);
        assert_int_equal(webhook_server_new(w.client, &w.config, w.webhook, &w.server), -EBADMSG);
        assert_int_equal(n_said(&w, "is not the key of the certificate"), 1);

        write_pem(&w, "tls.key", one.key);
        assert_return_code(webhook_server_new(w.client, &w.config, w.webhook, &w.server), 0);
        for (unsigned round = 0; round < 2; round++) {
                const CertificateSet *shown = round == 0 ? &one : &other, *next = round == 0 ? &other : &one;

                print_message("  round %u\n", round + 1);
                assert_int_equal(ask(&w, shown->bundle, SERVICE), 405);
                assert_int_equal(ask(&w, shown->bundle, "elsewhere.example"), 0);
                assert_int_equal(ask(&w, next->bundle, SERVICE), 0);
                skip_minute(&w);
                assert_int_equal(n_said(&w, "shows another certificate"), round);

                write_pem(&w, "tls.crt", next->certificate);
                skip_minute(&w);
                skip_minute(&w);
                assert_int_equal(n_said(&w, "is not the key of the certificate"), round + 2);
                assert_int_equal(n_said(&w, "shows another certificate"), round);
                assert_int_equal(ask(&w, shown->bundle, SERVICE), 405);

                write_pem(&w, "tls.key", next->key);
                skip_minute(&w);
                assert_int_equal(n_said(&w, "shows another certificate"), round + 1);
                assert_int_equal(ask(&w, next->bundle, SERVICE), 405);
                assert_int_equal(ask(&w, shown->bundle, SERVICE), 0);
                for (unsigned i = 0; i < 5; i++) /* connections with the earlier certificate end */
                        skip_minute(&w);
                assert_int_equal(ask(&w, next->bundle, SERVICE), 405);
        }
        certificate_set_done(&one);
        certificate_set_done(&other);
        world_end(&w);
}

static char *secret_text(World *w, const char *key) {
        const char *encoded =
                fj_string(fake_get(w->cluster, FAKE_SECRETS, NS, "webhook"), "data", key, NULL);
        void *text = NULL;
        size_t size;

        if (encoded)
                assert_return_code(base64_decode(encoded, strlen(encoded), &text, &size), 0);
        return text;
}

static void run_until_said(World *w, const char *part, unsigned n) {
        usec_t end = loop_now(w->loop) + PATIENCE_USEC;

        while (n_said(w, part) < n && loop_now(w->loop) < end)
                assert_true(loop_iterate(w->loop, 10 * USEC_PER_MSEC) >= 0);
        assert_int_equal(n_said(w, part), n);
}

/* The certificate in the Secret covers the Service and the configured names, and the CA beside it signed
 * it. */
TEST_CASE(test_secret) {
        _cleanup_free_ char *bundle = NULL, *made = NULL, *encoded = NULL, *certificate = NULL, *key = NULL,
                            *ca = NULL, *ca_key = NULL;
        CertificateSet other = set_made();
        World w;

        world_begin(&w);
        fake_put(w.cluster, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'" NS "'}}"));
        fake_put(
                w.cluster, FAKE_WEBHOOKS,
                fj_parse(
                        "{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'a.vesper.sh','clientConfig':{'url':'https://a/b'},"
                        "'sideEffects':'None','admissionReviewVersions':['v1']}]}"));
        w.config.webhook_secret = (char *) "webhook";
        w.config.webhook_names = names + 1;
        assert_return_code(webhook_server_new(w.client, &w.config, w.webhook, &w.server), 0);
        webhook_server_lead(w.server, &guard);
        run_until_said(&w, "was made", 1);
        run_until_said(&w, "CA was written into", 1);
        bundle = secret_text(&w, "ca.crt");
        made = secret_text(&w, "tls.crt");
        assert_true(certificate_covers(made, names));
        encoded = base64_encode(bundle, strlen(bundle));
        assert_string_equal(
                fj_string(cJSON_GetArrayItem(fj_get(fake_get(w.cluster, FAKE_WEBHOOKS, NULL, "vesper-nodes"),
                                                    "webhooks", NULL),
                                             0),
                          "clientConfig", "caBundle", NULL),
                encoded);
        assert_int_equal(ask(&w, bundle, SERVICE), 405);
        assert_int_equal(ask(&w, bundle, OTHER_NAME), 405);
        skip_minute(&w);
        assert_int_equal(n_said(&w, "shows another certificate"), 0);

        print_message("  another coordinator has written another one; this one no longer leads\n");
        webhook_server_lead(w.server, NULL);
        certificate = base64_encode(other.certificate, strlen(other.certificate));
        key = base64_encode(other.key, strlen(other.key));
        ca = base64_encode(other.bundle, strlen(other.bundle));
        ca_key = base64_encode(other.ca_key, strlen(other.ca_key));
        fake_merge(w.cluster, FAKE_SECRETS, NS, "webhook",
                   "{'data':{'tls.crt':'%s','tls.key':'%s','ca.crt':'%s','ca.key':'%s'}}", certificate, key,
                   ca, ca_key);
        run_until_said(&w, "shows another certificate", 1);
        assert_int_equal(ask(&w, other.bundle, SERVICE), 405);
        assert_int_equal(ask(&w, bundle, SERVICE), 0);
        assert_int_equal(n_said(&w, "CA was written into"), 1);
        webhook_server_lead(w.server, &guard);
        run_until_said(&w, "CA was written into", 2);
        certificate_set_done(&other);
        world_end(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_files),
                                                   cmocka_unit_test(test_secret) };

        return cmocka_run_group_tests_name("webhook-server", tests, NULL, NULL);
}
