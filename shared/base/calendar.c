/* SPDX-License-Identifier: Apache-2.0 */
#include "calendar.h"

#include <strings.h>

#include "civil-date.h"
#include "string-util.h"
#include "strv.h"

#define SEARCH_SEC (30 * 366 * CIVIL_DAY_SEC)
/* 10000-01-01T00:00:00Z */
#define END_SEC INT64_C(253402300800)
#define DAY_MINUTES (24 * 60)

/* -- reading --------------------------------------------------------------------------------------- */

typedef struct Field {
        const char *expected;
        unsigned min, max;
        unsigned last;     /* of what has no end: *, N/S. Seven is Sunday, which is zero */
        const char *names; /* of three letters each, the first for number min; NULL: none */
} Field;

enum { FIELD_MINUTE, FIELD_HOUR, FIELD_DAY, FIELD_MONTH, FIELD_WEEKDAY, _FIELD_MAX };

static const Field fields[_FIELD_MAX] = {
        [FIELD_MINUTE] = { "a minute from 0 to 59, first of the five fields of a crontab line", 0, 59, 59, NULL },
        [FIELD_HOUR] = { "an hour from 0 to 23, second of the five fields of a crontab line", 0, 23, 23, NULL },
        [FIELD_DAY] = { "a day of the month from 1 to 31, third of the five fields of a crontab line", 1, 31, 31, NULL },
        [FIELD_MONTH] = { "a month from 1 to 12 or jan to dec, fourth of the five fields of a crontab line", 1, 12, 12,
                          "janfebmaraprmayjunjulaugsepoctnovdec" },
        [FIELD_WEEKDAY] = { "a day of the week from 0 to 7 or sun to sat, fifth of the five fields of a crontab line", 0, 7, 6,
                            "sunmontuewedthufrisat" },
};

static const struct {
        const char *name, *text;
} macros[] = {
        { "@yearly", "0 0 1 1 *" }, { "@annually", "0 0 1 1 *" }, { "@monthly", "0 0 1 * *" }, { "@weekly", "0 0 * * 0" },
        { "@daily", "0 0 * * *" },  { "@midnight", "0 0 * * *" }, { "@hourly", "0 * * * *" },
};

/* A number of one or two digits, or a name, at *s, which moves behind it. */
static bool take_value(const char **s, const Field *f, unsigned *ret) {
        unsigned v = 0, n = 0;

        for (; **s >= '0' && **s <= '9' && n < 3; (*s)++, n++)
                v = 10 * v + (unsigned) (**s - '0');
        for (unsigned i = 0; n == 0 && f->names && i < strlen(f->names) / 3; i++)
                if (strncasecmp(*s, f->names + (size_t) 3 * i, 3) == 0) {
                        *s += 3;
                        *ret = f->min + i;
                        return true;
                }
        *ret = v;
        return n > 0 && n < 3 && v >= f->min && v <= f->max;
}

static bool take_step(const char **s, const Field *f, unsigned *ret) {
        unsigned v = 0, n = 0;

        *ret = 1;
        if (**s != '/')
                return true;
        for ((*s)++; **s >= '0' && **s <= '9' && n < 3; (*s)++, n++)
                v = 10 * v + (unsigned) (**s - '0');
        *ret = v;
        return n > 0 && n < 3 && v > 0 && v <= f->max;
}

/* One part of a list at *s, added to the bits. */
static bool take_part(const char **s, const Field *f, uint64_t *bits, bool *any) {
        bool star = **s == '*' || **s == '?', alone = false;
        unsigned first = f->min, last = f->last, step;

        if (star)
                (*s)++;
        else {
                if (!take_value(s, f, &first))
                        return false;
                alone = **s != '-';
                if (alone)
                        last = first;
                else {
                        (*s)++;
                        if (!take_value(s, f, &last) || last < first)
                                return false;
                }
                if (alone && **s == '/')
                        last = MAX(f->last, first);
        }
        if (!take_step(s, f, &step))
                return false;
        for (unsigned v = first; v <= last; v += step)
                *bits |= UINT64_C(1) << v;
        *any = *any || (star && step == 1);
        return true;
}

static bool read_field(const char *text, const Field *f, uint64_t *ret_bits, bool *ret_any) {
        *ret_bits = 0;
        *ret_any = false;
        for (const char *s = text;; s++) {
                if (!take_part(&s, f, ret_bits, ret_any))
                        return false;
                if (*s == 0)
                        return true;
                if (*s != ',')
                        return false;
        }
}

/* Is there a month that has one of the days? */
static bool has_a_date(const Calendar *c) {
        if (!c->any_weekday)
                return true; /* a day of the week names some */
        for (unsigned month = 1; month <= 12; month++)
                for (unsigned day = 1; day <= civil_days_in_month(2000, month); day++)
                        if (c->months & 1u << month && c->days & UINT32_C(1) << day)
                                return true;
        return false;
}

/* words: five of them. */
static int read_fields(char *const *words, Calendar *ret, const char **reterr_expected) {
        uint64_t bits[_FIELD_MAX];
        bool any[_FIELD_MAX];

        for (unsigned i = 0; i < _FIELD_MAX; i++)
                if (!read_field(words[i], &fields[i], &bits[i], &any[i])) {
                        *reterr_expected = fields[i].expected;
                        return -EINVAL;
                }
        *ret = (Calendar){
                .minutes = bits[FIELD_MINUTE],
                .hours = (uint32_t) bits[FIELD_HOUR],
                .days = (uint32_t) bits[FIELD_DAY],
                .months = (uint16_t) bits[FIELD_MONTH],
                .weekdays = (uint8_t) ((bits[FIELD_WEEKDAY] & 0x7f) | (bits[FIELD_WEEKDAY] >> 7 & 1)),
                .any_day = any[FIELD_DAY],
                .any_weekday = any[FIELD_WEEKDAY],
                .any_hour = words[FIELD_HOUR][0] == '*' || words[FIELD_HOUR][0] == '?',
        };
        if (!has_a_date(ret)) {
                *reterr_expected = "a date that some year has";
                return -EINVAL;
        }
        return 0;
}

/* words: of the whole text. *ret_n: how many of them are the calendar. */
static int read_words(char *const *words, Calendar *ret, size_t *ret_n, const char **reterr_expected) {
        size_t n = strv_length(words);

        if (n > 0 && words[0][0] == '@') {
                *ret_n = 1;
                for (size_t i = 0; i < ELEMENTSOF(macros); i++)
                        if (strcasecmp(words[0], macros[i].name) == 0)
                                return calendar_parse(macros[i].text, ret, reterr_expected);
                *reterr_expected = "@yearly, @monthly, @weekly, @daily or @hourly";
                return -EINVAL;
        }
        *ret_n = _FIELD_MAX;
        if (n < _FIELD_MAX) {
                *reterr_expected = "five fields as in a crontab line, such as 0 3 * * *, or @daily";
                return -EINVAL;
        }
        return read_fields(words, ret, reterr_expected);
}

static int parse_text(const char *text, const char *directory, Calendar *ret, const char **reterr_expected) {
        _cleanup_strv_free_ char **words = NULL;
        Calendar c;
        size_t n;
        int r;

        if (strlen(text) > CALENDAR_BYTES_MAX) {
                *reterr_expected = "no more than 256 characters";
                return -EINVAL;
        }
        r = strv_split(text, " \t", &words);
        if (r < 0)
                return r;
        r = read_words(words, &c, &n, reterr_expected);
        if (r < 0)
                return r;
        if (strv_length(words) > n + (directory ? 1 : 0)) {
                *reterr_expected = directory ? "at most the name of a time zone behind the calendar, such as Europe/Berlin"
                                             : "nothing behind the calendar";
                return -EINVAL;
        }
        if (words[n]) {
                r = time_zone_load(directory, words[n], &c.zone);
                if (r == -ENOMEM)
                        return r;
                if (r < 0) {
                        *reterr_expected = r == -EBADMSG ? "a time zone whose file can be read"
                                                         : "a time zone that this machine knows (package tzdata), such as Europe/Berlin";
                        return -EINVAL;
                }
        }
        *ret = c;
        return 0;
}

int calendar_parse(const char *text, Calendar *ret, const char **reterr_expected) {
        assert(text && ret && reterr_expected);
        return parse_text(text, NULL, ret, reterr_expected);
}

int calendar_parse_zoned(const char *text, const char *directory, Calendar *ret, const char **reterr_expected) {
        assert(text && directory && ret && reterr_expected);
        return parse_text(text, directory, ret, reterr_expected);
}

void calendar_done(Calendar *c) {
        c->zone = time_zone_free(c->zone);
}

/* -- hits ------------------------------------------------------------------------------------------ */

static bool day_matches(const Calendar *c, int64_t days) {
        CivilDate date = civil_from_days(days);
        bool by_day = c->days >> date.day & 1, by_weekday = c->weekdays >> civil_weekday(days) & 1;

        if (!(c->months >> date.month & 1))
                return false;
        return c->any_day || c->any_weekday ? by_day && by_weekday : by_day || by_weekday;
}

/* The first minute of a day from `from` on; DAY_MINUTES: none. */
static int64_t find_minute(const Calendar *c, int64_t from) {
        for (int64_t hour = from / 60; hour < 24; hour++) {
                if (!(c->hours >> hour & 1))
                        continue;
                for (int64_t minute = hour == from / 60 ? from % 60 : 0; minute < 60; minute++)
                        if (c->minutes >> minute & 1)
                                return hour * 60 + minute;
        }
        return DAY_MINUTES;
}

/* The first local time that matches, at `from` or later, and before `end`. Seconds, as if they were UTC. */
static bool find_local(const Calendar *c, int64_t from, int64_t end, int64_t *ret) {
        int64_t minute = -floor_div(-from, 60); /* rounded up */
        int64_t day = floor_div(minute, DAY_MINUTES);

        for (minute -= day * DAY_MINUTES; day * CIVIL_DAY_SEC < end; day++, minute = 0) {
                int64_t found = day_matches(c, day) ? find_minute(c, minute) : DAY_MINUTES;

                if (found == DAY_MINUTES)
                        continue;
                *ret = day * CIVIL_DAY_SEC + found * 60;
                return *ret < end;
        }
        return false;
}

/* The first hit at `from` or later within the period that `from` is in, and before `end`. UTC. */
static bool find_in_period(const Calendar *c, const ZonePeriod *p, int64_t from, int64_t end, int64_t *ret) {
        bool starts = p->begin_sec == from;
        int64_t local = from + p->ahead_sec;
        int64_t found;

        if (!c->any_hour && p->ahead_before_sec != p->ahead_sec) {
                int64_t before = p->begin_sec + p->ahead_before_sec; /* the local time that the old clocks had reached */

                /* Left out: all that lies between both clocks comes now. */
                if (starts && find_local(c, before, local, &found)) {
                        *ret = from;
                        return true;
                }
                local = MAX(local, before); /* what is earlier has been */
        }
        if (!find_local(c, local, MIN(p->end_sec, end) + p->ahead_sec, &found))
                return false;
        *ret = found - p->ahead_sec;
        return true;
}

usec_t calendar_next(const Calendar *c, usec_t after_wall_usec) {
        int64_t from, end, found;

        assert(c);
        if (after_wall_usec >= (usec_t) END_SEC * USEC_PER_SEC)
                return USEC_INFINITY;
        from = (int64_t) (after_wall_usec / USEC_PER_SEC) + 1;
        end = MIN(from + SEARCH_SEC, END_SEC);
        while (from < end) {
                ZonePeriod p = time_zone_period(c->zone, from);

                if (find_in_period(c, &p, from, end, &found))
                        return (usec_t) found * USEC_PER_SEC;
                from = p.end_sec;
        }
        return USEC_INFINITY;
}

/* A hit at or before now is one that is not after now: the first one after the window's own length ago says it. */
bool calendar_active(const Calendar *c, usec_t duration_usec, usec_t now_wall_usec) {
        assert(c);
        /* No window began before 1970. */
        return calendar_next(c, usec_sub(now_wall_usec, duration_usec)) <= now_wall_usec;
}
