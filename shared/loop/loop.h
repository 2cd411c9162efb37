/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * loop/: one event loop per process, on sd-event or on a virtual clock, and what hangs on time: timers, backoff, the work
 * queue, the token bucket. Also the seams (env.h) through which a daemon touches the world. Called by everything above.
 *
 * All timers of a Loop live in one heap of our own behind a single sd-event timer, ordered by (due time, order of arming):
 * the same on both clocks. With the virtual clock, when nothing is due, time jumps to the next timer; one VirtualTime
 * drives any number of Loops, one per simulated process, in one global order.
 */

#include <stdbool.h>
#include <stdint.h>

#include "macro.h"
#include "time-util.h"

typedef struct sd_event sd_event;
typedef struct Loop Loop;
typedef struct Timer Timer;
typedef struct VirtualTime VirtualTime;

typedef void (*timer_fn)(Timer *t, void *userdata);

/* -- the loop ----------------------------------------------------------------------------------------------------- */

int loop_new(Loop **ret);                         /* on a new sd-event loop; CLOCK_BOOTTIME */
Loop *loop_free(Loop *l);                         /* all its timers must be freed before: asserted */
DEFINE_FREEP(Loop, loop_free);

/* Microseconds of the boot-time clock (it goes on while the machine sleeps). Every deadline inside a process is in it.
 * Read afresh at each call on the real loop. */
usec_t loop_now(const Loop *l);
/* Microseconds since 1970 of the wall clock: that of the machine, or of the API server (loop_follow_server_clock()). */
usec_t loop_wall(const Loop *l);
usec_t loop_machine_wall(const Loop *l);
/* A wall-clock instant as a deadline on this loop's clock, and back; both saturate. */
usec_t loop_from_wall(const Loop *l, usec_t wall_usec);
usec_t loop_to_wall(const Loop *l, usec_t at_usec);
/* For io sources (curl, netlink, bus, children). NULL on a virtual loop. */
sd_event *loop_sd_event(Loop *l);
int loop_run(Loop *l);                            /* until loop_exit(); returns its code, or a negative errno */
/* One iteration of a real loop, for whoever waits for something else than its exit: 1 if something ran, 0 if nothing came
 * within the time-out; a negative errno. */
int loop_iterate(Loop *l, usec_t timeout_usec);
/* For a process that would rather do much at once than little often: after `burst` wakeups one after the other it wakes up once an
 * interval at most, and what comes meanwhile (timers, too) waits for that. What comes after a quiet time is not held up: each
 * interval (a minute at most) without a wakeup saves one. Only for loop_run(); a virtual loop knows no wakeups. 0: no pace, as from the start. */
void loop_set_pace(Loop *l, unsigned burst, usec_t interval_usec);
/* From now on the interval is so many times as long (1: as it was set): while so much is under way that nobody waits for a
 * single answer. Without a pace it changes nothing. */
void loop_stretch_pace(Loop *l, unsigned times);
usec_t loop_pace(const Loop *l); /* the interval as it is now; 0: no pace */
void loop_exit(Loop *l, int code);                /* final; on a virtual loop no timer of it runs any more */
bool loop_has_exited(const Loop *l, int *ret_code);

/* -- timers: one-shot, armed again at will -------------------------------------------------------------------------- */

/* Room in the heap is reserved here, so that arming can never fail. The callback may free its own timer. */
int timer_new(Loop *l, const char *description, timer_fn fn, void *userdata, Timer **ret);
Timer *timer_free(Timer *t);
DEFINE_FREEP(Timer, timer_free);
/* Fires once at at_usec (boot-time clock); in the past: in the next iteration, never inside this call. Arming again moves
 * it. USEC_INFINITY disarms. */
void timer_arm(Timer *t, usec_t at_usec);
void timer_arm_in(Timer *t, usec_t delay_usec);
/* Arms, or moves an armed timer earlier; never later. */
void timer_arm_earlier(Timer *t, usec_t at_usec);
void timer_disarm(Timer *t);
bool timer_is_armed(const Timer *t);
usec_t timer_due(const Timer *t); /* USEC_INFINITY if not armed */

/* -- the clock of the API server ---------------------------------------------------------------------------------------- */

/* Deadlines in API objects (deletionTimestamp and a grace period) are times of the API server's clock, which may be hours away from
 * the machine's. The header Date of the API server's answers tells its clock, and the boot-time clock carries it on: at most a
 * second behind after one answer, less after many, and never ahead. */

/* Takes note of an answer: at some moment between sent_usec and received_usec (loop_now()) the clock showed date_usec, cut to its
 * second. The first answer counts at once. Later ones only narrow what is known; one that contradicts it by more than a second (a clock was set,
 * or one of several servers or a proxy before them is wrong) counts when another one, sent LOOP_SERVER_CLOCK_SURE_USEC later or more, agrees with it
 * and none between them has spoken for what was known. */
#define LOOP_SERVER_CLOCK_SURE_USEC (2 * USEC_PER_SEC)
void loop_note_server_clock(Loop *l, usec_t date_usec, usec_t sent_usec, usec_t received_usec);
/* The API server's wall clock now, as loop_to_wall() and as loop_from_wall(); before its first answer that of the machine. */
usec_t loop_server_wall(const Loop *l);
usec_t loop_to_server_wall(const Loop *l, usec_t at_usec);
usec_t loop_from_server_wall(const Loop *l, usec_t wall_usec);
/* From now on loop_wall(), loop_from_wall() and loop_to_wall() go by the API server's clock. */
void loop_follow_server_clock(Loop *l);
/* How often what was known of that clock was contradicted, and given up: what was converted before is to be converted anew. */
unsigned loop_server_clock_jumps(const Loop *l);
/* By how much the machine's clock is ahead of the API server's; negative: behind. 0 before its first answer. Microseconds. */
int64_t loop_machine_clock_ahead(const Loop *l);

/* -- the wall clock is set ------------------------------------------------------------------------------------------ */

typedef struct ClockWatch ClockWatch;
typedef void (*clock_set_fn)(void *userdata);

/* fn is called from the loop, soon after somebody has set the wall clock (slewing it is not setting it): what was converted
 * with loop_from_wall() or loop_to_wall() before is to be converted anew. -ENOMEM, or what the kernel says. */
int clock_watch_new(Loop *l, clock_set_fn fn, void *userdata, ClockWatch **ret);
ClockWatch *clock_watch_free(ClockWatch *w);
DEFINE_FREEP(ClockWatch, clock_watch_free);

/* -- virtual time --------------------------------------------------------------------------------------------------- */

int virtual_time_new(usec_t start_wall_usec, VirtualTime **ret);
VirtualTime *virtual_time_free(VirtualTime *v); /* all its loops must be freed before */
DEFINE_FREEP(VirtualTime, virtual_time_free);
int loop_new_virtual(VirtualTime *v, Loop **ret);
/* Runs the one timer that is next in the whole world, moving time to it. 1: one ran; 0: nothing is armed, or nothing due
 * up to and including limit_usec (then time stands at the limit unless that is USEC_INFINITY). */
int virtual_time_step(VirtualTime *v, usec_t limit_usec);
/* The loop of the timer that such a step would run; NULL: none. So that a simulation knows whose step it is. */
const Loop *virtual_time_next(const VirtualTime *v, usec_t limit_usec);
usec_t virtual_time_now(const VirtualTime *v);
/* Faults: a step of one process's wall clock; a process that gets no CPU until an instant (its due timers run then). */
void loop_virtual_step_wall(Loop *l, int64_t delta_usec);
void loop_virtual_pause(Loop *l, usec_t until_usec);
/* Plants a mistake: disarms the timers of this description, as if the program had forgotten to arm them. */
void loop_virtual_lose_timers(Loop *l, const char *description);
