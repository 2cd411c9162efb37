/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Microseconds everywhere; texts only at the edges of the API. Nothing here reads a clock (that is loop/). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef uint64_t usec_t;

#define USEC_INFINITY UINT64_MAX
#define USEC_PER_MSEC ((usec_t) 1000)
#define USEC_PER_SEC ((usec_t) 1000000)
#define USEC_PER_MINUTE (60 * USEC_PER_SEC)
#define USEC_PER_HOUR (60 * USEC_PER_MINUTE)
#define USEC_PER_DAY (24 * USEC_PER_HOUR)

/* Saturating: infinity stays infinity, below zero is zero. */
static inline usec_t usec_add(usec_t a, usec_t b) {
        return a > USEC_INFINITY - b ? USEC_INFINITY : a + b;
}
static inline usec_t usec_sub(usec_t a, usec_t b) {
        return a == USEC_INFINITY ? USEC_INFINITY : a > b ? a - b : 0;
}

/* RFC 3339 as Kubernetes and clouds write it: date, 'T' or 't', time, optional fraction (1-9 digits, cut to
 * microseconds), 'Z' or offset. Years 1970-9999; second 60 is taken as 59.999999. The whole text must match.
 * 0 or -EINVAL. */
int rfc3339_parse(const char *s, usec_t *ret_wall_usec);
/* "2026-11-21T05:03:00Z" and, with exactly six decimals, metav1.MicroTime. `ret` is written whole. */
#define RFC3339_MAX 32
void rfc3339_format(usec_t wall_usec, char ret[RFC3339_MAX]);
void rfc3339_format_micro(usec_t wall_usec, char ret[RFC3339_MAX]);
/* "Sun, 06 Nov 1994 08:49:37 GMT" (IMF-fixdate), as in Date and Retry-After. -EINVAL. */
int http_date_parse(const char *s, usec_t *ret_wall_usec);
/* The same without its weekday, the day with one digit or two: "6 Nov 1994 08:49:37 GMT". -EINVAL. */
int gmt_date_parse(const char *s, usec_t *ret_wall_usec);
/* "20261121T050300Z" (SigV4); the first eight characters are its date. */
void iso8601_basic_format(usec_t wall_usec, char ret[RFC3339_MAX]);

/* Go's time.ParseDuration without sign: "1h30m", "1.5s", "300ms", "0". -EINVAL, -ERANGE past 292 years. */
int duration_parse_go(const char *s, usec_t *ret_usec);
/* systemd's form for our INI files: "5s", "2min 3s", "500ms", bare numbers are seconds, "infinity". -EINVAL, -ERANGE. */
int duration_parse(const char *s, usec_t *ret_usec);
/* For people: "1.250s", "2min 3s", "infinity". */
#define DURATION_MAX 64
const char *duration_format(usec_t usec, char ret[DURATION_MAX]);
