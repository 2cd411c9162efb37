/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-power.h"
#include "sim-reboots.h"
#include "sim-test.h"
#include "sim-webhook.h"

/*
 * Reboots that are asked for, from the request of an agent over the coordinator's grant to the node that is
 * Ready again, with whoever takes part in it dying. Beside what sim-check.h holds ("slots" above all) and
 * sim-power.h's invariants: each request comes to its end, and nothing of it is left.
 */

#define SEEDS 5u
#define RANDOM_SEEDS 25u
#define ASKS "vesper.sh/shutdown-request"
#define GRANTED "vesper.sh/shutdown-granted"

#define require_run(w, usec) require(w, sim_power_run(w, usec))

/* Everybody is there, and the leader has settled. */
static SimWorld *world(uint64_t seed, const SimOptions *o) {
        SimWorld *w = sim_world_new(seed, o);

        require(w, sim_reboots_settle(w));
        return w;
}

CONDITION(is_granted, sim_world_annotation(w, m, GRANTED))
CONDITION(has_rebooted, sim_power_n_off(w, m) > 0)
CONDITION(asks_for_nothing, !sim_world_annotation(w, m, ASKS) && !sim_world_annotation(w, m, GRANTED))

/* All at once: each reboots once, one after the other. */
TEST_CASE(test_all_at_once) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                SimOptions o = sim_reboots_options;
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.max_reboots = (unsigned) (1 + seed % 2);
                w = world(seed, &o);
                for (size_t i = 0; i < 4; i++)
                        require(w, sim_reboots_ask(w, i, "RequestReboot"));
                require_run(w, 10 * USEC_PER_MINUTE);
                for (size_t i = 0; i < 4; i++) {
                        require(w, sim_power_n_off(w, i) == 1);
                        require(w, is_open(w, machine_arg(i)));
                }
                require(w, sim_reboots_none(w));
                require(w, pods_are_back(w, NULL));
                require_quiet(w);
        }
}

/* Each drain takes more than a minute, in the middle of which the agent dies, and the leader with it: so long the slot
 * is its own. */
TEST_CASE(test_slow_drains) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                SimOptions o = sim_reboots_options;
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.stop_sec = 70;
                o.grace_sec = 90;
                w = world(seed, &o);
                for (size_t i = 0; i < 3; i++)
                        require(w, sim_reboots_ask(w, i, "RequestReboot"));
                for (unsigned i = 0; i < 3; i++) {
                        require_run(w, 150 * SEC);
                        if (seed % 2 && sim_world_leader(w))
                                sim_process_kill(sim_world_leader(w), 5 * SEC);
                        for (size_t m = 0; m < 3; m++)
                                if (fake_power_phase(sim_power_machine(w, m)) == FAKE_POWER_DELAY &&
                                    sim_world_agent(w, m)->life)
                                        sim_process_kill(sim_world_agent(w, m), (1 + seed) * SEC);
                }
                require_run(w, 15 * USEC_PER_MINUTE);
                for (size_t i = 0; i < 3; i++)
                        require(w, sim_power_n_off(w, i) == 1);
                require(w, sim_reboots_none(w));
                require(w, pods_are_back(w, NULL));
        }
}

/* The leader dies at each moment around a grant, and the other one goes by what stands on the Nodes. */
TEST_CASE(test_leader_dies) {
        for (uint64_t seed = 1; seed <= 6 * SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &sim_reboots_options);
                SimKill kill = { .step = sim_world_leader(w)->life->n_steps + seed,
                                 .restart_usec = 5 * SEC };

                sim_check_trouble(w->check, 300 * SEC);
                sim_process_plan_kill(sim_world_leader(w), &kill);
                for (size_t i = 0; i < 3; i++)
                        require(w, sim_reboots_ask(w, i, "RequestReboot"));
                require_run(w, 15 * USEC_PER_MINUTE);
                for (size_t i = 0; i < 3; i++)
                        require(w, sim_power_n_off(w, i) == 1);
                require(w, sim_reboots_none(w));
                require_quiet(w);
        }
}

/* Nobody leads: patience runs out, nothing has happened, and nothing is left. */
TEST_CASE(test_nobody_grants) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &sim_reboots_options);

                for (size_t i = 0; i < 2; i++)
                        sim_process_kill(sim_world_coordinator(w, i), USEC_INFINITY);
                require(w, sim_reboots_ask(w, 1, "RequestReboot"));
                require_run(w, SIM_REBOOTS_PATIENCE_USEC - 10 * SEC);
                require(w, sim_world_annotation(w, 1, ASKS));
                require_run(w, 20 * SEC);
                require(w, asks_for_nothing(w, machine_arg(1)));
                require(w, sim_power_n_off(w, 1) == 0 && is_open(w, machine_arg(1)));
                require_quiet(w);
        }
}

/* It does not come back: the next one has to wait for the end of its slot, and not longer. */
TEST_CASE(test_lost_on_the_way) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &sim_reboots_options);
                usec_t granted;

                require(w, sim_reboots_ask(w, 1, "RequestReboot"));
                require(w, sim_world_run_until(w, 60 * SEC, is_granted, machine_arg(1)));
                granted = sim_world_now(w);
                require(w, sim_reboots_ask(w, 2, "RequestReboot"));
                require(w, sim_world_run_until(w, 60 * SEC, has_rebooted, machine_arg(1)));
                sim_world_machine_ends(w, 1, 0);
                require_run(w, granted + SIM_REBOOTS_SLOT_USEC - 5 * SEC - sim_world_now(w));
                require(w, !is_granted(w, machine_arg(2)));
                require_run(w, 200 * SEC);
                require(w, sim_power_n_off(w, 2) == 1);
                require(w, sim_world_events(w, "RebootSlotExpired") > 0);
        }
}

/* It hears of its slot when that has ended, and the next node has it. Whatever its clock says, it does not
 * reboot then. */
TEST_CASE(test_heard_too_late) {
        static const int off_sec[] = { 0, -70, -3600, 70 };

        for (size_t i = 0; i < ELEMENTSOF(off_sec); i++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(i + 1, &sim_reboots_options);
                SimProcess *agent = sim_world_agent(w, 1);

                require(w, sim_reboots_ask(w, 1, "RequestReboot"));
                fake_api_deafen(fake_cluster_api(w->cluster), agent->user,
                                sim_world_now(w) + SIM_REBOOTS_SLOT_USEC + 20 * SEC);
                require(w, sim_world_run_until(w, 60 * SEC, is_granted, machine_arg(1)));
                sim_process_set_clock(agent, off_sec[i] * (int64_t) SEC);
                require(w, sim_reboots_ask(w, 2, "RequestReboot"));
                require_run(w, SIM_REBOOTS_SLOT_USEC + 10 * SEC);
                require(w, is_granted(w, machine_arg(2)));
                require_run(w, 60 * SEC);
                require(w, asks_for_nothing(w, machine_arg(1)));
                require_run(w, 200 * SEC);
                require(w, sim_power_n_off(w, 1) == 0 && is_open(w, machine_arg(1)));
                require(w, sim_power_n_off(w, 2) == 1);
        }
}

/* A slot is as good as it is, whatever a node's own clock says. */
TEST_CASE(test_wrong_clock) {
        static const int off_sec[] = { -7200, -300, 300, 7200 };

        for (size_t i = 0; i < ELEMENTSOF(off_sec); i++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(i + 1, &sim_reboots_options);

                sim_process_set_clock(sim_world_agent(w, 1), off_sec[i] * (int64_t) SEC);
                require(w, sim_reboots_ask(w, 1, "RequestReboot"));
                require(w, sim_world_run_until(w, 30 * SEC, is_granted, machine_arg(1)));
                require(w, sim_world_run_until(w, 120 * SEC, has_rebooted, machine_arg(1)));
                require_run(w, 300 * SEC);
                require(w, sim_power_n_off(w, 1) == 1 && sim_reboots_none(w));
                require_quiet(w);
        }
}

static const cJSON *charges(SimWorld *w) {
        return fj_get(fake_get(w->cluster, FAKE_NDBS, NULL, "nodes"), "status", "disruptedNodes", NULL);
}

static bool is_charged(SimWorld *w, const char *node, const char *kind, bool held_before) {
        const cJSON *c = fj_find(charges(w), "name", node);

        return c && streq_ptr(fj_string(c, "kind", NULL), kind) &&
               held_before == (fj_get(c, "heldBefore", NULL) != NULL);
}

/* A person's DELETE of a node is let pass, and something else refuses it then: while the node has a slot,
 * and before it asks for one. The budget has room for one node. */
TEST_CASE(test_beside_a_deletion) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                SimOptions o = sim_reboots_options;
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.node_budget = 1;
                o.webhooks = 1;
                w = world(seed, &o);
                require(w, sim_reboots_ask(w, 0, "RequestReboot"));
                require(w, sim_world_run_until(w, 60 * SEC, is_granted, machine_arg(0)));
                require(w, is_charged(w, "n0", "reboot", false));
                sim_webhook_ask(w->webhook, 0);
                require_run(w, 5 * SEC);
                require(w,
                        is_charged(w, "n0", "DELETE", true) || !sim_world_condition(w, 0, "Ready", "True"));
                sim_webhook_ask(w->webhook, 1); /* refused: there is no room */
                require_run(w, 5 * USEC_PER_MINUTE);
                require(w, sim_power_n_off(w, 0) == 1 && sim_reboots_none(w));
                require(w, cJSON_GetArraySize(charges(w)) == 0);

                sim_webhook_ask(w->webhook, 2);
                require_run(w, SEC);
                require(w, is_charged(w, "n2", "DELETE", false));
                require(w, sim_reboots_ask(w, 2, "RequestReboot"));
                require_run(w, 90 * SEC);
                require(w, !is_granted(w, machine_arg(2)));
                require_run(w, 7 * USEC_PER_MINUTE);
                require(w, sim_power_n_off(w, 2) == 1 && sim_reboots_none(w));
                require(w, cJSON_GetArraySize(charges(w)) == 0);
        }
}

/* By chance; sim-random --reboots plays more of them. */
TEST_CASE(test_random) {
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                SimOutcome o;

                sim_reboots_play(seed, true, false, &o);
                assert_true(o.good);
                sim_outcome_done(&o);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_at_once),     cmocka_unit_test(test_slow_drains),
                cmocka_unit_test(test_leader_dies),     cmocka_unit_test(test_nobody_grants),
                cmocka_unit_test(test_lost_on_the_way), cmocka_unit_test(test_heard_too_late),
                cmocka_unit_test(test_wrong_clock),     cmocka_unit_test(test_beside_a_deletion),
                cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests_name("sim-reboot", tests, NULL, NULL);
}
