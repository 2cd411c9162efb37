/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Dates of the Gregorian calendar, as days since 1970-01-01. Years 1 to 9999. */

#include <stdbool.h>
#include <stdint.h>

#define CIVIL_DAY_SEC INT64_C(86400)

typedef struct CivilDate {
        int64_t year;
        unsigned month, day; /* from 1 */
} CivilDate;

bool civil_year_is_leap(int64_t year);
unsigned civil_days_in_month(int64_t year, unsigned month);
/* A day past the end of its month is one of the next. */
int64_t civil_days(int64_t year, unsigned month, unsigned day);
CivilDate civil_from_days(int64_t days);
unsigned civil_weekday(int64_t days); /* 0: Sunday */

/* Rounded down, also below zero. */
static inline int64_t floor_div(int64_t a, int64_t b) {
        return a / b - (a % b < 0 ? 1 : 0);
}
