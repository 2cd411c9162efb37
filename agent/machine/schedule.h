/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * schedule.c: a shutdown that logind has on its schedule (`shutdown -r +10`, `shutdown -h 02:00`). logind
 * tells nobody of it, so it is asked every half minute: `shutdown -r` alone leaves one minute
 * (org.freedesktop.login1(5), ScheduledShutdown; measured on systemd 252).
 */

#include "env.h"
#include "wakeup.h"

typedef struct Schedule Schedule;

/* On each change. kind: static, "reboot" or "poweroff", what it comes to for a node (kexec is a reboot, halt
 * a poweroff; a soft-reboot keeps its boot id, and nothing is said of it); NULL: nothing is scheduled.
 * at_usec: wall clock. */
typedef void (*schedule_changed_t)(const char *kind, usec_t at_usec, void *userdata);

int schedule_new(Env *env, schedule_changed_t fn, void *userdata, Schedule **ret);
Schedule *schedule_free(Schedule *s);
DEFINE_FREEP(Schedule, schedule_free);
/* Without a bus: never anything. */
void schedule_start(Schedule *s);
/* Reports the poll of logind's scheduled shutdown. A call is under way, or the next one begins within
 * SCHEDULE_WAKEUP_USEC. */
#define SCHEDULE_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void schedule_next_wakeup(const Schedule *s, Wakeups *w);
