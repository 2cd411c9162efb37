/* SPDX-License-Identifier: Apache-2.0 */
#include "time-zone.h"

#include "civil-date.h"
#include "file-util.h"
#include "string-util.h"

#define HEADER_BYTES 44u
#define TYPE_BYTES 6u
/* The longest of the database has 236 of them. */
#define CHANGES_MAX 2000u
#define TYPES_MAX 256u
#define NAMES_BYTES_MAX 1024u
#define RULE_BYTES_MAX 128u
#define NAME_BYTES_MAX 64u
/* RFC 9636, 3.2: what a place may be away from UTC. */
#define AHEAD_MIN (-(25 * 3600) + 1)
#define AHEAD_MAX (26 * 3600 - 1)
/* Of the year of an instant and of two years on each side. */
#define CHANGE_SEC_MAX (INT64_C(1) << 60) /* what is before all times is written as -2^59 */
#define RULE_YEARS 5
#define RULE_CHANGES_MAX (2 * RULE_YEARS)

/* A day of each year. */
typedef enum RuleDay {
        RULE_DAY_WEEK,    /* Mm.w.d */
        RULE_DAY_NO_LEAP, /* Jn: 1 to 365, and 29 February is none of them */
        RULE_DAY_OF_YEAR, /* n: 0 to 365 */
} RuleDay;

typedef struct RuleChange {
        RuleDay kind;
        int32_t month, week, day;
        int32_t time_sec; /* local time as it is before the change */
} RuleChange;

typedef struct Rule {
        bool is_there;
        bool has_summer;
        int32_t ahead_sec, ahead_summer_sec;
        RuleChange to_summer, to_winter;
} Rule;

typedef struct ZoneChange {
        int64_t at_sec;
        int32_t ahead_sec; /* from then on */
} ZoneChange;

struct TimeZone {
        int32_t ahead_first_sec; /* before the first change */
        Rule rule;
        size_t n_changes;
        ZoneChange changes[]; /* ascending */
};

/* -- the rule at the end of a file ------------------------------------------------------------------ */

/* Digits at *s, which moves behind them: at most three, which is what the longest of these numbers has. */
static bool take_number(const char **s, int32_t min, int32_t max, int32_t *ret) {
        int32_t v = 0;
        unsigned n = 0;

        for (; **s >= '0' && **s <= '9'; (*s)++, n++) {
                if (n == 3)
                        return false;
                v = 10 * v + (**s - '0');
        }
        if (n == 0 || v < min || v > max)
                return false;
        *ret = v;
        return true;
}

static bool take_char(const char **s, char c) {
        if (**s != c)
                return false;
        (*s)++;
        return true;
}

/* "[+-]hh[:mm[:ss]]", in seconds. */
static bool take_hours(const char **s, int32_t hours_max, int32_t *ret) {
        bool minus = **s == '-';
        int32_t hour, minute = 0, second = 0;

        if (minus || **s == '+')
                (*s)++;
        if (!take_number(s, 0, hours_max, &hour))
                return false;
        if (take_char(s, ':')) {
                if (!take_number(s, 0, 59, &minute))
                        return false;
                if (take_char(s, ':') && !take_number(s, 0, 59, &second))
                        return false;
        }
        *ret = (hour * 3600 + minute * 60 + second) * (minus ? -1 : 1);
        return true;
}

static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "CET" or "<+03>": passed over. */
static bool take_abbreviation(const char **s) {
        bool quoted = take_char(s, '<');
        unsigned n = 0;

        for (; is_letter(**s) || (quoted && ((**s >= '0' && **s <= '9') || **s == '+' || **s == '-')); (*s)++)
                n++;
        return n >= 3 && (!quoted || take_char(s, '>'));
}

static bool take_rule_day(const char **s, RuleChange *ret) {
        if (take_char(s, 'M')) {
                ret->kind = RULE_DAY_WEEK;
                return take_number(s, 1, 12, &ret->month) && take_char(s, '.') && take_number(s, 1, 5, &ret->week) &&
                       take_char(s, '.') && take_number(s, 0, 6, &ret->day);
        }
        if (take_char(s, 'J')) {
                ret->kind = RULE_DAY_NO_LEAP;
                return take_number(s, 1, 365, &ret->day);
        }
        ret->kind = RULE_DAY_OF_YEAR;
        return take_number(s, 0, 365, &ret->day);
}

static bool take_rule_change(const char **s, RuleChange *ret) {
        ret->time_sec = 2 * 3600;
        return take_char(s, ',') && take_rule_day(s, ret) && (!take_char(s, '/') || take_hours(s, 167, &ret->time_sec));
}

/* What POSIX counts is west of Greenwich. */
static bool rule_parse(const char *s, Rule *ret) {
        Rule rule = { .is_there = true };
        int32_t west;

        if (!take_abbreviation(&s) || !take_hours(&s, 24, &west))
                return false;
        rule.ahead_sec = rule.ahead_summer_sec = -west;
        if (*s) {
                rule.has_summer = true;
                if (!take_abbreviation(&s))
                        return false;
                rule.ahead_summer_sec = rule.ahead_sec + 3600;
                if (*s != ',') {
                        if (!take_hours(&s, 24, &west))
                                return false;
                        rule.ahead_summer_sec = -west;
                }
                if (!take_rule_change(&s, &rule.to_summer) || !take_rule_change(&s, &rule.to_winter))
                        return false;
        }
        *ret = rule;
        return *s == 0;
}

/* Days since 1970 of that day in a year. */
static int64_t rule_day(const RuleChange *c, int64_t year) {
        int64_t first;
        int32_t day;

        switch (c->kind) {
        case RULE_DAY_WEEK:
                first = civil_days(year, (unsigned) c->month, 1);
                day = (c->day - (int32_t) civil_weekday(first) + 7) % 7 + (c->week - 1) * 7;
                return first + (day < (int32_t) civil_days_in_month(year, (unsigned) c->month) ? day : day - 7);
        case RULE_DAY_NO_LEAP:
                return civil_days(year, 1, 1) + c->day - (c->day < 60 || !civil_year_is_leap(year) ? 1 : 0);
        case RULE_DAY_OF_YEAR:
                return civil_days(year, 1, 1) + c->day;
        }
        assert(false && "a day of no kind");
        return 0;
}

static int64_t rule_change_at(const RuleChange *c, int64_t year, int32_t ahead_before_sec) {
        return rule_day(c, year) * CIVIL_DAY_SEC + c->time_sec - ahead_before_sec;
}

/* Inserted in its order. Where both changes of a rule fall together (summer time all the year), it is summer behind them. */
static void insert_change(ZoneChange *changes, size_t *n, ZoneChange c, bool is_summer) {
        size_t i = *n;

        while (i > 0 && changes[i - 1].at_sec > c.at_sec)
                i--;
        if (i > 0 && changes[i - 1].at_sec == c.at_sec) {
                if (is_summer)
                        changes[i - 1] = c;
                return;
        }
        memmove(&changes[i + 1], &changes[i], (*n - i) * sizeof(*changes));
        changes[i] = c;
        (*n)++;
}

/* since_sec: from when the rule holds; before that clocks were ahead_before_sec ahead. */
static ZonePeriod rule_period(const Rule *rule, int64_t since_sec, int32_t ahead_before_sec, int64_t at_sec) {
        ZonePeriod p = { since_sec, INT64_MAX, rule->ahead_sec, ahead_before_sec };
        ZoneChange changes[RULE_CHANGES_MAX];
        int64_t year;
        size_t n = 0, next = 0;

        if (!rule->has_summer)
                return p;
        year = civil_from_days(floor_div(at_sec, CIVIL_DAY_SEC)).year;
        for (int64_t y = year - RULE_YEARS / 2; y <= year + RULE_YEARS / 2; y++) {
                insert_change(changes, &n, (ZoneChange){ rule_change_at(&rule->to_winter, y, rule->ahead_summer_sec), rule->ahead_sec },
                              false);
                insert_change(changes, &n, (ZoneChange){ rule_change_at(&rule->to_summer, y, rule->ahead_sec), rule->ahead_summer_sec },
                              true);
        }
        while (next < n && changes[next].at_sec <= at_sec)
                next++;
        if (next < n)
                p.end_sec = changes[next].at_sec;
        assert(next > 0); /* two years back both have been */
        p.ahead_sec = changes[next - 1].ahead_sec;
        if (changes[next - 1].at_sec > since_sec) {
                p.begin_sec = changes[next - 1].at_sec;
                p.ahead_before_sec = next > 1 ? changes[next - 2].ahead_sec : p.ahead_sec;
        }
        return p;
}

/* -- the file ------------------------------------------------------------------------------------- */

static uint32_t read_u32(const uint8_t *p) {
        return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}

static int64_t read_i64(const uint8_t *p) {
        return (int64_t) ((uint64_t) read_u32(p) << 32 | read_u32(p + 4));
}

/* The counts of a header, and where what it counts begins. */
typedef struct Block {
        uint32_t n_utc, n_standard, n_leaps, n_changes, n_types, names_bytes;
        const uint8_t *data;
        size_t bytes;
} Block;

static int block_read(const uint8_t *data, size_t size, unsigned time_bytes, Block *ret) {
        Block b;

        if (size < HEADER_BYTES || memcmp(data, "TZif", 4) != 0 || data[4] < '2')
                return -EBADMSG;
        b = (Block){ read_u32(data + 20), read_u32(data + 24), read_u32(data + 28), read_u32(data + 32),
                     read_u32(data + 36), read_u32(data + 40), data + HEADER_BYTES, 0 };
        if (b.n_types == 0 || b.n_types > TYPES_MAX || b.n_changes > CHANGES_MAX || b.names_bytes > NAMES_BYTES_MAX ||
            b.n_utc > b.n_types || b.n_standard > b.n_types || b.n_leaps != 0)
                return -EBADMSG;
        b.bytes = (size_t) b.n_changes * (time_bytes + 1) + (size_t) b.n_types * TYPE_BYTES + b.names_bytes + b.n_standard + b.n_utc;
        if (b.bytes > size - HEADER_BYTES)
                return -EBADMSG;
        *ret = b;
        return 0;
}

static int read_type(const Block *b, uint8_t i, int32_t *ret_ahead_sec) {
        const uint8_t *types = b->data + (size_t) b->n_changes * 9;
        int32_t ahead;

        if (i >= b->n_types)
                return -EBADMSG;
        ahead = (int32_t) read_u32(types + (size_t) i * TYPE_BYTES);
        if (ahead < AHEAD_MIN || ahead > AHEAD_MAX)
                return -EBADMSG;
        *ret_ahead_sec = ahead;
        return 0;
}

static int read_changes(const Block *b, TimeZone *z) {
        int r;

        for (size_t i = 0; i < b->n_changes; i++) {
                z->changes[i].at_sec = read_i64(b->data + i * 8);
                if ((i > 0 && z->changes[i].at_sec <= z->changes[i - 1].at_sec) || z->changes[i].at_sec < -CHANGE_SEC_MAX ||
                    z->changes[i].at_sec > CHANGE_SEC_MAX)
                        return -EBADMSG;
                r = read_type(b, b->data[(size_t) b->n_changes * 8 + i], &z->changes[i].ahead_sec);
                if (r < 0)
                        return r;
        }
        z->n_changes = b->n_changes;
        return 0;
}

/* "\nCET-1CEST,M3.5.0,M10.5.0/3\n", and nothing behind it; an empty one is no rule. */
static int read_rule(const uint8_t *data, size_t size, Rule *ret) {
        char text[RULE_BYTES_MAX + 1];
        size_t n;

        if (size < 2 || size > RULE_BYTES_MAX + 2 || data[0] != '\n' || data[size - 1] != '\n')
                return -EBADMSG;
        n = size - 2;
        memcpy(text, data + 1, n);
        text[n] = 0;
        if (strlen(text) != n)
                return -EBADMSG;
        return n == 0 || rule_parse(text, ret) ? 0 : -EBADMSG;
}

int time_zone_parse(const void *data, size_t size, TimeZone **ret) {
        _cleanup_(time_zone_freep) TimeZone *z = NULL;
        const uint8_t *bytes = data;
        Block b;
        int r;

        assert(data && ret);
        r = block_read(bytes, size, 4, &b); /* of version 1, for readers of that alone */
        if (r < 0)
                return r;
        bytes += HEADER_BYTES + b.bytes;
        size -= HEADER_BYTES + b.bytes;
        r = block_read(bytes, size, 8, &b);
        if (r < 0)
                return r;
        z = calloc(1, sizeof(*z) + b.n_changes * sizeof(z->changes[0]));
        if (!z)
                return -ENOMEM;
        r = read_type(&b, 0, &z->ahead_first_sec);
        if (r < 0)
                return r;
        r = read_changes(&b, z);
        if (r < 0)
                return r;
        r = read_rule(b.data + b.bytes, size - HEADER_BYTES - b.bytes, &z->rule);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(z);
        return 0;
}

TimeZone *time_zone_free(TimeZone *z) {
        return mfree(z);
}

/* Letters, digits and "_+-", in parts that begin with a letter. */
static bool zone_name_is_valid(const char *name) {
        if (strlen(name) > NAME_BYTES_MAX)
                return false;
        for (const char *c = name; *c; c++) {
                bool first = c == name || c[-1] == '/';

                if (!is_letter(*c) && (first || !strchr("0123456789_+-/", *c)))
                        return false;
        }
        return name[0] && name[strlen(name) - 1] != '/';
}

int time_zone_load(const char *directory, const char *name, TimeZone **ret) {
        _cleanup_free_ char *path = NULL, *data = NULL;
        size_t size;
        int r;

        assert(directory && name && ret);
        if (!zone_name_is_valid(name))
                return -EINVAL;
        if (streq(name, "UTC") || streq(name, "Etc/UTC") || streq(name, "GMT")) {
                *ret = NULL;
                return 0;
        }
        path = strf("%s/%s", directory, name);
        if (!path)
                return -ENOMEM;
        r = read_file(path, TIME_ZONE_BYTES_MAX, &data, &size);
        if (r == -EISDIR || r == -ENOTDIR)
                return -ENOENT;
        return r < 0 ? r : time_zone_parse(data, size, ret);
}

/* -- an instant ------------------------------------------------------------------------------------ */

/* How many changes have been by then. */
static size_t count_changes(const TimeZone *z, int64_t at_sec) {
        size_t low = 0, high = z->n_changes;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (z->changes[middle].at_sec <= at_sec)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

ZonePeriod time_zone_period(const TimeZone *z, int64_t at_sec) {
        ZonePeriod p = { INT64_MIN, INT64_MAX, 0, 0 };
        size_t n;

        if (!z)
                return p;
        n = count_changes(z, at_sec);
        p.ahead_sec = p.ahead_before_sec = z->ahead_first_sec;
        if (n > 0) {
                p.begin_sec = z->changes[n - 1].at_sec;
                p.ahead_sec = z->changes[n - 1].ahead_sec;
                p.ahead_before_sec = n > 1 ? z->changes[n - 2].ahead_sec : z->ahead_first_sec;
        }
        if (n < z->n_changes)
                p.end_sec = z->changes[n].at_sec;
        else if (z->rule.is_there)
                p = rule_period(&z->rule, p.begin_sec, p.ahead_before_sec, at_sec);
        if (p.begin_sec == INT64_MIN)
                p.ahead_before_sec = p.ahead_sec;
        return p;
}
