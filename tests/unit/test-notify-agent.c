/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent-metrics.h"
#include "agent-rig.h"
#include "cmocka-test.h"
#include "notify-receiver.h"
#include "notify-sender.h"

#define S USEC_PER_SEC

/* An agent that tells the receiver; pods on its node; calm. */
static AgentRig *telling_rig(Receiver *receiver, const char *url, unsigned n_pods) {
        AgentRig *r = agent_rig_new();

        r->config.notify.timeout_usec = 10 * S;
        if (url)
                assert_non_null(r->config.notify.url = strdup(url));
        agent_rig_add_pods(r, "web", n_pods);
        agent_rig_start(r);
        assert_return_code(http_inproc_route(r->transport, RECEIVER_ORIGIN, receiver_handle, receiver), 0);
        agent_rig_run(r, 10 * S);
        return r;
}

TEST_CASE(test_phases) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, RECEIVER_URL, 3);

        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 30 * S);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_string_equal(strbuf_str(&receiver.got), "n1 noticed 200\nn1 cordoned 200\nn1 draining 200\nn1 drained 200\n");
        assert_non_null(strstr(strbuf_str(&receiver.last), "\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"terminate\",\"deadline\":\""));
        assert_non_null(strstr(strbuf_str(&receiver.last), "\"podsLeft\":0,\"message\":\"Node n1 is drained, "));
        assert_null(strstr(strbuf_str(&receiver.last), "\"nodeUID\":\"\""));
        assert_null(strstr(strbuf_str(&r->lines), "s3cr3t"));
        receiver_done(&receiver);
}

/* A pod that is held is told once, however many are. */
TEST_CASE(test_blocked) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, RECEIVER_URL, 3);

        fake_add_pdb(r->cluster, NULL, "all", "web", true, "3");
        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 30 * S);
        assert_string_equal(strbuf_str(&receiver.got), "n1 noticed 200\nn1 cordoned 200\nn1 draining 200\nn1 blocked 200\n");
        receiver_done(&receiver);
}

TEST_CASE(test_cancelled) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, RECEIVER_URL, 0);

        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 10 * S);
        strbuf_truncate(&receiver.got, 0);
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 13 * USEC_PER_MINUTE); /* so long the metadata service's 404 says nothing */
        assert_string_equal(strbuf_str(&receiver.got), "n1 cancelled 200\n");

        print_message("another occurrence is told anew, though its id is the same\n");
        strbuf_truncate(&receiver.got, 0);
        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 10 * S);
        assert_string_equal(strbuf_str(&receiver.got), "n1 noticed 200\nn1 cordoned 200\nn1 draining 200\nn1 drained 200\n");
        receiver_done(&receiver);
}

TEST_CASE(test_released) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, RECEIVER_URL, 0);

        agent_rig_notice(r, 600 * S);
        agent_rig_run(r, 10 * S);
        strbuf_truncate(&receiver.got, 0);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 30 * S);
        assert_string_equal(strbuf_str(&receiver.got), "n1 released 200\n");
        receiver_done(&receiver);
}

/* In a dry run it is told what would be done, and nothing of phases that do not come. */
TEST_CASE(test_dry_run) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.dry_run = true;
        r->config.notify.timeout_usec = 10 * S;
        assert_non_null(r->config.notify.url = strdup(RECEIVER_URL));
        agent_rig_start(r);
        assert_return_code(http_inproc_route(r->transport, RECEIVER_ORIGIN, receiver_handle, &receiver), 0);
        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 30 * S);
        assert_string_equal(strbuf_str(&receiver.got), "n1 reported 200\n");
        assert_non_null(strstr(strbuf_str(&receiver.last), "dry run"));
        receiver_done(&receiver);
}

/* What the process has lost is told by its next life, by the key that it had. */
TEST_CASE(test_restart) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, RECEIVER_URL, 1);
        char key[64];

        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 30 * S);
        (void) snprintf(key, sizeof(key), "%s", receiver.key);
        strbuf_truncate(&receiver.got, 0);
        agent_rig_kill(r);
        agent_rig_start(r);
        assert_return_code(http_inproc_route(r->transport, RECEIVER_ORIGIN, receiver_handle, &receiver), 0);
        agent_rig_run(r, 10 * S);
        assert_string_equal(strbuf_str(&receiver.got), "n1 drained 200\n");
        assert_string_equal(receiver.key, key);
        receiver_done(&receiver);
}

/* What is told after a restart is what was begun, and not more. */
TEST_CASE(test_restart_draining) {
        Receiver receiver = { .status = 200 };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, RECEIVER_URL, 3);

        fake_add_pdb(r->cluster, NULL, "all", "web", true, "3");
        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 20 * S);
        strbuf_truncate(&receiver.got, 0);
        agent_rig_kill(r);
        agent_rig_start(r);
        assert_return_code(http_inproc_route(r->transport, RECEIVER_ORIGIN, receiver_handle, &receiver), 0);
        agent_rig_run(r, 10 * S);
        assert_string_equal(strbuf_str(&receiver.got), "n1 draining 200\nn1 blocked 200\n");
        receiver_done(&receiver);
}

/* All that the agent sent to the API server on its way out, with the times. */
static char *course(const char *url, unsigned status, size_t *ret_in_flight) {
        Receiver receiver = { .status = status };
        _cleanup_(agent_rig_freep) AgentRig *r = telling_rig(&receiver, url, 30);
        const FakeApi *api = fake_cluster_api(r->cluster);
        const FakeLogEntry *e;
        StrBuf b = { 0 };

        fake_api_log_reset(fake_cluster_api(r->cluster));
        agent_rig_notice(r, 120 * S);
        agent_rig_run(r, 60 * S);
        assert_string_equal(agent_phase(r->agent), "Drained");
        for (size_t i = 0; (e = fake_api_log_at(api, i)); i++)
                if (streq_ptr(e->user, "system:node:" RIG_NODE) && e->verb != FAKE_WATCH && !strstr(e->path, "/events"))
                        strbuf_addf(&b, "%" PRIu64 " %s %s %u\n", e->at_usec, e->method, e->path, e->status);
        *ret_in_flight = receiver.n_open_max;
        receiver_done(&receiver);
        return strbuf_steal(&b);
}

/* A receiver that hangs, fails, or is not there changes nothing of what is done to the node, nor when. */
TEST_CASE(test_delays_nothing) {
        size_t in_flight;
        _cleanup_free_ char *nobody = course(NULL, 200, &in_flight);
        static const struct {
                const char *title, *url;
                unsigned status;
        } rows[] = {
                { "hangs", RECEIVER_URL, 0 },
                { "fails", RECEIVER_URL, 503 },
                { "is not there", "https://nowhere.example/", 200 },
                { "takes it", RECEIVER_URL, 200 },
        };

        assert_non_null(strstr(nobody, "eviction 201"));
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *with = course(rows[i].url, rows[i].status, &in_flight);

                print_message("the receiver %s\n", rows[i].title);
                assert_string_equal(with, nobody);
                assert_int_equal(in_flight, i == 0 ? 1 : 0); /* one node: one after the other */
        }
}

/* By the name and the labels that dashboards know. */
TEST_CASE(test_metrics) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        _cleanup_strbuf_ StrBuf b = { 0 };

        assert_return_code(agent_metrics_new(&m), 0);
        metrics_add(m, AGENT_METRIC_NOTIFICATIONS,
                    metrics_index(m, AGENT_METRIC_NOTIFICATIONS, (size_t[METRIC_LABELS_MAX]){ NOTIFY_OUTCOME_FAILED, NOTIFY_DRAINED }), 2);
        metrics_format(m, &b);
        assert_non_null(strstr(strbuf_str(&b), "vesper_agent_notifications_total{outcome=\"failed\",phase=\"drained\"} 2"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_phases),   cmocka_unit_test(test_blocked), cmocka_unit_test(test_cancelled),
                cmocka_unit_test(test_released), cmocka_unit_test(test_dry_run), cmocka_unit_test(test_restart), cmocka_unit_test(test_restart_draining),
                cmocka_unit_test(test_delays_nothing), cmocka_unit_test(test_metrics),
        };

        return cmocka_run_group_tests_name("notify-agent", tests, NULL, NULL);
}
