/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "fake-client.h"
#include "fake-controllers.h"

#define MERGE "application/merge-patch+json"

static int64_t pdb(FakeWorld *w, const char *field) {
        return fj_int(fake_get(w->cluster, FAKE_PDBS, "default", "web"), -1, "status", field, NULL);
}

static const cJSON *pod(FakeWorld *w, const char *name) {
        return fake_get(w->cluster, FAKE_PODS, "default", name);
}

static const char *phase(FakeWorld *w, const char *name) {
        return strempty(fj_string(pod(w, name), "status", "phase", NULL));
}

static bool has_taint(FakeWorld *w, const char *node, const char *key) {
        return fj_find(fj_get(fake_get(w->cluster, FAKE_NODES, NULL, node), "spec", "taints", NULL), "key",
                       key);
}

/* How many pods of the label run on that node (NULL: on any). */
static int running(FakeWorld *w, const char *app, const char *node) {
        const cJSON *p;
        int n = 0;

        FAKE_FOREACH (p, w->cluster, FAKE_PODS, "default") {
                const char *on = strempty(fj_string(p, "spec", "nodeName", NULL));

                n += streq_ptr(fj_string(p, "metadata", "labels", "app", NULL), app) &&
                     streq_ptr(fj_string(p, "status", "phase", NULL), "Running") &&
                     (!node || streq(on, node)) && !fj_get(p, "metadata", "deletionTimestamp", NULL);
        }
        return n;
}

static unsigned evict(FakeWorld *w, const char *name) {
        _cleanup_free_ char *path = strf("/api/v1/namespaces/default/pods/%s/eviction", name);
        _cleanup_free_ char *body = strf("{'metadata':{'name':'%s'}}", name);
        _cleanup_answer_ FakeAnswer a = fake_ask(w, HTTP_POST, path, NULL, body);

        return a.status;
}

/* -- budgets ------------------------------------------------------------------------------------------- */

/* As kube-controller-manager counts. */
TEST_CASE(test_budget_status) {
        static const struct {
                const char *what;
                int replicas, pods, unready;
                bool min;
                const char *value;
                int64_t expected, desired, healthy, allowed;
        } rows[] = {
                { "minAvailable counts the pods that are there", 0, 4, 0, true, "3", 4, 3, 4, 1 },
                { "none too many", 0, 3, 1, true, "3", 3, 3, 2, 0 },
                { "more than there are", 0, 2, 0, true, "3", 2, 3, 2, 0 },
                { "no pods at all", 0, 0, 0, true, "0", 0, 0, 0, 0 },
                { "minAvailable in percent rounds up", 5, 5, 0, true, "50%", 5, 3, 5, 2 },
                { "maxUnavailable against the scale", 4, 4, 0, false, "1", 4, 3, 4, 1 },
                { "maxUnavailable while one is sick", 4, 4, 1, false, "1", 4, 3, 3, 0 },
                { "maxUnavailable in percent rounds up", 5, 5, 0, false, "30%", 5, 3, 5, 2 },
                { "maxUnavailable of everything", 3, 3, 0, false, "100%", 3, 0, 3, 3 },
                { "maxUnavailable counts pods not yet made", 4, 2, 0, false, "1", 4, 3, 2, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                FakeWorld w;

                print_message("  %s\n", rows[i].what);
                fake_world_init(
                        &w, &(FakeClusterOptions){ .controllers_off = 1u << FAKE_CONTROLLER_REPLICASET });
                fake_add_node(w.cluster, "a", NULL, NULL, NULL);
                if (rows[i].replicas > 0)
                        fake_add_replicaset(w.cluster, NULL, "web", "web", rows[i].replicas);
                for (int k = 0; k < rows[i].pods; k++) {
                        char name[16];

                        snprintf(name, sizeof(name), "web-%d", k);
                        fake_add_pod(w.cluster,
                                     &(FakePod){ .name = name,
                                                 .node = "a",
                                                 .app = "web",
                                                 .owner_kind = rows[i].replicas > 0 ? "ReplicaSet" : NULL,
                                                 .owner = "web",
                                                 .unready = k < rows[i].unready });
                }
                fake_add_pdb(w.cluster, NULL, "web", "web", rows[i].min, rows[i].value);
                assert_int_equal(pdb(&w, "observedGeneration"), -1);
                fake_world_run(&w, USEC_PER_SEC);
                assert_int_equal(pdb(&w, "expectedPods"), rows[i].expected);
                assert_int_equal(pdb(&w, "desiredHealthy"), rows[i].desired);
                assert_int_equal(pdb(&w, "currentHealthy"), rows[i].healthy);
                assert_int_equal(pdb(&w, "disruptionsAllowed"), rows[i].allowed);
                assert_int_equal(pdb(&w, "observedGeneration"), 1);
                fake_world_done(&w);
        }
}

TEST_CASE(test_budget_fails_safe) {
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "web-1",
                                            .node = "a",
                                            .app = "web",
                                            .owner_kind = "ReplicaSet",
                                            .owner = "nobody" });
        fake_add_pdb(w.cluster, NULL, "web", "web", false, "1");
        fake_world_run(&w, USEC_PER_SEC);
        assert_int_equal(pdb(&w, "disruptionsAllowed"), 0);
        assert_int_equal(evict(&w, "web-1"), 429);
        fake_world_done(&w);
}

/* An eviction is charged at once, and paid back when the pod's replacement is Ready. */
TEST_CASE(test_eviction_and_recovery) {
        _cleanup_free_ char *victim = NULL;
        const cJSON *p;
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_add_replicaset(w.cluster, NULL, "web", "web", 4);
        fake_add_pdb(w.cluster, NULL, "web", "web", false, "1");
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_int_equal(running(&w, "web", NULL), 4);
        assert_int_equal(running(&w, "web", "a"), 2);
        assert_int_equal(pdb(&w, "disruptionsAllowed"), 1);

        FAKE_FOREACH (p, w.cluster, FAKE_PODS, "default")
                if (!victim)
                        victim = strdup(fj_string(p, "metadata", "name", NULL));
        assert_int_equal(evict(&w, victim), 201);
        assert_int_equal(pdb(&w, "disruptionsAllowed"), 0);
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_null(pod(&w, victim));
        assert_int_equal(running(&w, "web", NULL), 4);
        assert_int_equal(pdb(&w, "disruptionsAllowed"), 1);
        assert_null(
                fj_get(fake_get(w.cluster, FAKE_PDBS, "default", "web"), "status", "disruptedPods", NULL));
        fake_world_done(&w);
}

/* -- pods ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_kubelet_life) {
        static const struct {
                const char *what;
                FakePod pod;
                usec_t still_there_usec, gone_usec; /* after its deletion; USEC_INFINITY: does not go */
        } rows[] = {
                { "stops at once", { .name = "p", .node = "a" }, 0, USEC_PER_SEC },
                { "takes its time",
                  { .name = "p", .node = "a", .stop_sec = 10 },
                  9 * USEC_PER_SEC,
                  11 * USEC_PER_SEC },
                { "at most its grace",
                  { .name = "p", .node = "a", .stop_sec = 60, .grace_sec = 5 },
                  4 * USEC_PER_SEC,
                  6 * USEC_PER_SEC },
                { "stuck",
                  { .name = "p", .node = "a", .stuck = true, .grace_sec = 5 },
                  USEC_PER_HOUR,
                  USEC_INFINITY },
                { "held by a finalizer", { .name = "p", .node = "a" }, 0, USEC_INFINITY },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                FakeWorld w;

                print_message("  %s\n", rows[i].what);
                fake_world_init(&w, NULL);
                fake_add_node(w.cluster, "a", NULL, NULL, NULL);
                fake_add_pod(w.cluster, &rows[i].pod);
                if (i == 4)
                        fake_merge(w.cluster, FAKE_PODS, "default", "p",
                                   "{'metadata':{'finalizers':['example.com/x']}}");
                fake_delete(w.cluster, FAKE_PODS, "default", "p", -1);
                fake_world_run(&w, rows[i].still_there_usec);
                assert_non_null(pod(&w, "p"));
                if (rows[i].gone_usec == USEC_INFINITY) {
                        fake_world_run(&w, USEC_PER_HOUR);
                        assert_non_null(pod(&w, "p"));
                        if (i != 4)
                                fake_delete(w.cluster, FAKE_PODS, "default", "p", 0);
                } else
                        fake_world_run(&w, rows[i].gone_usec - rows[i].still_there_usec);
                if (i != 4)
                        assert_null(pod(&w, "p"));
                fake_world_done(&w);
        }
}

TEST_CASE(test_shortened_grace) {
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "a", .stop_sec = 600, .grace_sec = 600 });
        fake_delete(w.cluster, FAKE_PODS, "default", "p", -1);
        fake_world_run(&w, 100 * USEC_PER_SEC);
        fake_delete(w.cluster, FAKE_PODS, "default", "p", 150);
        fake_world_run(&w, 100 * USEC_PER_SEC);
        assert_int_equal(fj_int(pod(&w, "p"), 0, "metadata", "deletionGracePeriodSeconds", NULL), 150);

        print_message(
                "  the server counts from the first deletion: what has passed already becomes one second\n");
        fake_delete(w.cluster, FAKE_PODS, "default", "p", 10);
        assert_int_equal(fj_int(pod(&w, "p"), 0, "metadata", "deletionGracePeriodSeconds", NULL), 1);
        fake_world_run(&w, 900 * USEC_PER_MSEC);
        assert_non_null(pod(&w, "p"));
        fake_world_run(&w, 200 * USEC_PER_MSEC);
        assert_null(pod(&w, "p"));
        fake_world_done(&w);
}

TEST_CASE(test_scheduler) {
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_merge(w.cluster, FAKE_NODES, NULL, "a", "{'spec':{'unschedulable':true}}");
        fake_add_pod(w.cluster, &(FakePod){ .name = "p" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "d", .owner_kind = "DaemonSet", .owner = "d" });
        fake_world_run(&w, USEC_PER_SEC);
        assert_string_equal(phase(&w, "p"), "Pending");
        assert_string_equal(phase(&w, "d"), "Running");
        assert_true(has_taint(&w, "a", "node.kubernetes.io/unschedulable"));

        print_message("  a node without cordon, but tainted\n");
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_merge(w.cluster, FAKE_NODES, NULL, "b",
                   "{'spec':{'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]}}");
        fake_world_run(&w, USEC_PER_SEC);
        assert_string_equal(phase(&w, "p"), "Pending");

        print_message("  opened again\n");
        fake_merge(w.cluster, FAKE_NODES, NULL, "a", "{'spec':{'unschedulable':null}}");
        fake_world_run(&w, USEC_PER_SEC);
        assert_string_equal(phase(&w, "p"), "Running");
        assert_false(has_taint(&w, "a", "node.kubernetes.io/unschedulable"));
        fake_world_done(&w);
}

/* -- nodes --------------------------------------------------------------------------------------------- */

TEST_CASE(test_dead_kubelet) {
        const cJSON *node;
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "a" });
        fake_cluster_set_kubelet(w.cluster, "a", false);
        fake_delete(w.cluster, FAKE_PODS, "default", "p", -1);
        fake_world_run(&w, 39 * USEC_PER_SEC);
        assert_false(has_taint(&w, "a", "node.kubernetes.io/unreachable"));
        fake_world_run(&w, 2 * USEC_PER_SEC);
        node = fake_get(w.cluster, FAKE_NODES, NULL, "a");
        assert_string_equal(fj_string(fj_find(fj_get(node, "status", "conditions", NULL), "type", "Ready"),
                                      "status", NULL),
                            "Unknown");
        assert_true(has_taint(&w, "a", "node.kubernetes.io/unreachable"));
        assert_non_null(pod(&w, "p"));

        print_message("  it comes back, and does what it was told\n");
        fake_cluster_set_kubelet(w.cluster, "a", true);
        fake_world_run(&w, USEC_PER_SEC);
        assert_false(has_taint(&w, "a", "node.kubernetes.io/unreachable"));
        assert_null(pod(&w, "p"));
        fake_world_done(&w);
}

TEST_CASE(test_pod_gc) {
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "a" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "q", .node = "b" });
        fake_remove(w.cluster, FAKE_NODES, NULL, "a");
        fake_world_run(&w, 30 * USEC_PER_SEC);
        assert_non_null(pod(&w, "p"));
        fake_world_run(&w, 30 * USEC_PER_SEC);
        assert_null(pod(&w, "p"));

        print_message("  out of service: what was to go goes\n");
        fake_cluster_set_kubelet(w.cluster, "b", false);
        fake_delete(w.cluster, FAKE_PODS, "default", "q", -1);
        fake_world_run(&w, USEC_PER_MINUTE);
        assert_non_null(pod(&w, "q"));
        fake_merge(w.cluster, FAKE_NODES, NULL, "b",
                   "{'spec':{'taints':[{'key':'node.kubernetes.io/"
                   "out-of-service','value':'x','effect':'NoExecute'}]}}");
        fake_world_run(&w, USEC_PER_SEC);
        assert_null(pod(&w, "q"));
        fake_world_done(&w);
}

TEST_CASE(test_node_by_api) {
        _cleanup_answer_ FakeAnswer a = { 0 };
        FakeWorld w;

        fake_world_init(&w, &(FakeClusterOptions){ .heartbeat_usec = 10 * USEC_PER_SEC });
        a = fake_ask(&w, HTTP_POST, "/api/v1/nodes", NULL, "{'metadata':{'name':'n'}}");
        assert_int_equal(a.status, 201);
        assert_true(has_taint(&w, "n", "node.kubernetes.io/not-ready"));
        fake_world_run(&w, USEC_PER_SEC);
        assert_false(has_taint(&w, "n", "node.kubernetes.io/not-ready"));
        assert_non_null(fake_get(w.cluster, FAKE_LEASES, "kube-node-lease", "n"));
        fake_world_done(&w);
}

/* -- what goes with what ------------------------------------------------------------------------------- */

TEST_CASE(test_owner_and_namespace) {
        _cleanup_answer_ FakeAnswer a = { 0 }, b = { 0 };
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_replicaset(w.cluster, NULL, "web", "web", 3);
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_int_equal(running(&w, "web", "a"), 3);

        print_message("  scaled down\n");
        a = fake_ask(&w, HTTP_PATCH, "/apis/apps/v1/namespaces/default/replicasets/web", MERGE,
                     "{'spec':{'replicas':1}}");
        assert_int_equal(a.status, 200);
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_int_equal(running(&w, "web", "a"), 1);

        print_message("  deleted in the foreground\n");
        b = fake_ask(&w, HTTP_DELETE, "/apis/apps/v1/namespaces/default/replicasets/web", NULL,
                     "{'propagationPolicy':'Foreground'}");
        assert_int_equal(b.status, 200);
        assert_non_null(fake_get(w.cluster, FAKE_REPLICASETS, "default", "web"));
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_null(fake_get(w.cluster, FAKE_REPLICASETS, "default", "web"));
        assert_int_equal(fake_count(w.cluster, FAKE_PODS), 0);

        print_message("  a namespace takes its content along\n");
        fake_put(w.cluster, FAKE_NAMESPACES,
                 fj_parse("{'metadata':{'name':'other'},'spec':{'finalizers':['kubernetes']},"
                          "'status':{'phase':'Active'}}"));
        fake_add_pod(w.cluster, &(FakePod){ .ns = "other", .name = "p", .node = "a", .stop_sec = 10 });
        fake_delete(w.cluster, FAKE_NAMESPACES, NULL, "other", -1);
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_non_null(fake_get(w.cluster, FAKE_NAMESPACES, NULL, "other"));
        fake_world_run(&w, 10 * USEC_PER_SEC);
        assert_null(fake_get(w.cluster, FAKE_NAMESPACES, NULL, "other"));
        assert_int_equal(fake_count(w.cluster, FAKE_PODS), 0);
        fake_world_done(&w);
}

/* The same seed takes the same path. */
static char *play(void) {
        FakeWorld w;
        char *path;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_add_replicaset(w.cluster, NULL, "web", "web", 5);
        fake_add_pdb(w.cluster, NULL, "web", "web", true, "40%");
        fake_world_run(&w, 5 * USEC_PER_SEC);
        fake_merge(w.cluster, FAKE_NODES, NULL, "a", "{'spec':{'unschedulable':true}}");
        fake_world_run(&w, 5 * USEC_PER_SEC);
        path = NULL;
        for (size_t i = 0; i < fake_count(w.cluster, FAKE_PODS); i++) {
                _cleanup_free_ char *before = path;

                path = strf("%s%s\n", strempty(before),
                            fake_version_text(fake_store_at(fake_cluster_store(w.cluster), FAKE_PODS, i)));
        }
        fake_world_done(&w);
        return path;
}

TEST_CASE(test_same_seed) {
        _cleanup_free_ char *once = play(), *twice = play();

        assert_non_null(strstr(once, "resourceVersion"));
        assert_string_equal(once, twice);
}

TEST_CASE(test_switched_off) {
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_cluster_set_controller(w.cluster, FAKE_CONTROLLER_SCHEDULER, false);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p" });
        fake_world_run(&w, USEC_PER_MINUTE);
        assert_string_equal(phase(&w, "p"), "Pending");
        fake_cluster_set_controller(w.cluster, FAKE_CONTROLLER_SCHEDULER, true);
        fake_world_run(&w, USEC_PER_SEC);
        assert_string_equal(phase(&w, "p"), "Running");
        fake_world_done(&w);
}

/* -- StatefulSets and their volumes ---------------------------------------------------------------------- */

static const cJSON *db(FakeWorld *w, const char *name) {
        return fake_get(w->cluster, FAKE_PODS, "default", name);
}

static bool runs_on(FakeWorld *w, const char *name, const char *node) {
        return fake_condition_is(db(w, name), "Ready", "True") &&
               streq_ptr(fj_string(db(w, name), "spec", "nodeName", NULL), node);
}

TEST_CASE(test_stateful_set) {
        FakeWorld w;

        fake_world_init(&w, &(FakeClusterOptions){ .detach_usec = 20 * USEC_PER_SEC });
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_put(w.cluster, FAKE_STATEFULSETS,
                 fj_parse("{'metadata':{'name':'db','namespace':'default'},'spec':{'replicas':2,"
                          "'selector':{'matchLabels':{'app':'db'}},"
                          "'volumeClaimTemplates':[{'metadata':{'name':'data'}}],"
                          "'template':{'metadata':{'labels':{'app':'db'},"
                          "'annotations':{'fake.vesper.sh/stop-seconds':'5'}},"
                          "'spec':{'containers':[{'name':'main','image':'app'}]}}}}"));
        fake_world_run(&w, 20 * USEC_PER_MSEC);
        print_message("  the second waits for the first\n");
        assert_non_null(db(&w, "db-0"));
        assert_null(db(&w, "db-1"));
        fake_world_run(&w, 5 * USEC_PER_SEC);
        assert_true(runs_on(&w, "db-0", "a"));
        assert_true(runs_on(&w, "db-1", "a"));
        assert_non_null(fake_get(w.cluster, FAKE_VOLUMEATTACHMENTS, NULL, "va-a-data-db-0"));

        print_message("  made again only when the old one is gone, and started when its volume is free\n");
        fake_add_node(w.cluster, "b", NULL, NULL, NULL);
        fake_merge(w.cluster, FAKE_NODES, NULL, "a", "{'spec':{'unschedulable':true}}");
        fake_delete(w.cluster, FAKE_PODS, "default", "db-0", -1);
        fake_world_run(&w, 4 * USEC_PER_SEC);
        assert_string_equal(fj_string(db(&w, "db-0"), "spec", "nodeName", NULL), "a");
        fake_world_run(&w, 3 * USEC_PER_SEC);
        assert_string_equal(fj_string(db(&w, "db-0"), "spec", "nodeName", NULL), "b");
        assert_false(runs_on(&w, "db-0", "b"));
        fake_world_run(&w, 30 * USEC_PER_SEC);
        assert_true(runs_on(&w, "db-0", "b"));
        assert_null(fake_get(w.cluster, FAKE_VOLUMEATTACHMENTS, NULL, "va-a-data-db-0"));
        assert_non_null(fake_get(w.cluster, FAKE_VOLUMEATTACHMENTS, NULL, "va-b-data-db-0"));

        print_message("  fewer: the highest goes\n");
        fake_merge(w.cluster, FAKE_STATEFULSETS, "default", "db", "{'spec':{'replicas':1}}");
        fake_world_run(&w, 10 * USEC_PER_SEC);
        assert_non_null(db(&w, "db-0"));
        assert_null(db(&w, "db-1"));
        fake_world_done(&w);
}

/* -- a node that is not heard of ------------------------------------------------------------------------- */

TEST_CASE(test_dead_node_loses_its_pods) {
        FakeWorld w;

        fake_world_init(&w, NULL);
        fake_add_node(w.cluster, "a", NULL, NULL, NULL);
        fake_add_pod(w.cluster, &(FakePod){ .name = "p", .node = "a" });
        fake_add_pod(w.cluster, &(FakePod){ .name = "d", .node = "a", .owner_kind = "DaemonSet", .owner = "d" });
        fake_cluster_set_kubelet(w.cluster, "a", false);
        fake_world_run(&w, 30 * USEC_PER_SEC);
        assert_true(fake_condition_is(db(&w, "p"), "Ready", "True"));
        fake_world_run(&w, 20 * USEC_PER_SEC);
        assert_true(fake_condition_is(db(&w, "p"), "Ready", "False"));
        print_message("  five minutes later they are deleted; who tolerates it stays\n");
        fake_world_run(&w, 280 * USEC_PER_SEC);
        assert_null(fj_get(db(&w, "p"), "metadata", "deletionTimestamp", NULL));
        fake_world_run(&w, 20 * USEC_PER_SEC);
        assert_non_null(fj_get(db(&w, "p"), "metadata", "deletionTimestamp", NULL));
        assert_null(fj_get(db(&w, "d"), "metadata", "deletionTimestamp", NULL));
        print_message("  its kubelet comes back: what was deleted goes, the rest is ready\n");
        fake_cluster_set_kubelet(w.cluster, "a", true);
        fake_world_run(&w, USEC_PER_SEC);
        assert_null(db(&w, "p"));
        assert_true(fake_condition_is(db(&w, "d"), "Ready", "True"));
        fake_world_done(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_budget_status),
                cmocka_unit_test(test_budget_fails_safe),
                cmocka_unit_test(test_eviction_and_recovery),
                cmocka_unit_test(test_kubelet_life),
                cmocka_unit_test(test_shortened_grace),
                cmocka_unit_test(test_scheduler),
                cmocka_unit_test(test_dead_kubelet),
                cmocka_unit_test(test_pod_gc),
                cmocka_unit_test(test_node_by_api),
                cmocka_unit_test(test_owner_and_namespace),
                cmocka_unit_test(test_stateful_set),
                cmocka_unit_test(test_dead_node_loses_its_pods),
                cmocka_unit_test(test_same_seed),
                cmocka_unit_test(test_switched_off),
        };
        return cmocka_run_group_tests_name("fake-controllers", tests, NULL, NULL);
}
