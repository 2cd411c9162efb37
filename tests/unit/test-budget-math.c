/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-math-rows.h"
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

TEST_CASE(test_figures) {
        InternPool *pool = *state;

        for (size_t i = 0; i < ELEMENTSOF(budget_figure_rows); i++) {
                const BudgetFigureRow *row = budget_figure_rows + i;
                _cleanup_free_ char *spec = strf("{%s," SELECTS "}", row->amount);
                KubeNodeBudget *b = decode(pool, spec, "{}");
                BudgetFigures f = budget_figures(b, row->expected, row->available);

                print_message("  %s of %lld\n", row->amount, (long long) row->expected);
                assert_int_equal(f.desired, row->desired);
                assert_int_equal(f.allowed, row->allowed);
                assert_int_equal(budget_never_allows(b, row->expected), row->never);
                assert_int_equal(budget_stops_as_nodes_go(b, row->expected), row->stops);
                forget(b);
        }
}

/* A budget that a kubelet can join says so, in words that do not change with its figures. */
TEST_CASE(test_open_to_kubelets) {
        for (size_t i = 0; i < ELEMENTSOF(budget_selector_rows); i++) {
                const BudgetSelectorRow *row = budget_selector_rows + i;
                _cleanup_free_ char *spec = strf("{'maxUnavailable':2,'selector':%s}", row->selector), *patch = NULL, *status = NULL;
                KubeNodeBudget *b = decode(*state, spec, "{}"), *again;
                BudgetFigures f = budget_figures(b, 5, 4);
                const char *from;

                print_message("%s\n", row->selector);
                patch = budget_status_patch(b, NULL, 0, &f, f.allowed, USEC_PER_HOUR);
                assert_non_null(patch);
                assert_non_null(strstr(patch, row->expected));
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

TEST_CASE(test_nodes) {
        InternPool *pool = *state;

        for (size_t i = 0; i < ELEMENTSOF(budget_node_rows); i++) {
                const BudgetNodeRow *row = budget_node_rows + i;
                _cleanup_free_ char *text = strf("{'metadata':{'name':'n','uid':'u'%s%s},'spec':{%s},'status':{'nodeInfo':{'bootID':'b1'},"
                                                 "'conditions':[{'type':'Ready','status':'%s'}]}}",
                                                 row->meta[0] ? "," : "", row->meta, row->spec, row->ready);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                const KubeNode *n;
                KubeObject *o;

                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
                assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
                n = (const KubeNode *) o;
                if (budget_node_is_available(n) != row->available || budget_node_is_drained(n) != row->drained ||
                    budget_node_is_ending(n) != row->ending || budget_node_passes(n) != row->passes)
                        fail_msg("%s: available %d, drained %d, ending %d, passes %d", row->what, budget_node_is_available(n),
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
