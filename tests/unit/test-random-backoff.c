/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "backoff.h"
#include "cmocka-test.h"
#include "random.h"
#include "token-bucket.h"

#define S USEC_PER_SEC

TEST_CASE(test_seed_decides) {
        _cleanup_(random_freep) Random *a = NULL, *b = NULL, *c = NULL, *system = NULL;
        unsigned n_equal = 0;

        assert_return_code(random_new(7, &a), 0);
        assert_return_code(random_new(7, &b), 0);
        assert_return_code(random_new(8, &c), 0);
        assert_return_code(random_new_from_system(&system), 0);
        for (int i = 0; i < 1000; i++) {
                uint64_t v = random_u64(a);

                assert_true(v == random_u64(b));
                n_equal += v == random_u64(c);
                n_equal += v == random_u64(system);
        }
        assert_int_equal(n_equal, 0);
}

TEST_CASE(test_below_is_even) {
        _cleanup_(random_freep) Random *r = NULL;
        unsigned seen[10] = { 0 }, n_upper = 0;

        assert_return_code(random_new(1, &r), 0);
        for (int i = 0; i < 100000; i++)
                seen[random_below(r, 10)]++;
        for (int i = 0; i < 10; i++)
                assert_in_range(seen[i], 9500, 10500);
        assert_true(random_below(r, 1) == 0);

        /* Three quarters of the whole range: a plain remainder would give the lower third twice its share.
         * */
        for (int i = 0; i < 30000; i++)
                n_upper += random_below(r, UINT64_C(3) << 62) >= UINT64_C(1) << 62;
        assert_in_range(n_upper, 19500, 20500);
}

TEST_CASE(test_jitter) {
        _cleanup_(random_freep) Random *r = NULL;
        usec_t lowest = USEC_INFINITY, highest = 0;

        assert_return_code(random_new(1, &r), 0);
        for (int i = 0; i < 10000; i++) {
                usec_t v = random_jitter(r, 1000, 100);

                lowest = v < lowest ? v : lowest;
                highest = v > highest ? v : highest;
        }
        assert_int_equal(lowest, 900);
        assert_int_equal(highest, 1100);
        assert_int_equal(random_jitter(r, 1000, 0), 1000);
        assert_int_equal(random_jitter(r, 0, 500), 0);
        assert_true(random_jitter(r, USEC_INFINITY, 500) == USEC_INFINITY);
        for (int i = 0; i < 1000; i++)
                assert_true(random_jitter(r, USEC_INFINITY - 1, 1000) <= USEC_INFINITY);
}

TEST_CASE(test_uuid) {
        _cleanup_(random_freep) Random *r = NULL;
        char a[UUID_MAX], b[UUID_MAX];

        assert_return_code(random_new(1, &r), 0);
        for (int i = 0; i < 100; i++) {
                random_uuid(r, a);
                random_uuid(r, b);
                assert_string_not_equal(a, b);
                assert_int_equal(strlen(a), 36);
                assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
                assert_true(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-');
                assert_int_equal(a[14], '4');
                assert_non_null(strchr("89ab", a[19]));
        }
}

TEST_CASE(test_backoff) {
        static const struct {
                const char *what;
                usec_t base, cap;
                unsigned failures;
                usec_t delay;
        } rows[] = {
                { "the first", S, 60 * S, 0, S },
                { "the second", S, 60 * S, 1, 2 * S },
                { "before the cap", S, 60 * S, 5, 32 * S },
                { "at the cap", S, 60 * S, 6, 60 * S },
                { "long past it", S, 60 * S, UINT_MAX, 60 * S },
                { "a base above the cap", 90 * S, 60 * S, 0, 60 * S },
                { "no base", 0, 60 * S, UINT_MAX, 0 },
                { "no overflow", USEC_INFINITY / 2 + 1, USEC_INFINITY - 1, 1, USEC_INFINITY - 1 },
        };
        _cleanup_(random_freep) Random *r = NULL;

        assert_return_code(random_new(1, &r), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Backoff b = { .base_usec = rows[i].base,
                              .cap_usec = rows[i].cap,
                              .failures = rows[i].failures };

                print_message("%s\n", rows[i].what);
                assert_true(backoff_next(&b, r) == rows[i].delay);
                assert_int_equal(b.failures, rows[i].failures == UINT_MAX ? UINT_MAX : rows[i].failures + 1);
                backoff_reset(&b);
                assert_int_equal(b.failures, 0);
        }
}

TEST_CASE(test_bucket_bursts_then_drips) {
        TokenBucket b = { .burst = 3, .per_minute = 20 };
        usec_t now = 1000 * S, at = 0;

        for (int i = 0; i < 3; i++)
                assert_true(token_bucket_take(&b, now, &at));
        assert_false(token_bucket_take(&b, now, &at));
        assert_true(at == now + 3 * S);
        assert_false(token_bucket_take(&b, at - 1, &at));
        assert_true(at == now + 3 * S);
        assert_true(token_bucket_take(&b, at, NULL));
        assert_false(token_bucket_take(&b, at, NULL));
        /* It never holds more than the burst. */
        for (int i = 0; i < 3; i++)
                assert_true(token_bucket_take(&b, now + USEC_PER_DAY, &at));
        assert_false(token_bucket_take(&b, now + USEC_PER_DAY, &at));
        assert_true(at == now + USEC_PER_DAY + 3 * S);
}

/* To look takes none, and says when as many will be there. */
TEST_CASE(test_bucket_is_looked_into) {
        TokenBucket b = { .burst = 3, .per_minute = 20 }, none = { 0 };
        usec_t now = 1000 * S, at = 0;

        assert_true(token_bucket_has(&b, 3, now, &at));
        assert_true(token_bucket_has(&b, 3, now, NULL));
        assert_true(token_bucket_take(&b, now, NULL));
        assert_true(token_bucket_take(&b, now, NULL));
        assert_true(token_bucket_has(&b, 1, now, NULL));
        assert_true(token_bucket_has(&b, 0, now, NULL));
        assert_false(token_bucket_has(&b, 2, now, &at));
        assert_true(at == now + 3 * S);
        assert_false(token_bucket_has(&b, 3, now, &at));
        assert_true(at == now + 6 * S);
        assert_false(token_bucket_has(&b, 3, at - 1, NULL));
        assert_true(token_bucket_has(&b, 3, at, NULL));
        assert_false(token_bucket_has(&b, 4, at + USEC_PER_DAY, &at));
        assert_true(at == USEC_INFINITY);
        assert_false(token_bucket_has(&b, UINT64_MAX, now + USEC_PER_DAY, NULL));
        assert_false(token_bucket_has(&none, 1, now, &at));
        assert_true(at == USEC_INFINITY);
}

/* At the told time there is a token, a microsecond before there is none, at any rate. */
TEST_CASE(test_bucket_gives_several) {
        TokenBucket b = { .burst = 10, .per_minute = 60 };
        usec_t at;

        assert_true(token_bucket_take_n(&b, 7, USEC_PER_HOUR, NULL));
        assert_false(token_bucket_take_n(&b, 4, USEC_PER_HOUR, &at));
        assert_int_equal(at, USEC_PER_HOUR + USEC_PER_SEC);
        assert_true(token_bucket_take_n(&b, 3, USEC_PER_HOUR, NULL));
        assert_true(token_bucket_take_n(&b, 0, USEC_PER_HOUR, NULL));
        assert_false(token_bucket_take(&b, USEC_PER_HOUR, NULL));
        assert_false(token_bucket_take_n(&b, 11, 2 * USEC_PER_HOUR, &at));
        assert_true(at == USEC_INFINITY);
}

TEST_CASE(test_bucket_keeps_its_word) {
        static const uint64_t rates[] = { 1, 7, 59, 60, 61, 600, 1200, 999983, 60000000 };

        for (size_t i = 0; i < ELEMENTSOF(rates); i++) {
                TokenBucket b = { .burst = 1, .per_minute = rates[i] };
                usec_t now = 4711, start = now, at = 0;

                assert_true(token_bucket_take(&b, now, &at));
                for (int k = 0; k < 1000; k++) {
                        assert_false(token_bucket_take(&b, now, &at));
                        assert_true(at > now);
                        if (at - 1 > now) {
                                usec_t again;

                                assert_false(token_bucket_take(&b, at - 1, &again));
                                assert_true(again >= at && again <= at + 1);
                                at = again;
                        }
                        now = at;
                        assert_true(token_bucket_take(&b, now, &at));
                }
                /* Never faster than the rate, hardly slower. */
                assert_true(now - start >= 1000 * USEC_PER_MINUTE / rates[i]);
                assert_true(now - start <= 1000 * (USEC_PER_MINUTE / rates[i] + 3));
        }
}

TEST_CASE(test_bucket_edges) {
        TokenBucket never = { .burst = 1, .per_minute = 0 }, none = { .burst = 0, .per_minute = 60 };
        TokenBucket much = { .burst = UINT64_MAX, .per_minute = UINT64_MAX },
                    back = { .burst = 1, .per_minute = 60 };
        usec_t at = 0;

        assert_true(token_bucket_take(&never, S, &at));
        assert_false(token_bucket_take(&never, USEC_PER_DAY, &at));
        assert_true(at == USEC_INFINITY);
        assert_false(token_bucket_take(&none, S, &at));
        assert_true(at == USEC_INFINITY);
        assert_true(token_bucket_take(&much, S, &at));
        assert_true(token_bucket_take(&much, USEC_INFINITY, &at));
        assert_true(token_bucket_take(&back, 10 * S, &at));
        assert_false(token_bucket_take(&back, 5 * S, &at)); /* a clock that goes back gives nothing */
        assert_true(at == 11 * S);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_seed_decides),
                cmocka_unit_test(test_below_is_even),
                cmocka_unit_test(test_jitter),
                cmocka_unit_test(test_uuid),
                cmocka_unit_test(test_backoff),
                cmocka_unit_test(test_bucket_bursts_then_drips),
                cmocka_unit_test(test_bucket_is_looked_into),
                cmocka_unit_test(test_bucket_gives_several),
                cmocka_unit_test(test_bucket_keeps_its_word),
                cmocka_unit_test(test_bucket_edges),
        };
        return cmocka_run_group_tests_name("random-backoff", tests, NULL, NULL);
}
