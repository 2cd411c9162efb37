/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * time-zone.c: how far the clocks of a place are ahead of UTC, and when that changes. A zone is read whole from its file of the
 * IANA database (TZif, RFC 9636), by a strict reader of our own: libc knows one zone per process, in globals that every
 * thread and library shares.
 *
 * What is read: version 2 and later (a version 1 file ends in 2038), without leap seconds. Times behind the last change
 * that the file lists go by the rule at its end (POSIX TZ, with the hours -167 to 167 of version 3).
 */

#include "time-util.h"

#include "macro.h"

typedef struct TimeZone TimeZone;

#define TIME_ZONE_DIRECTORY "/usr/share/zoneinfo"
#define TIME_ZONE_BYTES_MAX (64u * 1024u)

/* Pure. -EBADMSG: no such file as above, or one that contradicts itself; -ENOMEM. */
int time_zone_parse(const void *data, size_t size, TimeZone **ret);
/* "Europe/Berlin" below `directory`. UTC, Etc/UTC and GMT need no file, and give NULL. -EINVAL: no name of a zone (so no way
 * out of the directory), -ENOENT: there is none of that name, or no database; what time_zone_parse() says. */
int time_zone_load(const char *directory, const char *name, TimeZone **ret);
TimeZone *time_zone_free(TimeZone *z);
DEFINE_FREEP(TimeZone, time_zone_free);

/* The time around an instant in which the clocks stay as far from UTC. Seconds since 1970, UTC. */
typedef struct ZonePeriod {
        int64_t begin_sec; /* INT64_MIN: since ever */
        int64_t end_sec;   /* INT64_MAX: for ever; always later than the instant */
        int32_t ahead_sec; /* local time less UTC */
        int32_t ahead_before_sec; /* ... right before begin_sec; ahead_sec where there is no before */
} ZonePeriod;

/* z: NULL is UTC. at_sec: within the years 1 to 9999, or thereabouts. */
ZonePeriod time_zone_period(const TimeZone *z, int64_t at_sec);
