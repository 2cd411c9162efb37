/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <stdlib.h>

#include "hashmap.h"
#include "sim-account.h"
#include "sim-check.h"
#include "sim-stories.h"
#include "strv.h"

/*
 * Plays each story once for each of its calls and each answer that the call can get instead of its own. The
 * story has to end as without that answer, only later: with the same objects and the same machines. The
 * calls come from the story's own account, so a new call is covered without a change here. A call that
 * several stories make is tried in the first of them.
 *
 *      sim-answers                       plays all of them
 *      sim-answers --every N             plays each Nth
 *      sim-answers --story NAME [--call N] [--answer NAME] [--trace]
 */

#define SEED 1u
/* Factor by which a step may take longer than usual: a time-out and the longest backoff fit in. */
#define PATIENCE 8u
#define TROUBLE_USEC (2 * USEC_PER_HOUR)
/* Delay of an answer that is longer than the time-out of each call. */
#define LATE_USEC (2 * USEC_PER_MINUTE)

static const struct Answer {
        const char *name;
        unsigned n;
        HttpFault fault;
} answers[] = {
        { "404", 1, { .status = 404 } },
        { "409-twice", 2, { .status = 409 } },
        { "422", 1, { .status = 422 } },
        { "429", 1, { .status = 429, .retry_after = "3" } },
        { "500", 1, { .status = 500 } },
        { "503", 1, { .status = 503 } },
        { "refused", 1, { .refuse = true } },
        { "request-lost", 1, { .lose_request = true } },
        { "answer-lost", 1, { .lose_reply = true } },
        { "answer-late", 1, { .reply_delay_usec = LATE_USEC } },
};

/* Calls that are not made again. A story may end otherwise when such a call fails. */
static const struct {
        const char *part, *reason;
} is_made_once[] = {
        { "Action=RebootInstances", "a second one could reboot the machine twice: the reboot is left to its announced time" },
};

static bool may_end_otherwise(const char *call) {
        for (size_t i = 0; i < ELEMENTSOF(is_made_once); i++)
                if (strstr(call, is_made_once[i].part))
                        return true;
        return false;
}

typedef struct Run {
        const SimStory *story;
        char *state;
        char **calls;
} Run;

static void run_done(Run *r) {
        free(r->state);
        strv_free(r->calls);
}

/* Plays the story, with this answer to this call. Returns what went wrong, or NULL. Free it. */
static char *play(const SimStory *s, const char *call, const struct Answer *answer, bool is_traced, Run *ret) {
        _cleanup_(sim_account_freep) SimAccount *a = NULL;
        _cleanup_(sim_world_freep) SimWorld *w = sim_story_world(s, SEED);
        const char *where;
        char *wrong = NULL;

        if (!w)
                return MUST(strdup("the world does not settle"));
        w->account = a = sim_account_new(w);
        sim_account_begin(a, 0);
        if (call) {
                sim_check_trouble(w->check, TROUBLE_USEC);
                sim_account_answer(a, call, &answer->fault, answer->n);
        }
        if (!sim_story_play(s, w, 0, call ? PATIENCE : 1, NULL, &where))
                wrong = MUST(strf("%s: %s", where, sim_world_violation(w) ? sim_world_violation(w) : "this does not come to pass"));
        else if (call && sim_account_answers_left(a) == answer->n)
                wrong = MUST(strdup("the call does not come: something before it depends on a draw"));
        if (is_traced)
                fputs(sim_trace_text(w->trace), stdout);
        *ret = (Run){ .story = s, .state = sim_account_state(a), .calls = MUST(strv_copy(sim_account_calls(a))) };
        return wrong;
}

/* Replaces the number of evicted pods in conditions, which leaves out an eviction whose answer is lost. */
static void hide_evicted(char **lines) {
        STRV_FOREACH (line, lines)
                for (char *p = *line; (p = strstr(p, " evicted")); p++)
                        for (char *digit = p; digit > *line && digit[-1] >= '0' && digit[-1] <= '9';)
                                *--digit = 'N';
}

/* Returns the first line of either state that the other one lacks. */
static char *difference(const char *expected, const char *state) {
        _cleanup_strv_free_ char **a = NULL, **b = NULL;
        int r = strv_split(expected, "\n", &a);

        if (r >= 0)
                r = strv_split(state, "\n", &b);
        assert(r >= 0);
        hide_evicted(a);
        hide_evicted(b);
        for (size_t i = 0; a[i] || b[i]; i++)
                if (!a[i] || !b[i] || !streq(a[i], b[i]))
                        return MUST(strf("it ends otherwise:\n  expected %s\n  found    %s", strempty(a[i]), strempty(b[i])));
        return NULL;
}

typedef struct Totals {
        size_t n_calls, n_played, n_wrong;
        size_t n_seen; /* pairs of a call and an answer, played or not */
} Totals;

static void try_answer(const Run *base, size_t i, const struct Answer *answer, bool is_traced, Totals *t) {
        Run run = {};
        char *wrong = play(base->story, base->calls[i], answer, is_traced, &run);

        t->n_played++;
        if (!wrong)
                wrong = difference(base->state, run.state);
        if (wrong) {
                t->n_wrong++;
                printf("%s, answer %s to call %zu, %s\n  %s\n  again: sim-answers --story %s --call %zu --answer %s --trace\n", base->story->name,
                       answer->name, i, base->calls[i], wrong, base->story->name, i, answer->name);
                fflush(stdout);
        }
        free(wrong);
        run_done(&run);
}

typedef struct Options {
        const char *story, *answer;
        size_t call, every; /* SIZE_MAX: all */
        bool is_traced;
} Options;

static void try_story(const SimStory *s, const Options *o, Hashmap *seen, Totals *t) {
        Run base = {};
        char *wrong = play(s, NULL, NULL, false, &base);

        if (wrong) {
                printf("%s: %s\n", s->name, wrong);
                t->n_wrong++;
        }
        for (size_t i = 0; !wrong && base.calls[i]; i++) {
                if (may_end_otherwise(base.calls[i]) || (!o->story && hashmap_contains(seen, base.calls[i])))
                        continue;
                if (hashmap_put(seen, base.calls[i], seen) < 0)
                        abort();
                t->n_calls++;
                for (size_t k = 0; k < ELEMENTSOF(answers); k++)
                        if ((o->call == SIZE_MAX || o->call == i) && (!o->answer || streq(o->answer, answers[k].name)) && t->n_seen++ % o->every == 0)
                                try_answer(&base, i, answers + k, o->is_traced, t);
        }
        free(wrong);
        run_done(&base);
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "story", required_argument, NULL, 's' }, { "call", required_argument, NULL, 'c' },  { "answer", required_argument, NULL, 'a' },
                { "every", required_argument, NULL, 'e' }, { "trace", no_argument, NULL, 't' }, {},
        };
        Options o = { .call = SIZE_MAX, .every = 1 };
        Totals t = {};
        Hashmap *seen;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 's':
                        o.story = optarg;
                        break;
                case 'c':
                        o.call = strtoul(optarg, NULL, 10);
                        break;
                case 'a':
                        o.answer = optarg;
                        break;
                case 'e':
                        o.every = MAX(strtoul(optarg, NULL, 10), 1ul);
                        break;
                case 't':
                        o.is_traced = true;
                        break;
                default:
                        return 2;
                }
        if (hashmap_new(0, &seen) < 0)
                return 1;
        for (size_t i = 0; i < sim_n_stories; i++)
                if (!o.story || streq(o.story, sim_stories[i].name))
                        try_story(&sim_stories[i], &o, seen, &t);
        hashmap_free(seen);
        printf("%zu answers to %zu calls: %zu end otherwise than without them\n", t.n_played, t.n_calls, t.n_wrong);
        return t.n_wrong > 0 || t.n_played == 0;
}
