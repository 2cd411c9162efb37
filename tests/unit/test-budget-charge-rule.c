/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-charge-rule.h"
#include "cmocka-test.h"
#include "string-util.h"

#define D NODE_CHARGE_DELETE
#define R NODE_CHARGE_REBOOT
#define O NODE_CHARGE_OPERATION
#define S NODE_CHARGE_SUCCESSOR

#define min USEC_PER_MINUTE
#define hour USEC_PER_HOUR
#define never USEC_INFINITY
#define STANDS CHARGE_FATE_STANDS
#define ENDS CHARGE_FATE_ENDS
#define GOES_BACK CHARGE_FATE_GOES_BACK

TEST_CASE(test_claim) {
        static const struct {
                NodeChargeKind kind;
                const char *holder; /* of the charge */
                NodeChargeKind asks;
                const char *who;
                bool begun;
                ChargeClaim claim;
        } rows[] = {
                { D, "alice", D, "alice", false, CHARGE_CLAIM_OWN },
                { R, "slot-1", R, "slot-1", false, CHARGE_CLAIM_OWN },
                { O, "u1", O, "u1", false, CHARGE_CLAIM_OWN },
                { S, "u1", S, "u1", false, CHARGE_CLAIM_OWN },
                { D, "alice", D, "bob", false, CHARGE_CLAIM_REFUSED },
                /* A charge of a deletion that has begun is for that deletion, whoever holds it. */
                { D, "alice", D, "vesper-coordinator", true, CHARGE_CLAIM_OWN },
                { R, "slot-1", D, "vesper-coordinator", true, CHARGE_CLAIM_REPLACE },
                { R, "slot-1", D, "alice", false, CHARGE_CLAIM_REPLACE },
                { D, "vesper-coordinator", D, "alice", false, CHARGE_CLAIM_REPLACE },
                { D, "alice", D, "vesper-coordinator", false, CHARGE_CLAIM_REFUSED },
                { D, "vesper-coordinator", R, "slot-1", false, CHARGE_CLAIM_REFUSED },
                { O, "u1", D, "alice", false, CHARGE_CLAIM_REPLACE },
                { S, "u1", D, "alice", false, CHARGE_CLAIM_REFUSED },
                /* Nobody but a DELETE takes a charge over. */
                { R, "slot-1", R, "slot-2", false, CHARGE_CLAIM_REFUSED },
                { D, "alice", R, "slot-1", false, CHARGE_CLAIM_REFUSED },
                { D, "alice", O, "u1", false, CHARGE_CLAIM_REFUSED },
                { R, "slot-1", O, "u1", false, CHARGE_CLAIM_REFUSED },
                { O, "u1", R, "slot-1", false, CHARGE_CLAIM_REFUSED },
                { O, "u1", S, "u1", false, CHARGE_CLAIM_REFUSED },
                /* The same name as another kind of holder. */
                { R, "x", D, "x", false, CHARGE_CLAIM_REPLACE },
                /* Charges of an earlier version have no holder. */
                { D, NULL, D, "alice", false, CHARGE_CLAIM_OWN },
                { D, NULL, R, "slot-1", false, CHARGE_CLAIM_REFUSED },
        };

        assert_int_equal(budget_charge_claim(NULL, D, "alice", false, hour), CHARGE_CLAIM_NONE);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                NodeCharge c = { .kind = rows[i].kind,
                                 .holder = (char *) rows[i].holder,
                                 .time_usec = hour };

                print_message("  %zu\n", i);
                assert_int_equal(budget_charge_claim(&c, rows[i].asks, rows[i].who, rows[i].begun, hour),
                                 rows[i].claim);
        }
}

/* A user who deletes again is charged anew before the charge ends. */
TEST_CASE(test_renewal) {
        static const struct {
                NodeChargeKind kind;
                bool begun;
                usec_t age_usec;
                ChargeClaim claim;
        } rows[] = {
                { D, false, 0, CHARGE_CLAIM_OWN },       { D, false, min - 1, CHARGE_CLAIM_OWN },
                { D, false, min, CHARGE_CLAIM_REPLACE }, { D, true, hour, CHARGE_CLAIM_OWN },
                { R, false, hour, CHARGE_CLAIM_OWN },    { O, false, hour, CHARGE_CLAIM_OWN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                NodeCharge c = { .kind = rows[i].kind, .holder = (char *) "x", .time_usec = hour };

                print_message("  %zu\n", i);
                assert_int_equal(
                        budget_charge_claim(&c, rows[i].kind, "x", rows[i].begun, hour + rows[i].age_usec),
                        rows[i].claim);
        }
}

/* A letter for each fact: node, deletion, holder, holder before, release. */
static ChargeFacts facts_of(const char *letters, usec_t seen_usec, usec_t unheld_usec) {
        return (ChargeFacts) { .node_is_there = strchr(letters, 'n'),
                               .node_is_deleting = strchr(letters, 'd'),
                               .holder_stands = strchr(letters, 'h'),
                               .is_held_before = strchr(letters, 'b'),
                               .is_released = strchr(letters, 'r'),
                               .seen_usec = seen_usec,
                               .unheld_usec = unheld_usec };
}

TEST_CASE(test_fate) {
        static const struct {
                const char *what;
                NodeChargeKind kind;
                const char *held_before;
                usec_t lasts_usec; /* until - time */
                const char *facts; /* see facts_of() */
                usec_t seen_usec, unheld_usec;
                ChargeFate fate;
                usec_t left_usec;
        } rows[] = {
                { "a deletion to come", D, NULL, 2 * min, "n", 0, 0, STANDS, 2 * min },
                { "it does not come", D, NULL, 2 * min, "n", 2 * min, 0, ENDS, never },
                { "it has come", D, NULL, 2 * min, "nd", hour, 0, STANDS, never },
                { "the node has gone", D, NULL, 2 * min, "", 2 * min, 0, ENDS, never },
                { "the view may lie behind", D, NULL, 2 * min, "", min, 0, STANDS, min },
                { "until is unset", D, NULL, 0, "n", min, 0, STANDS, min },
                { "a reboot of an earlier version", D, NULL, hour, "n", 3 * min, 0, STANDS, 57 * min },
                { "and its node has gone", D, NULL, hour, "", 3 * min, 0, ENDS, never },
                { "taken over, to come", D, "slot-1", 2 * min, "nb", min, 0, STANDS, min },
                { "taken over, not to come", D, "slot-1", 2 * min, "nb", 2 * min, 0, GOES_BACK, never },
                { "and the slot has ended", D, "slot-1", 2 * min, "n", 2 * min, 0, ENDS, never },
                { "taken over, has come", D, "slot-1", 2 * min, "ndb", hour, 0, STANDS, never },
                { "a slot", R, NULL, hour, "nh", 3 * hour, 0, STANDS, never },
                { "a slot that is not seen", R, NULL, hour, "n", hour, min, STANDS, min },
                { "any more", R, NULL, hour, "n", 2 * min, 2 * min, ENDS, never },
                { "a slot is not the deletion's", R, NULL, hour, "nd", hour, 2 * min, ENDS, never },
                { "released", R, NULL, hour, "nhr", 0, 0, ENDS, never },
                { "released at once", D, NULL, 2 * min, "ndr", 0, 0, ENDS, never },
                { "released after it was taken over", D, "slot-1", 2 * min, "nbr", 0, 0, GOES_BACK, never },
                { "an operation", O, NULL, 0, "ndh", 3 * hour, 0, STANDS, never },
                { "an operation that is not seen", O, NULL, 0, "nd", hour, 2 * min, ENDS, never },
                { "a successor has no Node yet", S, NULL, 0, "h", hour, 0, STANDS, never },
                { "a successor that is not seen", S, NULL, 0, "n", hour, 2 * min, ENDS, never },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                NodeCharge c = { .kind = rows[i].kind,
                                 .holder = (char *) "x",
                                 .held_before = (char *) rows[i].held_before,
                                 .time_usec = hour,
                                 .until_usec = rows[i].lasts_usec > 0 ? hour + rows[i].lasts_usec : 0 };
                ChargeFacts f = facts_of(rows[i].facts, rows[i].seen_usec, rows[i].unheld_usec);
                usec_t left;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(budget_charge_fate(&c, &f, &left), rows[i].fate);
                assert_int_equal(left, rows[i].left_usec);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_claim),
                                                   cmocka_unit_test(test_renewal),
                                                   cmocka_unit_test(test_fate) };

        return cmocka_run_group_tests_name("budget-charge-rule", tests, NULL, NULL);
}
