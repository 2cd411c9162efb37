/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Killed at every await and at every durable write: a story is played once and its steps are counted; then
 * it is played again for each of them, the same up to that step, and the process dies there.
 */
#include "sim-test.h"

#include <inttypes.h>

/* So many crashes of one story are tried at most: evenly chosen if there are more steps. */
#define CRASHES_MAX 500u

typedef struct Story {
        const char *what;
        SimOptions options;
        void (*prepare)(SimWorld *w);
        void (*begin)(SimWorld *w);
        void (*require_end)(SimWorld *w);
        SimProcess *(*victim)(SimWorld *w);
        usec_t restart_usec;
} Story;

/* -- stories ----------------------------------------------------------------------------------- */

static SimProcess *the_agent(SimWorld *w) {
        return sim_world_agent(w, 0);
}

static void nothing(SimWorld *w) {
}

static void give_notice(SimWorld *w) {
        sim_world_notice(w, 0, 120);
}

static void require_drained(SimWorld *w) {
        require_within(w, 90, says_drained, 0);
        require(w, sim_world_pods_on(w, 0) == 0);
        require(w, sim_world_unschedulable(w, 0));
        require_within(w, 60, pods_are_back, 0);
        require_runs(w, 10 * SEC);
        require_quiet(w);
}

/* Until a moment before the notice may be cancelled. */
static void drain_and_wait(SimWorld *w) {
        give_notice(w);
        require_within(w, 60, says_drained, 0);
        require_runs(w, 720 * SEC - (sim_world_now(w) - 1005 * SEC));
}

static void take_back(SimWorld *w) {
        sim_world_withdraw(w, 0);
}

static void require_undone(SimWorld *w) {
        require_within(w, 120, is_open, 0);
        require_runs(w, 20 * SEC);
        require_quiet(w);
}

static void boot_after_drain(SimWorld *w) {
        give_notice(w);
        require_within(w, 60, says_drained, 0);
        sim_world_reboot(w, 0, 20 * SEC);
        require_runs(w, 20 * SEC - USEC_PER_MSEC);
}

static void drain_a_little(SimWorld *w) {
        give_notice(w);
        require_within(w, 60, a_pod_is_going, 0);
}

static void open_node(SimWorld *w) {
        sim_world_admin_uncordon(w, 0);
}

static void require_left_alone(SimWorld *w) {
        require_runs(w, 140 * SEC);
        require(w, !sim_world_unschedulable(w, 0));
        sim_world_withdraw(w, 0);
        require_runs(w, 12 * USEC_PER_MINUTE);
        require_quiet(w);
}

static SimProcess *the_leader(SimWorld *w) {
        return sim_world_leader(w);
}

static void delete_node(SimWorld *w) {
        sim_world_delete_node(w, 0);
}

static void require_terminated(SimWorld *w) {
        require_within(w, 120, is_gone, 0);
        require_within(w, 60, claim_is_released, 0);
        require(w, !sim_world_instance_alive(w, 0));
        require_within(w, 60, pods_are_back, 0);
        require_runs(w, 5 * SEC);
        require_quiet(w);
}

#define AGENT_WORLD \
        { \
                .n_nodes = 2, .n_pods = 6, .pdb_min = 5, .stop_sec = 1, .grace_sec = 20, .n_agents = 1, \
                .no_pool = true \
        }
#define COORDINATOR_WORLD \
        { \
                .n_nodes = 2, .n_pods = 6, .pdb_min = 5, .stop_sec = 1, .grace_sec = 20, \
                .n_coordinators = 2, .shutting_down_sec = 1 \
        }

static const Story drain = { "an agent that drains", AGENT_WORLD, nothing, give_notice,
                             require_drained,        the_agent,   SEC };
static const Story cancel = { "an agent that undoes a cancelled notice",
                              AGENT_WORLD,
                              drain_and_wait,
                              take_back,
                              require_undone,
                              the_agent,
                              SEC };
static const Story boot = { "an agent that undoes after a boot",
                            AGENT_WORLD,
                            boot_after_drain,
                            nothing,
                            require_undone,
                            the_agent,
                            SEC };
static const Story opened = { "an agent whose node a person opens",
                              AGENT_WORLD,
                              drain_a_little,
                              open_node,
                              require_left_alone,
                              the_agent,
                              SEC };
static const Story takeover = { "a coordinator that terminates, and another takes over",
                                COORDINATOR_WORLD,
                                nothing,
                                delete_node,
                                require_terminated,
                                the_leader,
                                USEC_INFINITY };
static const Story restart = { "a coordinator that terminates, and is restarted",
                               COORDINATOR_WORLD,
                               nothing,
                               delete_node,
                               require_terminated,
                               the_leader,
                               SEC };

/* -- playing them ------------------------------------------------------------------------------ */

static SimWorld *begin_story(uint64_t seed, const Story *story) {
        SimWorld *w = settled_world(seed, &story->options);

        story->prepare(w);
        return w;
}

typedef struct Counts {
        uint64_t first_step, steps, writes;
} Counts;

/* Steps of the victim from the beginning of the story to its end; writes from the start of its life. */
static Counts count(uint64_t seed, const Story *story, usec_t usec) {
        _cleanup_(sim_world_freep) SimWorld *w = begin_story(seed, story);
        SimProcess *victim = story->victim(w);
        Counts n = { .first_step = victim && victim->life ? victim->life->n_steps : 0 };

        story->begin(w);
        if (!victim->life)
                require_runs(w, 2 * USEC_PER_MSEC); /* it starts in the story */
        require_runs(w, usec);
        require(w, victim->life);
        n.steps = victim->life->n_steps;
        n.writes = victim->life->n_writes;
        return n;
}

static void crash(uint64_t seed, const Story *story, usec_t usec, const SimKill *kill) {
        _cleanup_(sim_world_freep) SimWorld *w = begin_story(seed, story);
        SimProcess *victim = story->victim(w);

        sim_trace_add(w->trace, "scene", "%s dies in step %" PRIu64 ", write %" PRIu64 ", fate %d",
                      story->what, kill->step, kill->write, (int) kill->fate);
        sim_process_plan_kill(victim, kill);
        story->begin(w);
        require_runs(w, usec);
        require(w, victim->kill.step == 0 && victim->kill.write == 0); /* it was killed */
        story->require_end(w);
}

static void crash_at_steps(uint64_t seed, const Story *story, usec_t usec) {
        Counts n = count(seed, story, usec);
        uint64_t steps = n.steps - n.first_step, stride = steps / CRASHES_MAX + 1, tried = 0;

        for (uint64_t i = 1; i <= steps; i += stride, tried++)
                crash(seed, story, usec,
                      &(SimKill){ .step = n.first_step + i, .restart_usec = story->restart_usec });
        print_message("%s: killed in %" PRIu64 " of its %" PRIu64 " steps\n", story->what, tried, steps);
        assert_true(tried > 20);
}

TEST_CASE(test_agent_at_every_step) {
        crash_at_steps(1, &drain, 12 * SEC);
        crash_at_steps(2, &drain, 12 * SEC);
}

TEST_CASE(test_agent_undoing_at_every_step) {
        crash_at_steps(1, &cancel, 10 * SEC);
        crash_at_steps(2, &boot, 10 * SEC);
        crash_at_steps(3, &opened, 10 * SEC);
}

static void crash_at_writes(uint64_t seed, const Story *story, usec_t usec) {
        Counts n = count(seed, story, usec);
        uint64_t tried = 0;

        for (uint64_t i = 1; i <= n.writes; i++)
                for (SimDiskFate fate = SIM_DISK_DIE_BEFORE; fate < _SIM_DISK_FATE_MAX; fate++, tried++)
                        crash(seed, story, usec,
                              &(SimKill){ .write = i, .fate = fate, .restart_usec = story->restart_usec });
        print_message("%s: killed %" PRIu64 " times in its %" PRIu64 " writes\n", story->what, tried,
                      n.writes);
        assert_true(tried > 0);
}

TEST_CASE(test_agent_at_every_write) {
        for (uint64_t seed = 1; seed <= 5; seed++)
                crash_at_writes(seed, &drain, 12 * SEC);
}

TEST_CASE(test_coordinator_at_every_step) {
        crash_at_steps(1, &takeover, 8 * SEC);
        crash_at_steps(2, &restart, 8 * SEC);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_agent_at_every_step),
                cmocka_unit_test(test_agent_undoing_at_every_step),
                cmocka_unit_test(test_agent_at_every_write),
                cmocka_unit_test(test_coordinator_at_every_step),
        };
        return cmocka_run_group_tests_name("sim-crash", tests, NULL, NULL);
}
