/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>

#include "expected-file.h"
#include "file-util.h"
#include "sim-account.h"
#include "sim-ctl.h"
#include "sim-stories.h"
#include "sim-story-metrics.h"
#include "sim-test.h"
#include "strv.h"

/*
 * Plays each story three times in one world, and compares the accounts of the rounds. The first round has to
 * be as the story's file has it (stories/NAME.txt). The second round has to be like the first. Before the
 * third round each daemon starts anew, and the round has to be like the first, too. So the comparison finds
 * a round that leaves something behind, in a daemon or in the API, which changes the next one.
 *
 *      sim-rounds --stories DIR [NAME]             plays the stories, or one of them
 *      sim-rounds --stories DIR --every N          plays each Nth
 *      sim-rounds --stories DIR --write [NAME]     writes their files anew: read the difference after that
 *      sim-rounds --stories DIR --trace NAME       prints the world's trace
 */

#define SEED 1u
/* Difference of times that two rounds may have: a daemon sees the act of a story at its next poll of the
 * metadata, and the simulation sees the result at its next check. */
#define NEAR_SEC 3u
#define FILE_MAX (1u << 20)

static const char *stories;
static bool is_writing, is_tracing;

/* Parts of lines that only some rounds have, because a daemon does the thing once after its start. */
static const struct {
        const char *text, *reason;
} of_start[] = {
        { "&Filter.1.Value.2=OTHER-INSTANCE", "a coordinator that has seen no machine at this cloud yet asks about a second one that must be there" },
};

static void cut_start(char *account) {
        for (size_t i = 0; i < ELEMENTSOF(of_start); i++) {
                size_t n = strlen(of_start[i].text);

                for (char *p; (p = strstr(account, of_start[i].text));)
                        memmove(p, p + n, strlen(p + n) + 1);
        }
}

/* -- times ------------------------------------------------------------------------------------- */

/* Reads a time like "T+12" or "3min" at *p, and moves *p behind it. Returns false if there is no time. */
static bool read_time(const char **p, double *ret_sec) {
        static const struct {
                const char *unit;
                double sec;
        } units[] = { { "ms", 0.001 }, { "min", 60 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 }, { "seconds", 1 }, { "minutes", 60 }, { "hours", 3600 } };
        const char *start = *p + (**p == 'T'), *unit;
        char *end;

        if (!isdigit((unsigned char) start[**p == 'T']))
                return false;
        *ret_sec = strtod(start, &end);
        if (**p == 'T') {
                *p = end;
                return true;
        }
        unit = end + (*end == ' ');
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                size_t n = strlen(units[i].unit);

                if (strncmp(unit, units[i].unit, n) == 0 && !isalnum((unsigned char) unit[n])) {
                        *ret_sec *= units[i].sec;
                        *p = unit + n;
                        return true;
                }
        }
        return false;
}

/* Compares the times of two accounts that are equal without them. Returns the first line with a time that
 * differs, or NULL. Times before the begin of the round belong to an earlier round, and may differ. */
static const char *other_time(const char *a, const char *b, double near_sec) {
        for (const char *line = a; *a && *b;) {
                double of_a, of_b;
                const char *p = a, *q = b;

                if (read_time(&p, &of_a) && read_time(&q, &of_b)) {
                        if (!(of_a < 0 && of_b < 0) && (of_a - of_b > near_sec || of_b - of_a > near_sec))
                                return line;
                        a = p;
                        b = q;
                        continue;
                }
                if (*a == '\n')
                        line = a + 1;
                a++;
                b++;
        }
        return NULL;
}

/* -- rounds ------------------------------------------------------------------------------------ */

static char *copy_account(SimWorld *w, bool has_times) {
        char *text = MUST(strdup(sim_account_text(w->account, has_times)));

        cut_start(text);
        return text;
}

static void add_outputs(SimWorld *w, size_t machine, const char *step) {
        const char *node = w->machines[machine].node;
        _cleanup_free_ char *explain = sim_ctl_explain(w, node), *status = sim_ctl_status(w, node);

        sim_account_add_output(w->account, "vesperctl explain", step, explain);
        sim_account_add_output(w->account, "vesperctl status", step, status);
}

/* The node's timeline also tells of rounds before this one: rounds are compared without it. */
static char *with_timeline(SimWorld *w, size_t machine) {
        _cleanup_free_ char *timeline = sim_ctl_timeline(w, w->machines[machine].node);

        sim_account_add_output(w->account, "vesperctl timeline", "the round", timeline);
        return copy_account(w, true);
}

static char *play_round(const SimStory *s, SimWorld *w, unsigned round) {
        SimCounters *counters = sim_counters_take(w, sim_story_machine(s, round));
        _cleanup_free_ char *counted = NULL;
        const char *where;

        sim_trace_add(w->trace, "story", "%s, round %u", s->name, round + 1);
        sim_account_begin(w->account, sim_story_machine(s, round));
        if (!sim_story_play(s, w, round, 1, add_outputs, &where)) {
                sim_world_report(w, where);
                fail_msg("%s, round %u: this did not come to pass: %s", s->name, round + 1, where);
        }
        add_outputs(w, sim_story_machine(s, round), "the round");
        counted = sim_counters_since(counters, w, sim_story_machine(s, round));
        sim_account_add_output(w->account, "metrics", "the round", counted);
        return copy_account(w, false);
}

/* Prints each line that one account has more often than the other, with its subject. */
static void print_missing(const char *sign, char *const *of, char *const *other) {
        const char *subject = "";

        for (size_t i = 0; of[i]; i++) {
                ssize_t n = 0;

                if (of[i][0] != ' ') {
                        subject = of[i];
                        continue;
                }
                for (size_t j = 0; j <= i; j++)
                        n += streq(of[j], of[i]);
                for (size_t j = 0; other[j]; j++)
                        n -= streq(other[j], of[i]);
                if (n > 0)
                        print_message("%s %s: %s\n", sign, subject, of[i] + strspn(of[i], " "));
        }
}

static void require_like(const SimStory *s, const char *first, const char *again, const char *what) {
        _cleanup_strv_free_ char **a = NULL, **b = NULL;

        if (streq(first, again))
                return;
        assert_true(strv_split(first, "\n", &a) >= 0 && strv_split(again, "\n", &b) >= 0);
        print_missing("-", a, b);
        print_missing("+", b, a);
        for (size_t i = 0; a && b && a[i] && b[i]; i++)
                if (!streq(a[i], b[i])) {
                        print_message("The first difference is in line %zu:\n- %s\n+ %s\n", i + 1, a[i], b[i]);
                        break;
                }
        fail_msg("%s: %s. Again: tests/sim/sim-rounds --stories %s --trace %s", s->name, what, stories, s->name);
}

/* Fails if the times of two accounts, which are equal without them, differ too much. */
static void require_times_like(const SimStory *s, const char *first, const char *again, const char *what) {
        double near_sec = s->poll_sec > 0 ? s->poll_sec : NEAR_SEC;
        const char *line = other_time(first, again, near_sec);

        if (line)
                fail_msg("%s: %s: a time differs by more than %.0f s in the line\n%.*s\nAgain: tests/sim/sim-rounds --stories %s --trace %s", s->name,
                         what, near_sec, (int) strcspn(line, "\n"), line, stories, s->name);
}

/* Returns the contents of the story's file: its title, its steps and the account. Free it. */
static char *with_title(const SimStory *s, const char *account) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_addf(&b, "%s.\n", s->title);
        for (size_t i = 0; i < ELEMENTSOF(s->steps) && s->steps[i].what; i++)
                strbuf_addf(&b, "%zu. %s\n", i + 1, s->steps[i].what);
        strbuf_addf(&b, "\n%s", account);
        assert_false(b.failed);
        return MUST(strdup(strbuf_str(&b)));
}

static void compare_file(const SimStory *s, const char *account) {
        _cleanup_free_ char *path = MUST(strf("%s/%s.txt", stories, s->name)), *text = with_title(s, account),
                            *there = NULL;

        if (is_writing) {
                expected_file_write(path, text);
                return;
        }
        if (read_file(path, FILE_MAX, &there, NULL) < 0)
                fail_msg("%s is missing: write it by --write", path);
        require_like(s, there, text, "the first round is not as its file tells it (if it is right so, write the file by --write)");
}

static void play(void **state) {
        const SimStory *s = *state;
        _cleanup_(sim_account_freep) SimAccount *account = NULL;
        _cleanup_(sim_world_freep) SimWorld *w = sim_story_world(s, SEED);
        _cleanup_free_ char *first = NULL, *first_times = NULL, *file = NULL;

        assert_non_null(w);
        if (!s->unseen)
                sim_check_promise(w->check);
        w->account = account = sim_account_new(w);
        first = play_round(s, w, 0);
        first_times = copy_account(w, true);
        file = with_timeline(w, sim_story_machine(s, 0));
        compare_file(s, file);
        for (unsigned round = 1; round < SIM_STORY_ROUNDS; round++) {
                bool is_restarted = round == SIM_STORY_ROUNDS - 1;
                const char *what = is_restarted ? "the round after a restart of all daemons is not like the first"
                                                : "the second round is not like the first";
                _cleanup_free_ char *again = NULL, *again_times = NULL;

                require(w, sim_story_next(s, w, round - 1));
                if (is_restarted)
                        require(w, sim_story_restart(s, w));
                again = play_round(s, w, round);
                require_like(s, first, again, what);
                again_times = copy_account(w, true);
                require_times_like(s, first_times, again_times, what);
        }
        if (is_tracing)
                fputs(sim_trace_text(w->trace), stdout);
}

int main(int argc, char **argv) {
        static const struct option options[] = {
                { "stories", required_argument, NULL, 's' }, { "every", required_argument, NULL, 'e' }, { "write", no_argument, NULL, 'w' }, { "trace", no_argument, NULL, 't' }, {},
        };
        struct CMUnitTest *tests = MUST(new0(struct CMUnitTest, sim_n_stories));
        size_t n = 0, every = 1;
        int c, r;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 's':
                        stories = optarg;
                        break;
                case 'e':
                        every = MAX(strtoul(optarg, NULL, 10), 1ul);
                        break;
                case 'w':
                        is_writing = true;
                        break;
                case 't':
                        is_tracing = true;
                        break;
                default:
                        return 2;
                }
        for (size_t i = 0; i < sim_n_stories; i += every)
                if (optind == argc || streq(argv[optind], sim_stories[i].name))
                        tests[n++] = (struct CMUnitTest){ .name = sim_stories[i].name,
                                                          .test_func = play,
                                                          .initial_state = (void *) (uintptr_t) &sim_stories[i] };
        if (!stories || n == 0) {
                fprintf(stderr, "usage: sim-rounds --stories DIR [--write] [--trace] [NAME]\n");
                return 2;
        }
        r = _cmocka_run_group_tests("sim-rounds", tests, n, NULL, NULL);
        free(tests);
        return r;
}
