/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cmocka-test.h"
#include "macro.h"
#include "parse-util.h"

TEST_CASE(test_uint64) {
        static const struct {
                const char *text;
                int r;
                uint64_t value;
        } rows[] = {
                { "0", 0, 0 },
                { "007", 0, 7 },
                { "18446744073709551615", 0, UINT64_MAX },
                { "18446744073709551616", -ERANGE, 0 },
                { "99999999999999999999999", -ERANGE, 0 },
                { "99999999999999999999999x", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { NULL, -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "1 ", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                uint64_t v = 4711;

                print_message("'%s'\n", rows[i].text ? rows[i].text : "(none)");
                assert_int_equal(parse_uint64(rows[i].text, &v), rows[i].r);
                assert_true(v == (rows[i].r < 0 ? 4711 : rows[i].value)); /* untouched on failure */
        }
}

TEST_CASE(test_int64) {
        static const struct {
                const char *text;
                int r;
                int64_t value;
        } rows[] = {
                { "0", 0, 0 },
                { "-0", 0, 0 },
                { "-1", 0, -1 },
                { "9223372036854775807", 0, INT64_MAX },
                { "9223372036854775808", -ERANGE, 0 },
                { "-9223372036854775808", 0, INT64_MIN },
                { "-9223372036854775809", -ERANGE, 0 },
                { "-", -EINVAL, 0 },
                { "--1", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { NULL, -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                int64_t v = 4711;

                print_message("'%s'\n", rows[i].text ? rows[i].text : "(none)");
                assert_int_equal(parse_int64(rows[i].text, &v), rows[i].r);
                assert_true(v == (rows[i].r < 0 ? 4711 : rows[i].value));
        }
}

TEST_CASE(test_range) {
        uint64_t v;

        assert_return_code(parse_uint64_range("1", 1, 65535, &v), 0);
        assert_return_code(parse_uint64_range("65535", 1, 65535, &v), 0);
        assert_int_equal(v, 65535);
        assert_int_equal(parse_uint64_range("0", 1, 65535, &v), -ERANGE);
        assert_int_equal(parse_uint64_range("65536", 1, 65535, &v), -ERANGE);
        assert_int_equal(parse_uint64_range("x", 1, 65535, &v), -EINVAL);
}

TEST_CASE(test_bool) {
        static const struct {
                const char *text;
                int r;
                bool value;
        } rows[] = {
                { "1", 0, true },         { "yes", 0, true },      { "TRUE", 0, true },
                { "On", 0, true },        { "0", 0, false },       { "no", 0, false },
                { "False", 0, false },    { "off", 0, false },     { "", -EINVAL, false },
                { "y", -EINVAL, false },  { "2", -EINVAL, false }, { "true ", -EINVAL, false },
                { NULL, -EINVAL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                bool v = false;

                print_message("'%s'\n", rows[i].text ? rows[i].text : "(none)");
                assert_int_equal(parse_bool(rows[i].text, &v), rows[i].r);
                assert_int_equal(v, rows[i].value);
        }
        assert_true(annotation_is_true("true"));
        assert_false(annotation_is_true("True"));
        assert_false(annotation_is_true("yes"));
        assert_false(annotation_is_true(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_uint64),
                cmocka_unit_test(test_int64),
                cmocka_unit_test(test_range),
                cmocka_unit_test(test_bool),
        };
        return cmocka_run_group_tests_name("parse-util", tests, NULL, NULL);
}
