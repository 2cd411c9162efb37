/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "macro.h"
#include "resume-pace.h"

#define START USEC_PER_HOUR

/* How many begin in each minute, if as many as may do so; a minute of `trouble` does not go well. */
static void count(const unsigned *expected, size_t n, unsigned trouble) {
        ResumePace p;

        resume_pace_begin(&p, START);
        for (size_t minute = 0; minute < n; minute++) {
                unsigned begun = 0;

                for (unsigned ms = 0; ms < 60 * 1000; ms += 50) {
                        usec_t now = START + minute * USEC_PER_MINUTE + ms * USEC_PER_MSEC;

                        if (resume_pace_next(&p, now) > now)
                                continue;
                        if (p.active)
                                resume_pace_took(&p, now);
                        begun++;
                        if (minute == trouble)
                                resume_pace_note_trouble(&p);
                        if (!p.active)
                                break;
                }
                if (expected[minute] == 0) { /* as many as there are */
                        assert_false(p.active);
                        break;
                }
                print_message("  minute %zu: %u\n", minute, begun);
                assert_int_equal(begun, expected[minute]);
        }
}

TEST_CASE(test_doubles) {
        static const unsigned expected[] = { 1, 2, 4, 8, 16, 32, 0 };

        count(expected, ELEMENTSOF(expected), 100);
}

TEST_CASE(test_trouble) {
        static const unsigned expected[] = { 1, 2, 4, 4, 8, 16, 32, 0 };

        count(expected, ELEMENTSOF(expected), 2);
}

TEST_CASE(test_nobody_asks_for_long) {
        ResumePace p;

        resume_pace_begin(&p, START);
        assert_true(resume_pace_next(&p, START + 3 * USEC_PER_MINUTE) <= START + 3 * USEC_PER_MINUTE);
        assert_int_equal(p.doublings, 3);
        assert_int_equal(resume_pace_next(&p, START + USEC_PER_HOUR), 0);
        assert_false(p.active);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_doubles),
                cmocka_unit_test(test_trouble),
                cmocka_unit_test(test_nobody_asks_for_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
