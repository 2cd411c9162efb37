/* SPDX-License-Identifier: Apache-2.0 */
/* Spot notices: agents, and the coordinators beside them. */
#include "sim-load.h"
#include "sim-test.h"

#define SEEDS 5u

static const SimOptions alone = {
        .n_nodes = 3,
        .n_pods = 12,
        .pdb_min = 10,
        .stop_sec = 3,
        .grace_sec = 20,
        .n_agents = 3,
        .no_pool = true,
};

static const SimOptions together = {
        .n_nodes = 3,
        .n_pods = 12,
        .pdb_min = 10,
        .stop_sec = 3,
        .grace_sec = 20,
        .n_agents = 3,
        .n_coordinators = 2,
        .shutting_down_sec = 4,
};

static void require_drained(SimWorld *w, size_t machine, unsigned seconds) {
        require_within(w, seconds, says_drained, machine);
        require(w, sim_world_pods_on(w, machine) == 0);
        require(w, sim_world_unschedulable(w, machine));
        require_within(w, 60, pods_are_back, 0);
}

TEST_CASE(test_main_path) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);
                size_t n = sim_world_pods_on(w, 1);
                uint64_t done;

                sim_world_notice(w, 1, 120);
                require_within(w, 5, is_cordoned, 1);
                require_drained(w, 1, 60);
                sim_check_n_evictions(w->check, &done);
                require(w, done == n);
                require_runs(w, 30 * SEC);
                require_quiet(w);
                require(w, sim_world_events(w, "SpotInterruption") == 1);
                require(w, sim_world_events(w, "Drained") == 1);
        }
}

/* No coordinator tells them of the other's pods, and both are done long before their deadline. */
TEST_CASE(test_crossing_budgets) {
        const SimOptions o = { .n_nodes = 4, .n_agents = 4, .no_pool = true, CROSSING };

        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = crossing_world(seed, &o);

                sim_world_notice(w, 0, 300);
                sim_world_notice(w, 1, 300);
                require_within(w, 60, says_drained, 0);
                require_within(w, 60, says_drained, 1);
                require_within(w, 20, crossing_pods_have_moved, 0);
                require_quiet(w);
        }
}

/* The machine restarts instead, or the notice is taken back: our marks go, and the node serves again. */
TEST_CASE(test_undone) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_world_notice(w, 1, 120);
                require_drained(w, 1, 60);
                if (seed % 2)
                        sim_world_reboot(w, 1, 20 * SEC);
                else {
                        require_runs(w, 200 * SEC);
                        sim_world_withdraw(w, 1);
                }
                require_runs(w, 100 * SEC);
                require_within(w, 15 * 60, is_open, 1);
                require_runs(w, 30 * SEC);
                require_quiet(w);
        }
}

TEST_CASE(test_budget_blocks) {
        SimOptions o = alone;

        o.pdb_min = o.n_pods;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);
                uint64_t done;

                sim_world_notice(w, 1, 120);
                require_runs(w, 60 * SEC);
                require(w, sim_world_pods_going(w, 1) == 0);
                if (seed % 2) {
                        sim_world_set_pdb_min(w, o.n_pods - 2);
                        require_drained(w, 1, 50);
                } else {
                        require_within(w, 70, is_empty, 1);
                        sim_check_n_evictions(w->check, &done);
                        require(w, done == 0);
                }
                require_runs(w, 30 * SEC);
                require_quiet(w);
        }
}

static const char *a_pod_of(SimWorld *w, const char *node) {
        const cJSON *pod;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                if (streq_ptr(fj_string(pod, "spec", "nodeName", NULL), node))
                        return fj_string(pod, "metadata", "name", NULL);
        return NULL;
}

/* A pod that takes long to stop was told to, long before the notice: it gets what time there is. */
TEST_CASE(test_long_stop) {
        SimOptions o = alone;

        o.stop_sec = o.grace_sec = 600;
        o.pdb_min = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                fake_delete(w->cluster, FAKE_PODS, "default", a_pod_of(w, "n1"), -1);
                require_runs(w, (usec_t) (seed % 2 ? 200 : 20) * SEC);
                sim_world_notice(w, 1, 120);
                require_runs(w, 110 * SEC);
                require(w, sim_world_pods_going(w, 1) == sim_world_pods_on(w, 1));
                require(w, sim_world_pods_on(w, 1) >= 4);
                require_within(w, 10, is_empty, 1);
        }
}

/* A person deletes a pod while the API server is away for the agent: what it deletes afterwards, it has
 * looked at. What is left, reckoned from when the person did, would be over. */
TEST_CASE(test_pod_deleted_meanwhile) {
        SimOptions o = alone;

        o.stop_sec = o.grace_sec = 40;
        o.pdb_min = o.n_pods;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                sim_world_notice(w, 1, 120);
                require_runs(w, 60 * SEC);
                fake_api_away_until(fake_cluster_api(w->cluster), sim_world_now(w) + 35 * SEC);
                require_runs(w, 10 * SEC);
                fake_delete(w->cluster, FAKE_PODS, "default", a_pod_of(w, "n1"), -1);
                require_runs(w, 35 * SEC);
                require(w, sim_world_pods_going(w, 1) == sim_world_pods_on(w, 1));
                require(w, sim_world_pods_on(w, 1) >= 4);
                require_within(w, 20, is_empty, 1);
        }
}

/* The same where nothing holds the pod: the agent evicts with what is left, and its watch has said nothing.
 */
TEST_CASE(test_pod_deleted_unseen) {
        SimOptions o = alone;

        o.stop_sec = o.grace_sec = 60;
        o.pdb_min = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                fake_api_stall_watches(fake_cluster_api(w->cluster), sim_world_now(w) + 120 * SEC);
                fake_delete(w->cluster, FAKE_PODS, "default", a_pod_of(w, "n1"), -1);
                require_runs(w, 30 * SEC);
                sim_world_notice(w, 1, 30);
                require_runs(w, 20 * SEC);
                require(w, sim_world_pods_going(w, 1) == sim_world_pods_on(w, 1));
                require(w, sim_world_pods_on(w, 1) >= 4);
                require_within(w, 15, is_empty, 1);
        }
}

/* Of a node that waits for its pods the machine is announced to end, and starts anew instead: that time is
 * over for all. A second notice has its own. */
TEST_CASE(test_deadline_ends_with_the_boot) {
        SimOptions o = together;

        o.pdb_min = o.n_pods;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                sim_world_delete_node(w, 1);
                require_within(w, 10, is_cordoned, 1);
                sim_world_notice(w, 1, 120);
                require_runs(w, 20 * SEC);
                require(w, sim_world_annotation(w, 1, "vesper.sh/deadline"));
                sim_load_crash(w, 1, 20 * SEC);
                require_runs(w, 30 * SEC);
                require(w, !sim_world_annotation(w, 1, "vesper.sh/deadline"));
                if (seed % 2)
                        sim_world_notice(w, 1, 120);
                require_runs(w, 80 * SEC);
                require(w, fake_api_count(fake_cluster_api(w->cluster), FAKE_DELETE, FAKE_PODS, NULL) == 0);
                require(w, sim_world_pods_on(w, 1) > 0);
                if (seed % 2)
                        require_within(w, 60, is_gone, 1);
        }
}

/* An agent's clock is wrong, by hours or by seconds: its pods, and a coordinator that takes over, have the
 * time that the cloud gave all the same. */
TEST_CASE(test_wrong_clock) {
        static const int64_t off_sec[] = { -7200, 7200, -70, 70 };
        SimOptions o = together;

        o.stop_sec = 15;
        o.grace_sec = 30;
        o.pdb_min = 0;
        for (uint64_t seed = 1; seed <= 2 * ELEMENTSOF(off_sec); seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);
                const char *text;
                char end[RFC3339_MAX];

                rfc3339_format(sim_world_wall(w) + 120 * SEC, end);
                sim_process_set_clock(sim_world_agent(w, 1),
                                      off_sec[seed % ELEMENTSOF(off_sec)] * (int64_t) SEC);
                sim_world_notice(w, 1, 120);
                require_within(w, 10, is_cordoned, 1);
                text = sim_world_annotation(w, 1, "vesper.sh/interruption");
                end[strlen("2027-01-15T08:00:00")] = 0; /* in whole seconds */
                require(w, text && strstr(text, end));
                if (seed > ELEMENTSOF(off_sec))
                        sim_process_pause(sim_world_agent(w, 1), 90 * SEC);
                sim_world_delete_node(w, 1);
                require_within(w, 30, a_pod_is_going, 1); /* at once, or when the agent is silent */
                require_runs(w, 10 * SEC);
                require(w, sim_world_pods_going(w, 1) > 0);
                require(w, sim_world_instance_alive(w, 1));
                require_within(w, 60, is_gone, 1);
                require_runs(w, 30 * SEC);
        }
}

/* What can be seen from outside of where an agent's drain stands. */
static const struct {
        const char *what;
        sim_condition_t condition;
} phases[] = {
        { "the cordon is there", is_cordoned },
        { "a pod is on its way", a_pod_is_going },
        { "the last pod has gone", is_empty },
        { "it says so", says_drained },
};

TEST_CASE(test_agent_killed) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                        sim_trace_add(w->trace, "scene", "the agent is killed when %s", phases[i].what);
                        sim_world_notice(w, 1, 120);
                        require_within(w, 60, phases[i].condition, 1);
                        sim_process_kill(sim_world_agent(w, 1), SEC + seed * SEC);
                        require_runs(w, 10 * SEC);
                        require_drained(w, 1, 60);
                        require_runs(w, 30 * SEC);
                        require_quiet(w);
                }
}

TEST_CASE(test_api_away) {
        SimOptions o = alone;

        o.stop_sec = 10;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < 3; i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                        if (i == 0)
                                fake_api_away_until(fake_cluster_api(w->cluster),
                                                    sim_world_now(w) + 60 * SEC);
                        sim_world_notice(w, 1, 120);
                        if (i > 0) {
                                require_within(w, 60, phases[i].condition, 1);
                                fake_api_away_until(fake_cluster_api(w->cluster),
                                                    sim_world_now(w) + 60 * SEC);
                        }
                        require_runs(w, 60 * SEC);
                        require_drained(w, 1, 60);
                        require_runs(w, 30 * SEC);
                        require_quiet(w);
                }
}

TEST_CASE(test_watches_cut) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_world_notice(w, 1, 120);
                if (seed % 2)
                        fake_api_stall_watches(fake_cluster_api(w->cluster), sim_world_now(w) + 60 * SEC);
                else
                        for (unsigned i = 0; i < 20; i++) {
                                fake_api_cut_watches(fake_cluster_api(w->cluster));
                                require_runs(w, 100 * USEC_PER_MSEC + random_below(w->random, SEC));
                        }
                require_drained(w, 1, 110);
                require_runs(w, 30 * SEC);
                require_quiet(w);
        }
}

/* The scheduler had chosen the node before it was closed. */
TEST_CASE(test_late_pod) {
        SimOptions o = alone;

        o.stop_sec = 0;
        o.pdb_min = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (unsigned i = 0; i < 5; i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                        sim_world_notice(w, 1, 120);
                        require_within(w, 10, is_cordoned, 1);
                        require_runs(w, i * 3 * USEC_PER_MSEC);
                        sim_world_bind_late_pod(w, 1, "late", false);
                        require_runs(w, 20 * SEC);
                        require(w, !fake_get(w->cluster, FAKE_PODS, "default", "late"));
                        require_drained(w, 1, 10);
                        require_quiet(w);
                }
}

/* A person opens the node in the middle: the drain stops, and this notice is not acted upon again, whoever
 * dies. */
TEST_CASE(test_person_opens) {
        SimOptions o = alone;

        o.pdb_min = o.n_pods - 1;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < 2; i++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);
                        uint64_t before, after;

                        sim_world_notice(w, 1, 120);
                        require_within(w, 60, phases[i].condition, 1);
                        sim_world_admin_uncordon(w, 1);
                        require_runs(w, 2 * SEC);
                        before = sim_check_n_evictions(w->check, NULL);
                        if (seed % 2)
                                sim_process_kill(sim_world_agent(w, 1), SEC);
                        require_runs(w, 200 * SEC);
                        after = sim_check_n_evictions(w->check, NULL);
                        require(w, before == after);
                        require(w, !sim_world_unschedulable(w, 1));
                        require(w, !sim_world_annotation(w, 1, "vesper.sh/cordoned-by-agent"));
                        sim_world_withdraw(w, 1);
                        require_runs(w, 15 * USEC_PER_MINUTE);
                        require_quiet(w);
                }
}

/* A cordon that was there before stays when ours is undone. */
TEST_CASE(test_person_had_cordoned) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_world_admin_cordon(w, 1);
                require_runs(w, seed * SEC);
                sim_world_notice(w, 1, 120);
                require_drained(w, 1, 60);
                if (seed % 2)
                        sim_world_reboot(w, 1, 20 * SEC);
                else {
                        require_runs(w, 200 * SEC);
                        sim_world_withdraw(w, 1);
                }
                require_runs(w, 16 * USEC_PER_MINUTE);
                require_quiet(w);
        }
}

/* ... while the agent does not know yet that its cordon has landed. */
TEST_CASE(test_person_opens_early) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_faults_pick(w->faults, HTTP_PATCH, "/api/v1/nodes/n1", "\"unschedulable\":true",
                                SIM_LOSE_REPLY, 1);
                sim_world_notice(w, 1, 120);
                require_within(w, 10, is_cordoned, 1);
                require_runs(w, seed * 100 * USEC_PER_MSEC);
                sim_world_admin_uncordon(w, 1);
                require_runs(w, 60 * SEC);
                require(w, !sim_world_unschedulable(w, 1));
                require(w, strstr(sim_world_annotation(w, 1, "vesper.sh/interruption"), "Released"));
                require(w, sim_check_n_evictions(w->check, NULL) == 0);
        }
}

/* ... and cordons it for a reason of his own before the agent gets to take its mark off: that cordon stays.
 */
TEST_CASE(test_person_cordons_again) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_world_notice(w, 1, 120);
                require_drained(w, 1, 60);
                fake_api_stall_watches(fake_cluster_api(w->cluster), sim_world_now(w) + 5 * SEC);
                sim_world_admin_uncordon(w, 1);
                require_runs(w, SEC);
                sim_world_admin_cordon(w, 1);
                require_runs(w, 60 * SEC);
                require(w, sim_world_unschedulable(w, 1));
                require(w, !sim_world_annotation(w, 1, "vesper.sh/cordoned-by-agent"));
                require(w, strstr(sim_world_annotation(w, 1, "vesper.sh/interruption"), "Released"));
        }
}

/* ... while every watch is silent, and so long that the node's time comes: its budget gives way, or its pods
 * are to be deleted, and what the agent knows of its Node is old. */
TEST_CASE(test_person_opens_unheard) {
        SimOptions o = alone;

        o.pdb_min = o.n_pods;
        for (uint64_t seed = 1; seed <= 2 * SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);
                uint64_t done;

                sim_world_notice(w, 1, 120);
                require_within(w, 10, is_cordoned, 1);
                require_runs(w, 20 * SEC);
                sim_trace_add(w->trace, "scene", "all watches fall silent");
                fake_api_stall_watches(fake_cluster_api(w->cluster), sim_world_now(w) + 300 * SEC);
                require_runs(w, SEC);
                sim_world_admin_uncordon(w, 1);
                require_runs(w, 20 * SEC);
                if (seed % 2)
                        sim_world_set_pdb_min(w, o.n_pods - 4);
                require_runs(w, 120 * SEC);
                sim_check_n_evictions(w->check, &done);
                require(w, done == 0);
                require(w, sim_world_pods_on(w, 1) > 0 && sim_world_pods_going(w, 1) == 0);
                require(w, !sim_world_unschedulable(w, 1));
                require(w, strstr(sim_world_annotation(w, 1, "vesper.sh/interruption"), "Released"));
        }
}

TEST_CASE(test_answers_lost) {
        static const struct {
                const char *what;
                HttpMethod method;
                const char *url, *body;
        } rows[] = {
                { "cordon", HTTP_PATCH, "/api/v1/nodes/n1", "\"unschedulable\":true" },
                { "condition", HTTP_PATCH, "/api/v1/nodes/n1/status", NULL },
                { "eviction", HTTP_POST, "/eviction", NULL },
                { "proof", HTTP_GET, "/api/v1/pods", NULL },
                { "phase", HTTP_PATCH, "/api/v1/nodes/n1", "Drained" },
                { "metadata", HTTP_GET, "spot/instance-action", NULL },
        };
        static const SimLoss losses[] = { SIM_LOSE_REPLY, SIM_LIE, SIM_LOSE_REQUEST, SIM_REFUSE };

        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (size_t i = 0; i < ELEMENTSOF(rows) * ELEMENTSOF(losses); i++) {
                        size_t row = i / ELEMENTSOF(losses);
                        SimLoss loss = losses[i % ELEMENTSOF(losses)];
                        _cleanup_(sim_world_freep) SimWorld *w = NULL;

                        if (loss == SIM_LIE && rows[row].method == HTTP_GET &&
                            streq(rows[row].what, "metadata"))
                                continue;
                        w = settled_world(seed, &alone);
                        sim_trace_add(w->trace, "scene", "answers are lost: %s, %d", rows[row].what,
                                      (int) loss);
                        sim_faults_pick(w->faults, rows[row].method, rows[row].url, rows[row].body, loss, 2);
                        sim_world_notice(w, 1, 120);
                        require_drained(w, 1, 118);
                        require_runs(w, 30 * SEC);
                        require(w, sim_faults_left(w->faults) < 2);
                        require_quiet(w);
                }
}

/* A flood of evictions is turned away for a while: what a pod is given then is what is left then. */
TEST_CASE(test_turned_away) {
        SimOptions o = alone;

        o.pdb_min = 0;
        o.grace_sec = 100;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                sim_faults_add(w->faults, &(SimWindow){ .kind = SIM_FAULT_TURNED_AWAY,
                                                        .until_usec = sim_world_now(w) + 25 * SEC,
                                                        .permille = 1000,
                                                        .seed = seed });
                sim_world_notice(w, 1, 60);
                require_within(w, 10, is_cordoned, 1);
                require_runs(w, 15 * SEC);
                require(w, sim_world_pods_going(w, 1) == 0);
                require_drained(w, 1, 50);
                require_quiet(w);
        }
}

TEST_CASE(test_errors_sprinkled) {
        static const SimChances chances = {
                .error = 150, .lie = 50, .lose_reply = 20, .refuse = 20, .cloud = 50
        };

        for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_faults_chances(w->faults, &chances, sim_world_now(w) + 80 * SEC);
                sim_world_notice(w, 1, 120);
                require_drained(w, 1, 140);
                require_runs(w, 30 * SEC);
                require_quiet(w);
        }
}

/* Deleted in the middle of its agent's drain: the coordinator lets it, and helps when it dies. */
TEST_CASE(test_deleted_meanwhile) {
        SimOptions o = together;

        o.stop_sec = 8;
        o.pdb_min = o.n_pods - 1;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (unsigned dies = 0; dies < 2; dies++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                        sim_trace_add(w->trace, "scene", "deleted meanwhile%s",
                                      dies ? ", and the agent dies" : "");
                        sim_world_notice(w, 1, 120);
                        require_within(w, 10, a_pod_is_going, 1);
                        sim_world_delete_node(w, 1);
                        require_runs(w, 3 * SEC);
                        if (dies)
                                sim_process_kill(sim_world_agent(w, 1), USEC_INFINITY);
                        require_within(w, 130, is_gone, 1);
                        require_within(w, 60, pods_are_back, 0);
                        require_within(w, 60, claim_is_released, 1);
                        require_runs(w, 30 * SEC);
                        require_quiet(w);
                }
}

/* A managed node is ended ahead of its time, whoever dies: its agent, or who leads. */
TEST_CASE(test_ended_ahead) {
        SimOptions o = together;

        o.stop_sec = 8;
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (unsigned dies = 0; dies < 3; dies++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &o);

                        sim_trace_add(w->trace, "scene", "ended ahead of its time%s",
                                      dies == 1       ? ", and the agent dies"
                                              : dies == 2 ? ", and the leader dies"
                                                          : "");
                        sim_world_notice(w, 1, 120);
                        if (dies == 2) {
                                require_within(w, 10, is_cordoned, 1);
                                sim_process_kill(sim_world_leader(w), 60 * SEC);
                        }
                        require_within(w, 30, is_being_deleted, 1);
                        if (dies == 1)
                                sim_process_kill(sim_world_agent(w, 1), USEC_INFINITY);
                        require_within(w, 85, is_ended, 1);
                        require_within(w, 30, is_gone, 1);
                        require_within(w, 60, claim_is_released, 1);
                        require_within(w, 60, pods_are_back, 0);
                        require_runs(w, 30 * SEC);
                        require_quiet(w);
                        require(w, fake_ec2_n_terminations(w->ec2, w->machines[1].instance) == 1);
                }
}

/* An interruption waits for no pod that opted out, whoever drains: they go with the others, budgets
 * respected, and long before T minus their grace. Those of a node that somebody deletes meanwhile stay. */
TEST_CASE(test_opted_out) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
                for (unsigned dies = 0; dies < 2; dies++) {
                        _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &together);
                        size_t n = sim_world_pods_on(w, 2);

                        sim_trace_add(w->trace, "scene", "all have opted out%s",
                                      dies ? ", and the agent dies" : "");
                        for (unsigned i = 0; i < together.n_pods; i++)
                                require(w, sim_load_protect_pod(w, i, 1 + i % 5));
                        require_runs(w, SEC);
                        sim_check_promise(w->check);
                        sim_world_delete_node(w, 2);
                        require_runs(w, 5 * SEC);
                        sim_world_notice(w, 1, 120);
                        require_within(w, 5, is_cordoned, 1);
                        if (dies)
                                sim_process_kill(sim_world_agent(w, 1), USEC_INFINITY);
                        require_within(w, 60, is_empty, 1);
                        require_within(w, 30, is_gone, 1);
                        require(w, sim_world_pods_on(w, 2) == n);
                        sim_load_unprotect_pods(w);
                        require_within(w, 60, is_gone, 2);
                        require_runs(w, 30 * SEC);
                        require_quiet(w);
                }
}

/* One that its cloud only stops is drained, and comes back. */
TEST_CASE(test_stopped) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &together);

                sim_world_notice(w, 1, 120);
                fake_imds_set_action(w->machines[1].imds, "stop", w->machines[1].deadline_usec);
                require_drained(w, 1, 60);
                require_runs(w, 60 * SEC);
                require(w, is_adopted(w, machine_arg(1)) && !is_being_deleted(w, machine_arg(1)));
                sim_load_crash(w, 1, 60 * SEC);
                require_within(w, 180, is_open, 1);
                require(w, sim_world_instance_alive(w, 1));
                require_runs(w, 30 * SEC);
                require_quiet(w);
        }
}

/* A failing disk is told, and stops nothing. */
TEST_CASE(test_disk_fails) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &alone);

                sim_world_agent(w, 1)->failing_writes = 100;
                sim_world_notice(w, 1, 120);
                require_drained(w, 1, 60);
                require_runs(w, 30 * SEC);
                require(w, sim_disk_n_records(sim_world_agent(w, 1)->disk) == 0);
                require_quiet(w);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_main_path),
                cmocka_unit_test(test_crossing_budgets),
                cmocka_unit_test(test_undone),
                cmocka_unit_test(test_budget_blocks),
                cmocka_unit_test(test_long_stop),
                cmocka_unit_test(test_pod_deleted_meanwhile),
                cmocka_unit_test(test_pod_deleted_unseen),
                cmocka_unit_test(test_deadline_ends_with_the_boot),
                cmocka_unit_test(test_agent_killed),
                cmocka_unit_test(test_wrong_clock),
                cmocka_unit_test(test_api_away),
                cmocka_unit_test(test_watches_cut),
                cmocka_unit_test(test_late_pod),
                cmocka_unit_test(test_person_opens),
                cmocka_unit_test(test_person_opens_early),
                cmocka_unit_test(test_person_opens_unheard),
                cmocka_unit_test(test_person_had_cordoned),
                cmocka_unit_test(test_person_cordons_again),
                cmocka_unit_test(test_answers_lost),
                cmocka_unit_test(test_errors_sprinkled),
                cmocka_unit_test(test_turned_away),
                cmocka_unit_test(test_deleted_meanwhile),
                cmocka_unit_test(test_ended_ahead),
                cmocka_unit_test(test_opted_out),
                cmocka_unit_test(test_stopped),
                cmocka_unit_test(test_disk_fails),
        };
        return cmocka_run_group_tests_name("sim-notice", tests, NULL, NULL);
}
