/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim-random --seeds FROM COUNT [--stride N] [--go-on]: plays that many seeds (sim-plan.h): worlds in which
 * everything is drawn. The first one that fails is told, made as short as it can be, with the command that
 * plays it again. --stride: each N-th of them, for as many processes; --go-on: a line for each that fails,
 * and on.
 *
 * sim-random --reboots --seeds ..., --reboots --seed N [--trace]: the same with the worlds of sim-reboots.h; --events: with those
 * of sim-events.h; --notices: with those of sim-notices.h; --queue: with those of sim-queues.h; --repairs: with those of sim-repairs.h;
 * --launches: with those of sim-launches.h.
 *
 * sim-random --seed N [--keep 3,7,9] [--nodes N ...] [--trace] [--show]: plays one life again, or shows it.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hashmap.h"
#include "parse-util.h"
#include "sim-events.h"
#include "sim-launches.h"
#include "sim-notices.h"
#include "sim-plan.h"
#include "sim-queues.h"
#include "sim-reboots.h"
#include "sim-repairs.h"

#define SHRINK_USEC (60 * USEC_PER_SEC)

/* Worlds of another kind than sim-plan's. */
typedef struct Kind {
        const char *option;
        void (*play)(uint64_t seed, bool report, bool trace, SimOutcome *ret);
} Kind;

static const Kind kinds[] = { { "--reboots", sim_reboots_play },
                              { "--events", sim_events_play },
                              { "--notices", sim_notices_play },
                              { "--queue", sim_queues_play },
                              { "--repairs", sim_repairs_play },
                              { "--launches", sim_launches_play } };

typedef struct Run {
        uint64_t from, count, stride, hash, n_seeds, n_failed, n_steps, n_requests, n_evictions;
        usec_t virtual_usec;
        bool go_on;
        const Kind *kind; /* NULL: sim-plan's */
} Run;

static double real_seconds(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static void tell_shortest(SimPlan *p, const SimOutcome *o) {
        _cleanup_free_ char *arguments = NULL;
        unsigned n;

        sim_plan_print(p, stderr);
        fprintf(stderr, "looking for the shortest schedule that shows it...\n");
        n = sim_plan_shrink(p, o, SHRINK_USEC);
        arguments = sim_plan_arguments(p);
        fprintf(stderr, "after %u lives:\n", n);
        sim_plan_print(p, stderr);
        fprintf(stderr, "play it again: sim-random %s --trace\n", arguments);
}

static bool play_seed(Run *run, uint64_t seed) {
        _cleanup_(sim_plan_freep) SimPlan *p = run->kind ? NULL : sim_plan_draw(seed);
        SimOutcome o;
        bool good;

        if (p)
                sim_plan_play(p, !run->go_on, false, &o);
        else
                run->kind->play(seed, !run->go_on, false, &o);
        good = o.good;
        run->n_seeds++;
        run->n_failed += !good;
        run->n_steps += o.n_steps;
        run->n_requests += o.n_requests;
        run->n_evictions += o.n_evictions;
        run->virtual_usec += o.virtual_usec;
        run->hash = hash64(&(uint64_t[2]){ run->hash, o.hash }, 2 * sizeof(uint64_t));
        if (!good && run->go_on)
                printf("seed %" PRIu64 ": %s: %s\n", seed, o.where,
                       o.violation ? o.violation : "did not come to pass in time");
        else if (!good && p)
                tell_shortest(p, &o);
        else if (!good)
                fprintf(stderr, "play it again: sim-random %s --seed %" PRIu64 " --trace\n", run->kind->option, seed);
        sim_outcome_done(&o);
        fflush(stdout);
        return good;
}

static int play_seeds(Run *run) {
        double start = real_seconds(), seconds;

        printf("playing: sim-random %s%s--seeds %" PRIu64 " %" PRIu64 " --stride %" PRIu64 "\n",
               run->kind ? run->kind->option : "", run->kind ? " " : "", run->from, run->count, run->stride);
        fflush(stdout);
        for (uint64_t seed = run->from; seed < run->from + run->count; seed += run->stride)
                if (!play_seed(run, seed) && !run->go_on)
                        return 1;
        seconds = real_seconds() - start;
        printf("seeds %" PRIu64 "..%" PRIu64 " by %" PRIu64 ": %" PRIu64 " worlds, %" PRIu64
               " violations, %.1f virtual hours, %" PRIu64 " steps, %" PRIu64 " requests, %" PRIu64
               " evictions, %.1f s, %.1f seeds/s, hash %016" PRIx64 "\n",
               run->from, run->from + run->count - 1, run->stride, run->n_seeds, run->n_failed,
               (double) run->virtual_usec / (double) USEC_PER_HOUR, run->n_steps, run->n_requests,
               run->n_evictions, seconds, (double) run->n_seeds / seconds, run->hash);
        return run->n_failed > 0;
}

static void tell(uint64_t seed, const SimOutcome *o) {
        const char *why = o->good ? "" : o->violation ? o->violation : "did not come to pass in time";

        printf("seed %" PRIu64 ": %s%s%s, trace %016" PRIx64 "\n", seed, o->good ? "no violation" : o->where,
               o->good ? "" : ": ", why, o->hash);
}

static int play_one(SimPlan *p, bool trace, bool shrink) {
        SimOutcome o;
        int code;

        sim_plan_play(p, !trace, trace, &o);
        code = !o.good;
        tell(p->seed, &o);
        if (!o.good && shrink)
                tell_shortest(p, &o);
        sim_outcome_done(&o);
        return code;
}

static int play_one_of_kind(const Kind *kind, uint64_t seed, bool trace) {
        SimOutcome o;
        int code;

        kind->play(seed, !trace, trace, &o);
        code = !o.good;
        tell(seed, &o);
        sim_outcome_done(&o);
        return code;
}

/* -- the command line -------------------------------------------------------------------------- */

static int usage(const char *why, const char *what) {
        fprintf(stderr,
                "%s%s\nusage: sim-random --seeds FROM COUNT [--stride N] [--go-on]\n"
                "       sim-random --seed N [--keep 3,7,9] [--nodes N] [--pods N] ... [--trace] [--show] "
                "[--shrink]\n"
                "       sim-random --reboots|--events|--notices|--queue|--repairs|--launches --seeds FROM COUNT [--stride N] [--go-on]\n"
                "       sim-random --reboots|--events|--notices|--queue|--repairs|--launches --seed N [--trace]\n",
                why, what);
        return 2;
}

static int parse_run(int argc, char **argv, Run *ret) {
        *ret = (Run){ .stride = 1 };
        if (argc < 4 || parse_uint64(argv[2], &ret->from) < 0 || parse_uint64(argv[3], &ret->count) < 0)
                return -EINVAL;
        for (int i = 4; i < argc; i++)
                if (streq(argv[i], "--go-on"))
                        ret->go_on = true;
                else if (!streq(argv[i], "--stride") || ++i >= argc ||
                         parse_uint64(argv[i], &ret->stride) < 0 || ret->stride == 0)
                        return -EINVAL;
        return 0;
}

/* One life: sim-random --seed N ... */
static int main_one(int argc, char **argv) {
        _cleanup_(sim_plan_freep) SimPlan *p = NULL;
        bool trace = false, show = false, shrink = false;
        uint64_t seed, value;

        if (argc < 3 || parse_uint64(argv[2], &seed) < 0)
                return usage("no seed", "");
        p = sim_plan_draw(seed);
        for (int i = 3; i < argc; i++) {
                const char *name = argv[i], *text = i + 1 < argc ? argv[i + 1] : NULL;

                if (streq(name, "--trace"))
                        trace = true;
                else if (streq(name, "--show"))
                        show = true;
                else if (streq(name, "--shrink"))
                        shrink = true;
                else if (streq(name, "--plant"))
                        p->plant = true;
                else if (!startswith(name, "--") || !text)
                        return usage("what is ", name);
                else if (streq(name, "--keep") ? sim_plan_keep(p, text) < 0
                                               : parse_uint64(text, &value) < 0 || value > UINT_MAX ||
                                                         sim_plan_resize(p, name + 2, (unsigned) value) < 0)
                        return usage("not possible: ", name);
                else
                        i++;
        }
        if (show) {
                sim_plan_print(p, stdout);
                return 0;
        }
        return play_one(p, trace, shrink);
}

static int main_one_of_kind(const Kind *kind, int argc, char **argv) {
        bool trace = argc == 4 && streq(argv[3], "--trace");
        uint64_t seed;

        if (argc < 3 || argc > 3 + trace || parse_uint64(argv[2], &seed) < 0)
                return usage("", "");
        return play_one_of_kind(kind, seed, trace);
}

int main(int argc, char **argv) {
        const Kind *kind = NULL;
        Run run;

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (argc > 1 && streq(argv[1], kinds[i].option))
                        kind = &kinds[i];
        argc -= kind != NULL;
        argv += kind != NULL;
        if (argc > 1 && streq(argv[1], "--seed"))
                return kind ? main_one_of_kind(kind, argc, argv) : main_one(argc, argv);
        if (argc < 2 || !streq(argv[1], "--seeds") || parse_run(argc, argv, &run) < 0)
                return usage("", "");
        run.kind = kind;
        return play_seeds(&run);
}
