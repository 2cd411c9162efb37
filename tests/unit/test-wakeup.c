/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "string-util.h"
#include "wakeup.h"

#define S USEC_PER_SEC

typedef struct World {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        WorkQueue *queue;
        Timer *timer;
        char *asleep; /* the last text */
        unsigned n_asleep;
} World;

static void on_asleep(const char *text, void *userdata) {
        World *w = userdata;

        assert_return_code(free_and_strdup(&w->asleep, text), 0);
        w->n_asleep++;
}

static void on_key(const char *key, void *userdata) {
}

static void on_timer(Timer *t, void *userdata) {
}

static void world_init(World *w) {
        *w = (World){ 0 };
        assert_return_code(virtual_time_new(1700000000 * S, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        assert_return_code(random_new(1, &w->random), 0);
        assert_return_code(work_queue_new(w->loop, w->random, "queue", S, 60 * S, on_key, w, &w->queue), 0);
        assert_return_code(timer_new(w->loop, "timer", on_timer, w, &w->timer), 0);
}

static void world_done(World *w) {
        timer_free(w->timer);
        work_queue_free(w->queue);
        random_free(w->random);
        loop_free(w->loop);
        virtual_time_free(w->time);
        free(w->asleep);
}

/* The wake-ups of a thing with the bound of 10 s. */
static const struct {
        const char *label;
        usec_t timer_in; /* 0: not armed */
        usec_t key_in;   /* 0: not due */
        usec_t at_in;    /* 0: not reported */
        bool is_awaited;
        const char *asleep; /* expected text; NULL: the thing is awake */
} rows[] = {
        { "nothing", .asleep = "thing x (busy) has no timer, no call and no watch" },
        { "a timer", .timer_in = 3 * S },
        { "a timer at the bound", .timer_in = 10 * S },
        { "a timer beyond the bound", .timer_in = 11 * S,
                .asleep = "thing x (busy) has only a timer in 11 s, later than 10 s" },
        { "a timer beyond the bound, and a call", .timer_in = 11 * S, .is_awaited = true },
        { "a timer beyond the bound, and a key", .timer_in = 11 * S, .key_in = 4 * S },
        { "a key", .key_in = 10 * S },
        { "a key beyond the bound", .key_in = 12 * S,
                .asleep = "thing x (busy) has only a timer in 12 s, later than 10 s" },
        { "a time", .at_in = 2 * S },
        { "a time beyond the bound", .at_in = 13 * S,
                .asleep = "thing x (busy) has only a timer in 13 s, later than 10 s" },
        { "a call", .is_awaited = true },
};

TEST_CASE(test_rows) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World w;
                Wakeups wakeups;

                print_message("  %s\n", rows[i].label);
                world_init(&w);
                if (rows[i].timer_in > 0)
                        timer_arm_in(w.timer, rows[i].timer_in);
                if (rows[i].key_in > 0)
                        assert_return_code(work_queue_add_at(w.queue, "key",
                                                             loop_now(w.loop) + rows[i].key_in), 0);
                wakeups_begin(&wakeups, w.loop, on_asleep, &w);
                wakeups_unfinished(&wakeups, "thing", "x", "busy", 10 * S);
                wakeups_timer(&wakeups, NULL);
                wakeups_timer(&wakeups, w.timer);
                wakeups_key(&wakeups, w.queue, "key");
                wakeups_key(&wakeups, w.queue, "another key");
                if (rows[i].at_in > 0)
                        wakeups_at(&wakeups, loop_now(w.loop) + rows[i].at_in);
                wakeups_await(&wakeups, rows[i].is_awaited);
                wakeups_await(&wakeups, false);
                assert_int_equal(w.n_asleep, 0); /* not judged yet */
                wakeups_end(&wakeups);
                assert_int_equal(w.n_asleep, rows[i].asleep ? 1 : 0);
                if (rows[i].asleep)
                        assert_string_equal(w.asleep, rows[i].asleep);
                assert_int_equal(wakeups.n_unfinished, 1);
                world_done(&w);
        }
}

/* Each thing is checked once, by its own report alone. */
TEST_CASE(test_several) {
        Wakeups wakeups;
        World w;

        world_init(&w);
        wakeups_begin(&wakeups, w.loop, on_asleep, &w);
        wakeups_end(&wakeups); /* nothing is unfinished */
        wakeups_unfinished(&wakeups, "thing", "awake", "", S);
        wakeups_await(&wakeups, true);
        wakeups_unfinished(&wakeups, "thing", "asleep", "", S);
        wakeups_unfinished(&wakeups, "thing", "awake, too", "", S);
        timer_arm_in(w.timer, S);
        wakeups_timer(&wakeups, w.timer);
        wakeups_end(&wakeups);
        wakeups_end(&wakeups);
        assert_int_equal(w.n_asleep, 1);
        assert_string_equal(w.asleep, "thing asleep () has no timer, no call and no watch");
        assert_int_equal(wakeups.n_unfinished, 3);
        world_done(&w);
}

TEST_CASE(test_work_queue_due) {
        World w;

        world_init(&w);
        assert_int_equal(work_queue_due(w.queue, "key"), USEC_INFINITY);
        assert_return_code(work_queue_add_at(w.queue, "key", loop_now(w.loop) + 5 * S), 0);
        assert_int_equal(work_queue_due(w.queue, "key"), loop_now(w.loop) + 5 * S);
        assert_return_code(work_queue_add(w.queue, "key"), 0);
        assert_int_equal(work_queue_due(w.queue, "key"), loop_now(w.loop));
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        assert_int_equal(work_queue_due(w.queue, "key"), USEC_INFINITY); /* the run has served both marks */
        assert_return_code(work_queue_retry(w.queue, "key"), 0);
        assert_in_range(work_queue_due(w.queue, "key"), loop_now(w.loop) + S / 2, loop_now(w.loop) + 2 * S);
        work_queue_remove(w.queue, "key");
        assert_int_equal(work_queue_due(w.queue, "key"), USEC_INFINITY);
        world_done(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_several),
                cmocka_unit_test(test_work_queue_due),
        };

        return cmocka_run_group_tests_name("wakeup", tests, NULL, NULL);
}
