/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-bench.h"

/*
 * A coordinator that repairs: other answers of the API server, and the effects that end when a node, a
 * person or a watch changes. Each change is the only one at its time, and has its effect within seconds.
 */

#define S USEC_PER_SEC
#define DISK_RULES "[{'condition':'Disk','status':'False','reason':'^Dead$','after':'10m','action':'Replace'}]"
#define REBOOT_RULE "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]"

typedef struct Answers {
        FakeApiFault fault, then; /* answer to the first n requests, and to later ones */
        unsigned n, n_seen;
} Answers;

static void on_delete(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        Answers *a = userdata;

        if (q->verb == FAKE_DELETE && q->resource && q->resource->id == FAKE_NODES)
                *ret_fault = a->n_seen++ < a->n ? a->fault : a->then;
}

static bool outcome_is(CoordinatorRig *r, const char *outcome, unsigned n) {
        _cleanup_free_ char *line = MUST(strf("vesper_coordinator_repairs_total{outcome=\"%s\"} %u\n",
                                              outcome, n));

        return metrics_say(r, line);
}

static bool n_waiting_is(CoordinatorRig *r, unsigned n) {
        _cleanup_free_ char *line = MUST(strf("vesper_coordinator_repairs_waiting %u\n", n));

        return metrics_say(r, line);
}

static void set_paused(CoordinatorRig *r, bool paused) {
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':%s}}}",
                   paused ? "'true'" : "null");
}

static void show_disk(CoordinatorRig *r, const char *reason) {
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'status':{'conditions':[{'type':'Ready','status':'True','reason':'KubeletReady','message':'kubelet is posting ready "
                   "status'},{'type':'Disk','status':'False','reason':'%s'}]}}",
                   reason);
}

/* -- other answers -------------------------------------------------------------------------------------- */

/* The node is deleted as without the other answer, only later. The repair begins, is counted and is reported
 * once. */
TEST_CASE(test_deletion_answers) {
        static const struct {
                const char *what;
                FakeApiFault fault;
                unsigned n, n_deletes;
                unsigned most_sec; /* until the node is deleted */
                bool is_refused;   /* the repair takes no place of the limit after the first answer */
        } rows[] = {
                { "as always", { 0 }, 0, 1, 2 },
                { "a bad request", { .status = 400 }, 1, 2, 12, true },
                { "a conflict", { .status = 409 }, 1, 2, 6, true },
                { "two conflicts", { .status = 409 }, 2, 3, 12, true },
                { "invalid", { .status = 422 }, 1, 2, 12, true },
                { "too many requests", { .status = 429, .retry_after_sec = 5 }, 1, 2, 12, true },
                { "the last status of a client's mistake", { .status = 499 }, 1, 2, 12, true },
                { "an error", { .status = 500 }, 1, 2, 12 },
                { "unavailable, twice", { .status = 503 }, 2, 3, 20 },
                { "no answer, nothing done", { .drop = true }, 1, 2, 12 },
                { "no answer, and done", { .drop = true, .takes_effect = true }, 1, 1, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Answers answers = { .fault = rows[i].fault, .n = rows[i].n };
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
                unsigned seconds = 0;

                print_message("  %s\n", rows[i].what);
                fake_api_set_fault(r->api, on_delete, &answers);
                run(r, M);
                silence(r, 0, 1);
                run(r, 14 * M); /* the repair is due after 15 minutes */
                assert_int_equal(answers.n_seen, 0);
                while (answers.n_seen == 0)
                        run(r, 10 * USEC_PER_MSEC);
                run(r, 100 * USEC_PER_MSEC); /* the answer has come, and no write follows yet */
                assert_true(metrics_say(r, rows[i].is_refused ? "vesper_coordinator_repairs_under_way 0\n"
                                                              : "vesper_coordinator_repairs_under_way 1\n"));
                for (; seconds < 100 && !is_repaired(r, "n0"); seconds++)
                        run(r, S);
                assert_in_range(seconds, 0, rows[i].most_sec);
                run(r, 3 * M);
                assert_int_equal(answers.n_seen, rows[i].n_deletes);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                assert_int_equal(rig_n_events(r, "n0", "NodeRepair"), 1);
                assert_true(outcome_is(r, "begun", 1));
                assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 1\n"));
        }
}

/* A node whose deletion the API server refuses, and whose repair is then held, takes no place of the limit.
 * Another node is repaired meanwhile. */
TEST_CASE(test_refused_has_no_place) {
        Answers answers = { .fault = { .status = 409 }, .n = 1000 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        fake_api_set_fault(r->api, on_delete, &answers);
        run(r, M);
        silence(r, 0, 1);
        while (answers.n_seen == 0)
                run(r, S);
        for (unsigned i = 0; i < 40; i++) { /* also where it is evaluated again before the deletion may be sent again */
                coordinator_reconfigured(rig_leader(r)->coordinator);
                run(r, 100 * USEC_PER_MSEC);
                assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 0\n"));
        }
        assert_in_range(answers.n_seen, 6, 11); /* twice a second, as each write after a conflict */
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'spec':{'unschedulable':true}}");
        run(r, M);
        assert_true(metrics_say(r, "vesper_coordinator_repairs_under_way 0\n"));
        fake_api_set_fault(r->api, NULL, NULL);
        silence(r, 1, 2);
        run(r, SEEN + 16 * M);
        assert_true(is_repaired(r, "n1"));
        assert_false(is_repaired(r, "n0"));
}

/* A deletion is refused once, and then not answered until the repair has failed. The next one is counted as
 * another repair. */
TEST_CASE(test_refused_and_failed) {
        Answers answers = { .fault = { .status = 409 }, .n = 1, .then = { .status = 503 } };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, M);
        fake_api_set_fault(r->api, on_delete, &answers);
        silence(r, 0, 1);
        run(r, SEEN + 17 * M);
        assert_true(outcome_is(r, "begun", 1));
        run(r, 31 * M);
        assert_true(outcome_is(r, "failed", 1));
        assert_true(outcome_is(r, "begun", 2));
}

/* -- what is over --------------------------------------------------------------------------------------- */

/* A condition with another reason does not match the rule. The wait ends, and the coordinator announces it
 * again when the reason comes back. */
TEST_CASE(test_another_reason) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        set_rules(r, DISK_RULES);
        run(r, 6 * M);
        show_disk(r, "Dead");
        run(r, 7 * M);
        assert_int_equal(rig_n_events(r, "n0", "NodeRepairAnnounced"), 1);
        show_disk(r, "Slow");
        run(r, M);
        show_disk(r, "Dead");
        run(r, 30 * S);
        assert_int_equal(rig_n_events(r, "n0", "NodeRepairAnnounced"), 2);
        print_message("  held, and then it has another reason\n");
        set_paused(r, true);
        run(r, 3 * M);
        assert_string_equal(held(r), "Paused");
        assert_true(n_waiting_is(r, 1));
        show_disk(r, "Slow");
        run(r, 5 * S);
        assert_string_equal(held(r), "");
        assert_true(n_waiting_is(r, 0));
}

/* Asserts that the condition NodeRepairHeld of the NodePool ends in this text. */
static void assert_held_text(CoordinatorRig *r, const char *end) {
        const cJSON *pool = fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL);
        const char *text = fj_string(fj_find(fj_get(pool, "status", "conditions", NULL), "type", POOL_REPAIR_HELD), "message", NULL);

        if (!endswith(text, end))
                fail_msg("'%s' does not end in '%s'", text, end);
}

/* The hold, and the number of held nodes, ends as soon as the nodes are healthy. */
TEST_CASE(test_held_no_more) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);

        run(r, 6 * M);
        set_paused(r, true);
        silence(r, 0, 3);
        run(r, SEEN + 25 * M);
        assert_true(n_waiting_is(r, 3));
        assert_held_text(r, "; and 2 more nodes wait");
        fake_cluster_set_kubelet(r->cluster, "n2", true);
        run(r, 15 * S);
        assert_true(n_waiting_is(r, 2));
        assert_held_text(r, "; and 1 more node waits");
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *name = MUST(strf("n%u", i));

                fake_cluster_set_kubelet(r->cluster, name, true);
        }
        run(r, 15 * S);
        assert_true(n_waiting_is(r, 0));
        assert_string_equal(held(r), "");
}

/* The last waiting node becomes healthy right after a reconcile. This change alone ends the hold. */
TEST_CASE(test_last_waiter) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        set_rules(r, REBOOT_RULE);
        set_boot(r, "n0", "b0");
        run(r, 6 * M);
        set_paused(r, true);
        set_deadlock(r, "n0", "True");
        run(r, 61 * S);
        for (unsigned i = 0; i < 40 && !streq(held(r), "Paused"); i++)
                run(r, S);
        assert_string_equal(held(r), "Paused");
        set_deadlock(r, "n0", "False");
        run(r, 5 * S);
        assert_string_equal(held(r), "");
}

/* If two nodes are due together, the one that has been unhealthy for longer is first, whatever their
 * names. */
TEST_CASE(test_oldest_first) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        run(r, 6 * M);
        set_paused(r, true);
        silence(r, 1, 2);
        run(r, 3 * M);
        silence(r, 0, 1);
        run(r, SEEN + 17 * M);
        set_paused(r, false);
        run(r, 3 * M);
        assert_true(is_repaired(r, "n1"));
        assert_false(is_repaired(r, "n0"));
}

/* -- our view ------------------------------------------------------------------------------------------- */

/* Heartbeats stop for all nodes and then resume. Kubelets have five minutes again. */
TEST_CASE(test_heartbeats_stop) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, 10 * M);
        silence(r, 0, 1);
        rig_run(r, 30 * M);
        assert_string_equal(held(r), "ViewNotHealthy");
        run(r, 4 * M);
        assert_false(is_repaired(r, "n0"));
        run(r, 4 * M);
        assert_true(is_repaired(r, "n0"));
}

/* Watches that are down for moments only postpone nothing. */
TEST_CASE(test_watches_for_a_moment) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, 10 * M);
        silence(r, 0, 1);
        run(r, SEEN + 14 * M);
        fake_api_cut_watches(r->api);
        run(r, 2 * M);
        assert_true(is_repaired(r, "n0"));
}

/* A successor whose kubelet reports each minute proves the repair in the same time as one that does not. */
TEST_CASE(test_successor_reports) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        run(r, M);
        silence(r, 0, 1);
        run(r, SEEN + 17 * M);
        assert_null(rig_node(r, "n0"));
        succeed(r, 0, 1);
        for (unsigned i = 0; i < 5; i++) {
                assert_true(outcome_is(r, "proved", 0));
                run(r, M);
                set_heartbeat(r, "s0");
        }
        run(r, 30 * S);
        assert_true(outcome_is(r, "proved", 1));
}

/* A successor that is removed before its time proves nothing. Another one that comes later proves the repair in its own
 * time; so does one that is made anew under the same name. */
TEST_CASE(test_successor_goes) {
        for (unsigned is_same_name = 0; is_same_name < 2; is_same_name++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

                print_message("  %s\n", is_same_name ? "made anew" : "another one");
                run(r, M);
                silence(r, 0, 1);
                run(r, SEEN + 17 * M);
                succeed(r, 0, 1);
                run(r, 4 * M);
                if (is_same_name) {
                        _cleanup_free_ char *instance = rig_instance("s0");

                        fake_remove(r->cluster, FAKE_NODES, NULL, "s0");
                        fake_add_node(r->cluster, "s0", ZONE, instance, POOL);
                } else {
                        fake_remove(r->cluster, FAKE_NODES, NULL, "s0");
                        run(r, 3 * M);
                        assert_true(outcome_is(r, "proved", 0));
                        succeed(r, 1, 2);
                }
                run(r, 4 * M + 30 * S);
                assert_true(outcome_is(r, "proved", 0));
                run(r, M);
                assert_true(outcome_is(r, "proved", 1));
        }
}

static void refuse_watches(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        if (q->verb == FAKE_LIST || q->verb == FAKE_WATCH)
                ret_fault->status = 503;
}

/* Watches that are down for less than half a minute postpone nothing. After longer ones kubelets have five minutes to
 * report. */
TEST_CASE(test_watches_down) {
        static const struct {
                usec_t down_usec;
                bool postpones;
        } rows[] = { { 5 * S, false }, { 90 * S, true } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

                print_message("  for %u s\n", (unsigned) (rows[i].down_usec / S));
                run(r, 10 * M);
                silence(r, 0, 1);
                run(r, SEEN + 13 * M);
                fake_api_set_fault(r->api, refuse_watches, NULL);
                fake_api_cut_watches(r->api);
                run(r, rows[i].down_usec);
                fake_api_set_fault(r->api, NULL, NULL);
                run(r, 4 * M - rows[i].down_usec);
                assert_int_equal(is_repaired(r, "n0"), !rows[i].postpones);
                run(r, 6 * M);
                assert_true(is_repaired(r, "n0"));
        }
}

static unsigned n_described(CoordinatorRig *r, unsigned n_nodes) {
        unsigned n = 0;

        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *name = MUST(strf("n%u", i));

                n += rig_machine(r, name)->n_described;
        }
        return n;
}

/* Eight repairs are admitted at once. The provider is asked about four machines at a time. */
TEST_CASE(test_questions_at_once) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(15);
        unsigned n;

        run(r, M);
        silence(r, 0, 15);
        run(r, SEEN + 16 * M);
        for (unsigned done = 0; done < 7; done = 2 * done + 1) {
                assert_int_equal(n_repaired(r, 15), 2 * done + 1);
                succeed(r, done, 2 * done + 1);
                if (done == 3) { /* eight are next */
                        run(r, 4 * M);
                        r->toy.latency_usec = 20 * S;
                        n = n_described(r, 15);
                        while (n_described(r, 15) == n)
                                run(r, S);
                        run(r, 5 * S);
                        assert_int_equal(n_described(r, 15), n + 4);
                        run(r, 22 * S);
                        assert_in_range(n_described(r, 15), n + 5, n + 12);
                }
                run(r, 6 * M);
        }
        run(r, 5 * M);
        assert_int_equal(n_repaired(r, 15), 15);
}

/* -- reboots -------------------------------------------------------------------------------------------- */

static CoordinatorRig *begin_reboot(const char *rules) {
        CoordinatorRig *r = new_rig(1);

        set_rules(r, rules);
        set_boot(r, "n0", "b0");
        run(r, 6 * M);
        set_deadlock(r, "n0", "True");
        for (unsigned i = 0; i < 90 && !mark_of(r, "n0"); i++)
                run(r, S);
        assert_string_equal(mark_of(r, "n0"), "b0");
        return r;
}

static void set_veto(CoordinatorRig *r, bool on) {
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':%s}}}",
                   on ? "'true'" : "null");
}

/* A veto comes and goes. The coordinator asks the agent again half a minute later, and forgets the agent's
 * first request. */
TEST_CASE(test_asked_again) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = begin_reboot(REBOOT_RULE);

        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\'id\\':\\'r\\',\\'bootID\\':\\'b0\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'2037-01-15T08:00:00Z\\'}'}}}");
        run(r, 10 * S);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
        set_veto(r, true);
        run(r, 2 * S);
        assert_null(mark_of(r, "n0"));
        set_veto(r, false);
        run(r, 20 * S);
        assert_null(mark_of(r, "n0"));
        run(r, 20 * S);
        assert_string_equal(mark_of(r, "n0"), "b0");
        print_message("  its agent does not ask\n");
        run(r, 6 * M);
        assert_true(outcome_is(r, "failed", 1));
        assert_true(rig_event_says(r, "n0", "NodeRepair",
                                   "its agent has not asked for a slot within five minutes"));
        assert_false(rig_event_says(r, "n0", "NodeRepair", "has taken its request for a slot back"));
}

/* The Event about a reboot that has failed says how far it had come. */
TEST_CASE(test_why_failed) {
        static const struct {
                bool asks, is_granted, withdraws, boots;
                const char *why;
        } rows[] = {
                { .why = "and its agent has not asked for a slot within five minutes" },
                { .asks = true, .why = "and has not got a slot within half an hour" },
                { .asks = true, .is_granted = true, .why = "It has a slot to reboot, and was not rebooted within half an hour" },
                { .asks = true, .withdraws = true, .why = "and its agent has taken its request for a slot back" },
                { .asks = true, .is_granted = true, .boots = true, .why = "It was rebooted to be repaired, and is not well" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = begin_reboot(REBOOT_RULE);

                print_message("  %s\n", rows[i].why);
                r->config.max_concurrent_reboots = rows[i].is_granted ? 1 : 0;
                r->config.reboot_slot_usec = USEC_PER_HOUR;
                coordinator_reconfigured(rig_leader(r)->coordinator);
                if (rows[i].asks)
                        set_request(r, "n0");
                run(r, 2 * M);
                assert_int_equal(fj_string(rig_node(r, "n0"), "metadata", "annotations", ANNOTATION_SHUTDOWN_GRANTED, NULL) != NULL,
                                 rows[i].is_granted);
                if (rows[i].boots)
                        set_boot(r, "n0", "b1");
                if (rows[i].withdraws)
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
                for (unsigned m = 0; m < 40 && outcome_is(r, "failed", 0); m++)
                        run(r, M);
                assert_true(outcome_is(r, "failed", 1));
                assert_true(rig_event_says(r, "n0", "NodeRepair", rows[i].why));
                assert_null(mark_of(r, "n0"));
        }
}

/* When the reboot has failed the next rule applies at once: its Event comes first, and the deletion a minute
 * later. */
TEST_CASE(test_next_rule) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = begin_reboot(REBOOT_RULES);
        unsigned seconds = 0;

        for (; seconds < 400 && outcome_is(r, "failed", 0); seconds++)
                run(r, S);
        assert_in_range(seconds, 295, 335);
        for (seconds = 0; seconds < 200 && !is_repaired(r, "n0"); seconds++)
                run(r, S);
        assert_in_range(seconds, 38, 63); /* a third of two minutes, or a minute: the shorter */
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_deletion_answers),
                cmocka_unit_test(test_refused_has_no_place),
                cmocka_unit_test(test_refused_and_failed),
                cmocka_unit_test(test_another_reason),
                cmocka_unit_test(test_held_no_more),
                cmocka_unit_test(test_last_waiter),
                cmocka_unit_test(test_oldest_first),
                cmocka_unit_test(test_heartbeats_stop),
                cmocka_unit_test(test_watches_for_a_moment),
                cmocka_unit_test(test_successor_reports),
                cmocka_unit_test(test_successor_goes),
                cmocka_unit_test(test_watches_down),
                cmocka_unit_test(test_questions_at_once),
                cmocka_unit_test(test_asked_again),
                cmocka_unit_test(test_why_failed),
                cmocka_unit_test(test_next_rule),
        };

        return cmocka_run_group_tests_name("repair-answers", tests, NULL, NULL);
}
