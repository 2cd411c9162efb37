/* SPDX-License-Identifier: Apache-2.0 */
/* Invariant `seen` can fail: each false value, written by hand, is found; and each metric family has an
 * observer. */
#include "sim-check-internal.h"
#include "sim-seen.h"
#include "sim-test.h"

TEST_CASE(test_each_metric_is_observed) {
        const char *name = sim_seen_unobserved_family();

        if (name)
                print_message("metric family %s has no row in sim-seen-metrics.c\n", name);
        assert_null(name);
}

/* Makes the next write to the store count as the leader's. */
static void as_leader(SimWorld *w) {
        w->request = new0(SimRequest, 1);
        assert_non_null(w->request);
        w->request->user = strdup(sim_world_leader(w)->user);
}

static void write_condition(SimWorld *w, const char *status, const char *reason, const char *since) {
        as_leader(w);
        fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                   "{'status':{'conditions':[{'type':'Ready','status':'%s','reason':'%s','lastTransitionTime':'%s'}]}}", status, reason, since);
}

static void move_since(SimWorld *w) {
        write_condition(w, "True", "Idle", "2027-01-15T08:00:01Z");
}

static void begin_in_the_future(SimWorld *w) {
        write_condition(w, "False", "Removing", "2027-01-15T09:00:00Z");
}

static void begin_long_ago(SimWorld *w) {
        write_condition(w, "False", "Removing", "2027-01-15T07:00:00Z");
}

static void invent_a_reason(SimWorld *w) {
        write_condition(w, "False", "Tired", "2027-01-15T08:00:01Z");
}

static void count_pods_wrong(SimWorld *w) {
        _cleanup_free_ char *claim = MUST(strdup(fj_string(sim_world_claim(w, 0), "metadata", "name",
                                                           NULL)));

        as_leader(w);
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, claim, "{'status':{'podsLeft':77}}");
}

static void count_nodes_wrong(SimWorld *w) {
        as_leader(w);
        fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL, "{'status':{'nodes':77}}");
        (void) sim_world_run(w, 120 * SEC);
}

static void pause_unsaid(SimWorld *w) {
        w->paused_usec[0] = sim_world_now(w);
        (void) sim_world_run(w, 120 * SEC);
}

static void answer_uncounted(SimWorld *w) {
        sim_observer_asked(w->check->observer, sim_world_leader(w));
        (void) sim_world_run(w, 120 * SEC);
}

static void put_event(SimWorld *w, const char *uid, unsigned count, const char *message) {
        as_leader(w);
        fake_put(w->cluster, FAKE_EVENTS,
                 fj_parse("{'metadata':{'namespace':'default','name':'e'},'involvedObject':{'kind':'Node','name':'n0','uid':'%s'},"
                          "'reason':'TerminationDeadline','message':'%s','count':%u,"
                          "'firstTimestamp':'2027-01-15T08:00:01Z','lastTimestamp':'2027-01-15T08:00:01Z'}",
                          uid, message, count));
}

static const char *uid_of(SimWorld *w, size_t machine) {
        return fj_string(sim_world_node(w, machine), "metadata", "uid", NULL);
}

static void report_nobody(SimWorld *w) {
        put_event(w, "x", 1, "");
}

static void report_another(SimWorld *w) {
        put_event(w, uid_of(w, 1), 1, "");
}

static void count_event_wrong(SimWorld *w) {
        put_event(w, uid_of(w, 0), 3, "");
}

static void name_another_time(SimWorld *w) {
        put_event(w, uid_of(w, 0), 1, "Node goes at 2027-01-15T08:30:00Z whatever is left");
}

TEST_CASE(test_finds) {
        static const struct {
                const char *found;
                void (*mistake)(SimWorld *w);
        } rows[] = {
                { "while its status stays True", move_since },
                { "s from now", begin_in_the_future },
                { "and was True until now", begin_long_ago },
                { "has reason 'Tired', which no row names", invent_a_reason },
                { "is written as 77", count_pods_wrong },
                { "status.nodes of pool is shown as 77, and is 3", count_nodes_wrong },
                { "condition Paused of pool is shown as 'False', and is 'True'", pause_unsaid },
                { "webhook_answers_total of coordinator-", answer_uncounted },
                { "names uid 'x', which no object has or had", report_nobody },
                { "which is Node n1", report_another },
                { "has a count of 3 after 0", count_event_wrong },
                { "names a time that nobody has set for n0", name_another_time },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(1, &(SimOptions){ THREE_NODES });

                sim_check_promise(w->check);
                require_runs(w, 60 * SEC);
                rows[i].mistake(w);
                sim_check_after_step(w->check, 0);
                print_message("%s\n", strempty(sim_world_violation(w)));
                assert_non_null(sim_world_violation(w));
                assert_non_null(strstr(sim_world_violation(w), rows[i].found));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_metric_is_observed),
                cmocka_unit_test(test_finds),
        };
        return cmocka_run_group_tests_name("sim-observer", tests, NULL, NULL);
}
