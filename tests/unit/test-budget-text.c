/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-text-rows.h"
#include "budget-text.h"
#include "cmocka-test.h"
#include "string-util.h"

/* 2027-01-15T08:00:00Z */
#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)

static KubeNodeBudget budget_of(NodeAmountUnit unit, bool is_min, int64_t value) {
        const NodeAmount amount = { unit, value };
        KubeNodeBudget b = { .object.meta.name = (char *) "web" };

        if (unit == NODE_AMOUNT_UNSET)
                b.object.invalid =
                        (char *) "spec.minAvailable: '3 nodes' is neither a number of nodes nor a percentage from 0% to 100%";
        else if (is_min)
                b.min_available = amount;
        else
                b.max_unavailable = amount;
        return b;
}

static BudgetUsers users_of(size_t n_all) {
        static const char *const names[] = { "n1", "n2", "n3", "n4", "n5" };
        static const char *const whys[] = { "is being deleted", "is not Ready", "may be deleted",
                                            "may reboot", "is not Ready" };
        BudgetUsers u = { .n = MIN(n_all, (size_t) BUDGET_USERS_MAX), .n_all = n_all };

        for (size_t i = 0; i < u.n; i++)
                u.list[i] = (BudgetUser) { names[i], whys[i], i == 4 ? 0 : NOW + i * USEC_PER_MINUTE };
        return u;
}

TEST_CASE(test_sentences) {
        for (size_t i = 0; i < ELEMENTSOF(budget_sentence_rows); i++) {
                const BudgetSentenceRow *row = budget_sentence_rows + i;
                KubeNodeBudget b = budget_of(row->unit, row->is_min, row->value);
                BudgetFigures f =
                        budget_figures(&b, row->expected, row->expected - row->n_unavailable);
                BudgetUsers users = users_of((size_t) row->n_unavailable);
                _cleanup_free_ char *text = budget_text_refusal(&b, &f, &users, "n9", row->begun);
                const char *rest =
                        startswith(text, "NodeDisruptionBudget web allows no disruption of node n9 now: ");

                assert_non_null(rest);
                assert_string_equal(rest, row->text);
        }
}

/* Names are 253 bytes long at most. Of the nodes as many are named as there is room for, and what to do is
 * always told. */
TEST_CASE(test_bounded) {
        KubeNodeBudget b = budget_of(NODE_AMOUNT_NODES, true, 41);
        BudgetFigures f = budget_figures(&b, 50, 41);
        char name[254] = { 0 };

        for (size_t size = 1; size <= 253; size++) {
                BudgetUsers users = users_of(9);
                _cleanup_free_ char *text = NULL;

                memset(name, 'n', size);
                b.object.meta.name = name;
                for (size_t i = 0; i < users.n; i++)
                        users.list[i].node = name;
                text = budget_text_refusal(&b, &f, &users, name, false);
                assert_in_range(strlen(text), 400, BUDGET_TEXT_BYTES_MAX);
                assert_non_null(strstr(text, size < 60    ? " and 4 more."
                                             : size < 253 ? "Unavailable are "
                                                          : "Unavailable are 9 of them."));
                assert_non_null(endswith(
                        text,
                        " Try again when one of them is available again, or has a successor, or change the budget."));
        }
}

TEST_CASE(test_held) {
        const KubeNodeBudget b = budget_of(NODE_AMOUNT_NODES, true, 1);

        for (size_t i = 0; i < ELEMENTSOF(budget_held_rows); i++) {
                const BudgetHeldRow *row = budget_held_rows + i;
                NodeCharge c = row->charge;
                _cleanup_free_ char *text = NULL;

                c.time_usec = NOW;
                text = budget_text_held(&b, &c, "n9");
                assert_string_equal(text, row->text);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sentences),
                cmocka_unit_test(test_bounded),
                cmocka_unit_test(test_held),
        };
        return cmocka_run_group_tests_name("budget-text", tests, NULL, NULL);
}
