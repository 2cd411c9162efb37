/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "cmocka-test.h"
#include "macro.h"
#include "time-util.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC

TEST_CASE(test_saturation) {
        assert_true(usec_add(1, 2) == 3);
        assert_true(usec_add(USEC_INFINITY, 5) == USEC_INFINITY);
        assert_true(usec_add(5, USEC_INFINITY) == USEC_INFINITY);
        assert_true(usec_add(USEC_INFINITY - 1, 2) == USEC_INFINITY);
        assert_true(usec_sub(5, 3) == 2);
        assert_true(usec_sub(3, 5) == 0);
        assert_true(usec_sub(USEC_INFINITY, 5) == USEC_INFINITY);
}

TEST_CASE(test_rfc3339_parse) {
        static const struct {
                const char *text;
                int r;
                usec_t value;
        } rows[] = {
                { "1970-01-01T00:00:00Z", 0, 0 },
                { "1970-01-01t00:00:01Z", 0, S },
                { "2026-11-21T05:03:00Z", 0, 1795237380 * S },
                { "2026-11-21T05:03:00.5Z", 0, 1795237380 * S + 500000 },
                { "2026-11-21T05:03:00.123456Z", 0, 1795237380 * S + 123456 },
                { "2026-11-21T05:03:00.123456789Z", 0, 1795237380 * S + 123456 },
                { "2026-11-21T05:03:00.1234567899Z", -EINVAL, 0 },
                { "2026-11-21T05:03:00.Z", -EINVAL, 0 },
                { "2026-11-21T06:33:00+01:30", 0, 1795237380 * S },
                { "2026-11-21T00:03:00-05:00", 0, 1795237380 * S },
                { "2026-11-21T05:03:00-00:00", 0, 1795237380 * S },
                { "2000-02-29T00:00:00Z", 0, 951782400 * S },
                { "2000-03-01T00:00:00Z", 0, 951868800 * S },
                { "2024-12-31T23:59:59Z", 0, 1735689599 * S },
                { "2016-12-31T23:59:60Z", 0, 1483228800 * S - 1 },
                { "2016-12-31T23:59:60.999Z", 0, 1483228800 * S - 1 },
                { "9999-12-31T23:59:59.999999Z", 0, 253402300799 * S + 999999 },
                { "1970-01-01T00:00:00+00:01", -EINVAL, 0 }, /* 1969 */
                { "1970-01-01T00:01:00+00:01", 0, 0 },
                { "1969-12-31T23:59:59Z", -EINVAL, 0 },
                { "0001-01-01T00:00:00Z", -EINVAL, 0 },
                { "2023-02-29T00:00:00Z", -EINVAL, 0 },
                { "2100-02-29T00:00:00Z", -EINVAL, 0 },
                { "2026-13-01T00:00:00Z", -EINVAL, 0 },
                { "2026-00-01T00:00:00Z", -EINVAL, 0 },
                { "2026-04-31T00:00:00Z", -EINVAL, 0 },
                { "2026-04-00T00:00:00Z", -EINVAL, 0 },
                { "2026-04-01T24:00:00Z", -EINVAL, 0 },
                { "2026-04-01T00:60:00Z", -EINVAL, 0 },
                { "2026-04-01T00:00:61Z", -EINVAL, 0 },
                { "2026-04-01T00:00:00+24:00", -EINVAL, 0 },
                { "2026-04-01T00:00:00+00:60", -EINVAL, 0 },
                { "2026-04-01T00:00:00+0100", -EINVAL, 0 },
                { "2026-04-01T00:00:00", -EINVAL, 0 },
                { "2026-04-01T00:00:00Zx", -EINVAL, 0 },
                { "2026-04-01 00:00:00Z", -EINVAL, 0 },
                { " 2026-04-01T00:00:00Z", -EINVAL, 0 },
                { "2026-4-01T00:00:00Z", -EINVAL, 0 },
                { "", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t v = 4711;

                print_message("'%s'\n", rows[i].text);
                assert_int_equal(rfc3339_parse(rows[i].text, &v), rows[i].r);
                assert_int_equal(v, rows[i].r < 0 ? 4711 : rows[i].value);
        }
}

/* Every day of eight centuries; the C library formats what we parse. */
TEST_CASE(test_rfc3339_round_trip) {
        char text[RFC3339_MAX];

        for (usec_t t = 12345678; t < 800 * 366 * USEC_PER_DAY; t += USEC_PER_DAY) {
                usec_t v;

                rfc3339_format_micro(t, text);
                assert_return_code(rfc3339_parse(text, &v), 0);
                assert_true(v == t);
        }
}

TEST_CASE(test_formats) {
        static const struct {
                usec_t wall;
                const char *seconds, *micro, *basic;
        } rows[] = {
                { 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z", "19700101T000000Z" },
                { 1795237380 * S + 70, "2026-11-21T05:03:00Z", "2026-11-21T05:03:00.000070Z",
                  "20261121T050300Z" },
                { USEC_INFINITY, "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z", "99991231T235959Z" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[RFC3339_MAX];

                memset(text, 'x', sizeof(text));
                rfc3339_format(rows[i].wall, text);
                assert_string_equal(text, rows[i].seconds);
                assert_int_equal(text[RFC3339_MAX - 1], 0);
                rfc3339_format_micro(rows[i].wall, text);
                assert_string_equal(text, rows[i].micro);
                iso8601_basic_format(rows[i].wall, text);
                assert_string_equal(text, rows[i].basic);
        }
}

TEST_CASE(test_http_date) {
        static const struct {
                const char *text;
                int r;
                usec_t value;
        } rows[] = {
                { "Sun, 06 Nov 1994 08:49:37 GMT", 0, 784111777 * S },
                { "Thu, 01 Jan 1970 00:00:00 GMT", 0, 0 },
                { "Mon, 06 Nov 1994 08:49:37 GMT", -EINVAL, 0 }, /* it was a Sunday */
                { "Sat, 05 Nov 1994 08:49:37 GMT", 0, 784025377 * S },
                { "Fri, 05 Nov 1994 08:49:37 GMT", -EINVAL, 0 },
                { "Sat, 31 Dec 2016 23:59:60 GMT", 0, 1483228800 * S - 1 }, /* a leap second */
                { "Sat, 31 Dec 2016 23:59:61 GMT", -EINVAL, 0 },
                { "Sun, 6 Nov 1994 08:49:37 GMT", -EINVAL, 0 },
                { "Sun, 06 Nov 1994 08:49:37 UTC", -EINVAL, 0 },
                { "Sun, 06 Nov 1994 08:49:37 GMT ", -EINVAL, 0 },
                { "Sunday, 06-Nov-94 08:49:37 GMT", -EINVAL, 0 },
                { "Sun, 32 Nov 1994 08:49:37 GMT", -EINVAL, 0 },
                { "sun, 06 nov 1994 08:49:37 gmt", -EINVAL, 0 },
                { "120", -EINVAL, 0 },
                { "", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t v = 4711;

                print_message("'%s'\n", rows[i].text);
                assert_int_equal(http_date_parse(rows[i].text, &v), rows[i].r);
                assert_int_equal(v, rows[i].r < 0 ? 4711 : rows[i].value);
        }
}

typedef struct DurationRow {
        const char *text;
        int r;
        usec_t value;
} DurationRow;

static void check_durations(const DurationRow *rows, size_t n, int (*parse)(const char *s, usec_t *ret)) {
        for (size_t i = 0; i < n; i++) {
                usec_t v = 4711;

                print_message("'%s'\n", rows[i].text);
                assert_int_equal(parse(rows[i].text, &v), rows[i].r);
                assert_true(v == (rows[i].r < 0 ? 4711 : rows[i].value));
        }
}

TEST_CASE(test_duration_parse_go) {
        static const DurationRow rows[] = {
                { "0", 0, 0 },
                { "0s", 0, 0 },
                { "5s", 0, 5 * S },
                { "1h30m", 0, 5400 * S },
                { "1.5s", 0, 1500 * MS },
                { ".5s", 0, 500 * MS },
                { "5.s", 0, 5 * S },
                { "300ms", 0, 300 * MS },
                { "999ns", 0, 0 },
                { "1000ns", 0, 1 },
                { "500ns500ns", 0, 1 },
                { "3us", 0, 3 },
                { "3\xc2\xb5s", 0, 3 },
                { "3\xce\xbcs", 0, 3 },
                { "1h1m1s1ms1us", 0, 3661 * S + 1001 },
                { "1s1h", 0, 3601 * S }, /* any order */
                { "0.1000000000000000000001s", 0, 100 * MS },
                { "0.333333333333333333333h", 0, 1200 * S - 1 },
                { "2562047h47m16.854775807s", 0, INT64_MAX / 1000 },
                { "2562047h47m16.854775808s", -ERANGE, 0 },
                { "9223372036854775807ns", 0, INT64_MAX / 1000 },
                { "9223372036854775808ns", -ERANGE, 0 },
                { "99999999999999999999999999h", -ERANGE, 0 },
                { "99999999999999999999999999h1s", -ERANGE, 0 },
                { "99999999999999999999999999x", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "3", -EINVAL, 0 },
                { "00", -EINVAL, 0 },
                { "s", -EINVAL, 0 },
                { ".s", -EINVAL, 0 },
                { ".", -EINVAL, 0 },
                { "-5s", -EINVAL, 0 },
                { "+5s", -EINVAL, 0 },
                { "5 s", -EINVAL, 0 },
                { " 5s", -EINVAL, 0 },
                { "5s ", -EINVAL, 0 },
                { "1.2.3s", -EINVAL, 0 },
                { "1d", -EINVAL, 0 },
                { "5S", -EINVAL, 0 },
                { "1h30", -EINVAL, 0 },
                { "infinity", -EINVAL, 0 },
        };

        check_durations(rows, ELEMENTSOF(rows), duration_parse_go);
}

TEST_CASE(test_duration_parse) {
        static const DurationRow rows[] = {
                { "5s", 0, 5 * S },
                { "2min 3s", 0, 123 * S },
                { "2min3s", 0, 123 * S },
                { "500ms", 0, 500 * MS },
                { "5", 0, 5 * S },
                { "0", 0, 0 },
                { "1.5", 0, 1500 * MS },
                { ".5 s", 0, 500 * MS },
                { " 5 sec ", 0, 5 * S },
                { "5 3", 0, 8 * S },
                { "1h 1m 1", 0, 3661 * S },
                { "1w 2d", 0, 9 * USEC_PER_DAY },
                { "1hour 2minutes 3seconds 4msec 5usec", 0, 3723 * S + 4005 },
                { "infinity", 0, USEC_INFINITY },
                { " infinity ", 0, USEC_INFINITY },
                { "18446744073709551614us", 0, USEC_INFINITY - 1 },
                { "18446744073709551615us", -ERANGE, 0 },
                { "18446744073709551616us", -ERANGE, 0 },
                { "18446744073709s 551614us", 0, USEC_INFINITY - 1 },
                { "18446744073709s 551615us", -ERANGE, 0 },
                { "99999999999999999999w", -ERANGE, 0 },
                { "99999999999999999999w 1s", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "  ", -EINVAL, 0 },
                { "s", -EINVAL, 0 },
                { "5.", -EINVAL, 0 },
                { "5.s", -EINVAL, 0 },
                { "1.2.3", -EINVAL, 0 },
                { "5 .", -EINVAL, 0 },
                { "-5s", -EINVAL, 0 },
                { "5x", -EINVAL, 0 },
                { "5MIN", -EINVAL, 0 },
                { "5s infinity", -EINVAL, 0 },
                { "infinity 5s", -EINVAL, 0 },
        };

        check_durations(rows, ELEMENTSOF(rows), duration_parse);
}

TEST_CASE(test_duration_format) {
        static const struct {
                usec_t usec;
                const char *text;
        } rows[] = {
                { 0, "0s" },
                { 7, "7us" },
                { 999, "999us" },
                { 1000, "1ms" },
                { 1500, "1.500ms" },
                { 999999, "999.999ms" },
                { S, "1s" },
                { 1250 * MS, "1.250s" },
                { 59 * S + 999999, "59.999s" },
                { 60 * S, "1min" },
                { 123 * S + 5, "2min 3s" },
                { USEC_PER_HOUR, "1h" },
                { USEC_PER_DAY + 5 * S, "1d 5s" },
                { 3 * USEC_PER_DAY + 4 * USEC_PER_HOUR + 5 * USEC_PER_MINUTE + 6 * S, "3d 4h 5min 6s" },
                { USEC_INFINITY, "infinity" },
                { USEC_INFINITY - 1, "213503982d 8h 1min 49s" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[DURATION_MAX];
                usec_t again;

                assert_string_equal(duration_format(rows[i].usec, text), rows[i].text);
                assert_return_code(duration_parse(text, &again), 0); /* what we print, we read */
                assert_true(again <= rows[i].usec);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_saturation),         cmocka_unit_test(test_rfc3339_parse),
                cmocka_unit_test(test_rfc3339_round_trip), cmocka_unit_test(test_formats),
                cmocka_unit_test(test_http_date),          cmocka_unit_test(test_duration_parse_go),
                cmocka_unit_test(test_duration_parse),     cmocka_unit_test(test_duration_format),
        };
        return cmocka_run_group_tests_name("time-util", tests, NULL, NULL);
}
