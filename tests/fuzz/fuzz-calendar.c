/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "calendar.h"
#include "civil-date.h"
#include "fuzz.h"
#include "string-util.h"

/* The first line is a calendar; what is behind it is the file of a zone, or the rule that is at the end of one. What must
 * hold: periods of a zone lie one behind the other; a hit is later than what it was asked for, matches every field where no
 * clock is set around it, and none before it was passed over. */

#define RULE_BYTES 200u
#define YEAR_10000 INT64_C(253402300800)

static TimeZone *zone_of(const uint8_t *data, size_t size) {
        /* Headers of both versions with one type and one name of four bytes. */
        static const uint8_t head[44 + 10] = { 'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 4 };
        uint8_t file[2 * sizeof(head) + RULE_BYTES + 2];
        TimeZone *z = NULL;
        int r;

        if (size >= 4 && memcmp(data, "TZif", 4) == 0) {
                r = time_zone_parse(data, size, &z);
        } else {
                if (size == 0 || size > RULE_BYTES)
                        return NULL;
                memcpy(file, head, sizeof(head));
                memcpy(file + sizeof(head), head, sizeof(head));
                file[2 * sizeof(head)] = '\n';
                memcpy(file + 2 * sizeof(head) + 1, data, size);
                file[2 * sizeof(head) + 1 + size] = '\n';
                r = time_zone_parse(file, 2 * sizeof(head) + size + 2, &z);
        }
        assert(r == 0 || r == -EBADMSG);
        assert((r == 0) == (z != NULL));
        return z;
}

static void check_zone(const TimeZone *z, int64_t t) {
        ZonePeriod p = time_zone_period(z, t), again;

        assert(p.begin_sec <= t && t < p.end_sec);
        assert(p.ahead_sec > -26 * 3600 && p.ahead_sec < 27 * 3600);
        again = time_zone_period(z, MIN(p.end_sec - 1, t + 366 * CIVIL_DAY_SEC));
        assert(again.begin_sec == p.begin_sec && again.end_sec == p.end_sec && again.ahead_sec == p.ahead_sec);
        if (p.end_sec < t + 366 * CIVIL_DAY_SEC) {
                again = time_zone_period(z, p.end_sec);
                assert(again.begin_sec == p.end_sec && again.ahead_before_sec == p.ahead_sec);
        }
}

static bool matches(const Calendar *c, int64_t local) {
        int64_t days = floor_div(local, CIVIL_DAY_SEC), minute = (local - days * CIVIL_DAY_SEC) / 60;
        CivilDate date = civil_from_days(days);
        bool by_day = c->days >> date.day & 1, by_weekday = c->weekdays >> civil_weekday(days) & 1;

        return floor_div(local, 60) * 60 == local && c->minutes >> (minute % 60) & 1 && c->hours >> (minute / 60) & 1 &&
               c->months >> date.month & 1 &&
               (c->any_day ? by_weekday : c->any_weekday ? by_day : by_day || by_weekday);
}

static void check_next(const Calendar *c, int64_t t) {
        usec_t next = calendar_next(c, (usec_t) t * USEC_PER_SEC), at;
        ZonePeriod p;

        assert(next == USEC_INFINITY || next > (usec_t) t * USEC_PER_SEC);
        assert(next == USEC_INFINITY || next % USEC_PER_SEC == 0);
        if (next != USEC_INFINITY) {
                p = time_zone_period(c->zone, (int64_t) (next / USEC_PER_SEC));
                assert(matches(c, (int64_t) (next / USEC_PER_SEC) + p.ahead_sec) ||
                       (!c->any_hour && next / USEC_PER_SEC == (uint64_t) p.begin_sec && p.ahead_sec > p.ahead_before_sec));
                assert(calendar_active(c, 1, next) && !calendar_active(c, 1, next - 1) && !calendar_active(c, 0, next));
                assert(calendar_active(c, 1 + next - (usec_t) t * USEC_PER_SEC, next));
        }
        for (int64_t s = t + 1; s < MIN(t + 600, YEAR_10000); s++) {
                at = (usec_t) s * USEC_PER_SEC;
                p = time_zone_period(c->zone, s);
                if (at < next && matches(c, s + p.ahead_sec))
                        assert(!c->any_hour && s + p.ahead_sec < p.begin_sec + p.ahead_before_sec);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const int64_t instants[] = { 1, 951782340, 1774742000, 1793487600, 4107542400, 253402300000 };
        const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
        size_t n = end ? (size_t) (end - data) : size;
        _cleanup_free_ char *text = memdup_str(data, n);
        const char *expected = NULL;
        TimeZone *zone;
        Calendar c;
        int r;

        assert(text);
        zone = zone_of(data + MIN(n + 1, size), size - MIN(n + 1, size));
        for (size_t i = 0; i < ELEMENTSOF(instants); i++)
                check_zone(zone, instants[i] - (int64_t) (i % 2 ? size : 0));
        r = calendar_parse(text, &c, &expected);
        assert(r == 0 || (r == -EINVAL && expected));
        if (r < 0) {
                time_zone_free(zone);
                return 0;
        }
        c.zone = zone;
        for (size_t i = 0; i < ELEMENTSOF(instants); i++)
                check_next(&c, instants[i] + (int64_t) n);
        calendar_done(&c);
        return 0;
}
