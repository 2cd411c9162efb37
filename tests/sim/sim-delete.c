/* SPDX-License-Identifier: Apache-2.0 */
/* Deleted nodes: two coordinators, no agent. */
#include "sim-load.h"
#include "sim-test.h"

#define SEEDS 5u

static const SimOptions usual = {
        .n_nodes = 4,
        .n_pods = 12,
        .pdb_min = 10,
        .stop_sec = 3,
        .n_coordinators = 2,
        .shutting_down_sec = 4,
};

/* The node is gone, its machine too, its pods are back, and nothing is left behind. */
static void require_deleted(SimWorld *w, size_t machine, unsigned seconds) {
        require_within(w, seconds, is_gone, machine);
        require(w, !sim_world_instance_alive(w, machine));
        require_within(w, 60, pods_are_back, 0);
        require_within(w, 40, claim_is_released, machine);
        require_runs(w, 30 * SEC);
        require_quiet(w);
}

TEST_CASE(test_main_path) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);
                size_t n = sim_world_pods_on(w, 1);
                uint64_t done;

                sim_world_delete_node(w, 1);
                require_deleted(w, 1, 30);
                require(w, sim_check_n_evictions(w->check, &done) >= n);
                require(w, done == n);
                require(w, fake_ec2_n_terminations(w->ec2, w->machines[1].instance) == 1);
                require(w, sim_world_events(w, "Drained") == 1);
        }
}

TEST_CASE(test_several_at_once) {
        SimOptions o = usual;

        o.n_nodes = 6;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                for (size_t i = 0; i < 3; i++)
                        sim_world_delete_node(w, i);
                for (size_t i = 0; i < 3; i++)
                        require_within(w, 120, is_gone, i);
                require_deleted(w, 0, 1);
        }
}

TEST_CASE(test_crossing_budgets) {
        const SimOptions o = { .n_nodes = 4, .n_coordinators = 2, .shutting_down_sec = 4, CROSSING };

        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = crossing_world(seed, &o);

                sim_world_delete_node(w, 0);
                sim_world_delete_node(w, 1);
                require_within(w, 60, is_gone, 0);
                require_within(w, 60, is_gone, 1);
                require_within(w, 20, crossing_pods_have_moved, 0);
                require_runs(w, 30 * SEC);
                require_quiet(w);
        }
}

/* What can be seen from outside of where a termination stands. */
static const struct {
        const char *what;
        sim_condition_t condition;
} phases[] = {
        { "the node is deleted", is_being_deleted }, { "its cordon is there", is_cordoned },
        { "a pod is on its way", a_pod_is_going },   { "the last pod has gone", is_empty },
        { "the machine is told to end", is_ended },  { "the claim has gone", claim_is_released },
};

TEST_CASE(test_leader_killed) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                        sim_trace_add(w->trace, "scene", "the leader is killed when %s", phases[i].what);
                        sim_world_delete_node(w, 1);
                        require_within(w, 60, phases[i].condition, 1);
                        if (!sim_world_node(w, 1))
                                continue;
                        sim_process_kill(sim_world_leader(w), seed % 2 ? 5 * SEC : USEC_INFINITY);
                        require_deleted(w, 1, 60);
                }
}

/* It gets no CPU for so long that another leads; then it goes on where it was. */
TEST_CASE(test_leader_paused) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                        sim_trace_add(w->trace, "scene", "the leader is paused when %s", phases[i].what);
                        sim_world_delete_node(w, 1);
                        require_within(w, 60, phases[i].condition, 1);
                        if (!sim_world_node(w, 1))
                                continue;
                        sim_process_pause(sim_world_leader(w), 40 * SEC);
                        require_deleted(w, 1, 60);
                }
}

TEST_CASE(test_watches_cut) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                sim_world_delete_node(w, 1);
                for (unsigned i = 0; i < 20; i++) {
                        fake_api_cut_watches(fake_cluster_api(w->cluster));
                        if (i % 5 == 4)
                                fake_cluster_compact(w->cluster);
                        require_runs(w, 100 * USEC_PER_MSEC + random_below(w->random, SEC));
                }
                require_deleted(w, 1, 60);
        }
}

TEST_CASE(test_watches_stalled) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                fake_api_stall_watches(fake_cluster_api(w->cluster), sim_world_now(w) + 300 * SEC);
                sim_world_delete_node(w, 1);
                require_deleted(w, 1, 400);
        }
}

TEST_CASE(test_api_away) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                        sim_trace_add(w->trace, "scene", "the API server goes away when %s", phases[i].what);
                        sim_world_delete_node(w, 1);
                        require_within(w, 60, phases[i].condition, 1);
                        fake_api_away_until(fake_cluster_api(w->cluster), sim_world_now(w) + 60 * SEC);
                        require_runs(w, 60 * SEC);
                        if (sim_world_node(w, 1))
                                require_deleted(w, 1, 60);
                }
}

/* The scheduler had chosen the node before it was closed. */
TEST_CASE(test_late_pod) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (unsigned i = 0; i < 6; i++) {
                        SimOptions o = usual;
                        _cleanup_(sim_world_freep) SimWorld *w = NULL;

                        o.stop_sec = 0;
                        o.pdb_min = 0;
                        w = settled_world(seed, &o);
                        sim_world_delete_node(w, 1);
                        require_within(w, 30, is_tainted, 1);
                        require_runs(w, i * 4 * USEC_PER_MSEC);
                        if (!sim_world_instance_alive(w, 1) || sim_world_pods_on(w, 1) == 0)
                                continue;
                        sim_world_bind_late_pod(w, 1, "late", i % 2);
                        require_within(w, 30, is_gone, 1);
                        require(w, !fake_get(w->cluster, FAKE_PODS, "default", "late"));
                        require_deleted(w, 1, 1);
                }
}

/* Nobody may be taken for gone there; when the region is put right, all ends as it should. */
static void wrong_region(uint64_t seed, const char *told, const char *real) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions o = usual;

        o.cloud_region = told;
        o.endpoint_region = real;
        w = settled_world(seed, &o);
        sim_world_delete_node(w, 0);
        fake_cluster_set_kubelet(w->cluster, "n0", false);
        require_runs(w, 10 * USEC_PER_MINUTE);
        require(w, sim_world_node(w, 0));
        require(w, sim_world_instance_alive(w, 0));
        require(w, sim_world_claim(w, 0));
        require(w, sim_world_condition(w, 0, "vesper.sh/TerminationBlocked", "True"));
        if (real)
                return; /* there is no right one to go to */

        w->options.cloud_region = NULL;
        for (size_t i = 0; i < 2; i++)
                sim_process_kill(sim_world_coordinator(w, i), SEC);
        require_deleted(w, 0, 120);
}

TEST_CASE(test_wrong_region) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                wrong_region(seed, "eu-west-1", NULL);
                wrong_region(seed, "us-east-1", "eu-west-1");
        }
}

/* Somebody ended the machine: the node is Unknown, and the cloud says that nothing is there. */
TEST_CASE(test_machine_gone) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                fake_ec2_set_state(w->ec2, w->machines[1].instance, "terminated");
                fake_cluster_set_kubelet(w->cluster, "n1", false);
                require_runs(w, 60 * SEC);
                require(w, sim_world_condition(w, 1, "Ready", "Unknown"));
                sim_world_delete_node(w, 1);
                require_within(w, 10, is_gone, 1);
                require_deleted(w, 1, 1);
                require(w, fake_ec2_n_terminations(w->ec2, w->machines[1].instance) == 0);
        }
}

/* The answer is lost, and what was asked for is done: nothing is done twice, nothing is forgotten. */
TEST_CASE(test_answers_lost) {
        static const struct {
                const char *what;
                HttpMethod method;
                const char *url, *body;
        } rows[] = {
                { "cordon", HTTP_PATCH, "/api/v1/nodes/n1", "\"unschedulable\":true" },
                { "delete of the claim", HTTP_DELETE, "/nodeclaims/", NULL },
                { "eviction", HTTP_POST, "/eviction", NULL },
                { "end of the machine", HTTP_POST, "ec2.sim", "TerminateInstances" },
                { "finalizer of the claim", HTTP_PATCH, "/nodeclaims/", "\"finalizers\"" },
                { "finalizer of the node", HTTP_PATCH, "/api/v1/nodes/n1", "\"finalizers\"" },
        };
        static const SimLoss losses[] = { SIM_LOSE_REPLY, SIM_LIE, SIM_LOSE_REQUEST, SIM_REFUSE };

        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < ELEMENTSOF(rows) * ELEMENTSOF(losses); i++) {
                        size_t row = i / ELEMENTSOF(losses);
                        SimLoss loss = losses[i % ELEMENTSOF(losses)];
                        _cleanup_(sim_world_freep) SimWorld *w = NULL;

                        if (loss == SIM_LIE && streq_ptr(rows[row].url, "ec2.sim"))
                                continue;
                        w = settled_world(seed, &usual);
                        sim_trace_add(w->trace, "scene", "answers are lost: %s, %d", rows[row].what,
                                      (int) loss);
                        sim_faults_pick(w->faults, rows[row].method, rows[row].url, rows[row].body, loss, 2);
                        sim_world_delete_node(w, 1);
                        require_within(w, 200, is_gone, 1);
                        require_deleted(w, 1, 1);
                        require(w, sim_faults_left(w->faults) < 2);
                }
}

/* The cloud refuses for a while, and meanwhile somebody binds a pod there. */
TEST_CASE(test_late_pod_before_the_end) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);
                uint64_t before, done;

                sim_world_delete_node(w, 1);
                require_within(w, 30, is_empty, 1);
                fake_ec2_fail(w->ec2, 4, 500, "InternalError", "An internal error has occurred");
                require_runs(w, 2 * SEC);
                require(w, sim_world_instance_alive(w, 1));
                sim_check_n_evictions(w->check, &before);
                sim_world_bind_late_pod(w, 1, "late", seed % 2);
                require_deleted(w, 1, 90);
                sim_check_n_evictions(w->check, &done);
                require(w, done == before + 1);
        }
}

TEST_CASE(test_errors_sprinkled) {
        static const SimChances chances = {
                .error = 150, .lie = 50, .lose_reply = 20, .refuse = 20, .cloud = 50
        };

        for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                sim_faults_chances(w->faults, &chances, sim_world_now(w) + 60 * SEC);
                sim_world_delete_node(w, 1);
                sim_world_delete_node(w, 2);
                require_within(w, 300, is_gone, 1);
                require_within(w, 300, is_gone, 2);
                require_deleted(w, 1, 1);
        }
}

/* A budget that allows none, and a grace period that ends the wait. */
TEST_CASE(test_deadline) {
        SimOptions o = usual;

        o.pdb_min = o.n_pods;
        o.tgp_sec = 60;
        o.grace_sec = 20;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);
                size_t n = sim_world_pods_on(w, 1);
                uint64_t done;

                sim_world_delete_node(w, 1);
                require_runs(w, 30 * SEC);
                require(w, sim_world_pods_on(w, 1) == n);
                require(w, sim_world_pods_going(w, 1) == 0);
                require_deleted(w, 1, 60);
                sim_check_n_evictions(w->check, &done);
                require(w, done == 0);
        }
}

/* All pods of several nodes have more grace than there is time: each is deleted at once, and told of. */
TEST_CASE(test_many_at_a_deadline) {
        SimOptions o = usual;

        o.n_nodes = 8;
        o.n_pods = 640;
        o.pdb_min = 0;
        o.tgp_sec = 60;
        o.grace_sec = 200;
        for (uint64_t seed = 1; seed <= 3; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = NULL;

                o.evictions_at_once = (unsigned) (seed % 3) * 4; /* 0: as shipped */
                w = settled_world(seed, &o);
                for (size_t i = 0; i < 4; i++)
                        sim_world_delete_node(w, i);
                for (size_t i = 0; i < 4; i++)
                        require_within(w, 75, is_gone, i);
                for (size_t i = 0; i < 4; i++)
                        require_within(w, 40, claim_is_released, i);
                require_runs(w, 30 * SEC);
        }
}

/* The cloud takes a machine without a word, and no controller of its own deletes the Node. */
TEST_CASE(test_machine_taken) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                sim_load_take(w, 1, SEC);
                timer_disarm(w->machines[1].deleted);
                require_runs(w, 60 * SEC);
                if (seed % 2)
                        fake_ec2_forget(w->ec2, w->machines[1].instance);
                require(w, !is_being_deleted(w, machine_arg(1)));
                require_within(w, 240, is_gone, 1);
                require_within(w, 60, claim_is_released, 1);
                require_within(w, 60, pods_are_back, 0);
                require_runs(w, 30 * SEC);
                require_quiet(w);
                if (seed % 2 == 0)
                        require(w, fake_ec2_n_terminations(w->ec2, w->machines[1].instance) == 0);
        }
}

/* A kubelet that is silent is no machine that is gone, whoever leads. */
TEST_CASE(test_kubelet_silent) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                sim_load_stop_kubelet(w, 1, 20 * USEC_PER_MINUTE);
                require_runs(w, 5 * USEC_PER_MINUTE);
                sim_process_kill(sim_world_leader(w), SEC);
                require_runs(w, 17 * USEC_PER_MINUTE);
                require(w, is_adopted(w, machine_arg(1)));
                require_within(w, 60, pods_are_back, 0);
                require_quiet(w);
        }
}

static bool is_out_of_service(SimWorld *w, void *userdata) {
        const cJSON *node = sim_world_node(w, (size_t) (uintptr_t) userdata);

        return fj_find(fj_get(node, "spec", "taints", NULL), "key", "node.kubernetes.io/out-of-service");
}

static bool is_in_service(SimWorld *w, void *userdata) {
        return !is_out_of_service(w, userdata);
}

static bool is_bare(SimWorld *w, void *userdata) {
        return sim_world_pods_on(w, (size_t) (uintptr_t) userdata) == 0;
}

/* A machine that is stopped: its pods hang on a Node that nobody deletes, until it is out of service; and it comes back. */
TEST_CASE(test_machine_off) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                sim_load_switch_off(w, 1, 12 * USEC_PER_MINUTE);
                require(w, sim_world_pods_on(w, 1) > 0);
                if (seed % 2)
                        sim_process_kill(sim_world_leader(w), SEC);
                require_within(w, 200, is_out_of_service, 1);
                require_within(w, 30, is_bare, 1);
                require_within(w, 60, pods_are_back, 0);
                require(w, is_adopted(w, machine_arg(1)));
                require_runs(w, 5 * USEC_PER_MINUTE);
                require(w, is_out_of_service(w, machine_arg(1)));
                require_within(w, 600, is_in_service, 1);
                require(w, sim_world_condition(w, 1, "Ready", "True"));
                require_runs(w, 60 * SEC);
                require(w, sim_world_events(w, "OutOfService") == 1 && sim_world_events(w, "BackInService") == 1);
                require_quiet(w);
        }
}

/* One that is being deleted and off: its drain does not wait for what no kubelet lets go. */
TEST_CASE(test_machine_off_deleted) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = NULL;
                SimOptions o = usual;

                o.tgp_sec = 0;
                w = settled_world(seed, &o);
                sim_load_switch_off(w, 1, USEC_INFINITY);
                sim_world_delete_node(w, 1);
                require_within(w, 300, is_gone, 1);
                require_within(w, 60, claim_is_released, 1);
                require_within(w, 60, pods_are_back, 0);
                require(w, sim_world_events(w, "OutOfService") == 1);
                require_runs(w, 5 * SEC); /* its pool is told a moment later */
                require_quiet(w);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_main_path),     cmocka_unit_test(test_several_at_once),
                cmocka_unit_test(test_crossing_budgets),
                cmocka_unit_test(test_leader_killed), cmocka_unit_test(test_leader_paused),
                cmocka_unit_test(test_watches_cut),   cmocka_unit_test(test_watches_stalled),
                cmocka_unit_test(test_api_away),      cmocka_unit_test(test_late_pod),
                cmocka_unit_test(test_wrong_region),  cmocka_unit_test(test_machine_gone),
                cmocka_unit_test(test_answers_lost),  cmocka_unit_test(test_errors_sprinkled),
                cmocka_unit_test(test_deadline),      cmocka_unit_test(test_late_pod_before_the_end),
                cmocka_unit_test(test_machine_taken), cmocka_unit_test(test_kubelet_silent),
                cmocka_unit_test(test_many_at_a_deadline), cmocka_unit_test(test_machine_off),
                cmocka_unit_test(test_machine_off_deleted),
        };
        return cmocka_run_group_tests_name("sim-delete", tests, NULL, NULL);
}
