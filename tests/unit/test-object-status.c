/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

/* What the coordinator says in the status of NodeClaims and NodePools, beside what others say there. */

static const char *condition_message(const cJSON *object, const char *type) {
        return strempty(fj_string(fj_find(fj_get(object, "status", "conditions", NULL), "type", type),
                                  "message", NULL));
}

static void assert_contains(const char *text, const char *part) {
        if (!strstr(text, part))
                fail_msg("'%s' is not in '%s'", part, text);
}

/* -- claims --------------------------------------------------------------------------------------------- */

static void set_condition_of_another(CoordinatorRig *r, const char *claim, const char *message) {
        _cleanup_cjson_ cJSON *list = fj_copy(fj_get(fake_get(r->cluster, FAKE_NODECLAIMS, NULL, claim),
                                                     "status", "conditions", NULL));
        _cleanup_free_ char *text = NULL;

        cJSON_Delete(cJSON_DetachItemViaPointer(list, (cJSON *) fj_find(list, "type", "Audited")));
        cJSON_AddItemToArray(list, fj_parse("{'type':'Audited','status':'True','reason':'Theirs','message':"
                                            "'%s','lastTransitionTime':'2026-01-01T00:00:00Z'}",
                                            message));
        text = fj_print(list);
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{\"status\":{\"conditions\":%s}}", text);
}

/* Somebody else keeps a condition on the claim, and changes it at every stage of a removal: a patch of the
 * list, which replaces it as a whole, is only taken on the list that it was made of. */
TEST_CASE(test_conditions_of_others_stay) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;

        rig_begin(r, 1, NULL);
        name = MUST(strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL)));
        fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = "n0", .stop_sec = 20 });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (unsigned i = 0; i < 25 && rig_claim(r, "n0"); i++) {
                _cleanup_free_ char *said = MUST(strf("round %u", i));

                set_condition_of_another(r, name, said);
                rig_run(r, USEC_PER_SEC);
                if (!rig_claim(r, "n0"))
                        break;
                assert_string_equal(condition_message(rig_claim(r, "n0"), "Audited"), said);
                assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_REGISTERED), "True");
        }
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
}

/* A claim whose terminationGracePeriod cannot be read says so. It is neither unset without a word nor zero:
 * its node is drained as ever, and no deadline ends the wait. */
TEST_CASE(test_claim_that_cannot_be_read) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;

        rig_begin(r, 1, "10m");
        name = MUST(strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL)));
        assert_null(rig_condition(rig_claim(r, "n0"), CLAIM_INVALID));
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, name, "{'spec':{'terminationGracePeriod':'%s'}}",
                   "99999999999999999h");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_INVALID), "True");
        assert_contains(condition_message(rig_claim(r, "n0"), CLAIM_INVALID), "spec.terminationGracePeriod");
        assert_true(rig_event_says(r, name, CLAIM_INVALID, "spec.terminationGracePeriod"));
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_INITIALIZED), "True");

        print_message("  it can be read again\n");
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, name, "{'spec':{'terminationGracePeriod':'10m'}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_INVALID), "False");

        print_message("  its node is deleted\n");
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, name, "{'spec':{'terminationGracePeriod':0}}");
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .app = "web" });
        fake_add_pod(r->cluster, &(FakePod){ .name = "job", .node = "n0" });
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_HOUR);
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "job"));
        assert_non_null(fake_get(r->cluster, FAKE_PODS, "default", "web"));
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_INVALID), "True");
        assert_true(rig_event_says(r, "n0", "DrainBlocked", "Its NodeClaim is invalid"));
        assert_false(rig_event_says(r, "n0", "DrainBlocked", "No terminationGracePeriod is set"));

        print_message("  and T is known once it is mended\n");
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, name, "{'spec':{'terminationGracePeriod':'61m'}}");
        assert_true(rig_wait_gone(r, "n0", 3 * USEC_PER_MINUTE));
}

/* -- PodDisruptionBudgets ------------------------------------------------------------------------------- */

static void on_eviction(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        unsigned *n = userdata;

        if (!streq_ptr(request->subresource, "eviction"))
                return;
        (*n)++;
        ret_fault->status = 429;
        ret_fault->retry_after_sec = 1;
}

/* A budget that cannot be read holds nothing back here and lets nothing go: the API server, who reads it
 * himself, is asked for each eviction. */
TEST_CASE(test_pdb_that_cannot_be_read) {
        for (unsigned new_leader = 0; new_leader < 2; new_leader++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                unsigned n = 0;

                print_message("  %s\n", new_leader ? "as a new leader finds it" : "as it becomes");
                rig_begin(r, 1, NULL);
                fake_add_pod(r->cluster, &(FakePod){ .name = "w", .node = "n0", .app = "web" });
                fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(rig_evictions(r, 201), 0);
                if (new_leader)
                        rig_kill(r, 0);
                fake_api_set_fault(r->api, on_eviction, &n);
                fake_merge(r->cluster, FAKE_PDBS, "default", "web",
                           "{'metadata':{'generation':2},'spec':{'selector':{'matchLabels':null,"
                           "'matchExpressions':[{'key':'app','operator':'Near','values':['web']}]}}}");
                if (new_leader) {
                        rig_start(r, 0);
                        rig_run(r, 30 * USEC_PER_SEC);
                }
                rig_run(r, 20 * USEC_PER_SEC);
                assert_true(rig_event_says(r, "web", "Invalid", "spec.selector"));
                assert_in_range(n, 1, 60);
                assert_non_null(fake_get(r->cluster, FAKE_PODS, "default", "w"));
                fake_api_set_fault(r->api, NULL, NULL);
                assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
                assert_int_equal(rig_evictions(r, 201), 1);
        }
}

/* -- pools ---------------------------------------------------------------------------------------------- */

static const cJSON *the_pool(CoordinatorRig *r) {
        return fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL);
}

static unsigned count_events(CoordinatorRig *r, const char *name, const char *reason) {
        const cJSON *e;
        unsigned n = 0;

        FAKE_FOREACH (e, r->cluster, FAKE_EVENTS, NULL)
                n += streq_ptr(fj_string(e, "involvedObject", "name", NULL), name) &&
                     streq_ptr(fj_string(e, "reason", NULL), reason);
        return n;
}

/* What is wrong with the Node "odd", which the pool selects, and what is said about it. */
TEST_CASE(test_nodes_that_cannot_be_adopted) {
        static const struct {
                const char *what, *change; /* of the Node; NULL: none */
                const char *provider;      /* that the pool wants */
                const char *reason, *message;
                bool at_once;
        } rows[] = {
                { "no providerID", NULL, NULL, "NoProviderID", "Node odd has no spec.providerID", false },
                { "another's form", "{'spec':{'providerID':'gce://p/z/i'}}", NULL, "ForeignMachine",
                  "provider 'ec2' cannot end a machine with providerID 'gce://p/z/i'", true },
                { "another provider", "{'spec':{'providerID':'aws:///us-east-1a/i-1'}}", "gce",
                  "OtherProvider", "wants provider 'gce'", true },
                { "the machine of n0", "{'spec':{'providerID':'@n0'}}", NULL, "SharedMachine",
                  "is that of n0, too", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *change = NULL;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                if (rows[i].provider)
                        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                                   "{'spec':{'provider':{'name':'%s'}}}", rows[i].provider);
                if (rows[i].change && strstr(rows[i].change, "@n0"))
                        change = MUST(
                                strf("{'spec':{'providerID':'%s'}}", rig_machine(r, "n0")->provider_id));
                else if (rows[i].change)
                        change = MUST(strdup(rows[i].change));
                fake_add_node(r->cluster, "odd", NULL, NULL, POOL);
                if (change)
                        fake_merge(r->cluster, FAKE_NODES, NULL, "odd", "%s", change);
                rig_run(r, 100 * USEC_PER_SEC);
                if (!rows[i].at_once) {
                        print_message("    it may still come\n");
                        assert_null(rig_condition(the_pool(r), POOL_NOT_ADOPTED));
                        assert_false(rig_has_event(r, "odd", "NotAdopted"));
                        rig_run(r, 25 * USEC_PER_SEC);
                }
                assert_null(rig_claim(r, "odd"));
                assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "True");
                assert_string_equal(rig_condition_reason(the_pool(r), POOL_NOT_ADOPTED), rows[i].reason);
                assert_contains(condition_message(the_pool(r), POOL_NOT_ADOPTED), rows[i].message);
                assert_true(rig_event_says(r, "odd", "NotAdopted", rows[i].message));
                assert_true(rig_event_says(r, POOL, POOL_NOT_ADOPTED, rows[i].message));

                print_message("    more of them are counted, and told no more\n");
                fake_add_node(r->cluster, "odd2", NULL, NULL, POOL);
                rig_run(r, 130 * USEC_PER_SEC);
                assert_true(endswith(condition_message(the_pool(r), POOL_NOT_ADOPTED), "; and 1 more node"));
                fake_add_node(r->cluster, "odd3", NULL, NULL, POOL);
                rig_run(r, 130 * USEC_PER_SEC);
                assert_contains(condition_message(the_pool(r), POOL_NOT_ADOPTED), "; and 2 more nodes");
                rig_run(r, USEC_PER_HOUR);
                assert_int_equal(count_events(r, POOL, POOL_NOT_ADOPTED), 1);
                assert_int_equal(count_events(r, "odd", "NotAdopted"), 1);

                print_message("    they leave\n");
                fake_remove(r->cluster, FAKE_NODES, NULL, "odd");
                fake_remove(r->cluster, FAKE_NODES, NULL, "odd2");
                rig_run(r, 2 * USEC_PER_SEC);
                assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "True");
                assert_contains(condition_message(the_pool(r), POOL_NOT_ADOPTED), "odd3");
                fake_remove(r->cluster, FAKE_NODES, NULL, "odd3");
                rig_run(r, 2 * USEC_PER_SEC);
                assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "False");
        }
}

/* What a Node could not be adopted for is put right. */
TEST_CASE(test_provider_id_comes_late) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_node(r->cluster, "n1", NULL, NULL, POOL);
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "True");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n1");
        rig_add_node(r, "n1");
        rig_run(r, 3 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n1"));
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "False");
        assert_string_equal(rig_condition_reason(the_pool(r), POOL_NOT_ADOPTED), "Resolved");

        print_message("  on the same Node\n");
        fake_add_node(r->cluster, "n2", NULL, NULL, POOL);
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "True");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n2", "{'spec':{'providerID':'aws:///us-east-1a/i-2'}}");
        rig_run(r, 3 * USEC_PER_SEC);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "False");

        print_message("  a pool selects it no more\n");
        fake_add_node(r->cluster, "n3", NULL, NULL, POOL);
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "True");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n3", "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
        rig_run(r, 3 * USEC_PER_SEC);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ADOPTED), "False");
}

TEST_CASE(test_fields_that_do_nothing) {
        static const char *const read_by_plan[] = {
                "spec.disruption.emptyAfter (", "spec.disruption.expireAfter (", "spec.disruption.expireHardAfter (",
                "spec.disruption.drift (", "spec.disruption.consolidation (", "spec.disruption.nakedPods (",
                "spec.disruption.maxConcurrent (", "spec.disruption.budgets (", "spec.disruption.windows (",
                "spec.offerings (", "spec.limits (", "spec.weight (", "spec.template but its terminationGracePeriod (",
        };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, "30m");
        print_message("  a pool that sets none of them\n");
        assert_null(rig_condition(the_pool(r), POOL_NOT_ACTED_ON));
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'generation':2},'spec':{'disruption':{'expireAfter':'Never'}}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_null(rig_condition(the_pool(r), POOL_NOT_ACTED_ON));

        print_message("  each is named, in one Event\n");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'generation':3},'spec':{'disruption':{'expireAfter':'720h'},'provider':{'"
                   "group':'g'}}}");
        rig_run(r, USEC_PER_HOUR);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ACTED_ON), "True");
        assert_contains(condition_message(the_pool(r), POOL_NOT_ACTED_ON), "spec.disruption.expireAfter (");
        assert_contains(condition_message(the_pool(r), POOL_NOT_ACTED_ON), ", spec.provider.group (");
        assert_int_equal(count_events(r, POOL, POOL_NOT_ACTED_ON), 1);

        print_message("  what vesperctl plan alone reads is named, too\n");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'generation':31},'spec':{'weight':1,'disruption':{'emptyAfter':'5m','expireHardAfter':'800h',"
                   "'drift':'Auto','consolidation':{'policy':'WhenEmpty'},'nakedPods':'Block','maxConcurrent':1,"
                   "'budgets':[{'nodes':1}],'windows':[{'schedule':'@daily','duration':'1h'}]},"
                   "'template':{'labels':{'a':'b'}},'offerings':[{'instanceType':'m','price':1}],'limits':{'cpu':8}}}");
        rig_run(r, 2 * USEC_PER_SEC);
        for (size_t i = 0; i < ELEMENTSOF(read_by_plan); i++)
                assert_contains(condition_message(the_pool(r), POOL_NOT_ACTED_ON), read_by_plan[i]);
        assert_int_equal(count_events(r, POOL, POOL_NOT_ACTED_ON), 2);
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'generation':32},'spec':{'weight':null,'template':{'labels':null},'offerings':null,'limits':null,"
                   "'disruption':{'emptyAfter':null,'expireHardAfter':null,'drift':null,'consolidation':null,'nakedPods':null,"
                   "'maxConcurrent':null,'budgets':null,'windows':null}}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_null(strstr(condition_message(the_pool(r), POOL_NOT_ACTED_ON), "emptyAfter"));
        assert_int_equal(count_events(r, POOL, POOL_NOT_ACTED_ON), 3);

        print_message("  one of them goes: that is news; the other: it is over\n");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'generation':34},'spec':{'provider':null}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_null(strstr(condition_message(the_pool(r), POOL_NOT_ACTED_ON), "group"));
        assert_int_equal(count_events(r, POOL, POOL_NOT_ACTED_ON), 4);
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'generation':35},'spec':{'disruption':null}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(rig_condition(the_pool(r), POOL_NOT_ACTED_ON), "False");
        assert_int_equal(count_events(r, POOL, POOL_NOT_ACTED_ON), 4);
}

/* What somebody else says of a NodePool stays there, whatever its counts do; and these cost a write every 2 s at most. */
TEST_CASE(test_pool_of_others) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        uint64_t before;

        rig_begin(r, 8, NULL);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(fj_int(the_pool(r), -1, "status", "nodes", NULL), 8);
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'status':{'conditions':[{'type':'%s','status':'True','reason':'Theirs','message':'fine',"
                   "'lastTransitionTime':'2026-01-01T00:00:00Z'}]}}",
                   "Audited");
        before = fake_api_count(r->api, FAKE_PATCH, FAKE_NODEPOOLS, "status");
        for (unsigned i = 0; i < 8; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
                rig_run(r, USEC_PER_SEC);
        }
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(fj_int(the_pool(r), -1, "status", "nodes", NULL), 0);
        assert_string_equal(condition_message(the_pool(r), "Audited"), "fine");
        assert_in_range(fake_api_count(r->api, FAKE_PATCH, FAKE_NODEPOOLS, "status") - before, 2, 10);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_conditions_of_others_stay),
                cmocka_unit_test(test_claim_that_cannot_be_read),
                cmocka_unit_test(test_pdb_that_cannot_be_read),
                cmocka_unit_test(test_nodes_that_cannot_be_adopted),
                cmocka_unit_test(test_provider_id_comes_late),
                cmocka_unit_test(test_fields_that_do_nothing),
                cmocka_unit_test(test_pool_of_others),
        };
        return cmocka_run_group_tests_name("object-status", tests, NULL, NULL);
}
