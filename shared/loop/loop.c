/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

/*
 * One heap of timers behind one timer of sd-event. What is due at once never goes through the kernel: an
 * iteration of the real loop first runs due timers, then lets sd-event wait for a descriptor, a signal or
 * the timer, and dispatch one. So what an event leads to (most timers are armed for "now") costs no system
 * call: a kernel timer for each was the most expensive thing that a busy coordinator did (15 % of its CPU),
 * an eventfd in its place three calls of seven for each watch event. Nor does a poll's second or two: that
 * is the time-out of the wait itself. A timer of the kernel, set for a call's deadline, set back for the
 * next poll, and read when it has fired, was a fifth of the system calls of an idle agent. It stays for
 * short waits, because a time-out is rounded up to a millisecond by some versions of sd-event, and for long
 * ones, because a time-out does not count the time that the machine sleeps.
 *
 * Timers run in rounds. A round runs every timer that was armed before it and is due; what its callbacks
 * arm, even for "now", belongs to the next one. After a few rounds descriptors get their turn, whatever is
 * due. A wish in the past counts as a wish for now: it cannot overtake what was due already. The virtual
 * clock gives the same order by itself, because it runs one timer at a time.
 *
 * With a pace, a loop that has nothing left to do sleeps through what would wake it too soon. Each wakeup
 * costs the kernel, and libcurl, which looks at every transfer of a connection for each piece that arrives:
 * a coordinator that drains 200 nodes woke up 700 times a second, for two or three answers each.
 */

#include <errno.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "alloc-util.h"
#include "loop-internal.h"

/* sd-event reads 0 as its default of 250 ms. */
#define TIMER_ACCURACY_USEC 1
/* Between them, a wait has a time-out; below and above, the timer of the kernel. */
#define TIMEOUT_MIN_USEC (50 * USEC_PER_MSEC)
#define TIMEOUT_MAX_USEC (2 * USEC_PER_SEC)
/* A poll of ours takes three: it is due, libcurl begins, an answer is handed on. */
#define ROUNDS_MAX 3u

static usec_t read_clock(clockid_t clock) {
        struct timespec ts;
        int r;

        r = clock_gettime(clock, &ts);
        assert(r == 0); /* fails only for clocks that do not exist */
        return (usec_t) ts.tv_sec * USEC_PER_SEC + (usec_t) ts.tv_nsec / 1000;
}

/* One round; false: nothing was due. */
static bool run_round(Loop *l) {
        usec_t now = loop_now(l);
        uint64_t armings = l->heap->armings;
        bool ran = false;
        Timer *t;

        while (!l->exited && (t = timer_heap_first(l->heap)) && t->run_usec <= now && t->arming < armings) {
                timer_heap_remove(l->heap, t);
                t->fn(t, t->userdata); /* may free t */
                ran = true;
        }
        return ran;
}

/* False: nothing was due. */
static bool run_due(Loop *l) {
        unsigned n = 0;

        l->dispatching = true;
        while (n < ROUNDS_MAX && run_round(l))
                n++;
        l->dispatching = false;
        return n > 0;
}

/* How long sd-event may wait for something else, after it was told of the timer that is first now. Its
 * source is never switched off (infinity is never due), because only that can fail. */
static usec_t plan_wait(Loop *l) {
        const Timer *first = timer_heap_first(l->heap);
        usec_t at = first ? first->run_usec : USEC_INFINITY, now = loop_now(l);
        usec_t wait = usec_sub(at, now);

        /* One that has fired would fire again, for ever; one that comes too early does so once. */
        if (wait == 0 || (wait >= TIMEOUT_MIN_USEC && wait <= TIMEOUT_MAX_USEC))
                at = l->wakeup_usec > now ? l->wakeup_usec : USEC_INFINITY;
        else
                wait = USEC_INFINITY;
        if (at != l->wakeup_usec) {
                l->wakeup_usec = at;
                (void) sd_event_source_set_time(l->wakeup, at);
        }
        return wait;
}

static int on_wakeup(sd_event_source *s, uint64_t usec, void *userdata) {
        Loop *l = userdata;

        l->wakeup_usec = 0;
        return 0;
}

static int loop_add_wakeup(Loop *l) {
        int r;

        r = sd_event_add_time(l->event, &l->wakeup, CLOCK_BOOTTIME, USEC_INFINITY, TIMER_ACCURACY_USEC,
                              on_wakeup, l);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(l->wakeup, SD_EVENT_ON);
        if (r < 0)
                return r;
        l->wakeup_usec = USEC_INFINITY;
        return sd_event_source_set_description(l->wakeup, "timers");
}

int loop_new(Loop **ret) {
        _cleanup_(loop_freep) Loop *l = new0(Loop, 1);
        int r;

        assert(ret);
        if (!l)
                return -ENOMEM;

        l->heap = &l->own_heap;
        r = sd_event_new(&l->event);
        if (r < 0)
                return r;
        r = loop_add_wakeup(l);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(l);
        return 0;
}

int loop_new_virtual(VirtualTime *v, Loop **ret) {
        Loop *l;

        assert(v);
        assert(ret);

        l = new0(Loop, 1);
        if (!l)
                return -ENOMEM;
        l->virtual_time = v;
        l->heap = &v->heap;
        v->n_loops++;
        *ret = l;
        return 0;
}

Loop *loop_free(Loop *l) {
        if (!l)
                return NULL;

        assert(l->n_timers == 0);
        assert(!l->dispatching);
        if (l->virtual_time)
                l->virtual_time->n_loops--;
        sd_event_source_disable_unref(l->wakeup);
        sd_event_unref(l->event);
        free(l->own_heap.timers);
        return mfree(l);
}

usec_t loop_now(const Loop *l) {
        assert(l);
        return l->virtual_time ? virtual_time_now(l->virtual_time) : read_clock(CLOCK_BOOTTIME);
}

usec_t loop_machine_wall(const Loop *l) {
        assert(l);
        if (l->virtual_time)
                return virtual_time_wall(l->virtual_time, l->wall_step_usec);
        return read_clock(CLOCK_REALTIME);
}

usec_t loop_server_wall(const Loop *l) {
        return l->knows_server_clock ? usec_add(l->server.earliest_usec, loop_now(l)) : loop_machine_wall(l);
}

usec_t loop_wall(const Loop *l) {
        return l->follows_server_clock ? loop_server_wall(l) : loop_machine_wall(l);
}

void loop_follow_server_clock(Loop *l) {
        l->follows_server_clock = true;
}

/* False: the two contradict each other, and *range stays. */
static bool narrow(ClockRange *range, const ClockRange *by) {
        if (by->earliest_usec > range->latest_usec || by->latest_usec < range->earliest_usec)
                return false;
        *range = (ClockRange){ MAX(range->earliest_usec, by->earliest_usec), MIN(range->latest_usec, by->latest_usec) };
        return true;
}

/* Less than that is no clock that was set: the two drift, and what is known becomes finer than their drift. */
#define SERVER_DRIFT_USEC USEC_PER_SEC

static usec_t apart(const ClockRange *a, const ClockRange *b) {
        return MAX(usec_sub(a->earliest_usec, b->latest_usec), usec_sub(b->earliest_usec, a->latest_usec));
}

/* Each answer gives an earliest and a latest time of the server at the zero of loop_now(). loop_server_wall() goes by the earliest, so
 * that no deadline comes early. */
void loop_note_server_clock(Loop *l, usec_t date_usec, usec_t sent_usec, usec_t received_usec) {
        ClockRange told = { usec_sub(date_usec, received_usec), usec_sub(usec_add(date_usec, USEC_PER_SEC), sent_usec) };

        assert(l && sent_usec <= received_usec);
        if (!l->knows_server_clock) {
                l->server = told;
                l->knows_server_clock = true;
        } else if (narrow(&l->server, &told))
                l->knows_other = false;
        else if (apart(&l->server, &told) <= SERVER_DRIFT_USEC) {
                l->server = told;
                l->knows_other = false;
        } else if (!l->knows_other || !narrow(&l->other, &told)) {
                l->other = told;
                l->other_sent_usec = sent_usec;
                l->knows_other = true;
        } else if (sent_usec >= usec_add(l->other_sent_usec, LOOP_SERVER_CLOCK_SURE_USEC)) {
                l->server = l->other;
                l->knows_other = false;
                l->server_jumps++;
        }
}

unsigned loop_server_clock_jumps(const Loop *l) {
        return l->server_jumps;
}

int64_t loop_machine_clock_ahead(const Loop *l) {
        return l->knows_server_clock ? (int64_t) loop_machine_wall(l) - (int64_t) loop_server_wall(l) : 0;
}

/* An instant on one clock, told on another that shows `there` when the first shows `here`. */
static usec_t translate(usec_t at, usec_t here, usec_t there) {
        return at >= here ? usec_add(there, usec_sub(at, here)) : usec_sub(there, here - at);
}

usec_t loop_from_wall(const Loop *l, usec_t wall_usec) {
        return translate(wall_usec, loop_wall(l), loop_now(l));
}

usec_t loop_to_wall(const Loop *l, usec_t at_usec) {
        return translate(at_usec, loop_now(l), loop_wall(l));
}

usec_t loop_to_server_wall(const Loop *l, usec_t at_usec) {
        return translate(at_usec, loop_now(l), loop_server_wall(l));
}

usec_t loop_from_server_wall(const Loop *l, usec_t wall_usec) {
        return translate(wall_usec, loop_server_wall(l), loop_now(l));
}

sd_event *loop_sd_event(Loop *l) {
        assert(l);
        return l->event;
}

int loop_iterate(Loop *l, usec_t timeout_usec) {
        usec_t wait;
        bool ran;
        int r;

        assert(l && l->event);
        ran = run_due(l);
        wait = plan_wait(l);
        r = sd_event_run(l->event, ran ? 0 : MIN(wait, timeout_usec));
        return r < 0 ? r : ran || r > 0 || wait < timeout_usec;
}

/* False: a wakeup was due to us, and is taken. True: none was; we have slept until one is, which was this. */
static bool sleep_for_pace(Loop *l) {
        usec_t at, now = loop_now(l), left;

        if (token_bucket_take(&l->wakeups, now, &at))
                return false;
        left = usec_sub(at, now);
        (void) nanosleep(&(struct timespec){ .tv_sec = (time_t) (left / USEC_PER_SEC),
                                             .tv_nsec = (long) (left % USEC_PER_SEC) * 1000 },
                         NULL);
        (void) token_bucket_take(&l->wakeups, loop_now(l), NULL);
        return true;
}

void loop_set_pace(Loop *l, unsigned burst, usec_t interval_usec) {
        assert(l);
        assert(interval_usec <= USEC_PER_MINUTE);
        l->wakeups = (TokenBucket){ .burst = MAX(burst, 1u),
                                    .per_minute = interval_usec > 0 ? USEC_PER_MINUTE / interval_usec : 0 };
        l->wakeups_per_minute = l->wakeups.per_minute;
}

void loop_stretch_pace(Loop *l, unsigned times) {
        assert(l);
        assert(times > 0);
        l->wakeups.per_minute =
                l->wakeups_per_minute > 0 ? MAX(l->wakeups_per_minute / times, (uint64_t) 1) : 0;
}

usec_t loop_pace(const Loop *l) {
        assert(l);
        return l->wakeups.per_minute > 0 ? USEC_PER_MINUTE / l->wakeups.per_minute : 0;
}

int loop_run(Loop *l) {
        bool slept = false; /* and nothing has come since */
        usec_t wait;
        int r, code;

        assert(l);
        if (l->virtual_time)
                return virtual_time_run(l);
        while (sd_event_get_state(l->event) != SD_EVENT_FINISHED) {
                if (run_due(l))
                        slept = false;
                wait = plan_wait(l);
                if (wait > 0 && l->wakeups.per_minute > 0 && !slept) {
                        r = sd_event_run(l->event, 0);
                        if (r < 0)
                                return r;
                        slept = r == 0 && sleep_for_pace(l);
                        if (r > 0 || slept)
                                continue;
                }
                slept = false;
                r = sd_event_run(l->event, wait);
                if (r < 0)
                        return r;
        }
        r = sd_event_get_exit_code(l->event, &code);
        return r < 0 ? r : code;
}

void loop_exit(Loop *l, int code) {
        assert(l);

        if (l->exited)
                return;
        l->exited = true;
        l->exit_code = code;
        if (l->event)
                (void) sd_event_exit(l->event, code);
        else
                loop_virtual_pause(l, USEC_INFINITY);
}

bool loop_has_exited(const Loop *l, int *ret_code) {
        assert(l);
        if (l->exited && ret_code)
                *ret_code = l->exit_code;
        return l->exited;
}

/* -- timers ------------------------------------------------------------------------------------ */

int timer_new(Loop *l, const char *description, timer_fn fn, void *userdata, Timer **ret) {
        _cleanup_free_ Timer *t = NULL;
        int r;

        assert(l);
        assert(description);
        assert(fn);
        assert(ret);

        t = new0(Timer, 1);
        if (!t)
                return -ENOMEM;
        r = timer_heap_reserve(l->heap);
        if (r < 0)
                return r;

        l->heap->n_timers++;
        l->n_timers++;
        *t = (Timer){
                .loop = l,
                .description = description,
                .fn = fn,
                .userdata = userdata,
                .due_usec = USEC_INFINITY,
                .run_usec = USEC_INFINITY,
                .position = TIMER_NOT_ARMED,
        };
        *ret = TAKE_PTR(t);
        return 0;
}

Timer *timer_free(Timer *t) {
        if (!t)
                return NULL;
        timer_disarm(t);
        t->loop->heap->n_timers--;
        t->loop->n_timers--;
        return mfree(t);
}

void timer_disarm(Timer *t) {
        assert(t);
        if (!timer_is_armed(t))
                return;
        timer_heap_remove(t->loop->heap, t);
}

void timer_arm(Timer *t, usec_t at_usec) {
        Loop *l;

        assert(t);
        l = t->loop;
        if (timer_is_armed(t))
                timer_heap_remove(l->heap, t);
        if (at_usec != USEC_INFINITY) {
                t->due_usec = MAX(at_usec, loop_now(l));
                t->run_usec = MAX(t->due_usec, l->paused_until_usec);
                timer_heap_put(l->heap, t);
        }
}

void timer_arm_in(Timer *t, usec_t delay_usec) {
        assert(t);
        timer_arm(t, usec_add(loop_now(t->loop), delay_usec));
}

void timer_arm_earlier(Timer *t, usec_t at_usec) {
        assert(t);
        /* Two wishes in the past are the same: moving it would only lose its place. */
        if (timer_is_armed(t) && t->due_usec <= MAX(at_usec, loop_now(t->loop)))
                return;
        timer_arm(t, at_usec);
}

bool timer_is_armed(const Timer *t) {
        assert(t);
        return t->position != TIMER_NOT_ARMED;
}

usec_t timer_due(const Timer *t) {
        return timer_is_armed(t) ? t->due_usec : USEC_INFINITY;
}
