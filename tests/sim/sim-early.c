/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-events.h"
#include "sim-test.h"

/* Announced reboots that are taken early, and acknowledged events; sim-random --events plays more of these worlds. */

#define RANDOM_SEEDS 12u

TEST_CASE(test_random) {
        for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
                SimOutcome o;

                sim_events_play(seed, true, false, &o);
                assert_true(o.good);
                sim_outcome_done(&o);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

        return cmocka_run_group_tests_name("sim-early", tests, NULL, NULL);
}
