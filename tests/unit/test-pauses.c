/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

#define SEC USEC_PER_SEC

static const char *phase(CoordinatorRig *r, const char *node) {
        return strempty(fj_string(rig_claim(r, node), "status", "phase", NULL));
}

static void set_paused(CoordinatorRig *r, bool all, bool paused) {
        fake_merge(r->cluster, all ? FAKE_NAMESPACES : FAKE_NODEPOOLS, NULL, all ? "vesper-system" : POOL,
                   "{'metadata':{'annotations':{'vesper.sh/paused':%s}}}", paused ? "'true'" : "null");
}

static unsigned n_gone(CoordinatorRig *r, unsigned n) {
        unsigned gone = 0;

        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                gone += !rig_node(r, name);
        }
        return gone;
}

static const cJSON *pool(CoordinatorRig *r) {
        return fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL);
}

/* None begins, those that were begun end, and what has piled up goes one by one, twice as many each minute. */
TEST_CASE(test_pause_and_resume) {
        static const struct {
                const char *what, *paused, *resuming;
                bool all;
        } rows[] = { { "one pool", "PoolPaused", "Resuming", false }, { "all of them", "AllPaused", "ResumingAll", true } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 12, NULL);
                fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = "n0", .stop_sec = 20, .grace_sec = 30 });
                rig_run(r, SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 2 * SEC);
                set_paused(r, rows[i].all, true);
                rig_run(r, SEC);
                assert_string_equal(rig_condition(pool(r), "Paused"), "True");
                assert_string_equal(rig_condition_reason(pool(r), "Paused"), rows[i].paused);
                for (unsigned k = 1; k < 12; k++) {
                        _cleanup_free_ char *name = strf("n%u", k);

                        rig_delete_node(r, name);
                        rig_run(r, SEC);
                }
                rig_run(r, USEC_PER_HOUR);
                assert_int_equal(n_gone(r, 12), 1);
                assert_string_equal(phase(r, "n1"), "Paused");
                assert_string_equal(rig_condition_reason(rig_node(r, "n1"), "vesper.sh/TerminationBlocked"), "Paused");
                assert_false(fj_true(rig_node(r, "n1"), "spec", "unschedulable", NULL));
                assert_true(rig_event_says(r, "n1", "Paused", rows[i].all ? "namespace vesper-system" : "NodePool " POOL));

                print_message("    it is taken off\n");
                set_paused(r, rows[i].all, false);
                rig_run(r, 30 * SEC);
                assert_int_equal(n_gone(r, 12), 2);
                assert_null(rig_node(r, "n1"));
                assert_string_equal(rig_condition_reason(pool(r), "Paused"), rows[i].resuming);
                rig_run(r, 60 * SEC);
                assert_int_equal(n_gone(r, 12), 3);
                rig_run(r, 30 * SEC + 5 * SEC);
                assert_int_equal(n_gone(r, 12), 5);
                rig_run(r, 10 * USEC_PER_MINUTE);
                assert_int_equal(n_gone(r, 12), 12);
                assert_string_equal(rig_condition(pool(r), "Paused"), "False");
                assert_string_equal(rig_condition_reason(pool(r), "Paused"), "Resolved");
        }
}

/* Held, its removal is planned; then it is in progress. */
TEST_CASE(test_planned) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 3, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = "n0", .stop_sec = 20, .grace_sec = 30 });
        set_paused(r, false, true);
        rig_run(r, SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * SEC);
        assert_string_equal(rig_condition(rig_node(r, "n0"), "MaintenancePlanned"), "True");
        assert_string_equal(rig_condition_reason(rig_node(r, "n0"), "MaintenancePlanned"), "AdminRequested");
        assert_null(rig_condition(rig_node(r, "n0"), "MaintenanceInProgress"));
        set_paused(r, false, false);
        rig_run(r, 10 * SEC);
        assert_string_equal(rig_condition(rig_node(r, "n0"), "MaintenancePlanned"), "False");
        assert_string_equal(rig_condition(rig_node(r, "n0"), "MaintenanceInProgress"), "True");
        assert_string_equal(rig_condition_reason(rig_node(r, "n0"), "MaintenanceInProgress"), "AdminRequested");
        rig_run(r, 2 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "n0"));
}

/* A Node whose claim somebody has removed past its finalizer, while no coordinator ran, belongs to the pool that
 * selects it. */
TEST_CASE(test_without_claim) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        set_paused(r, false, true);
        rig_run(r, SEC);
        rig_stop(r, 0);
        assert_true(fake_remove(r->cluster, FAKE_NODECLAIMS, NULL,
                                fj_string(rig_claim(r, "n0"), "metadata", "name", NULL)));
        rig_delete_node(r, "n0");
        rig_start(r, 0);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "n0"));
        assert_null(rig_claim(r, "n0"));
        assert_true(rig_event_says(r, "n0", "Paused", "NodePool " POOL));
        set_paused(r, false, false);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* What cannot wait does not. */
TEST_CASE(test_is_not_held) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 3, "10m");
        set_paused(r, false, true);
        rig_run(r, SEC);
        rig_delete_node(r, "n0");
        rig_delete_node(r, "n1");
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(n_gone(r, 2), 0);

        print_message("  interrupted\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'a\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'Draining\\'}'}}}");
        rig_run(r, 20 * SEC);
        assert_null(rig_node(r, "n0"));
        assert_non_null(rig_node(r, "n1"));

        print_message("  its deadline\n");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "n1"));

        print_message("  nor the grace of its pods before that\n");
        rig_delete_node(r, "n2");
        fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = "n2", .stop_sec = 100, .grace_sec = 120 });
        rig_run(r, 7 * USEC_PER_MINUTE);
        assert_null(fj_get(fake_get(r->cluster, FAKE_PODS, "default", "slow"), "metadata", "deletionTimestamp", NULL));
        rig_run(r, 62 * SEC);
        assert_int_equal(fj_int(fake_get(r->cluster, FAKE_PODS, "default", "slow"), 0, "metadata", "deletionGracePeriodSeconds", NULL), 120);
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "n2"));

        print_message("  a node that is labelled terminable stays\n");
        rig_add_node(r, "n3");
        rig_run(r, 2 * SEC);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n3", "{'metadata':{'labels':{'karpenter.sh/lifecycle-phase':'terminable'}}}");
        rig_run(r, USEC_PER_HOUR);
        assert_null(fj_get(rig_node(r, "n3"), "metadata", "deletionTimestamp", NULL));
        set_paused(r, false, false);
        rig_run(r, 2 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "n3"));
}

/* The pool's condition is what the next leader knows it by. */
TEST_CASE(test_leader_changes) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 6, NULL);
        set_paused(r, false, true);
        rig_run(r, 2 * SEC);
        for (unsigned i = 0; i < 6; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
        }
        rig_run(r, USEC_PER_MINUTE);
        rig_kill(r, 0);
        set_paused(r, false, false);
        rig_start(r, 1);
        rig_run(r, 40 * SEC);
        assert_int_equal(n_gone(r, 6), 1);
        rig_kill(r, 1);
        rig_start(r, 0);
        rig_run(r, 45 * SEC);
        assert_int_equal(n_gone(r, 6), 2);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_gone(r, 6), 6);
}

/* A machine that does not end, and of which its cloud says something else each time, is trouble once: the others become as
 * quick as without it. */
TEST_CASE(test_stuck_holds_no_other) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        ToyMachine *stuck;

        rig_begin(r, 20, NULL);
        stuck = rig_machine(r, "n0");
        stuck->outcome = CLOUD_DENIED;
        set_paused(r, false, true);
        rig_run(r, 2 * SEC);
        for (unsigned i = 0; i < 20; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
                rig_run(r, SEC);
        }
        rig_run(r, USEC_PER_MINUTE);
        set_paused(r, false, false);
        for (unsigned i = 0; i < 42; i++) { /* 1, 1 after the trouble, 2, 4, 8, 16 */
                stuck->outcome = stuck->outcome == CLOUD_DENIED ? CLOUD_PROTECTED : CLOUD_DENIED;
                rig_run(r, 10 * SEC);
        }
        assert_int_equal(n_gone(r, 20), 19);
        assert_string_equal(rig_condition(rig_node(r, "n0"), "vesper.sh/TerminationBlocked"), "True");
        assert_true(fj_true(rig_node(r, "n0"), "spec", "unschedulable", NULL));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pause_and_resume),
                cmocka_unit_test(test_planned),
                cmocka_unit_test(test_without_claim),
                cmocka_unit_test(test_is_not_held),
                cmocka_unit_test(test_leader_changes),
                cmocka_unit_test(test_stuck_holds_no_other),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
