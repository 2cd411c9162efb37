/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "blocked-by.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

/* What the metrics say of removals that do not go on, while they do not. */

static uint64_t blocked(CoordinatorRig *r, const char *reason) {
        _cleanup_free_ char *family =
                MUST(strf("vesper_coordinator_removals_blocked{reason=\"%s\"}", reason));

        return (uint64_t) rig_metric(rig_leader(r), family);
}

static uint64_t blocked_seconds(CoordinatorRig *r, const char *reason) {
        _cleanup_free_ char *family =
                MUST(strf("vesper_coordinator_removals_blocked_seconds_total{reason=\"%s\"}", reason));

        return (uint64_t) rig_metric(rig_leader(r), family);
}

static uint64_t blocked_in_all(CoordinatorRig *r) {
        uint64_t n = 0;

        for (size_t i = 0; i < _BLOCKED_BY_MAX; i++)
                n += blocked(r, blocked_by_names[i]);
        return n;
}

static void a_pod(CoordinatorRig *r, const char *annotations, bool stuck) {
        fake_add_pod(r->cluster, &(FakePod){ .name = "web",
                                             .node = "n0",
                                             .app = "web",
                                             .stop_sec = 1,
                                             .stuck = stuck,
                                             .annotations = annotations });
}

static void protected(CoordinatorRig *r, bool on) {
        if (on)
                a_pod(r, "{'vesper.sh/do-not-evict':'true'}", false);
        else
                fake_merge(r->cluster, FAKE_PODS, "default", "web",
                           "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null}}}");
}

static void budget(CoordinatorRig *r, bool on) {
        if (on) {
                a_pod(r, NULL, false);
                fake_add_pdb(r->cluster, NULL, "one", "web", true, "1");
        } else
                fake_remove(r->cluster, FAKE_PDBS, "default", "one");
}

/* Another pod of the budget is not ready. */
static void used_up(CoordinatorRig *r, bool on) {
        budget(r, on);
        if (on)
                fake_add_pod(r->cluster, &(FakePod){ .name = "sick", .node = "n1", .app = "web", .unready = true });
}

static void budgets(CoordinatorRig *r, bool on) {
        if (on) {
                a_pod(r, NULL, false);
                fake_add_pdb(r->cluster, NULL, "one", "web", true, "0");
                fake_add_pdb(r->cluster, NULL, "two", "web", true, "0");
        } else {
                fake_remove(r->cluster, FAKE_PDBS, "default", "one");
                fake_remove(r->cluster, FAKE_PDBS, "default", "two");
        }
}

static void webhook(CoordinatorRig *r, bool on) {
        if (on)
                a_pod(r, "{'" FAKE_EVICTION_WEBHOOK "':'403 it is being moved'}", false);
        else
                fake_remove(r->cluster, FAKE_PODS, "default", "web");
}

static void stuck(CoordinatorRig *r, bool on) {
        if (on)
                a_pod(r, NULL, true);
        else
                fake_remove(r->cluster, FAKE_PODS, "default", "web");
}

static void volume(CoordinatorRig *r, bool on) {
        if (on)
                fake_put(r->cluster, FAKE_VOLUMEATTACHMENTS,
                         fj_parse("{'metadata':{'name':'a'},'spec':{'attacher':'x','nodeName':'n0','source':"
                                  "{'persistentVolumeName':'pv'}},'status':{'attached':true}}"));
        else
                fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
}

static void machine_is_protected(CoordinatorRig *r, bool on) {
        rig_machine(r, "n0")->outcome = on ? CLOUD_PROTECTED : CLOUD_OK;
}

static void machine_is_denied(CoordinatorRig *r, bool on) {
        rig_machine(r, "n0")->outcome = on ? CLOUD_DENIED : CLOUD_OK;
}

static void cloud_is_away(CoordinatorRig *r, bool on) {
        r->toy.turn_outcome = on ? CLOUD_RETRY : CLOUD_OK;
}

TEST_CASE(test_each_kind) {
        static const struct {
                const char *reason;
                void (*hold)(CoordinatorRig *r, bool on);
                unsigned after_sec; /* it is told */
        } rows[] = {
                { "Protected", protected, 2 },           { "BlockedByPDB", used_up, 2 },           { "PDBNeverAllows", budget, 8 },
                { "SeveralPDBs", budgets, 2 },           { "Terminating", stuck, 100 },
                { "VolumesAttached", volume, 3 },        { "TerminationProtected", machine_is_protected, 2 },
                { "CloudDenied", machine_is_denied, 2 }, { "CloudUnavailable", cloud_is_away, 2 },
                { "EvictionWebhook", webhook, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                uint64_t seconds, before;

                print_message("  %s\n", rows[i].reason);
                rig_begin(r, 2, NULL);
                rows[i].hold(r, true);
                rig_run(r, 2 * USEC_PER_SEC);
                assert_int_equal(blocked_in_all(r), 0);
                rig_delete_node(r, "n0");
                rig_run(r, rows[i].after_sec * USEC_PER_SEC);
                assert_int_equal(blocked(r, rows[i].reason), 1);
                assert_int_equal(blocked_in_all(r), 1);

                print_message("    the seconds are counted while they pass\n");
                before = blocked_seconds(r, rows[i].reason);
                for (unsigned k = 0; k < 3; k++) {
                        rig_run(r, 10 * USEC_PER_SEC);
                        seconds = blocked_seconds(r, rows[i].reason);
                        assert_in_range(seconds, before + 9, before + 11);
                        before = seconds;
                }
                if (streq(rows[i].reason, "Protected"))
                        assert_in_range((uint64_t) rig_metric(rig_leader(r), "vesper_coordinator_protected_seconds_total"), 30, 33);

                print_message("    and no more when it is over\n");
                rows[i].hold(r, false);
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_MINUTE));
                rig_run(r, USEC_PER_SEC);
                assert_int_equal(blocked_in_all(r), 0);
                seconds = blocked_seconds(r, rows[i].reason);
                rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(blocked_seconds(r, rows[i].reason), seconds);
                if (streq(rows[i].reason, "Protected"))
                        assert_in_range((uint64_t) rig_metric(rig_leader(r), "vesper_coordinator_protected_seconds_total"), 30, 34);
        }
}

/* What is asked for seldom is counted all the same: by what blocked it then, not by what does when it is asked. */
TEST_CASE(test_seldom_asked) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        protected(r, true);
        volume(r, true);
        rig_run(r, USEC_PER_SEC);
        assert_int_equal(blocked_in_all(r), 0);
        rig_delete_node(r, "n0");
        rig_run(r, 50 * USEC_PER_SEC);
        protected(r, false);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(blocked(r, "VolumesAttached"), 1);
        assert_in_range(blocked_seconds(r, "Protected"), 48, 52);
        assert_in_range(blocked_seconds(r, "VolumesAttached"), 5, 10);
}

/* Whoever does not lead any more knows nothing of it. */
TEST_CASE(test_standby) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        RigCoordinator *a;

        rig_begin(r, 1, NULL);
        protected(r, true);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(blocked(r, "Protected"), 1);
        a = rig_leader(r);
        fake_merge(r->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator",
                   "{'spec':{'holderIdentity':'another','leaseDurationSeconds':600}}");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_null(rig_leader(r));
        assert_int_equal(rig_metric(a, "vesper_coordinator_removals_blocked{reason=\"Protected\"}"), 0);
}

/* A pod on its way, and one that waits for others, block nothing. */
TEST_CASE(test_what_goes_on) {
        bool by[_BLOCKED_BY_MAX] = {};

        for (PodWait w = 0; w < _POD_WAIT_MAX; w++)
                if (pod_wait_is_turn(w))
                        blocked_by_pod(&(DrainBlocker){ .wait = w }, 1000 * USEC_PER_SEC, by);
        blocked_by_pod(&(DrainBlocker){ .wait = POD_WAIT_TERMINATING, .end_usec = 940 * USEC_PER_SEC }, 1000 * USEC_PER_SEC, by);
        for (size_t i = 0; i < _BLOCKED_BY_MAX; i++)
                assert_false(by[i]);
        blocked_by_pod(&(DrainBlocker){ .wait = POD_WAIT_TERMINATING, .end_usec = 939 * USEC_PER_SEC }, 1000 * USEC_PER_SEC, by);
        assert_true(by[BLOCKED_BY_TERMINATING]);
        assert_int_equal(blocked_by_from_reason("Unheard"), BLOCKED_BY_OTHER);
        assert_int_equal(blocked_by_from_reason("Other"), BLOCKED_BY_OTHER);

        print_message("  each other wait has its own\n");
        for (PodWait w = 0; w < _POD_WAIT_MAX; w++)
                if (!pod_wait_is_turn(w))
                        assert_int_not_equal(blocked_by_from_reason(pod_wait_to_string(w)), BLOCKED_BY_OTHER);
}

static uint64_t cloud_calls(CoordinatorRig *r, const char *operation, const char *outcome) {
        _cleanup_free_ char *family = MUST(strf(
                "vesper_coordinator_cloud_calls_total{provider=\"ec2\",operation=\"%s\",outcome=\"%s\"}",
                operation, outcome));

        return (uint64_t) rig_metric(rig_leader(r), family);
}

/* Each answer of the cloud counts once, by what was asked and what came of it. */
TEST_CASE(test_cloud_calls) {
        static const struct {
                CloudOutcome outcome;
                const char *name;
        } rows[] = {
                { CLOUD_PROTECTED, "protected" },
                { CLOUD_DENIED, "denied" },
                { CLOUD_RETRY, "retry" },
                { CLOUD_INVALID, "invalid" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                uint64_t described;
                ToyMachine *m;

                print_message("  %s\n", rows[i].name);
                rig_begin(r, 1, NULL);
                m = rig_machine(r, "n0");
                described = cloud_calls(r, "describe", "ok") - m->n_described; /* its adoption's */
                assert_int_equal(described, 1);
                assert_int_equal(cloud_calls(r, "terminate", "ok"), 0);
                m->outcome = rows[i].outcome;
                rig_delete_node(r, "n0");
                rig_run(r, 40 * USEC_PER_SEC);
                assert_true(m->n_terminated > 0);
                assert_int_equal(cloud_calls(r, "terminate", rows[i].name), m->n_terminated);
                assert_int_equal(cloud_calls(r, "terminate", "ok"), 0);
                assert_int_equal(cloud_calls(r, "turn", "ok"), m->n_terminated);
                m->outcome = CLOUD_OK;
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_MINUTE));
                assert_int_equal(cloud_calls(r, "terminate", "ok"), 1);
                assert_int_equal(cloud_calls(r, "terminate", rows[i].name), m->n_terminated - 1);
                assert_int_equal(cloud_calls(r, "describe", "ok"), described + m->n_described);
        }
}

/* The real provider, asked by a whole removal. */
TEST_CASE(test_cloud_calls_of_ec2) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        uint64_t described;

        r->use_ec2 = true;
        rig_begin(r, 1, NULL);
        rig_run(r, USEC_PER_MINUTE);
        described = cloud_calls(r, "describe", "ok");
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(cloud_calls(r, "turn", "ok"), 1);
        assert_int_equal(cloud_calls(r, "terminate", "ok"), 1);
        assert_true(cloud_calls(r, "describe", "ok") >= described);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_kind),    cmocka_unit_test(test_seldom_asked),
                cmocka_unit_test(test_standby),
                cmocka_unit_test(test_cloud_calls),  cmocka_unit_test(test_cloud_calls_of_ec2),
                cmocka_unit_test(test_what_goes_on),
        };
        return cmocka_run_group_tests_name("removal-metrics", tests, NULL, NULL);
}
