/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "out-of-service-rule.h"

#define S USEC_PER_SEC
#define M USEC_PER_MINUTE

/* -- the decision --------------------------------------------------------------------------------------- */

/* A node of ours that is silent for long, with a pod on it, whose machine is off, as was just answered. */
static const OutOfServiceFacts off = {
        .managed = true,
        .holds = true,
        .view_stands = true,
        .proof = OUT_OF_SERVICE_OFF,
        .now_usec = 1000 * S,
        .silent_usec = 900 * S,
        .asked_usec = 999 * S,
        .next_ask_usec = 1059 * S,
};

/* Each row is `off` with one thing changed. */
TEST_CASE(test_decision) {
        OutOfServiceFacts f;
        usec_t until;

#define ROW(what, expected, expected_until, ...) \
        do { \
                print_message("%s\n", what); \
                f = off; \
                __VA_ARGS__; \
                assert_int_equal(out_of_service_decide(&f, &until), OUT_OF_SERVICE_##expected); \
                assert_int_equal(until, expected_until); \
        } while (0)

        ROW("off, as was just answered", TAINT, USEC_INFINITY, (void) 0);
        ROW("gone, as was just answered", TAINT, USEC_INFINITY, f.proof = OUT_OF_SERVICE_GONE);
        ROW("none of ours", LEAVE, USEC_INFINITY, f.managed = false);
        ROW("Ready", LEAVE, USEC_INFINITY, f.ready = true);
        ROW("Ready, and somebody else's taint", LEAVE, USEC_INFINITY, f.ready = f.tainted = true);
        ROW("Ready, and our taint", UNTAINT, USEC_INFINITY, f.ready = f.tainted = f.marked = true);
        ROW("Ready, and our mark alone", UNTAINT, USEC_INFINITY, f.ready = f.marked = true);
        ROW("Ready, marked, and let go", UNTAINT, USEC_INFINITY, f.ready = f.marked = true; f.managed = false);
        ROW("tainted by somebody else", LEAVE, USEC_INFINITY, f.tainted = true);
        ROW("tainted by us", LEAVE, USEC_INFINITY, f.tainted = f.marked = true);
        ROW("a person took our taint off", LEAVE, USEC_INFINITY, f.marked = true);
        ROW("another Node has its machine", LEAVE, USEC_INFINITY, f.shared = true);
        ROW("nothing is left on it", LEAVE, USEC_INFINITY, f.holds = false);
        ROW("an old view", LEAVE, USEC_INFINITY, f.view_stands = false);
        ROW("asked again meanwhile", LEAVE, USEC_INFINITY, f.asking = true);
        ROW("silent for less than a minute, asked of late", WAIT, 1059 * S, f.silent_usec = 941 * S);
        ROW("silent for a minute", TAINT, USEC_INFINITY, f.silent_usec = 940 * S);
        ROW("silent for less, never asked", WAIT, 1001 * S, f.silent_usec = 941 * S;
            f.next_ask_usec = 0);
        ROW("never asked", ASK, USEC_INFINITY, f.proof = OUT_OF_SERVICE_UNPROVED; f.asked_usec = 0;
            f.next_ask_usec = 0);
        ROW("unproved", WAIT, 1059 * S, f.proof = OUT_OF_SERVICE_UNPROVED);
        ROW("unproved, and time to ask", ASK, USEC_INFINITY, f.proof = OUT_OF_SERVICE_UNPROVED;
            f.next_ask_usec = 1000 * S);
        ROW("an answer of 30 s ago", TAINT, USEC_INFINITY, f.asked_usec = 970 * S);
        ROW("an older answer", WAIT, 1059 * S, f.asked_usec = 969 * S);
        ROW("an older answer, time to ask", ASK, USEC_INFINITY, f.asked_usec = 940 * S;
            f.next_ask_usec = 1000 * S);
#undef ROW
}

/* -- a coordinator --------------------------------------------------------------------------------------- */

static const cJSON *taint_of(CoordinatorRig *r, const char *node) {
        return fj_find(fj_get(rig_node(r, node), "spec", "taints", NULL), "key", TAINT_OUT_OF_SERVICE);
}

static const char *mark_of(CoordinatorRig *r, const char *node) {
        return fj_string(rig_node(r, node), "metadata", "annotations", ANNOTATION_OUT_OF_SERVICE, NULL);
}

/* n0 has a pod, and its kubelet falls silent; the machine is as the cloud says. The Node shows it after 40 s. */
static CoordinatorRig *new_rig(InstanceState says) {
        CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "p0", .node = "n0" });
        rig_run(r, 2 * S);
        rig_machine(r, "n0")->state = says;
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        return r;
}

/* A cloud may not find a machine in its first ten minutes because it is new: that proves nothing. */
TEST_CASE(test_young) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(INSTANCE_NOT_FOUND);

        rig_run(r, 9 * USEC_PER_MINUTE);
        assert_true(rig_machine(r, "n0")->n_described > 1);
        assert_non_null(rig_node(r, "n0"));
        assert_null(taint_of(r, "n0"));
        assert_false(rig_has_event(r, "n0", "OutOfService"));
        rig_run(r, 6 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "n0"));
}

TEST_CASE(test_off_and_back) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(INSTANCE_OFF);

        rig_run(r, 95 * S);
        assert_int_equal(rig_machine(r, "n0")->n_described, 0);
        assert_null(taint_of(r, "n0"));
        rig_run(r, 15 * S);
        assert_int_equal(rig_machine(r, "n0")->n_described, 1);
        assert_string_equal(fj_string(taint_of(r, "n0"), "value", NULL), "nodeshutdown");
        assert_string_equal(fj_string(taint_of(r, "n0"), "effect", NULL), "NoExecute");
        assert_non_null(mark_of(r, "n0"));
        assert_true(rig_event_says(r, "n0", "OutOfService", "its machine is off"));
        assert_true(rig_has_finalizer(rig_node(r, "n0")));

        rig_run(r, 90 * S); /* no question more: the other two are those of orphan.h, after two minutes */
        assert_int_equal(rig_machine(r, "n0")->n_described, 3);
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "p0"));
        rig_machine(r, "n0")->state = INSTANCE_PRESENT;
        fake_cluster_set_kubelet(r->cluster, "n0", true);
        rig_run(r, 5 * S);
        assert_null(taint_of(r, "n0"));
        assert_null(mark_of(r, "n0"));
        assert_true(rig_has_event(r, "n0", "BackInService"));
        assert_int_equal(rig_machine(r, "n1")->n_described, 0);
}

/* What is no proof. */
TEST_CASE(test_without_proof) {
        static const struct {
                const char *what;
                InstanceState says;
                CloudOutcome outcome;
        } rows[] = {
                { "it runs", INSTANCE_PRESENT, CLOUD_OK },
                { "it ends, and may run yet", INSTANCE_TERMINATING, CLOUD_OK },
                { "it cannot say", INSTANCE_UNKNOWN, CLOUD_OK },
                { "no answer", INSTANCE_OFF, CLOUD_RETRY },
                { "not allowed", INSTANCE_OFF, CLOUD_DENIED },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(rows[i].says);

                print_message("%s\n", rows[i].what);
                r->toy.describe_outcome = rows[i].outcome;
                for (unsigned k = 0; k < 30 && rig_node(r, "n0"); k++) {
                        assert_null(taint_of(r, "n0"));
                        rig_run(r, 10 * S);
                }
                assert_true(rig_machine(r, "n0")->n_described >= 2);
        }
}

TEST_CASE(test_of_others) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(INSTANCE_OFF);

        /* A person's taint stays. */
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'spec':{'taints':[{'key':'node.kubernetes.io/out-of-service','value':'x',"
                   "'effect':'NoExecute'}]}}");
        rig_run(r, 3 * M);
        assert_null(mark_of(r, "n0"));
        fake_cluster_set_kubelet(r->cluster, "n0", true);
        rig_run(r, M);
        assert_non_null(taint_of(r, "n0"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decision),
                cmocka_unit_test(test_young),
                cmocka_unit_test(test_off_and_back),
                cmocka_unit_test(test_without_proof),
                cmocka_unit_test(test_of_others),
        };
        return cmocka_run_group_tests_name("out-of-service", tests, NULL, NULL);
}
