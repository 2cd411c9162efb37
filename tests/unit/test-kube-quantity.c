/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-test.h"
#include "kube-scheduling.h"

/* Values as resource.ParseQuantity() of apimachinery 0.34 has them, and Value() and MilliValue() round them up. */

#define REFUSED INT64_C(-1)  /* -EINVAL */
#define TOO_MUCH INT64_C(-2) /* -ERANGE */
#define MOST INT64_MAX

typedef struct Row {
        const char *text;
        int64_t up, down, up_thousandths, down_thousandths;
} Row;

static const Row rows[] = {
        /* whole numbers and signs */
        { "0", 0, 0, 0, 0 },
        { "1", 1, 1, 1000, 1000 },
        { "+1", 1, 1, 1000, 1000 },
        { "007", 7, 7, 7000, 7000 },
        { "-0", 0, 0, 0, 0 },
        { "-0.00m", 0, 0, 0, 0 },
        { "-1", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "-1m", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        /* decimals */
        { "1.5", 2, 1, 1500, 1500 },
        { ".5", 1, 0, 500, 500 },
        { "5.", 5, 5, 5000, 5000 },
        { "5.Gi", INT64_C(5) << 30, INT64_C(5) << 30, INT64_C(5000) << 30, INT64_C(5000) << 30 },
        { "0.0001", 1, 0, 1, 0 },
        { "1.0000", 1, 1, 1000, 1000 },
        { "1.9999999999999999999999999999", 2, 1, 2000, 1999 },
        { "0.00000000000000000000000000000000000000001", 1, 0, 1, 0 },
        /* decimal suffixes */
        { "100m", 1, 0, 100, 100 },
        { "0.5m", 1, 0, 1, 0 },
        { "1500m", 2, 1, 1500, 1500 },
        { "2000m", 2, 2, 2000, 2000 },
        { "1u", 1, 0, 1, 0 },
        { "1000u", 1, 0, 1, 1 },
        { "1000000001n", 2, 1, 1001, 1000 },
        { "3k", 3000, 3000, 3000000, 3000000 },
        { "1.25M", 1250000, 1250000, 1250000000, 1250000000 },
        { "1G", 1000000000, 1000000000, INT64_C(1000000000000), INT64_C(1000000000000) },
        { "2T", INT64_C(2000000000000), INT64_C(2000000000000), INT64_C(2000000000000000),
          INT64_C(2000000000000000) },
        { "3P", INT64_C(3000000000000000), INT64_C(3000000000000000), INT64_C(3000000000000000000),
          INT64_C(3000000000000000000) },
        { "1E", INT64_C(1000000000000000000), INT64_C(1000000000000000000), TOO_MUCH, TOO_MUCH },
        { "0.001E", INT64_C(1000000000000000), INT64_C(1000000000000000), INT64_C(1000000000000000000),
          INT64_C(1000000000000000000) },
        /* binary suffixes */
        { "1Ki", 1024, 1024, 1024000, 1024000 },
        { "1.5Gi", INT64_C(3) << 29, INT64_C(3) << 29, INT64_C(3000) << 29, INT64_C(3000) << 29 },
        { "0.1Ki", 103, 102, 102400, 102400 },
        { "0.0001Ki", 1, 0, 103, 102 },
        { "0.3333333333333333333333333333Mi", 349526, 349525, 349525334, 349525333 },
        { "128Mi", INT64_C(128) << 20, INT64_C(128) << 20, INT64_C(128000) << 20, INT64_C(128000) << 20 },
        { "4Ti", INT64_C(4) << 40, INT64_C(4) << 40, INT64_C(4000) << 40, INT64_C(4000) << 40 },
        { "5Pi", INT64_C(5) << 50, INT64_C(5) << 50, INT64_C(5000) << 50, INT64_C(5000) << 50 },
        { "7Ei", INT64_C(7) << 60, INT64_C(7) << 60, TOO_MUCH, TOO_MUCH },
        { "7.9999999999999999999999999Ei", TOO_MUCH, MOST, TOO_MUCH, TOO_MUCH },
        { "8Ei", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "12Ei", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "0.001Ei", INT64_C(1152921504606847), INT64_C(1152921504606846), INT64_C(1152921504606846976),
          INT64_C(1152921504606846976) },
        /* exponents */
        { "1e3", 1000, 1000, 1000000, 1000000 },
        { "1E3", 1000, 1000, 1000000, 1000000 },
        { "1e+3", 1000, 1000, 1000000, 1000000 },
        { "1e-3", 1, 0, 1, 1 },
        { "1.5e1", 15, 15, 15000, 15000 },
        { "12345e-2", 124, 123, 123450, 123450 },
        { "0.00001e5", 1, 1, 1000, 1000 },
        { "1e-400", 1, 0, 1, 0 },
        { "0e400", 0, 0, 0, 0 },
        { "1e400", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "1e99999999999999999999", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "1e-99999999999999999999", 1, 0, 1, 0 },
        /* the end of int64_t */
        { "9223372036854775807", MOST, MOST, TOO_MUCH, TOO_MUCH },
        { "9223372036854775807m", INT64_C(9223372036854776), INT64_C(9223372036854775), MOST, MOST },
        { "9223372036854775806.5", MOST, MOST - 1, TOO_MUCH, TOO_MUCH },
        { "9223372036854775807.5", TOO_MUCH, MOST, TOO_MUCH, TOO_MUCH },
        { "9223372036854775808", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "99999999999999999999999999999999999999999", TOO_MUCH, TOO_MUCH, TOO_MUCH, TOO_MUCH },
        { "99999999999999999999999999999e-20", INT64_C(1000000000), INT64_C(999999999), INT64_C(1000000000000),
          INT64_C(999999999999) },
        /* none */
        { "", REFUSED, REFUSED, REFUSED, REFUSED },
        { ".", REFUSED, REFUSED, REFUSED, REFUSED },
        { "-", REFUSED, REFUSED, REFUSED, REFUSED },
        { "Ki", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1_000", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1,5", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1.5.2", REFUSED, REFUSED, REFUSED, REFUSED },
        { " 1", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1 ", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1 Gi", REFUSED, REFUSED, REFUSED, REFUSED },
        { "--1", REFUSED, REFUSED, REFUSED, REFUSED },
        { "0x10", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1K", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1ki", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1mi", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1GiB", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1e", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1e+", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1e3Ki", REFUSED, REFUSED, REFUSED, REFUSED },
        { "1e3.5", REFUSED, REFUSED, REFUSED, REFUSED },
        { "NaN", REFUSED, REFUSED, REFUSED, REFUSED },
        { "inf", REFUSED, REFUSED, REFUSED, REFUSED },
};

static void check(const Row *row, bool in_thousandths, QuantityRounding rounding, int64_t expected) {
        int64_t value = -77;
        int r = quantity_parse(row->text, in_thousandths, rounding, &value);
        int wanted = expected == REFUSED ? -EINVAL : expected == TOO_MUCH ? -ERANGE : 0;

        if (r != wanted || (r >= 0 && value != expected))
                fail_msg("'%s'%s rounded %s: expected %d and %lld, got %d and %lld", row->text,
                         in_thousandths ? " in thousandths" : "", rounding == QUANTITY_ROUND_UP ? "up" : "down", wanted,
                         (long long) expected, r, (long long) value);
}

TEST_CASE(test_quantities) {
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                check(rows + i, false, QUANTITY_ROUND_UP, rows[i].up);
                check(rows + i, false, QUANTITY_ROUND_DOWN, rows[i].down);
                check(rows + i, true, QUANTITY_ROUND_UP, rows[i].up_thousandths);
                check(rows + i, true, QUANTITY_ROUND_DOWN, rows[i].down_thousandths);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_quantities) };

        return cmocka_run_group_tests_name("kube-quantity", tests, NULL, NULL);
}
