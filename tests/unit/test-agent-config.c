/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent-config.h"
#include "agent-metrics.h"
#include "cmocka-test.h"
#include "node-identity.h"
#include "string-util.h"
#include "tls-fixture.h"

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        (void) snprintf(userdata, 1024, "%s", text);
}

/* One configuration, what it comes to, or why it does not. */
TEST_CASE(test_settings) {
        static const struct {
                const char *what, *setting, *environment;
                const char *endpoint; /* NULL: refused */
                int source;
                const char *said;
        } rows[] = {
                { "as it comes", NULL, NULL, AGENT_METADATA_ENDPOINT, METADATA_SOURCE_AUTO, "" },
                { "switched off for every tool", NULL, "AWS_EC2_METADATA_DISABLED=True",
                  AGENT_METADATA_ENDPOINT, METADATA_SOURCE_NONE, "the metadata service is not polled for notices" },
                { "not switched off", NULL, "AWS_EC2_METADATA_DISABLED=false", AGENT_METADATA_ENDPOINT,
                  METADATA_SOURCE_AUTO, "" },
                { "an endpoint for every tool", NULL,
                  "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://[fd00:ec2::254]/", "http://[fd00:ec2::254]",
                  METADATA_SOURCE_AUTO, "" },
                { "ours goes first", "Metadata.Endpoint=http://127.0.0.1:1338",
                  "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://x", "http://127.0.0.1:1338", METADATA_SOURCE_AUTO,
                  "" },
                { "no source", "Metadata.Source=none", NULL, AGENT_METADATA_ENDPOINT, METADATA_SOURCE_NONE,
                  "" },
                { "a source we do not have", "Metadata.Source=ibm", NULL, NULL, 0,
                  "expected one of ec2, gce, azure, none, auto" },
                { "a cloud by its name", "Metadata.Source=ec2", NULL, AGENT_METADATA_ENDPOINT, METADATA_SOURCE_EC2, "" },
                { "a rule", "Policy.Maintenance=before:2h", NULL, AGENT_METADATA_ENDPOINT, METADATA_SOURCE_AUTO, "" },
                { "a window", "Policy.Maintenance=window:30 1 * * sat,sun UTC/2h 30min before:3h", NULL, AGENT_METADATA_ENDPOINT,
                  METADATA_SOURCE_AUTO, "" },
                { "a window of a zone that nobody knows", "Policy.Maintenance=window:@daily Europe/Nowhere/2h", NULL, NULL, 0,
                  "is no rule: expected a time zone that this machine knows (package tzdata), such as Europe/Berlin." },
                { "a rule that is none", "Policy.Spot=soon", NULL, NULL, 0,
                  "[Policy] Spot=soon is no rule: expected now, before:DURATION, window:CALENDAR/DURATION, cordon, cordon:DURATION, report or ignore." },
                { "reboots early", "Policy.Reboot=early", NULL, AGENT_METADATA_ENDPOINT, METADATA_SOURCE_AUTO, "" },
                { "reboots by a rule of their own", "Policy.Reboot=before:2h", NULL, AGENT_METADATA_ENDPOINT, METADATA_SOURCE_AUTO, "" },
                { "nothing else is early", "Policy.Maintenance=early", NULL, NULL, 0, "[Policy] Maintenance=early is no rule" },
                { "early is no time", "Policy.Reboot=earlier", NULL, NULL, 0,
                  "[Policy] Reboot=earlier is no rule: expected early, now, before:DURATION, window:CALENDAR/DURATION, cordon, cordon:DURATION, report or ignore." },
                { "an acknowledgement of no kind", "Metadata.Acknowledge=yes", NULL, NULL, 0, "expected one of no, alone, all" },
                { "a rule of no length", "Policy.ScaleIn=before:0", NULL, NULL, 0,
                  "expected a duration such as 30min or 2h behind the colon" },
                { "no rule", "Policy.Rebalance=", NULL, NULL, 0, "[Policy] Rebalance= is no rule" },
                { "no URL", "Metadata.Endpoint=169.254.169.254", NULL, NULL, 0,
                  "must look like http://169.254.169.254" },
                { "TLS is not spoken there", "Metadata.Endpoint=https://169.254.169.254", NULL, NULL, 0,
                  "must look like" },
                { "without a host", "Metadata.Endpoint=http:///x", NULL, NULL, 0, "must look like" },
                { "too often", "Metadata.PollSec=500ms", NULL, NULL, 0, "between 1s and 1min" },
                { "too seldom", "Metadata.PollSec=2min", NULL, NULL, 0, "between 1s and 1min" },
                { "a wait that is no time", "Drain.LoadBalancerWaitSec=soon", NULL, NULL, 0, "a time span" },
                { "metrics nowhere", "Metrics.Listen=9101", NULL, NULL, 0, "must look like 127.0.0.1:9101" },
                { "metrics on a path that is none", "Metrics.Listen=unix:metrics", NULL, NULL, 0,
                  "must look like" },
                { "metrics on a socket", "Metrics.Listen=unix:/run/vesper-agent/metrics", NULL,
                  AGENT_METADATA_ENDPOINT, METADATA_SOURCE_AUTO, "" },
                { "health nowhere", "Health.Listen=127.0.0.1", NULL, NULL, 0,
                  "[Health] Listen=127.0.0.1 is no address to listen on; it must look like 127.0.0.1:9104" },
                { "health on any port", "Health.Listen=127.0.0.1:0", NULL, NULL, 0, "must look like" },
                { "health on a socket", "Health.Listen=unix:/run/vesper-agent/health", NULL,
                  AGENT_METADATA_ENDPOINT, METADATA_SOURCE_AUTO, "" },
                { "metrics on loopback", "Metrics.Listen=:9101", NULL, AGENT_METADATA_ENDPOINT,
                  METADATA_SOURCE_AUTO, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *settings[] = { (char *) (uintptr_t) rows[i].setting, NULL };
                char *environment[] = { (char *) (uintptr_t) rows[i].environment, NULL };
                _cleanup_(log_freep) Log *log = NULL;
                _cleanup_(agent_config_done) AgentConfig c = { 0 };
                char said[1024] = "";
                int r;

                print_message("%s\n", rows[i].what);
                assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &log), 0);
                log_set_hook(log, on_log, said);
                r = config_load(log, agent_config_table, agent_config_table_size, NULL, false, settings, &c);
                if (r >= 0)
                        r = agent_config_finish(&c, log, environment);
                assert_int_equal(r >= 0, rows[i].endpoint != NULL);
                assert_non_null(strstr(said, rows[i].said));
                if (r < 0)
                        continue;
                assert_string_equal(c.metadata_endpoint, rows[i].endpoint);
                assert_int_equal(c.metadata_source, rows[i].source);
                assert_true(c.poll_usec == 2 * USEC_PER_SEC);
                assert_true(c.lb_wait_usec == 30 * USEC_PER_SEC);
                assert_int_equal(log_settings_level(&c.log), LOG_LEVEL_INFO);
        }
}

TEST_CASE(test_certificate) {
        static const struct {
                const char *common_name, *node; /* NULL: none */
        } rows[] = {
                { "system:node:ip-10-0-0-17.ec2.internal", "ip-10-0-0-17.ec2.internal" },
                { "system:node:", NULL },
                { "somebody", NULL },
        };
        _cleanup_(test_cert_freep) TestCert *ca = test_cert_new(NULL, NULL, "ca", NULL);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(test_cert_freep) TestCert *c =
                        test_cert_new(ca, "system:nodes", rows[i].common_name, NULL);
                KubeConfig config = { .cert_data = c->cert_pem, .cert_data_size = strlen(c->cert_pem) };
                _cleanup_free_ char *name = NULL;
                const char *from = NULL;

                print_message("%s\n", rows[i].common_name);
                assert_int_equal(node_identity_from_pem(c->cert_pem, strlen(c->cert_pem), &name),
                                 rows[i].node ? 0 : -ENOENT);
                name = mfree(name);
                assert_return_code(node_identity_find(&config, NULL, &name, &from), 0);
                assert_string_equal(from, rows[i].node ? "the client certificate" : "the host name");
                if (rows[i].node)
                        assert_string_equal(name, rows[i].node);
        }
}

TEST_CASE(test_node_name_from_file) {
        _cleanup_(test_cert_freep) TestCert *ca = test_cert_new(NULL, NULL, "ca", NULL);
        _cleanup_(test_cert_freep) TestCert *c = test_cert_new(ca, "system:nodes", "system:node:n7", NULL);
        char path[] = "/tmp/test-agent-config.XXXXXX";
        KubeConfig config = { .cert_file = path };
        _cleanup_free_ char *name = NULL, *other = NULL;
        const char *from = NULL;
        int fd = mkstemp(path);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, c->cert_pem, strlen(c->cert_pem)), strlen(c->cert_pem));
        close(fd);
        assert_return_code(node_identity_find(&config, NULL, &name, &from), 0);
        assert_string_equal(from, "the client certificate");
        assert_string_equal(name, "n7");
        unlink(path);
        assert_return_code(node_identity_find(&config, NULL, &other, &from), 0);
        assert_string_equal(from, "the host name");
}

TEST_CASE(test_node_name) {
        static const char *const junk[] = { "",
                                            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
                                            "no PEM at all" };
        KubeConfig none = { 0 };
        const char *from = NULL;
        char *name = NULL;

        assert_return_code(node_identity_find(&none, "worker-7.example", &name, &from), 0);
        assert_string_equal(name, "worker-7.example");
        assert_string_equal(from, "NodeName=");
        name = mfree(name);
        assert_int_equal(node_identity_find(&none, "Worker 7", &name, &from), -EINVAL);

        for (size_t i = 0; i < ELEMENTSOF(junk); i++)
                assert_int_equal(node_identity_from_pem(junk[i], strlen(junk[i]), &name), -ENOENT);
        assert_null(name);
}

/* What a scraper reads. */
typedef struct Page {
        HttpExchange x;
        unsigned status;
        char *body;
} Page;

static void on_reply(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                     const void *body, size_t body_size) {
        Page *p = CONTAINER_OF(x, Page, x);

        p->status = status;
        free(p->body);
        p->body = memdup_str(body, body_size);
}

TEST_CASE(test_metric_names) {
        static const HttpExchangeOps ops = { .reply = on_reply };
        Page page = { .x = { .ops = &ops, .method = HTTP_GET, .path = "/healthz", .query = "" } };
        Metrics *m;

        assert_return_code(agent_metrics_new(&m), 0);
        metrics_add(m, AGENT_METRIC_NOTICES, NOTICE_SPOT, 1);
        metrics_set(m, AGENT_METRIC_PHASE, 0, 1);
        assert_true(metrics_value(m, AGENT_METRIC_NOTICES, NOTICE_SPOT) > 0);
        agent_metrics_handle(&page.x, NULL);
        assert_int_equal(page.status, 200);
        page.x.path = "/";
        agent_metrics_handle(&page.x, NULL);
        assert_int_equal(page.status, 404);
        page.x.method = HTTP_POST;
        agent_metrics_handle(&page.x, NULL);
        assert_int_equal(page.status, 405);
        free(page.body);
        metrics_free(m);
}

TEST_CASE(test_kubeconfig) {
        AgentConfig c = { .kubeconfig = (char *) "/somewhere/kubelet.conf" };
        const char *found;

        assert_string_equal(agent_config_find_kubeconfig(&c), "/somewhere/kubelet.conf");
        c.kubeconfig = NULL;
        found = agent_config_find_kubeconfig(&c); /* on a machine that is a node there is one */
        if (found)
                assert_return_code(access(found, F_OK), errno);
}

TEST_CASE(test_log_target) {
        _cleanup_(agent_config_done) AgentConfig c = { 0 };
        static const struct {
                const char *setting;
                LogTarget target;
        } rows[] = { { "Log.Target=journal", LOG_TARGET_JOURNAL },
                     { "Log.Target=json", LOG_TARGET_JSON },
                     { "Log.Target=text", LOG_TARGET_TEXT },
                     { "Log.Target=null", LOG_TARGET_NULL } };
        _cleanup_(log_freep) Log *l = NULL;

        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &l), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *settings[] = { (char *) rows[i].setting, NULL };

                agent_config_done(&c);
                c = (AgentConfig){ 0 };
                assert_return_code(config_load(l, agent_config_table, agent_config_table_size, NULL, false,
                                               settings, &c),
                                   0);
                assert_int_equal(log_settings_target(&c.log), rows[i].target);
        }
        agent_config_done(&c);
        c = (AgentConfig){ 0 };
        assert_return_code(
                config_load(l, agent_config_table, agent_config_table_size, NULL, false, NULL, &c), 0);
        assert_int_equal(log_settings_target(&c.log), log_target_auto());
        assert_int_equal(log_settings_level(&c.log), LOG_LEVEL_INFO);
}

TEST_CASE(test_api_error_kinds) {
        static const struct {
                unsigned http;
                AgentApiError kind;
        } rows[] = {
                { 0, AGENT_API_UNREACHABLE }, { 409, AGENT_API_CONFLICT },    { 403, AGENT_API_REFUSED },
                { 422, AGENT_API_REFUSED },   { 429, AGENT_API_UNREACHABLE }, { 500, AGENT_API_UNREACHABLE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(agent_api_error_kind(&(ApiError){ .http = rows[i].http }), rows[i].kind);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_settings),
                cmocka_unit_test(test_node_name),
                cmocka_unit_test(test_node_name_from_file),
                cmocka_unit_test(test_certificate),
                cmocka_unit_test(test_kubeconfig),
                cmocka_unit_test(test_log_target),
                cmocka_unit_test(test_metric_names),
                cmocka_unit_test(test_api_error_kinds),
        };
        return cmocka_run_group_tests_name("agent-config", tests, NULL, NULL);
}
