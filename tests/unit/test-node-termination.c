/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

static void add_pod(CoordinatorRig *r, const char *name, const char *node, const char *app) {
        fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = node, .app = app });
}

static bool pod_is_there(CoordinatorRig *r, const char *name) {
        return fake_get(r->cluster, FAKE_PODS, "default", name);
}

static const char *phase(CoordinatorRig *r, const char *node) {
        return strempty(fj_string(rig_claim(r, node), "status", "phase", NULL));
}

static bool has_taint(const cJSON *node, const char *key) {
        return fj_find(fj_get(node, "spec", "taints", NULL), "key", key);
}

static const char *annotation(const cJSON *node, const char *key) {
        return fj_string(node, "metadata", "annotations", key, NULL);
}

static void set_ready(CoordinatorRig *r, const char *node, bool ready) {
        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_NODE_STATUS, false);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}", ready ? "True" : "Unknown");
        rig_run(r, 200 * MSEC);
}

/* -- the plain way -------------------------------------------------------------------------------------- */

TEST_CASE(test_empty_node) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_api_log_reset(r->api);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 300 * MSEC));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_int_equal(rig_machine(r, "n0")->n_described, 1); /* whose it is, before it is ended */
        assert_true(rig_is_adopted(r, "n1"));

        print_message("  one cordon, one finalizer, one list of its pods\n");
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL), 2);
        assert_int_equal(fake_api_count(r->api, FAKE_LIST, FAKE_PODS, NULL), 1);
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_NODECLAIMS, NULL), 1);
        rig_run(r, USEC_PER_MINUTE);
        assert_true(rig_has_event(r, "n0", "TerminationStarted"));
        assert_true(rig_has_event(r, "n0", "Drained"));
        assert_true(rig_has_event(r, "n0", "InstanceTerminated"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

TEST_CASE(test_marks_and_pods) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const cJSON *n;

        rig_begin(r, 2, "1h");
        for (int i = 0; i < 10; i++) {
                char name[16];

                snprintf(name, sizeof(name), "p%d", i);
                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = "n0", .stop_sec = 10 });
        }
        fake_add_pod(r->cluster,
                     &(FakePod){ .name = "ds", .node = "n0", .owner_kind = "DaemonSet", .owner = "d" });
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'spec':{'taints':[{'key':'mine','effect':'NoSchedule','value':'x'}]}}");
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);

        n = rig_node(r, "n0");
        assert_true(fj_true(n, "spec", "unschedulable", NULL));
        assert_true(has_taint(n, TAINT_DISRUPTED));
        assert_true(has_taint(n, "mine"));
        assert_non_null(annotation(n, ANNOTATION_CORDONED_BY_COORDINATOR));
        assert_non_null(annotation(n, ANNOTATION_DEADLINE));
        assert_string_equal(fj_string(n, "metadata", "labels", LABEL_EXCLUDE_FROM_LB, NULL),
                            LABEL_EXCLUDE_FROM_LB_VALUE);
        assert_string_equal(rig_condition(n, CONDITION_DRAIN_IN_PROGRESS), "True");
        assert_string_equal(phase(r, "n0"), "Draining");
        assert_int_equal(fj_int(rig_claim(r, "n0"), -1, "status", "podsLeft", NULL), 10);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_int_equal(rig_evictions(r, 201), 10);

        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 0), 10);
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
        rig_run(r, USEC_PER_MINUTE);
        assert_true(rig_has_event(r, "p0", "Evicted"));
}

/* The watch of claims lags: versions from before our DELETE come into view after its answer. */
TEST_CASE(test_claim_is_deleted_once) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *claim = NULL;

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
        claim = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
        rig_run(r, USEC_PER_SEC);
        fake_api_log_reset(r->api);
        rig_delete_node(r, "n0");
        for (int i = 0; i < 100; i++) {
                fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{'metadata':{'labels':{'i':'%d'}}}",
                           i);
                rig_run(r, MSEC / 4);
        }
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_NODECLAIMS, NULL), 1);
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_NODECLAIMS, NULL), 1);
        print_message(
                "  what it tells of a drain that lasts is one patch: the end follows too soon to be read\n");
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, "status"), 1);
}

/* What nobody could read before the object is gone is not written. */
TEST_CASE(test_quick_end_is_not_told) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0" });
        rig_run(r, 5 * USEC_PER_SEC);
        fake_api_log_reset(r->api);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 900 * MSEC));
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, "status"), 0);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status"), 0);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODES, NULL), 2);
        assert_int_equal(fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, NULL), 1);
}

/* Of 20 at once it is told when each is drained; of those beyond, together with the end of the machine,
 * unless that takes long. */
TEST_CASE(test_many_nodes_are_told_in_part) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        unsigned n_drained = 0, n_together = 0;

        rig_begin(r, 25, NULL);
        rig_machine(r, "n24")->outcome = CLOUD_DENIED;
        for (unsigned i = 0; i < 25; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
        }
        rig_run(r, USEC_PER_MINUTE);
        for (unsigned i = 0; i < 25; i++) {
                _cleanup_free_ char *name = strf("n%u", i);
                bool alone = rig_has_event(r, name, "Drained");
                bool together = rig_event_says(r, name, "InstanceTerminated",
                                               "No pod was left to wait for. The cloud");

                assert_true(alone != together);
                assert_int_equal(rig_has_event(r, name, "InstanceTerminated"), i < 24);
                n_drained += alone;
                n_together += together;
        }
        assert_true(rig_has_event(r, "n24", "Drained"));
        assert_in_range(n_drained, 20, 20 + 3);
        assert_int_equal(n_drained + n_together, 25);
}

/* What is drained and has no machine whose end could be told with it, or goes before that ends. */
TEST_CASE(test_many_nodes_without_machine_are_told) {
        for (int stripped = 0; stripped < 2; stripped++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", stripped ? "they go while the cloud says no" : "no providerID");
                rig_begin(r, stripped ? 25 : 1, NULL);
                for (unsigned i = 0; i < 25; i++) {
                        _cleanup_free_ char *name = strf(stripped ? "n%u" : "bare%u", i);

                        if (stripped)
                                rig_machine(r, name)->outcome = CLOUD_DENIED;
                        else
                                fake_add_node(r->cluster, name, ZONE, NULL, NULL);
                        if (!stripped)
                                fake_merge(r->cluster, FAKE_NODES, NULL, name,
                                           "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
                        rig_delete_node(r, name);
                }
                rig_run(r, 2 * USEC_PER_SEC);
                for (unsigned i = 0; i < 25 && stripped; i++) {
                        _cleanup_free_ char *name = strf("n%u", i);

                        fake_remove(r->cluster, FAKE_NODES, NULL, name);
                }
                rig_run(r, USEC_PER_MINUTE);
                for (unsigned i = 0; i < 25; i++) {
                        _cleanup_free_ char *name = strf(stripped ? "n%u" : "bare%u", i);

                        assert_null(rig_node(r, name));
                        assert_true(rig_event_says(r, name, "Drained", "No pod is left"));
                }
        }
}

/* Each eviction is an Event, but not when very many are: a hundred, and then one a second. */
TEST_CASE(test_many_pods_are_told_in_part) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        uint64_t told;

        rig_begin(r, 1, NULL);
        for (int i = 0; i < 200; i++) {
                char name[16];

                snprintf(name, sizeof(name), "p%d", i);
                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = "n0" });
        }
        rig_run(r, USEC_PER_SEC);
        fake_api_log_reset(r->api);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_SEC));
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(rig_evictions(r, 201), 200);
        told = fake_api_count(r->api, FAKE_CREATE, FAKE_EVENTS, NULL);
        assert_in_range(told, 100 + 3, 100 + 3 + 3);
}

/* A cordon found before ours is never claimed, and a person's label stays. */
TEST_CASE(test_person_was_first) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const cJSON *n;

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'spec':{'unschedulable':true},'metadata':{'labels':{'%s':'mine'}}}",
                   LABEL_EXCLUDE_FROM_LB);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 2 * USEC_PER_SEC);
        n = rig_node(r, "n0");
        assert_null(annotation(n, ANNOTATION_CORDONED_BY_COORDINATOR));
        assert_string_equal(fj_string(n, "metadata", "labels", LABEL_EXCLUDE_FROM_LB, NULL), "mine");
        assert_true(has_taint(n, TAINT_DISRUPTED));
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
}

TEST_CASE(test_claim_deleted_instead) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *path = NULL;

        rig_begin(r, 1, NULL);
        add_pod(r, "web", "n0", NULL);
        path = strf("/apis/vesper.sh/v1alpha1/nodeclaims/%s",
                    fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
        {
                _cleanup_answer_ FakeAnswer a = fake_ask(&r->w, HTTP_DELETE, path, NULL, NULL);

                assert_int_equal(a.status, 200);
        }
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

TEST_CASE(test_foreign_finalizer) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");

        rig_begin(r, 1, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "','a/b']}}");
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        assert_null(rig_claim(r, "n0"));
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        print_message("  what became of it is told to whoever keeps it\n");
        assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_DRAINED), "True");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");

        print_message("  the name comes back as another machine\n");
        rig_machine(r, "n0")->state = INSTANCE_PRESENT;
        fake_add_node(r->cluster, "n0", ZONE, instance, POOL);
        rig_run(r, 2 * USEC_PER_SEC);
        assert_true(rig_is_adopted(r, "n0"));
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_SEC));
}

/* The same with the claim. */
TEST_CASE(test_foreign_finalizer_of_claim) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *claim = NULL;

        rig_begin(r, 1, NULL);
        claim = MUST(strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL)));
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim,
                   "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "','a/b']}}");
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_null(rig_node(r, "n0"));
        assert_non_null(rig_claim(r, "n0"));
        assert_false(rig_has_finalizer(rig_claim(r, "n0")));
        assert_string_equal(phase(r, "n0"), "Finished");
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        fake_remove(r->cluster, FAKE_NODECLAIMS, NULL, claim);
}

/* -- PDBs ----------------------------------------------------------------------------------------------- */

TEST_CASE(test_pdb_that_allows_none) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        usec_t opened, first = 0;

        rig_begin(r, 2, NULL);
        for (int i = 0; i < 20; i++) {
                char name[16];

                snprintf(name, sizeof(name), "w%d", i);
                add_pod(r, name, "n0", "web");
        }
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "20");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_MINUTE);
        /* Asked for once each, in vain: somebody may act on the request. */
        assert_int_equal(rig_evictions(r, 0), 20);
        assert_int_equal(rig_evictions(r, 429), 20);
        assert_string_equal(phase(r, "n0"), "Draining");
        assert_int_equal(cJSON_GetArraySize(fj_get(rig_claim(r, "n0"), "status", "blockers", NULL)), 20);
        assert_true(rig_event_says(r, "n0", "DrainBlocked", "web"));
        assert_true(rig_event_says(r, "n0", "DrainBlocked", "No terminationGracePeriod is set"));

        print_message("  it gives way by one: one goes, within 50 ms, and no other is refused\n");
        fake_api_log_reset(r->api);
        opened = loop_now(r->w.loop);
        fake_merge(r->cluster, FAKE_PDBS, "default", "web", "{'spec':{'minAvailable':19}}");
        rig_run(r, USEC_PER_SEC);
        assert_int_equal(rig_evictions(r, 0), 1);
        assert_int_equal(rig_evictions(r, 201), 1);
        for (size_t i = 0; i < fake_api_log_size(r->api) && first == 0; i++)
                if (streq_ptr(fake_api_log_at(r->api, i)->subresource, "eviction"))
                        first = fake_api_log_at(r->api, i)->at_usec;
        assert_true(first - opened < 50 * MSEC);

        print_message("  it goes: all go\n");
        fake_remove(r->cluster, FAKE_PDBS, "default", "web");
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 429), 0);
        assert_int_equal(rig_evictions(r, 201), 20);
}

/* A pod that two PDBs select is asked again when one of them is edited, whichever the view takes for its own. */
TEST_CASE(test_two_pdbs) {
        static const struct {
                const char *what;
                bool edited, one, two; /* edited: else removed */
        } rows[] = { { "the first is edited", true, true, false },
                     { "the second is edited", true, false, true },
                     { "both are edited", true, true, true },
                     { "the first goes", false, true, false },
                     { "both go", false, true, true } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .app = "web" });
                fake_add_pdb(r->cluster, NULL, "one", "web", true, "0");
                fake_add_pdb(r->cluster, NULL, "two", "web", true, "0");
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(rig_evictions(r, 0), 1);
                for (unsigned k = 0; k < 2; k++) {
                        const char *name = k ? "two" : "one";

                        if (k ? !rows[i].two : !rows[i].one)
                                continue;
                        if (rows[i].edited)
                                fake_merge(r->cluster, FAKE_PDBS, "default", name,
                                           "{'spec':{'selector':{'matchLabels':{'app':'other'}}}}");
                        else
                                fake_remove(r->cluster, FAKE_PDBS, "default", name);
                }
                rig_run(r, 2 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), 1);
        }
}

TEST_CASE(test_pdb_over_several_nodes) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 4, NULL);
        fake_add_replicaset(r->cluster, NULL, "web", "web", 8);
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "7");
        rig_run(r, 5 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_delete_node(r, "n1");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_true(rig_wait_gone(r, "n1", USEC_PER_MINUTE));
        assert_int_equal(rig_evictions(r, 429), 0);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_PODS), 8);
}

/* -- what is protected ---------------------------------------------------------------------------------- */

TEST_CASE(test_protected) {
        static const struct {
                const char *what, *setting, *phase;
                unsigned evicted;
        } rows[] = {
                { "wait: all stay until it is gone", "Drain.Protected=wait", "WaitingForProtected", 0 },
                { "others: the rest goes", "Drain.Protected=others", "Draining", 1 },
                { "ignore: all go", "Drain.Protected=ignore", "", 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                r->settings[0] = (char *) rows[i].setting;
                rig_begin(r, 1, NULL);
                add_pod(r, "web", "n0", NULL);
                fake_add_pod(r->cluster,
                             &(FakePod){ .name = "job",
                                         .node = "n0",
                                         .annotations = "{'karpenter.sh/do-not-disrupt':'true'}" });
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, USEC_PER_MINUTE);
                assert_string_equal(phase(r, "n0"), rows[i].phase);
                assert_int_equal(rig_evictions(r, 201), rows[i].evicted);
                if (rows[i].evicted == 2) {
                        assert_null(rig_node(r, "n0"));
                        continue;
                }
                assert_true(fj_true(rig_node(r, "n0"), "spec", "unschedulable", NULL));
                /* While it waits it goes on serving: load balancers let go when the drain begins. */
                assert_int_equal(
                        !!fj_get(rig_node(r, "n0"), "metadata", "labels", LABEL_EXCLUDE_FROM_LB, NULL),
                        rows[i].evicted > 0);
                assert_true(rig_event_says(r, "n0", "DrainBlocked", "karpenter.sh/do-not-disrupt"));
                fake_merge(r->cluster, FAKE_PODS, "default", "job", "{'status':{'phase':'Succeeded'}}");
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
                assert_int_equal(rig_evictions(r, 201), 1);
        }
}

/* A reload, while a node waits for a protected pod. */
TEST_CASE(test_protected_reconfigured) {
        static const struct {
                const char *what, *setting;
                ProtectedPolicy policy;
                unsigned before, after; /* evicted */
        } rows[] = {
                { "wait -> others", "Drain.Protected=wait", PROTECTED_OTHERS, 0, 1 },
                { "wait -> ignore", "Drain.Protected=wait", PROTECTED_IGNORE, 0, 2 },
                { "others -> ignore", "Drain.Protected=others", PROTECTED_IGNORE, 1, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                r->settings[0] = (char *) rows[i].setting;
                rig_begin(r, 1, NULL);
                add_pod(r, "web", "n0", NULL);
                fake_add_pod(r->cluster, &(FakePod){ .name = "job",
                                                     .node = "n0",
                                                     .annotations = "{'vesper.sh/do-not-evict':'true'}" });
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(rig_evictions(r, 201), rows[i].before);
                r->config.protected_policy = rows[i].policy;
                coordinator_reconfigured(rig_leader(r)->coordinator);
                rig_run(r, 5 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), rows[i].after);
                if (rows[i].policy == PROTECTED_IGNORE)
                        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        }
}

/* -- beside the evictions of others --------------------------------------------------------------------- */

#define CROWD 20
#define EMPTY_NODES 5

/* The evictions of n0's pods go on; every other call takes 200 ms. */
static void slow_down(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->subresource && streq(r->subresource, "eviction"))
                fault->delay_usec = 25 * USEC_PER_SEC;
        else if (r->verb != FAKE_WATCH)
                fault->delay_usec = 200 * MSEC;
}

/* Whoever is drained goes, however many evictions of others are under way. */
TEST_CASE(test_goes_beside_others) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        for (unsigned i = 0; i < CROWD; i++) {
                char name[16];

                snprintf(name, sizeof(name), "p%u", i);
                add_pod(r, name, "n0", NULL);
        }
        rig_begin(r, 1 + EMPTY_NODES, NULL);
        fake_api_set_fault(r->api, slow_down, NULL);
        rig_delete_node(r, "n0");
        rig_run(r, 3 * USEC_PER_SEC);
        for (unsigned i = 1; i <= EMPTY_NODES; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                rig_delete_node(r, name);
        }
        rig_run(r, 2 * USEC_PER_SEC);
        for (unsigned i = 1; i <= EMPTY_NODES; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                assert_true(rig_wait_gone(r, name, 0));
        }
        assert_true(pod_is_there(r, "p0"));
}

/* -- terminationGracePeriod ----------------------------------------------------------------------------- */

TEST_CASE(test_grace_period) {
        static const struct {
                const char *what, *tgp;
                int64_t grace_sec;
                /* the pod is not touched before, and has been after */
                unsigned deleted_after_sec, before_sec;
                unsigned gone_after_sec;
        } rows[] = {
                { "deleted at T - g, not before", "10m", 120, 480, 470, 660 },
                { "a grace of T and more: at once", "10m", 600, 2, 0, 660 },
                { "by far more", "1m", 3600, 2, 0, 90 },
                { "TGP 0: forced at once", "0s", 30, 2, 0, 20 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, rows[i].tgp);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web",
                                                     .node = "n0",
                                                     .app = "web",
                                                     .grace_sec = rows[i].grace_sec,
                                                     .stop_sec = rows[i].grace_sec });
                fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, rows[i].before_sec * USEC_PER_SEC);
                if (rows[i].before_sec > 0)
                        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
                rig_run(r, (rows[i].deleted_after_sec - rows[i].before_sec) * USEC_PER_SEC + USEC_PER_SEC);
                assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 1);
                assert_int_equal(rig_evictions(r, 201), 0);
                assert_true(rig_wait_gone(r, "n0", rows[i].gone_after_sec * USEC_PER_SEC));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                rig_run(r, USEC_PER_MINUTE);
                assert_true(rig_has_event(r, "web", "PodDeletedAtDeadline"));
                assert_int_equal(rig_has_event(r, "web", "DeletionAtDeadline"), rows[i].before_sec > 0);
                assert_true(rig_has_event(r, "n0", "TerminationDeadline"));
        }
}

static void answer_deletes_late(const HttpRequest *request, const char *peer, HttpFault *fault, void *userdata) {
        if (request->method == HTTP_DELETE && strstr(request->url, "/pods/"))
                fault->reply_delay_usec = 300 * MSEC;
}

/* The watch tells of the deletion before it is answered, and ends the wait for protected pods, or the pod's life. */
TEST_CASE(test_deleted_before_the_answer) {
        for (unsigned stop_sec = 0; stop_sec < 10; stop_sec += 5) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  of a pod that stops in %u s\n", stop_sec);
                r->hooks.on_request = answer_deletes_late;
                rig_begin(r, 1, "20s");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web",
                                                     .node = "n0",
                                                     .grace_sec = 10,
                                                     .stop_sec = stop_sec,
                                                     .annotations = "{'vesper.sh/do-not-evict':'true'}" });
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
                rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 1);
                assert_true(rig_has_event(r, "web", "PodDeletedAtDeadline"));
        }
}

/* A person moves the end of a removal that is stuck nearer; its pod has its own grace before that. */
TEST_CASE(test_forced_deadline) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        char at[RFC3339_MAX];
        const char *claim;

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .app = "web", .grace_sec = 30, .stop_sec = 30 });
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_string_equal(phase(r, "n0"), "Draining");
        claim = fj_string(rig_claim(r, "n0"), "metadata", "name", NULL);

        print_message("  what cannot be read forces nothing, and is told\n");
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{'metadata':{'annotations':{'vesper.sh/force-deadline':'now'}}}");
        rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(phase(r, "n0"), "Draining");
        assert_string_equal(rig_condition(rig_claim(r, "n0"), "Invalid"), "True");
        assert_true(rig_event_says(r, claim, "Invalid", "force-deadline"));

        print_message("  in two minutes\n");
        rfc3339_format(loop_wall(r->w.loop) + 2 * USEC_PER_MINUTE, at);
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, claim, "{'metadata':{'annotations':{'vesper.sh/force-deadline':'%s'}}}", at);
        rig_run(r, 80 * USEC_PER_SEC);
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
        assert_string_equal(fj_string(rig_node(r, "n0"), "metadata", "annotations", "vesper.sh/deadline", NULL), at);
        rig_run(r, 12 * USEC_PER_SEC);
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 1);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_true(rig_event_says(r, "n0", "TerminationDeadline", "vesper.sh/force-deadline"));
}

/* At T the node goes, whatever is left. */
TEST_CASE(test_deadline_with_pods_left) {
        static const struct {
                const char *what, *policy, *annotations;
                bool stuck, pdb;
        } rows[] = {
                { "a pod on a kubelet that is dead", "Drain.Protected=wait", NULL, true, false },
                { "a protected pod", "Drain.Protected=wait", "{'vesper.sh/do-not-evict':'true'}", true,
                  false },
                { "a protected pod while the others go", "Drain.Protected=others",
                  "{'vesper.sh/do-not-evict':'true'}", true, false },
                { "a pod behind a PDB", "Drain.Protected=wait", NULL, true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                r->settings[0] = (char *) rows[i].policy;
                rig_begin(r, 1, "5m");
                fake_add_pod(r->cluster, &(FakePod){ .name = "left",
                                                     .node = "n0",
                                                     .app = "web",
                                                     .stuck = rows[i].stuck,
                                                     .annotations = rows[i].annotations });
                if (rows[i].annotations && rows[i].stuck)
                        fake_merge(r->cluster, FAKE_PODS, "default", "left",
                                   "{'metadata':{'annotations':{'fake.vesper.sh/stuck':'true','vesper.sh/"
                                   "do-not-evict':'true'}}}");
                if (rows[i].pdb)
                        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 299 * USEC_PER_SEC);
                assert_non_null(rig_node(r, "n0"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                rig_run(r, 2 * USEC_PER_SEC);
                assert_true(rig_event_says(r, "n0", "DeadlinePassed", "default/left"));
        }
}

/* T is of the API server's clock: the clock of the coordinator's machine makes a removal neither early nor late. */
TEST_CASE(test_deadline_by_a_wrong_clock) {
        static const int64_t off_sec[] = { 7200, 1000, -1000, -7200 };

        for (size_t i = 0; i < ELEMENTSOF(off_sec); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %lld s\n", (long long) off_sec[i]);
                rig_begin(r, 1, "5m");
                fake_add_pod(r->cluster, &(FakePod){ .name = "left", .node = "n0", .app = "web", .stuck = true });
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 2 * USEC_PER_SEC);
                loop_virtual_step_wall(r->coordinators[0]->loop, off_sec[i] * (int64_t) USEC_PER_SEC);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'seen':'again'}}}");
                rig_run(r, 4 * USEC_PER_MINUTE);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_string_equal(phase(r, "n0"), "Draining");
                assert_true(rig_wait_gone(r, "n0", 70 * USEC_PER_SEC));
        }
}

/* -- the cloud ------------------------------------------------------------------------------------------ */

TEST_CASE(test_cloud_says_no) {
        static const struct {
                const char *what;
                CloudOutcome outcome;
                const char *reason;
                unsigned min, max; /* calls in ten minutes */
        } rows[] = {
                { "termination protection: slowly", CLOUD_PROTECTED, "TerminationProtected", 2, 9 },
                { "not allowed: slowly", CLOUD_DENIED, "CloudDenied", 2, 9 },
                { "throttled: with backoff", CLOUD_RETRY, "CloudUnavailable", 10, 22 },
                { "nonsense: slowly", CLOUD_INVALID, "CloudRefused", 2, 9 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                rig_machine(r, "n0")->outcome = rows[i].outcome;
                rig_delete_node(r, "n0");
                rig_run(r, 10 * USEC_PER_MINUTE);
                assert_in_range(rig_machine(r, "n0")->n_terminated, rows[i].min, rows[i].max);
                assert_true(rig_has_finalizer(rig_node(r, "n0")));
                assert_string_equal(phase(r, "n0"), "Terminating");
                assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED), "True");
                assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                                    rows[i].reason);
                assert_non_null(strstr(fj_string(rig_claim(r, "n0"), "status", "lastCloudError", NULL),
                                       rows[i].reason));
                assert_true(rig_event_says(r, "n0", "TerminationBlocked", rows[i].reason));
                assert_true(rig_event_says(r, "n0", "Drained", "No pod is left to wait for"));

                print_message("    until it does\n");
                rig_machine(r, "n0")->outcome = CLOUD_OK;
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_MINUTE));
        }
}

/* "Accepted" is not yet "on its way": the finalizer waits for that. */
TEST_CASE(test_machine_lingers) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_machine(r, "n0")->after = INSTANCE_PRESENT;
        rig_delete_node(r, "n0");
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_true(rig_machine(r, "n0")->n_described >= 3);
        assert_in_range(rig_machine(r, "n0")->n_terminated, 2, 5); /* said again, once a minute */
        rig_machine(r, "n0")->state = INSTANCE_TERMINATING;
        assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_MINUTE));
}

TEST_CASE(test_machine_is_gone_already) {
        static const struct {
                const char *what;
                InstanceState says;
                CloudOutcome outcome;
                usec_t age_usec;
                bool ready, finished; /* without asking a pod */
                unsigned after_sec;   /* not before */
        } rows[] = {
                { "gone, and its node does not report: nothing to drain", INSTANCE_GONE, CLOUD_OK, 0, false,
                  true, 0 },
                { "gone, says the cloud, but its node reports: drained", INSTANCE_GONE, CLOUD_OK, 0, true,
                  false, 30 },
                { "not found, and its node does not report: a second look agrees", INSTANCE_NOT_FOUND, CLOUD_OK,
                  10 * USEC_PER_MINUTE, false, true, 10 },
                { "not found, but its node reports: drained", INSTANCE_NOT_FOUND, CLOUD_OK, 10 * USEC_PER_MINUTE,
                  true, false, 30 },
                { "not found, and new: drained", INSTANCE_NOT_FOUND, CLOUD_OK, 5 * USEC_PER_MINUTE, false, false, 30 },
                { "there, and its node does not report: drained", INSTANCE_PRESENT, CLOUD_OK, 0, false, false, 30 },
                { "unknown is not gone", INSTANCE_UNKNOWN, CLOUD_OK, 0, false, false, 30 },
                { "no answer is not gone", INSTANCE_GONE, CLOUD_RETRY, 0, false, false, 30 },
                { "denied is not gone", INSTANCE_GONE, CLOUD_DENIED, 0, false, false, 30 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
                rig_run(r, rows[i].age_usec);
                set_ready(r, "n0", rows[i].ready);
                rig_machine(r, "n0")->state = rows[i].says;
                r->toy.describe_outcome = rows[i].outcome;
                rig_delete_node(r, "n0");
                rig_run(r, rows[i].after_sec * USEC_PER_SEC);
                assert_non_null(rig_node(r, "n0"));
                rig_run(r, 30 * USEC_PER_SEC);
                assert_int_equal(rig_node(r, "n0") == NULL, rows[i].finished);
                assert_int_equal(rig_claim(r, "n0") == NULL, rows[i].finished);
                assert_int_equal(rig_evictions(r, 0), rows[i].finished ? 0 : 1);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        }
}

TEST_CASE(test_wrong_region) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        r->ec2_region = "eu-west-1";
        rig_begin(r, 2, "2m");
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        rig_run(r, 2 * USEC_PER_MINUTE);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_HOUR);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_true(rig_has_finalizer(rig_claim(r, "n0")));
        assert_int_equal(fake_ec2_n_alive(r->ec2), 2);
        assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED), "True");
}

TEST_CASE(test_ec2) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *first = rig_instance("n0"), *second = rig_instance("n1"),
                            *third = rig_instance("n2");

        r->use_ec2 = true;
        rig_begin(r, 3, NULL);
        add_pod(r, "web", "n0", NULL);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        assert_int_equal(fake_ec2_n_alive(r->ec2), 2);
        assert_int_equal(fake_ec2_n_terminations(r->ec2, first), 1);

        print_message("  ended by somebody else, long ago: a healthy sibling proves that we look in the "
                      "right place\n");
        rig_run(r, 10 * USEC_PER_MINUTE); /* it is not new any more */
        fake_ec2_forget(r->ec2, second);
        fake_cluster_set_kubelet(r->cluster, "n1", false);
        rig_run(r, 2 * USEC_PER_MINUTE);
        rig_delete_node(r, "n1");
        assert_true(rig_wait_gone(r, "n1", USEC_PER_MINUTE));

        print_message("  protected, until somebody lifts it\n");
        fake_ec2_protect(r->ec2, third, true);
        rig_delete_node(r, "n2");
        rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(rig_condition_reason(rig_node(r, "n2"), CONDITION_TERMINATION_BLOCKED),
                            "TerminationProtected");
        fake_ec2_protect(r->ec2, third, false);
        assert_true(rig_wait_gone(r, "n2", 10 * USEC_PER_MINUTE));
        assert_int_equal(fake_ec2_n_alive(r->ec2), 0);
}

/* Two Nodes, one machine: the one that lives needs it. */
TEST_CASE(test_same_machine_twice) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");

        rig_begin(r, 1, NULL);
        fake_add_node(r->cluster, "renamed", ZONE, instance, NULL);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_non_null(rig_node(r, "renamed"));
        assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                            "MachineShared");
        fake_remove(r->cluster, FAKE_NODES, NULL, "renamed");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* A controller that asks no scheduler: it makes its next pod on this node as soon as the last one is told to stop. */
static void put_back(CoordinatorRig *r, const char *node, unsigned *n) {
        _cleanup_free_ char *last = strf("%s-%u", node, *n), *next = NULL;
        const cJSON *pod = fake_get(r->cluster, FAKE_PODS, "default", last);

        if (pod && !fj_get(pod, "metadata", "deletionTimestamp", NULL))
                return;
        next = strf("%s-%u", node, ++*n);
        fake_add_pod(r->cluster,
                     &(FakePod){ .name = next, .node = node, .app = node, .owner_kind = "ReplicaSet", .owner = node, .grace_sec = 5, .stop_sec = 2 });
}

/* Two Nodes, one machine, and on both of them a pod that comes back for ever: neither waits for what the other one lets stay. */
TEST_CASE(test_same_machine_with_pods_that_stay) {
        static const char *const nodes[] = { "n0", "renamed" };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");
        unsigned made[ELEMENTSOF(nodes)] = { 0 };

        rig_begin(r, 1, NULL);
        fake_add_node(r->cluster, "renamed", ZONE, instance, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "renamed", "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
        for (size_t i = 0; i < ELEMENTSOF(nodes); i++) {
                put_back(r, nodes[i], made + i);
                rig_delete_node(r, nodes[i]);
        }
        for (unsigned i = 0; i < 3000 && rig_node(r, "n0"); i++) {
                rig_run(r, USEC_PER_SEC / 10);
                for (size_t k = 0; k < ELEMENTSOF(nodes) && rig_node(r, "n0"); k++)
                        put_back(r, nodes[k], made + k);
        }
        assert_true(rig_event_says(r, "n0", "PodComesBack", "n0-"));
        assert_null(rig_node(r, "n0"));
        assert_in_range(made[0], 3, 8);
}

TEST_CASE(test_rate) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        size_t left;

        rig_begin(r, 205, NULL);
        for (unsigned i = 0; i < 205; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                fake_delete(r->cluster, FAKE_NODES, NULL, name, -1);
        }
        rig_run(r, 2500 * MSEC);
        left = fake_count(r->cluster, FAKE_NODES);
        assert_in_range(left, 1, 5);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_NODES), 0);
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 0);
}

/* As configured. */
TEST_CASE(test_slow_rate) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->settings[0] = (char *) "Provider.TerminationsPerMinute=2";
        r->settings[1] = (char *) "Provider.TerminationsBurst=3";
        rig_begin(r, 6, NULL);
        for (unsigned i = 0; i < 6; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
        }
        rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_NODES), 3);
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(fake_count(r->cluster, FAKE_NODES), 1);
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(fake_count(r->cluster, FAKE_NODES), 0);
}

/* -- volumes -------------------------------------------------------------------------------------------- */

static void attach(CoordinatorRig *r, const char *name, const char *node) {
        fake_put(r->cluster, FAKE_VOLUMEATTACHMENTS,
                 fj_parse("{'metadata':{'name':'%s'},'spec':{'attacher':'ebs.csi.aws.com','nodeName':'%s','"
                          "source':"
                          "{'persistentVolumeName':'pv-%s'}},'status':{'attached':true}}",
                          name, node, name));
}

static const char *first_blocker(CoordinatorRig *r, const char *node, const char *key) {
        const cJSON *list = fj_get(rig_claim(r, node), "status", "blockers", NULL);

        return list && list->child ? strempty(fj_string(list->child, key, NULL)) : "";
}

TEST_CASE(test_volumes) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        attach(r, "a", "n0");
        attach(r, "b", "n0");
        attach(r, "c", "n1");
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 100 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Volumes");
        assert_string_equal(first_blocker(r, "n0", "reason"), "VolumesAttached");
        assert_string_equal(first_blocker(r, "n0", "message"), "2 volumes are still attached to the drained node");
        print_message("  it goes on as long as something moves\n");
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
        rig_run(r, 100 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Volumes");
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "b");
        assert_true(rig_wait_gone(r, "n0", 300 * MSEC));

        print_message("  one that never detaches, as a DaemonSet's: two minutes\n");
        rig_delete_node(r, "n1");
        rig_run(r, 119 * USEC_PER_SEC);
        assert_non_null(rig_node(r, "n1"));
        assert_true(rig_wait_gone(r, "n1", 5 * USEC_PER_SEC));
}

/* The claim names a pod that stays, and who makes it, for as long as the machine runs; while volumes hold the removal, it names those. */
TEST_CASE(test_pod_that_stays) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");
        unsigned made = 0;

        r->use_ec2 = true;
        rig_begin(r, 1, NULL);
        fake_ec2_protect(r->ec2, instance, true);
        attach(r, "a", "n0");
        put_back(r, "n0", &made);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (unsigned i = 0; i < 600; i++) {
                rig_run(r, USEC_PER_SEC / 10);
                put_back(r, "n0", &made);
        }
        assert_string_equal(phase(r, "n0"), "Volumes");
        assert_string_equal(first_blocker(r, "n0", "reason"), "VolumesAttached");
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Terminating");
        assert_string_equal(first_blocker(r, "n0", "reason"), "PodComesBack");
        assert_string_equal(first_blocker(r, "n0", "message"), "ReplicaSet n0 made it again on this node after 3 evictions: the drain does not wait for it");
}

/* -- beside an agent ------------------------------------------------------------------------------------ */

static void mark_agent(CoordinatorRig *r, const char *node, const char *phase_name, int pods_left) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',"
                   "\\'action\\':\\'terminate\\',\\'phase\\':\\'%s\\',\\'podsLeft\\':%d}'}}}",
                   phase_name, pods_left);
}

TEST_CASE(test_stands_back) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        add_pod(r, "web", "n0", NULL);
        mark_agent(r, "n0", "Draining", 1);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (int i = 0; i < 5; i++) {
                rig_run(r, 10 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 0), 0);
                mark_agent(r, "n0", "Draining", 100 - i); /* it moves */
        }
        print_message("  fifteen seconds without a move: it takes part\n");
        rig_run(r, 14 * USEC_PER_SEC);
        assert_int_equal(rig_evictions(r, 0), 0);
        rig_run(r, 2 * USEC_PER_SEC);
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
}

/* Its "Drained" counts only with our own proof. */
TEST_CASE(test_agent_says_drained) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->settings[0] = (char *) (uintptr_t) "Interruption.Delete=never"; /* a person does */
        rig_begin(r, 1, NULL);
        add_pod(r, "web", "n0", NULL);
        mark_agent(r, "n0", "Drained", 0);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 201), 1);
}

/* A kubelet that is dead ends no pod. */
TEST_CASE(test_dead_kubelet) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
        rig_run(r, USEC_PER_SEC);
        set_ready(r, "n0", false);
        rig_delete_node(r, "n0");
        rig_run(r, 2 * USEC_PER_MINUTE); /* its grace is over since 90 s */
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* Its pod is held by a PDB, and then by none: by an edit, or since unready pods pass it by. */
TEST_CASE(test_pdb_lets_pod_pass) {
        static const struct {
                const char *what, *change;
        } rows[] = {
                { "it selects other pods now", "{'spec':{'selector':{'matchLabels':{'app':'other'}}}}" },
                { "it lets unready pods go", "{'spec':{'unhealthyPodEvictionPolicy':'AlwaysAllow'}}" },
                { "enough others are ready", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                fake_add_pod(r->cluster,
                             &(FakePod){ .name = "sick", .node = "n0", .app = "web", .unready = true });
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 10 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), 0);
                if (rows[i].change)
                        fake_merge(r->cluster, FAKE_PDBS, "default", "web", "%s", rows[i].change);
                else
                        add_pod(r, "well", "n1", "web");
                assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
                assert_int_equal(rig_evictions(r, 201), 1);
        }
}

/* Pods that talk, but do not go, are no sign of an agent's drain. */
TEST_CASE(test_silent_agent) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        add_pod(r, "web", "n0", NULL);
        mark_agent(r, "n0", "Draining", 1);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (int i = 0; i < 20 && rig_node(r, "n0"); i++) {
                fake_merge(r->cluster, FAKE_PODS, "default", "web",
                           "{'metadata':{'annotations':{'beat':'%d'}}}", i);
                rig_run(r, 2 * USEC_PER_SEC);
        }
        assert_null(rig_node(r, "n0"));
}

/* An agent's drain that moves does not keep a pod from its grace before T. */
TEST_CASE(test_deadline_beside_agent) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, "60s");
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .grace_sec = 40, .stop_sec = 35 });
        mark_agent(r, "n0", "Draining", 1);
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (int i = 0; i < 4; i++) {
                assert_true(pod_is_there(r, "web"));
                mark_agent(r, "n0", "Draining", 100 - i);
                rig_run(r, 5 * USEC_PER_SEC);
        }
        rig_run(r, 2 * USEC_PER_SEC);
        assert_non_null(fj_string(fake_get(r->cluster, FAKE_PODS, "default", "web"), "metadata",
                                  "deletionTimestamp", NULL));
        assert_true(rig_wait_gone(r, "n0", 45 * USEC_PER_SEC));
}

static void announce(CoordinatorRig *r, const char *id, const char *phase, int64_t in_sec) {
        char text[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->w.loop), (usec_t) in_sec * USEC_PER_SEC), text);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'vesper.sh/interruption':'{\\'id\\':\\'%s\\',\\'action\\':"
                   "\\'terminate\\',\\'phase\\':\\'%s\\',\\'deadline\\':\\'%s\\'}'}}}",
                   id, phase, text);
}

/* A notice's deadline goes with the notice, and the next one has its own; while one stands it comes nearer
 * only. */
TEST_CASE(test_deadline_of_a_notice_that_is_over) {
        static const struct {
                const char *what, *tgp, *second, *phase; /* NULL: withdrawn; then another, or the same */
                int64_t in_sec, gone_after_sec;          /* from when that is said */
                bool torn;
        } rows[] = {
                { "withdrawn: none is left", NULL, NULL, NULL, 0, -1, false },
                { "withdrawn: the claim's is left", "200s", NULL, NULL, 0, 190, false },
                { "overruled by a person", NULL, "a", "Released", 50, -1, false },
                { "another one", NULL, "b", "Draining", 150, 150, false },
                { "the same, later", NULL, "a", "Draining", 150, 50, false },
                { "not readable", NULL, NULL, NULL, 0, 50, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, rows[i].tgp);
                fake_add_pod(r->cluster,
                             &(FakePod){ .name = "web", .node = "n0", .app = "web", .stuck = true });
                fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                announce(r, "a", "Draining", 60);
                rig_run(r, 10 * USEC_PER_SEC);
                assert_true(rig_has_event(r, "n0", "TerminationDeadline"));
                if (rows[i].second)
                        announce(r, rows[i].second, rows[i].phase, rows[i].in_sec);
                else
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                                   "{'metadata':{'annotations':{'vesper.sh/interruption':%s}}}",
                                   rows[i].torn ? "'{'" : "null");
                if (rows[i].gone_after_sec < 0) {
                        rig_run(r, 300 * USEC_PER_SEC);
                        assert_non_null(rig_node(r, "n0"));
                        assert_null(fj_string(rig_node(r, "n0"), "metadata", "annotations",
                                              "vesper.sh/deadline", NULL));
                        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
                        assert_true(rig_event_says(r, "n0", "TerminationDeadline", "no deadline any more"));
                        continue;
                }
                rig_run(r, (usec_t) (rows[i].gone_after_sec - 3) * USEC_PER_SEC);
                assert_non_null(rig_node(r, "n0"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        }
}

static void on_no_cordon(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        if (request->verb == FAKE_PATCH && request->x->body &&
            memmem(request->x->body, request->x->body_size, "unschedulable", 13))
                fault->status = 403;
}

TEST_CASE(test_deadline_without_cordon) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, "60s");
        add_pod(r, "web", "n0", NULL);
        rig_run(r, USEC_PER_SEC);
        fake_api_set_fault(r->api, on_no_cordon, NULL);
        rig_delete_node(r, "n0");
        rig_run(r, 55 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(pod_is_there(r, "web"));
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        fake_api_set_fault(r->api, NULL, NULL);
}

/* -- leaders die ---------------------------------------------------------------------------------------- */

/* Of a removal with pods, volumes and a slow cloud, the leader is killed after every n-th step of the
 * world. */
TEST_CASE(test_leader_killed) {
        for (unsigned cut = 1; cut < 400; cut += 7) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                const ToyMachine *m;

                rig_begin(r, 2, NULL);
                rig_start(r, 1);
                rig_run(r, USEC_PER_SEC);
                r->toy.latency_usec = 50 * MSEC;
                m = rig_machine(r, "n0");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 1 });
                add_pod(r, "db", "n0", "db");
                fake_add_pdb(r->cluster, NULL, "db", "db", true, "0");
                attach(r, "a", "n0");
                rig_run(r, USEC_PER_SEC);
                fake_delete(r->cluster, FAKE_NODES, NULL, "n0", -1);
                for (unsigned i = 0; i < cut; i++)
                        (void) virtual_time_step(r->w.time, USEC_INFINITY);
                fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
                rig_kill(r, 0);
                if (!rig_wait_gone(r, "n0", USEC_PER_MINUTE))
                        fail_msg("killed after %u steps: node %s, claim %s, phase %s", cut,
                                 rig_node(r, "n0") ? "there" : "gone", rig_claim(r, "n0") ? "there" : "gone",
                                 phase(r, "n0"));
                assert_true(m->n_terminated >= 1 && m->n_terminated <= 2);
                assert_true(startswith(m->op_id, "terminate-"));
                assert_false(pod_is_there(r, "web"));
                rig_run(r, USEC_PER_MINUTE);
                assert_true(rig_is_adopted(r, "n1"));
        }
}

/* One removal has one id, whatever goes between two leaders: nothing, the claim, or the Node, whose claim is an orphan
 * then. */
TEST_CASE(test_op_id_is_stable) {
        static const char *const gone[] = { "nothing", "the claim", "the Node" };

        for (size_t i = 0; i < ELEMENTSOF(gone); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *first = NULL, *claim = NULL;

                print_message("  %s\n", gone[i]);
                rig_begin(r, 1, NULL);
                rig_machine(r, "n0")->outcome = CLOUD_PROTECTED;
                claim = strdup(fj_string(rig_claim(r, "n0"), "metadata", "name", NULL));
                rig_delete_node(r, "n0");
                rig_run(r, 5 * USEC_PER_SEC);
                first = strdup(rig_machine(r, "n0")->op_id);
                rig_kill(r, 0);
                if (i == 1)
                        fake_remove(r->cluster, FAKE_NODECLAIMS, NULL, claim);
                if (i == 2)
                        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
                rig_machine(r, "n0")->n_terminated = 0;
                rig_start(r, 1);
                rig_machine(r, "n0")->outcome = CLOUD_OK;
                rig_run(r, 5 * USEC_PER_MINUTE);
                assert_null(rig_node(r, "n0"));
                assert_null(rig_claim(r, "n0"));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                assert_string_equal(first, rig_machine(r, "n0")->op_id);
        }
}

/* -- an API server that stumbles ------------------------------------------------------------------------ */

typedef struct Stumble {
        unsigned n, every;
        FakeApiFault fault;
} Stumble;

static void on_stumble(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        Stumble *s = userdata;
        bool writes =
                request->verb == FAKE_PATCH || request->verb == FAKE_DELETE || request->verb == FAKE_CREATE;

        if (writes && s->n++ % s->every == 0)
                *fault = s->fault;
}

TEST_CASE(test_writes_fail) {
        static const struct {
                const char *what;
                FakeApiFault fault;
        } rows[] = {
                { "every second write gets 500", { .status = 500 } },
                { "every second write gets 429", { .status = 429, .retry_after_sec = 1 } },
                { "every second write gets 409", { .status = 409 } },
                { "every second write loses its connection", { .drop = true } },
                { "every second answer is a lie", { .status = 504, .takes_effect = true } },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                Stumble s = { .every = 2, .fault = rows[i].fault };

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                add_pod(r, "web", "n0", NULL);
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                fake_api_set_fault(r->api, on_stumble, &s);
                assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_MINUTE));
                rig_add_node(r, "n2");
                rig_run(r, 30 * USEC_PER_SEC);
                assert_true(rig_is_adopted(r, "n2"));
                fake_api_set_fault(r->api, NULL, NULL);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_empty_node),
                cmocka_unit_test(test_marks_and_pods),
                cmocka_unit_test(test_person_was_first),
                cmocka_unit_test(test_claim_deleted_instead),
                cmocka_unit_test(test_claim_is_deleted_once),
                cmocka_unit_test(test_quick_end_is_not_told),
                cmocka_unit_test(test_many_pods_are_told_in_part),
                cmocka_unit_test(test_many_nodes_are_told_in_part),
                cmocka_unit_test(test_many_nodes_without_machine_are_told),
                cmocka_unit_test(test_foreign_finalizer),
                cmocka_unit_test(test_foreign_finalizer_of_claim),
                cmocka_unit_test(test_pdb_that_allows_none),
                cmocka_unit_test(test_pdb_over_several_nodes),
                cmocka_unit_test(test_two_pdbs),
                cmocka_unit_test(test_protected),
                cmocka_unit_test(test_protected_reconfigured),
                cmocka_unit_test(test_grace_period),
                cmocka_unit_test(test_goes_beside_others),
                cmocka_unit_test(test_deleted_before_the_answer),
                cmocka_unit_test(test_forced_deadline),
                cmocka_unit_test(test_deadline_with_pods_left),
                cmocka_unit_test(test_deadline_by_a_wrong_clock),
                cmocka_unit_test(test_cloud_says_no),
                cmocka_unit_test(test_machine_lingers),
                cmocka_unit_test(test_machine_is_gone_already),
                cmocka_unit_test(test_wrong_region),
                cmocka_unit_test(test_ec2),
                cmocka_unit_test(test_same_machine_twice), cmocka_unit_test(test_same_machine_with_pods_that_stay),
                cmocka_unit_test(test_rate),
                cmocka_unit_test(test_slow_rate),
                cmocka_unit_test(test_volumes),
                cmocka_unit_test(test_pod_that_stays),
                cmocka_unit_test(test_stands_back),
                cmocka_unit_test(test_agent_says_drained),
                cmocka_unit_test(test_dead_kubelet),
                cmocka_unit_test(test_pdb_lets_pod_pass),
                cmocka_unit_test(test_silent_agent),
                cmocka_unit_test(test_deadline_beside_agent),
                cmocka_unit_test(test_deadline_without_cordon),
                cmocka_unit_test(test_deadline_of_a_notice_that_is_over),
                cmocka_unit_test(test_leader_killed),
                cmocka_unit_test(test_op_id_is_stable),
                cmocka_unit_test(test_writes_fail),
        };
        return cmocka_run_group_tests_name("node-termination", tests, NULL, NULL);
}
