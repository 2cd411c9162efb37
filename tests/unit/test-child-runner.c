/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alloc-util.h"
#include "child-runner.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "string-util.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC

static char *const environment[] = { (char *) "PATH=/nonexistent:relative:/usr/bin:/bin",
                                     (char *) "COLOUR=green", NULL };

typedef struct World {
        Loop *loop;
        ChildRunner *runner;
        Child *child;
        Timer *limit;
        unsigned n_done;
        int error, exit_status;
        char *output, *errors;
        size_t output_size;
        bool free_in_done;
} World;

static void on_limit(Timer *t, void *userdata) {
        World *w = userdata;

        loop_exit(w->loop, -ETIMEDOUT);
}

static void on_done(const ChildResult *r, void *userdata) {
        World *w = userdata;

        w->n_done++;
        if (w->free_in_done)
                w->child = child_free(w->child); /* what the result shows stays until we return */
        w->error = r->error;
        w->exit_status = r->exit_status;
        w->output = memdup_str(r->output, r->output_size);
        w->output_size = r->output_size;
        assert_int_equal(r->output[r->output_size], 0);
        w->errors = strdup(r->errors);
        loop_exit(w->loop, 0);
}

static void world_init(World *w) {
        *w = (World){ 0 };
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(child_runner_new(w->loop, &w->runner), 0);
        assert_return_code(timer_new(w->loop, "limit", on_limit, w, &w->limit), 0);
}

static void world_done(World *w) {
        child_free(w->child);
        child_runner_free(w->runner);
        timer_free(w->limit);
        loop_free(w->loop);
        free(w->output);
        free(w->errors);
}

/* Nobody is left to be waited for. */
static void expect_no_children(void) {
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
}

static void start(World *w, const char *script, const void *input, size_t size, size_t max_output,
                  usec_t timeout) {
        char *const argv[] = { (char *) "sh", (char *) "-c", (char *) (uintptr_t) script, NULL };
        ChildRequest q = {
                .argv = argv,
                .environment = environment,
                .input = input,
                .input_size = size,
                .max_output_bytes = max_output,
                .timeout_usec = timeout,
        };

        assert_return_code(child_start(w->runner, &q, on_done, w, &w->child), 0);
        assert_int_equal(w->n_done, 0);
}

static void run(World *w) {
        timer_arm_in(w->limit, 100 * S);
        assert_int_equal(loop_run(w->loop), 0);
        assert_int_equal(w->n_done, 1);
}

TEST_CASE(test_outcomes) {
        static const struct {
                const char *what, *script;
                size_t max_output;
                usec_t timeout;
                int error, exit_status;
                const char *output, *errors;
        } rows[] = {
                { "it says nothing", ":", 100, 50 * S, 0, 0, "", "" },
                { "output and errors", "echo out; echo err >&2", 100, 50 * S, 0, 0, "out\n", "err\n" },
                { "an exit status", "echo no >&2; exit 75", 100, 50 * S, 0, 75, "", "no\n" },
                { "killed by a signal", "echo a; kill -TERM $$", 100, 50 * S, -ECHILD, 0, "a\n", "" },
                { "as much as it may", "printf 1234567890", 10, 50 * S, 0, 0, "1234567890", "" },
                { "too much", "printf 12345678901", 10, 50 * S, -E2BIG, 0, NULL, "" },
                { "too much, without an end", "yes", 100000, 50 * S, -E2BIG, 0, NULL, "" },
                { "too long", "echo begun; sleep 100", 100, 300 * MS, -ETIMEDOUT, 0, "begun\n", "" },
                { "too long, with children", "sleep 100 & sleep 100; :", 100, 200 * MS, -ETIMEDOUT, 0, "",
                  "" },
                { "deaf to signals", "trap '' TERM INT; while :; do sleep 1; done", 100, 200 * MS,
                  -ETIMEDOUT, 0, "", "" },
                { "its own environment only", "echo $COLOUR-$HOME", 100, 50 * S, 0, 0, "green-\n", "" },
                { "it leads its group", "test $$ = $(cut -d' ' -f5 /proc/$$/stat) && echo yes", 100, 50 * S,
                  0, 0, "yes\n", "" },
                { "no input is no terminal", "cat; echo end", 100, 50 * S, 0, 0, "end\n", "" },
                { "what it leaves behind does not hold us up", "sleep 100 & echo done", 100, 50 * S, 0, 0,
                  "done\n", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World w;

                print_message("%s\n", rows[i].what);
                /* On a busy machine a time may be over before the script has said anything: once more, with
                 * more. */
                for (usec_t timeout = rows[i].timeout;; timeout *= 4) {
                        world_init(&w);
                        w.free_in_done = i % 2 == 0;
                        start(&w, rows[i].script, NULL, 0, rows[i].max_output, timeout);
                        run(&w);
                        if (rows[i].error != -ETIMEDOUT || streq(w.output, rows[i].output) ||
                            timeout > 20 * S)
                                break;
                        world_done(&w);
                }
                assert_int_equal(w.error, rows[i].error);
                assert_int_equal(w.exit_status, rows[i].exit_status);
                if (rows[i].output)
                        assert_string_equal(w.output, rows[i].output);
                assert_string_equal(w.errors, rows[i].errors);
                world_done(&w);
                expect_no_children();
        }
}

TEST_CASE(test_descriptors_stay_here) {
        _cleanup_close_ int inherited = dup(STDERR_FILENO); /* without close-on-exec */
        World w;

        assert_true(inherited >= 3);
        world_init(&w);
        start(&w, "exec ls /proc/self/fd", NULL, 0, 100, 20 * S);
        run(&w);
        assert_int_equal(w.error, 0);
        assert_string_equal(w.output, "0\n1\n2\n3\n"); /* 3 is the folder that ls itself opens */
        world_done(&w);
}

TEST_CASE(test_starting_fails) {
        static const struct {
                const char *what, *program;
                int error;
        } rows[] = {
                { "no such file", "/nonexistent/plugin", -ENOENT },
                { "no such name in PATH", "no-such-plugin", -ENOENT },
                { "not for running", "/etc/passwd", -EACCES },
                { "a path that begins nowhere", "bin/sh", -EINVAL },
                { "no name", "", -EINVAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *const argv[] = { (char *) (uintptr_t) rows[i].program, NULL };
                ChildRequest q = { .argv = argv, .environment = environment, .timeout_usec = 10 * S };
                World w;

                print_message("%s\n", rows[i].what);
                world_init(&w);
                assert_return_code(child_start(w.runner, &q, on_done, &w, &w.child), 0);
                assert_int_equal(w.n_done, 0); /* not inside the call */
                run(&w);
                assert_int_equal(w.error, rows[i].error);
                assert_string_equal(w.output, "");
                world_done(&w);
                expect_no_children();
        }
}

/* Larger than any pipe: it neither blocks nor is it cut. */
TEST_CASE(test_large_input_comes_back) {
        size_t size = 3 << 20;
        _cleanup_free_ uint8_t *input = new0(uint8_t, size);
        World w;

        for (size_t i = 0; i < size; i++)
                input[i] = (uint8_t) (i * 31 + i / 257);
        world_init(&w);
        start(&w, "cat", input, size, size, 20 * S);
        run(&w);
        assert_int_equal(w.error, 0);
        assert_int_equal(w.output_size, size);
        assert_memory_equal(w.output, input, size);
        world_done(&w);
}

TEST_CASE(test_input_is_not_read) {
        static const char input[100000];
        World w;

        world_init(&w);
        start(&w, "exec <&-; echo deaf", input, sizeof(input), 100, 20 * S);
        run(&w);
        assert_int_equal(w.error, 0);
        assert_string_equal(w.output, "deaf\n");
        world_done(&w);
}

/* However much it complains, the end is kept and it is not held up. */
TEST_CASE(test_end_of_errors) {
        World w;

        world_init(&w);
        start(&w, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done >&2", NULL, 0, 100,
              20 * S);
        run(&w);
        assert_int_equal(w.error, 0);
        assert_int_equal(strlen(w.errors), 4096);
        assert_non_null(endswith(w.errors, "\nline 19999\n"));
        world_done(&w);
}

static bool group_is_gone(pid_t group) {
        for (int i = 0; i < 3000; i++) {
                if (kill(-group, 0) < 0 && errno == ESRCH)
                        return true;
                (void) nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        }
        return false;
}

/* Until there is a line in it, at most half a minute. */
static char *await_line(World *w, const char *path) {
        char *text = NULL;

        for (unsigned i = 0; i < 3000; i++) {
                text = mfree(text);
                assert_return_code(read_file(path, 100, &text, NULL), 0);
                if (strchr(text, '\n'))
                        return text;
                assert_return_code(loop_iterate(w->loop, 10 * MS), 0);
        }
        fail_msg("nothing was written to %s", path);
        return NULL;
}

/* Until the loop has reaped what it killed. */
static void await_no_children(World *w) {
        for (unsigned i = 0; i < 3000; i++) {
                siginfo_t info;

                if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
                        break;
                assert_return_code(loop_iterate(w->loop, 10 * MS), 0);
        }
        expect_no_children();
}

/* Dropping the slot kills the whole group, and nobody is told. */
TEST_CASE(test_cancel) {
        char path[] = "/tmp/test-child-XXXXXX";
        _cleanup_free_ char *script = NULL, *text = NULL;
        _cleanup_close_ int fd = mkstemp(path);
        pid_t group;
        World w;

        assert_true(fd >= 0);
        world_init(&w);
        script = strf("sleep 100 & echo $$ > %s; wait", path);
        start(&w, script, NULL, 0, 100, 50 * S);
        text = await_line(&w, path);
        group = (pid_t) strtol(text, NULL, 10);
        assert_true(group > 1);
        w.child = child_free(w.child);
        await_no_children(&w);
        assert_int_equal(w.n_done, 0);
        assert_true(group_is_gone(group));
        assert_int_equal(unlink(path), 0);
        world_done(&w);
}

TEST_CASE(test_cancel_at_once) {
        World w;

        world_init(&w);
        for (int i = 0; i < 20; i++) {
                start(&w, "sleep 100", NULL, 0, 100, 50 * S);
                w.child = child_free(w.child);
        }
        world_done(&w); /* the runner waits for what was killed */
        assert_int_equal(w.n_done, 0);
        expect_no_children();
}

/* What we ignore or block ourselves, the child does not. */
TEST_CASE(test_signals_are_reset) {
        sigset_t set, old;
        World w;

        (void) signal(SIGPIPE, SIG_IGN);
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGCHLD);
        assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
        world_init(&w);
        /* The last seven digits (signals 1 to 28): 32 and 33 are the C library's own, which posix_spawn()
         * ignores for every child. */
        start(&w, "grep -E 'Sig(Blk|Ign)' /proc/self/status | sed 's/[0-9a-f]*\\([0-9a-f]\\{7\\}\\)$/\\1/'",
              NULL, 0, 1000, 20 * S);
        run(&w);
        assert_int_equal(w.error, 0);
        assert_string_equal(w.output, "SigBlk:\t0000000\nSigIgn:\t0000000\n");
        world_done(&w);
        assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
        (void) signal(SIGPIPE, SIG_DFL);
}

TEST_CASE(test_not_on_virtual_time) {
        _cleanup_(virtual_time_freep) VirtualTime *v = NULL;
        _cleanup_(loop_freep) Loop *l = NULL;
        ChildRunner *r = NULL;

        assert_return_code(virtual_time_new(0, &v), 0);
        assert_return_code(loop_new_virtual(v, &l), 0);
        assert_int_equal(child_runner_new(l, &r), -EOPNOTSUPP);
        assert_null(child_runner_free(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_outcomes),
                cmocka_unit_test(test_descriptors_stay_here),
                cmocka_unit_test(test_starting_fails),
                cmocka_unit_test(test_large_input_comes_back),
                cmocka_unit_test(test_input_is_not_read),
                cmocka_unit_test(test_end_of_errors),
                cmocka_unit_test(test_cancel),
                cmocka_unit_test(test_cancel_at_once),
                cmocka_unit_test(test_signals_are_reset),
                cmocka_unit_test(test_not_on_virtual_time),
        };
        return cmocka_run_group_tests_name("child-runner", tests, NULL, NULL);
}
