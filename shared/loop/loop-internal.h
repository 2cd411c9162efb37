/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What loop.c and virtual-time.c share. Nobody else includes this. */

#include "list.h"
#include "loop.h"
#include "token-bucket.h"

#define TIMER_NOT_ARMED SIZE_MAX

struct Timer {
        Loop *loop;
        const char *description;
        timer_fn fn;
        void *userdata;
        usec_t due_usec; /* as wished, but never before the arming */
        usec_t run_usec; /* the same, or when the pause of its process ends */
        uint64_t arming; /* breaks ties: first armed, first run */
        size_t position; /* in the heap, or TIMER_NOT_ARMED */
};

/* A binary heap by (run_usec, due_usec, arming). */
typedef struct TimerHeap {
        Timer **timers;
        size_t allocated;
        size_t n_armed;
        size_t n_timers; /* armed or not: there is always room for all of them */
        uint64_t armings;
} TimerHeap;

int timer_heap_reserve(TimerHeap *h);
void timer_heap_put(TimerHeap *h, Timer *t);
void timer_heap_remove(TimerHeap *h, Timer *t);
void timer_heap_rebuild(TimerHeap *h);
static inline Timer *timer_heap_first(const TimerHeap *h) {
        return h->n_armed > 0 ? h->timers[0] : NULL;
}

struct VirtualTime {
        usec_t now_usec;
        usec_t start_wall_usec;
        TimerHeap heap; /* of all loops: their order is one */
        size_t n_loops;
};

typedef struct sd_event_source sd_event_source;

typedef struct ClockRange {
        usec_t earliest_usec, latest_usec;
} ClockRange;

struct Loop {
        TimerHeap *heap; /* own_heap, or that of the virtual time */
        TimerHeap own_heap;
        size_t n_timers;
        bool exited;
        int exit_code;

        /* Real: */
        sd_event *event;
        sd_event_source *wakeup;
        usec_t wakeup_usec; /* what `wakeup` is set to; 0: it has fired */
        bool dispatching;
        TokenBucket wakeups;         /* per_minute 0: as many as come */
        uint64_t wakeups_per_minute; /* the same where nothing is stretched */

        /* Bounds of the API server's wall clock at the zero of loop_now(), once it has answered. */
        ClockRange server;      /* the server's time at the zero of loop_now() */
        ClockRange other;       /* that contradicts it, if knows_other: first told by an answer of other_sent_usec */
        usec_t other_sent_usec;
        unsigned server_jumps;
        bool knows_other;
        bool knows_server_clock, follows_server_clock;

        /* Virtual: */
        VirtualTime *virtual_time; /* NULL on the real clock */
        int64_t wall_step_usec;
        usec_t paused_until_usec;
        List clock_watches;
};

usec_t virtual_time_wall(const VirtualTime *v, int64_t step_usec);
int virtual_time_run(Loop *l);
void clock_watches_tell(Loop *l); /* of a virtual loop */
