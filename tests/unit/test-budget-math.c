/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-math.h"
#include "budget-status.h"
#include "cmocka-test.h"
#include "string-util.h"

/* As the API server would send it, with ' for ". */
static KubeNodeBudget *decode(InternPool *pool, const char *spec, const char *status) {
        _cleanup_free_ char *text = strf("{'metadata':{'name':'b','uid':'u','resourceVersion':'7','generation':2},'spec':%s,'status':%s}",
                                         spec, status);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;
        int r;

        for (char *p = text; *p; p++)
                if (*p == '\'')
                        *p = '"';
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        r = kube_object_decode(&kube_node_budget_kind, json_root(doc), pool, &o);
        assert_true(r == 0 || (r == -EINVAL && o));
        return (KubeNodeBudget *) o;
}

static void forget(KubeNodeBudget *b) {
        kube_object_unref((KubeObject *) b);
}

#define SELECTS "'selector':{'matchLabels':{'pool':'a'}}"

TEST_CASE(test_decode) {
        static const struct {
                const char *spec, *invalid; /* invalid: a part of the sentence; NULL: valid */
                bool readable, selects;
        } rows[] = {
                { "{'minAvailable':3," SELECTS "}", NULL, true, true },
                { "{'maxUnavailable':'20%'," SELECTS "}", NULL, true, true },
                { "{'minAvailable':0," SELECTS "}", NULL, true, true },
                { "{'minAvailable':1}", NULL, true, false },
                { "{'minAvailable':1,'selector':null}", NULL, true, false },
                { "{'minAvailable':1,'selector':{}}", NULL, true, false },
                { "{" SELECTS "}", "neither minAvailable nor maxUnavailable", false, true },
                { "{'minAvailable':1,'maxUnavailable':1," SELECTS "}", "both minAvailable and maxUnavailable", false, true },
                { "{'minAvailable':-1," SELECTS "}", "spec.minAvailable is negative", false, true },
                { "{'minAvailable':'101%'," SELECTS "}", "'101%' is neither a number of nodes nor a percentage", false, true },
                { "{'minAvailable':'3'," SELECTS "}", "'3' is neither", false, true },
                { "{'minAvailable':'%'," SELECTS "}", "'%' is neither", false, true },
                { "{'maxUnavailable':'5 %'," SELECTS "}", "'5 %' is neither", false, true },
                { "{'maxUnavailable':1.5," SELECTS "}", "spec.maxUnavailable is neither", false, true },
                { "{'maxUnavailable':true," SELECTS "}", "spec.maxUnavailable is neither", false, true },
                { "{'maxUnavailable':1,'selector':{'matchExpressions':[{'key':'a','operator':'Like'}]}}", "spec.selector is no label selector",
                  true, false },
        };
        InternPool *pool = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNodeBudget *b = decode(pool, rows[i].spec, "{}");

                print_message("  %s\n", rows[i].spec);
                if (rows[i].invalid)
                        assert_non_null(strstr(strempty(b->object.invalid), rows[i].invalid));
                else
                        assert_null(b->object.invalid);
                assert_int_equal(budget_amount_is_readable(b), rows[i].readable);
                assert_int_equal(!selector_is_empty(b->selector), rows[i].selects);
                assert_int_equal(b->observed_generation, -1);
                forget(b);
        }
}

TEST_CASE(test_decode_status) {
        KubeNodeBudget *b = decode(
                *state, "{'minAvailable':3," SELECTS "}",
                "{'expectedNodes':5,'currentAvailable':4,'desiredAvailable':3,'disruptionsAllowed':1,"
                "'observedGeneration':2,'disruptedNodes':[{'name':'n1','uid':'u1','time':'2026-01-01T00:00:00Z',"
                "'kind':'reboot','holder':'x','until':'2026-01-01T00:02:00Z'}]}");

        assert_int_equal(b->expected_nodes, 5);
        assert_int_equal(b->disruptions_allowed, 1);
        assert_int_equal(b->observed_generation, 2);
        assert_int_equal(b->n_charges, 1);
        assert_null(kube_node_budget_charge(b, "u2"));
        assert_int_equal(kube_node_budget_charge(b, "u1")->kind, NODE_CHARGE_REBOOT);
        assert_int_equal(b->charges->until_usec - b->charges->time_usec, 2 * USEC_PER_MINUTE);
        forget(b);
}

/* A charge that an earlier version wrote is a DELETE of an unknown holder. */
TEST_CASE(test_decode_holder) {
        static const struct {
                const char *members;
                NodeChargeKind kind;
                const char *holder, *held_before;
        } rows[] = {
                { "'kind':'DELETE','holder':'alice'", NODE_CHARGE_DELETE, "alice", NULL },
                { "'kind':'DELETE','holder':'alice','heldBefore':'slot-1'", NODE_CHARGE_DELETE, "alice",
                  "slot-1" },
                { "'kind':'reboot','holder':'slot-1'", NODE_CHARGE_REBOOT, "slot-1", NULL },
                { "'kind':'operation','holder':'u9'", NODE_CHARGE_OPERATION, "u9", NULL },
                { "'kind':'successor','holder':'u9'", NODE_CHARGE_SUCCESSOR, "u9", NULL },
                { "'x':0", NODE_CHARGE_DELETE, NULL, NULL },
                { "'kind':'Deletion','holder':'webhook'", NODE_CHARGE_DELETE, NULL, NULL },
                { "'kind':'Reboot','holder':'reboot'", NODE_CHARGE_DELETE, NULL, NULL },
                { "'holder':'alice','heldBefore':'slot-1'", NODE_CHARGE_DELETE, NULL, NULL },
                { "'kind':'reboot'", NODE_CHARGE_DELETE, NULL, NULL },
                { "'kind':'reboot','holder':''", NODE_CHARGE_DELETE, NULL, NULL },
                { "'kind':7,'holder':'alice'", NODE_CHARGE_DELETE, NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *status =
                        strf("{'disruptedNodes':[{'name':'n1','uid':'u1',%s}]}", rows[i].members);
                KubeNodeBudget *b = decode(*state, "{'minAvailable':3," SELECTS "}", status);

                print_message("  %s\n", rows[i].members);
                assert_int_equal(b->charges->kind, rows[i].kind);
                assert_true(streq_ptr(b->charges->holder, rows[i].holder));
                assert_true(streq_ptr(b->charges->held_before, rows[i].held_before));
                forget(b);
        }
}

/* As the disruption controller rounds: up, both ways. */
TEST_CASE(test_figures) {
        static const struct {
                const char *amount;
                int64_t expected, available, desired, allowed;
                bool never, stops;
        } rows[] = {
                { "'minAvailable':3", 5, 5, 3, 2, false, false },
                { "'minAvailable':3", 5, 3, 3, 0, false, false },
                { "'minAvailable':3", 5, 1, 3, 0, false, false },
                { "'minAvailable':9", 5, 5, 9, 0, true, false },
                { "'minAvailable':0", 5, 1, 0, 1, false, false },
                { "'minAvailable':'100%'", 5, 5, 5, 0, true, false },
                { "'minAvailable':'0%'", 5, 5, 0, 5, false, false },
                { "'maxUnavailable':0", 5, 5, 5, 0, true, false },
                { "'maxUnavailable':1", 5, 5, 4, 1, false, false },
                { "'maxUnavailable':1", 5, 4, 4, 0, false, false },
                { "'maxUnavailable':9", 5, 2, 0, 2, false, false },
                { "'maxUnavailable':'5%'", 3, 3, 2, 1, false, false }, /* rounded up: one */
                { "'maxUnavailable':'100%'", 5, 5, 0, 5, false, false },
                { "'minAvailable':'33%'", 3, 3, 1, 2, false, false },
                { "'minAvailable':'34%'", 3, 3, 2, 1, false, false },
                /* 80 % of 5, of the 4 that are left, of 3: a standstill at 4. */
                { "'minAvailable':'80%'", 5, 5, 4, 1, false, false },
                { "'minAvailable':'80%'", 4, 4, 4, 0, true, true },
                { "'maxUnavailable':'20%'", 5, 5, 4, 1, false, false },
                { "'maxUnavailable':'20%'", 4, 4, 3, 1, false, false },
                { "'minAvailable':'99%'", 1000000007, 1000000007, 990000007, 10000000, false, false },
                { "'minAvailable':'x'", 5, 5, 5, 0, true, false },
        };
        InternPool *pool = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *spec = strf("{%s," SELECTS "}", rows[i].amount);
                KubeNodeBudget *b = decode(pool, spec, "{}");
                BudgetFigures f = budget_figures(b, rows[i].expected, rows[i].available);

                print_message("  %s of %lld\n", rows[i].amount, (long long) rows[i].expected);
                assert_int_equal(f.desired, rows[i].desired);
                assert_int_equal(f.allowed, rows[i].allowed);
                assert_int_equal(budget_never_allows(b, rows[i].expected), rows[i].never);
                assert_int_equal(budget_stops_as_nodes_go(b, rows[i].expected), rows[i].stops);
                forget(b);
        }
}

/* A budget that a kubelet can join says so, in words that do not change with its figures. */
TEST_CASE(test_open_to_kubelets) {
        static const struct {
                const char *selector, *expected;
        } rows[] = {
                { "{'matchLabels':{'pool':'a'}}", "\"type\":\"SelectorOpenToKubelets\",\"status\":\"True\",\"reason\":\"LabelOfKubelet\",\"message\":\"A kubelet may set pool on its own Node" },
                { "{'matchLabels':{'vesper.sh/nodepool':'a'}}", "A kubelet may set vesper.sh/nodepool on its own Node" },
                { "{'matchLabels':{'node-restriction.kubernetes.io/pool':'a'}}", "\"type\":\"SelectorOpenToKubelets\",\"status\":\"False\",\"reason\":\"LabelsProtected\"" },
                { "{}", "\"type\":\"SelectorOpenToKubelets\",\"status\":\"False\",\"reason\":\"SelectsNothing\"" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *spec = strf("{'maxUnavailable':2,'selector':%s}", rows[i].selector), *patch = NULL, *status = NULL;
                KubeNodeBudget *b = decode(*state, spec, "{}"), *again;
                BudgetFigures f = budget_figures(b, 5, 4);
                const char *from;

                print_message("%s\n", rows[i].selector);
                patch = budget_status_patch(b, NULL, 0, &f, f.allowed, USEC_PER_HOUR);
                assert_non_null(patch);
                assert_non_null(strstr(patch, rows[i].expected));
                from = strstr(patch, "\"status\":") + strlen("\"status\":");
                status = strndup(from, strlen(from) - 1);
                again = decode(*state, spec, status);
                assert_true(budget_status_says(again, &f));
                forget(again);
                forget(b);
        }
}

/* What is written is read again as the same, and is not written a second time. */
TEST_CASE(test_status) {
        NodeCharge charge = { .name = (char *) "n1",
                              .uid = (char *) "u1",
                              .kind = NODE_CHARGE_DELETE,
                              .holder = (char *) "alice",
                              .held_before = (char *) "slot-1",
                              .time_usec = USEC_PER_HOUR,
                              .until_usec = USEC_PER_HOUR + USEC_PER_MINUTE };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *patch = NULL, *status = NULL;
        KubeNodeBudget *b = decode(*state, "{'maxUnavailable':2," SELECTS "}", "{}"), *again;
        BudgetFigures f = budget_figures(b, 5, 4);
        const char *from;

        assert_false(budget_status_says(b, &f));
        patch = budget_status_patch(b, &charge, 1, &f, f.allowed, 2 * USEC_PER_HOUR);
        assert_return_code(json_parse(patch, strlen(patch), 1u << 16, &doc, NULL), 0);
        assert_string_equal(json_string_or_null(json_path(json_root(doc), "metadata", "resourceVersion", NULL)), "7");
        from = strstr(patch, "\"status\":") + strlen("\"status\":");
        status = strndup(from, strlen(from) - 1);
        again = decode(*state, "{'maxUnavailable':2," SELECTS "}", status);
        assert_true(budget_status_says(again, &f));
        assert_int_equal(again->n_charges, 1);
        assert_int_equal(again->charges->until_usec, charge.until_usec);
        assert_int_equal(again->charges->kind, NODE_CHARGE_DELETE);
        assert_string_equal(again->charges->holder, "alice");
        assert_string_equal(again->charges->held_before, "slot-1");
        f.allowed--;
        assert_false(budget_status_says(again, &f));
        forget(again);
        forget(b);
}

static int setup(void **state) {
        InternPool *pool;

        assert_return_code(intern_pool_new(&pool), 0);
        *state = pool;
        return 0;
}

static int teardown(void **state) {
        intern_pool_free(*state);
        return 0;
}

#define SAYS(key, action, phase, boot) \
        "'annotations':{'vesper.sh/" key "':'{\\'id\\':\\'i\\',\\'action\\':\\'" action "\\',\\'phase\\':\\'" phase "\\',\\'bootID\\':\\'" boot "\\'}'}"
#define FINALIZED "'finalizers':['vesper.sh/termination']"
#define DELETED "'deletionTimestamp':'2027-01-15T08:00:00Z'"

/* How a node counts: available, drained, ending by a notice, and free to go whatever its budgets say. */
TEST_CASE(test_nodes) {
        static const struct {
                const char *what, *meta, *spec, *ready;
                bool available, drained, ending, passes;
        } rows[] = {
                { "in service", "", "", "True", true, false, false, false },
                { "not Ready", "", "", "Unknown", false, false, false, true },
                { "cordoned by somebody", "", "'unschedulable':true", "True", true, false, false, false },
                { "drained by vesperctl", "'annotations':{'vesper.sh/cordoned-by-vesperctl':'{}'}", "'unschedulable':true", "True", false, true, false,
                  false },
                { "opened again by a person", "'annotations':{'vesper.sh/cordoned-by-vesperctl':'{}'}", "", "True", true, false, false, false },
                { "removal held at the second gate", FINALIZED "," DELETED, "", "True", true, false, false, false },
                { "removal past the second gate", FINALIZED "," DELETED, "'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]", "True",
                  false, true, false, true },
                { "deleted, and kept by another finalizer", "'finalizers':['a/b']," DELETED, "", "True", false, false, false, true },
                { "taken by an operation", "", "'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]", "True", false, true, false, true },
                { "spot notice, just cordoned", SAYS("interruption", "terminate", "Cordoned", "b1"), "", "True", false, true, true, true },
                { "spot notice, drained", SAYS("interruption", "terminate", "Drained", "b1"), "", "True", false, true, true, true },
                { "hibernation", SAYS("interruption", "hibernate", "Draining", "b1"), "", "True", false, true, true, true },
                { "reboot, only cordoned", SAYS("interruption", "reboot", "Cordoned", "b1"), "", "True", true, false, false, false },
                { "reboot, drained", SAYS("interruption", "reboot", "Drained", "b1"), "", "True", false, true, false, false },
                { "reboot, in a phase of a later version", SAYS("interruption", "reboot", "Hiding", "b1"), "", "True", false, true, false, false },
                { "released by a person", SAYS("interruption", "terminate", "Released", "b1"), "", "True", true, false, false, false },
                { "of an earlier boot", SAYS("interruption", "terminate", "Draining", "b0"), "", "True", true, false, false, false },
                { "announced by the queue, and it may be weeks away", SAYS("announced", "terminate", "", "b1"), "", "True", true, false, false, false },
                { "drained for what the queue announced", SAYS("heard", "terminate", "Draining", "b1"), "", "True", false, true, true, true },
                { "drained for a reboot that the queue announced", SAYS("heard", "reboot", "Drained", "b1"), "", "True", false, true, false, false },
                { "announced by the queue in an earlier boot", SAYS("heard", "terminate", "Draining", "b0"), "", "True", true, false, false, false },
        };
        InternPool *pool = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{'metadata':{'name':'n','uid':'u'%s%s},'spec':{%s},'status':{'nodeInfo':{'bootID':'b1'},"
                                                 "'conditions':[{'type':'Ready','status':'%s'}]}}",
                                                 rows[i].meta[0] ? "," : "", rows[i].meta, rows[i].spec, rows[i].ready);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                const KubeNode *n;
                KubeObject *o;

                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
                assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
                n = (const KubeNode *) o;
                if (budget_node_is_available(n) != rows[i].available || budget_node_is_drained(n) != rows[i].drained ||
                    budget_node_is_ending(n) != rows[i].ending || budget_node_passes(n) != rows[i].passes)
                        fail_msg("%s: available %d, drained %d, ending %d, passes %d", rows[i].what, budget_node_is_available(n),
                                 budget_node_is_drained(n), budget_node_is_ending(n), budget_node_passes(n));
                kube_object_unref(o);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_decode, setup, teardown),
                cmocka_unit_test_setup_teardown(test_decode_status, setup, teardown),
                cmocka_unit_test_setup_teardown(test_decode_holder, setup, teardown),
                cmocka_unit_test_setup_teardown(test_figures, setup, teardown),
                cmocka_unit_test_setup_teardown(test_status, setup, teardown),
                cmocka_unit_test_setup_teardown(test_open_to_kubelets, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nodes, setup, teardown),
        };
        return cmocka_run_group_tests_name("budget-math", tests, NULL, NULL);
}
