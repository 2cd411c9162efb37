/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "machine-facts.h"
#include "marks.h"
#include "page.h"

/* Whose instance it is that a Node names: proved at adoption, kept by its claim, and proved again before it is ended. */

static const char *identity_of(CoordinatorRig *r, const char *node, const char *field) {
        return fj_string(rig_claim(r, node), "status", "identity", field, NULL);
}

static void set_known_as(CoordinatorRig *r, const char *node, const char *name) {
        assert_return_code(free_and_strdup(&rig_machine(r, node)->node, name), 0);
}

static void believe(CoordinatorRig *r, bool believed) {
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'provider':{'identity':%s}}}",
                   believed ? "'ProviderID'" : "null");
}

static const char *pool_condition(CoordinatorRig *r, const char *type) {
        return rig_condition(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), type);
}

static const char *claim_name(CoordinatorRig *r, const char *node) {
        return fj_string(rig_claim(r, node), "metadata", "name", NULL);
}

/* -- facts ---------------------------------------------------------------------------------------------- */

static bool owns_all(const CloudProvider *p, const char *provider_id) {
        return true;
}

static bool owns_aws(const CloudProvider *p, const char *provider_id) {
        return startswith(provider_id, "aws:///") != NULL;
}

TEST_CASE(test_facts) {
        static const CloudProviderOps named_ops = { .name = "exec", .owns = owns_all, .takes_names = true },
                                      plain_ops = { .name = "ec2", .owns = owns_aws, .proves_identity = true };
        CloudProvider by_name = { .ops = &named_ops }, by_id = { .ops = &plain_ops };
        const CloudRegistry named = { { &by_name }, 1 }, plain = { { &by_id }, 1 }, both = { { &by_id, &by_name }, 2 };
        NodeAddress addresses[20];
        KubeNode n = { .object.meta = { .name = (char *) "n1", .creation_usec = 100 },
                       .named_id = (char *) "exec://n1",
                       .system_uuid = (char *) "s-now",
                       .machine_id = (char *) "m-now",
                       .addresses = addresses,
                       .n_addresses = ELEMENTSOF(addresses) };
        KubeNodeClaim c = { .object.meta.creation_usec = 200,
                            .provider_id = (char *) "exec://n0",
                            .made_for = (char *) "n0",
                            .machine_id = (char *) "m-then" };
        MachineFacts f;

        for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
                addresses[i] = (NodeAddress){ i == 1 ? NULL : "InternalIP", (char *) "10.0.0.7" };

        print_message("  a Node alone\n");
        assert_false(machine_facts_fill(&f, &plain, &n, NULL, NULL));
        assert_true(machine_facts_fill(&f, &named, &n, NULL, NULL));
        assert_string_equal(f.machine.provider_id, "exec://n1");
        assert_string_equal(f.machine.node, "n1");
        assert_string_equal(f.machine.machine_id, "m-now");
        assert_int_equal(f.machine.n_addresses, MACHINE_ADDRESSES_MAX);
        assert_int_equal(f.born_usec, 100);

        print_message("  and its claim, which is what is trusted\n");
        assert_true(machine_facts_fill(&f, &plain, &n, &c, NULL));
        assert_string_equal(f.machine.provider_id, "exec://n0");
        assert_string_equal(f.machine.node, "n1");
        assert_string_equal(f.machine.system_uuid, "s-now");
        assert_string_equal(f.machine.machine_id, "m-then");
        assert_int_equal(f.born_usec, 100);

        print_message("  a claim alone\n");
        assert_true(machine_facts_fill(&f, &plain, NULL, &c, NULL));
        assert_string_equal(f.machine.node, "n0");
        assert_null(f.machine.system_uuid);
        assert_int_equal(f.machine.n_addresses, 0);
        assert_int_equal(f.born_usec, 200);
        c.node_name = (char *) "n2";
        assert_true(machine_facts_fill(&f, &plain, NULL, &c, NULL));
        assert_string_equal(f.machine.node, "n2");

        print_message("  and whose it is\n");
        assert_true(f.provider == &by_id); /* which has to say that it is not */
        assert_true(machine_facts_fill(&f, &both, NULL, &c, NULL));
        assert_true(f.provider == &by_id); /* a person's claim: exec believes nobody who made it */
        c.node_pool = (char *) "pool";
        assert_true(machine_facts_fill(&f, &both, NULL, &c, NULL));
        assert_true(f.provider == &by_name);
        assert_true(machine_facts_fill(&f, &both, &n, NULL, NULL));
        assert_true(f.provider == &by_id); /* the kubelet alone has said which it is */
        assert_true(machine_facts_fill(&f, &both, &n, NULL, "exec"));
        assert_true(f.provider == &by_name);
        n.provider_id = (char *) "aws:///us-east-1a/i-1";
        assert_true(machine_facts_fill(&f, &both, &n, &c, NULL));
        assert_true(f.provider == &by_name); /* the claim's */
        assert_true(machine_facts_fill(&f, &both, &n, NULL, NULL));
        assert_true(f.provider == &by_id);
        assert_string_equal(f.machine.provider_id, "aws:///us-east-1a/i-1");
        print_message("  as its pool has it, where that can be\n");
        assert_true(machine_facts_fill(&f, &both, &n, NULL, "exec"));
        assert_true(f.provider == &by_name);
        assert_true(machine_facts_fill(&f, &both, NULL, &c, "ec2"));
        assert_true(f.provider == &by_name);
}

/* -- adoption ------------------------------------------------------------------------------------------- */

TEST_CASE(test_kept) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        assert_string_equal(identity_of(r, "n0", "instanceID"), rig_machine(r, "n0")->provider_id);
        assert_string_equal(identity_of(r, "n0", "region"), "toy-1");
        assert_string_equal(identity_of(r, "n0", "method"), "Toy");
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED), "True");
        assert_string_equal(rig_condition_reason(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED), "Toy");
        assert_string_equal(fj_string(rig_claim(r, "n0"), "spec", "nodeName", NULL), "n0");
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status"), 2);

        print_message("  what is kept is not asked again, by whoever leads\n");
        rig_run(r, USEC_PER_HOUR);
        rig_stop(r, 0);
        rig_start(r, 1);
        rig_run(r, USEC_PER_HOUR);
        assert_int_equal(rig_machine(r, "n0")->n_described, 0);
}

/* A claim of an older version: proved at the next look, while the instance runs. */
TEST_CASE(test_older_claim) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_stop(r, 0);
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim_name(r, "n0"),
                   "{'status':{'identity':null,'conditions':null}}");
        r->toy.describe_outcome = CLOUD_RETRY;
        rig_start(r, 0);
        rig_run(r, USEC_PER_MINUTE);
        assert_true(rig_is_adopted(r, "n0"));
        assert_null(identity_of(r, "n0", "method"));
        assert_null(rig_condition(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED)); /* it may pass */
        r->toy.describe_outcome = CLOUD_OK;
        rig_run(r, 2 * USEC_PER_MINUTE);
        assert_string_equal(identity_of(r, "n0", "method"), "Toy");
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_INITIALIZED), "True");
}

/* An answer that does not come keeps nobody from being adopted. */
TEST_CASE(test_silent_cloud) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        rig_add_node(r, "n0");
        r->toy.silent = true;
        rig_start(r, 0);
        rig_run(r, 4 * USEC_PER_SEC);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_false(rig_is_adopted(r, "n0"));
        rig_run(r, 3 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        assert_null(identity_of(r, "n0", "method"));
}

/* What keeps an identity from being proved, and what is said of it. */
TEST_CASE(test_unproved) {
        static const struct {
                const char *what;
                const char *known_as;
                CloudOutcome outcome;
                InstanceState says;
                const char *reason, *text; /* of the condition; NULL: none */
        } rows[] = {
                { "the cloud knows it by another name", "n7", CLOUD_OK, INSTANCE_PRESENT, "NotProved",
                  "knows it by another name" },
                { "not allowed to ask", "n0", CLOUD_DENIED, INSTANCE_PRESENT, "CloudDenied", "in a bad mood" },
                { "not this cloud's", "n0", CLOUD_INVALID, INSTANCE_PRESENT, "CloudRefused", "in a bad mood" },
                { "no answer", "n0", CLOUD_RETRY, INSTANCE_PRESENT, NULL, NULL },
                { "it is not found, yet", "n0", CLOUD_OK, INSTANCE_NOT_FOUND, NULL, NULL },
                { "it is ending", "n0", CLOUD_OK, INSTANCE_TERMINATING, NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                const cJSON *claim;

                print_message("  %s\n", rows[i].what);
                fake_add_nodepool(r->cluster, POOL, NULL, NULL);
                rig_add_node(r, "n0");
                set_known_as(r, "n0", rows[i].known_as);
                rig_machine(r, "n0")->state = rows[i].says;
                r->toy.describe_outcome = rows[i].outcome;
                rig_start(r, 0);
                rig_run(r, 30 * USEC_PER_SEC);
                claim = rig_claim(r, "n0");
                assert_true(rig_is_adopted(r, "n0"));
                assert_null(identity_of(r, "n0", "method"));
                assert_int_equal(rig_has_event(r, "n0", "IdentityUnproved"), rows[i].reason != NULL);
                assert_int_equal(rig_has_event(r, claim_name(r, "n0"), "IdentityUnproved"), rows[i].reason != NULL);
                assert_int_equal(rig_has_event(r, POOL, POOL_IDENTITY), rows[i].reason != NULL);
                assert_string_equal(strempty(rig_condition_reason(claim, CLAIM_IDENTITY_PROVED)),
                                    strempty(rows[i].reason));
                if (rows[i].reason) {
                        assert_string_equal(rig_condition(claim, CLAIM_IDENTITY_PROVED), "False");
                        assert_string_equal(pool_condition(r, POOL_IDENTITY), "True");
                        assert_true(rig_event_says(r, "n0", "IdentityUnproved", rows[i].text));
                        assert_true(rig_event_says(r, "n0", "IdentityUnproved", "ProviderID on NodePool " POOL));
                }

                print_message("    it is asked again, and told once\n");
                rig_run(r, USEC_PER_HOUR);
                assert_in_range(rig_machine(r, "n0")->n_described, rows[i].outcome == CLOUD_OK ? 6 : 0, 20);
                assert_in_range(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status"), 1, 2);
                r->toy.describe_outcome = CLOUD_OK;
                rig_machine(r, "n0")->state = INSTANCE_PRESENT;
                set_known_as(r, "n0", "n0");
                rig_run(r, 15 * USEC_PER_MINUTE);
                assert_string_equal(identity_of(r, "n0", "method"), "Toy");
                assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED), "True");
                assert_string_equal(strempty(pool_condition(r, POOL_IDENTITY)), rows[i].reason ? "False" : "");
        }
}

/* The pool's condition names the first such node and counts the others. */
TEST_CASE(test_several_unproved) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        static const char *const nodes[] = { "n0", "n1", "n2" }, *const ends[] = { "; and 2 more nodes", "; and 1 more node" };

        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                rig_add_node(r, nodes[i]);
                set_known_as(r, nodes[i], "n7");
        }
        rig_start(r, 0);
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                const cJSON *k;

                rig_run(r, 15 * USEC_PER_MINUTE);
                k = fj_find(fj_get(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), "status", "conditions", NULL), "type", POOL_IDENTITY);
                if (i < ELEMENTSOF(ends))
                        assert_true(endswith(fj_string(k, "message", NULL), ends[i]));
                else
                        assert_null(strstr(fj_string(k, "message", NULL), " more node"));
                assert_non_null(startswith(fj_string(k, "message", NULL), "Node n"));
                set_known_as(r, nodes[i], nodes[i]);
        }
        rig_run(r, 15 * USEC_PER_MINUTE);
        assert_string_equal(pool_condition(r, POOL_IDENTITY), "False");
}

TEST_CASE(test_believed) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        rig_add_node(r, "n0");
        set_known_as(r, "n0", "n7");
        rig_start(r, 0);
        rig_run(r, 30 * USEC_PER_SEC);
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED), "False");
        believe(r, true);
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(identity_of(r, "n0", "method"), "ProviderID");
        assert_string_equal(rig_condition_reason(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED), "ProviderID");

        print_message("  not any more\n");
        believe(r, false);
        rig_run(r, USEC_PER_SEC);
        assert_null(identity_of(r, "n0", "method"));
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_IDENTITY_PROVED), "False");
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                            "IdentityUnproved");
        believe(r, true);
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* -- the end -------------------------------------------------------------------------------------------- */

/* A kubelet names another's machine: its node is drained like any, and that machine goes on. */
TEST_CASE(test_liar) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        ToyMachine *victim;

        rig_begin(r, 1, NULL);
        victim = rig_add_machine(r, "aws:///" ZONE "/i-0feed", "somebody-elses");
        fake_add_node(r->cluster, "liar", ZONE, "i-0feed", POOL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "liar", .stop_sec = 2 });
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(rig_has_finalizer(rig_node(r, "liar")));
        rig_delete_node(r, "liar");
        rig_run(r, USEC_PER_HOUR);
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_int_equal(victim->n_terminated, 0);
        assert_string_equal(rig_condition_reason(rig_node(r, "liar"), CONDITION_TERMINATION_BLOCKED),
                            "IdentityUnproved");

        print_message("  its owner ends it, and the kubelet still reports: it is no proof against that\n");
        victim->state = INSTANCE_GONE;
        rig_run(r, USEC_PER_HOUR);
        assert_non_null(rig_node(r, "liar"));
        fake_cluster_set_kubelet(r->cluster, "liar", false);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_null(rig_node(r, "liar"));
        assert_int_equal(victim->n_terminated, 0);
}

/* A tag that was moved since it was adopted: what was proved once is proved again. */
TEST_CASE(test_proved_again) {
        static const struct {
                const char *what;
                bool orphan; /* its Node is torn off, and its claim deleted */
        } rows[] = { { "a Node", false }, { "a claim alone", true } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                set_known_as(r, "n0", "n7");
                if (rows[i].orphan) {
                        _cleanup_free_ char *claim = MUST(strdup(claim_name(r, "n0")));

                        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
                        assert_true(fake_delete(r->cluster, FAKE_NODECLAIMS, NULL, claim, -1));
                } else
                        rig_delete_node(r, "n0");
                rig_run(r, 15 * USEC_PER_MINUTE);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_true(rig_has_finalizer(rig_claim(r, "n0")));
                assert_true(rows[i].orphan || rig_event_says(r, "n0", "TerminationBlocked", "IdentityUnproved"));
                assert_true(!rows[i].orphan || rig_has_event(r, claim_name(r, "n0"), "IdentityUnproved"));
                set_known_as(r, "n0", "n0");
                assert_true(rig_wait_gone(r, "n0", 15 * USEC_PER_MINUTE));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        }
}

/* An instance that has ended has no name any more: the id was proved before. */
TEST_CASE(test_ended_by_somebody) {
        static const struct {
                const char *what;
                InstanceState says;
                bool ready;
                usec_t age_usec, within_usec;
        } rows[] = {
                { "terminated, and its kubelet was heard a moment ago", INSTANCE_GONE, true, 0, USEC_PER_SEC },
                { "shutting down", INSTANCE_TERMINATING, true, 0, USEC_PER_SEC },
                { "not found, and its kubelet is silent", INSTANCE_NOT_FOUND, false, 10 * USEC_PER_MINUTE,
                  20 * USEC_PER_SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                rig_run(r, rows[i].age_usec);
                set_known_as(r, "n0", "");
                rig_machine(r, "n0")->state = rows[i].says;
                if (!rows[i].ready) {
                        fake_cluster_set_kubelet(r->cluster, "n0", false);
                        rig_run(r, USEC_PER_MINUTE);
                }
                rig_delete_node(r, "n0");
                assert_true(rig_wait_gone(r, "n0", rows[i].within_usec));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        }
}

/* Not found, says the cloud, of a machine whose kubelet reports: the two contradict each other, and nothing is done. */
TEST_CASE(test_missing_and_ready) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_run(r, 10 * USEC_PER_MINUTE);
        rig_machine(r, "n0")->state = INSTANCE_NOT_FOUND;
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                            "MachineMissing");
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_MINUTE));
}

/* -- several Nodes of one machine ----------------------------------------------------------------------- */

static void add_twin(CoordinatorRig *r, const char *name) {
        _cleanup_free_ char *instance = rig_instance("n0");

        fake_add_node(r->cluster, name, ZONE, instance, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, name, "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
        rig_run(r, USEC_PER_SEC);
}

/* While the other lives or has pods its machine is ended for neither; once nobody needs it, the proof decides, and both go. */
TEST_CASE(test_both_deleted) {
        static const struct {
                const char *what;
                bool trusted;
        } rows[] = {
                { "the cloud knows it by the name of one", false },
                { "the pool believes providerIDs", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                if (rows[i].trusted)
                        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'provider':{'identity':'ProviderID'}}}");
                add_twin(r, "twin");
                fake_add_pod(r->cluster, &(FakePod){ .name = "held", .node = "twin", .stop_sec = 1 });
                fake_merge(r->cluster, FAKE_PODS, "default", "held", "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}");
                rig_delete_node(r, "n0");
                rig_run(r, 2 * USEC_PER_MINUTE);
                assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                                    "MachineShared");
                assert_true(rig_event_says(r, "n0", "TerminationBlocked", "Node twin"));

                print_message("  ... the other still holds a pod\n");
                rig_delete_node(r, "twin");
                rig_run(r, 15 * USEC_PER_MINUTE);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                                    "MachineShared");
                assert_non_null(fake_get(r->cluster, FAKE_PODS, "default", "held"));
                assert_true(fake_count(r->cluster, FAKE_EVENTS) < 40);

                fake_merge(r->cluster, FAKE_PODS, "default", "held", "{'metadata':{'annotations':null}}");
                rig_run(r, 2 * USEC_PER_MINUTE);
                assert_in_range(rig_machine(r, "n0")->n_terminated, 1, rows[i].trusted ? 2 : 1);
                rig_machine(r, "n0")->state = INSTANCE_GONE; /* after shutting down */
                fake_cluster_set_kubelet(r->cluster, "n0", false);
                fake_cluster_set_kubelet(r->cluster, "twin", false);
                rig_run(r, 6 * USEC_PER_MINUTE);
                assert_null(rig_node(r, "n0"));
                assert_null(rig_node(r, "twin"));
                assert_null(rig_claim(r, "n0"));
                assert_true(rig_is_adopted(r, "n1"));
        }
}

/* T ends what waits for a Node's own pods, not for those of another. */
TEST_CASE(test_deadline_of_one) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, "60s");
        add_twin(r, "twin");
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        rig_delete_node(r, "twin");
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* The instance is ended by other means meanwhile: both go, too. */
TEST_CASE(test_shared_machine_is_gone) {
        static const InstanceState says[] = { INSTANCE_GONE, INSTANCE_NOT_FOUND };

        for (size_t i = 0; i < ELEMENTSOF(says); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                rig_begin(r, 2, NULL);
                rig_run(r, 10 * USEC_PER_MINUTE);
                add_twin(r, "twin");
                rig_delete_node(r, "n0");
                rig_run(r, 15 * USEC_PER_MINUTE);
                rig_machine(r, "n0")->state = says[i];
                rig_delete_node(r, "twin");
                fake_cluster_set_kubelet(r->cluster, "n0", false);
                fake_cluster_set_kubelet(r->cluster, "twin", false);
                rig_run(r, 3 * USEC_PER_MINUTE);
                assert_null(rig_node(r, "n0"));
                assert_null(rig_node(r, "twin"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        }
}

/* The one that is wrong is let go, as the condition says: the other is ended as any. */
TEST_CASE(test_one_of_them_is_wrong) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        add_twin(r, "twin");
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        fake_remove(r->cluster, FAKE_NODES, NULL, "twin");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* -- Nodes without providerID --------------------------------------------------------------------------- */

static void begin_exec(CoordinatorRig *r) {
        r->toy.is_exec = true;
        fake_add_nodepool(r->cluster, POOL, NULL, "exec");
        fake_add_node(r->cluster, "worker", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "worker",
                   "{'status':{'nodeInfo':{'systemUUID':'s-1','machineID':'m-1'}}}");
        (void) rig_add_machine(r, "exec://worker", "worker");
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_SEC);
}

/* A rack behind provider exec, beside machines of EC2's. */
static void begin_both(CoordinatorRig *r) {
        r->use_ec2 = true;
        r->toy.is_exec = true;
        fake_add_nodepool(r->cluster, "racks", NULL, "exec");
        fake_add_node(r->cluster, "rack", NULL, NULL, "racks");
        fake_merge(r->cluster, FAKE_NODES, NULL, "rack", "{'spec':{'providerID':'rack:7'}}");
        (void) rig_add_machine(r, "rack:7", "rack");
        rig_begin(r, 2, NULL);
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'provider':{'name':null}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_has_finalizer(rig_node(r, "rack")));
}

TEST_CASE(test_two_providers) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");
        ToyMachine *rack;

        begin_both(r);
        rack = hashmap_get(r->toy.machines, "rack:7");
        assert_string_equal(identity_of(r, "n0", "method"), "PrivateDNSName");
        rig_delete_node(r, "n0");
        rig_delete_node(r, "rack");
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        rig_run(r, 5 * USEC_PER_SEC);
        assert_null(rig_node(r, "rack"));
        assert_int_equal(fake_ec2_n_terminations(r->ec2, instance), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0); /* by the toy */
        assert_int_equal(rack->n_terminated, 1);
        assert_int_equal(fake_ec2_n_alive(r->ec2), 1);
}

/* What the first cannot do holds up nothing of the second's, and it goes on when it can. */
TEST_CASE(test_one_of_two_is_broken) {
        static const char *const lines[] = {
                "{provider=\"exec\",operation=\"terminate\",outcome=\"ok\"} 1\n",
                "{provider=\"exec\",operation=\"describe\",outcome=\"retry\"} 0\n",
                "{provider=\"ec2\",operation=\"terminate\",outcome=\"ok\"} 0\n",
        };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin_both(r);
        fake_ec2_fail(r->ec2, 1000000, 503, "Unavailable", "not today");
        rig_delete_node(r, "n0");
        rig_delete_node(r, "n1");
        rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED), "True");
        rig_delete_node(r, "rack");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_null(rig_node(r, "rack"));
        assert_non_null(rig_node(r, "n0"));
        assert_non_null(rig_node(r, "n1"));

        print_message("  counted apart\n");
        for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
                _cleanup_page_ Page p = page_ask(coordinator_handle, r->coordinators[0]->coordinator, HTTP_GET,
                                                 "/metrics");

                assert_non_null(strstr(p.body, lines[i]));
        }

        fake_ec2_fail(r->ec2, 0, 0, NULL, NULL);
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_MINUTE));
        assert_true(rig_wait_gone(r, "n1", 5 * USEC_PER_MINUTE));
        assert_int_equal(fake_ec2_n_alive(r->ec2), 0);
}

/* A pool that names its provider adopts no machine of another's. */
TEST_CASE(test_pool_names_one_of_two) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        r->toy.is_exec = true;
        fake_add_nodepool(r->cluster, POOL, NULL, "ec2");
        rig_add_node(r, "n0");
        fake_add_node(r->cluster, "rack", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "rack", "{'spec':{'providerID':'rack:7'}}");
        fake_add_node(r->cluster, "early", NULL, NULL, POOL);
        (void) rig_add_machine(r, "rack:7", "rack");
        (void) rig_add_machine(r, "exec://early", "early");
        rig_start(r, 0);
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(rig_is_adopted(r, "n0"));
        assert_false(rig_has_finalizer(rig_node(r, "rack")));
        assert_true(rig_event_says(r, "rack", "NotAdopted", "wants provider 'ec2', and its machine belongs to 'exec'"));
        print_message("  and one without providerID is not taken by its name\n");
        assert_false(rig_has_finalizer(rig_node(r, "early")));
        assert_true(rig_event_says(r, "early", "NotAdopted", "provider 'ec2' finds no machine without one"));
}

/* A kubelet cannot choose the provider that asks for no proof: its pool has to. */
TEST_CASE(test_pool_names_none_of_two) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        r->toy.is_exec = true;
        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        rig_add_node(r, "n0");
        fake_add_node(r->cluster, "rack", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "rack", "{'spec':{'providerID':'rack:7'}}");
        (void) rig_add_machine(r, "rack:7", "rack");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'provider':{'name':null}}}");
        rig_start(r, 0);
        rig_run(r, USEC_PER_MINUTE);
        assert_true(rig_is_adopted(r, "n0"));
        assert_false(rig_has_finalizer(rig_node(r, "rack")));
        assert_true(rig_event_says(r, "rack", "NotAdopted", "set spec.provider.name: exec on NodePool " POOL));
        print_message("  named, it serves\n");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'provider':{'name':'exec'}}}");
        rig_run(r, USEC_PER_MINUTE);
        assert_true(rig_has_finalizer(rig_node(r, "rack")));
}

static const cJSON *named_claim(CoordinatorRig *r) {
        const cJSON *claim, *found = NULL;

        FAKE_FOREACH (claim, r->cluster, FAKE_NODECLAIMS, NULL)
                if (streq_ptr(fj_string(claim, "spec", "providerID", NULL), "exec://worker")) {
                        assert_null(found);
                        found = claim;
                }
        return found;
}

TEST_CASE(test_by_name) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        ToyMachine *m;

        begin_exec(r);
        m = hashmap_get(r->toy.machines, "exec://worker");
        assert_non_null(named_claim(r));
        assert_true(rig_has_finalizer(rig_node(r, "worker")));
        assert_string_equal(fj_string(named_claim(r), "spec", "systemUUID", NULL), "s-1");
        assert_string_equal(fj_string(named_claim(r), "spec", "machineID", NULL), "m-1");
        assert_string_equal(fj_string(named_claim(r), "status", "nodeName", NULL), "worker");
        assert_null(rig_condition(named_claim(r), CLAIM_IDENTITY_PROVED));
        assert_null(fj_string(rig_node(r, "worker"), "spec", "providerID", NULL));
        assert_int_equal(m->n_described, 0); /* whose it is, is the command's business */

        print_message("  a kubelet that takes its name is not adopted, and keeps it from nothing\n");
        fake_add_node(r->cluster, "liar", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "liar", "{'spec':{'providerID':'exec://worker'}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_false(rig_has_finalizer(rig_node(r, "liar")));
        assert_true(rig_has_event(r, "liar", "NotAdopted"));

        print_message("  a providerID that comes later changes nothing about its claim\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "worker", "{'spec':{'providerID':'rack:7'}}");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_non_null(named_claim(r));
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 1);
        assert_null(rig_condition(named_claim(r), CLAIM_NODE_ABSENT));

        rig_delete_node(r, "worker");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_null(rig_node(r, "worker"));
        assert_null(named_claim(r));
        assert_int_equal(m->n_terminated, 1);
        assert_non_null(rig_node(r, "liar"));
}

/* Its providerID names the machine of another Node: that one is ended for it neither with a claim nor without. */
TEST_CASE(test_by_the_name_of_another) {
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                ToyMachine *m;

                print_message("  the liar is deleted, %s\n", i == 0 ? "and the other is in service" : "and the other's Node is away");
                begin_exec(r);
                m = hashmap_get(r->toy.machines, "exec://worker");
                fake_add_node(r->cluster, "liar", NULL, NULL, POOL);
                fake_merge(r->cluster, FAKE_NODES, NULL, "liar",
                           "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']},'spec':{'providerID':'exec://worker'}}");
                rig_run(r, USEC_PER_SEC);
                if (i == 1)
                        fake_remove(r->cluster, FAKE_NODES, NULL, "worker");
                rig_delete_node(r, "liar");
                rig_run(r, 5 * USEC_PER_MINUTE);
                assert_int_equal(m->n_terminated, 0);
                assert_non_null(named_claim(r));
                assert_null(fj_string(named_claim(r), "metadata", "deletionTimestamp", NULL));
                assert_true(rig_has_finalizer(rig_node(r, "liar")));
                assert_string_equal(rig_condition_reason(rig_node(r, "liar"), CONDITION_TERMINATION_BLOCKED),
                                    "MachineOfAnother");
                assert_true(rig_event_says(r, "liar", "TerminationBlocked", "exec://worker names the machine of another Node"));
                assert_int_equal(rig_condition(named_claim(r), CLAIM_NODE_ABSENT) != NULL, i == 1);
        }
}

/* Its claim is deleted, its Node is away: nobody else goes for it. */
TEST_CASE(test_cascade_by_name) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const cJSON *claim;

        begin_exec(r);
        fake_add_node(r->cluster, "liar", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "liar", "{'spec':{'providerID':'exec://worker'}}");
        fake_remove(r->cluster, FAKE_NODES, NULL, "worker");
        claim = named_claim(r);
        fake_delete(r->cluster, FAKE_NODECLAIMS, NULL, fj_string(claim, "metadata", "name", NULL), -1);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "liar"));
        assert_null(fj_string(rig_node(r, "liar"), "metadata", "deletionTimestamp", NULL));
        assert_null(named_claim(r)); /* as an orphan's: its machine was ended */
}

/* A cloud controller manager has still to come by. */
TEST_CASE(test_uninitialized) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin_exec(r);
        fake_add_node(r->cluster, "late", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "late",
                   "{'spec':{'taints':[{'key':'" TAINT_UNINITIALIZED "','value':'true','effect':'NoSchedule'}]}}");
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 1);
        fake_merge(r->cluster, FAKE_NODES, NULL, "late", "{'spec':{'providerID':'rack:8','taints':null}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 2);
        assert_true(rig_has_finalizer(rig_node(r, "late")));
}

/* Its Node is torn off, and its claim deleted: the machine of that name is ended. A pool that is deleted lets go. */
TEST_CASE(test_by_name_without_node) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new(), *q = coordinator_rig_new();
        _cleanup_free_ char *claim = NULL;

        begin_exec(r);
        claim = MUST(strdup(fj_string(named_claim(r), "metadata", "name", NULL)));
        fake_remove(r->cluster, FAKE_NODES, NULL, "worker");
        assert_true(fake_delete(r->cluster, FAKE_NODECLAIMS, NULL, claim, -1));
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_null(named_claim(r));
        assert_int_equal(((ToyMachine *) hashmap_get(r->toy.machines, "exec://worker"))->n_terminated, 1);

        begin_exec(q);
        fake_delete(q->cluster, FAKE_NODEPOOLS, NULL, POOL, -1);
        rig_run(q, 10 * USEC_PER_SEC);
        assert_null(named_claim(q));
        assert_false(rig_has_finalizer(rig_node(q, "worker")));
        assert_int_equal(((ToyMachine *) hashmap_get(q->toy.machines, "exec://worker"))->n_terminated, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_facts),
                cmocka_unit_test(test_kept),
                cmocka_unit_test(test_older_claim),
                cmocka_unit_test(test_silent_cloud),
                cmocka_unit_test(test_unproved),
                cmocka_unit_test(test_several_unproved),
                cmocka_unit_test(test_believed),
                cmocka_unit_test(test_liar),
                cmocka_unit_test(test_proved_again),
                cmocka_unit_test(test_ended_by_somebody),
                cmocka_unit_test(test_missing_and_ready),
                cmocka_unit_test(test_both_deleted),
                cmocka_unit_test(test_deadline_of_one),
                cmocka_unit_test(test_shared_machine_is_gone),
                cmocka_unit_test(test_one_of_them_is_wrong),
                cmocka_unit_test(test_two_providers),
                cmocka_unit_test(test_one_of_two_is_broken),
                cmocka_unit_test(test_pool_names_one_of_two),
                cmocka_unit_test(test_pool_names_none_of_two),
                cmocka_unit_test(test_by_name),
                cmocka_unit_test(test_by_the_name_of_another),
                cmocka_unit_test(test_cascade_by_name),
                cmocka_unit_test(test_uninitialized),
                cmocka_unit_test(test_by_name_without_node),
        };
        return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
