/* SPDX-License-Identifier: Apache-2.0 */
#include "adoption.h"
#include "claim-name.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "string-util.h"
#include "texts.h"

/* -- pure ----------------------------------------------------------------------------------------------- */

TEST_CASE(test_claim_names) {
        _cleanup_free_ char *name = claim_name("pool", "aws:///z/i-1", "uid");
        _cleanup_free_ char *again = claim_name("pool", "aws:///z/i-1", "uid");
        _cleanup_free_ char *pool = claim_name("pool2", "aws:///z/i-1", "uid");
        _cleanup_free_ char *machine = claim_name("pool", "aws:///z/i-2", "uid");
        _cleanup_free_ char *node = claim_name("pool", "aws:///z/i-1", "uie");
        _cleanup_free_ char *border = claim_name("poolaws", ":///z/i-1", "uid");

        assert_int_equal(strlen(name), strlen("nc-") + 16);
        assert_true(dns1123_subdomain_is_valid(name));
        assert_string_equal(name, again);
        assert_string_not_equal(name, pool);
        assert_string_not_equal(name, machine);
        assert_string_not_equal(name, node);
        assert_string_not_equal(name, border);
}

TEST_CASE(test_claim_body) {
        static const struct {
                const char *what;
                usec_t tgp_usec, expire_usec;
                const char *tgp, *expire; /* NULL: left out */
        } rows[] = {
                { "nothing is set", USEC_INFINITY, USEC_INFINITY, NULL, NULL },
                { "force at once", 0, USEC_INFINITY, "\"terminationGracePeriod\":\"0s\"", NULL },
                { "seconds", 90 * USEC_PER_SEC, USEC_INFINITY, "\"terminationGracePeriod\":\"90s\"", NULL },
                { "minutes", 30 * USEC_PER_MINUTE, USEC_INFINITY, "\"terminationGracePeriod\":\"30m\"",
                  NULL },
                { "hours", USEC_PER_DAY, 720 * USEC_PER_HOUR, "\"terminationGracePeriod\":\"24h\"",
                  "\"expireAfter\":\"720h\"" },
                { "less than the CRD can say is rounded up", 1500 * USEC_PER_MSEC, USEC_INFINITY,
                  "\"terminationGracePeriod\":\"2s\"", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNodePool pool = { .object.meta.name = (char *) "pool",
                                      .termination_grace_usec = rows[i].tgp_usec,
                                      .disruption.expire_after_usec = rows[i].expire_usec };
                KubeNode n = { .object.meta = { .name = (char *) "a", .uid = (char *) "u" },
                               .provider_id = (char *) "aws:///z/i-1" };
                _cleanup_free_ char *body = adoption_claim_body(&pool, &n);

                print_message("  %s\n", rows[i].what);
                assert_non_null(strstr(body, "\"finalizers\":[\"" FINALIZER_TERMINATION "\"]"));
                assert_non_null(
                        strstr(body, "\"spec\":{\"nodePool\":\"pool\",\"providerID\":\"aws:///z/i-1\""));
                assert_int_equal(strstr(body, "terminationGracePeriod") != NULL, rows[i].tgp != NULL);
                assert_true(!rows[i].tgp || strstr(body, rows[i].tgp));
                assert_int_equal(strstr(body, "expireAfter") != NULL, rows[i].expire != NULL);
                assert_true(!rows[i].expire || strstr(body, rows[i].expire));
        }
}

/* -- adoption ------------------------------------------------------------------------------------------- */

TEST_CASE(test_adopts) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *bare = rig_instance("bare"), *nobodys = rig_instance("nobodys");
        uint64_t writes;
        const cJSON *claim;

        fake_add_node(r->cluster, "nobodys", NULL, nobodys, NULL);
        fake_add_node(r->cluster, "bare", NULL, NULL, POOL);
        rig_begin(r, 3, "30m");

        claim = rig_claim(r, "n0");
        assert_string_equal(fj_string(claim, "spec", "nodePool", NULL), POOL);
        assert_string_equal(fj_string(claim, "spec", "terminationGracePeriod", NULL), "30m");
        assert_string_equal(fj_string(claim, "status", "nodeName", NULL), "n0");
        assert_string_equal(fj_string(claim, "status", "nodeUID", NULL),
                            fj_string(rig_node(r, "n0"), "metadata", "uid", NULL));
        assert_string_equal(rig_condition(claim, CLAIM_LAUNCHED), "True");
        assert_string_equal(rig_condition(claim, CLAIM_REGISTERED), "True");
        assert_string_equal(rig_condition(claim, CLAIM_INITIALIZED), "True");
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 3);
        assert_false(rig_has_finalizer(rig_node(r, "nobodys")));
        assert_false(rig_has_finalizer(rig_node(r, "bare")));
        assert_int_equal(
                fj_int(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), -1, "status", "nodes", NULL), 3);
        assert_true(rig_has_finalizer(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL)));

        print_message("  each write once, and then quiet\n");
        assert_int_equal(fake_api_count(r->api, FAKE_CREATE, FAKE_NODECLAIMS, NULL), 3);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL), 3);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status"), 3);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODEPOOLS, NULL), 1);
        assert_in_range(fake_api_count(r->api, FAKE_PATCH, FAKE_NODEPOOLS, "status"), 1, 3);
        rig_run(r, 3 * USEC_PER_MINUTE); /* that a Node has no providerID is said after a while */
        fake_api_log_reset(r->api);
        rig_run(r, 10 * USEC_PER_MINUTE);
        writes = fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL) +
                 fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, NULL) +
                 fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status") +
                 fake_api_count(r->api, FAKE_PATCH, FAKE_NODEPOOLS, "status") +
                 fake_api_count(r->api, FAKE_CREATE, FAKE_EVENTS, NULL);
        assert_int_equal(writes, 0);

        print_message("  a machine that registers late\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "bare", "{'spec':{'providerID':'aws:///us-east-1a/%s'}}",
                   bare);
        rig_run(r, USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "bare"));
        print_message("  a person labels a node\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "nobodys",
                   "{'metadata':{'labels':{'vesper.sh/pool':'" POOL "'}}}");
        rig_run(r, USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "nobodys"));
}

TEST_CASE(test_not_ready_yet) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_add_node(r, "late");
        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_NODE_STATUS, false);
        fake_merge(r->cluster, FAKE_NODES, NULL, "late",
                   "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}");
        rig_run(r, USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "late"));
        assert_string_equal(rig_condition(rig_claim(r, "late"), CLAIM_INITIALIZED), "False");
        fake_merge(r->cluster, FAKE_NODES, NULL, "late",
                   "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}");
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(rig_condition(rig_claim(r, "late"), CLAIM_INITIALIZED), "True");

        print_message("  initialized once is initialized\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "late",
                   "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}");
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(rig_condition(rig_claim(r, "late"), CLAIM_INITIALIZED), "True");
}

TEST_CASE(test_puts_back) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *claim = NULL;

        rig_begin(r, 1, NULL);
        claim = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));

        print_message("  a finalizer that got lost, others being left alone\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'finalizers':['example.com/mine']}}");
        rig_run(r, USEC_PER_SEC);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_true(
                fj_array_has(fj_get(rig_node(r, "n0"), "metadata", "finalizers", NULL), "example.com/mine"));
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{'metadata':{'finalizers':null}}");
        rig_run(r, USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));

        print_message("  a claim that was forced away\n");
        fake_remove(r->cluster, FAKE_NODECLAIMS, NULL, claim);
        rig_run(r, USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        assert_string_equal(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL), claim);
}

TEST_CASE(test_wrong_provider) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_node(r->cluster, "gce", NULL, NULL, POOL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "gce", "{'spec':{'providerID':'gce://p/z/gce'}}");
        fake_add_nodepool(r->cluster, "metal", NULL, "exec");
        fake_add_node(r->cluster, "metal-1", NULL, "i-9", "metal");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 1);
        assert_true(rig_event_says(r, "gce", "NotAdopted", "gce://p/z/gce"));
        assert_true(rig_event_says(r, "metal-1", "NotAdopted", "wants provider 'exec'"));
}

/* A provider that proves no identity adopts the nodes of a pool that names no provider, if it is the only
 * provider. */
TEST_CASE(test_unnamed_provider) {
        for (unsigned several = 0; several < 2; several++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", several ? "EC2 and exec" : "exec alone");
                r->toy.is_exec = true;
                r->use_ec2 = several;
                fake_add_nodepool(r->cluster, POOL, NULL, NULL);
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'provider':null}}");
                fake_add_node(r->cluster, "metal", NULL, NULL, POOL);
                fake_merge(r->cluster, FAKE_NODES, NULL, "metal", "{'spec':{'providerID':'kind://a/metal'}}");
                rig_start(r, 0);
                rig_run(r, 5 * USEC_PER_SEC);
                assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), !several);
                assert_int_equal(rig_has_finalizer(rig_node(r, "metal")), !several);
                assert_int_equal(rig_event_says(r, "metal", "NotAdopted", "spec.provider.name: exec on NodePool " POOL), several);
        }
}

/* A kubelet writes what it likes: no claim could keep that, and no status say it. */
TEST_CASE(test_long_provider_id) {
        static const char *const schemes[] = { "gce://p/z/", "aws:///us-east-1a/i-" };

        for (size_t i = 0; i < ELEMENTSOF(schemes); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_strbuf_ StrBuf id = {};
                const cJSON *condition;

                print_message("  %s...\n", schemes[i]);
                strbuf_add(&id, schemes[i]);
                while (id.size < 33000)
                        strbuf_add_char(&id, 'a');
                rig_begin(r, 1, NULL);
                fake_add_node(r->cluster, "long", NULL, NULL, POOL);
                fake_merge(r->cluster, FAKE_NODES, NULL, "long", "{'spec':{'providerID':'%s'}}", id.data);
                rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 1);
                assert_true(rig_has_event(r, "long", "NotAdopted"));
                assert_string_equal(rig_condition_reason(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), POOL_NOT_ADOPTED),
                                    "ProviderIDTooLong");
                cJSON_ArrayForEach(condition, fj_get(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), "status", "conditions", NULL))
                        assert_in_range(strlen(strempty(fj_string(condition, "message", NULL))), 0, 1024);
        }
}

/* A second Node that says it is the same machine: whatever it does, the first one's claim stands. */
TEST_CASE(test_same_machine_twice) {
        static const char *const pools[] = { NULL, POOL };

        for (size_t i = 0; i < ELEMENTSOF(pools); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *instance = rig_instance("n0");

                rig_begin(r, 1, NULL);
                fake_add_node(r->cluster, "again", ZONE, instance, pools[i]);
                rig_run(r, USEC_PER_MINUTE);
                assert_true(rig_is_adopted(r, "n0"));
                assert_false(rig_has_finalizer(rig_node(r, "again")));
                assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 1);
                assert_int_equal(rig_event_says(r, "again", "NotAdopted", "n0"), pools[i] != NULL);
                fake_delete(r->cluster, FAKE_NODES, NULL, "again", -1);
                rig_run(r, USEC_PER_MINUTE);
                assert_true(rig_is_adopted(r, "n0"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        }
}

/* A Node that says it is the machine of a claim that names another Node: it lets go of nothing that is not its own. */
TEST_CASE(test_twin_without_pool) {
        static const struct {
                const char *what;
                bool away, status; /* the Node of the claim is away; the claim's status is written */
        } rows[] = {
                { "the claim was made a moment ago", false, false },
                { "its Node is away for a while", true, true },
                { "both", true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *instance = rig_instance("n0"), *name = NULL, *uid = NULL;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                name = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
                uid = strdup(fj_string(rig_claim(r, "n0"), "metadata", "uid", NULL));
                if (!rows[i].status)
                        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, name, "{'status':null}");
                if (rows[i].away)
                        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
                fake_add_node(r->cluster, "again", ZONE, instance, NULL);
                fake_merge(r->cluster, FAKE_NODES, NULL, "again",
                           "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
                rig_run(r, USEC_PER_MINUTE);
                assert_non_null(rig_claim(r, "n0"));
                assert_string_equal(fj_string(rig_claim(r, "n0"), "metadata", "uid", NULL), uid);
                assert_true(rig_has_finalizer(rig_claim(r, "n0")));
                assert_false(rig_has_finalizer(rig_node(r, "again")));

                print_message("  ... and its pool can go all the same\n");
                fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1);
                rig_run(r, USEC_PER_MINUTE);
                assert_null(rig_claim(r, "n0"));
                assert_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
                assert_true(rows[i].away || !rig_has_finalizer(rig_node(r, "n0")));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        }
}

TEST_CASE(test_terminable) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'labels':{'karpenter.sh/lifecycle-phase':'terminable'}}}");
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_true(rig_is_adopted(r, "n1"));
}

/* The agent announces the end of the machine. */
TEST_CASE(test_interrupted) {
        static const struct {
                const char *action, *phase;
                bool other_boot;
                const char *setting; /* NULL: none */
                bool gone;
        } rows[] = {
                { "terminate", "Cordoned", false, NULL, true },
                { "terminate", "Drained", false, NULL, true },
                { "terminate", "Released", false, NULL, false }, /* a person overruled it */
                { "terminate", "Cancelled", false, NULL, false },
                { "terminate", "Cordoned", true, NULL, false }, /* it has outlived that */
                { "stop", "Cordoned", false, NULL, false },
                { "hibernate", "Cordoned", false, NULL, false },
                { "poweroff", "Cordoned", false, NULL, false },
                { "reboot", "Cordoned", false, NULL, false },
                { "drain", "Cordoned", false, NULL, false },
                { "stop", "Cordoned", false, "Interruption.Delete=always", true },
                { "hibernate", "Drained", false, "Interruption.Delete=always", true },
                { "stop", "Released", false, "Interruption.Delete=always", false },
                { "reboot", "Cordoned", false, "Interruption.Delete=always", false },
                { "terminate", "Cordoned", false, "Interruption.Delete=always", true },
                { "terminate", "Cordoned", false, "Interruption.Delete=never", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s %s %s\n", rows[i].action, rows[i].phase, strempty(rows[i].setting));
                r->settings[0] = (char *) (uintptr_t) rows[i].setting;
                rig_begin(r, 2, NULL);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'status':{'nodeInfo':{'bootID':'a'}}}");
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                           "':'{\\'id\\':\\'x\\',\\'action\\':\\'%s\\',\\'phase\\':\\'%s\\',"
                           "\\'bootID\\':\\'%s\\'}'}}}",
                           rows[i].action, rows[i].phase, rows[i].other_boot ? "b" : "a");
                assert_int_equal(rig_wait_gone(r, "n0", USEC_PER_MINUTE), rows[i].gone);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, rows[i].gone);
                assert_int_equal(rig_is_adopted(r, "n0"), !rows[i].gone);
                assert_true(rig_is_adopted(r, "n1"));
        }
}

/* T is the notice's time: what the claim has of its own does not bring it nearer. */
TEST_CASE(test_interrupted_with_grace_period) {
        static const struct {
                const char *what, *tgp;
                usec_t deleted_usec; /* after the notice, which leaves two minutes; to the second */
        } rows[] = {
                { "longer than that", "5m", 0 },
                { "shorter", "45s", 75 * USEC_PER_SEC },
                { "none at all", "0s", 120 * USEC_PER_SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                char text[RFC3339_MAX];

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, rows[i].tgp);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 300, .grace_sec = 400 });
                rig_run(r, USEC_PER_SEC);
                rfc3339_format(usec_add(loop_wall(r->w.loop), 120 * USEC_PER_SEC), text);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                           "':'{\\'id\\':\\'x\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'Cordoned\\',"
                           "\\'deadline\\':\\'%s\\'}'}}}",
                           text);
                if (rows[i].deleted_usec > 0) {
                        rig_run(r, rows[i].deleted_usec - USEC_PER_SEC);
                        assert_true(rig_is_adopted(r, "n0"));
                        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                }
                rig_run(r, 3 * USEC_PER_SEC);
                assert_true(!rig_node(r, "n0") || fj_get(rig_node(r, "n0"), "metadata", "deletionTimestamp", NULL));
                rig_run(r, 120 * USEC_PER_SEC - rows[i].deleted_usec);
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        }
}

/* An unmanaged node has no claim, and is its agent's alone. */
TEST_CASE(test_interrupted_stranger) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_null(rig_claim(r, "n0"));
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'x\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'Cordoned\\'}'}}}");
        rig_run(r, USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "n0"));
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* Deleted before it was ours: nobody asked us to end its machine. */
TEST_CASE(test_deleted_before_adoption) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_kill(r, 0);
        rig_add_node(r, "early");
        fake_merge(r->cluster, FAKE_NODES, NULL, "early",
                   "{'metadata':{'finalizers':['example.com/other']}}");
        rig_delete_node(r, "early");
        rig_start(r, 0);
        rig_run(r, USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "early"));
        assert_null(rig_claim(r, "early"));
        assert_int_equal(rig_machine(r, "early")->n_terminated, 0);
}

/* -- pools that cannot ---------------------------------------------------------------------------------- */

TEST_CASE(test_two_pools) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const cJSON *pool;

        rig_begin(r, 1, NULL);
        fake_put(r->cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'gpu'},'spec':{'selector':{'matchLabels':{'gpu':'yes'}}}}"));
        rig_add_node(r, "both");
        fake_merge(r->cluster, FAKE_NODES, NULL, "both", "{'metadata':{'labels':{'gpu':'yes'}}}");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'gpu':'yes'}}}");
        rig_run(r, 5 * USEC_PER_SEC);

        print_message("  adopted by neither, with a condition on both; what one had already stays\n");
        assert_false(rig_has_finalizer(rig_node(r, "both")));
        assert_true(rig_is_adopted(r, "n0"));
        assert_string_equal(rig_condition(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), POOL_CONFLICT),
                            "True");
        assert_string_equal(rig_condition(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, "gpu"), POOL_CONFLICT),
                            "True");
        assert_true(rig_event_says(r, "both", "PoolsConflict", "gpu"));

        print_message("  the quarrel ends\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "both", "{'metadata':{'labels':{'gpu':null}}}");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'gpu':null}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "both"));
        pool = fake_get(r->cluster, FAKE_NODEPOOLS, NULL, "gpu");
        assert_string_equal(rig_condition(pool, POOL_CONFLICT), "False");
        assert_string_equal(rig_condition(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), POOL_CONFLICT),
                            "False");
}

TEST_CASE(test_invalid_pools) {
        static const struct {
                const char *what, *spec, *says;
        } rows[] = {
                { "a selector nobody can read",
                  "{'selector':{'matchExpressions':[{'key':'a','operator':'Like','values':['b']}]}}",
                  "spec.selector" },
                { "a selector of everything", "{'selector':{'matchLabels':null}}",
                  "spec.selector is empty" },
                { "a duration that is none", "{'template':{'terminationGracePeriod':'24x'}}",
                  "terminationGracePeriod" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                fake_add_nodepool(r->cluster, "other", NULL, NULL);
                fake_add_node(r->cluster, "others", NULL, "i-77", "other");
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':%s}", rows[i].spec);
                rig_run(r, 2 * USEC_PER_SEC);
                rig_add_node(r, "new");
                rig_run(r, 5 * USEC_PER_SEC);
                assert_string_equal(
                        rig_condition(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), POOL_INVALID),
                        "True");
                assert_true(rig_event_says(r, POOL, POOL_INVALID, rows[i].says));
                assert_false(rig_has_finalizer(rig_node(r, "new")));
                assert_true(rig_is_adopted(r, "n0")); /* what it has, it keeps */
                assert_true(rig_has_finalizer(rig_node(r, "others")));

                print_message("    and its nodes can still be deleted\n");
                rig_delete_node(r, "n0");
                assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        }
}

/* -- letting go ----------------------------------------------------------------------------------------- */

TEST_CASE(test_release_of_a_node) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        assert_null(rig_claim(r, "n0"));
        assert_true(rig_is_adopted(r, "n1"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "n0"));
        assert_int_equal(
                fj_int(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), -1, "status", "nodes", NULL), 1);

        print_message("  and it comes back to another pool\n");
        fake_add_nodepool(r->cluster, "second", "1h", NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'labels':{'vesper.sh/pool':'second'}}}");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1",
                   "{'metadata':{'labels':{'vesper.sh/pool':'second'}}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        assert_true(rig_is_adopted(r, "n1"));
        assert_string_equal(fj_string(rig_claim(r, "n1"), "spec", "nodePool", NULL), "second");
        assert_string_equal(fj_string(rig_claim(r, "n1"), "spec", "terminationGracePeriod", NULL), "1h");
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 2);
}

/* A kubelet adds labels to its Node until there are too many, so that the pool's is not read any more: that is no reason to let the
 * node go, with a machine that nobody would end then. */
TEST_CASE(test_too_many_labels) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_strbuf_ StrBuf labels = {};

        rig_begin(r, 2, NULL);
        for (unsigned i = 0; i < 513; i++)
                strbuf_addf(&labels, "%s'k%u':'v'", i > 0 ? "," : "", i);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{%s}}}", strbuf_str(&labels));
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_non_null(rig_claim(r, "n0"));
}

/* A person keeps a node from vesper: it is let go, not adopted again, and its pool's deletion leaves it alone. */
TEST_CASE(test_unmanaged) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':'true'}}}");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        assert_null(rig_claim(r, "n0"));
        assert_true(rig_is_adopted(r, "n1"));

        print_message("  any other value is none\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':'false'}}}");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));

        print_message("  and where its pool goes with its nodes\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':'true'}}}");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'deletionPolicy':'Delete'}}");
        (void) fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_non_null(rig_node(r, "n0"));
        assert_null(rig_node(r, "n1"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* A removal that has begun goes on. */
TEST_CASE(test_unmanaged_too_late) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        rig_delete_node(r, "n0");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/unmanaged':'true'}}}");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_null(rig_claim(r, "n0"));
}

/* Dies between any two writes of a release: never is a machine ended by it. */
TEST_CASE(test_release_interrupted) {
        for (unsigned cut = 0; cut < 12; cut++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                rig_begin(r, 1, NULL);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
                for (unsigned i = 0; i < cut; i++)
                        (void) virtual_time_step(r->w.time, USEC_INFINITY);
                rig_kill(r, 0);
                rig_start(r, 1);
                rig_run(r, USEC_PER_MINUTE);
                assert_false(rig_has_finalizer(rig_node(r, "n0")));
                assert_null(rig_claim(r, "n0"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        }
}

TEST_CASE(test_pool_deleted) {
        static const struct {
                const char *what, *policy;
                bool nodes_stay;
        } rows[] = {
                { "Release, which is the default", NULL, true },
                { "Release", "{'spec':{'deletionPolicy':'Release'}}", true },
                { "Delete", "{'spec':{'deletionPolicy':'Delete'}}", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 3, NULL);
                if (rows[i].policy)
                        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "%s", rows[i].policy);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n1", .stop_sec = 5 });
                rig_run(r, USEC_PER_SEC);
                fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1);
                assert_non_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
                rig_run(r, USEC_PER_MINUTE);
                assert_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
                assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 0);
                assert_int_equal(fake_count(r->cluster, FAKE_NODES), rows[i].nodes_stay ? 3 : 0);
                assert_int_equal(rig_machine(r, "n1")->n_terminated, rows[i].nodes_stay ? 0 : 1);
                assert_int_equal(rig_evictions(r, 0), rows[i].nodes_stay ? 0 : 1);
                if (rows[i].nodes_stay)
                        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        }
}

/* A node that is being removed when its pool is deleted is removed; its pool waits for it. */
TEST_CASE(test_pool_deleted_during_removal) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 20 });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_SEC);
        fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_non_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
        assert_false(rig_has_finalizer(rig_node(r, "n1")));
        assert_true(rig_wait_gone(r, "n0", 30 * USEC_PER_SEC));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
        assert_int_equal(rig_machine(r, "n1")->n_terminated, 0);
}

/* How many writes of ours the API server holds at once, all of which take a while. */
typedef struct Crowd {
        Loop *loop;
        usec_t window_end_usec;
        unsigned in_window, most;
} Crowd;

#define CROWD_USEC (100 * MSEC)

static void on_crowd(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        Crowd *c = userdata;
        usec_t now = loop_now(c->loop);

        if ((q->verb != FAKE_CREATE && q->verb != FAKE_PATCH) || !q->resource ||
            (q->resource->id != FAKE_NODES && q->resource->id != FAKE_NODECLAIMS))
                return;
        ret_fault->delay_usec = CROWD_USEC;
        if (now >= c->window_end_usec) {
                c->window_end_usec = now + CROWD_USEC;
                c->in_window = 0;
        }
        c->most = MAX(c->most, ++c->in_window);
}

TEST_CASE(test_many_at_once) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        Crowd crowd = { .loop = r->w.loop };
        unsigned adopted = 0;

        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        for (unsigned i = 0; i < 300; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_add_node(r, name);
        }
        fake_api_set_fault(r->api, on_crowd, &crowd);
        rig_start(r, 0);
        rig_run(r, USEC_PER_MINUTE);
        for (unsigned i = 0; i < 300; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                adopted += rig_is_adopted(r, name);
        }
        print_message("  at most %u writes at once\n", crowd.most);
        assert_int_equal(adopted, 300);
        assert_in_range(crowd.most, 16, 32);
        assert_int_equal(fake_api_count(r->api, FAKE_CREATE, FAKE_NODECLAIMS, NULL), 300);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL), 300);
        fake_api_set_fault(r->api, NULL, NULL);
}

static void on_invalid(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        if (q->verb != FAKE_PATCH || !q->resource ||
            (q->resource->id != FAKE_NODES && q->resource->id != FAKE_NODECLAIMS))
                return;
        ret_fault->status = 422;
        ret_fault->message = "spec.nonsense: Invalid value";
}

static unsigned n_said(CoordinatorRig *r, const char *part) {
        return text_count(strbuf_str(&rig_leader(r)->said), part);
}

/* A write that the API server will never take is told to a person, who alone can do something about it: which object, what was
 * refused and why; and not each time. */
TEST_CASE(test_refused_as_invalid) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        for (unsigned i = 0; i < 30; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_add_node(r, name);
        }
        fake_api_set_fault(r->api, on_invalid, NULL);
        rig_start(r, 0);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(n_said(r, "Failed to put the finalizer on Node n0, which the API server refuses as invalid, retrying: ") == 1);
        assert_true(n_said(r, "spec.nonsense: Invalid value") > 0);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_range(n_said(r, "refuses as invalid"), 20, 10 + 6 * 6);

        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, 2 * USEC_PER_MINUTE);
        for (unsigned i = 0; i < 30; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                assert_true(rig_is_adopted(r, name));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claim_names),
                cmocka_unit_test(test_claim_body),
                cmocka_unit_test(test_adopts),
                cmocka_unit_test(test_not_ready_yet),
                cmocka_unit_test(test_puts_back),
                cmocka_unit_test(test_wrong_provider),
                cmocka_unit_test(test_unnamed_provider),
                cmocka_unit_test(test_long_provider_id),
                cmocka_unit_test(test_same_machine_twice),
                cmocka_unit_test(test_twin_without_pool),
                cmocka_unit_test(test_terminable),
                cmocka_unit_test(test_interrupted),
                cmocka_unit_test(test_interrupted_with_grace_period),
                cmocka_unit_test(test_interrupted_stranger),
                cmocka_unit_test(test_deleted_before_adoption),
                cmocka_unit_test(test_two_pools),
                cmocka_unit_test(test_invalid_pools),
                cmocka_unit_test(test_release_of_a_node),
                cmocka_unit_test(test_too_many_labels),
                cmocka_unit_test(test_unmanaged),
                cmocka_unit_test(test_unmanaged_too_late),
                cmocka_unit_test(test_release_interrupted),
                cmocka_unit_test(test_pool_deleted),
                cmocka_unit_test(test_pool_deleted_during_removal),
                cmocka_unit_test(test_many_at_once),
                cmocka_unit_test(test_refused_as_invalid),
        };
        return cmocka_run_group_tests_name("adoption", tests, NULL, NULL);
}
