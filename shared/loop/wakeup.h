/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Lets tests check that something will wake each unfinished thing. A module with unfinished work has one
 * function x_next_wakeup(const X *x, Wakeups *w). The function reports each unfinished thing, and from the
 * module's real state (not from what the module meant to do) each mechanism that will wake the thing:
 *
 *      wakeups_unfinished()    a thing, its state, and the bound of its timers
 *      wakeups_timer()         a timer, if it is armed
 *      wakeups_key()           a key in a work queue, if it is dirty or due
 *      wakeups_at()            a time at which a timer that runs all the time will serve the thing
 *      wakeups_await()         something else that ends by itself: a call under way, a watch that will show a change,
 *                              another module that reports the thing under its own name
 *
 * The thing is asleep if it has none of them, or if all that it has is a timer that is due later than its
 * bound. asleep() then gets a text for people. Call between two iterations of the loop, when no module is in
 * the middle of a step.
 */

#include "loop.h"
#include "work-queue.h"

typedef void (*wakeups_asleep_t)(const char *text, void *userdata);

typedef struct Wakeups {
        usec_t now_usec; /* loop_now() */
        wakeups_asleep_t asleep;
        void *userdata;
        void (*reported)(const char *what, const char *name, const char *state, void *userdata); /* each thing; NULL: nobody */
        unsigned n_unfinished; /* things reported so far */
        /* The unfinished thing that is being reported: */
        const char *what, *name, *state; /* what NULL: none */
        usec_t bound_usec, due_usec;     /* due_usec: the earliest timer; USEC_INFINITY: none */
        bool is_awaited;
} Wakeups;

void wakeups_begin(Wakeups *w, const Loop *l, wakeups_asleep_t asleep, void *userdata);
/* Ends the report, and checks the last unfinished thing. */
void wakeups_end(Wakeups *w);

/* Begins the report of an unfinished thing, and checks the one before. The strings are borrowed until the
 * next report begins, or wakeups_end(). bound_usec: the longest time until the thing's next timer, as the
 * module's header documents; USEC_INFINITY: any timer counts. */
void wakeups_unfinished(Wakeups *w, const char *what, const char *name, const char *state,
                        usec_t bound_usec);
void wakeups_timer(Wakeups *w, const Timer *t); /* NULL: there is none */
void wakeups_key(Wakeups *w, const WorkQueue *q, const char *key);
void wakeups_at(Wakeups *w, usec_t at_usec); /* in loop time */
void wakeups_await(Wakeups *w, bool is_awaited);
