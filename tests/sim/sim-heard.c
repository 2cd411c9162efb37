/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator-config.h"
#include "sim-queue.h"
#include "sim-queues.h"
#include "sim-test.h"

/* The interruption queue: cases that its random worlds have found, and the first few of these worlds; sim-random --queue plays more. */

#define RANDOM_SEEDS 6u

static const SimOptions usual = {
        .n_nodes = 4, .n_late = 1, .n_pods = 6, .stop_sec = 2, .grace_sec = 20, .tgp_sec = 60, .n_coordinators = 2, .queue = 1,
};

#define LATE 3u

static SimWorld *heard_world(void) {
        SimWorld *w = sim_world_new(1, &usual);

        require_within(w, 30, pods_are_back, 0);
        for (size_t i = 0; i < LATE; i++)
                require_within(w, 60, is_adopted, i);
        require_runs(w, 3 * SEC);
        sim_check_promise(w->check);
        return w;
}

static void send(SimWorld *w, FakeAwsEventKind kind, size_t machine, usec_t in_usec) {
        sim_queue_send(w->queue,
                       &(FakeAwsEvent){ .kind = kind, .instance = w->machines[machine].instance, .until_wall_usec = sim_world_wall(w) + in_usec },
                       false);
}

/* Returns the notices on the machine's claim. Free it. */
static char *told(SimWorld *w, size_t machine) {
        return MUST(strdup(strempty(fj_string(sim_world_claim(w, machine), "metadata", "annotations", "vesper.sh/announced", NULL))));
}

/* The Node is there before its claim: its message must not be deleted as that of an unmanaged node. */
TEST_CASE(test_joins_without_claim) {
        _cleanup_(sim_world_freep) SimWorld *w = heard_world();

        sim_faults_pick(w->faults, HTTP_POST, "/nodeclaims", NULL, SIM_LOSE_REQUEST, 1);
        sim_world_join(w, LATE);
        require_runs(w, SEC);
        send(w, FAKE_AWS_EVENT_SPOT, LATE, 0);
        require_runs(w, 5 * SEC);
        require(w, sim_faults_left(w->faults) == 0 && !sim_world_claim(w, LATE));
        require_within(w, 90, is_ended, LATE);
}

/* A scheduled change that is to come, for which its claim is deleted an hour from now, does not keep a group waiting so long. */
TEST_CASE(test_hook_after_change) {
        _cleanup_(sim_world_freep) SimWorld *w = heard_world();
        _cleanup_free_ char *before = NULL, *after = NULL;

        send(w, FAKE_AWS_EVENT_HEALTH, 0, 50 * USEC_PER_MINUTE);
        require_runs(w, 5 * SEC);
        before = told(w, 0);
        require(w, strstr(before, "\"kind\":\"maintenance\"") && !is_being_deleted(w, machine_arg(0)));
        require(w, sim_queue_scale_in(w->queue, 0, FAKE_AWS_EVENT_HOOK, false));
        require_within(w, 20, is_being_deleted, 0);
        after = told(w, 0);
        require(w, strstr(after, "\"kind\":\"maintenance\"") && strstr(after, "\"kind\":\"scale-in\""));
        require_within(w, 60, is_ended, 0);
}

/* The next leader has not seen what the last one has written: it loses nothing of that. */
TEST_CASE(test_old_view) {
        _cleanup_(sim_world_freep) SimWorld *w = heard_world();
        _cleanup_free_ char *before = NULL, *after = NULL;

        fake_api_mute(fake_cluster_api(w->cluster), FAKE_NODECLAIMS, sim_world_now(w) + 50 * SEC);
        send(w, FAKE_AWS_EVENT_SPOT, 0, 0);
        require_runs(w, 5 * SEC);
        before = told(w, 0);
        require(w, *before);
        before[strlen(before) - strlen("]}")] = 0;
        sim_check_trouble(w->check, 60 * SEC);
        sim_process_kill(sim_world_leader(w), USEC_INFINITY);
        send(w, FAKE_AWS_EVENT_SPOT, 0, 0);
        require_runs(w, 40 * SEC);
        require(w, sim_world_leader(w));
        after = told(w, 0);
        require(w, startswith(after, before));
        require_within(w, 120, is_ended, 0);
}

/* Two that nobody knows, of which one was named before: that one's two minutes do not begin anew when its own message has gone,
 * or the two would keep the message of both for ever. */
TEST_CASE(test_two_unknown) {
        static const char a[] = "i-0feedfeedfeedfeea", b[] = "i-0feedfeedfeedfeeb";
        _cleanup_(sim_world_freep) SimWorld *w = heard_world();

        sim_queue_send(w->queue, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = a }, false);
        require_runs(w, 60 * SEC);
        sim_queue_send(w->queue,
                       &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH,
                                        .instance = a,
                                        .others = (char *[]){ (char *) b, NULL },
                                        .until_wall_usec = sim_world_wall(w) + 20 * USEC_PER_MINUTE },
                       false);
        require_runs(w, 300 * SEC);
        assert_int_equal(fake_sqs_n_messages(sim_queue_sqs(w->queue), SIM_QUEUE), 0);
}

CONDITION(group_has_gone_on, sim_queue_n_answered(w->queue) > 0)

/* 200 and a page of somebody's on the way is not the group's answer. */
TEST_CASE(test_page_is_no_answer) {
        _cleanup_(sim_world_freep) SimWorld *w = heard_world();

        fake_troubles_add(fake_autoscaling_troubles(sim_queue_groups(w->queue)),
                          &(FakeTrouble){ .kind = FAKE_TROUBLE_BODY, .operation = "CompleteLifecycleAction", .n = 2, .status = 200, .body = "<html>" });
        require(w, sim_queue_scale_in(w->queue, 0, FAKE_AWS_EVENT_TERMINATE_ACTION, true));
        require_within(w, 120, group_has_gone_on, 0);
        require_runs(w, 30 * SEC);
        assert_int_equal(fake_sqs_n_messages(sim_queue_sqs(w->queue), SIM_QUEUE), 0);
}

/* -- agent and queue of one node of no pool -------------------------------------------------------- */

static const SimOptions both = {
        .n_nodes = 4, .n_agents = 4, .no_pool = true, .n_pods = 6, .pdb_min = 6, .stop_sec = 2, .grace_sec = 20, .n_coordinators = 2, .queue = 1,
};

static SimWorld *world_of_both(uint64_t seed) {
        SimWorld *w = sim_world_new(seed, &both);

        for (size_t i = 0; i < 2; i++)
                sim_world_coordinator(w, i)->coordinator_config.queue_unmanaged = QUEUE_UNMANAGED_DRAIN;
        sim_queue_drain_unmanaged(w->queue);
        require_within(w, 30, pods_are_back, 0);
        require_runs(w, 20 * SEC); /* somebody leads */
        sim_check_promise(w->check);
        return w;
}

static bool is_said_by(SimWorld *w, size_t machine, const char *type, const char *who) {
        const cJSON *c = fj_find(fj_get(sim_world_node(w, machine), "status", "conditions", NULL), "type", type);

        return c && streq_ptr(fj_string(c, "reason", NULL), who);
}

CONDITION(agent_tells_of_drain, is_said_by(w, m, "DrainInProgress", "VesperAgent"))
CONDITION(coordinator_tells_of_drain, is_said_by(w, m, "DrainInProgress", "VesperCoordinator"))
CONDITION(agent_says_drained, is_said_by(w, m, "Drained", "VesperAgent") && sim_world_condition(w, m, "Drained", "True"))

/* From here on nobody writes over what the agent says, up to the end of its drain and beyond it. */
static void require_agents_words(SimWorld *w, size_t machine) {
        const FakeApi *api = fake_cluster_api(w->cluster);
        uint64_t before = fake_api_count(api, FAKE_PATCH, FAKE_NODES, "status");

        sim_world_set_pdb_min(w, 2);
        for (unsigned i = 0; i < 1200; i++) {
                require_runs(w, SEC / 10);
                require(w, agent_tells_of_drain(w, machine_arg(machine)) && !is_said_by(w, machine, "Drained", "VesperCoordinator"));
        }
        require(w, agent_says_drained(w, machine_arg(machine)));
        require(w, fake_api_count(api, FAKE_PATCH, FAKE_NODES, "status") - before <= 3);
}

/* Queue and metadata tell of the same end at once. */
TEST_CASE(test_both_at_once) {
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world_of_both(seed);

                sim_world_notice(w, 0, 120);
                send(w, FAKE_AWS_EVENT_SPOT, 0, 0);
                require_within(w, 20, agent_tells_of_drain, 0);
                require_agents_words(w, 0);
        }
}

/* The coordinator drains, and has said so, when the agent sees its notice, too, and takes over. */
TEST_CASE(test_agent_takes_over) {
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = world_of_both(seed);

                send(w, FAKE_AWS_EVENT_SPOT, 0, 0);
                require_within(w, 20, coordinator_tells_of_drain, 0);
                sim_world_notice(w, 0, 120);
                require_within(w, 20, agent_tells_of_drain, 0);
                require_agents_words(w, 0);
        }
}

/* -- the brake of the queue ------------------------------------------------------------------------ */

#define N_MANY 14u
#define N_LET 10u /* the brake lets so many go */

static const SimOptions many = {
        .n_nodes = N_MANY, .n_pods = N_MANY, .pdb_min = N_MANY, .stop_sec = 2, .grace_sec = 20, .tgp_sec = 60, .n_coordinators = 2, .queue = 1,
};

static bool is_held(SimWorld *w, size_t machine) {
        return sim_brake_has_held(sim_queue_brake(w->queue), machine);
}

static bool is_being_removed(SimWorld *w, size_t machine) {
        const cJSON *claim = sim_world_claim(w, machine);

        return !claim || fj_get(claim, "metadata", "deletionTimestamp", NULL);
}

static size_t count_of_many(SimWorld *w, bool (*of)(SimWorld *w, size_t machine)) {
        size_t n = 0;

        for (size_t i = 0; i < N_MANY; i++)
                n += of(w, i);
        return n;
}

CONDITION(rest_is_held, count_of_many(w, is_held) == N_MANY - N_LET)
CONDITION(goes, is_being_removed(w, m))

static size_t find_held(SimWorld *w) {
        size_t i = 0;

        while (i < N_MANY && !is_held(w, i))
                i++;
        require(w, i < N_MANY);
        return i;
}

/* Somebody announces the end of all machines at once, and AWS announces none of them. The claims of ten are deleted. The other four are held: one
 * of them until EC2 shows its end, another until a person lets it go, and two to the end of the test. A PodDisruptionBudget allows nothing. */
TEST_CASE(test_brake) {
        _cleanup_(sim_world_freep) SimWorld *w = sim_world_new(1, &many);
        size_t i;

        sim_queue_expect_forger(w->queue);
        require_within(w, 60, pods_are_back, 0);
        for (i = 0; i < N_MANY; i++)
                require_within(w, 60, is_adopted, i);
        sim_check_promise(w->check);
        for (i = 0; i < N_MANY; i++)
                sim_queue_forge(w->queue, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = w->machines[i].instance });
        require_within(w, 20, rest_is_held, 0);
        require_runs(w, 300 * SEC);
        require(w, rest_is_held(w, NULL) && count_of_many(w, is_being_removed) == N_LET);

        i = find_held(w);
        require(w, sim_world_unschedulable(w, i));
        sim_brake_show(sim_queue_brake(w->queue), i + 1, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = w->machines[i].instance });
        require_within(w, 100, goes, i);
        require_within(w, 120, is_ended, i);
        i = find_held(w);
        sim_brake_let_go(sim_queue_brake(w->queue), i);
        require_within(w, 5, goes, i);
        require_within(w, 120, is_ended, i);
        require_runs(w, 60 * SEC);
        require(w, count_of_many(w, is_held) == N_MANY - N_LET - 2);
}

TEST_CASE(test_random) {
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                SimOutcome o;

                sim_queues_play(seed, true, false, &o);
                assert_true(o.good);
                sim_outcome_done(&o);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_joins_without_claim), cmocka_unit_test(test_hook_after_change), cmocka_unit_test(test_old_view),
                cmocka_unit_test(test_two_unknown),         cmocka_unit_test(test_page_is_no_answer), cmocka_unit_test(test_both_at_once),
                cmocka_unit_test(test_agent_takes_over),    cmocka_unit_test(test_brake),             cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests_name("sim-heard", tests, NULL, NULL);
}
