/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-power.h"
#include "sim-test.h"

/*
 * Machines that shut down, whoever told them, under whole agents: drained first and in time, undone when it
 * is cancelled, and never by a restart of the agent alone. Beside what sim-check.h holds, sim-power.h's
 * invariants are looked at in every step.
 */

#define SEEDS 5u
#define RANDOM_SEEDS 150u

static const SimOptions three = {
        .n_nodes = 3,
        .n_pods = 12,
        .pdb_min = 8,
        .stop_sec = 3,
        .grace_sec = 20,
        .n_agents = 3,
        .no_pool = true,
};

#define require_run(w, usec) require(w, sim_power_run(w, usec))

static SimWorld *world(uint64_t seed, const SimOptions *o, const SimPowerOptions *power) {
        SimWorld *w = sim_world_new(seed, o);

        for (size_t i = 0; i < o->n_nodes; i++)
                (void) sim_power_attach(w, i, power);
        require_run(w, 30 * SEC);
        require(w, pods_are_back(w, NULL));
        require(w, all_agents_ready(w, NULL));
        return w;
}

static bool is_off(SimWorld *w, size_t machine) {
        return fake_power_phase(sim_power_machine(w, machine)) == FAKE_POWER_OFF;
}

static usec_t took(SimWorld *w, size_t machine) {
        const FakePower *f = sim_power_machine(w, machine);

        return fake_power_off(f) - fake_power_began(f);
}

TEST_CASE(test_each_way) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (unsigned announced = 0; announced <= 1; announced++) {
                        _cleanup_(sim_world_freep) SimWorld *w =
                                world(seed, &three, &(SimPowerOptions){ .away_usec = 30 * SEC });
                        uint64_t done;
                        size_t n = sim_world_pods_on(w, 1);

                        require(w, sim_power_shutdown(w, 1, "reboot", announced > 0));
                        require_run(w, 25 * SEC);
                        require(w, is_off(w, 1));
                        require(w, took(w, 1) < 15 * SEC);
                        sim_check_n_evictions(w->check, &done);
                        require(w, done == n);
                        require_run(w, 120 * SEC);
                        require(w, is_open(w, machine_arg(1)));
                        require(w, pods_are_back(w, NULL));
                        require_quiet(w);
                }
}

/* Kubelets need 3 s to tell that the containers of a pod have ended: a shutdown does not wait for that,
 * where PID 1 tells. */
TEST_CASE(test_slow_kubelets) {
        for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
                const SimPowerOptions power = { .away_usec = 30 * SEC, .cgroupfs = seed % 2 };
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &three, &power);

                fake_cluster_set_kubelet_lag(w->cluster, 3 * SEC);
                fake_power_set_unit_signals(sim_power_machine(w, 1), seed % 4 > 0);
                require(w, sim_power_shutdown(w, 1, "reboot", seed % 3 > 0));
                require_run(w, 20 * SEC);
                require(w, is_off(w, 1));
                if (power.cgroupfs)
                        require(w, took(w, 1) > 7 * SEC);
                else
                        require(w, took(w, 1) < 6 * SEC);
                require_run(w, 120 * SEC);
                require(w, is_open(w, machine_arg(1)));
                require(w, pods_are_back(w, NULL));
                require_quiet(w);
        }
}

/* One after the other, as soon as the last is back: the budget is kept. */
TEST_CASE(test_rolling) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &three, &(SimPowerOptions){ 0 });

                for (size_t i = 0; i < 3; i++) {
                        require(w, sim_power_shutdown(w, i, "reboot", true));
                        require_run(w, 120 * SEC);
                        require(w, sim_power_n_off(w, i) == 1);
                        require(w, is_open(w, machine_arg(i)));
                }
                require_quiet(w);
        }
}

/* All at once, and a budget that lets two thirds stay: what it holds is deleted at the end of the time. */
TEST_CASE(test_all_at_once) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w =
                        world(seed, &three, &(SimPowerOptions){ .max_usec = 60 * SEC });

                for (size_t i = 0; i < 3; i++)
                        require(w, sim_power_shutdown(w, i, "reboot", i != 1));
                require_run(w, 70 * SEC);
                for (size_t i = 0; i < 3; i++)
                        require(w, sim_power_n_off(w, i) == 1);
                require_run(w, 200 * SEC);
                require(w, pods_are_back(w, NULL));
                require_quiet(w);
        }
}

TEST_CASE(test_cancelled) {
        for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &three, &(SimPowerOptions){ 0 });

                require(w, sim_power_shutdown(w, 1, "poweroff", true));
                require_run(w, (seed * 173) % 3000 * USEC_PER_MSEC);
                require(w, sim_power_cancel(w, 1));
                require_run(w, 60 * SEC);
                require(w, is_open(w, machine_arg(1)));
                require(w, sim_power_n_off(w, 1) == 0);
                require_quiet(w);
        }
}

/* ... while the cloud announces the end of the machine, before, meanwhile or later: that stands, with all its time. */
TEST_CASE(test_cancelled_beside_a_notice) {
        static const char *const when[] = { "before", "meanwhile", "later" };

        for (uint64_t seed = 1; seed <= 4 * SEEDS; seed++) {
                SimOptions o = three;
                _cleanup_(sim_world_freep) SimWorld *w = NULL;
                unsigned at = seed % ELEMENTSOF(when);

                print_message("a notice %s\n", when[at]);
                o.grace_sec = 20;
                o.pdb_min = o.n_pods; /* its pods have to wait for the end */
                w = world(seed, &o, &(SimPowerOptions){ .max_usec = 60 * SEC });
                if (at == 0)
                        sim_world_notice(w, 1, 120);
                require_run(w, 3 * SEC);
                require(w, sim_power_shutdown(w, 1, "poweroff", true));
                require_run(w, 15 * SEC);
                if (at == 1)
                        sim_world_notice(w, 1, 120);
                require_run(w, seed * SEC);
                require(w, sim_power_cancel(w, 1));
                require_run(w, 5 * SEC);
                if (at == 2)
                        sim_world_notice(w, 1, 120);
                require_run(w, 5 * SEC);
                require(w, is_cordoned(w, machine_arg(1)));
                require(w, strstr(strempty(sim_world_annotation(w, 1, "vesper.sh/interruption")), "\"spot\""));
                require_run(w, 50 * SEC);
                require(w, sim_world_pods_going(w, 1) == 0 && sim_world_pods_on(w, 1) > 0);
                require_run(w, 60 * SEC);
                require(w, is_empty(w, machine_arg(1)));
        }
}

/* Killed again and again in the window: the inhibitor stays, and no time is won. */
TEST_CASE(test_crashes) {
        const SimPowerOptions o = { .max_usec = 90 * SEC };
        SimOptions slow = three;

        slow.stop_sec = 200;
        slow.grace_sec = 300;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &slow, &o);

                require(w, sim_power_shutdown(w, 1, "poweroff", true));
                for (unsigned i = 0; i < 5; i++) {
                        require_run(w, (seed * 331 + i * 711) % 4000 * USEC_PER_MSEC);
                        sim_process_kill(sim_world_agent(w, 1), SEC);
                }
                require_run(w, 110 * SEC);
                require(w, sim_power_n_off(w, 1) == 1);
                require_run(w, 200 * SEC);
                require_quiet(w);
        }
}

/* The API server away from before the shutdown, or from its middle on. */
TEST_CASE(test_api_away) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &three, &(SimPowerOptions){ 0 });
                const SimWindow away = { .kind = SIM_FAULT_PARTITION,
                                         .until_usec = sim_world_now(w) + 100 * SEC,
                                         .permille = 1000,
                                         .seed = seed };

                if (seed % 2)
                        require(w, sim_power_shutdown(w, 1, "poweroff", seed % 4 > 1));
                sim_faults_add(w->faults, &away);
                sim_check_trouble(w->check, 200 * SEC);
                if (seed % 2 == 0)
                        require(w, sim_power_shutdown(w, 1, "poweroff", seed % 4 > 1));
                require_run(w, 60 * SEC);
                require(w, sim_power_n_off(w, 1) == 1);
                require(w, seed % 2 || took(w, 1) < 8 * SEC);
                require_run(w, 300 * SEC);
                require(w, is_open(w, machine_arg(1)));
                require_quiet(w);
        }
}

/* logind gives 5 s, the pods take 25: the ordered stop, extended, gives the rest. */
TEST_CASE(test_two_layers) {
        const SimPowerOptions o = { .limits = { 5 * SEC, 1800 * SEC, 10 * SEC } };
        SimOptions slow = three;

        slow.stop_sec = 25;
        slow.grace_sec = 40;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &slow, &o);

                require(w, sim_power_shutdown(w, 2, "reboot", true));
                require_run(w, 8 * SEC);
                require(w, fake_power_phase(sim_power_machine(w, 2)) == FAKE_POWER_STOPPING);
                require(w, sim_world_pods_on(w, 2) > 0);
                require_run(w, 200 * SEC);
                require(w, sim_power_n_off(w, 2) == 1);
                require_run(w, 60 * SEC);
                require(w, is_open(w, machine_arg(2)));
                require_quiet(w);
        }
}

TEST_CASE(test_restarts_drain_nothing) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world(seed, &three, &(SimPowerOptions){ 0 });
                uint64_t done;

                for (unsigned i = 0; i < 30; i++) {
                        if (i % 4 == 3)
                                sim_process_kill(sim_world_agent(w, i % 3), 300 * USEC_PER_MSEC);
                        else
                                sim_power_restart_unit(w, i % 3);
                        require_run(w, (seed * 91 + i * 417) % 3000 * USEC_PER_MSEC);
                }
                require_run(w, 30 * SEC);
                require(w, sim_check_n_evictions(w->check, &done) == 0);
                require_quiet(w);
        }
}

/* -- by chance --------------------------------------------------------------------------------- */

static uint64_t draw(SimWorld *w, uint64_t below) {
        return random_below(w->random, below);
}

static void disturb(SimWorld *w) {
        static const int64_t off_sec[] = { 0, 5, -5, 70, -70, 7200, -7200 };
        size_t i = draw(w, w->n_machines);
        SimMachine *m = &w->machines[i];
        usec_t away_usec = (1 + draw(w, 40)) * SEC;
        const SimWindow away = {
                .kind = SIM_FAULT_PARTITION,
                .until_usec = sim_world_now(w) + away_usec,
                .permille = 1000,
                .seed = draw(w, 1000),
        };

        switch (draw(w, 14)) {
        case 0 ... 3: {
                bool announced = draw(w, 3) > 0; /* compilers differ in the order of a call's arguments */

                (void) sim_power_shutdown(w, i, draw(w, 2) ? "reboot" : "poweroff", announced);
                break;
        }
        case 4:
        case 5:
                (void) sim_power_cancel(w, i);
                break;
        case 6:
        case 7:
                if (m->agent->life)
                        sim_process_kill(m->agent, (1 + draw(w, 3000)) * USEC_PER_MSEC);
                break;
        case 8:
                sim_power_restart_unit(w, i);
                break;
        case 9:
                sim_faults_add(w->faults, &away);
                sim_check_trouble(w->check, away_usec + 90 * SEC);
                break;
        case 10:
                sim_power_set_bus(w, i, false);
                break;
        case 11:
                sim_power_set_bus(w, i, true);
                break;
        case 12:
        case 13:
                sim_process_set_clock(m->agent,
                                      off_sec[draw(w, ELEMENTSOF(off_sec))] * (int64_t) USEC_PER_SEC);
                break;
        }
}

TEST_CASE(test_random) {
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                SimOptions o = three;
                SimPowerOptions power = { .away_usec = (5 + seed % 7 * 9) * SEC,
                                          .max_usec = (30 + seed % 5 * 60) * SEC };
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.stop_sec = (unsigned) (1 + seed % 3 * 9);
                o.grace_sec = o.stop_sec + 10;
                power.cgroupfs = seed % 5 == 0;
                power.running_pods = seed % 3 == 0;
                if (seed % 2)
                        power.limits = (FakePowerLimits){ (1 + seed % 30) * SEC, 1800 * SEC, 10 * SEC };
                w = world(seed, &o, &power);
                fake_cluster_set_kubelet_lag(w->cluster, seed % 4 * SEC);
                for (unsigned n = 0; n < 25; n++) {
                        disturb(w);
                        require_run(w, draw(w, 12000) * USEC_PER_MSEC);
                }
                sim_faults_stop(w->faults);
                for (size_t i = 0; i < w->n_machines; i++) {
                        sim_power_set_bus(w, i, true);
                        sim_process_set_clock(sim_world_agent(w, i), 0);
                }
                require_run(w, 15 * USEC_PER_MINUTE);
                require(w, pods_are_back(w, NULL));
                require(w, all_agents_ready(w, NULL));
                require_quiet(w);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_way),      cmocka_unit_test(test_rolling),
                cmocka_unit_test(test_all_at_once),   cmocka_unit_test(test_cancelled),
                cmocka_unit_test(test_cancelled_beside_a_notice),
                cmocka_unit_test(test_crashes),       cmocka_unit_test(test_api_away),
                cmocka_unit_test(test_two_layers),    cmocka_unit_test(test_restarts_drain_nothing),
                cmocka_unit_test(test_slow_kubelets), cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests_name("sim-shutdown", tests, NULL, NULL);
}
