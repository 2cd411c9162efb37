/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent-rig.h"

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
static void test_link_returns(void **state) {
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

/* Once the machine goes down, a notice that is withdrawn undoes nothing. */
static void test_machine_goes_down(void **state) {
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

static void test_no_bus(void **state) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->no_bus = true;
        agent_rig_start(r);
        assert_drained_by_notice(r);
        agent_rig_stop(r);
        assert_true(r->stopped); /* nobody could be asked */
}

/* Somebody may have taken the port: the agent goes on. */
static void test_no_metrics(void **state) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.metrics_listen = strdup("nowhere");
        agent_rig_start(r);
        assert_true(agent_rig_said(r, "Failed to listen on nowhere for metrics, going on without"));
        assert_drained_by_notice(r);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_link_returns),
                cmocka_unit_test(test_machine_goes_down),
                cmocka_unit_test(test_no_bus),
                cmocka_unit_test(test_no_metrics),
        };

        return cmocka_run_group_tests_name("agent-machine", tests, NULL, NULL);
}
