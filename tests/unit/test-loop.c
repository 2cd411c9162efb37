/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "loop.h"
#include "random.h"
#include "string-util.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC

/* A timer that writes its letter into a shared story when it runs. */
typedef struct Story {
        char text[256];
} Story;

typedef struct Teller {
        Story *story;
        Timer *timer;
        Loop *loop;
        char letter;
        usec_t ran_at;
        /* What it does besides, all optional. */
        struct Teller *arms;
        usec_t arms_at;
        struct Teller *disarms;
        bool frees_itself;
        int n_again; /* so often it arms itself for now */
        bool exits;
} Teller;

static void tell(Timer *timer, void *userdata) {
        Teller *t = userdata;
        size_t n = strlen(t->story->text);

        assert_ptr_equal(timer, t->timer);
        assert_false(timer_is_armed(timer));
        assert_true(n + 1 < sizeof(t->story->text));
        t->story->text[n] = t->letter;
        t->story->text[n + 1] = 0;
        t->ran_at = loop_now(t->loop);
        if (t->arms)
                timer_arm(t->arms->timer, t->arms_at);
        if (t->disarms)
                timer_disarm(t->disarms->timer);
        if (t->n_again-- > 0)
                timer_arm(timer, loop_now(t->loop));
        if (t->exits)
                loop_exit(t->loop, 7);
        if (t->frees_itself)
                t->timer = timer_free(t->timer);
}

static void teller_init(Teller *t, Loop *l, Story *story, char letter) {
        *t = (Teller){ .story = story, .loop = l, .letter = letter };
        assert_return_code(timer_new(l, "teller", tell, t, &t->timer), 0);
}

static void tellers_done(Teller *t, size_t n) {
        for (size_t i = 0; i < n; i++)
                t[i].timer = timer_free(t[i].timer);
}

/* -- both clocks: each of these runs on a virtual and on a real loop --------------------------- */

typedef struct World {
        VirtualTime *time; /* NULL on the real clock */
        Loop *loop;
} World;

static void world_init(World *w, bool is_virtual) {
        *w = (World){ 0 };
        print_message("%s clock\n", is_virtual ? "virtual" : "real");
        if (!is_virtual) {
                assert_return_code(loop_new(&w->loop), 0);
                return;
        }
        assert_return_code(virtual_time_new(1700000000 * S, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
}

static void world_done(World *w) {
        loop_free(w->loop);
        virtual_time_free(w->time);
}

TEST_CASE(test_order) {
        for (int is_virtual = 0; is_virtual <= 1; is_virtual++) {
                Teller t[6];
                Story story = { 0 };
                World w;
                usec_t now;

                world_init(&w, is_virtual);
                for (size_t i = 0; i < ELEMENTSOF(t); i++)
                        teller_init(&t[i], w.loop, &story, (char) ('a' + i));
                now = loop_now(w.loop);
                timer_arm(t[5].timer, now + 40 * MS);
                t[5].exits = true;
                timer_arm(t[0].timer, now + 20 * MS);
                timer_arm(t[1].timer, now + 10 * MS);
                timer_arm(t[2].timer, now + 20 * MS); /* the same instant: behind a */
                timer_arm(t[3].timer, 0);             /* in the past: at once */
                timer_arm(t[4].timer, now + 5 * MS);
                timer_arm(t[4].timer, now + 30 * MS); /* moved */
                assert_string_equal(story.text, "");

                assert_int_equal(loop_run(w.loop), 7);
                assert_string_equal(story.text, "dbacef");
                assert_true(t[4].ran_at >= now + 30 * MS);
                assert_true(t[4].ran_at < now + USEC_PER_MINUTE);
                tellers_done(t, ELEMENTSOF(t));
                world_done(&w);
        }
}

/* What a callback arms for now, or for the past, comes after everything that was due already. */
TEST_CASE(test_arming_in_callback) {
        for (int is_virtual = 0; is_virtual <= 1; is_virtual++) {
                Teller t[5];
                Story story = { 0 };
                World w;
                usec_t now;

                world_init(&w, is_virtual);
                for (size_t i = 0; i < ELEMENTSOF(t); i++)
                        teller_init(&t[i], w.loop, &story, (char) ('a' + i));
                now = loop_now(w.loop);
                for (size_t i = 0; i < 3; i++)
                        timer_arm(t[i].timer, now);
                t[0].arms = &t[3];
                t[0].arms_at = now - 5 * S;
                t[1].n_again = 2;
                t[3].n_again = 3;
                timer_arm(t[4].timer, now + 100 * MS);
                t[4].exits = true;

                assert_int_equal(loop_run(w.loop), 7);
                assert_string_equal(story.text, "abcdbdbdde");
                tellers_done(t, ELEMENTSOF(t));
                world_done(&w);
        }
}

TEST_CASE(test_freeing_and_disarming_in_callback) {
        for (int is_virtual = 0; is_virtual <= 1; is_virtual++) {
                Teller t[4];
                Story story = { 0 };
                World w;
                usec_t now;

                world_init(&w, is_virtual);
                for (size_t i = 0; i < ELEMENTSOF(t); i++)
                        teller_init(&t[i], w.loop, &story, (char) ('a' + i));
                now = loop_now(w.loop);
                for (size_t i = 0; i < ELEMENTSOF(t); i++)
                        timer_arm(t[i].timer, now);
                t[0].frees_itself = true;
                t[1].disarms = &t[2]; /* which is due in the same moment */
                t[3].exits = true;
                assert_int_equal(loop_run(w.loop), 7);
                assert_string_equal(story.text, "abd");
                assert_null(t[0].timer);
                tellers_done(t, ELEMENTSOF(t));
                world_done(&w);
        }
}

TEST_CASE(test_arming) {
        for (int is_virtual = 0; is_virtual <= 1; is_virtual++) {
                Story story = { 0 };
                Teller t;
                World w;
                usec_t now;

                world_init(&w, is_virtual);
                teller_init(&t, w.loop, &story, 'a');
                now = loop_now(w.loop);
                assert_false(timer_is_armed(t.timer));
                assert_true(timer_due(t.timer) == USEC_INFINITY);
                timer_arm(t.timer, now + 10 * S);
                assert_true(timer_due(t.timer) == now + 10 * S);
                timer_arm_earlier(t.timer, now + 20 * S);
                assert_true(timer_due(t.timer) == now + 10 * S);
                timer_arm_earlier(t.timer, now + 5 * S);
                assert_true(timer_due(t.timer) == now + 5 * S);
                timer_arm(t.timer, USEC_INFINITY);
                assert_false(timer_is_armed(t.timer));
                timer_arm_earlier(t.timer, USEC_INFINITY);
                assert_false(timer_is_armed(t.timer));
                timer_arm_earlier(t.timer, now + 20 * S);
                assert_true(timer_due(t.timer) == now + 20 * S);
                timer_disarm(t.timer);
                timer_disarm(t.timer);
                timer_arm_in(t.timer, USEC_INFINITY - 1);
                assert_false(timer_is_armed(t.timer));
                timer_arm_in(t.timer, 3 * S);
                assert_true(timer_due(t.timer) >= now + 3 * S);
                t.timer = timer_free(t.timer); /* while armed */
                world_done(&w);
        }
}

/* What is wished for again, no earlier, keeps its place among those of its instant. */
TEST_CASE(test_wished_again) {
        for (int is_virtual = 0; is_virtual <= 1; is_virtual++) {
                Teller t[5];
                Story story = { 0 };
                World w;
                usec_t now;

                world_init(&w, is_virtual);
                for (size_t i = 0; i < ELEMENTSOF(t); i++)
                        teller_init(&t[i], w.loop, &story, (char) ('a' + i));
                now = loop_now(w.loop);
                timer_arm(t[0].timer, now);
                timer_arm(t[1].timer, now);
                timer_arm_earlier(t[0].timer, now - 5 * S);
                timer_arm(t[2].timer, now + 10 * MS);
                timer_arm(t[3].timer, now + 10 * MS);
                timer_arm_earlier(t[2].timer, now + 10 * MS);
                timer_arm(t[4].timer, now + 20 * MS);
                t[4].exits = true;
                assert_int_equal(loop_run(w.loop), 7);
                assert_string_equal(story.text, "abcde");
                tellers_done(t, ELEMENTSOF(t));
                world_done(&w);
        }
}

/* After it has left, a loop runs nothing, not even what was due in the same moment; the first word stands. */
TEST_CASE(test_exit) {
        for (int is_virtual = 0; is_virtual <= 1; is_virtual++) {
                Teller t[3];
                Story story = { 0 };
                int code = 0;
                World w;

                world_init(&w, is_virtual);
                for (size_t i = 0; i < ELEMENTSOF(t); i++) {
                        teller_init(&t[i], w.loop, &story, (char) ('a' + i));
                        timer_arm(t[i].timer, loop_now(w.loop));
                }
                t[1].exits = true;
                assert_false(loop_has_exited(w.loop, &code));
                assert_int_equal(loop_run(w.loop), 7);
                assert_string_equal(story.text, "ab");
                loop_exit(w.loop, 8);
                assert_true(loop_has_exited(w.loop, &code));
                assert_int_equal(code, 7);
                tellers_done(t, ELEMENTSOF(t));
                world_done(&w);
        }
}

/* Many timers, armed, moved and freed at random, run in the order of their times. */
static void on_crowd(Timer *t, void *userdata) {
        unsigned *n_ran = userdata;

        (*n_ran)++;
}

TEST_CASE(test_crowd) {
        _cleanup_(random_freep) Random *r = NULL;
        Timer *timers[500] = { 0 };
        unsigned n_ran = 0, n_armed = 0;
        World w;
        usec_t last = 0;

        assert_return_code(random_new(42, &r), 0);
        world_init(&w, true);
        for (size_t i = 0; i < ELEMENTSOF(timers); i++)
                assert_return_code(timer_new(w.loop, "crowd", on_crowd, &n_ran, &timers[i]), 0);
        for (size_t i = 0; i < 5000; i++) {
                Timer **t = &timers[random_below(r, ELEMENTSOF(timers))];

                if (random_below(r, 10) == 0) {
                        timer_free(*t);
                        assert_return_code(timer_new(w.loop, "crowd", on_crowd, &n_ran, t), 0);
                } else
                        timer_arm_in(*t, random_below(r, 100) * S);
        }
        for (size_t i = 0; i < ELEMENTSOF(timers); i++)
                n_armed += timer_is_armed(timers[i]);
        while (virtual_time_step(w.time, USEC_INFINITY) > 0) {
                assert_true(virtual_time_now(w.time) >= last);
                last = virtual_time_now(w.time);
                for (size_t i = 0; i < ELEMENTSOF(timers); i++)
                        assert_true(timer_due(timers[i]) >= last);
        }
        assert_int_equal(n_ran, n_armed);
        for (size_t i = 0; i < ELEMENTSOF(timers); i++)
                timer_free(timers[i]);
        world_done(&w);
}

/* -- the real clock ---------------------------------------------------------------------------- */

typedef struct Pipe {
        int fds[2];
        Loop *loop;
        Timer *busy;
        unsigned n_busy;
} Pipe;

static void on_busy(Timer *t, void *userdata) {
        Pipe *p = userdata;

        if (p->n_busy++ == 10)
                assert_int_equal(write(p->fds[1], "x", 1), 1);
        timer_arm(t, 0);
}

static int on_pipe(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Pipe *p = userdata;

        loop_exit(p->loop, 0);
        return 0;
}

/* A timer that is always due does not keep a descriptor from its turn. */
TEST_CASE(test_io_is_not_starved) {
        sd_event_source *source = NULL;
        Pipe p = { 0 };

        assert_return_code(loop_new(&p.loop), 0);
        assert_return_code(pipe(p.fds), 0);
        assert_return_code(sd_event_add_io(loop_sd_event(p.loop), &source, p.fds[0], EPOLLIN, on_pipe, &p),
                           0);
        assert_return_code(timer_new(p.loop, "busy", on_busy, &p, &p.busy), 0);
        timer_arm(p.busy, 0);
        assert_int_equal(loop_run(p.loop), 0);
        assert_true(p.n_busy < 1000);
        timer_free(p.busy);
        sd_event_source_unref(source);
        loop_free(p.loop);
        closep(&p.fds[0]);
        closep(&p.fds[1]);
}

/* -- one wait, one event, and what it leads to -- */

typedef struct Chain {
        int fds[2];
        Loop *loop;
        Timer *now, *soon, *late;
        unsigned n_events, n_now;
        usec_t armed_usec;
} Chain;

static void on_chain_now(Timer *t, void *userdata) {
        Chain *c = userdata;

        if (++c->n_now < 2)
                timer_arm(t, 0);
}

static void on_chain_soon(Timer *t, void *userdata) {
        Chain *c = userdata;

        loop_exit(c->loop, 7);
}

static void on_chain_late(Timer *t, void *userdata) {
        fail_msg("a timer of ten minutes ran");
}

/* The wakeup stands at ten minutes when this arms an earlier one. */
static int on_chain_event(sd_event_source *s, int fd, uint32_t revents, void *userdata) {
        Chain *c = userdata;
        char x;

        assert_int_equal(read(fd, &x, 1), 1);
        c->n_events++;
        c->armed_usec = loop_now(c->loop);
        timer_arm(c->now, 0);
        timer_arm_in(c->soon, 20 * USEC_PER_MSEC);
        return 0;
}

static void chain_init(Chain *c, sd_event_source **ret_source) {
        *c = (Chain){ 0 };
        assert_return_code(loop_new(&c->loop), 0);
        assert_return_code(pipe(c->fds), 0);
        assert_return_code(sd_event_add_io(loop_sd_event(c->loop), ret_source, c->fds[0], EPOLLIN, on_chain_event, c),
                           0);
        assert_return_code(timer_new(c->loop, "now", on_chain_now, c, &c->now), 0);
        assert_return_code(timer_new(c->loop, "soon", on_chain_soon, c, &c->soon), 0);
        assert_return_code(timer_new(c->loop, "late", on_chain_late, c, &c->late), 0);
        timer_arm_in(c->late, 10 * USEC_PER_MINUTE);
}

static void chain_done(Chain *c, sd_event_source *source) {
        timer_free(c->now);
        timer_free(c->soon);
        timer_free(c->late);
        sd_event_source_unref(source);
        loop_free(c->loop);
        closep(&c->fds[0]);
        closep(&c->fds[1]);
}

TEST_CASE(test_event_arms_earlier) {
        sd_event_source *source = NULL;
        Chain c;

        chain_init(&c, &source);
        assert_int_equal(write(c.fds[1], "x", 1), 1);
        assert_int_equal(loop_run(c.loop), 7);
        assert_int_equal(c.n_events, 1);
        assert_int_equal(c.n_now, 2);
        assert_true(loop_now(c.loop) >= c.armed_usec + 20 * USEC_PER_MSEC);
        assert_true(loop_now(c.loop) < c.armed_usec + USEC_PER_MINUTE);
        chain_done(&c, source);
}

TEST_CASE(test_iterate) {
        sd_event_source *source = NULL;
        Chain c;

        chain_init(&c, &source);
        print_message("  nothing comes\n");
        assert_int_equal(loop_iterate(c.loop, 5 * USEC_PER_MSEC), 0);
        print_message("  a timer is due: no waiting for the hour\n");
        timer_arm(c.now, 0);
        assert_int_equal(loop_iterate(c.loop, USEC_PER_HOUR), 1);
        assert_int_equal(c.n_now, 2);
        print_message("  an event\n");
        assert_int_equal(write(c.fds[1], "x", 1), 1);
        assert_int_equal(loop_iterate(c.loop, USEC_PER_HOUR), 1);
        assert_int_equal(c.n_events, 1);
        print_message("  the timer that it armed\n");
        timer_disarm(c.soon);
        assert_int_equal(loop_iterate(c.loop, USEC_PER_HOUR), 1);
        assert_int_equal(c.n_now, 3);
        print_message("  disarmed, it does not come\n");
        assert_int_equal(loop_iterate(c.loop, 40 * USEC_PER_MSEC), 0);
        chain_done(&c, source);
}

/* Seconds until the loop's timer in the kernel fires; 0: it is not set. Nobody else here has one. */
static unsigned kernel_timer_sec(void) {
        for (int fd = 0; fd < 100; fd++) {
                _cleanup_free_ char *link = NULL, *path = strf("/proc/self/fd/%d", fd), *text = NULL;
                char target[64] = "";
                const char *value;

                assert_non_null(path);
                if (readlink(path, target, sizeof(target) - 1) < 0 || !streq(target, "anon_inode:[timerfd]"))
                        continue;
                link = strf("/proc/self/fdinfo/%d", fd);
                assert_non_null(link);
                assert_return_code(read_file(link, 4096, &text, NULL), 0);
                value = strstr(text, "it_value: (");
                assert_non_null(value);
                return (unsigned) strtoul(value + strlen("it_value: ("), NULL, 10);
        }
        fail_msg("there is no timer in the kernel");
        return 0;
}

/* A second or so is waited for without it. */
/* -- pace ------------------------------------------------------------------------------ */

/* Whoever writes into one pipe and, when it is to be asked and answered, waits on another. */
typedef struct Pen {
        int to[2], from[2];
        unsigned n_bytes;
        bool waits; /* for an answer to each */
        pthread_t thread;
} Pen;

static void *pen_write(void *userdata) {
        Pen *p = userdata;
        char answer;

        for (unsigned i = 0; i < p->n_bytes; i++) {
                if (!p->waits)
                        (void) usleep(1000);
                else if (read(p->from[0], &answer, 1) != 1)
                        abort();
                if (write(p->to[1], "x", 1) != 1)
                        abort();
        }
        return NULL;
}

typedef struct Reader {
        Loop *loop;
        Pen *pen;
        unsigned n_wakeups, n_read;
} Reader;

static int on_pen(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Reader *r = userdata;
        char data[512];
        ssize_t n = read(fd, data, sizeof(data));

        assert_true(n > 0);
        r->n_wakeups++;
        r->n_read += (unsigned) n;
        if (r->n_read == r->pen->n_bytes)
                loop_exit(r->loop, 0);
        else if (r->pen->waits)
                assert_int_equal(write(r->pen->from[1], "x", 1), 1);
        return 0;
}

/* Runs a loop with that pace until all is read; how long it took. */
static usec_t read_pen(Pen *pen, unsigned burst, usec_t interval_usec, unsigned times,
                       unsigned *ret_wakeups) {
        _cleanup_(loop_freep) Loop *l = NULL;
        Reader reader = { .pen = pen };
        sd_event_source *source = NULL;
        usec_t begin;

        assert_int_equal(pipe(pen->to), 0);
        assert_int_equal(pipe(pen->from), 0);
        assert_int_equal(loop_new(&l), 0);
        reader.loop = l;
        assert_int_equal(sd_event_add_io(loop_sd_event(l), &source, pen->to[0], EPOLLIN, on_pen, &reader),
                         0);
        loop_set_pace(l, burst, interval_usec);
        loop_stretch_pace(l, times);

        begin = loop_now(l);
        assert_int_equal(pthread_create(&pen->thread, NULL, pen_write, pen), 0);
        if (pen->waits)
                assert_int_equal(write(pen->from[1], "x", 1), 1);
        assert_int_equal(loop_run(l), 0);
        begin = loop_now(l) - begin;
        assert_int_equal(pthread_join(pen->thread, NULL), 0);

        assert_int_equal(reader.n_read, pen->n_bytes);
        *ret_wakeups = reader.n_wakeups;
        sd_event_source_unref(source);
        for (unsigned i = 0; i < 2; i++) {
                close(pen->to[i]);
                close(pen->from[i]);
        }
        return begin;
}

/* Bytes that come one by one are read several at a time; however slow the machine is, no more often than the
 * pace allows in the time it took. */
TEST_CASE(test_pace_joins_wakeups) {
        Pen pen = { .n_bytes = 300 };
        unsigned n = 0;
        usec_t took = read_pen(&pen, 5, 500 * MS, 1, &n);

        assert_true(n <= 5 + took / (500 * MS) + 2);
        assert_true(n < pen.n_bytes / 2);
}

TEST_CASE(test_pace_stretched) {
        _cleanup_(loop_freep) Loop *l = NULL;
        Pen pen = { .n_bytes = 300 };
        unsigned n = 0;
        usec_t took = read_pen(&pen, 5, 100 * MS, 4, &n);

        assert_true(n <= 5 + took / (400 * MS) + 2);
        assert_true(n < pen.n_bytes / 2);

        print_message("  and back\n");
        assert_int_equal(loop_new(&l), 0);
        loop_stretch_pace(l, 3);
        assert_int_equal(loop_pace(l), 0);
        loop_set_pace(l, 5, 20 * MS);
        loop_stretch_pace(l, 3);
        assert_int_equal(loop_pace(l), 60 * MS);
        loop_stretch_pace(l, 1);
        assert_int_equal(loop_pace(l), 20 * MS);
}

/* What a burst covers waits for nothing: 20 questions and answers would take 20 minutes. */
TEST_CASE(test_pace_spares_the_first) {
        Pen pen = { .n_bytes = 20, .waits = true };
        unsigned n = 0;

        (void) read_pen(&pen, 50, USEC_PER_MINUTE, 1, &n);
        assert_int_equal(n, pen.n_bytes);
}

TEST_CASE(test_kernel_timer_is_left_alone) {
        sd_event_source *source = NULL;
        Chain c;

        chain_init(&c, &source);
        assert_int_equal(loop_iterate(c.loop, 0), 0);
        assert_in_range(kernel_timer_sec(), 500, 600);
        for (unsigned i = 0; i < 3; i++) {
                usec_t begin = loop_now(c.loop);

                timer_arm_in(c.now, 60 * USEC_PER_MSEC);
                c.n_now = 1; /* it does not arm itself again */
                while (c.n_now < 2)
                        assert_return_code(loop_iterate(c.loop, USEC_PER_HOUR), 0);
                assert_true(loop_now(c.loop) >= begin + 60 * USEC_PER_MSEC);
                assert_in_range(kernel_timer_sec(), 500, 600);
        }
        timer_disarm(c.late);
        timer_arm_in(c.now, 60 * USEC_PER_MSEC);
        assert_int_equal(loop_iterate(c.loop, USEC_PER_HOUR), 1);
        assert_in_range(kernel_timer_sec(), 500, 600); /* not worth a call: it will come once, for nothing */
        assert_int_equal(loop_iterate(c.loop, 0), 1);
        timer_arm_in(c.now, 5 * USEC_PER_MINUTE);
        assert_int_equal(loop_iterate(c.loop, 0), 0);
        assert_in_range(kernel_timer_sec(), 200, 300);
        timer_disarm(c.now);
        assert_int_equal(loop_iterate(c.loop, 0), 0);
        assert_int_equal(kernel_timer_sec(), 0);
        chain_done(&c, source);
}

TEST_CASE(test_wall_and_boot) {
        _cleanup_(loop_freep) Loop *l = NULL;
        usec_t before, wall, later;

        assert_return_code(loop_new(&l), 0);
        before = loop_now(l);
        wall = loop_wall(l);
        assert_true(wall > 1700000000 * S);
        later = loop_from_wall(l, wall + 10 * S);
        assert_in_range(later, before + 9 * S, loop_now(l) + 11 * S);
        assert_true(loop_from_wall(l, USEC_INFINITY) == USEC_INFINITY);
        assert_true(loop_from_wall(l, 0) == 0); /* long before the machine came up */
        assert_true(loop_to_wall(l, USEC_INFINITY) == USEC_INFINITY);
        assert_true(loop_has_exited(l, NULL) == false);
}

/* -- virtual time ------------------------------------------------------------------------------ */

TEST_CASE(test_time_jumps) {
        Story story = { 0 };
        Teller t;
        World w;
        usec_t start;

        world_init(&w, true);
        assert_null(loop_sd_event(w.loop));
        start = virtual_time_now(w.time);
        assert_true(start > 0);
        assert_true(loop_wall(w.loop) == 1700000000 * S);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 0);
        assert_true(virtual_time_now(w.time) == start);
        assert_int_equal(loop_run(w.loop), -EDEADLK);

        teller_init(&t, w.loop, &story, 'a');
        timer_arm_in(t.timer, 10 * USEC_PER_DAY);
        assert_int_equal(virtual_time_step(w.time, start + USEC_PER_DAY), 0);
        assert_true(virtual_time_now(w.time) == start + USEC_PER_DAY); /* stands at the limit */
        assert_int_equal(virtual_time_step(w.time, start), 0);
        assert_true(virtual_time_now(w.time) == start + USEC_PER_DAY); /* never goes back */
        assert_int_equal(virtual_time_step(w.time, start + 10 * USEC_PER_DAY),
                         1); /* the limit is included */
        assert_true(t.ran_at == start + 10 * USEC_PER_DAY);
        assert_true(loop_wall(w.loop) == 1700000000 * S + 10 * USEC_PER_DAY);
        tellers_done(&t, 1);
        world_done(&w);
}

TEST_CASE(test_one_order_for_all_loops) {
        Story story = { 0 };
        Teller t[4];
        Loop *other;
        World w;

        world_init(&w, true);
        assert_return_code(loop_new_virtual(w.time, &other), 0);
        for (size_t i = 0; i < ELEMENTSOF(t); i++)
                teller_init(&t[i], i % 2 == 0 ? w.loop : other, &story, (char) ('a' + i));
        timer_arm_in(t[3].timer, S);
        timer_arm_in(t[2].timer, S);
        timer_arm_in(t[1].timer, S);
        timer_arm_in(t[0].timer, S / 2);
        while (virtual_time_step(w.time, USEC_INFINITY) > 0)
                ;
        assert_string_equal(story.text, "adcb");

        /* What one process ends, the others do not notice. */
        timer_arm_in(t[1].timer, S);
        timer_arm_in(t[0].timer, S);
        loop_exit(other, 3);
        timer_arm_in(t[3].timer, S);
        while (virtual_time_step(w.time, USEC_INFINITY) > 0)
                ;
        assert_string_equal(story.text, "adcba");
        assert_int_equal(loop_run(other), 3);
        tellers_done(t, ELEMENTSOF(t));
        loop_free(other);
        world_done(&w);
}

TEST_CASE(test_pause) {
        Story story = { 0 };
        Teller t[5];
        Loop *other;
        World w;
        usec_t now;

        world_init(&w, true);
        assert_return_code(loop_new_virtual(w.time, &other), 0);
        for (size_t i = 0; i < 4; i++)
                teller_init(&t[i], w.loop, &story, (char) ('a' + i));
        teller_init(&t[4], other, &story, 'o');
        now = loop_now(w.loop);
        timer_arm(t[0].timer, now + 2 * S);
        timer_arm(t[1].timer, now + 1 * S);
        timer_arm(t[2].timer, now + 20 * S);
        timer_arm(t[4].timer, now + 5 * S);
        loop_virtual_pause(w.loop, now + 10 * S);
        timer_arm(t[3].timer, now + 3 * S); /* by somebody else, in the pause */
        assert_true(timer_due(t[0].timer) == now + 2 * S);

        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        assert_string_equal(story.text, "o");
        assert_true(loop_now(w.loop) == now + 5 * S);
        while (virtual_time_step(w.time, USEC_INFINITY) > 0)
                ;
        assert_string_equal(story.text, "obadc"); /* in the order in which they were due */
        assert_true(t[1].ran_at == now + 10 * S);
        assert_true(t[3].ran_at == now + 10 * S);
        assert_true(t[2].ran_at == now + 20 * S);

        /* A pause may be taken back. */
        timer_arm_in(t[0].timer, S);
        loop_virtual_pause(w.loop, USEC_INFINITY);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 0);
        loop_virtual_pause(w.loop, 0);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        assert_true(t[0].ran_at == now + 21 * S);
        tellers_done(t, ELEMENTSOF(t));
        loop_free(other);
        world_done(&w);
}

TEST_CASE(test_wall_step) {
        static const usec_t start_wall = 1700000000 * S;
        Story story = { 0 };
        Teller t;
        World w;
        usec_t now;

        world_init(&w, true);
        teller_init(&t, w.loop, &story, 'a');
        now = loop_now(w.loop);
        timer_arm_in(t.timer, 60 * S);
        loop_virtual_step_wall(w.loop, -3600 * (int64_t) S);
        assert_true(loop_wall(w.loop) == start_wall - 3600 * S);
        assert_true(timer_due(t.timer) == now + 60 * S); /* deadlines do not care */
        assert_true(loop_from_wall(w.loop, start_wall) == now + 3600 * S);
        assert_true(loop_to_wall(w.loop, now + 60 * S) == start_wall - 3540 * S);
        loop_virtual_step_wall(w.loop, 3601 * (int64_t) S);
        assert_true(loop_wall(w.loop) == start_wall + S);
        loop_virtual_step_wall(w.loop, INT64_MIN);
        assert_true(loop_wall(w.loop) == 0);
        tellers_done(&t, 1);
        world_done(&w);
}

/* A process that dies in one of its own callbacks takes its loop along. */
static void on_death(Timer *t, void *userdata) {
        Teller *teller = userdata;

        teller->timer = timer_free(teller->timer);
        teller->loop = loop_free(teller->loop);
}

TEST_CASE(test_process_dies_in_callback) {
        Teller dying = { 0 };
        World w;

        world_init(&w, true);
        assert_return_code(loop_new_virtual(w.time, &dying.loop), 0);
        assert_return_code(timer_new(dying.loop, "death", on_death, &dying, &dying.timer), 0);
        timer_arm_in(dying.timer, S);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        assert_null(dying.loop);
        assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 0);
        world_done(&w);
}

/* Each answer bounds the API server's clock; within the bounds what was assumed before stays. */
TEST_CASE(test_server_clock) {
        const usec_t date = UINT64_C(1800000000) * S;
        struct {
                const char *what;
                usec_t after_usec; /* the answer comes so much later than the last one ... */
                usec_t took_usec;  /* ... and was under way so long */
                int64_t date_usec; /* from `date` */
                int64_t expected_usec, slack_usec; /* what the clock shows then, from `date` */
        } rows[] = {
                { "one answer", 0, 0, 0, 500000, 500000 },
                { "two seconds later", 2 * S, 0, 2 * S, 2500000, 500000 },
                { "an answer that took a minute tells little", 60 * S, 60 * S, 2 * S, 62500000, 500000 },
                { "the clocks have drifted apart by less than a second", 200000, 0, 64 * S, 64000000, 10000 },
                { "one that contradicts all others", S, 0, 7200 * (int64_t) S, 65000000, 10000 },
                { "... and another, within a second", 500000, 0, 7200 * (int64_t) S, 65500000, 10000 },
                { "but the next says what was known", S, 0, 66 * S, 66500000, 10000 },
                { "one that contradicts", 2 * S, 0, 7200 * (int64_t) S, 68500000, 10000 },
                { "another, that contradicts both", 2 * S, 0, -7200 * (int64_t) S, 70500000, 10000 },
                { "the clock was set back by an hour", S, 0, -3600 * (int64_t) S, 71500000, 10000 },
                { "another that says so, and narrows it", 1600000, 0, -3598 * (int64_t) S, 73100000, 10000 },
                { "and that is certain", 600000, 0, -3598 * (int64_t) S, -3597400000, 10000 },
        };
        World w;

        world_init(&w, true);
        loop_virtual_step_wall(w.loop, 7200 * (int64_t) S);
        assert_int_equal(loop_server_wall(w.loop), loop_machine_wall(w.loop)); /* nobody has told it */
        assert_int_equal(loop_machine_clock_ahead(w.loop), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                int64_t seen;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(virtual_time_step(w.time, virtual_time_now(w.time) + rows[i].after_usec), 0);
                loop_note_server_clock(w.loop, (usec_t) ((int64_t) date + rows[i].date_usec), usec_sub(loop_now(w.loop), rows[i].took_usec), loop_now(w.loop));
                seen = (int64_t) loop_server_wall(w.loop) - (int64_t) date;
                if (seen < rows[i].expected_usec - rows[i].slack_usec || seen > rows[i].expected_usec + rows[i].slack_usec)
                        fail_msg("%s: %lld us", rows[i].what, (long long) seen);
        }
        assert_int_equal(loop_server_clock_jumps(w.loop), 1);
        assert_int_not_equal(loop_wall(w.loop), loop_server_wall(w.loop));
        loop_follow_server_clock(w.loop);
        assert_int_equal(loop_wall(w.loop), loop_server_wall(w.loop));
        assert_int_equal(loop_from_wall(w.loop, loop_wall(w.loop) + S), loop_now(w.loop) + S);
        loop_virtual_step_wall(w.loop, 3600 * (int64_t) S); /* the machine's clock: no matter */
        assert_int_equal(loop_wall(w.loop), loop_server_wall(w.loop));
        world_done(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_arming_in_callback),
                cmocka_unit_test(test_freeing_and_disarming_in_callback),
                cmocka_unit_test(test_arming),
                cmocka_unit_test(test_wished_again),
                cmocka_unit_test(test_exit),
                cmocka_unit_test(test_crowd),
                cmocka_unit_test(test_io_is_not_starved),
                cmocka_unit_test(test_event_arms_earlier),
                cmocka_unit_test(test_iterate),
                cmocka_unit_test(test_pace_joins_wakeups),
                cmocka_unit_test(test_pace_stretched),
                cmocka_unit_test(test_pace_spares_the_first),
                cmocka_unit_test(test_kernel_timer_is_left_alone),
                cmocka_unit_test(test_wall_and_boot),
                cmocka_unit_test(test_time_jumps),
                cmocka_unit_test(test_one_order_for_all_loops),
                cmocka_unit_test(test_pause),
                cmocka_unit_test(test_wall_step),
                cmocka_unit_test(test_server_clock),
                cmocka_unit_test(test_process_dies_in_callback),
        };
        return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
