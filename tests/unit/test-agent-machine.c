/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent-metrics.h"
#include "agent-rig.h"
#include "cmocka-test.h"
#include "http-inproc.h"
#include "kubelet-watch.h"

/* What the machine around an agent tells it: links, routes, shutdowns. */

#define LEAD_USEC (120 * USEC_PER_SEC)

static AgentRig *running_rig(void) {
        AgentRig *r = agent_rig_new();

        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(r->ready);
        return r;
}

static void assert_drained_by_notice(AgentRig *r) {
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_string_equal(agent_rig_condition(r, "Drained"), "True");
}

/* A way to the network came back: what waits out a backoff is tried at once. */
TEST_CASE(test_link_returns) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        usec_t back;

        agent_rig_add_pods(r, "web", 3);
        agent_rig_run(r, USEC_PER_SEC);
        back = usec_add(virtual_time_now(r->world.time), 42 * USEC_PER_SEC);
        fake_api_away_until(fake_cluster_api(r->cluster), back);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 42 * USEC_PER_SEC + USEC_PER_MSEC);
        assert_false(agent_rig_unschedulable(r)); /* it waits: else this shows nothing */
        fake_netlink_change(&r->netlink);
        agent_rig_run(r, 50 * USEC_PER_MSEC);
        assert_true(agent_rig_unschedulable(r));
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

static size_t count(const char *text, const char *part) {
        size_t n = 0;

        for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
                n++;
        return n;
}

/* No way to the API server: said once. The first cordon is tried at once, and again each second; what else waits is tried every
 * 5 s, and at once when a route has come back. */
TEST_CASE(test_no_route) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        size_t n;

        agent_rig_add_pods(r, "web", 3);
        assert_drained_by_notice(r);
        fake_imds_clear_action(r->imds);
        r->no_route = true;
        agent_rig_run(r, 15 * USEC_PER_MINUTE); /* until it counts as withdrawn: its marks are to go */
        assert_string_equal(agent_phase(r->agent), "Cancelled");
        n = count(strbuf_str(&r->patches), "PATCH");
        strbuf_truncate(&r->patches, 0);
        agent_rig_run(r, 50 * USEC_PER_SEC);
        n = count(strbuf_str(&r->patches), "/api/v1/nodes/n1");
        assert_in_range(n, 9, 11);
        assert_int_equal(count(strbuf_str(&r->lines), "has no way to the API server"), 1);

        r->no_route = false;
        agent_rig_run(r, 100 * USEC_PER_MSEC);
        if (count(strbuf_str(&r->lines), "has a way to the API server again") == 0) /* an informer came first */
                assert_true(agent_rig_unschedulable(r));
        fake_netlink_change(&r->netlink);
        agent_rig_run(r, 100 * USEC_PER_MSEC);
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(count(strbuf_str(&r->lines), "has a way to the API server again"), 1);
}

/* Another write waits for a way: the cordon does not wait with it. */
TEST_CASE(test_no_route_holds_no_cordon) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        _cleanup_free_ char *event = NULL;
        char at[RFC3339_MAX];
        size_t n;

        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "before:1h"), 0);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        rfc3339_format(usec_add(loop_wall(r->loop), 5 * USEC_PER_HOUR), at);
        event = strf("[{\"EventId\": \"instance-event-1\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}]", at);
        fake_imds_set_text(r->imds, "events/maintenance/scheduled", event);
        r->no_route = true;
        agent_rig_run(r, 3 * USEC_PER_MINUTE); /* what is planned is to stand on the Node */
        strbuf_truncate(&r->patches, 0);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        n = count(strbuf_str(&r->patches), "/api/v1/nodes/n1/status");
        assert_in_range(n, 5, 7);

        strbuf_truncate(&r->patches, 0);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 2100 * USEC_PER_MSEC); /* by the next poll */
        assert_true(count(strbuf_str(&r->patches), "unschedulable") > 0);
        agent_rig_run(r, 12 * USEC_PER_SEC);
        n = count(strbuf_str(&r->patches), "unschedulable");
        if (n < 10)
                fail_msg("only %zu tries in 14 s", n);
        r->no_route = false;
        agent_rig_run(r, 1300 * USEC_PER_MSEC); /* without any news of links */
        assert_true(agent_rig_unschedulable(r));
}

/* -- the kubelet -------------------------------------------------------------------------------- */

TEST_CASE(test_kubelet_health) {
        static const struct {
                const char *what, *answers; /* o: 200; x: 500; -: none */
                const char *verdicts;       /* .: the same; U, H */
        } rows[] = {
                { "healthy", "ooooo", "....." },
                { "three failures", "oxxxo", "....." },
                { "four", "oxxxxx", "....U." },
                { "no answer is a failure", "o-x-x", "....U" },
                { "one success between", "oxxxoxxx", "........" },
                { "back after two", "oxxxxoo", "....U.H" },
                { "not after one", "oxxxxoxooo", "....U...H." },
                { "it never answered", "----------", ".........." },
                { "it answers after long", "------o----", "..........U" },
                { "it answers, and badly", "xxxx", "...U" },
                { "silent, then bad", "---x", "...U" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeletHealth h = { 0 };
                char seen[20] = "";

                for (size_t k = 0; rows[i].answers[k]; k++) {
                        KubeletVerdict v = kubelet_health_step(&h, rows[i].answers[k] == 'o' ? 200 : rows[i].answers[k] == 'x' ? 500 : 0, k + 1);

                        seen[k] = v == KUBELET_SAME ? '.' : v == KUBELET_UNHEALTHY ? 'U' : 'H';
                }
                print_message("%s: %s\n", rows[i].what, rows[i].answers);
                assert_string_equal(seen, rows[i].verdicts);
        }
}

static void on_healthz(HttpExchange *x, void *userdata) {
        const bool *ok = userdata;

        http_reply_text(x, *ok ? 200 : 500, "text/plain", *ok ? "ok" : "[-]syncloop failed\nhealthz check failed");
}

/* Said in the log and on the Node, once; nothing is done for it. */
TEST_CASE(test_kubelet_watch) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        bool ok = true;

        agent_rig_add_pods(r, "web", 2);
        assert_return_code(http_inproc_route(r->transport, "http://127.0.0.1:10248", on_healthz, &ok), 0);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_false(agent_rig_said(r, "The kubelet of node"));
        ok = false;
        agent_rig_run(r, 85 * USEC_PER_SEC);
        assert_false(agent_rig_said(r, "The kubelet of node"));
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(count(strbuf_str(&r->lines), "has not been healthy for 1min 30s (HTTP 500: [-]syncloop failed)"), 1);
        assert_true(agent_rig_has_event(r, "Node", "KubeletUnhealthy"));
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(agent_rig_n_pods(r), 2);
        ok = true;
        agent_rig_run(r, 65 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "is healthy again"));
        assert_true(agent_rig_has_event(r, "Node", "KubeletHealthy"));
}

/* Once the machine goes down, a notice that is withdrawn undoes nothing. */
TEST_CASE(test_machine_goes_down) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        agent_rig_add_pods(r, "web", 1);
        assert_drained_by_notice(r);
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, USEC_PER_MSEC);
        assert_string_equal(agent_phase(r->agent), "Ending");
        assert_true(agent_rig_run(r, 20 * USEC_PER_MINUTE)); /* asked to end, it does so at once */
        assert_true(agent_rig_unschedulable(r));
        assert_non_null(agent_rig_annotation(r, "vesper.sh/interruption"));
}

TEST_CASE(test_no_bus) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->no_bus = true;
        agent_rig_start(r);
        assert_drained_by_notice(r);
        agent_rig_stop(r);
        assert_true(r->stopped); /* nobody could be asked */
}

static void assert_property(AgentRig *r, const char *property, const char *expected) {
        char *text = fake_power_get_unit(r->power, property);

        assert_string_equal(text, expected);
        free(text);
}

/* systemctl start vesper-drain, and stop: drained as for a notice without an end, and undone. */
TEST_CASE(test_drain_by_hand) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        assert_int_equal(fake_power_call_unit(r->power, "Drain"), -EAGAIN); /* the Node is not seen yet */
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_property(r, "State", "Idle");
        assert_property(r, "Notice", "");
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
                assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0); /* it is */
                agent_rig_run(r, 31 * USEC_PER_SEC); /* load balancers first */
                assert_property(r, "State", i == 0 ? "Draining" : "Drained");
                assert_property(r, "PodsLeft", i == 0 ? "3" : "0");
                assert_property(r, "Deadline", "0");
                agent_rig_kill(r); /* a crash changes nothing */
                agent_rig_start(r);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                assert_property(r, "State", "Drained");
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_true(agent_rig_unschedulable(r));
                assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), 0);
                agent_rig_run(r, USEC_PER_SEC);
                assert_property(r, "State", "Idle");
                assert_false(agent_rig_unschedulable(r));
                assert_null(agent_rig_annotation(r, "vesper.sh/interruption"));
        }
        assert_non_null(strstr(fake_power_emitted(r->power), "Planned"));
        assert_non_null(strstr(fake_power_emitted(r->power), "Drained "));
        assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), 0); /* nothing to undo */
}

/* No time is told to a pod that waits for none. */
TEST_CASE(test_blocked_without_an_end) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        agent_rig_add_pods(r, "db", 2);
        fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2");
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        agent_rig_run(r, 60 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "Pod default/db-0 cannot be evicted yet (BlockedByPDB db-budget)"));
        assert_false(agent_rig_said(r, "time is up"));
}

/* Cancel undoes what was asked for by hand, and no announcement. */
TEST_CASE(test_cancel_is_not_for_notices) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        assert_drained_by_notice(r);
        assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), 0);
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
}

/* A person's un-cordon ends one drain; who asks for another is heard. */
TEST_CASE(test_drain_again_after_release) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        agent_rig_run(r, 40 * USEC_PER_SEC);
        assert_property(r, "State", "Drained");
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_property(r, "State", "Idle");
        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        agent_rig_run(r, 40 * USEC_PER_SEC);
        assert_property(r, "State", "Drained");
}

/* Drained by hand, then restarted: at once, and after the boot the node serves again. */
TEST_CASE(test_drain_and_shutdown) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        agent_rig_run(r, 40 * USEC_PER_SEC);
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        agent_rig_run(r, USEC_PER_MSEC);
        assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), 0); /* too late, and no harm */
        assert_true(agent_rig_run(r, USEC_PER_SEC));
        assert_true(agent_rig_unschedulable(r));
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        fake_power_boot(r->power);
        agent_rig_reboot(r);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_false(agent_rig_unschedulable(r));
}

/* Somebody may have taken the port: the agent goes on. */
TEST_CASE(test_no_metrics) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.metrics_listen = strdup("nowhere");
        r->config.health_listen = strdup("nor here");
        agent_rig_start(r);
        assert_true(agent_rig_said(r, "Failed to listen on nowhere for metrics, continuing without"));
        assert_true(agent_rig_said(r, "Failed to listen on nor here for health, continuing without"));
        assert_drained_by_notice(r);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_link_returns),
                cmocka_unit_test(test_no_route),
                cmocka_unit_test(test_no_route_holds_no_cordon),
                cmocka_unit_test(test_kubelet_health),
                cmocka_unit_test(test_kubelet_watch),
                cmocka_unit_test(test_machine_goes_down),
                cmocka_unit_test(test_no_bus),
                cmocka_unit_test(test_drain_by_hand),
                cmocka_unit_test(test_blocked_without_an_end),
                cmocka_unit_test(test_cancel_is_not_for_notices),
                cmocka_unit_test(test_drain_again_after_release),
                cmocka_unit_test(test_drain_and_shutdown),
                cmocka_unit_test(test_no_metrics),
        };

        return cmocka_run_group_tests_name("agent-machine", tests, NULL, NULL);
}
