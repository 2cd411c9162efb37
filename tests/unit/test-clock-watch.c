/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "loop.h"

static void on_clock_set(void *userdata) {
        ++*(unsigned *) userdata;
}

TEST_CASE(test_virtual) {
        VirtualTime *time;
        Loop *loop, *other;
        ClockWatch *a, *b;
        unsigned n = 0, m = 0;

        assert_return_code(virtual_time_new(1000 * USEC_PER_SEC, &time), 0);
        assert_return_code(loop_new_virtual(time, &loop), 0);
        assert_return_code(loop_new_virtual(time, &other), 0);
        assert_return_code(clock_watch_new(loop, on_clock_set, &n, &a), 0);
        assert_return_code(clock_watch_new(loop, on_clock_set, &m, &b), 0);
        assert_int_equal(virtual_time_step(time, USEC_INFINITY), 0);
        loop_virtual_step_wall(other, USEC_PER_SEC);
        assert_int_equal(virtual_time_step(time, USEC_INFINITY), 0);
        loop_virtual_step_wall(loop, -5 * (int64_t) USEC_PER_SEC);
        assert_int_equal(n, 0); /* out of the loop */
        while (virtual_time_step(time, USEC_INFINITY) > 0)
                ;
        assert_true(n == 1 && m == 1);
        clock_watch_free(a);
        loop_virtual_step_wall(loop, USEC_PER_SEC);
        while (virtual_time_step(time, USEC_INFINITY) > 0)
                ;
        assert_true(n == 1 && m == 2);
        clock_watch_free(b);
        assert_null(clock_watch_free(NULL));
        loop_free(other);
        loop_free(loop);
        virtual_time_free(time);
}

/* Nobody may set the clock of the machine that runs tests: that the kernel takes the wish, and says nothing by itself. */
TEST_CASE(test_real) {
        ClockWatch *w;
        unsigned n = 0;
        Loop *loop;

        assert_return_code(loop_new(&loop), 0);
        assert_return_code(clock_watch_new(loop, on_clock_set, &n, &w), 0);
        (void) loop_iterate(loop, 20 * USEC_PER_MSEC);
        assert_int_equal(n, 0);
        clock_watch_free(w);
        loop_free(loop);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_virtual),
                cmocka_unit_test(test_real),
        };
        return cmocka_run_group_tests_name("clock-watch", tests, NULL, NULL);
}
