/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction, with all its answers, each as drain/eviction.h reads it. */
#include "contract-ask.h"
#include "eviction.h"

/* Evicts by the coordinator's credential and reads the answer. expected_pdb NULL: none may be named. */
static void check_eviction(Rig *r, const char *ns, const char *pod, const char *uid, EvictionAnswer expected,
                           const char *expected_pdb, const char *file, int line) {
        _cleanup_answer_ Answer a = rig_evict(r, RIG_COORDINATOR, ns, pod, uid, -1);
        bool failed = a.error.http != 0 || a.error.error != 0;
        _cleanup_free_ char *pdb = NULL;
        EvictionAnswer got = eviction_classify(failed ? &a.error : NULL, &pdb);

        if (got == expected && streq_ptr(pdb, expected_pdb))
                return;
        print_error("%s: expected %s %s, got %s %s: %u %s\n", pod, eviction_answer_to_string(expected),
                    strempty(expected_pdb), eviction_answer_to_string(got), strempty(pdb), a.status,
                    strempty(a.body));
        _fail(file, line);
}

#define assert_eviction(r, ns, pod, uid, expected, pdb) \
        check_eviction((r), (ns), (pod), (uid), (expected), (pdb), __FILE__, __LINE__)

static bool is_terminating(Rig *r, const char *ns, const char *pod) {
        _cleanup_answer_ Answer a = rig_get(r, RIG_ADMIN, POD(ns, pod));

        return a.status == 404 || answer_string(&a, "metadata", "deletionTimestamp", NULL);
}

static int64_t allowed_now(Rig *r, const char *ns, const char *pdb) {
        _cleanup_answer_ Answer a = rig_get(r, RIG_ADMIN, PDB(ns, pdb));

        assert_answer(a, 200, NULL);
        return answer_int(&a, "status", "disruptionsAllowed", NULL);
}

/* 201, the pod is terminating with its own grace, and says why in a condition. Makes the namespace of the
 * cases without a budget. */
TEST_CASE(pod_without_a_budget) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;
        _cleanup_answer_ Answer a = { 0 }, pod = { 0 };
        const Json *condition;

        rig_make_namespace(r, "evict-plain");
        uid = rig_make_pod(r, "evict-plain", "p", RIG_NODE_NAME, "x");
        a = rig_evict(r, RIG_COORDINATOR, "evict-plain", "p", uid, -1);
        assert_answer(a, 201, NULL);
        assert_string_equal(answer_string(&a, "kind", NULL), "Status");
        pod = rig_get(r, RIG_ADMIN, POD("evict-plain", "p"));
        assert_non_null(answer_string(&pod, "metadata", "deletionTimestamp", NULL));
        assert_int_equal(answer_int(&pod, "metadata", "deletionGracePeriodSeconds", NULL), 30);
        condition = json_find(json_path(pod.json, "status", "conditions", NULL), "type", "DisruptionTarget");
        assert_string_equal(json_string_or_null(json_get(condition, "status")), "True");
        assert_string_equal(json_string_or_null(json_get(condition, "reason")), "EvictionByEvictionAPI");

        /* Asked again while it terminates: no harm. */
        assert_eviction(r, "evict-plain", "p", uid, EVICTION_ACCEPTED, NULL);
}

TEST_CASE(grace_of_an_eviction) {
        Rig *r = *state;
        _cleanup_free_ char *uid = rig_make_pod(r, "evict-plain", "grace", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer a = rig_evict(r, RIG_COORDINATOR, "evict-plain", "grace", uid, 4),
                                pod = { 0 };

        assert_answer(a, 201, NULL);
        pod = rig_get(r, RIG_ADMIN, POD("evict-plain", "grace"));
        assert_int_equal(answer_int(&pod, "metadata", "deletionGracePeriodSeconds", NULL), 4);
}

TEST_CASE(pod_gone_or_replaced) {
        Rig *r = *state;
        _cleanup_free_ char *uid = rig_make_pod(r, "evict-plain", "replaced", RIG_NODE_NAME, "x");

        assert_eviction(r, "evict-plain", "nobody", uid, EVICTION_GONE, NULL);
        assert_eviction(r, "evict-plain", "replaced", "4f0cfdc4-0000-4000-8000-000000000000",
                        EVICTION_REPLACED, NULL);
        assert_false(is_terminating(r, "evict-plain", "replaced"));
}

/* What a client makes of an eviction that nobody understands. */
TEST_CASE(evictions_that_are_none) {
        static const struct {
                const char *body;
                unsigned status;
        } rows[] = {
                { "{\"metadata\":{\"name\":\"other\"}}", 400 },
                { "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"broken\"}}", 400 },
                { "{\"metadata\":{\"name\":\"broken\"},\"deleteOptions\":{\"gracePeriodSeconds\":\"soon\"}}",
                  400 },
                { "nonsense", 400 },
                { "", 400 },
        };
        Rig *r = *state;
        _cleanup_free_ _unused_ char *uid = rig_make_pod(r, "evict-plain", "broken", RIG_NODE_NAME, "x");

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a = rig_http(r, RIG_ADMIN, HTTP_POST,
                                                     "/api/v1/namespaces/evict-plain/pods/broken/eviction",
                                                     "application/json", rows[i].body);

                print_message("  %s\n", rows[i].body);
                assert_int_equal(a.status, rows[i].status);
                assert_int_equal(eviction_classify(&a.error, NULL), EVICTION_REFUSED_FOR_GOOD);
        }
        assert_false(is_terminating(r, "evict-plain", "broken"));
}

/* -- budgets -------------------------------------------------------------------------------------- */

/* The budget is charged for the first; the second has to wait, and the refusal names who refuses. */
TEST_CASE(budget_is_charged) {
        Rig *r = *state;
        _cleanup_free_ char *one = NULL, *two = NULL;
        _cleanup_answer_ Answer refused = { 0 }, pdb = { 0 };

        rig_make_namespace(r, "evict-budget");
        rig_make_pdb(r, "evict-budget", "web-budget", "web", "");
        one = rig_make_pod(r, "evict-budget", "web-1", RIG_NODE_NAME, "web");
        two = rig_make_pod(r, "evict-budget", "web-2", RIG_NODE_NAME, "web");
        rig_set_pdb_status(r, "evict-budget", "web-budget", 1, 1, 2, 1);

        assert_eviction(r, "evict-budget", "web-1", one, EVICTION_ACCEPTED, NULL);
        pdb = rig_get(r, RIG_ADMIN, PDB("evict-budget", "web-budget"));
        assert_int_equal(answer_int(&pdb, "status", "disruptionsAllowed", NULL), 0);
        assert_non_null(answer_string(&pdb, "status", "disruptedPods", "web-1", NULL));

        refused = rig_evict(r, RIG_COORDINATOR, "evict-budget", "web-2", two, -1);
        assert_answer(refused, 429, "TooManyRequests");
        assert_true(api_error_has_cause(&refused.error, "DisruptionBudget"));
        assert_int_equal(refused.error.n_causes, 1);
        assert_string_equal(refused.error.causes[0].message,
                            "The disruption budget web-budget needs 1 healthy pods and has 2 currently");
        assert_int_equal(refused.error.retry_after_usec, 0);
        assert_eviction(r, "evict-budget", "web-2", two, EVICTION_BLOCKED_BY_PDB, "web-budget");
        assert_false(is_terminating(r, "evict-budget", "web-2"));

        /* It gives way. */
        rig_set_pdb_status(r, "evict-budget", "web-budget", 1, 1, 2, 1);
        assert_eviction(r, "evict-budget", "web-2", two, EVICTION_ACCEPTED, NULL);
}

/* Its controller has not looked at the newest budget: come again later. */
TEST_CASE(budget_not_observed) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;
        _cleanup_answer_ Answer a = { 0 };

        rig_make_namespace(r, "evict-unobserved");
        rig_make_pdb(r, "evict-unobserved", "young", "web", "");
        uid = rig_make_pod(r, "evict-unobserved", "p", RIG_NODE_NAME, "web");
        a = rig_evict(r, RIG_COORDINATOR, "evict-unobserved", "p", uid, -1);
        assert_answer(a, 429, "TooManyRequests");
        assert_int_equal(a.error.retry_after_usec, 10 * USEC_PER_SEC);
        /* Only a budget that allows something is said to be unobserved by the name; the cause is the same.
         */
        assert_true(api_error_has_cause(&a.error, "DisruptionBudget"));
        assert_eviction(r, "evict-unobserved", "p", uid, EVICTION_PDB_NOT_OBSERVED, "young");
        assert_false(is_terminating(r, "evict-unobserved", "p"));
}

/* A wrong uid costs the budget its place nevertheless. */
TEST_CASE(several_budgets) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;

        rig_make_namespace(r, "evict-several");
        rig_make_pdb(r, "evict-several", "a", "web", "");
        rig_make_pdb(r, "evict-several", "b", "web", "");
        rig_set_pdb_status(r, "evict-several", "a", 1, 1, 2, 1);
        rig_set_pdb_status(r, "evict-several", "b", 1, 1, 2, 1);
        uid = rig_make_pod(r, "evict-several", "p", RIG_NODE_NAME, "web");
        assert_eviction(r, "evict-several", "p", uid, EVICTION_SEVERAL_PDBS, NULL);
        assert_false(is_terminating(r, "evict-several", "p"));
        assert_int_equal(allowed_now(r, "evict-several", "a"), 1);
        assert_int_equal(allowed_now(r, "evict-several", "b"), 1);
}

/* Another namespace's budget, another app's, one of no pod: none of them is asked. */
TEST_CASE(budgets_of_others) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;
        _cleanup_answer_ Answer none = { 0 };

        rig_make_namespace(r, "evict-others");
        rig_make_namespace(r, "evict-elsewhere");
        rig_make_pdb(r, "evict-elsewhere", "same-app", "web", "");
        rig_make_pdb(r, "evict-others", "other-app", "db", "");
        none = rig_create(r, RIG_ADMIN, PDB("evict-others", NULL),
                          "{'metadata': {'name': 'no-selector'}, 'spec': {'maxUnavailable': 0}}");
        assert_answer(none, 201, NULL);
        uid = rig_make_pod(r, "evict-others", "p", RIG_NODE_NAME, "web");
        assert_eviction(r, "evict-others", "p", uid, EVICTION_ACCEPTED, NULL);
}

/* A selector {} is every pod of its namespace. */
TEST_CASE(budget_of_all) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;
        _cleanup_answer_ Answer all = { 0 };

        rig_make_namespace(r, "evict-all");
        all = rig_create(r, RIG_ADMIN, PDB("evict-all", NULL),
                         "{'metadata': {'name': 'all'}, 'spec': {'maxUnavailable': 0, 'selector': {}}}");
        assert_answer(all, 201, NULL);
        rig_set_pdb_status(r, "evict-all", "all", 1, 0, 1, 1);
        uid = rig_make_pod(r, "evict-all", "p", RIG_NODE_NAME, "anything");
        assert_eviction(r, "evict-all", "p", uid, EVICTION_BLOCKED_BY_PDB, "all");
}

/* Pods that are no loss pass a budget that allows none, and cost it nothing. */
TEST_CASE(pods_that_ask_no_budget) {
        static const struct {
                const char *name, *phase;
                bool passes;
        } rows[] = {
                { "pending", NULL, true },
                { "succeeded", "Succeeded", true },
                { "failed", "Failed", true },
                { "running", "Running", false },
        };
        Rig *r = *state;

        rig_make_namespace(r, "evict-no-loss");
        rig_make_pdb(r, "evict-no-loss", "none", "web", "");
        rig_set_pdb_status(r, "evict-no-loss", "none", 1, 0, 1, 1);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *uid =
                        rig_make_pending_pod(r, "evict-no-loss", rows[i].name, RIG_NODE_NAME, "web", "");

                if (rows[i].phase)
                        rig_set_pod_status(r, "evict-no-loss", rows[i].name, rows[i].phase, true);
                assert_eviction(r, "evict-no-loss", rows[i].name, uid,
                                rows[i].passes ? EVICTION_ACCEPTED : EVICTION_BLOCKED_BY_PDB,
                                rows[i].passes ? NULL : "none");
                assert_int_equal(is_terminating(r, "evict-no-loss", rows[i].name), rows[i].passes);
        }
}

/* A pod that is not Ready: always, or where the rest is healthy enough. */
TEST_CASE(pods_that_are_not_ready) {
        static const struct {
                const char *ns, *policy;
                int64_t current, desired;
                bool passes;
        } rows[] = {
                { "evict-sick-always", "'unhealthyPodEvictionPolicy': 'AlwaysAllow'", 0, 1, true },
                { "evict-sick-enough", "", 2, 2, true },
                { "evict-sick-named", "'unhealthyPodEvictionPolicy': 'IfHealthyBudget'", 2, 2, true },
                { "evict-sick-short", "", 1, 2, false },
                { "evict-sick-nothing", "", 0, 0, false },
        };
        Rig *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *uid = NULL;

                rig_make_namespace(r, rows[i].ns);
                rig_make_pdb(r, rows[i].ns, "sick", "web", rows[i].policy);
                rig_set_pdb_status(r, rows[i].ns, "sick", 1, 0, rows[i].current, rows[i].desired);
                uid = rig_make_pending_pod(r, rows[i].ns, "p", RIG_NODE_NAME, "web", "");
                rig_set_pod_status(r, rows[i].ns, "p", "Running", false);
                assert_eviction(r, rows[i].ns, "p", uid,
                                rows[i].passes ? EVICTION_ACCEPTED : EVICTION_BLOCKED_BY_PDB,
                                rows[i].passes ? NULL : "sick");
        }
}

/* -- what is no matter of budgets ----------------------------------------------------------------- */

/* 403 with a cause of its own: for creates, as an eviction is one. */
TEST_CASE(namespace_is_terminating) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;
        _cleanup_answer_ Answer gone = { 0 }, pod = { 0 };

        rig_make_namespace(r, "evict-ending");
        uid = rig_make_pod(r, "evict-ending", "p", RIG_NODE_NAME, "web");
        gone = rig_delete(r, RIG_ADMIN, NAMESPACE("evict-ending"), NULL);
        assert_answer(gone, 200, NULL);
        assert_eviction(r, "evict-ending", "p", uid, EVICTION_NAMESPACE_TERMINATING, NULL);
        pod = rig_create(
                r, RIG_ADMIN, POD("evict-ending", NULL),
                "{'metadata': {'name': 'late'}, 'spec': {'containers': [{'name': 'a', 'image': 'b'}]}}");
        assert_answer(pod, 403, "Forbidden");
        assert_true(api_error_has_cause(&pod.error, "NamespaceTerminating"));
}

TEST_CASE(eviction_is_forbidden) {
        Rig *r = *state;
        _cleanup_free_ char *uid = rig_make_pod(r, "evict-plain", "forbidden", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer a = rig_evict(r, RIG_STRANGER, "evict-plain", "forbidden", uid, -1);

        assert_answer(a, 403, "Forbidden");
        assert_int_equal(eviction_classify(&a.error, NULL), EVICTION_FORBIDDEN);
        assert_false(is_terminating(r, "evict-plain", "forbidden"));
}

/* A finalizer on the pod: accepted, and it stays. */
TEST_CASE(evicted_and_held) {
        Rig *r = *state;
        _cleanup_free_ char *uid = rig_make_pod(r, "evict-plain", "held", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer held = { 0 }, freed = { 0 };

        held = rig_merge(r, RIG_ADMIN, POD("evict-plain", "held"),
                         "{'metadata': {'finalizers': ['a.example/b']}}");
        assert_answer(held, 200, NULL);
        assert_eviction(r, "evict-plain", "held", uid, EVICTION_ACCEPTED, NULL);
        assert_true(is_terminating(r, "evict-plain", "held"));
        freed = rig_merge(r, RIG_ADMIN, POD("evict-plain", "held"), "{'metadata': {'finalizers': null}}");
        assert_answer(freed, 200, NULL);
}

static EvictionAnswer would_be(Rig *r, const char *pod, const char *uid, char **ret_pdb) {
        _cleanup_answer_ Answer a = rig_evict_dry(r, RIG_COORDINATOR, "evict-dry", pod, uid);
        bool failed = a.error.http != 0 || a.error.error != 0;

        if (!failed)
                assert_int_equal(a.status, 201);
        return eviction_classify(failed ? &a.error : NULL, ret_pdb);
}

/* A dry run is answered as the eviction would be, budget by budget, and leaves pod and budget as they are; so that of two
 * pods of a budget with room for one each alone would go. */
TEST_CASE(eviction_on_trial) {
        Rig *r = *state;
        _cleanup_free_ char *one = NULL, *two = NULL, *free_pod = NULL, *pdb = NULL, *none = NULL;
        _cleanup_answer_ Answer pod = { 0 };

        rig_make_namespace(r, "evict-dry");
        rig_make_pdb(r, "evict-dry", "web-budget", "web", "");
        one = rig_make_pod(r, "evict-dry", "web-1", RIG_NODE_NAME, "web");
        two = rig_make_pod(r, "evict-dry", "web-2", RIG_NODE_NAME, "web");
        free_pod = rig_make_pod(r, "evict-dry", "free", RIG_NODE_NAME, "db");

        rig_set_pdb_status(r, "evict-dry", "web-budget", 1, 1, 2, 1);
        assert_int_equal(would_be(r, "web-1", one, NULL), EVICTION_ACCEPTED);
        assert_int_equal(would_be(r, "web-2", two, NULL), EVICTION_ACCEPTED);
        assert_int_equal(would_be(r, "free", free_pod, NULL), EVICTION_ACCEPTED);
        assert_int_equal(allowed_now(r, "evict-dry", "web-budget"), 1);
        assert_false(is_terminating(r, "evict-dry", "web-1"));
        assert_false(is_terminating(r, "evict-dry", "free"));
        pod = rig_get(r, RIG_ADMIN, POD("evict-dry", "free"));
        assert_null(json_find(json_path(pod.json, "status", "conditions", NULL), "type", "DisruptionTarget"));

        assert_int_equal(would_be(r, "nobody", free_pod, NULL), EVICTION_GONE);
        assert_int_equal(would_be(r, "free", one, NULL), EVICTION_REPLACED);

        rig_set_pdb_status(r, "evict-dry", "web-budget", 1, 0, 2, 2);
        assert_int_equal(would_be(r, "web-1", one, &pdb), EVICTION_BLOCKED_BY_PDB);
        assert_string_equal(pdb, "web-budget");
        rig_make_pdb(r, "evict-dry", "second", "web", "");
        assert_int_equal(would_be(r, "web-1", one, &none), EVICTION_SEVERAL_PDBS);
        assert_null(none);
}

/* Of a Node's patch, too. */
TEST_CASE(cordon_on_trial) {
        Rig *r = *state;
        _cleanup_answer_ Answer made = { 0 }, dry = { 0 }, after = { 0 }, old = { 0 };

        made = rig_create(r, RIG_ADMIN, NODE(NULL), "{'metadata':{'name':'cordon-dry'}}");
        assert_answer(made, 201, NULL);
        dry = rig_merge_dry(r, RIG_COORDINATOR, NODE("cordon-dry"),
                            "{'metadata':{'annotations':{'a.example/b':'c'}},'spec':{'unschedulable':true}}");
        assert_answer(dry, 200, NULL);
        assert_string_equal(answer_string(&dry, "metadata", "annotations", "a.example/b", NULL), "c");
        after = rig_get(r, RIG_ADMIN, NODE("cordon-dry"));
        assert_null(json_path(after.json, "spec", "unschedulable", NULL));
        assert_string_equal(answer_string(&after, "metadata", "resourceVersion", NULL),
                            answer_string(&made, "metadata", "resourceVersion", NULL));
        old = rig_merge_dry(r, RIG_COORDINATOR, NODE("cordon-dry"),
                            "{'metadata':{'resourceVersion':'1'},'spec':{'unschedulable':true}}");
        assert_answer(old, 409, "Conflict");
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(pod_without_a_budget),    cmocka_unit_test(grace_of_an_eviction),
        cmocka_unit_test(pod_gone_or_replaced),    cmocka_unit_test(evictions_that_are_none),
        cmocka_unit_test(budget_is_charged),       cmocka_unit_test(budget_not_observed),
        cmocka_unit_test(several_budgets),         cmocka_unit_test(budgets_of_others),
        cmocka_unit_test(budget_of_all),           cmocka_unit_test(pods_that_ask_no_budget),
        cmocka_unit_test(pods_that_are_not_ready), cmocka_unit_test(namespace_is_terminating),
        cmocka_unit_test(eviction_is_forbidden),   cmocka_unit_test(evicted_and_held),
        cmocka_unit_test(eviction_on_trial),       cmocka_unit_test(cordon_on_trial),
};
CONTRACT_SUITE(evict, cases);
