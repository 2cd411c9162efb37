/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "fake-controllers.h"
#include "marks.h"
#include "standalone.h"
#include "string-util.h"

/* As a person makes it; node and tgp may be NULL. */
static void add_claim(CoordinatorRig *r, const char *name, const char *provider_id, const char *node, const char *tgp) {
        cJSON *claim = fj_parse("{'metadata':{'name':'%s'},'spec':{'providerID':'%s'}}", name, provider_id);

        if (node)
                fj_set_string(fj_object(claim, "spec"), "nodeName", node);
        if (tgp)
                fj_set_string(fj_object(claim, "spec"), "terminationGracePeriod", tgp);
        fake_create(r->cluster, FAKE_NODECLAIMS, claim);
}

static char *id_of(const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);

        return strf("aws:///" ZONE "/%s", instance);
}

static void add_claim_of(CoordinatorRig *r, const char *name, const char *node, const char *tgp) {
        _cleanup_free_ char *id = id_of(node);

        add_claim(r, name, id, NULL, tgp);
}

static const cJSON *claim_named(CoordinatorRig *r, const char *name) {
        return fake_get(r->cluster, FAKE_NODECLAIMS, NULL, name);
}

static void delete_claim(CoordinatorRig *r, const char *name) {
        _cleanup_free_ char *path = MUST(strf("/apis/vesper.sh/v1alpha1/nodeclaims/%s", name));
        _cleanup_answer_ FakeAnswer a = fake_ask(&r->w, HTTP_DELETE, path, NULL, NULL);

        assert_int_equal(a.status, 200);
}

/* No NodePool is there; nodes n0.. are nobody's. */
static void begin(CoordinatorRig *r, unsigned n_nodes) {
        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_add_node(r, name);
        }
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_SEC);
}

static bool refused(CoordinatorRig *r, const char *claim, const char *reason) {
        const cJSON *c = claim_named(r, claim);

        return streq_ptr(rig_condition(c, CLAIM_NOT_ADOPTED), "True") &&
               streq_ptr(rig_condition_reason(c, CLAIM_NOT_ADOPTED), reason) &&
               streq_ptr(fj_string(c, "status", "phase", NULL), CLAIM_PHASE_NOT_ADOPTED) && !rig_has_finalizer(c) &&
               rig_has_event(r, claim, "NotAdopted");
}

/* -- served --------------------------------------------------------------------------------------------- */

TEST_CASE(test_adopts) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        uint64_t writes;
        const cJSON *c;

        begin(r, 2);
        add_claim_of(r, "mine", "n0", "30m");
        rig_run(r, 3 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        c = claim_named(r, "mine");
        assert_string_equal(fj_string(c, "status", "nodeName", NULL), "n0");
        assert_string_equal(fj_string(c, "status", "nodeUID", NULL), fj_string(rig_node(r, "n0"), "metadata", "uid", NULL));
        assert_non_null(fj_string(c, "status", "identity", "method", NULL));
        assert_string_equal(rig_condition(c, CLAIM_IDENTITY_PROVED), "True");
        assert_null(rig_condition(c, CLAIM_NOT_ADOPTED));
        assert_null(fj_get(c, "spec", "nodePool", NULL));
        assert_false(rig_has_finalizer(rig_node(r, "n1")));
        assert_null(fj_get(rig_node(r, "n0"), "metadata", "labels", LABEL_NODE_POOL, NULL));

        print_message("  and then quiet, also where a NodePool selects the Node by and by\n");
        fake_add_nodepool(r->cluster, POOL, "1h", NULL);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n1"));
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 2);
        assert_string_equal(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL), "mine");
        fake_api_log_reset(r->api);
        rig_run(r, 10 * USEC_PER_MINUTE);
        writes = fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL) + fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, NULL) +
                 fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status") + fake_api_count(r->api, FAKE_CREATE, FAKE_EVENTS, NULL);
        assert_int_equal(writes, 0);
}

/* Whichever of the two is deleted, with this claim's terminationGracePeriod. */
TEST_CASE(test_removed) {
        for (unsigned of_claim = 0; of_claim < 2; of_claim++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                usec_t begun;

                begin(r, 1);
                add_claim_of(r, "mine", "n0", "30s");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .annotations = "{'karpenter.sh/do-not-disrupt':'true'}", .grace_sec = 1 });
                rig_run(r, 3 * USEC_PER_SEC);
                begun = virtual_time_now(r->w.time);
                if (of_claim)
                        delete_claim(r, "mine");
                else
                        rig_delete_node(r, "n0");
                rig_run(r, 25 * USEC_PER_SEC);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
                assert_in_range(virtual_time_now(r->w.time) - begun, 28 * USEC_PER_SEC, 40 * USEC_PER_SEC);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        }
}

/* Nothing but a paused namespace holds it: there is no pool that could be paused. */
/* Its Node has lost the finalizer, and went with its machine: the claim goes, too, and does not stay as one that was never adopted. */
TEST_CASE(test_node_slipped_away) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 1);
        add_claim_of(r, "mine", "n0", NULL);
        rig_run(r, 3 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        rig_machine(r, "n0")->state = INSTANCE_GONE;
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'finalizers':null}}");
        fake_delete(r->cluster, FAKE_NODES, NULL, "n0", -1);
        rig_run(r, 15 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "n0"));
        assert_null(claim_named(r, "mine"));
}

TEST_CASE(test_paused) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 1);
        add_claim_of(r, "mine", "n0", NULL);
        rig_run(r, 3 * USEC_PER_SEC);
        fake_merge(r->cluster, FAKE_NAMESPACES, NULL, "vesper-system", "{'metadata':{'annotations':{'vesper.sh/paused':'true'}}}");
        rig_run(r, USEC_PER_SEC);
        delete_claim(r, "mine");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_string_equal(fj_string(claim_named(r, "mine"), "status", "phase", NULL), "Paused");
        fake_merge(r->cluster, FAKE_NAMESPACES, NULL, "vesper-system", "{'metadata':{'annotations':{'vesper.sh/paused':null}}}");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
}

TEST_CASE(test_released) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 1);
        add_claim_of(r, "mine", "n0", NULL);
        rig_run(r, 3 * USEC_PER_SEC);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':'true'}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(refused(r, "mine", "NodeUnmanaged"));
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_non_null(claim_named(r, "mine"));

        print_message("  and adopted again\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':null}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        assert_string_equal(rig_condition(claim_named(r, "mine"), CLAIM_NOT_ADOPTED), "False");

        print_message("  released, its deletion ends nothing\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':'true'}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        delete_claim(r, "mine");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_null(claim_named(r, "mine"));
        assert_non_null(rig_node(r, "n0"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* -- not acted on --------------------------------------------------------------------------------------- */

TEST_CASE(test_refused) {
        static const struct {
                const char *reason, *node, *id; /* of the claim; id NULL: n0's */
                const char *patch;              /* of n0 before */
                bool pool, twin_node, deleted, with_exec, other; /* other: n2 has that id */
        } rows[] = {
                { "NodeNotFound", NULL, "aws:///" ZONE "/i-0feedfeedfeedfee0", NULL, false, false, false, false, false },
                { "OtherNode", "n1", NULL, NULL, false, false, false, false, false },
                { "SeveralNodes", NULL, NULL, NULL, false, true, false, false, false },
                { "NodeUnmanaged", NULL, NULL, "{'metadata':{'annotations':{'vesper.sh/unmanaged':'true'}}}", false, false, false, false, false },
                { "NodeDeleted", NULL, NULL, "{'metadata':{'finalizers':['example.com/other']}}", false, false, true, false, false },
                { "ClaimOfPool", NULL, NULL, NULL, true, false, false, false, false },
                { "OtherProvider", NULL, "kind://a/n2", NULL, false, false, false, true, true },
                { "ForeignMachine", NULL, "gce://p/z/n2", NULL, false, false, false, false, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *id = rows[i].id ? strdup(rows[i].id) : id_of("n0"), *instance = rig_instance("n0");

                print_message("  %s\n", rows[i].reason);
                r->use_ec2 = r->toy.is_exec = rows[i].with_exec;
                if (rows[i].pool)
                        rig_begin(r, 2, NULL);
                else
                        begin(r, 2);
                if (rows[i].other) {
                        rig_add_machine(r, id, "n2");
                        fake_add_node(r->cluster, "n2", NULL, NULL, NULL);
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n2", "{'spec':{'providerID':'%s'}}", id);
                }
                if (rows[i].twin_node)
                        fake_add_node(r->cluster, "twin", ZONE, instance, NULL);
                if (rows[i].patch)
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "%s", rows[i].patch);
                if (rows[i].deleted)
                        rig_delete_node(r, "n0");
                rig_run(r, USEC_PER_SEC);
                add_claim(r, "mine", id, rows[i].node, "0s");
                rig_run(r, 5 * USEC_PER_SEC);
                assert_true(refused(r, "mine", rows[i].reason));
                assert_int_equal(rig_has_finalizer(rig_node(r, "n0")), rows[i].pool);

                print_message("    said once, and its deletion ends nothing\n");
                fake_api_log_reset(r->api);
                rig_run(r, 10 * USEC_PER_MINUTE);
                assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status"), 0);
                delete_claim(r, "mine");
                rig_run(r, 10 * USEC_PER_MINUTE);
                assert_null(claim_named(r, "mine"));
                assert_non_null(rig_node(r, "n0"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                if (rows[i].pool)
                        assert_true(rig_is_adopted(r, "n0"));
        }
}

/* A finalizer that a person wrote into the claim makes nothing of it ours. */
TEST_CASE(test_finalizer_of_a_persons) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        ToyMachine *lone;

        begin(r, 1);
        lone = rig_add_machine(r, "aws:///" ZONE "/i-0feedfeedfeedfee0", "gone");
        add_claim(r, "mine", "aws:///" ZONE "/i-0feedfeedfeedfee0", NULL, NULL);
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, "mine", "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
        rig_run(r, 10 * USEC_PER_MINUTE);
        delete_claim(r, "mine");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_null(claim_named(r, "mine"));
        assert_int_equal(lone->n_terminated, 0);
}

TEST_CASE(test_two_claims) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        print_message("  made before anybody looks: neither\n");
        rig_add_node(r, "n0");
        add_claim_of(r, "first", "n0", "1h");
        add_claim_of(r, "second", "n0", "0s");
        rig_start(r, 0);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_true(refused(r, "first", "ClaimsConflict"));
        assert_true(refused(r, "second", "ClaimsConflict"));
        assert_false(rig_has_finalizer(rig_node(r, "n0")));

        print_message("  one is left: that\n");
        delete_claim(r, "second");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));

        print_message("  and goes on when another one comes, and goes\n");
        add_claim_of(r, "second", "n0", "0s");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(refused(r, "second", "ClaimsConflict"));
        assert_string_equal(fj_string(claim_named(r, "first"), "status", "phase", NULL), "Adopted");
        delete_claim(r, "second");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "n0"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        delete_claim(r, "first");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
}

static void take_claim_statuses_late(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        if (request->verb == FAKE_PATCH && request->subresource && request->resource->id == FAKE_NODECLAIMS)
                fault->delay_usec = 10 * USEC_PER_SEC;
}

/* A leader died while it adopted the Node: its finalizers are there, and the claim does not name the Node yet. The next leader removes the
 * Node, and deletes the claim with it. A second claim that a person makes then does not let the first one go before the machine ends. */
TEST_CASE(test_second_claim_during_a_removal) {
        for (unsigned rival_is_first = 0; rival_is_first < 2; rival_is_first++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  made %s the next leader\n", rival_is_first ? "before" : "after");
                rig_add_node(r, "n0");
                add_claim_of(r, "mine", "n0", "60s");
                fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, "mine", "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
                rig_delete_node(r, "n0");
                fake_api_set_fault(r->api, take_claim_statuses_late, NULL);
                if (rival_is_first)
                        add_claim_of(r, "rival", "n0", NULL);
                rig_start(r, 0);
                rig_run(r, 3 * USEC_PER_SEC);
                if (rival_is_first)
                        delete_claim(r, "mine");
                else
                        add_claim_of(r, "rival", "n0", NULL);
                assert_non_null(fj_get(claim_named(r, "mine"), "metadata", "deletionTimestamp", NULL));
                rig_run(r, 20 * USEC_PER_SEC);
                assert_non_null(rig_node(r, "n0"));
                assert_true(rig_has_finalizer(claim_named(r, "mine")));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);

                if (rival_is_first) /* no claim is the Node's, and so no terminationGracePeriod */
                        fake_remove(r->cluster, FAKE_PODS, "default", "web");
                rig_run(r, USEC_PER_MINUTE);
                assert_null(rig_node(r, "n0"));
                assert_null(claim_named(r, "mine"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                assert_non_null(claim_named(r, "rival"));
        }
}

/* exec as the only provider ends it, as for a pool: there the command is the one that knows. */
TEST_CASE(test_exec_alone) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->toy.is_exec = true;
        begin(r, 1);
        add_claim_of(r, "mine", "n0", NULL);
        rig_run(r, 3 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        delete_claim(r, "mine");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_adopts),   cmocka_unit_test(test_removed),
                cmocka_unit_test(test_node_slipped_away),
                cmocka_unit_test(test_paused),   cmocka_unit_test(test_released),
                cmocka_unit_test(test_refused),  cmocka_unit_test(test_finalizer_of_a_persons),
                cmocka_unit_test(test_two_claims),
                cmocka_unit_test(test_second_claim_during_a_removal), cmocka_unit_test(test_exec_alone),
        };
        return cmocka_run_group_tests_name("standalone", tests, NULL, NULL);
}
