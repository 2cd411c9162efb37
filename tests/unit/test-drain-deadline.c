/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "drain-deadline.h"
#include "policy.h"

#define BOOTED (UINT64_C(1790000000) * USEC_PER_SEC)
#define SECONDS(n) ((n) * USEC_PER_SEC)
#define MSEC(n) ((n) * USEC_PER_MSEC)
#define WALL(n) (BOOTED + SECONDS(n))
#define NEVER USEC_INFINITY

/* Seconds since the boot, of each who says when the node has to be empty. */
TEST_CASE(test_earliest) {
        static const struct {
                const char *name;
                usec_t deadline_usec, announced_usec, claim_usec, machine_end_usec, expected_usec;
        } rows[] = {
                { "nobody says", NEVER, 0, 0, NEVER, NEVER },
                { "the notice", SECONDS(120), WALL(120), 0, NEVER, SECONDS(120) },
                { "T is earlier", SECONDS(120), WALL(120), WALL(60), NEVER, SECONDS(60) },
                { "T is no earlier", SECONDS(120), WALL(120), WALL(120), NEVER, SECONDS(120) },
                { "T alone", NEVER, 0, WALL(60), NEVER, SECONDS(60) },
                { "the shutdown is earlier", SECONDS(120), WALL(120), 0, SECONDS(30), SECONDS(30) },
                { "the shutdown is earlier than T", SECONDS(120), WALL(120), WALL(60), SECONDS(30), SECONDS(30) },
                { "the shutdown is later", SECONDS(120), WALL(120), 0, SECONDS(300), SECONDS(120) },
                { "the shutdown alone", NEVER, 0, 0, SECONDS(30), SECONDS(30) },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .deadline_usec = rows[i].deadline_usec, .announced_usec = rows[i].announced_usec };
                DrainDeadline d = drain_deadline_new(BOOTED);

                print_message("%s\n", rows[i].name);
                d.claim_usec = rows[i].claim_usec;
                d.machine_end_usec = rows[i].machine_end_usec;
                assert_int_equal(drain_deadline_at(&d, &n, BOOTED), usec_sub(rows[i].expected_usec, POLICY_MARGIN_USEC));
        }
}

/* One time after the other, as the clocks are read: what is told of each. */
TEST_CASE(test_tell) {
        static const struct {
                usec_t read_usec, told_usec;
        } rows[] = {
                { WALL(60), WALL(60) },
                { WALL(60) + 3, WALL(60) },
                { WALL(60) - MSEC(100), WALL(60) },
                { WALL(60) + MSEC(100), WALL(60) }, /* counted from what was told, not from what was read last */
                { WALL(60) + MSEC(101), WALL(60) + MSEC(101) },
                { WALL(60), WALL(60) },
                { WALL(3660), WALL(3660) }, /* the clock was set */
                { NEVER, NEVER },
                { WALL(90), WALL(90) },
        };
        DrainDeadline d = drain_deadline_new(BOOTED);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(drain_deadline_tell(&d, rows[i].read_usec), rows[i].told_usec);
}

/* T as the Node shows it, one after the other, of an end that is announced in two minutes. */
TEST_CASE(test_claim) {
        static const struct {
                usec_t claim_usec;
                DrainDeadlineNews expected;
        } rows[] = {
                { 0, DRAIN_DEADLINE_SAME },
                { WALL(300), DRAIN_DEADLINE_CHANGED },
                { WALL(90), DRAIN_DEADLINE_NEARER },
                { WALL(90), DRAIN_DEADLINE_SAME },
                { WALL(60), DRAIN_DEADLINE_NEARER },
                { WALL(90), DRAIN_DEADLINE_CHANGED },
                { 0, DRAIN_DEADLINE_CHANGED },
        };
        const Notice n = { .deadline_usec = SECONDS(120), .announced_usec = WALL(120) };
        DrainDeadline d = drain_deadline_new(BOOTED);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                assert_int_equal(drain_deadline_see_claim(&d, &n, rows[i].claim_usec, BOOTED), rows[i].expected);
                assert_int_equal(d.claim_usec, rows[i].claim_usec);
        }
        /* A machine that is off before that has no use for it. */
        d.machine_end_usec = SECONDS(30);
        assert_int_equal(drain_deadline_see_claim(&d, &n, WALL(60), BOOTED), DRAIN_DEADLINE_CHANGED);
}

TEST_CASE(test_clock) {
        static const struct {
                usec_t booted_usec;
                bool expected;
        } rows[] = {
                { BOOTED, false },
                { BOOTED + SECONDS(1), false },
                { BOOTED + MSEC(1999), false }, /* by milliseconds again and again: by what was known first */
                { BOOTED + SECONDS(2), true },
                { BOOTED + SECONDS(2), false },
                { BOOTED, true },
                { BOOTED - SECONDS(3600), true },
        };
        DrainDeadline d = drain_deadline_new(BOOTED);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(drain_deadline_clock_was_set(&d, rows[i].booted_usec), rows[i].expected);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_earliest),
                cmocka_unit_test(test_tell),
                cmocka_unit_test(test_claim),
                cmocka_unit_test(test_clock),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
