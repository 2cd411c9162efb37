/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

static void delete_claim(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *name = strdup(fj_string(rig_claim(r, node), "metadata", "name", NULL));

        assert_true(fake_delete(r->cluster, FAKE_NODECLAIMS, NULL, name, -1));
}

/* A claim whose Node was forced away, by what the cloud says of its machine. */
TEST_CASE(test_claims_without_node) {
        static const struct {
                const char *what;
                bool deleting;
                InstanceState says;
                CloudOutcome outcome;
                bool gone;         /* the claim, in the end */
                unsigned ended;    /* calls to end the machine */
                const char *event; /* about the claim; NULL: none */
        } rows[] = {
                { "its machine is gone", false, INSTANCE_GONE, CLOUD_OK, true, 0, NULL },
                { "its machine is on its way", false, INSTANCE_TERMINATING, CLOUD_OK, true, 0, NULL },
                { "its machine is there: its kubelet may come back", false, INSTANCE_PRESENT, CLOUD_OK,
                  false, 0, "MachineWithoutNode" },
                { "nobody knows", false, INSTANCE_UNKNOWN, CLOUD_OK, false, 0, "CloudUnknown" },
                { "no answer", false, INSTANCE_GONE, CLOUD_RETRY, false, 0, "CloudUnavailable" },
                { "not allowed", false, INSTANCE_GONE, CLOUD_DENIED, false, 0, "CloudDenied" },
                { "being deleted, and its machine is gone", true, INSTANCE_GONE, CLOUD_OK, true, 0, NULL },
                { "being deleted, and its machine is there", true, INSTANCE_PRESENT, CLOUD_OK, true, 1,
                  NULL },
                { "being deleted, and nobody knows", true, INSTANCE_UNKNOWN, CLOUD_OK, false, 0,
                  "CloudUnknown" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *claim = NULL;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                claim = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
                rig_machine(r, "n0")->state = rows[i].says;
                r->toy.describe_outcome = rows[i].outcome;
                fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
                if (rows[i].deleting)
                        delete_claim(r, "n0");

                print_message("    for two minutes nothing is asked\n");
                rig_run(r, 119 * USEC_PER_SEC);
                assert_int_equal(rig_machine(r, "n0")->n_described, 0);
                assert_true(rig_has_finalizer(rig_claim(r, "n0")));
                rig_run(r, 10 * USEC_PER_MINUTE);
                assert_int_equal(rig_claim(r, "n0") == NULL, rows[i].gone);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, rows[i].ended);
                assert_true(!rows[i].event || rig_has_event(r, claim, rows[i].event));
                assert_true(!rows[i].event ||
                            streq(rig_condition(rig_claim(r, "n0"), CLAIM_NODE_ABSENT), "True"));
                assert_in_range(rig_machine(r, "n0")->n_described, 1, 16);
                assert_true(rig_is_adopted(r, "n1"));
        }
}

/* A Node that stays when its machine is gone, where no controller of the cloud deletes it. */
TEST_CASE(test_silent_nodes) {
        static const struct {
                const char *what;
                InstanceState says;
                CloudOutcome outcome;
                bool comes_back; /* the kubelet, before the two minutes are over */
                bool gone;       /* Node and claim, in the end */
        } rows[] = {
                { "its machine is gone", INSTANCE_GONE, CLOUD_OK, false, true },
                { "its machine is on its way", INSTANCE_TERMINATING, CLOUD_OK, false, true },
                { "its machine is there", INSTANCE_PRESENT, CLOUD_OK, false, false },
                { "nobody knows", INSTANCE_UNKNOWN, CLOUD_OK, false, false },
                { "no answer", INSTANCE_GONE, CLOUD_RETRY, false, false },
                { "not allowed", INSTANCE_GONE, CLOUD_DENIED, false, false },
                { "its kubelet was away for a moment", INSTANCE_GONE, CLOUD_OK, true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                const char *const what[] = { "MachineWithoutNode", "CloudUnknown", "CloudUnavailable" };
                _cleanup_free_ char *claim = NULL;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                claim = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
                rig_machine(r, "n0")->state = rows[i].says;
                r->toy.describe_outcome = rows[i].outcome;
                fake_cluster_set_kubelet(r->cluster, "n0", false);
                rig_run(r, 119 * USEC_PER_SEC);
                assert_int_equal(rig_machine(r, "n0")->n_described, 0);
                if (rows[i].comes_back)
                        fake_cluster_set_kubelet(r->cluster, "n0", true);
                rig_run(r, 14 * USEC_PER_MINUTE);

                assert_int_equal(rig_node(r, "n0") == NULL, rows[i].gone);
                assert_int_equal(rig_claim(r, "n0") == NULL, rows[i].gone);
                assert_int_equal(rig_machine(r, "n0")->n_described == 0, rows[i].comes_back);
                assert_in_range(rig_machine(r, "n0")->n_described, 0, 16);
                if (!rows[i].gone)
                        assert_true(rig_is_adopted(r, "n0"));
                for (size_t k = 0; k < ELEMENTSOF(what); k++)
                        assert_false(rig_has_event(r, claim, what[k]));
                assert_true(rig_is_adopted(r, "n1"));
        }
}

/* Between two looks it comes back: one "not found" is nobody's word. */
TEST_CASE(test_silent_node_looked_at_once) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_run(r, 10 * USEC_PER_MINUTE);
        rig_machine(r, "n0")->state = INSTANCE_NOT_FOUND;
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        while (rig_machine(r, "n0")->n_described == 0)
                assert_int_equal(virtual_time_step(r->w.time, USEC_INFINITY), 1);
        rig_machine(r, "n0")->state = INSTANCE_PRESENT;
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_true(rig_is_adopted(r, "n0"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* Its Node is torn away meanwhile: absences are counted each by itself, and the claim is an orphan then. */
TEST_CASE(test_silent_node_torn_away) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_machine(r, "n0")->state = INSTANCE_PRESENT;
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_null(rig_condition(rig_claim(r, "n0"), CLAIM_NODE_ABSENT));
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 110 * USEC_PER_SEC);
        assert_null(rig_condition(rig_claim(r, "n0"), CLAIM_NODE_ABSENT));
        rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_NODE_ABSENT), "True");
}

TEST_CASE(test_one_look_is_not_enough) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_run(r, 10 * USEC_PER_MINUTE);
        rig_machine(r, "n0")->state = INSTANCE_NOT_FOUND;
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        while (rig_machine(r, "n0")->n_described == 0)
                assert_int_equal(virtual_time_step(r->w.time, USEC_INFINITY), 1);
        rig_machine(r, "n0")->state = INSTANCE_PRESENT;
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_true(rig_has_finalizer(rig_claim(r, "n0")));
}

TEST_CASE(test_node_comes_back) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");

        rig_begin(r, 1, NULL);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_NODE_ABSENT), "True");
        fake_add_node(r->cluster, "n0", ZONE, instance, POOL);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        assert_null(rig_condition(rig_claim(r, "n0"), CLAIM_NODE_ABSENT));
        assert_string_equal(fj_string(rig_claim(r, "n0"), "status", "nodeUID", NULL),
                            fj_string(rig_node(r, "n0"), "metadata", "uid", NULL));
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* A kubelet may take our finalizer off its own Node: the claim remembers the machine. */
TEST_CASE(test_finalizer_torn_off) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        assert_true(rig_wait_gone(r, "n0", 3 * USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* What is absent from a view that does not stand proves nothing. */
TEST_CASE(test_view_is_old) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_machine(r, "n0")->state = INSTANCE_GONE;
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 110 * USEC_PER_SEC);
        fake_api_away_until(r->api, loop_now(r->w.loop) + 5 * USEC_PER_SEC);
        rig_run(r, 60 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_described, 0);
        rig_run(r, 100 * USEC_PER_SEC);
        assert_null(rig_claim(r, "n0"));
}

/* No provider answers for a claim without a providerID. The claim stays. */
TEST_CASE(test_no_provider_id) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *claim = NULL;

        rig_begin(r, 2, NULL);
        claim = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{'spec':{'providerID':null},'status':{'providerID':null}}");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 20 * USEC_PER_MINUTE);
        assert_true(rig_has_finalizer(fake_get(r->cluster, FAKE_NODECLAIMS, NULL, claim)));
        assert_true(rig_has_event(r, claim, "CloudUnknown"));
}

TEST_CASE(test_wrong_region) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        r->ec2_region = "eu-west-1";
        rig_begin(r, 2, NULL);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        delete_claim(r, "n0");
        rig_run(r, USEC_PER_HOUR);
        assert_true(rig_has_finalizer(rig_claim(r, "n0")));
        assert_int_equal(fake_ec2_n_alive(r->ec2), 2);
}

TEST_CASE(test_ec2_gone) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *first = rig_instance("n0");

        r->use_ec2 = true;
        rig_begin(r, 2, NULL);
        fake_ec2_forget(r->ec2, first);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 9 * USEC_PER_MINUTE);
        assert_non_null(rig_claim(r, "n0")); /* it may only be too new to be found */
        rig_run(r, 8 * USEC_PER_MINUTE);
        assert_null(rig_claim(r, "n0"));
        assert_true(rig_is_adopted(r, "n1"));
}

static void on_no_nodes(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        if (request->resource && request->resource->id == FAKE_NODES)
                fault->status = 503;
}

/* A cloud that refuses is asked again, as long as the Node is seen to be absent. */
TEST_CASE(test_cloud_refuses) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        unsigned n;

        rig_begin(r, 1, NULL);
        rig_machine(r, "n0")->outcome = CLOUD_RETRY;
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        delete_claim(r, "n0");
        rig_run(r, 5 * USEC_PER_MINUTE);
        n = rig_machine(r, "n0")->n_terminated;
        assert_in_range(n, 4, 12);

        print_message("  nobody knows whether it is\n");
        fake_api_set_fault(r->api, on_no_nodes, NULL);
        fake_api_cut_watches(r->api);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, n);

        print_message("  it is\n");
        fake_api_set_fault(r->api, NULL, NULL);
        rig_machine(r, "n0")->outcome = CLOUD_OK;
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, n + 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claims_without_node),
                cmocka_unit_test(test_silent_nodes),
                cmocka_unit_test(test_silent_node_looked_at_once),
                cmocka_unit_test(test_silent_node_torn_away),
                cmocka_unit_test(test_one_look_is_not_enough),
                cmocka_unit_test(test_node_comes_back),
                cmocka_unit_test(test_finalizer_torn_off),
                cmocka_unit_test(test_view_is_old),
                cmocka_unit_test(test_cloud_refuses),
                cmocka_unit_test(test_no_provider_id),
                cmocka_unit_test(test_wrong_region),
                cmocka_unit_test(test_ec2_gone),
        };
        return cmocka_run_group_tests_name("orphan", tests, NULL, NULL);
}
