/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * calendar.c: recurring times, as crontab(5) and the schedule of a CronJob write them: "30 3 * * 1-5", "@weekly".
 *
 *      minute 0-59, hour 0-23, day of month 1-31, month 1-12 or jan-dec, day of week 0-7 (0 and 7: Sunday) or sun-sat
 *      each of them a list of: * or ?, N, N-M; with /S behind it each S-th of these, N/S being from N on
 *      @yearly @annually @monthly @weekly @daily @midnight @hourly
 *
 * If both the day of month and the day of week are restricted (neither has a * or ? with step 1), a day matches that either
 * of them names. A date that no year has, such as 30 February, is refused.
 *
 * Times are local ones of a zone. Where its clocks are set, which a CronJob leaves to chance:
 *
 *      hours that begin with * or ? count on as time goes by: local times that are left out (set forward) do not hit, those
 *      that come twice (set back) hit twice. "30 * * * *" hits once an hour of real time.
 *      other hours hit once for each local date: a time that is left out at the moment at which the clocks are set, one that
 *      comes twice at the first of both.
 */

#include "time-zone.h"

typedef struct Calendar {
        uint64_t minutes; /* a bit for each */
        uint32_t hours;
        uint32_t days; /* of the month: bits 1 to 31 */
        uint16_t months; /* bits 1 to 12 */
        uint8_t weekdays; /* bit 0: Sunday */
        bool any_day, any_weekday, any_hour; /* began with *, see above */
        TimeZone *zone; /* owned; NULL: UTC */
} Calendar;

#define CALENDAR_BYTES_MAX 256u

/* The five fields, or a macro: without zone, which calendar_parse_zoned() reads. -EINVAL: *reterr_expected (static, for
 * people) says what is wrong. */
int calendar_parse(const char *text, Calendar *ret, const char **reterr_expected);
/* The same with the name of a zone behind it, if any: "0 3 * * * Europe/Berlin". What time_zone_load() says of that below
 * `directory` becomes -EINVAL, too; -ENOMEM. */
int calendar_parse_zoned(const char *text, const char *directory, Calendar *ret, const char **reterr_expected);
void calendar_done(Calendar *c);

/* The first hit later than that, wall clock. USEC_INFINITY: none in the next 30 years or before the year 10000. */
usec_t calendar_next(const Calendar *c, usec_t after_wall_usec);
/* Is it less than `duration` since the last hit (at or before now)? Of windows that overlap the union. */
bool calendar_active(const Calendar *c, usec_t duration_usec, usec_t now_wall_usec);
