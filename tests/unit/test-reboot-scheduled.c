/* SPDX-License-Identifier: Apache-2.0 */
#include "reboot-request-bench.h"

/* A reboot that logind has scheduled: the agent asks for a slot in time. */

static char *scheduled_id(AgentRig *r, const char *kind) {
        cJSON *request = request_of(r);
        char *id;

        assert_non_null(request);
        assert_string_equal(fj_string(request, "kind", NULL), kind);
        id = strdup(fj_string(request, "id", NULL));
        cJSON_Delete(request);
        return id;
}

static usec_t in(AgentRig *r, usec_t usec) {
        return loop_wall(r->world.loop) + usec;
}

/* Asked for ten minutes before it at the earliest; granted, it waits for its time. */
TEST_CASE(test_scheduled) {
        static const struct {
                const char *type, *kind;
        } rows[] = { { "reboot", "reboot" },
                     { "kexec", "reboot" },
                     { "poweroff", "poweroff" },
                     { "halt", "poweroff" } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
                char *id;

                print_message("%s\n", rows[i].type);
                fake_power_schedule(r->power, rows[i].type, in(r, 1800 * S));
                run(r, 1100 * S);
                assert_null(agent_rig_annotation(r, REQUEST));
                run(r, 130 * S);
                id = scheduled_id(r, rows[i].kind);
                assert_state(r, "RebootRequested");
                grant(r, id, 2400);
                run(r, 300 * S);
                assert_state(r, "RebootGranted");
                assert_non_null(strstr(strbuf_str(&r->events), "- The coordinator granted the scheduled shutdown"));
                assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                assert_false(agent_rig_unschedulable(r));
                assert_true(fake_power_shutdown(r->power, rows[i].type, true));
                run(r, 30 * S);
                assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_null(agent_rig_condition(r, "MaintenancePlanned")); /* it has begun */
                assert_string_equal(agent_rig_condition(r, "MaintenanceInProgress"), "True");
                assert_false(agent_rig_said(r, "without the slot"));
                assert_non_null(agent_rig_annotation(r, REQUEST)); /* in use until the node is back */
                free(id);
        }
}

static const char *planned(AgentRig *r) {
        const cJSON *c = fj_find(fj_get(agent_rig_node(r), "status", "conditions", NULL), "type", "MaintenancePlanned");

        return c ? fj_string(c, "reason", NULL) : NULL;
}

/* The Node shows an announced end of its machine from the announcement until the end begins or is called off. */
TEST_CASE(test_planned) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        _cleanup_free_ char *said = NULL;
        const cJSON *c;

        assert_null(planned(r));
        fake_power_schedule(r->power, "reboot", in(r, 1800 * S));
        run(r, 31 * S);
        assert_string_equal(planned(r), "NodeShutdown");
        assert_string_equal(agent_rig_condition(r, "MaintenancePlanned"), "True");
        assert_false(agent_rig_unschedulable(r));
        c = fj_find(fj_get(agent_rig_node(r), "status", "conditions", NULL), "type", "MaintenancePlanned");
        said = strdup(fj_string(c, "message", NULL));

        print_message("another time, which the condition tells; since when it is planned stays\n");
        fake_power_schedule(r->power, "reboot", in(r, 3600 * S));
        run(r, 31 * S);
        c = fj_find(fj_get(agent_rig_node(r), "status", "conditions", NULL), "type", "MaintenancePlanned");
        assert_string_not_equal(fj_string(c, "message", NULL), said);

        print_message("an agent that starts anew, and one that finds it cancelled\n");
        agent_rig_kill(r);
        agent_rig_start(r);
        run(r, 31 * S);
        assert_string_equal(planned(r), "NodeShutdown");
        agent_rig_kill(r);
        fake_power_schedule(r->power, NULL, 0);
        agent_rig_start(r);
        run(r, 31 * S);
        assert_null(planned(r));

        print_message("cancelled before its eyes\n");
        fake_power_schedule(r->power, "poweroff", in(r, 1800 * S));
        run(r, 31 * S);
        assert_string_equal(planned(r), "NodeShutdown");
        fake_power_schedule(r->power, NULL, 0);
        run(r, 31 * S);
        assert_null(planned(r));

        print_message("somebody asks for a reboot, and takes it back\n");
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 2 * S);
        assert_string_equal(planned(r), "AdminRequested");
        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
        run(r, 2 * S);
        assert_null(planned(r));
}

/* Nobody has granted it when its time comes: it waits for nobody, and says so. */
TEST_CASE(test_scheduled_not_granted) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        fake_power_schedule(r->power, "reboot", in(r, 60 * S));
        run(r, 60 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        run(r, 30 * S);
        assert_true(agent_rig_said(r, "begins without the slot that was asked for"));
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

/* The slot of a scheduled reboot can end before the reboot begins: the agent then waits for nobody, and logs that. */
TEST_CASE(test_scheduled_after_its_slot) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        _cleanup_free_ char *id = NULL;

        loop_virtual_step_wall(r->loop, -70 * (int64_t) S);
        fake_power_schedule(r->power, "reboot", loop_wall(r->loop) + 300 * S);
        run(r, 40 * S);
        id = scheduled_id(r, "reboot");
        grant(r, id, 100);
        run(r, 5 * S);
        assert_state(r, "RebootGranted");
        run(r, 250 * S);
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        run(r, 30 * S);
        assert_true(agent_rig_said(r, "begins after its slot was over"));
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

/* logind goes by the wall clock: when that is set, a schedule comes sooner or later than it seemed to. */
TEST_CASE(test_scheduled_and_clock) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        _cleanup_free_ char *id = NULL, *same = NULL, *other = NULL;

        print_message("it was hours ahead, and is minutes\n");
        fake_power_schedule(r->power, "reboot", in(r, 2 * USEC_PER_HOUR));
        run(r, 40 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        loop_virtual_step_wall(r->loop, 7200 * (int64_t) S - 400 * (int64_t) S);
        run(r, 5 * S);
        id = scheduled_id(r, "reboot");

        print_message("a step of a second changes nothing\n");
        loop_virtual_step_wall(r->loop, S);
        run(r, 5 * S);
        same = scheduled_id(r, "reboot");
        assert_string_equal(id, same);

        print_message("it is asked for anew, by its new time\n");
        loop_virtual_step_wall(r->loop, -100 * (int64_t) S);
        run(r, 5 * S);
        other = scheduled_id(r, "reboot");
        assert_string_not_equal(id, other);

        print_message("it is hours ahead again\n");
        loop_virtual_step_wall(r->loop, -7200 * (int64_t) S);
        run(r, 5 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "Idle");
}

/* `shutdown -c`, another time, and a time that comes to nothing: each ends the request; the next schedule
 * asks anew. */
TEST_CASE(test_scheduled_anew) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();
        char *id, *other;

        fake_power_schedule(r->power, "reboot", in(r, 300 * S));
        run(r, 40 * S);
        id = scheduled_id(r, "reboot");
        fake_power_schedule(r->power, "reboot", in(r, 500 * S));
        run(r, 40 * S);
        other = scheduled_id(r, "reboot");
        assert_string_not_equal(id, other);
        grant(r, other, 2400);
        run(r, 5 * S);
        assert_state(r, "RebootGranted");
        fake_power_schedule(r->power, NULL, 0);
        run(r, 40 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "Idle");
        assert_true(agent_rig_said(r, "the scheduled shutdown was cancelled"));
        free(id);
        free(other);

        print_message("its time passes, and nothing happens\n");
        fake_power_schedule(r->power, "reboot", in(r, 100 * S));
        run(r, 40 * S);
        assert_state(r, "RebootRequested");
        run(r, 130 * S);
        assert_state(r, "Idle");
        assert_null(agent_rig_annotation(r, REQUEST));

        print_message("what a person asks for at once goes before it\n");
        fake_power_schedule(r->power, "reboot", in(r, 400 * S));
        run(r, 40 * S);
        id = scheduled_id(r, "reboot");
        assert_int_equal(fake_power_call_unit(r->power, "RequestReboot"), 0);
        run(r, 5 * S);
        other = asked_id(r);
        assert_string_not_equal(id, other);
        grant(r, other, 300);
        run(r, 30 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        free(id);
        free(other);
}

/* The agent requests no slot for a schedule that ends nothing, nor while logind does not answer. */
TEST_CASE(test_not_scheduled) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig();

        fake_power_schedule(r->power, "dry-reboot", in(r, 300 * S));
        run(r, 60 * S);
        fake_power_schedule(r->power, "soft-reboot", in(r, 300 * S));
        run(r, 60 * S);
        fake_power_set_logind(r->power, false);
        fake_power_schedule(r->power, "reboot", in(r, 300 * S));
        run(r, 60 * S);
        assert_null(agent_rig_annotation(r, REQUEST));
        assert_state(r, "Idle");
        print_message("its silence does not cancel what was scheduled\n");
        fake_power_set_logind(r->power, true);
        run(r, 40 * S);
        assert_state(r, "RebootRequested");
        fake_power_set_logind(r->power, false);
        run(r, 60 * S);
        assert_state(r, "RebootRequested");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_scheduled),
                cmocka_unit_test(test_planned),
                cmocka_unit_test(test_scheduled_not_granted),
                cmocka_unit_test(test_scheduled_after_its_slot),
                cmocka_unit_test(test_scheduled_and_clock),
                cmocka_unit_test(test_scheduled_anew),
                cmocka_unit_test(test_not_scheduled),
        };

        return cmocka_run_group_tests_name("reboot-scheduled", tests, NULL, NULL);
}
