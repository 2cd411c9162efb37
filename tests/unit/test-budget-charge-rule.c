/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-charge-rows.h"
#include "cmocka-test.h"
#include "string-util.h"

TEST_CASE(test_claim) {
        assert_int_equal(budget_charge_claim(NULL, D, "alice", false, H), CHARGE_CLAIM_NONE);
        for (size_t i = 0; i < ELEMENTSOF(charge_claim_rows); i++) {
                const ChargeClaimRow *row = charge_claim_rows + i;
                NodeCharge c = { .kind = row->kind,
                                 .holder = (char *) row->holder,
                                 .time_usec = H };

                print_message("  %zu\n", i);
                assert_int_equal(budget_charge_claim(&c, row->asks, row->who, row->begun, H),
                                 row->claim);
        }
}

TEST_CASE(test_renewal) {
        for (size_t i = 0; i < ELEMENTSOF(charge_renewal_rows); i++) {
                const ChargeRenewalRow *row = charge_renewal_rows + i;
                NodeCharge c = { .kind = row->kind, .holder = (char *) "x", .time_usec = H };

                print_message("  %zu\n", i);
                assert_int_equal(
                        budget_charge_claim(&c, row->kind, "x", row->begun, H + row->age_usec),
                        row->claim);
        }
}

/* A letter for each fact: node, deletion, holder, holder before, release. */
static ChargeFacts charge_facts(const char *letters, usec_t seen_usec, usec_t unheld_usec) {
        return (ChargeFacts) { .node_is_there = strchr(letters, 'n'),
                               .node_is_deleting = strchr(letters, 'd'),
                               .holder_stands = strchr(letters, 'h'),
                               .is_held_before = strchr(letters, 'b'),
                               .is_released = strchr(letters, 'r'),
                               .seen_usec = seen_usec,
                               .unheld_usec = unheld_usec };
}

TEST_CASE(test_fate) {
        for (size_t i = 0; i < ELEMENTSOF(charge_fate_rows); i++) {
                const ChargeFateRow *row = charge_fate_rows + i;
                NodeCharge c = { .kind = row->kind,
                                 .holder = (char *) "x",
                                 .held_before = (char *) row->held_before,
                                 .time_usec = H,
                                 .until_usec = row->lasts_usec > 0 ? H + row->lasts_usec : 0 };
                ChargeFacts f = charge_facts(row->facts, row->seen_usec, row->unheld_usec);
                usec_t left;

                print_message("  %s\n", row->what);
                assert_int_equal(budget_charge_fate(&c, &f, &left), row->fate);
                assert_int_equal(left, row->left_usec);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_claim),
                                                   cmocka_unit_test(test_renewal),
                                                   cmocka_unit_test(test_fate) };

        return cmocka_run_group_tests_name("budget-charge-rule", tests, NULL, NULL);
}
