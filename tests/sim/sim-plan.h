/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A whole life of a world, drawn from one seed: how large it is, what happens in it (sim-schedule.h), how it
 * ends. The load lasts three minutes; then the faults stop, whoever is dead comes back, and all must come to
 * its end within a bound, with no trace of ours left and with a bounded number of requests.
 */

#include "sim-schedule.h"

typedef struct SimPlan {
        uint64_t seed;
        SimOptions options;
        SimSchedule *schedule;
        bool *keep; /* which entries are played */
        bool plant; /* a violation that nobody committed: when a pod of n1 goes. For tests of the shrinker */
} SimPlan;

typedef struct SimOutcome {
        bool good;
        const char *where; /* the part of life it ended in */
        char *violation;   /* NULL: none, but what was waited for did not come to pass */
        uint64_t hash, n_steps, n_requests, n_evictions;
        usec_t virtual_usec;
        size_t n_entries;
} SimOutcome;

SimPlan *sim_plan_draw(uint64_t seed);
SimPlan *sim_plan_free(SimPlan *p);
DEFINE_FREEP(SimPlan, sim_plan_free);

/* report: what went wrong is told on stderr, with the end of the trace; trace: all of it on stdout. */
void sim_plan_play(const SimPlan *p, bool report, bool trace, SimOutcome *ret);
/* The rest of it, of a life that has set `good` and `where`; reports and traces as sim_plan_play() does. */
void sim_outcome_read(const SimWorld *w, bool report, bool trace, SimOutcome *ret);
void sim_outcome_done(SimOutcome *o);
/* The same thing went wrong, whoever it happened to. */
bool sim_outcome_same(const SimOutcome *a, const SimOutcome *b);

/* Makes schedule and world as small as they can be with the same outcome, in so much real time at most.
 * Number of lives it took. */
unsigned sim_plan_shrink(SimPlan *p, const SimOutcome *outcome, usec_t at_most_usec);
/* Changes one size ("nodes", "pods", ...). -ENOENT: no such size; -ERANGE: too small. */
int sim_plan_resize(SimPlan *p, const char *size, unsigned value);
/* "3,7,9" or "" for none: only these are kept. -EINVAL. */
int sim_plan_keep(SimPlan *p, const char *numbers);
/* World and schedule, for people; and the arguments that play it again. */
void sim_plan_print(const SimPlan *p, FILE *f);
char *sim_plan_arguments(const SimPlan *p);
