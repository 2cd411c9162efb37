/* SPDX-License-Identifier: Apache-2.0 */
#include "time-util.h"

#include <inttypes.h>
#include <stdio.h>

#include "civil-date.h"
#include "parse-util.h"
#include "string-util.h"

#define NSEC_PER_USEC 1000u
/* 9999-12-31T23:59:59.999999Z: later instants are shown as this one, so a year always has four digits. */
#define WALL_MAX_USEC (UINT64_C(253402300800) * USEC_PER_SEC - 1)

static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
static const char day_names[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* Exactly n digits at *s, which moves behind them. */
static bool take_digits(const char **s, unsigned n, unsigned *ret) {
        unsigned v = 0;

        for (; n > 0; n--, (*s)++) {
                if (**s < '0' || **s > '9')
                        return false;
                v = 10 * v + (unsigned) (**s - '0');
        }
        *ret = v;
        return true;
}

static bool take_char(const char **s, const char *any_of) {
        if (**s == 0 || !strchr(any_of, **s))
                return false;
        (*s)++;
        return true;
}

static bool take_text(const char **s, const char *text) {
        const char *rest = startswith(*s, text);

        if (!rest)
                return false;
        *s = rest;
        return true;
}

/* Position of the three-letter name at *s, or -1. */
static int take_name(const char **s, const char names[][4], int n) {
        for (int i = 0; i < n; i++)
                if (take_text(s, names[i]))
                        return i;
        return -1;
}

static bool date_is_valid(unsigned year, unsigned month, unsigned day) {
        return year >= 1970 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= civil_days_in_month(year, month);
}

/* Days since 1970-01-01 of a valid date. */
static uint64_t days_from_date(unsigned year, unsigned month, unsigned day) {
        return (uint64_t) civil_days(year, month, day);
}

/* "hh:mm:ss", as microseconds of the day. A leap second is the last instant of the second before it. */
static bool take_time(const char **s, usec_t *ret, bool *ret_leap) {
        unsigned hour, minute, second;

        if (!take_digits(s, 2, &hour) || !take_char(s, ":") || !take_digits(s, 2, &minute) ||
            !take_char(s, ":") || !take_digits(s, 2, &second))
                return false;
        if (hour > 23 || minute > 59 || second > 60)
                return false;

        *ret_leap = second == 60;
        *ret = hour * USEC_PER_HOUR + minute * USEC_PER_MINUTE + second * USEC_PER_SEC - (*ret_leap ? 1 : 0);
        return true;
}

/* ".123456789": 1 to 9 digits, cut to microseconds. */
static bool take_fraction(const char **s, usec_t *ret) {
        usec_t v = 0, unit = USEC_PER_SEC / 10;
        unsigned n = 0;

        for (; **s >= '0' && **s <= '9'; (*s)++, n++, unit /= 10)
                v += (usec_t) (**s - '0') * unit;
        *ret = v;
        return n >= 1 && n <= 9;
}

/* "Z" or "+hh:mm" or "-hh:mm", as minutes to be subtracted. */
static bool take_offset(const char **s, int *ret) {
        bool west = **s == '-';
        unsigned hour, minute;

        *ret = 0;
        if (take_char(s, "Z"))
                return true;
        if (!take_char(s, "+-") || !take_digits(s, 2, &hour) || !take_char(s, ":") ||
            !take_digits(s, 2, &minute))
                return false;
        if (hour > 23 || minute > 59)
                return false;
        *ret = (int) (60 * hour + minute) * (west ? -1 : 1);
        return true;
}

int rfc3339_parse(const char *s, usec_t *ret_wall_usec) {
        unsigned year, month, day;
        usec_t time_usec, fraction_usec = 0, offset_usec, wall;
        int offset_minutes;
        bool leap;

        assert(s);
        assert(ret_wall_usec);

        if (!take_digits(&s, 4, &year) || !take_char(&s, "-") || !take_digits(&s, 2, &month) ||
            !take_char(&s, "-") || !take_digits(&s, 2, &day) || !take_char(&s, "Tt") ||
            !take_time(&s, &time_usec, &leap))
                return -EINVAL;
        if (take_char(&s, ".") && !take_fraction(&s, &fraction_usec))
                return -EINVAL;
        if (!take_offset(&s, &offset_minutes) || *s != 0 || !date_is_valid(year, month, day))
                return -EINVAL;

        wall = days_from_date(year, month, day) * USEC_PER_DAY + time_usec + (leap ? 0 : fraction_usec);
        offset_usec = (usec_t) (offset_minutes < 0 ? -offset_minutes : offset_minutes) * USEC_PER_MINUTE;
        if (offset_minutes > 0 && wall < offset_usec)
                return -EINVAL; /* 1969 in UTC */
        *ret_wall_usec = offset_minutes < 0 ? wall + offset_usec : wall - offset_usec;
        return 0;
}

/* Broken down in UTC; ret is zeroed so that it can be written whole. */
static struct tm wall_begin(usec_t wall_usec, char ret[RFC3339_MAX]) {
        time_t seconds = (time_t) (MIN(wall_usec, WALL_MAX_USEC) / USEC_PER_SEC);
        struct tm tm;

        memset(ret, 0, RFC3339_MAX);
        (void) gmtime_r(&seconds, &tm); /* cannot fail before the year 10000 */
        return tm;
}

static void put_digits(char *to, size_t n, int value) {
        for (; n > 0; value /= 10)
                to[--n] = (char) ('0' + value % 10);
}

/* By hand: strftime() was a fortieth of what a pod's change costs. */
void rfc3339_format(usec_t wall_usec, char ret[RFC3339_MAX]) {
        struct tm tm = wall_begin(wall_usec, ret);

        memcpy(ret, "0000-00-00T00:00:00Z", 20);
        put_digits(ret, 4, tm.tm_year + 1900);
        put_digits(ret + 5, 2, tm.tm_mon + 1);
        put_digits(ret + 8, 2, tm.tm_mday);
        put_digits(ret + 11, 2, tm.tm_hour);
        put_digits(ret + 14, 2, tm.tm_min);
        put_digits(ret + 17, 2, tm.tm_sec);
}

void rfc3339_format_micro(usec_t wall_usec, char ret[RFC3339_MAX]) {
        struct tm tm = wall_begin(wall_usec, ret);
        unsigned micro = (unsigned) (MIN(wall_usec, WALL_MAX_USEC) % USEC_PER_SEC);
        size_t n = strftime(ret, RFC3339_MAX, "%Y-%m-%dT%H:%M:%S", &tm);

        (void) snprintf(ret + n, RFC3339_MAX - n, ".%06uZ", micro);
}

void iso8601_basic_format(usec_t wall_usec, char ret[RFC3339_MAX]) {
        struct tm tm = wall_begin(wall_usec, ret);

        (void) strftime(ret, RFC3339_MAX, "%Y%m%dT%H%M%SZ", &tm);
}

/* "06 Nov 1994 08:49:37 GMT", at least so many digits of the day. *ret_days: since 1970-01-01. */
static int take_gmt_date(const char *s, bool two_digits, usec_t *ret_wall_usec, uint64_t *ret_days) {
        unsigned n_digits = two_digits || (s[0] != 0 && s[1] != ' ') ? 2 : 1, year, day;
        usec_t time_usec;
        bool leap;
        int month;

        if (!take_digits(&s, n_digits, &day) || !take_char(&s, " "))
                return -EINVAL;
        month = take_name(&s, month_names, 12);
        if (month < 0 || !take_char(&s, " ") || !take_digits(&s, 4, &year) || !take_char(&s, " ") ||
            !take_time(&s, &time_usec, &leap) || !streq(s, " GMT"))
                return -EINVAL;
        if (!date_is_valid(year, (unsigned) month + 1, day))
                return -EINVAL;
        *ret_days = days_from_date(year, (unsigned) month + 1, day);
        *ret_wall_usec = *ret_days * USEC_PER_DAY + time_usec;
        return 0;
}

int http_date_parse(const char *s, usec_t *ret_wall_usec) {
        uint64_t days;
        usec_t usec;
        int weekday;

        assert(s);
        assert(ret_wall_usec);

        weekday = take_name(&s, day_names, 7);
        if (weekday < 0 || !take_text(&s, ", ") || take_gmt_date(s, true, &usec, &days) < 0)
                return -EINVAL;
        if ((days + 4) % 7 != (uint64_t) weekday) /* 1970-01-01 was a Thursday */
                return -EINVAL;
        *ret_wall_usec = usec;
        return 0;
}

int gmt_date_parse(const char *s, usec_t *ret_wall_usec) {
        uint64_t days;

        assert(s);
        assert(ret_wall_usec);
        return take_gmt_date(s, false, ret_wall_usec, &days);
}

/* -- durations --------------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 uint128_t;

typedef struct Unit {
        const char *name;
        uint64_t nsec;
} Unit;

#define NSEC(usec) ((usec) *NSEC_PER_USEC)

static const Unit go_units[] = {
        { "ns", 1 },
        { "us", NSEC(1) },
        { "\xc2\xb5s", NSEC(1) }, /* micro sign */
        { "\xce\xbcs", NSEC(1) }, /* Greek mu */
        { "ms", NSEC(USEC_PER_MSEC) },
        { "s", NSEC(USEC_PER_SEC) },
        { "m", NSEC(USEC_PER_MINUTE) },
        { "h", NSEC(USEC_PER_HOUR) },
        { NULL, 0 },
};

static const Unit systemd_units[] = {
        { "us", NSEC(1) },
        { "usec", NSEC(1) },
        { "\xc2\xb5s", NSEC(1) },
        { "\xce\xbcs", NSEC(1) },
        { "ms", NSEC(USEC_PER_MSEC) },
        { "msec", NSEC(USEC_PER_MSEC) },
        { "s", NSEC(USEC_PER_SEC) },
        { "sec", NSEC(USEC_PER_SEC) },
        { "second", NSEC(USEC_PER_SEC) },
        { "seconds", NSEC(USEC_PER_SEC) },
        { "m", NSEC(USEC_PER_MINUTE) },
        { "min", NSEC(USEC_PER_MINUTE) },
        { "minute", NSEC(USEC_PER_MINUTE) },
        { "minutes", NSEC(USEC_PER_MINUTE) },
        { "h", NSEC(USEC_PER_HOUR) },
        { "hr", NSEC(USEC_PER_HOUR) },
        { "hour", NSEC(USEC_PER_HOUR) },
        { "hours", NSEC(USEC_PER_HOUR) },
        { "d", NSEC(USEC_PER_DAY) },
        { "day", NSEC(USEC_PER_DAY) },
        { "days", NSEC(USEC_PER_DAY) },
        { "w", NSEC(7 * USEC_PER_DAY) },
        { "week", NSEC(7 * USEC_PER_DAY) },
        { "weeks", NSEC(7 * USEC_PER_DAY) },
        { NULL, 0 },
};

/* A decimal number as it is written: whole + fraction / scale. */
typedef struct Decimal {
        uint64_t whole;
        uint64_t fraction;
        uint64_t scale;
        unsigned n_whole, n_fraction; /* digits seen */
        bool point;
        bool overflow;
} Decimal;

static Decimal take_decimal(const char **s) {
        Decimal d = { .scale = 1 };

        for (; **s >= '0' && **s <= '9'; (*s)++, d.n_whole++)
                if (__builtin_mul_overflow(d.whole, (uint64_t) 10, &d.whole) ||
                    __builtin_add_overflow(d.whole, (uint64_t) (**s - '0'), &d.whole))
                        d.overflow = true;

        d.point = take_char(s, ".");
        if (!d.point)
                return d;
        for (; **s >= '0' && **s <= '9'; (*s)++, d.n_fraction++)
                if (d.scale < UINT64_C(1000000000000000000)) { /* the rest is far below a nanosecond */
                        d.fraction = 10 * d.fraction + (uint64_t) (**s - '0');
                        d.scale *= 10;
                }
        return d;
}

/* The unit whose name is the `size` bytes at s. */
static const Unit *find_unit(const Unit *units, const char *s, size_t size) {
        for (; units->name; units++)
                if (strlen(units->name) == size && strncmp(units->name, s, size) == 0)
                        return units;
        return NULL;
}

static const Unit *take_unit(const char **s, const Unit *units, const char *ends_at) {
        size_t size = strcspn(*s, ends_at);
        const Unit *u = find_unit(units, *s, size);

        *s += size;
        return u;
}

/* *total_nsec grows by the number of units, cut to nanoseconds. False: past max_nsec. */
static bool add_decimal(uint128_t *total_nsec, const Decimal *d, uint64_t unit_nsec, uint128_t max_nsec) {
        if (d->overflow)
                return false;
        *total_nsec += (uint128_t) d->whole * unit_nsec + (uint128_t) d->fraction * unit_nsec / d->scale;
        return *total_nsec <= max_nsec;
}

int duration_parse_go(const char *s, usec_t *ret_usec) {
        uint128_t total_nsec = 0;
        bool in_range = true;

        assert(s);
        assert(ret_usec);

        if (streq(s, "0")) {
                *ret_usec = 0;
                return 0;
        }
        if (*s == 0)
                return -EINVAL;

        while (*s) {
                Decimal d = take_decimal(&s);
                const Unit *u = take_unit(&s, go_units, ".0123456789");

                if (!u || d.n_whole + d.n_fraction == 0)
                        return -EINVAL;
                in_range = in_range && add_decimal(&total_nsec, &d, u->nsec, INT64_MAX);
        }
        if (!in_range)
                return -ERANGE;
        *ret_usec = (usec_t) (total_nsec / NSEC_PER_USEC);
        return 0;
}

#define BLANKS " \t\n\r"

int duration_parse(const char *s, usec_t *ret_usec) {
        const uint128_t max_nsec = (uint128_t) USEC_INFINITY * NSEC_PER_USEC - 1;
        uint128_t total_nsec = 0;
        bool in_range = true;

        assert(s);
        assert(ret_usec);

        s += strspn(s, BLANKS);
        if (startswith(s, "infinity") && s[8 + strspn(s + 8, BLANKS)] == 0) {
                *ret_usec = USEC_INFINITY;
                return 0;
        }
        if (*s == 0)
                return -EINVAL;

        while (*s) {
                Decimal d = take_decimal(&s);
                uint64_t unit_nsec = NSEC(USEC_PER_SEC);

                if (d.n_whole + d.n_fraction == 0 || (d.point && d.n_fraction == 0))
                        return -EINVAL;
                s += strspn(s, BLANKS);
                if (*s != 0 && (*s < '0' || *s > '9') && *s != '.') {
                        const Unit *u = take_unit(&s, systemd_units, BLANKS ".0123456789");

                        if (!u)
                                return -EINVAL;
                        unit_nsec = u->nsec;
                } else if (*s == '.')
                        return -EINVAL; /* "1.2.3" */
                in_range = in_range && add_decimal(&total_nsec, &d, unit_nsec, max_nsec);
                s += strspn(s, BLANKS);
        }
        if (!in_range)
                return -ERANGE;
        *ret_usec = (usec_t) (total_nsec / NSEC_PER_USEC);
        return 0;
}

/* "1.250s": three digits behind the point, or none. */
static void format_thousandths(usec_t v, const char *unit, char ret[DURATION_MAX]) {
        if (v % 1000 > 0)
                (void) snprintf(ret, DURATION_MAX, "%" PRIu64 ".%03" PRIu64 "%s", v / 1000, v % 1000, unit);
        else
                (void) snprintf(ret, DURATION_MAX, "%" PRIu64 "%s", v / 1000, unit);
}

const char *duration_format(usec_t usec, char ret[DURATION_MAX]) {
        static const struct {
                const char *name;
                usec_t usec;
        } parts[] = {
                { "d", USEC_PER_DAY },
                { "h", USEC_PER_HOUR },
                { "min", USEC_PER_MINUTE },
                { "s", USEC_PER_SEC },
        };
        size_t n = 0;

        if (usec == USEC_INFINITY)
                (void) snprintf(ret, DURATION_MAX, "infinity");
        else if (usec == 0)
                (void) snprintf(ret, DURATION_MAX, "0s");
        else if (usec < USEC_PER_MSEC)
                (void) snprintf(ret, DURATION_MAX, "%" PRIu64 "us", usec);
        else if (usec < USEC_PER_SEC)
                format_thousandths(usec, "ms", ret);
        else if (usec < USEC_PER_MINUTE)
                format_thousandths(usec / USEC_PER_MSEC, "s", ret);
        else
                for (size_t i = 0; i < ELEMENTSOF(parts); usec %= parts[i].usec, i++)
                        if (usec >= parts[i].usec)
                                n += (size_t) snprintf(ret + n, DURATION_MAX - n, "%s%" PRIu64 "%s",
                                                       n > 0 ? " " : "", usec / parts[i].usec,
                                                       parts[i].name);
        return ret;
}
