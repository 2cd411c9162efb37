/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent-metrics.h"
#include "agent-rig.h"
#include "awake-check.h"
#include "cmocka-test.h"
#include "http-inproc.h"
#include "kubelet-watch.h"
#include "texts.h"

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

/* Each thing that waits for the API server, or for the metadata service, is tried at once when links change. */
TEST_CASE(test_link_change_wakes_all) {
        static const struct {
                const char *what;
                FakeVerb verb;
                FakeResourceId resource;
                const char *subresource;
        } rows[] = {
                { "the cordon", FAKE_PATCH, FAKE_NODES, NULL },
                { "the watch of the Node", FAKE_WATCH, FAKE_NODES, NULL },
                { "the watch of its pods", FAKE_WATCH, FAKE_PODS, NULL },
                { "an eviction", FAKE_CREATE, FAKE_PODS, "eviction" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                const FakeApi *api = fake_cluster_api(r->cluster);
                bool evicts = rows[i].subresource;

                print_message("%s\n", rows[i].what);
                agent_rig_add_pods(r, "web", 3);
                agent_rig_run(r, USEC_PER_SEC);
                if (evicts)
                        fake_add_pdb(r->cluster, NULL, "web-budget", "web", true, "3");
                else
                        fake_api_away_until(fake_cluster_api(r->cluster), usec_add(virtual_time_now(r->world.time), 42 * USEC_PER_SEC));
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, evicts ? 5 * USEC_PER_SEC : 42 * USEC_PER_SEC + USEC_PER_MSEC);
                r->no_route = evicts; /* for less than the 15 s after which the Node would be read first */
                agent_rig_run(r, evicts ? 9 * USEC_PER_SEC : 0);
                r->no_route = false;
                fake_api_log_reset(fake_cluster_api(r->cluster));
                agent_rig_run(r, 50 * USEC_PER_MSEC);
                /* The agent waits: else this shows nothing. */
                assert_int_equal(fake_api_count(api, rows[i].verb, rows[i].resource, rows[i].subresource), 0);
                fake_netlink_change(&r->netlink);
                agent_rig_run(r, 50 * USEC_PER_MSEC);
                assert_true(fake_api_count(api, rows[i].verb, rows[i].resource, rows[i].subresource) > 0);
        }
}

/* The metadata service is asked again at once, too. */
TEST_CASE(test_link_change_wakes_polls) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        size_t n;

        r->lost = AGENT_METADATA_ENDPOINT;
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        r->lost = NULL;
        n = fake_imds_n_gets(r->imds);
        fake_netlink_change(&r->netlink);
        agent_rig_run(r, 50 * USEC_PER_MSEC);
        assert_true(fake_imds_n_gets(r->imds) > n);
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
        n = text_count(strbuf_str(&r->patches), "PATCH");
        strbuf_truncate(&r->patches, 0);
        agent_rig_run(r, 50 * USEC_PER_SEC);
        n = text_count(strbuf_str(&r->patches), "/api/v1/nodes/n1");
        assert_in_range(n, 9, 11);
        assert_int_equal(text_count(strbuf_str(&r->lines), "has no way to the API server"), 1);
        assert_true(agent_rig_metric(r, "vesper_agent_api_no_route") == 1);

        r->no_route = false;
        agent_rig_run(r, 100 * USEC_PER_MSEC);
        if (text_count(strbuf_str(&r->lines), "has a way to the API server again") == 0) /* an informer came first */
                assert_true(agent_rig_unschedulable(r));
        fake_netlink_change(&r->netlink);
        agent_rig_run(r, 100 * USEC_PER_MSEC);
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(text_count(strbuf_str(&r->lines), "has a way to the API server again, after 14min 56s"), 1);
        assert_true(agent_rig_metric(r, "vesper_agent_api_no_route") == 0);
        assert_true(agent_rig_metric(r, "vesper_agent_route_changes_total") == 1);
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
        n = text_count(strbuf_str(&r->patches), "/api/v1/nodes/n1/status");
        assert_in_range(n, 5, 7);

        strbuf_truncate(&r->patches, 0);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 2100 * USEC_PER_MSEC); /* by the next poll */
        assert_true(text_count(strbuf_str(&r->patches), "unschedulable") > 0);
        agent_rig_run(r, 12 * USEC_PER_SEC);
        n = text_count(strbuf_str(&r->patches), "unschedulable");
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

typedef struct Kubelet {
        bool ok;
        unsigned n;
} Kubelet;

static void on_healthz(HttpExchange *x, void *userdata) {
        Kubelet *k = userdata;

        k->n++;
        assert_string_equal(x->path, "/healthz");
        assert_int_equal(x->method, HTTP_GET);
        http_reply_text(x, k->ok ? 200 : 500, "text/plain", k->ok ? "ok" : "[-]syncloop failed\nhealthz check failed");
}

/* Said in the log and on the Node, once each time; nothing is done for it. */
TEST_CASE(test_kubelet_watch) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        Kubelet k = { .ok = true };

        agent_rig_add_pods(r, "web", 2);
        assert_return_code(http_inproc_route(r->transport, "http://127.0.0.1:10248", on_healthz, &k), 0);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_range(k.n, 9, 10);
        for (unsigned round = 1; round <= 2; round++) {
                strbuf_truncate(&r->lines, 0);
                k.ok = false;
                agent_rig_run(r, 85 * USEC_PER_SEC);
                assert_false(agent_rig_said(r, "The kubelet of node"));
                k.n = 0;
                agent_rig_run(r, 10 * USEC_PER_MINUTE);
                assert_int_equal(k.n, 20);
                assert_int_equal(text_count(strbuf_str(&r->lines), "has not been healthy for 1min 30s (HTTP 500: [-]syncloop failed)"), 1);
                assert_true(agent_rig_has_event(r, "Node", "KubeletUnhealthy"));
                assert_true(agent_rig_metric(r, "vesper_agent_kubelet_unhealthy") == 1);
                assert_false(agent_rig_unschedulable(r));
                assert_int_equal(agent_rig_n_pods(r), 2);
                k.ok = true;
                agent_rig_run(r, 35 * USEC_PER_SEC);
                assert_false(agent_rig_said(r, "is healthy again"));
                agent_rig_run(r, 5 * USEC_PER_MINUTE);
                assert_int_equal(text_count(strbuf_str(&r->lines), "is healthy again"), 1);
                assert_true(agent_rig_has_event(r, "Node", "KubeletHealthy"));
                assert_true(agent_rig_metric(r, "vesper_agent_kubelet_unhealthy") == 0);
        }
}

/* A machine that goes down stops its kubelet: the metric shows that, and nobody is warned. */
TEST_CASE(test_kubelet_of_ending_machine) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        Kubelet k = { .ok = true };

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'volumesInUse':['csi/disk-1']}}");
        agent_rig_add_pods(r, "web", 1);
        fake_merge(r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'finalizers':['x.y/z']}}");
        assert_return_code(http_inproc_route(r->transport, "http://127.0.0.1:10248", on_healthz, &k), 0);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        k.ok = false;
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(agent_rig_metric(r, "vesper_agent_kubelet_unhealthy") == 1);
        assert_false(agent_rig_said(r, "The kubelet of node"));
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

/* -- when all is over --------------------------------------------------------------------------- */

static void drain_and_cancel(AgentRig *r) {
        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_property(r, "State", "Drained");
        assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), 0);
}

static void reboot_and_cancel(AgentRig *r) {
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_property(r, "State", "RebootRequested");
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
}

static void announce_and_withdraw(AgentRig *r) {
        fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "Terminated");
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_property(r, "State", "Drained");
        fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "InService");
}

static void shut_down_and_cancel(AgentRig *r) {
        fake_power_set_limits(r->power, &(FakePowerLimits){ 600 * USEC_PER_SEC, 30 * USEC_PER_MINUTE, 90 * USEC_PER_SEC });
        agent_rig_add_pods(r, "slow", 1);
        fake_merge(r->cluster, FAKE_PODS, "default", "slow-0", "{'metadata':{'annotations':{'fake.vesper.sh/stop-seconds':'300'}}}");
        agent_rig_run(r, USEC_PER_SEC);
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_property(r, "State", "Draining");
        assert_true(fake_power_cancel(r->power));
        agent_rig_run(r, 6 * USEC_PER_MINUTE);
}

static void schedule_and_cancel(AgentRig *r) {
        fake_power_schedule(r->power, "reboot", loop_wall(r->world.loop) + 5 * USEC_PER_MINUTE);
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_property(r, "State", "RebootRequested");
        fake_power_schedule(r->power, NULL, 0);
        agent_rig_run(r, USEC_PER_MINUTE);
}

static void lose_logind(AgentRig *r) {
        fake_power_set_logind(r->power, false);
        fake_power_forget_inhibitors(r->power);
        fake_power_set_bus(r->power, false);
        agent_rig_run(r, USEC_PER_MINUTE);
        fake_power_set_bus(r->power, true);
        agent_rig_run(r, USEC_PER_MINUTE);
        fake_power_set_logind(r->power, true);
        agent_rig_run(r, USEC_PER_MINUTE);
}

static void lose_metadata(AgentRig *r) {
        fake_imds_hang(r->imds, FAKE_IMDS_ALL, UINT32_MAX);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        fake_imds_hang(r->imds, FAKE_IMDS_ALL, 0);
        agent_rig_run(r, 2 * USEC_PER_MINUTE);
}

/* Steps of the whole world in ten minutes: timers, requests and answers. */
static size_t steps(AgentRig *r) {
        usec_t until = usec_add(virtual_time_now(r->world.time), 10 * USEC_PER_MINUTE);
        size_t n = 0;

        while (virtual_time_step(r->world.time, until) > 0)
                n++;
        return n;
}

/* An agent that has nothing to do any more does as little as before: no timer is left that wakes it for nothing, nothing is
 * announced on D-Bus, and nothing is written. */
TEST_CASE(test_quiet_again) {
        static const struct {
                const char *what;
                void (*act)(AgentRig *r);
        } rows[] = {
                { "a drain by hand", drain_and_cancel },     { "a reboot by hand", reboot_and_cancel },
                { "a notice", announce_and_withdraw },       { "a shutdown", shut_down_and_cancel },
                { "a scheduled shutdown", schedule_and_cancel }, { "logind was away", lose_logind },
                { "metadata was away", lose_metadata },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                _cleanup_free_ char *writes = NULL;
                size_t before, after;
                unsigned n_emitted;

                agent_rig_add_pods(r, "web", 1);
                agent_rig_run(r, 5 * USEC_PER_MINUTE);
                before = steps(r);
                for (unsigned round = 0; round < 2; round++) {
                        rows[i].act(r);
                        agent_rig_run(r, 2 * USEC_PER_MINUTE);
                        assert_property(r, "State", "Idle");
                        assert_false(agent_rig_unschedulable(r));
                        fake_api_log_reset(fake_cluster_api(r->cluster));
                        n_emitted = fake_power_n_emitted(r->power);
                        after = steps(r);
                        print_message("%s: %zu steps before, %zu after\n", rows[i].what, before, after);
                        assert_in_range(after, before - before / 50, before + before / 50);
                        assert_int_equal(fake_power_n_emitted(r->power), n_emitted);
                        writes = agent_rig_writes(r);
                        assert_string_equal(writes, "");
                        writes = mfree(writes);
                }
        }
}

/* -- what is unfinished ------------------------------------------------------------------------- */

static void on_reported(const char *what, const char *name, const char *state, void *userdata) {
        strbuf_addf(userdata, "%s %s (%s)\n", what, name, state);
}

/* Returns the reports of the agent now, but for those of an agent that has nothing to do. Free it. */
static char *reports(AgentRig *r, const char *usual) {
        _cleanup_strbuf_ StrBuf all = { 0 }, news = { 0 };
        Wakeups w;

        wakeups_begin(&w, r->loop, awake_check_asleep, &all);
        w.reported = on_reported;
        agent_next_wakeup(r->agent, &w);
        wakeups_end(&w);
        for (const char *line = strbuf_str(&all); *line; line += strcspn(line, "\n") + 1) {
                _cleanup_free_ char *text = strndup(line, strcspn(line, "\n") + 1);

                if (!strstr(usual, text))
                        strbuf_add(&news, text);
        }
        return MUST(strbuf_steal(&news));
}

static void reports_drain(AgentRig *r) {
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        agent_rig_run(r, USEC_PER_MINUTE);
}

static void reports_power(AgentRig *r) {
        fake_power_set_logind_silent(r->power, true);
        fake_power_set_bus(r->power, false);
        fake_power_set_bus(r->power, true); /* signals may have been lost, so the agent asks */
        agent_rig_run(r, 3 * USEC_PER_SEC);
}

static void reports_reboot(AgentRig *r) {
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        agent_rig_run(r, 10 * USEC_PER_SEC);
}

static void reports_schedule(AgentRig *r) {
        fake_power_schedule(r->power, "reboot", loop_wall(r->world.loop) + USEC_PER_HOUR);
        agent_rig_run(r, USEC_PER_MINUTE);
}

static void reports_shutdown(AgentRig *r) {
        fake_power_set_limits(r->power, &(FakePowerLimits){ 600 * USEC_PER_SEC, 30 * USEC_PER_MINUTE, 90 * USEC_PER_SEC });
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        agent_rig_run(r, 10 * USEC_PER_SEC);
}

static void reports_plan(AgentRig *r) {
        _cleanup_free_ char *body = NULL;
        char at[RFC3339_MAX];

        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "before:1h"), 0);
        agent_reconfigured(r->agent);
        rfc3339_format(usec_add(loop_wall(r->world.loop), 3 * USEC_PER_HOUR), at);
        body = strf("[{\"EventId\": \"instance-event-1\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}]", at);
        fake_imds_set_text(r->imds, "events/maintenance/scheduled", body);
        agent_rig_run(r, 2 * USEC_PER_MINUTE);
}

/* Each module reports what is unfinished, by name: without the report, a missing timer would not be seen. */
TEST_CASE(test_reports) {
        static const struct {
                const char *what;
                void (*act)(AgentRig *r);
                const char *expected;
        } rows[] = {
                { "a drain by hand", reports_drain,
                  "Node n1 (to be read)\npod to evict web-0 (Terminating)\ninterruption of node n1 (Draining)\n"
                  "permit to end pods of node n1 (the Node is to be read)\n" },
                { "a reboot by hand", reports_reboot, "patience of the request 642e1c7b-c266-43a7-b27a-48e29a233673 (asked)\n" },
                { "a scheduled shutdown", reports_schedule, "scheduled reboot (a slot is to be asked for)\n" },
                { "a shutdown", reports_shutdown,
                  "pod to evict web-0 (Terminating)\ninterruption of node n1 (Draining)\nshutdown held up ()\n"
                  "poll of /runningpods/ (watching)\npoll of PID 1's processes ()\n" },
                { "a notice whose time has not come", reports_plan, "next act of [Policy] ()\n" },
                { "a logind that does not answer", reports_power, "question whether the machine stays (not answered)\n" },
        };
        static const char usual[] = "informer of nodes (watching)\ninformer of pods (watching)\npoll of ec2 (waiting)\n"
                                    "poll of /runningpods/ ()\npoll of /healthz ()\npoll of logind's schedule ()\n";

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                _cleanup_free_ char *before = NULL, *after = NULL;

                print_message("%s\n", rows[i].what);
                agent_rig_add_pods(r, "web", 1);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                before = reports(r, "");
                assert_string_equal(before, usual);
                rows[i].act(r);
                after = reports(r, usual);
                assert_string_equal(after, rows[i].expected);
        }
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
                cmocka_unit_test(test_link_change_wakes_all),
                cmocka_unit_test(test_link_change_wakes_polls),
                cmocka_unit_test(test_no_route),
                cmocka_unit_test(test_no_route_holds_no_cordon),
                cmocka_unit_test(test_kubelet_health),
                cmocka_unit_test(test_kubelet_watch),
                cmocka_unit_test(test_kubelet_of_ending_machine),
                cmocka_unit_test(test_machine_goes_down),
                cmocka_unit_test(test_no_bus),
                cmocka_unit_test(test_drain_by_hand),
                cmocka_unit_test(test_blocked_without_an_end),
                cmocka_unit_test(test_cancel_is_not_for_notices),
                cmocka_unit_test(test_drain_again_after_release),
                cmocka_unit_test(test_drain_and_shutdown),
                cmocka_unit_test(test_no_metrics),
                cmocka_unit_test(test_quiet_again),
                cmocka_unit_test(test_reports),
        };

        return cmocka_run_group_tests_name("agent-machine", tests, NULL, NULL);
}
