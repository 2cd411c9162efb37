/* SPDX-License-Identifier: Apache-2.0 */
#include "civil-date.h"

#include "macro.h"

/* Of the year in which 1970-01-01 is, and the days before it since 1 March of the year 0. */
#define DAYS_TO_1970 INT64_C(719468)
#define DAYS_IN_400_YEARS INT64_C(146097)

bool civil_year_is_leap(int64_t year) {
        return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

unsigned civil_days_in_month(int64_t year, unsigned month) {
        static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

        assert(month >= 1 && month <= 12);
        return days[month - 1] + (month == 2 && civil_year_is_leap(year) ? 1u : 0u);
}

/* Years are counted from March, so that a leap day is the last of its year. */
int64_t civil_days(int64_t year, unsigned month, unsigned day) {
        int64_t from_march = month > 2 ? month - 3 : month + 9, y = month > 2 ? year : year - 1;

        assert(month >= 1 && month <= 12);
        return y * 365 + floor_div(y, 4) - floor_div(y, 100) + floor_div(y, 400) + (153 * from_march + 2) / 5 + day - 1 -
               DAYS_TO_1970;
}

CivilDate civil_from_days(int64_t days) {
        int64_t since = days + DAYS_TO_1970, era = floor_div(since, DAYS_IN_400_YEARS), of_era = since - era * DAYS_IN_400_YEARS;
        int64_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / (DAYS_IN_400_YEARS - 1)) / 365;
        int64_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        int64_t from_march = (5 * of_year + 2) / 153;
        unsigned month = (unsigned) (from_march < 10 ? from_march + 3 : from_march - 9);

        return (CivilDate){ era * 400 + year_of_era + (month <= 2 ? 1 : 0), month,
                            (unsigned) (of_year - (153 * from_march + 2) / 5) + 1 };
}

/* 1970-01-01 was a Thursday. */
unsigned civil_weekday(int64_t days) {
        int64_t w = (days + 4) % 7;

        return (unsigned) (w < 0 ? w + 7 : w);
}
