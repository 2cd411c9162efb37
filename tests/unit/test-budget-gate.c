/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "page.h"

static void put_budget(CoordinatorRig *r, const char *name, const char *spec) {
        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'%s','generation':1},'spec':{%s,'selector':{'matchLabels':{'vesper.sh/pool"
                          "':'" POOL "'}}}}",
                          name, spec));
}

static int64_t figure(CoordinatorRig *r, const char *name, const char *key) {
        return fj_int(fake_get(r->cluster, FAKE_NDBS, NULL, name), -1, "status", key, NULL);
}

static const char *phase(CoordinatorRig *r, const char *node) {
        return strempty(fj_string(rig_claim(r, node), "status", "phase", NULL));
}

static bool waits(CoordinatorRig *r, const char *node) {
        return streq(phase(r, node), "WaitingForBudget");
}

/* Each has a pod that does not go, so what has begun stays. */
static void begin(CoordinatorRig *r, unsigned n, const char *tgp, const char *spec) {
        rig_begin(r, n, tgp);
        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *name = strf("stays%u", i), *node = strf("n%u", i);

                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = node, .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        }
        put_budget(r, "nodes", spec);
        rig_run(r, 2 * USEC_PER_SEC);
}

static void let_go(CoordinatorRig *r, unsigned i) {
        _cleanup_free_ char *name = strf("stays%u", i);

        assert_true(fake_remove(r->cluster, FAKE_PODS, "default", name));
}

/* No webhook was asked: what exceeds the budget stays open and undrained, and goes in turn. */
TEST_CASE(test_in_turn) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 4, NULL, "'maxUnavailable':1");
        assert_int_equal(figure(r, "nodes", "expectedNodes"), 4);
        assert_int_equal(figure(r, "nodes", "disruptionsAllowed"), 1);
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                rig_delete_node(r, node);
                rig_run(r, 2 * USEC_PER_SEC);
        }
        assert_string_equal(phase(r, "n0"), "WaitingForProtected");
        assert_true(waits(r, "n1") && waits(r, "n2"));
        assert_false(fj_true(rig_node(r, "n1"), "spec", "unschedulable", NULL));
        assert_string_equal(rig_condition_reason(rig_node(r, "n1"), CONDITION_TERMINATION_BLOCKED), "WaitingForBudget");
        assert_true(rig_event_says(r, "n1", "WaitingForBudget", "NodeDisruptionBudget nodes allows no disruption of node n1 now: it has maxUnavailable 1"));
        /* Not n2, which waits itself. */
        assert_true(rig_event_says(r, "n1", "WaitingForBudget", "(now: 3 of 4). Unavailable is n0 (is being deleted since "));
        assert_true(rig_event_says(r, "n1", "WaitingForBudget", "The removal goes on when that node is gone or available again"));
        assert_int_equal(figure(r, "nodes", "disruptionsAllowed"), 0);
        assert_int_equal(figure(r, "nodes", "currentAvailable"), 3);
        {
                _cleanup_page_ Page p = page_ask(coordinator_handle, r->coordinators[0]->coordinator, HTTP_GET, "/metrics");

                assert_int_equal(page_sum(&p, "vesper_coordinator_removals_blocked{reason=\"WaitingForBudget\"}"), 2);
        }

        print_message("  a leader that dies leaves the charge, and the next one keeps to it\n");
        rig_kill(r, 0);
        rig_run(r, 5 * USEC_PER_MINUTE);
        rig_start(r, 0);
        rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(phase(r, "n0"), "WaitingForProtected");
        assert_true(waits(r, "n1") && waits(r, "n2"));

        print_message("  one after the other\n");
        let_go(r, 0);
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n1"), "WaitingForProtected");
        assert_string_equal(rig_condition(rig_node(r, "n1"), CONDITION_TERMINATION_BLOCKED), "False");
        assert_true(waits(r, "n2"));
        let_go(r, 1);
        let_go(r, 2);
        assert_true(rig_wait_gone(r, "n1", 10 * USEC_PER_SEC));
        assert_true(rig_wait_gone(r, "n2", 10 * USEC_PER_SEC));
}

/* Counted, and never refused. */
TEST_CASE(test_is_not_held) {
        static const struct {
                const char *what, *patch; /* of the Node, before its deletion */
                const char *tgp;
                usec_t after_usec;
        } rows[] = {
                { "interrupted",
                  "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                  "':'{\\'id\\':\\'a\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'Draining\\'}'}}}",
                  NULL, 2 * USEC_PER_SEC },
                { "not Ready", "{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}", NULL, 2 * USEC_PER_SEC },
                { "removed since before", "{'spec':{'taints':[{'key':'" TAINT_DISRUPTED "','effect':'NoSchedule'}]}}", NULL, 2 * USEC_PER_SEC },
                { "its time is near", NULL, "1m", 45 * USEC_PER_SEC },
                { "held", NULL, NULL, 0 },
                { "drained for a reboot: held",
                  "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                  "':'{\\'id\\':\\'a\\',\\'kind\\':\\'maintenance\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'Draining\\'}'}}}",
                  NULL, 0 },
                { "only cordoned for a maintenance: held",
                  "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                  "':'{\\'id\\':\\'a\\',\\'kind\\':\\'maintenance\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'Cordoned\\'}'}}}",
                  NULL, 0 },
                { "drained by hand: held",
                  "{'metadata':{'annotations':{'" ANNOTATION_CORDONED_BY_VESPERCTL "':'{}'}},'spec':{'unschedulable':true}}", NULL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                begin(r, 2, rows[i].tgp, "'maxUnavailable':0");
                if (rows[i].patch)
                        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "%s", rows[i].patch);
                rig_delete_node(r, "n0");
                rig_run(r, rows[i].tgp || rows[i].after_usec == 0 ? 20 * USEC_PER_SEC : rows[i].after_usec);
                if (rows[i].tgp || rows[i].after_usec == 0)
                        assert_true(waits(r, "n0"));
                if (rows[i].tgp)
                        assert_true(rig_wait_gone(r, "n0", rows[i].after_usec));
                if (rows[i].after_usec > 0)
                        assert_false(waits(r, "n0"));
        }
}

/* Every node that somebody drains uses the budget up, whoever drains it and why; and needs no second disruption itself. */
TEST_CASE(test_drains_count) {
        static const struct {
                const char *what, *patch;
        } rows[] = {
                { "interrupted, and not drained yet",
                  "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                  "':'{\\'id\\':\\'a\\',\\'action\\':\\'hibernate\\',\\'phase\\':\\'Cordoned\\'}'}}}" },
                { "drained for a reboot",
                  "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                  "':'{\\'id\\':\\'a\\',\\'kind\\':\\'maintenance\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'Drained\\'}'}}}" },
                { "drained by vesperctl",
                  "{'metadata':{'annotations':{'" ANNOTATION_CORDONED_BY_VESPERCTL "':'{}'}},'spec':{'unschedulable':true}}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                begin(r, 4, NULL, "'maxUnavailable':1");
                fake_merge(r->cluster, FAKE_NODES, NULL, "n1", "%s", rows[i].patch);
                rig_run(r, 2 * USEC_PER_SEC);
                assert_int_equal(figure(r, "nodes", "currentAvailable"), 3);
                assert_int_equal(figure(r, "nodes", "disruptionsAllowed"), 0);
                rig_delete_node(r, "n0");
                rig_run(r, 20 * USEC_PER_SEC);
                assert_true(waits(r, "n0"));
                assert_true(rig_event_says(r, "n0", "WaitingForBudget", "Unavailable is n1 (is being d"));
                rig_delete_node(r, "n1");
                rig_run(r, 2 * USEC_PER_SEC);
                assert_false(waits(r, "n1"));
                assert_true(waits(r, "n0"));
        }
}

/* A person has drained more than the budget allows, and deletes what he has drained: one after the other goes. */
TEST_CASE(test_drained_together) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 3, NULL, "'maxUnavailable':1");
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                fake_merge(r->cluster, FAKE_NODES, NULL, name, "{'metadata':{'annotations':{'" ANNOTATION_CORDONED_BY_VESPERCTL "':'{}'}},'spec':{'unschedulable':true}}");
        }
        rig_run(r, 2 * USEC_PER_SEC);
        assert_int_equal(figure(r, "nodes", "currentAvailable"), 1);
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
        }
        rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(waits(r, "n0") + waits(r, "n1"), 1);
        let_go(r, 0);
        let_go(r, 1);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_true(rig_wait_gone(r, "n1", USEC_PER_MINUTE));
}

/* A held node is schedulable: a pod that comes meanwhile is evicted like any other, though it tolerates the cordon. */
TEST_CASE(test_arrives_while_held) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        uint64_t evictions;

        begin(r, 2, NULL, "'maxUnavailable':0");
        rig_delete_node(r, "n0");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_true(waits(r, "n0"));
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 5 });
        fake_merge(r->cluster, FAKE_PODS, "default", "late", "{'spec':{'tolerations':[{'operator':'Exists'}]}}");
        rig_run(r, 5 * USEC_PER_SEC);
        evictions = fake_api_count(fake_cluster_api(r->cluster), FAKE_CREATE, FAKE_PODS, "eviction");
        let_go(r, 0);
        fake_merge(r->cluster, FAKE_NDBS, NULL, "nodes", "{'metadata':{'generation':2},'spec':{'maxUnavailable':1}}");
        rig_run(r, 3 * USEC_PER_SEC);
        assert_int_equal(fake_api_count(fake_cluster_api(r->cluster), FAKE_CREATE, FAKE_PODS, "eviction") - evictions, 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
}

/* A budget that is invalid, edited or deleted. */
TEST_CASE(test_budgets_change) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 2, NULL, "'maxUnavailable':'many'");
        assert_true(rig_event_says(r, "nodes", "Invalid", "refuses the disruption of each node"));
        assert_string_equal(rig_condition(fake_get(r->cluster, FAKE_NDBS, NULL, "nodes"), BUDGET_INVALID), "True");
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_MINUTE);
        assert_true(waits(r, "n0"));
        assert_true(rig_event_says(r, "n0", "WaitingForBudget", "its amount cannot be read: spec.maxUnavailable: 'many'"));
        fake_merge(r->cluster, FAKE_NDBS, NULL, "nodes", "{'metadata':{'generation':2},'spec':{'maxUnavailable':1}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "WaitingForProtected");
        assert_string_equal(rig_condition(fake_get(r->cluster, FAKE_NDBS, NULL, "nodes"), BUDGET_INVALID), "False");

        rig_delete_node(r, "n1");
        rig_run(r, USEC_PER_MINUTE);
        assert_true(waits(r, "n1"));
        fake_delete(r->cluster, FAKE_NDBS, NULL, "nodes", -1);
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n1"), "WaitingForProtected");
}

static unsigned n_being_deleted(CoordinatorRig *r, unsigned n_nodes) {
        unsigned n = 0;

        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                n += rig_node(r, name) && fj_get(rig_node(r, name), "metadata", "deletionTimestamp", NULL);
        }
        return n;
}

/* What we delete ourselves is charged first, and serves until then. */
TEST_CASE(test_own_deletions) {
        static const char *const whats[] = { "labelled terminable", "its pool is deleted" };

        for (unsigned k = 0; k < ELEMENTSOF(whats); k++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", whats[k]);
                begin(r, 4, NULL, "'maxUnavailable':1");
                for (unsigned i = 0; i < 4 && k == 0; i++) {
                        _cleanup_free_ char *name = strf("n%u", i);

                        fake_merge(r->cluster, FAKE_NODES, NULL, name, "{'metadata':{'labels':{'karpenter.sh/lifecycle-phase':'terminable'}}}");
                }
                if (k == 1) {
                        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'deletionPolicy':'Delete'}}");
                        rig_run(r, USEC_PER_SEC);
                        fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1);
                }
                for (unsigned wave = 0; wave < 4; wave++) {
                        rig_run(r, USEC_PER_MINUTE);
                        assert_int_equal(n_being_deleted(r, 4), 1);
                        for (unsigned i = 0; i < 4; i++) {
                                _cleanup_free_ char *name = strf("n%u", i);
                                const cJSON *node = rig_node(r, name);

                                if (!node)
                                        continue;
                                if (fj_get(node, "metadata", "deletionTimestamp", NULL))
                                        let_go(r, i);
                                else {
                                        assert_false(fj_true(node, "spec", "unschedulable", NULL));
                                        assert_true(rig_event_says(r, name, "DeletionWaits", k == 0 ? "it is labelled" : "its NodePool is deleted"));
                                }
                        }
                        rig_run(r, 10 * USEC_PER_SEC);
                }
                for (unsigned i = 0; i < 4; i++) {
                        _cleanup_free_ char *name = strf("n%u", i);

                        assert_null(rig_node(r, name));
                }
                rig_run(r, 3 * USEC_PER_SEC);
                if (k == 1)
                        assert_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
        }
}

typedef struct Refusal {
        bool refuses;
        unsigned n;
} Refusal;

static void refuse_charges(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        Refusal *refusal = userdata;

        if (!refusal->refuses || request->verb != FAKE_PATCH || !request->resource ||
            request->resource->id != FAKE_NDBS || !strstr(request->x->body, "DELETE"))
                return;
        refusal->n++;
        ret_fault->status = 422;
}

/* The API server refuses the charge of a deletion that has begun: it is asked again, and not at once. */
TEST_CASE(test_refused_by_the_server) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        Refusal refusal = { .refuses = true };

        begin(r, 2, NULL, "'maxUnavailable':1");
        fake_api_set_fault(r->api, refuse_charges, &refusal);
        rig_delete_node(r, "n0");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_in_range(refusal.n, 2, 40);
        assert_false(fj_true(rig_node(r, "n0"), "spec", "unschedulable", NULL));
        assert_true(waits(r, "n0"));
        assert_true(
                rig_event_says(r, "n0", "WaitingForBudget", "The API server refuses the charge of node n0"));
        refusal.refuses = false;
        rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "WaitingForProtected");
        fake_api_set_fault(r->api, NULL, NULL);
}

/* A reconcile for a change of the Node must not cancel the next try of a refused request. */
TEST_CASE(test_own_deletion_refused_by_the_server) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        Refusal refusal = { .refuses = true };
        unsigned n;

        begin(r, 1, NULL, "'maxUnavailable':1");
        fake_api_set_fault(r->api, refuse_charges, &refusal);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'labels':{'karpenter.sh/lifecycle-phase':'terminable'}}}");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_in_range(refusal.n, 5, 11);
        for (n = refusal.n; refusal.n == n;)
                rig_run(r, 10 * MSEC);
        rig_run(r, 300 * MSEC);
        assert_int_equal(refusal.n, n + 1); /* answered, and not asked again yet */
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'other':'label'}}}");
        refusal.refuses = false;
        rig_run(r, 3 * USEC_PER_SEC);
        assert_int_equal(n_being_deleted(r, 1), 1);
        fake_api_set_fault(r->api, NULL, NULL);
}

/* A budget that is widened right after a refusal lets the next node go at once. */
TEST_CASE(test_widened_after_a_refusal) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        begin(r, 2, NULL, "'maxUnavailable':0");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'labels':{'karpenter.sh/lifecycle-phase':'terminable'}}}");
        rig_run(r, 100 * MSEC);
        assert_true(rig_event_says(r, "n0", "DeletionWaits", "allows no disruption of node n0"));
        assert_int_equal(n_being_deleted(r, 2), 0);
        fake_merge(r->cluster, FAKE_NDBS, NULL, "nodes", "{'metadata':{'generation':2},'spec':{'maxUnavailable':1}}");
        rig_run(r, 500 * MSEC);
        assert_int_equal(n_being_deleted(r, 2), 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_turn),
                cmocka_unit_test(test_is_not_held),
                cmocka_unit_test(test_drains_count),
                cmocka_unit_test(test_drained_together),
                cmocka_unit_test(test_arrives_while_held),
                cmocka_unit_test(test_budgets_change),
                cmocka_unit_test(test_own_deletions),
                cmocka_unit_test(test_widened_after_a_refusal),
                cmocka_unit_test(test_refused_by_the_server),
                cmocka_unit_test(test_own_deletion_refused_by_the_server),
        };
        return cmocka_run_group_tests_name("budget-gate", tests, NULL, NULL);
}
