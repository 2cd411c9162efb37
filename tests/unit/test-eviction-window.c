/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmocka-test.h"
#include "eviction-window.h"

#define MSEC USEC_PER_MSEC

/* As many as it takes now. */
static unsigned take(EvictionWindow *w, bool eviction, size_t n_beside, usec_t now, usec_t *ret_at) {
        unsigned n = 0;

        while (eviction ? eviction_window_takes_eviction(w, w->n_evictions + n_beside, now, ret_at)
                        : eviction_window_takes_admission(w, now, ret_at))
                n++;
        return n;
}

TEST_CASE(test_places) {
        static const struct {
                unsigned size;
                size_t n_beside;
                unsigned taken;
        } rows[] = {
                { 20, 0, 20 }, { 20, 5, 15 },
                { 20, 50, 8 }, /* others never stop them all */
                { 4, 50, 4 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                EvictionWindow w;
                usec_t at;

                eviction_window_init(&w, rows[i].size, rows[i].size, 0);
                assert_int_equal(take(&w, true, rows[i].n_beside, USEC_PER_SEC, &at), rows[i].taken);
                assert_int_equal(at, USEC_INFINITY);
                assert_int_equal(take(&w, false, 0, USEC_PER_SEC, &at), rows[i].size); /* places of their own */
                eviction_window_gives_back_eviction(&w);
                eviction_window_gives_back_admission(&w);
                assert_int_equal(take(&w, true, rows[i].n_beside, USEC_PER_SEC, &at), 1);
                assert_int_equal(take(&w, false, 0, USEC_PER_SEC, &at), 1);
        }
}

TEST_CASE(test_rates) {
        EvictionWindow w;
        usec_t at;

        eviction_window_init(&w, 1000, 1000, 30);
        assert_int_equal(take(&w, true, 0, USEC_PER_SEC, &at), 10);
        assert_in_range(at, USEC_PER_SEC + 33 * MSEC, USEC_PER_SEC + 34 * MSEC);
        assert_int_equal(take(&w, true, 0, at, &at), 1);
        assert_int_equal(take(&w, false, 0, USEC_PER_SEC + 40 * MSEC, &at), 500 / 3 / 2); /* one rate for both, two requests each */
        assert_true(at > USEC_PER_SEC + 40 * MSEC && at < USEC_PER_SEC + 50 * MSEC);
}

TEST_CASE(test_learns) {
        static const struct {
                const char *what;
                unsigned start, max, taken;
                EvictionAnswer answer;
                usec_t took_usec, retry_after_usec;
                unsigned n_answers, size;
                usec_t closed_for_usec;
        } rows[] = {
                { "grows while it is full", 20, 40, 20, EVICTION_ACCEPTED, MSEC, 0, 1, 21, 0 },
                { "no further than its most", 20, 20, 20, EVICTION_ACCEPTED, MSEC, 0, 1, 20, 0 },
                { "and not while it is not", 20, 40, 5, EVICTION_ACCEPTED, MSEC, 0, 1, 20, 0 },
                { "slow answers", 160, 160, 9, EVICTION_ACCEPTED, 3 * USEC_PER_SEC, 0, 1, 120, 0 },
                { "one burst counts once", 160, 160, 9, EVICTION_ACCEPTED, 3 * USEC_PER_SEC, 0, 5, 120, 0 },
                { "flow control", 160, 160, 9, EVICTION_FLOW_CONTROL, MSEC, 0, 3, 80, USEC_PER_SEC },
                { "that names a time", 160, 160, 9, EVICTION_FLOW_CONTROL, MSEC, 7 * USEC_PER_SEC, 1, 80, 7 * USEC_PER_SEC },
                { "never to nothing", 9, 160, 9, EVICTION_FLOW_CONTROL, MSEC, 0, 1, 8, USEC_PER_SEC },
                { "a small one stays", 3, 3, 3, EVICTION_FLOW_CONTROL, MSEC, 0, 1, 3, USEC_PER_SEC },
                { "as slow as it may be", 160, 160, 9, EVICTION_ACCEPTED, 2 * USEC_PER_SEC, 0, 1, 160, 0 },
                { "a webhook is slow", 160, 160, 9, EVICTION_WEBHOOK, 9 * USEC_PER_SEC, 0, 1, 160, 0 },
        };
        usec_t now = 10 * USEC_PER_SEC, at;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                EvictionWindow w;

                print_message("  %s\n", rows[i].what);
                eviction_window_init(&w, rows[i].start, rows[i].max, 0);
                for (unsigned k = 0; k < rows[i].taken; k++)
                        assert_true(eviction_window_takes_eviction(&w, k, now, &at));
                for (unsigned k = 0; k < rows[i].n_answers; k++) {
                        eviction_window_gives_back_eviction(&w);
                        eviction_window_learns(&w, rows[i].answer, rows[i].took_usec, rows[i].retry_after_usec, now);
                }
                assert_int_equal(w.size, rows[i].size);
                if (rows[i].closed_for_usec > 0) {
                        assert_false(eviction_window_takes_eviction(&w, 0, now + rows[i].closed_for_usec - 1, &at));
                        assert_int_equal(at, now + rows[i].closed_for_usec);
                        assert_false(eviction_window_takes_admission(&w, now + rows[i].closed_for_usec - 1, &at));
                }
                assert_true(w.n_evictions >= w.size ||
                            eviction_window_takes_eviction(&w, 0, now + rows[i].closed_for_usec, &at));
        }
}

/* A window shrinks at most once a second. */
TEST_CASE(test_second_burst) {
        EvictionWindow w;

        eviction_window_init(&w, 160, 160, 0);
        eviction_window_learns(&w, EVICTION_ACCEPTED, 3 * USEC_PER_SEC, 0, 10 * USEC_PER_SEC);
        eviction_window_learns(&w, EVICTION_ACCEPTED, 3 * USEC_PER_SEC, 0, 11 * USEC_PER_SEC - 1);
        assert_int_equal(w.size, 120);
        eviction_window_learns(&w, EVICTION_ACCEPTED, 3 * USEC_PER_SEC, 0, 11 * USEC_PER_SEC);
        assert_int_equal(w.size, 90);
}

TEST_CASE(test_crowd) {
        EvictionWindow w;
        usec_t at;

        eviction_window_init(&w, 0, 0, 0);
        for (unsigned i = 0; i < 79; i++) {
                assert_false(eviction_window_is_crowded(&w));
                assert_true(eviction_window_takes_eviction(&w, i, USEC_PER_SEC, &at));
        }
        assert_false(eviction_window_is_crowded(&w));
        assert_true(eviction_window_takes_admission(&w, USEC_PER_SEC, &at));
        assert_true(eviction_window_is_crowded(&w));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_places),
                cmocka_unit_test(test_rates),
                cmocka_unit_test(test_learns),
                cmocka_unit_test(test_second_burst),
                cmocka_unit_test(test_crowd),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
