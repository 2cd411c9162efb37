/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calendar.h"
#include "civil-date.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "macro.h"

#define MINUTE USEC_PER_MINUTE
#define HOUR USEC_PER_HOUR

/* -- files of zones, as zic writes them ------------------------------------------------------------- */

typedef struct ZoneFile {
        uint8_t data[2048];
        size_t size;
} ZoneFile;

static void put_u32(ZoneFile *f, uint32_t v) {
        for (int shift = 24; shift >= 0; shift -= 8)
                f->data[f->size++] = (uint8_t) (v >> shift);
}

static void put_i64(ZoneFile *f, int64_t v) {
        put_u32(f, (uint32_t) ((uint64_t) v >> 32));
        put_u32(f, (uint32_t) v);
}

static void put_header(ZoneFile *f, uint32_t n_leaps, uint32_t n_changes, uint32_t n_types) {
        memcpy(f->data + f->size, "TZif2", 5);
        f->size += 20;
        put_u32(f, 0);
        put_u32(f, 0);
        put_u32(f, n_leaps);
        put_u32(f, n_changes);
        put_u32(f, n_types);
        put_u32(f, 4);
}

typedef struct ZoneText {
        int32_t ahead[4]; /* of the types, in use up to n_types */
        uint32_t n_types;
        int64_t at[4];
        uint8_t type[4];
        uint32_t n_changes;
        const char *rule;
} ZoneText;

static ZoneFile zone_file(const ZoneText *t) {
        ZoneFile f = { 0 };

        put_header(&f, 0, 0, 1);
        f.size += 6 + 4;
        put_header(&f, 0, t->n_changes, t->n_types);
        for (uint32_t i = 0; i < t->n_changes; i++)
                put_i64(&f, t->at[i]);
        for (uint32_t i = 0; i < t->n_changes; i++)
                f.data[f.size++] = t->type[i];
        for (uint32_t i = 0; i < t->n_types; i++) {
                put_u32(&f, (uint32_t) t->ahead[i]);
                f.size += 2;
        }
        memcpy(f.data + f.size, "LMT", 4);
        f.size += 4;
        f.size += (size_t) snprintf((char *) f.data + f.size, sizeof(f.data) - f.size, "\n%s\n", t->rule);
        return f;
}

static TimeZone *zone_of_rule(const char *rule) {
        ZoneFile f = zone_file(&(ZoneText){ .n_types = 1, .rule = rule });
        TimeZone *z = NULL;

        assert_return_code(time_zone_parse(f.data, f.size, &z), 0);
        return z;
}

/* The rules of today, so that no database has to be there. */
static const struct {
        const char *name, *rule;
} places[] = {
        { "Berlin", "CET-1CEST,M3.5.0,M10.5.0/3" },
        { "NewYork", "EST5EDT,M3.2.0,M11.1.0" },
        { "LordHowe", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0" }, /* half an hour */
        { "Havana", "CST5CDT,M3.2.0/0,M11.1.0/1" },
        { "Nuuk", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0" }, /* a negative hour */
        { "Dublin", "IST-1GMT0,M10.5.0,M3.5.0/1" },     /* winter is what differs */
        { "Tokyo", "JST-9" },
};

static TimeZone *zone_of_place(const char *name) {
        for (size_t i = 0; name && i < ELEMENTSOF(places); i++)
                if (strcmp(places[i].name, name) == 0)
                        return zone_of_rule(places[i].rule);
        assert_null(name);
        return NULL;
}

static usec_t at(const char *text) {
        usec_t usec;

        assert_return_code(rfc3339_parse(text, &usec), 0);
        return usec;
}

/* -- dates ------------------------------------------------------------------------------------------ */

TEST_CASE(test_civil) {
        int64_t days = civil_days(1, 1, 1);

        assert_int_equal(civil_days(1970, 1, 1), 0);
        assert_int_equal(civil_days(2000, 2, 29), 11016);
        assert_int_equal(civil_weekday(civil_days(2026, 11, 25)), 3);
        assert_int_equal(civil_weekday(civil_days(1969, 12, 31)), 3);
        for (int64_t year = 1; year < 2500; year++)
                for (unsigned month = 1; month <= 12; month++)
                        for (unsigned day = 1; day <= civil_days_in_month(year, month); day++, days++) {
                                CivilDate d = civil_from_days(days);

                                if (d.year != year || d.month != month || d.day != day || civil_days(year, month, day) != days)
                                        fail_msg("%d-%u-%u", (int) year, month, day);
                        }
        assert_int_equal(floor_div(-1, 60), -1);
        assert_int_equal(floor_div(-60, 60), -1);
        assert_int_equal(floor_div(59, 60), 0);
}

/* -- what is a calendar ----------------------------------------------------------------------------- */

TEST_CASE(test_texts) {
        static const char *const good[] = {
                "* * * * *", "0 3 * * *", "*/15 0-6,22-23 1,15 jan-Mar mon", "5/20 * ? * ?", " 0\t3 * *  * ", "0 0 29 2 *",
                "0 0 30 2 1", "59 23 31 12 7", "@daily", "@Hourly", "@midnight", "@annually", "0 0 * * 5-7", "0 0 1-31/2 * *",
        };
        static const struct {
                const char *text, *part; /* of what is expected */
        } bad[] = {
                { "", "five fields" },
                { "0 3 * *", "five fields" },
                { "60 * * * *", "a minute" },
                { "-1 * * * *", "a minute" },
                { "1-0 * * * *", "a minute" },
                { "*/0 * * * *", "a minute" },
                { "*/60 * * * *", "a minute" },
                { "1, * * * *", "a minute" },
                { ",1 * * * *", "a minute" },
                { "1- * * * *", "a minute" },
                { "1/ * * * *", "a minute" },
                { "** * * * *", "a minute" },
                { "000 * * * *", "a minute" },
                { "TZ=UTC * * * *", "a minute" },
                { "0 24 * * *", "an hour" },
                { "0 3 0 * *", "a day of the month" },
                { "0 3 32 * *", "a day of the month" },
                { "0 3 L * *", "a day of the month" },
                { "0 3 * 13 *", "a month" },
                { "0 3 * janu *", "a month" },
                { "0 3 * * 8", "a day of the week" },
                { "0 3 * * 1#2", "a day of the week" },
                { "0 0 30 2 *", "some year has" },
                { "0 0 31 4,6,9,11 ?", "some year has" },
                { "@reboot", "@yearly" },
                { "@every", "@yearly" },
                { "@daily 1", "nothing behind" },
                { "0 3 * * * *", "nothing behind" },
        };
        char longest[CALENDAR_BYTES_MAX + 2];
        const char *expected = NULL;
        Calendar c;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                print_message("%s\n", good[i]);
                assert_return_code(calendar_parse(good[i], &c, &expected), 0);
                calendar_done(&c);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                print_message("'%s'\n", bad[i].text);
                assert_int_equal(calendar_parse(bad[i].text, &c, &expected), -EINVAL);
                assert_non_null(strstr(expected, bad[i].part));
        }
        memset(longest, '1', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = 0;
        assert_int_equal(calendar_parse(longest, &c, &expected), -EINVAL);
        assert_non_null(strstr(expected, "256"));
}

/* -- hits ------------------------------------------------------------------------------------------- */

TEST_CASE(test_next) {
        static const struct {
                const char *what, *zone, *text, *after, *next; /* NULL: never */
        } rows[] = {
                { "this very minute is over", NULL, "30 3 * * *", "2026-01-01T03:30:00Z", "2026-01-02T03:30:00Z" },
                { "a second before", NULL, "30 3 * * *", "2026-01-01T03:29:59Z", "2026-01-01T03:30:00Z" },
                { "every minute", NULL, "* * * * *", "2026-01-01T03:29:59Z", "2026-01-01T03:30:00Z" },
                { "a step", NULL, "*/25 * * * *", "2026-01-01T03:50:00Z", "2026-01-01T04:00:00Z" },
                { "a step from somewhere", NULL, "10/25 * * * *", "2026-01-01T03:00:00Z", "2026-01-01T03:10:00Z" },
                { "weekdays", NULL, "0 9 * * mon-fri", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z" },
                { "Sunday is 7", NULL, "0 9 * * 7", "2026-11-25T00:00:00Z", "2026-11-29T09:00:00Z" },
                { "each second day of the week begins with Sunday", NULL, "0 9 * * */2", "2026-11-28T09:00:00Z", "2026-11-29T09:00:00Z" },
                { "from Monday on, and not to Sunday", NULL, "0 9 * * 1/2", "2026-11-27T09:00:00Z", "2026-11-30T09:00:00Z" },
                { "either of both days", NULL, "0 0 13 * fri", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z" },
                { "either of both days", NULL, "0 0 13 * fri", "2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z" },
                { "a step of one restricts nothing", NULL, "0 0 */1 * fri", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z" },
                { "one of two does", NULL, "0 0 */2 * fri", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z" },
                { "29 February", NULL, "0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z" },
                { "2100 is no leap year", NULL, "0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z" },
                { "months with 31 days", NULL, "0 0 31 * *", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z" },
                { "30 February or a Monday of it", NULL, "0 0 30 2 1", "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z" },
                { "a year", NULL, "@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z" },
                { "a month", NULL, "@monthly", "2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z" },
                { "a week", NULL, "@weekly", "2026-11-25T00:00:00Z", "2026-11-29T00:00:00Z" },
                { "the end of time", NULL, "@yearly", "9999-06-01T00:00:00Z", NULL },
                { "a zone without summer", "Tokyo", "0 3 * * *", "2026-07-01T00:00:00Z", "2026-07-01T18:00:00Z" },
                { "winter", "Berlin", "0 3 * * *", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z" },
                { "summer", "Berlin", "0 3 * * *", "2026-07-01T00:00:00Z", "2026-07-01T01:00:00Z" },
                { "another date than in UTC", "NewYork", "0 22 * * fri", "2026-07-01T00:00:00Z", "2026-07-04T02:00:00Z" },
                /* Berlin, 2026-03-29: 02:00 is 03:00. 2026-10-25: 03:00 is 02:00. */
                { "left out: when the clocks are set", "Berlin", "30 2 * * *", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z" },
                { "... once", "Berlin", "15,30 2 * * *", "2026-03-29T01:00:00Z", "2026-03-30T00:15:00Z" },
                { "... and the next one at its own time", "Berlin", "30 2,3 * * *", "2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z" },
                { "the first that is there again", "Berlin", "0 3 * * *", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z" },
                { "each hour: what is left out does not hit", "Berlin", "30 * * * *", "2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z" },
                { "each second hour the same", "Berlin", "30 */2 * * *", "2026-03-28T23:30:00Z", "2026-03-29T02:30:00Z" },
                { "twice: the first", "Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z" },
                { "... and not the second", "Berlin", "30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z" },
                { "... nor from between them", "Berlin", "30 2 * * *", "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z" },
                { "the hour behind it", "Berlin", "0 3 * * *", "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z" },
                { "each hour: twice", "Berlin", "30 * * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z" },
                /* New York, 2026-03-08 and 2026-11-01 */
                { "left out", "NewYork", "30 2 * * *", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z" },
                { "twice", "NewYork", "0 1 * * *", "2026-10-31T12:00:00Z", "2026-11-01T05:00:00Z" },
                { "... and once", "NewYork", "0 1 * * *", "2026-11-01T05:00:00Z", "2026-11-02T06:00:00Z" },
                { "each hour", "NewYork", "0 * * * *", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z" },
                { "midnight is left out", "Havana", "@daily", "2026-03-07T12:00:00Z", "2026-03-08T05:00:00Z" },
                { "twice until midnight", "Havana", "0 0 * * *", "2026-10-31T12:00:00Z", "2026-11-01T04:00:00Z" },
                { "half an hour", "LordHowe", "15 2 * * *", "2026-10-03T12:00:00Z", "2026-10-03T15:30:00Z" },
                { "the evening before", "Nuuk", "30 23 * * sat", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z" },
                { "winter is what differs", "Dublin", "0 12 * * *", "2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z" },
                { "... and not summer", "Dublin", "0 12 * * *", "2026-07-01T00:00:00Z", "2026-07-01T11:00:00Z" },
        };
        const char *expected;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[RFC3339_MAX] = "never";
                Calendar c;
                usec_t next;

                assert_return_code(calendar_parse(rows[i].text, &c, &expected), 0);
                c.zone = zone_of_place(rows[i].zone);
                next = calendar_next(&c, at(rows[i].after));
                if (next != USEC_INFINITY)
                        rfc3339_format(next, text);
                print_message("%s, %s %s: %s\n", rows[i].what, rows[i].text, rows[i].zone ? rows[i].zone : "", text);
                assert_string_equal(text, rows[i].next ? rows[i].next : "never");
                calendar_done(&c);
        }
}

TEST_CASE(test_active) {
        static const struct {
                const char *what, *zone, *text, *now;
                usec_t duration;
                bool active;
        } rows[] = {
                { "a microsecond too early", NULL, "0 3 * * *", "2026-01-01T02:59:59.999999Z", 2 * HOUR, false },
                { "its first", NULL, "0 3 * * *", "2026-01-01T03:00:00Z", 2 * HOUR, true },
                { "its last", NULL, "0 3 * * *", "2026-01-01T04:59:59.999999Z", 2 * HOUR, true },
                { "over", NULL, "0 3 * * *", "2026-01-01T05:00:00Z", 2 * HOUR, false },
                { "over midnight", NULL, "0 23 * * fri", "2026-11-28T00:59:00Z", 2 * HOUR, true },
                { "as long as the time between", NULL, "0 3 * * *", "2026-01-01T02:59:59Z", 24 * HOUR, true },
                { "weeks", NULL, "0 0 1 1 *", "2026-12-31T00:00:00Z", 365 * 24 * HOUR, true },
                { "longer than time is old", NULL, "0 3 * * *", "1970-01-01T02:00:00Z", 24 * HOUR, false },
                { "two hours of real time, though the clocks are set back", "Berlin", "30 2 * * *", "2026-10-25T02:29:00Z", 2 * HOUR, true },
                { "... and no more", "Berlin", "30 2 * * *", "2026-10-25T02:30:00Z", 2 * HOUR, false },
                { "left out, and there", "Berlin", "30 2 * * *", "2026-03-29T02:59:00Z", 2 * HOUR, true },
        };
        const char *expected;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Calendar c;

                print_message("%s\n", rows[i].what);
                assert_return_code(calendar_parse(rows[i].text, &c, &expected), 0);
                c.zone = zone_of_place(rows[i].zone);
                assert_int_equal(calendar_active(&c, rows[i].duration, at(rows[i].now)), rows[i].active);
                calendar_done(&c);
        }
}

/* -- zones ------------------------------------------------------------------------------------------ */

TEST_CASE(test_rules) {
        static const char *const bad[] = {
                "C-1", "CET", "CET-25", "CET-1CEST", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,M10.5.0/3,", "CET-1CEST,M13.5.0,M10.5.0",
                "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,M10.5.0", "CET-1CEST,J366,M10.5.0",
                "CET-1CEST,366,M10.5.0", "CET-1CEST,M3.5.0/168,M10.5.0", "<+03-3", "<+3>-3", "CET-1:60", ":Europe/Berlin", " CET-1",
        };
        static const struct {
                const char *rule, *at;
                int32_t ahead;
        } good[] = {
                { "EST5EDT,0/0,J365/25", "2026-01-01T05:00:00Z", -4 * 3600 }, /* summer all the year */
                { "EST5EDT,0/0,J365/25", "2026-12-31T12:00:00Z", -4 * 3600 },
                { "AAA0BBB,J60/0,J61/0", "2028-03-01T12:00:00Z", 3600 },
                { "AAA0BBB,J60/0,J61/0", "2028-02-29T12:00:00Z", 0 },
                { "AAA0BBB,59/0,60/0", "2028-02-29T12:00:00Z", 3600 },
                { "AAA0BBB,59/0,60/0", "2026-02-28T12:00:00Z", 0 },
                { "<-12>12", "2026-01-01T00:00:00Z", -12 * 3600 },
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                ZoneFile f = zone_file(&(ZoneText){ .n_types = 1, .rule = bad[i] });
                TimeZone *z = NULL;

                print_message("%s\n", bad[i]);
                assert_int_equal(time_zone_parse(f.data, f.size, &z), -EBADMSG);
        }
        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                TimeZone *z = zone_of_rule(good[i].rule);

                print_message("%s at %s\n", good[i].rule, good[i].at);
                assert_int_equal(time_zone_period(z, (int64_t) (at(good[i].at) / USEC_PER_SEC)).ahead_sec, good[i].ahead);
                time_zone_free(z);
        }
}

TEST_CASE(test_files) {
        const ZoneText good = { .ahead = { 100, 3600 }, .n_types = 2, .at = { -1000, 1000 }, .type = { 1, 0 }, .n_changes = 2, .rule = "" };
        ZoneText t = good;
        ZoneFile f = zone_file(&good);
        TimeZone *z = NULL;
        ZonePeriod p;

        assert_return_code(time_zone_parse(f.data, f.size, &z), 0);
        p = time_zone_period(z, 0);
        assert_true(p.begin_sec == -1000 && p.end_sec == 1000 && p.ahead_sec == 3600 && p.ahead_before_sec == 100);
        p = time_zone_period(z, -1001);
        assert_true(p.begin_sec == INT64_MIN && p.end_sec == -1000 && p.ahead_sec == 100 && p.ahead_before_sec == 100);
        p = time_zone_period(z, 1000);
        assert_true(p.begin_sec == 1000 && p.end_sec == INT64_MAX && p.ahead_sec == 100 && p.ahead_before_sec == 3600);
        time_zone_free(z);

        for (size_t size = 0; size < f.size; size++)
                assert_int_equal(time_zone_parse(f.data, size, &z), -EBADMSG);
        t.at[1] = -1000;
        f = zone_file(&t);
        assert_int_equal(time_zone_parse(f.data, f.size, &z), -EBADMSG);
        t = good;
        t.type[1] = 2;
        f = zone_file(&t);
        assert_int_equal(time_zone_parse(f.data, f.size, &z), -EBADMSG);
        t = good;
        t.ahead[0] = 27 * 3600;
        f = zone_file(&t);
        assert_int_equal(time_zone_parse(f.data, f.size, &z), -EBADMSG);
        f = zone_file(&good);
        f.data[4] = '1';
        assert_int_equal(time_zone_parse(f.data, f.size, &z), -EBADMSG);
        f = zone_file(&good);
        f.data[44 + 10 + 31] = 1; /* leap seconds */
        assert_int_equal(time_zone_parse(f.data, f.size, &z), -EBADMSG);
}

TEST_CASE(test_names) {
        static const char *const bad[] = { "", "../etc/passwd", "Europe/../UTC", "/etc/localtime", "Europe/", "Europe//Berlin", ".", "Euro pe", "Z%" };
        char folder[] = "/tmp/vesper-zones-XXXXXX", path[100];
        ZoneFile f = zone_file(&(ZoneText){ .n_types = 1, .rule = "CET-1CEST,M3.5.0,M10.5.0/3" });
        const char *expected = NULL;
        TimeZone *z = NULL;
        Calendar c;
        FILE *file;

        assert_non_null(mkdtemp(folder));
        (void) snprintf(path, sizeof(path), "%s/Berlin", folder);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_int_equal(fwrite(f.data, f.size, 1, file), 1);
        assert_int_equal(fclose(file), 0);

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(time_zone_load(folder, bad[i], &z), -EINVAL);
        assert_int_equal(time_zone_load(folder, "Paris", &z), -ENOENT);
        assert_int_equal(time_zone_load("/nowhere", "Berlin", &z), -ENOENT);
        assert_return_code(time_zone_load("/nowhere", "Etc/UTC", &z), 0);
        assert_null(z);

        assert_return_code(calendar_parse_zoned("0 3 * * * Berlin", folder, &c, &expected), 0);
        assert_true(calendar_next(&c, at("2026-07-01T00:00:00Z")) == at("2026-07-01T01:00:00Z"));
        calendar_done(&c);
        assert_return_code(calendar_parse_zoned("@daily", folder, &c, &expected), 0);
        assert_null(c.zone);
        assert_int_equal(calendar_parse_zoned("@daily Paris", folder, &c, &expected), -EINVAL);
        assert_non_null(strstr(expected, "tzdata"));
        assert_int_equal(calendar_parse_zoned("@daily Berlin Paris", folder, &c, &expected), -EINVAL);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(folder), 0);
}

/* Where there is a database, libc reads it as well, and says the same at a thousand instants from 1970 to 2100. */
TEST_CASE(test_against_libc) {
        static const char *const names[] = {
                "Europe/Berlin", "America/New_York", "Europe/Dublin", "Australia/Lord_Howe", "America/Nuuk", "Asia/Gaza",
                "Africa/Casablanca", "Pacific/Apia", "America/Sao_Paulo", "Asia/Kolkata", "Africa/Cairo", "America/Havana",
        };
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                TimeZone *z = NULL;

                if (time_zone_load(TIME_ZONE_DIRECTORY, names[i], &z) == -ENOENT)
                        continue;
                assert_non_null(z);
                n++;
                assert_int_equal(setenv("TZ", names[i], 1), 0);
                tzset();
                for (time_t t = 0; t < (time_t) 4102444800; t += 4102441) {
                        ZonePeriod p = time_zone_period(z, t);
                        struct tm tm;

                        assert_non_null(localtime_r(&t, &tm));
                        if (tm.tm_gmtoff != p.ahead_sec || p.begin_sec > t || p.end_sec <= t)
                                fail_msg("%s at %lld: %d, libc %ld", names[i], (long long) t, p.ahead_sec, tm.tm_gmtoff);
                }
                time_zone_free(z);
        }
        assert_int_equal(unsetenv("TZ"), 0);
        if (n == 0)
                skip();
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_civil),  cmocka_unit_test(test_texts), cmocka_unit_test(test_next),
                cmocka_unit_test(test_active), cmocka_unit_test(test_rules), cmocka_unit_test(test_files),
                cmocka_unit_test(test_names),  cmocka_unit_test(test_against_libc),
        };
        return cmocka_run_group_tests_name("calendar", tests, NULL, NULL);
}
