/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "string-util.h"
#include "work-queue.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC

/* One process with one queue; reconcile() writes down which key it got. */
typedef struct World {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        WorkQueue *queue;
        StrBuf story;
        unsigned n_runs;
        unsigned n_runs_limit; /* of what reconcile() does besides: */
        void (*also)(struct World *w, const char *key);
} World;

static void reconcile(const char *key, void *userdata) {
        World *w = userdata;

        strbuf_addf(&w->story, "%s ", key);
        w->n_runs++;
        if (w->also)
                w->also(w, key);
}

static void world_init(World *w) {
        *w = (World){ 0 };
        assert_return_code(virtual_time_new(1700000000 * S, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        assert_return_code(random_new(1, &w->random), 0);
        assert_return_code(work_queue_new(w->loop, w->random, "queue", S, 60 * S, reconcile, w, &w->queue),
                           0);
}

static void world_done(World *w) {
        work_queue_free(w->queue);
        random_free(w->random);
        loop_free(w->loop);
        virtual_time_free(w->time);
        strbuf_done(&w->story);
}

/* Runs until nothing is armed, or so far. */
static void world_run(World *w, usec_t until_usec) {
        while (virtual_time_step(w->time, until_usec) > 0)
                ;
}

static void expect(World *w, const char *story) {
        assert_string_equal(strbuf_str(&w->story), story);
        strbuf_truncate(&w->story, 0);
}

TEST_CASE(test_marks_collapse) {
        World w;

        world_init(&w);
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_return_code(work_queue_add(w.queue, "b"), 0);
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_int_equal(work_queue_depth(w.queue), 2);
        expect(&w, ""); /* never inside the call */
        world_run(&w, USEC_INFINITY);
        expect(&w, "a b ");
        assert_int_equal(work_queue_depth(w.queue), 0);

        assert_return_code(work_queue_add(w.queue, "a"), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "a ");
        world_done(&w);
}

static void mark_itself(World *w, const char *key) {
        if (w->n_runs < w->n_runs_limit) {
                assert_return_code(work_queue_add(w->queue, key), 0);
                assert_return_code(work_queue_add(w->queue, key), 0);
        }
}

TEST_CASE(test_mark_while_running) {
        World w;

        world_init(&w);
        w.also = mark_itself;
        w.n_runs_limit = 3;
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_return_code(work_queue_add(w.queue, "b"), 0);
        assert_return_code(work_queue_add(w.queue, "c"), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "a b c a b "); /* again, behind the others, once each */
        world_done(&w);
}

static void on_other_timer(Timer *t, void *userdata) {
        World *w = userdata;

        strbuf_add(&w->story, "| ");
}

TEST_CASE(test_others_get_their_turn) {
        Timer *other = NULL;
        unsigned n_before;
        World w;

        world_init(&w);
        assert_return_code(timer_new(w.loop, "other", on_other_timer, &w, &other), 0);
        for (unsigned i = 0; i < 1000; i++) {
                char key[16];

                (void) snprintf(key, sizeof(key), "%u", i);
                assert_return_code(work_queue_add(w.queue, key), 0);
        }
        timer_arm(other, loop_now(w.loop));
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        n_before = w.n_runs;
        assert_in_range(n_before, 1, 100);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        assert_int_equal(w.n_runs, n_before);
        assert_non_null(endswith(strbuf_str(&w.story), "| "));
        world_run(&w, USEC_INFINITY);
        assert_int_equal(w.n_runs, 1000);
        timer_free(other);
        world_done(&w);
}

TEST_CASE(test_later) {
        World w;
        usec_t now;

        world_init(&w);
        now = loop_now(w.loop);
        assert_return_code(work_queue_add_at(w.queue, "late", now + 20 * S), 0);
        assert_return_code(work_queue_add_at(w.queue, "a", now + 10 * S), 0);
        assert_return_code(work_queue_add_at(w.queue, "a", now + 30 * S), 0); /* the earliest wish wins */
        assert_return_code(work_queue_add_at(w.queue, "b", now + 30 * S), 0);
        assert_return_code(work_queue_add_at(w.queue, "b", now + 5 * S), 0);
        assert_return_code(work_queue_add_at(w.queue, "past", now - 5 * S), 0);
        assert_return_code(work_queue_add_at(w.queue, "never", USEC_INFINITY), 0);
        assert_int_equal(work_queue_depth(w.queue), 1);
        world_run(&w, now);
        expect(&w, "past ");
        world_run(&w, now + 5 * S - 1);
        expect(&w, "");
        world_run(&w, now + 10 * S);
        expect(&w, "b a ");

        /* A run now serves the wish for later too. */
        assert_return_code(work_queue_add(w.queue, "late"), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "late ");
        assert_true(loop_now(w.loop) == now + 10 * S);
        world_done(&w);
}

static void come_back_once(World *w, const char *key) {
        if (w->n_runs == 1)
                assert_return_code(work_queue_add_at(w->queue, key, loop_now(w->loop) + 7 * S), 0);
}

TEST_CASE(test_wish_of_the_run_itself_counts) {
        World w;
        usec_t now;

        world_init(&w);
        now = loop_now(w.loop);
        w.also = come_back_once;
        assert_return_code(work_queue_add_at(w.queue, "a", now + S), 0);
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "a a ");
        assert_true(loop_now(w.loop) == now + 7 * S);
        world_done(&w);
}

static void try_again(World *w, const char *key) {
        if (w->n_runs < w->n_runs_limit)
                assert_return_code(work_queue_retry(w->queue, key), 0);
        else
                work_queue_forget(w->queue, key);
}

TEST_CASE(test_retry_backs_off) {
        static const usec_t delays[] = { S, 2 * S, 4 * S, 8 * S, 16 * S, 32 * S, 60 * S, 60 * S };
        usec_t last;
        World w;

        world_init(&w);
        w.also = try_again;
        w.n_runs_limit = ELEMENTSOF(delays) + 1;
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        last = loop_now(w.loop);
        for (size_t i = 0; i <= ELEMENTSOF(delays); i++) {
                while (w.n_runs == i)
                        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
                if (i > 0) { /* a fifth of jitter */
                        assert_true(loop_now(w.loop) - last >= delays[i - 1] / 5 * 4);
                        assert_true(loop_now(w.loop) - last <= delays[i - 1] / 5 * 6);
                }
                last = loop_now(w.loop);
        }

        /* It was forgotten at the end: the backoff starts over. */
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 0);
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        assert_true(loop_now(w.loop) - last <= S / 5 * 6);
        world_done(&w);
}

/* When the only key is run next, from now. */
static usec_t world_next(World *w) {
        usec_t before = loop_now(w->loop);
        unsigned n = w->n_runs;

        while (w->n_runs == n)
                assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
        return loop_now(w->loop) - before;
}

/* Failures are remembered through a run that says neither, until it is said that all is well. */
TEST_CASE(test_failures_are_remembered) {
        World w;

        world_init(&w);
        for (unsigned i = 0; i < 3; i++) {
                assert_return_code(work_queue_retry(w.queue, "a"), 0);
                (void) world_next(&w);
        }
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 0);
        assert_return_code(work_queue_add(w.queue, "a"), 0); /* something happens */
        assert_int_equal(world_next(&w), 0);
        assert_return_code(work_queue_add_at(w.queue, "a", loop_now(w.loop) + 5 * S), 0);
        assert_int_equal(world_next(&w), 5 * S);
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_in_range(world_next(&w), 8 * S / 5 * 4, 8 * S / 5 * 6);

        print_message("while it waits\n");
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        work_queue_forget(w.queue, "a");
        assert_in_range(world_next(&w), 16 * S / 5 * 4, 16 * S / 5 * 6);
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_in_range(world_next(&w), S / 5 * 4, S / 5 * 6);
        world_done(&w);
}

static void mark_for_ever(World *w, const char *key) {
        if (streq(key, "a") && w->n_runs < w->n_runs_limit)
                assert_return_code(work_queue_add(w->queue, key), 0);
}

/* A key that marks itself at once leaves the turn to timers, although it has a drain for itself. */
TEST_CASE(test_one_leaves_its_turn) {
        Timer *other = NULL;
        World w;

        world_init(&w);
        assert_return_code(timer_new(w.loop, "other", on_other_timer, &w, &other), 0);
        w.also = mark_for_ever;
        w.n_runs_limit = 4;
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        timer_arm(other, loop_now(w.loop));
        world_run(&w, USEC_INFINITY);
        expect(&w, "a | a a a ");

        print_message("nor has a second one to wait for it\n");
        w.n_runs = 0;
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_return_code(work_queue_add(w.queue, "b"), 0);
        timer_arm(other, loop_now(w.loop));
        world_run(&w, USEC_INFINITY);
        expect(&w, "a b | a a ");
        timer_free(other);
        world_done(&w);
}

static void remove_itself(World *w, const char *key) {
        if (w->n_runs == w->n_runs_limit)
                work_queue_remove(w->queue, key);
}

/* What is removed is forgotten, wherever it stands. */
TEST_CASE(test_removed_is_forgotten) {
        World w;

        world_init(&w);
        w.also = remove_itself;
        w.n_runs_limit = 4;
        for (unsigned i = 0; i < 4; i++) {
                assert_return_code(work_queue_retry(w.queue, "a"), 0);
                (void) world_next(&w);
        }
        print_message("in its run\n");
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_in_range(world_next(&w), S / 5 * 4, S / 5 * 6);

        print_message("between two\n");
        work_queue_remove(w.queue, "a");
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_in_range(world_next(&w), S / 5 * 4, S / 5 * 6);

        print_message("waiting; with its wish for later\n");
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        work_queue_remove(w.queue, "a");
        w.n_runs = 0;
        world_run(&w, USEC_INFINITY);
        assert_int_equal(w.n_runs, 0);
        assert_return_code(work_queue_retry(w.queue, "a"), 0);
        assert_in_range(world_next(&w), S / 5 * 4, S / 5 * 6);
        world_done(&w);
}

static void remove_both(World *w, const char *key) {
        work_queue_remove(w->queue, "a");
        work_queue_remove(w->queue, "b");
        assert_true(streq(key, "a")); /* still there for the rest of the run */
}

TEST_CASE(test_remove) {
        World w;
        usec_t now;

        world_init(&w);
        now = loop_now(w.loop);
        work_queue_remove(w.queue, "unknown");
        work_queue_forget(w.queue, "unknown");
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_return_code(work_queue_add_at(w.queue, "b", now + S), 0);
        assert_return_code(work_queue_retry(w.queue, "c"), 0);
        work_queue_remove(w.queue, "a");
        work_queue_remove(w.queue, "b");
        work_queue_remove(w.queue, "c");
        assert_int_equal(work_queue_depth(w.queue), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "");

        w.also = remove_both; /* one that runs, one that waits behind it */
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_return_code(work_queue_add(w.queue, "b"), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "a ");
        world_done(&w);
}

static void free_the_queue(World *w, const char *key) {
        w->queue = work_queue_free(w->queue);
}

TEST_CASE(test_freed_by_its_own_work) {
        World w;

        world_init(&w);
        w.also = free_the_queue;
        assert_return_code(work_queue_add(w.queue, "a"), 0);
        assert_return_code(work_queue_add(w.queue, "b"), 0);
        assert_return_code(work_queue_add_at(w.queue, "c", loop_now(w.loop) + S), 0);
        world_run(&w, USEC_INFINITY);
        expect(&w, "a ");
        world_done(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_marks_collapse),
                cmocka_unit_test(test_mark_while_running),
                cmocka_unit_test(test_others_get_their_turn),
                cmocka_unit_test(test_later),
                cmocka_unit_test(test_wish_of_the_run_itself_counts),
                cmocka_unit_test(test_retry_backs_off),
                cmocka_unit_test(test_failures_are_remembered),
                cmocka_unit_test(test_one_leaves_its_turn),
                cmocka_unit_test(test_removed_is_forgotten),
                cmocka_unit_test(test_remove),
                cmocka_unit_test(test_freed_by_its_own_work),
        };
        return cmocka_run_group_tests_name("work-queue", tests, NULL, NULL);
}
