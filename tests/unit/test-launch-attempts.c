/* SPDX-License-Identifier: Apache-2.0 */
#include "launch-bench.h"

/* New machines that are not wanted any more, or become no node, and what follows them. */

/* -- the next attempt ----------------------------------------------------------------------------------- */

/* It vanishes before its node is there. */
TEST_CASE(test_vanished) {
        _cleanup_room_ Room r;

        room_init_launched(&r);
        rig_machine(r.rig, "n0-1")->state = INSTANCE_GONE;
        rig_run(r.rig, 10 * M);
        assert_null(claim(&r, 1));
        assert_string_equal(phase(&r, 2), "Launched");
        assert_int_equal(fj_int(claim(&r, 2), 1, "spec", "attempt", NULL), 2);
        assert_int_equal(r.rig->toy.n_launched, 2);
}

/* Three machines that become no node that takes pods. */
TEST_CASE(test_attempts) {
        for (unsigned joins = 0; joins < 2; joins++) {
                _cleanup_room_ Room r;

                print_message("  joins: %u\n", joins);
                room_make(&r);
                room_begin(&r, "{'disruption':{'onInterruption':'Replace','launchTimeout':'5m'}}");
                interrupt_and_run(&r, 10 * S);
                for (int i = 1; i <= SUCCESSOR_ATTEMPTS_MAX; i++) {
                        _cleanup_free_ char *node = strf("n0-%d", i);

                        assert_string_equal(phase(&r, i), "Launched");
                        if (joins) {
                                rig_join(r.rig, node);
                                fake_merge(r.rig->cluster, FAKE_NODES, NULL, node,
                                           "{'spec':{'taints':[" READINESS "]}}");
                        }
                        rig_run(r.rig, 4 * M);
                        assert_false(is_deleting(claim(&r, i)));
                        assert_false(has_ended(&r, node));
                        rig_run(r.rig, M + 2 * S);
                        assert_true(rig_event_says(r.rig, r.names[i], "LaunchTimeout",
                                                   i == SUCCESSOR_ATTEMPTS_MAX
                                                           ? "vesper ends it, and asks for no other"
                                                   : i == 1 ? "vesper ends it, and asks for attempt 2 of 3"
                                                            : "vesper ends it, and asks for attempt 3 of 3"));
                        assert_false(rig_has_event(r.rig, r.names[i], "MachineWithoutNode"));
                        assert_null(claim(&r, i));
                        assert_true(has_ended(&r, node));
                }
                rig_run(r.rig, 30 * M);
                assert_int_equal(n_claims(&r), 0);
                assert_int_equal(r.rig->toy.n_launched, SUCCESSOR_ATTEMPTS_MAX);
        }
}

/* The pool replaces machines no more when launchTimeout is over. */
TEST_CASE(test_timeout_of_unwanted) {
        _cleanup_room_ Room r;

        room_make(&r);
        room_begin(&r, "{'disruption':{'onInterruption':'Replace','launchTimeout':'5m'}}");
        interrupt_and_run(&r, 30 * S);
        assert_replaced(&r);
        set_pool(&r, "{'disruption':{'onInterruption':'None'}}");
        rig_run(r.rig, 6 * M);
        assert_true(rig_event_says(r.rig, r.names[1], "LaunchTimeout",
                                   "asks for no other: its NodePool does not replace machines"));
        assert_int_equal(n_claims(&r), 0);
        assert_true(has_ended(&r, "n0-1"));
        assert_int_equal(r.rig->toy.n_launches, 1);
}

/* A person deletes the successor. */
TEST_CASE(test_deleted) {
        static const struct {
                const char *what;
                ToyLaunchAnswer answer;
                usec_t seen_usec, gone_usec; /* at most, after the deletion */
                bool is_early;               /* no machine was named before that */
                unsigned n_launched;         /* in the end */
        } rows[] = {
                { "no machine yet", TOY_NO_CAPACITY, 0, 5 * S, true, 0 },
                { "a machine that is found then", TOY_ACCEPTED, 3 * M, 7 * M, true, 1 },
                { "a machine that is found in the last moment", TOY_ACCEPTED, 10 * M - S, 14 * M, true, 1 },
                { "a machine that may have come", TOY_LOST, 0, 12 * M, true, 0 },
                { "a machine: the next is launched", TOY_NAMED, 0, 2 * M + 5 * S, false, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].what);
                room_init(&r);
                r.rig->toy.seen_after_usec = rows[i].seen_usec;
                set_answers(&r, (ToyLaunchAnswer[]){ rows[i].answer }, 1);
                interrupt_and_run(&r, 1500 * MSEC);
                assert_int_equal(r.rig->toy.n_launches, 1);
                assert_string_equal(phase(&r, 1), rows[i].is_early ? "Launching" : "Launched");
                delete_claim(&r, 1);
                rig_run(r.rig, S);
                /* The next attempt waits until this claim is gone. */
                assert_int_equal(claim(&r, 2) != NULL, !rows[i].is_early);
                assert_int_equal(r.rig->toy.n_launches, 1);
                rig_run(r.rig, rows[i].gone_usec);
                assert_null(claim(&r, 1));
                rig_run(r.rig, 20 * S);
                assert_int_equal(r.rig->toy.n_launched, rows[i].n_launched);
                assert_int_equal(n_claims(&r), rows[i].n_launched == 2 ? 1 : 0);
                assert_true(rows[i].n_launched == 0 || has_ended(&r, "n0-1"));
                assert_int_equal(rig_has_event(r.rig, r.names[1], "NothingLaunched"),
                                 rows[i].n_launched == 0);
        }
}

/* A refusal says nothing about the request before, whose machine comes late. Another leader knows that, too.
 * */
TEST_CASE(test_open_request) {
        for (unsigned other = 0; other < 2; other++) {
                _cleanup_room_ Room r;

                print_message("  %s\n", other ? "another leader" : "the same leader");
                room_init(&r);
                r.rig->toy.seen_after_usec = 8 * M;
                set_answers(&r, (ToyLaunchAnswer[]){ TOY_UNKNOWN_DONE, TOY_LATER }, 2);
                interrupt(&r, "n0", "spot", "terminate");
                for (unsigned i = 0; i < 60 && r.rig->toy.n_launches < 2; i++)
                        rig_run(r.rig, 500 * MSEC);
                assert_int_equal(r.rig->toy.n_launches, 2);
                assert_string_equal(request(&r, "answer"), "later");
                if (other) {
                        rig_kill(r.rig, 0);
                        delete_claim(&r, 1);
                        rig_start(r.rig, 0);
                } else
                        delete_claim(&r, 1);
                rig_run(r.rig, 13 * M);
                assert_int_equal(n_claims(&r), 0);
                assert_true(has_ended(&r, "n0-1"));
                assert_int_equal(r.rig->toy.n_launches, 2);
        }
}

/* The pool is deleted. */
TEST_CASE(test_pool_deleted) {
        for (unsigned i = 0; i < 4; i++) {
                bool launched = i & 1;
                _cleanup_room_ Room r;

                print_message("  %s, %s\n", i & 2 ? "Delete" : "Release", launched ? "Launched"
                              : "Launching");
                room_make(&r);
                room_begin(&r, i & 2
                           ? "{" REPLACE ",'deletionPolicy':'Delete'}"
                                     : "{" REPLACE ",'deletionPolicy':'Release'}");
                set_answers(&r, (ToyLaunchAnswer[]){ launched ? TOY_NAMED : TOY_NO_CAPACITY }, 1);
                interrupt_and_run(&r, 1500 * MSEC);
                assert_string_equal(phase(&r, 1), launched ? "Launched" : "Launching");
                assert_true(fake_delete(r.rig->cluster, FAKE_NODEPOOLS, NULL, POOL, -1));
                rig_run(r.rig, 3 * M);
                assert_int_equal(n_claims(&r), 0);
                assert_null(fake_get(r.rig->cluster, FAKE_NODEPOOLS, NULL, POOL));
                assert_int_equal(r.rig->toy.n_launched, launched);
                assert_true(!launched || has_ended(&r, "n0-1"));
        }
}

/* spec.limits hold the launch until the machine that goes has gone. */
TEST_CASE(test_limits) {
        static const struct {
                const char *limits;
                bool holds;
        } rows[] = {
                { "{'nodes':'2'}", false },
                { "{'nodes':'1'}", true },
                { "{'cpu':'100'}", true },
                { "{'nodes':'2','memory':'100Gi'}", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *spec = strf("{" REPLACE ",'limits':%s}",
                                                 rows[i].limits);
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].limits);
                room_make(&r);
                room_begin(&r, spec);
                fake_add_pod(r.rig->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 60,
                                                         .grace_sec = 100 });
                rig_run(r.rig, S);
                interrupt_and_run(&r, 50 * S);
                assert_non_null(claim(&r, 1));
                assert_int_equal(r.rig->toy.n_launches, !rows[i].holds);
                rig_run(r.rig, 40 * S);
                assert_replaced(&r);
        }
}

/* spec.limits never have room. */
TEST_CASE(test_limits_for_ever) {
        _cleanup_room_ Room r;

        room_make(&r);
        room_begin(&r, "{" REPLACE ",'limits':{'nodes':'0'}}");
        interrupt_and_run(&r, 14 * M);
        assert_int_equal(rig_n_events(r.rig, r.names[1], "WaitingForLimits"), 1);
        assert_true(rig_event_says(r.rig, r.names[1], "WaitingForLimits", "for one machine more (nodes)"));
        assert_int_equal(n_claims(&r), 1);
        assert_false(is_deleting(claim(&r, 1)));
        rig_run(r.rig, 2 * M);
        assert_true(rig_event_says(r.rig, r.names[1], "LaunchGivenUp",
                                   "spec.limits of its NodePool have no room"));
        assert_int_equal(n_claims(&r), 0);
        assert_int_equal(r.rig->toy.n_launches, 0);
}

/* -- claims that are made late, never, or by a person -------------------------------------------------- */

/* The claim is not made, or not acknowledged, before the machine that goes has gone. */
static void on_claim(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        const bool *acknowledge = userdata;

        if (!q->resource || q->resource->id != FAKE_NODECLAIMS || !q->x->body)
                return;
        if (*acknowledge ? memmem(q->x->body, q->x->body_size, "\"Launching\"", 11) != NULL
            : q->verb == FAKE_CREATE)
                ret_fault->status = 503;
}

TEST_CASE(test_made_late) {
        static const struct {
                const char *what;
                bool acknowledge, never;
        } rows[] = {
                { "made late", false, false },
                { "acknowledged late", true, false },
                { "never made: the claim that goes waits for a minute", false, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                bool acknowledge = rows[i].acknowledge;
                _cleanup_room_ Room r;

                print_message("  %s\n", rows[i].what);
                room_init(&r);
                fake_api_set_fault(r.rig->api, on_claim, &acknowledge);
                announce(&r, "spot");
                rig_run(r.rig, 10 * S);
                assert_true(has_ended(&r, "n0"));
                assert_null(rig_node(r.rig, "n0"));
                rig_run(r.rig, rows[i].never ? M : 0);
                fake_api_set_fault(r.rig->api, NULL, NULL);
                rig_run(r.rig, 30 * S);
                if (rows[i].never)
                        assert_int_equal(n_claims(&r), 0);
                else
                        assert_replaced(&r);
                assert_int_equal(r.rig->toy.n_launches, !rows[i].never);
        }
}

/* The API server refuses the new claim for ever. Another leader, which sees no Node, keeps the claim of the
 * interrupted machine for 10 minutes. */
static void on_create(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        if (q->resource && q->resource->id == FAKE_NODECLAIMS && q->verb == FAKE_CREATE)
                ret_fault->status = 403;
}

TEST_CASE(test_create_refused) {
        _cleanup_room_ Room r;

        room_init(&r);
        fake_api_set_fault(r.rig->api, on_create, NULL);
        interrupt_and_run(&r, 30 * S);
        assert_null(rig_node(r.rig, "n0"));
        rig_kill(r.rig, 0);
        rig_start(r.rig, 0);
        rig_run(r.rig, 8 * M);
        assert_true(is_deleting(fake_get(r.rig->cluster, FAKE_NODECLAIMS, NULL, r.replaced)));
        rig_run(r.rig, 2 * M);
        assert_int_equal(n_claims(&r), 0);
        assert_true(has_ended(&r, "n0"));
        assert_int_equal(r.rig->toy.n_launches, 0);
        fake_api_set_fault(r.rig->api, NULL, NULL);
}

/* Nobody leads for longer than 10 minutes while the new claim cannot be created. The next leader creates it. */
TEST_CASE(test_create_works_late) {
        _cleanup_room_ Room r;

        room_init(&r);
        fake_api_set_fault(r.rig->api, on_create, NULL);
        interrupt_and_run(&r, 30 * S);
        rig_kill(r.rig, 0);
        rig_run(r.rig, 15 * M);
        fake_api_set_fault(r.rig->api, NULL, NULL);
        rig_start(r.rig, 0);
        rig_run(r.rig, 3 * M);
        assert_replaced(&r);
}

/* The claim of the next attempt is never made: the machine is ended all the same. */
TEST_CASE(test_next_never_made) {
        bool acknowledge = false;
        _cleanup_room_ Room r;

        room_init_launched(&r);
        rig_run(r.rig, 3 * M);
        fake_api_set_fault(r.rig->api, on_claim, &acknowledge);
        delete_claim(&r, 1);
        rig_run(r.rig, 30 * S);
        assert_non_null(claim(&r, 1));
        assert_false(has_ended(&r, "n0-1"));
        rig_run(r.rig, 90 * S);
        assert_int_equal(n_claims(&r), 0);
        assert_true(has_ended(&r, "n0-1"));
        assert_int_equal(r.rig->toy.n_launches, 1);
        fake_api_set_fault(r.rig->api, NULL, NULL);
}

/* A person makes a claim as vesper would, with and without a machine, and deletes it: nothing is launched.
 * */
TEST_CASE(test_forged) {
        static const char *const what[] = { "no machine", "a machine", "a machine and its node" };

        for (unsigned named = 0; named < ELEMENTSOF(what); named++) {
                _cleanup_room_ Room r;

                print_message("  %s\n", what[named]);
                room_init(&r);
                (void) rig_add_machine(r.rig, "aws:///" ZONE "/i-mine", "mine");
                fake_put(r.rig->cluster, FAKE_NODECLAIMS,
                         fj_parse("{'metadata':{'name':'mine','finalizers':['" FINALIZER_TERMINATION "']},"
                                  "'spec':{'nodePool':'" POOL "','replaces':['%s']%s}}",
                                  r.replaced, named ? ",'providerID':'aws:///" ZONE "/i-mine'" : ""));
                if (named == 2) {
                        fake_add_node(r.rig->cluster, "mine", ZONE, "i-mine", POOL);
                        fake_merge(r.rig->cluster, FAKE_NODES, NULL, "mine",
                                   "{'spec':{'taints':[" READINESS "]}}");
                }
                rig_run(r.rig, 5 * M);
                assert_int_equal(rig_n_events(r.rig, "mine", "NotAsked"), !named);
                assert_string_not_equal(
                        strempty(fj_string(fake_get(r.rig->cluster, FAKE_NODECLAIMS, NULL, "mine"), "status",
                                           "phase", NULL)), "Launched");
                assert_true(fake_delete(r.rig->cluster, FAKE_NODECLAIMS, NULL, "mine", -1));
                rig_run(r.rig, 3 * M);
                assert_int_equal(n_claims(&r), 1);
                assert_int_equal(r.rig->toy.n_launches, 0);
                assert_true(rig_is_adopted(r.rig, "n0"));
        }
}

/* A person makes a claim as vesper would, for the machine of a Node that has a claim. */
TEST_CASE(test_forged_of_adopted) {
        static const char *const names[] = { "a-forged", "zz-forged" }; /* before and after the claim's */

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const cJSON *right;
                _cleanup_room_ Room r;

                room_init(&r);
                fake_put(r.rig->cluster, FAKE_NODECLAIMS,
                         fj_parse("{'metadata':{'name':'%s'},'spec':{'nodePool':'" POOL "','replaces':['x'],"
                                  "'attempt':1,'providerID':'%s','terminationGracePeriod':'0s'}}",
                                  names[i], rig_machine(r.rig, "n0")->provider_id));
                for (unsigned step = 0; step < 3; step++) {
                        rig_run(r.rig, 20 * M);
                        if (step == 1 && fake_get(r.rig->cluster, FAKE_NODECLAIMS, NULL, names[i]))
                                (void) fake_delete(r.rig->cluster, FAKE_NODECLAIMS, NULL, names[i], -1);
                        right = fake_get(r.rig->cluster, FAKE_NODECLAIMS, NULL, r.replaced);
                        assert_true(right && rig_has_finalizer(right) && !is_deleting(right));
                        assert_string_equal(fj_string(right, "status", "nodeName", NULL), "n0");
                        assert_true(rig_node(r.rig, "n0") && !is_deleting(rig_node(r.rig, "n0")));
                        assert_true(rig_has_finalizer(rig_node(r.rig, "n0")));
                }
                assert_false(has_ended(&r, "n0"));
                assert_int_equal(n_claims(&r), 1);
                assert_int_equal(r.rig->toy.n_launches, 0);
        }
}

/* A person has made the successor's claim already, without a finalizer. */
TEST_CASE(test_made_by_person) {
        _cleanup_room_ Room r;

        room_init(&r);
        fake_put(r.rig->cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'%s'},"
                          "'spec':{'nodePool':'" POOL "','replaces':['%s'],'attempt':1}}",
                          r.names[1], r.replaced));
        interrupt(&r, "n0", "spot", "terminate");
        for (unsigned i = 0; i < 10000 && streq(request(&r, "token"), ""); i++)
                assert_int_equal(virtual_time_step(r.rig->w.time, USEC_INFINITY), 1);
        assert_string_not_equal(request(&r, "token"), "");
        assert_true(rig_has_finalizer(claim(&r, 1)));
        rig_run(r.rig, 30 * S);
        assert_replaced(&r);
}

/* A person has made the successor's claim with another NodePool: nothing is launched for it. */
TEST_CASE(test_made_for_another_pool) {
        _cleanup_room_ Room r;

        room_init(&r);
        fake_add_nodepool(r.rig->cluster, "other", NULL, NULL);
        fake_merge(r.rig->cluster, FAKE_NODEPOOLS, NULL, "other", "{'spec':{" REPLACE "}}");
        fake_put(r.rig->cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'%s'},"
                          "'spec':{'nodePool':'other','replaces':['%s'],'attempt':1}}",
                          r.names[1], r.replaced));
        interrupt_and_run(&r, 5 * M);
        assert_null(rig_node(r.rig, "n0"));
        assert_true(rig_has_event(r.rig, r.names[1], "NotAsked"));
        assert_int_equal(r.rig->toy.n_launches, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_vanished), cmocka_unit_test(test_attempts),
                cmocka_unit_test(test_deleted), cmocka_unit_test(test_open_request),
                cmocka_unit_test(test_pool_deleted), cmocka_unit_test(test_limits),
                cmocka_unit_test(test_made_late), cmocka_unit_test(test_next_never_made),
                cmocka_unit_test(test_forged), cmocka_unit_test(test_forged_of_adopted),
                cmocka_unit_test(test_made_by_person), cmocka_unit_test(test_made_for_another_pool),
                cmocka_unit_test(test_create_refused), cmocka_unit_test(test_create_works_late),
                cmocka_unit_test(test_limits_for_ever), cmocka_unit_test(test_timeout_of_unwanted),
        };

        return cmocka_run_group_tests_name("launch-attempts", tests, NULL, NULL);
}
