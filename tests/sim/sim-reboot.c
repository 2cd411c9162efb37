/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-power.h"
#include "sim-test.h"

/*
 * Reboots that are asked for, from the request of an agent over the coordinator's grant to the node that is
 * Ready again, with whoever takes part in it dying. Beside what sim-check.h holds ("slots" above all) and
 * sim-power.h's invariants: each request comes to its end, and nothing of it is left.
 */

#define SEEDS 5u
#define RANDOM_SEEDS 25u
#define PATIENCE_USEC (10 * USEC_PER_MINUTE)
#define SLOT_USEC (4 * USEC_PER_MINUTE)
#define ASKS "vesper.sh/shutdown-request"
#define GRANTED "vesper.sh/shutdown-granted"

static const SimOptions four = {
        .n_nodes = 4,
        .n_pods = 12,
        .pdb_min = 8,
        .stop_sec = 3,
        .grace_sec = 20,
        .n_agents = 4,
        .n_coordinators = 2,
        .no_pool = true,
};

static bool run(SimWorld *w, usec_t usec) {
        usec_t until = sim_world_now(w) + usec;

        while (sim_world_step(w, until))
                sim_power_look(w);
        return !sim_world_violation(w);
}
#define require_run(w, usec) require(w, run(w, usec))

/* Everybody is there, and the leader has settled. */
static SimWorld *world(uint64_t seed, const SimOptions *o) {
        SimWorld *w = sim_world_new(seed, o);

        for (size_t i = 0; i < o->n_nodes; i++) {
                (void) sim_power_attach(w, i, &(SimPowerOptions){ .max_usec = 2 * USEC_PER_MINUTE });
                sim_world_agent(w, i)->agent_config.reboot_patience_usec = PATIENCE_USEC;
        }
        for (size_t i = 0; i < o->n_coordinators; i++)
                sim_world_coordinator(w, i)->coordinator_config.reboot_slot_usec = SLOT_USEC;
        require_run(w, 60 * SEC);
        require(w, pods_are_back(w, NULL));
        require(w, all_agents_ready(w, NULL));
        require(w, somebody_leads(w, NULL));
        return w;
}

static bool ask(SimWorld *w, size_t machine, const char *method) {
        sim_trace_add(w->trace, "world", "%s of %s", method, w->machines[machine].node);
        return fake_power_call_unit(sim_power_machine(w, machine), method) >= 0;
}

CONDITION(is_granted, sim_world_annotation(w, m, GRANTED))
CONDITION(has_rebooted, sim_power_n_off(w, m) > 0)
CONDITION(asks_for_nothing, !sim_world_annotation(w, m, ASKS) && !sim_world_annotation(w, m, GRANTED))

static bool nobody_asks(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (!asks_for_nothing(w, machine_arg(i)))
                        return false;
        return true;
}

/* All at once: each reboots once, one after the other. */
static void test_all_at_once(void **state) {
        (void) state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                SimOptions o = four;
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.max_reboots = (unsigned) (1 + seed % 2);
                w = world(seed, &o);
                for (size_t i = 0; i < 4; i++)
                        require(w, ask(w, i, "RequestReboot"));
                require_run(w, 10 * USEC_PER_MINUTE);
                for (size_t i = 0; i < 4; i++) {
                        require(w, sim_power_n_off(w, i) == 1);
                        require(w, is_open(w, machine_arg(i)));
                }
                require(w, nobody_asks(w));
                require(w, pods_are_back(w, NULL));
                require_quiet(w);
        }
}

/* The leader dies at each moment around a grant, and the other one goes by what stands on the Nodes. */
static void test_leader_dies(void **state) {
        (void) state;
        for (uint64_t seed = 1; seed <= 6 * SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &four);
                SimKill kill = { .step = sim_world_leader(w)->life->n_steps + seed,
                                 .restart_usec = 5 * SEC };

                sim_check_trouble(w->check, 300 * SEC);
                sim_process_plan_kill(sim_world_leader(w), &kill);
                for (size_t i = 0; i < 3; i++)
                        require(w, ask(w, i, "RequestReboot"));
                require_run(w, 15 * USEC_PER_MINUTE);
                for (size_t i = 0; i < 3; i++)
                        require(w, sim_power_n_off(w, i) == 1);
                require(w, nobody_asks(w));
                require_quiet(w);
        }
}

/* Nobody leads: patience runs out, nothing has happened, and nothing is left. */
static void test_nobody_grants(void **state) {
        (void) state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &four);

                for (size_t i = 0; i < 2; i++)
                        sim_process_kill(sim_world_coordinator(w, i), USEC_INFINITY);
                require(w, ask(w, 1, "RequestReboot"));
                require_run(w, PATIENCE_USEC - 10 * SEC);
                require(w, sim_world_annotation(w, 1, ASKS));
                require_run(w, 20 * SEC);
                require(w, asks_for_nothing(w, machine_arg(1)));
                require(w, sim_power_n_off(w, 1) == 0 && is_open(w, machine_arg(1)));
                require_quiet(w);
        }
}

/* It does not come back: the next one has to wait for the end of its slot, and not longer. */
static void test_lost_on_the_way(void **state) {
        (void) state;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &four);
                usec_t granted;

                require(w, ask(w, 1, "RequestReboot"));
                require(w, sim_world_run_until(w, 60 * SEC, is_granted, machine_arg(1)));
                granted = sim_world_now(w);
                require(w, ask(w, 2, "RequestReboot"));
                require(w, sim_world_run_until(w, 60 * SEC, has_rebooted, machine_arg(1)));
                sim_world_machine_ends(w, 1, 0);
                require_run(w, granted + SLOT_USEC - 5 * SEC - sim_world_now(w));
                require(w, !is_granted(w, machine_arg(2)));
                require_run(w, 200 * SEC);
                require(w, sim_power_n_off(w, 2) == 1);
                require(w, sim_world_events(w, "RebootSlotExpired") > 0);
        }
}

/* -- by chance --------------------------------------------------------------------------------- */

static uint64_t draw(SimWorld *w, uint64_t below) {
        return random_below(w->random, below);
}

/* Of a coordinator any; an agent's requests are not late, as one that arrives after the boot is not what
 * this is about. */
static void trouble(SimWorld *w) {
        static const SimFaultKind kinds[] = { SIM_FAULT_ERROR,        SIM_FAULT_LIE,
                                              SIM_FAULT_LOSE_REQUEST, SIM_FAULT_LOSE_REPLY,
                                              SIM_FAULT_PARTITION,    SIM_FAULT_SLOW };
        bool coordinator = draw(w, 3) > 0;
        SimProcess *p = coordinator ? sim_world_coordinator(w, draw(w, 2))
                                    : sim_world_agent(w, draw(w, w->n_machines));
        SimWindow window = { .kind = kinds[draw(w, ELEMENTSOF(kinds) - (coordinator ? 0 : 1))],
                             .until_usec = (1 + draw(w, 60)) * SEC,
                             .permille = 400,
                             .max_usec = 12 * SEC,
                             .who = p->name,
                             .seed = draw(w, 1000) };

        sim_check_trouble(w->check, 180 * SEC);
        if (window.kind == SIM_FAULT_PARTITION)
                window.permille = 1000;
        if (draw(w, 4) == 0)
                fake_api_stall_watches(fake_cluster_api(w->cluster),
                                       sim_world_now(w) + (1 + draw(w, 90)) * SEC);
        else
                sim_faults_add(w->faults, &window);
}

static void disturb(SimWorld *w) {
        size_t i = draw(w, w->n_machines);
        SimProcess *coordinator = sim_world_coordinator(w, draw(w, 2));
        SimMachine *m = &w->machines[i];

        switch (draw(w, 14)) {
        case 0 ... 5:
                (void) ask(w, i, "RequestReboot");
                break;
        case 6:
                (void) ask(w, i, "Cancel");
                break;
        case 7:
                (void) sim_power_cancel(w, i);
                break;
        case 8:
                (void) sim_power_shutdown(w, i, "reboot", draw(w, 2) > 0);
                break;
        case 9:
                if (m->agent->life)
                        sim_process_kill(m->agent, (1 + draw(w, 3000)) * USEC_PER_MSEC);
                break;
        case 10:
        case 11:
                sim_check_trouble(w->check, 60 * SEC);
                if (coordinator->life)
                        sim_process_kill(coordinator, (1 + draw(w, 20000)) * USEC_PER_MSEC);
                break;
        case 12:
        case 13:
                trouble(w);
                break;
        }
}

static void test_random(void **state) {
        unsigned n_off = 0;

        (void) state;
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                SimOptions o = four;
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.max_reboots = (unsigned) (1 + seed % 3 / 2);
                w = world(seed, &o);
                for (unsigned n = 0; n < 30; n++) {
                        disturb(w);
                        require_run(w, draw(w, 30000) * USEC_PER_MSEC);
                }
                sim_faults_stop(w->faults);
                require_run(w, PATIENCE_USEC + 2 * SLOT_USEC);
                require(w, nobody_asks(w));
                require(w, pods_are_back(w, NULL));
                require(w, all_agents_ready(w, NULL));
                require_quiet(w);
                for (size_t i = 0; i < 4; i++)
                        n_off += sim_power_n_off(w, i);
        }
        print_message("%u reboots\n", n_off);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_at_once),   cmocka_unit_test(test_leader_dies),
                cmocka_unit_test(test_nobody_grants), cmocka_unit_test(test_lost_on_the_way),
                cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests_name("sim-reboot", tests, NULL, NULL);
}
