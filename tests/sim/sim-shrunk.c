/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules are made as short as they can be, and what is printed plays the same again. */

#include <errno.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "sim-plan.h"
#include "sim-shrink.h"

/* -- the search, over things of no meaning ----------------------------------------------------- */

typedef struct Puzzle {
        size_t needed[3], n_needed;
        unsigned n_tries, give_up_after; /* 0: never */
} Puzzle;

static int has_all(const bool *keep, size_t n, void *userdata) {
        Puzzle *p = userdata;

        if (p->give_up_after > 0 && p->n_tries == p->give_up_after)
                return -ETIME;
        p->n_tries++;
        for (size_t i = 0; i < p->n_needed; i++)
                if (!keep[p->needed[i]])
                        return 0;
        return 1;
}

static size_t kept(const bool *keep, size_t n) {
        size_t k = 0;

        for (size_t i = 0; i < n; i++)
                k += keep[i];
        return k;
}

TEST_CASE(test_search) {
        static const Puzzle rows[] = {
                { .n_needed = 0 },
                { .needed = { 0 }, .n_needed = 1 },
                { .needed = { 99 }, .n_needed = 1 },
                { .needed = { 3, 50, 51 }, .n_needed = 3 },
                { .needed = { 0, 49, 99 }, .n_needed = 3 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Puzzle p = rows[i];
                bool keep[100];

                memset(keep, 1, sizeof(keep));
                assert_int_equal(sim_shrink(keep, ELEMENTSOF(keep), has_all, &p), 0);
                assert_int_equal(kept(keep, ELEMENTSOF(keep)), p.n_needed);
                assert_int_equal(has_all(keep, ELEMENTSOF(keep), &p), 1);
                print_message("%zu of 100 found in %u tries\n", p.n_needed, p.n_tries);
                assert_true(p.n_tries < 120);
        }
}

/* Without time, what was found so far stands. */
TEST_CASE(test_search_given_up) {
        Puzzle p = { .needed = { 3, 50, 51 }, .n_needed = 3, .give_up_after = 10 };
        bool keep[100];

        memset(keep, 1, sizeof(keep));
        assert_int_equal(sim_shrink(keep, ELEMENTSOF(keep), has_all, &p), -ETIME);
        assert_in_range(kept(keep, ELEMENTSOF(keep)), 4, 99);
        p.give_up_after = 0;
        assert_int_equal(has_all(keep, ELEMENTSOF(keep), &p), 1);
}

/* -- whole lives ------------------------------------------------------------------------------- */

/* As a person would do it, with what was printed. */
static SimPlan *plan_from_arguments(const char *arguments) {
        _cleanup_free_ char *copy = strdup(arguments);
        char *save = NULL, *word = strtok_r(copy, " ", &save);
        SimPlan *p = NULL;

        for (; word; word = strtok_r(NULL, " ", &save)) {
                char *value = streq(word, "--plant") ? NULL : strtok_r(NULL, " ", &save);

                if (streq(word, "--seed"))
                        p = sim_plan_draw(strtoull(value, NULL, 10));
                else if (streq(word, "--plant"))
                        p->plant = true;
                else if (streq(word, "--keep"))
                        assert_return_code(sim_plan_keep(p, value), 0);
                else
                        assert_return_code(sim_plan_resize(p, word + 2, (unsigned) strtoul(value, NULL, 10)),
                                           0);
        }
        return p;
}

TEST_CASE(test_lives) {
        unsigned n_found = 0;

        for (uint64_t seed = 1; seed <= 40 && n_found < 5; seed++) {
                _cleanup_(sim_plan_freep) SimPlan *p = sim_plan_draw(seed), *again = NULL;
                _cleanup_free_ char *arguments = NULL;
                SimOutcome first, shortest, replayed;
                unsigned n;

                p->plant = true;
                sim_plan_play(p, false, false, &first);
                if (first.violation && strstr(first.violation, "planted")) {
                        n_found++;
                        n = sim_plan_shrink(p, &first, 30 * USEC_PER_SEC);
                        arguments = sim_plan_arguments(p);
                        print_message("after %u lives: %s\n", n, arguments);
                        sim_plan_print(p, stdout);
                        sim_plan_play(p, false, false, &shortest);
                        assert_true(sim_outcome_same(&first, &shortest));
                        /* A notice or a deletion does it; what came before may only have moved a pod there. */
                        assert_in_range(kept(p->keep, p->schedule->n), 1, 2);

                        again = plan_from_arguments(arguments);
                        sim_plan_play(again, false, false, &replayed);
                        assert_string_equal(replayed.violation, shortest.violation);
                        assert_true(replayed.hash == shortest.hash);
                        sim_outcome_done(&shortest);
                        sim_outcome_done(&replayed);
                }
                sim_outcome_done(&first);
        }
        assert_int_equal(n_found, 5);
}

/* What makes no sense on the command line. */
TEST_CASE(test_refused) {
        _cleanup_(sim_plan_freep) SimPlan *p = sim_plan_draw(1);

        assert_int_equal(sim_plan_keep(p, "0,x"), -EINVAL);
        assert_int_equal(sim_plan_keep(p, "0,4000"), -EINVAL);
        assert_int_equal(sim_plan_keep(p, ""), 0);
        assert_int_equal(kept(p->keep, p->schedule->n), 0);
        assert_int_equal(sim_plan_resize(p, "nodes", 2), -ERANGE);
        assert_int_equal(sim_plan_resize(p, "stars", 2), -ENOENT);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_search),
                cmocka_unit_test(test_search_given_up),
                cmocka_unit_test(test_lives),
                cmocka_unit_test(test_refused),
        };
        return cmocka_run_group_tests_name("sim-shrunk", tests, NULL, NULL);
}
