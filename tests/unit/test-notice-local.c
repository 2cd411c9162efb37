/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "fake-child.h"
#include "notice-exec.h"
#include "notice-file.h"
#include "notice-list.h"
#include "string-util.h"

#define START (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define POLL (2 * USEC_PER_SEC)

/* Sources of this machine's own: a file, and a command. */

typedef struct Bench {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        FakeChildren *children;
        Env env;
        NoticeSource *source;
        char folder[64], path[80];

        size_t n_looks, n;
        NoticePollResult result;
        char why[512];
        Notice *notices[NOTICES_OF_FEED_MAX];
} Bench;

static void forget(Bench *b) {
        for (size_t i = 0; i < b->n; i++)
                b->notices[i] = notice_free(b->notices[i]);
        b->n = 0;
}

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        Bench *b = userdata;

        b->n_looks++;
        b->result = look->result;
        (void) snprintf(b->why, sizeof(b->why), "%s", strempty(look->why));
        forget(b);
        for (size_t i = 0; i < look->n_notices; i++)
                assert_return_code(notice_copy(look->notices[i], &b->notices[i]), 0);
        b->n = look->n_notices;
        for (size_t i = 0; i < b->n; i++) {
                assert_true(notice_source_announces(s, look->feed, b->notices[i]));
                assert_true(notice_source_may_cancel(s, b->notices[i], 0));
        }
}

static void bench_init(Bench *b) {
        *b = (Bench){ 0 };
        assert_return_code(virtual_time_new(START, &b->time), 0);
        assert_return_code(loop_new_virtual(b->time, &b->loop), 0);
        assert_return_code(random_new(1, &b->random), 0);
        b->children = fake_children_new(b->loop);
        b->env = (Env){ .loop = b->loop, .random = b->random, .children = &b->children->runner, .boot_id = "b", .version = "0" };
        (void) snprintf(b->folder, sizeof(b->folder), "/tmp/test-notice-XXXXXX");
        assert_non_null(mkdtemp(b->folder));
        (void) snprintf(b->path, sizeof(b->path), "%s/notices.json", b->folder);
}

static void bench_done(Bench *b) {
        notice_source_free(b->source);
        fake_children_free(b->children);
        random_free(b->random);
        loop_free(b->loop);
        virtual_time_free(b->time);
        forget(b);
        (void) unlink(b->path);
        (void) rmdir(b->folder);
}

static void run(Bench *b, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(b->time), usec);

        while (virtual_time_step(b->time, until) > 0)
                ;
        if (b->source)
                (void) assert_awake(b->loop, b->source->ops->next_wakeup, b->source);
}

static void put(Bench *b, const char *text) {
        FILE *f = fopen(b->path, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_return_code(chmod(b->path, 0644), 0);
}

/* -- the form ------------------------------------------------------------------------------------ */

/* Prints a line for each notice: id, kind, action, how certain, whether this machine may reboot early for it, and its
 * time. After a failure: the reason. */
static char *print_list(Bench *b, const char *body, size_t size) {
        static const NoticeSourceOps ops = { .name = "file" };
        const NoticeSource source = { .ops = &ops };
        NoticeSet known = { 0 }, list = { 0 };
        _cleanup_strbuf_ StrBuf t = { 0 };
        const char *why = NULL;
        int r;

        r = notice_list_parse(&source, b->loop, body, size, loop_now(b->loop), &known, &list, &why);
        if (r < 0) {
                assert_int_equal(r, -EBADMSG);
                assert_int_equal(list.n, 0);
                return strf("%s\n", why);
        }
        for (size_t i = 0; i < list.n; i++) {
                const Notice *n = list.items[i];

                assert_string_equal(n->source, "file");
                strbuf_addf(&t, "%s %s %s%s%s", n->id, notice_kind_to_string(n->kind), n->action,
                            n->certainty == NOTICE_ADVISORY ? " advice" : "", n->early == NOTICE_EARLY_MACHINE ? " early" : "");
                assert_int_equal(n->deadline_usec == USEC_INFINITY, n->announced_usec == 0);
                assert_int_equal(n->estimated, n->announced_usec > 0);
                if (n->announced_usec > 0) {
                        char announced[RFC3339_MAX], deadline[RFC3339_MAX];

                        rfc3339_format(n->announced_usec, announced);
                        rfc3339_format(loop_to_wall(b->loop, n->deadline_usec), deadline);
                        strbuf_addf(&t, " %s until %s", announced, deadline);
                }
                strbuf_add(&t, "\n");
        }
        notice_set_done(&list);
        return strbuf_steal(&t);
}

#define TEN "0123456789"
#define ID128 TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "-_.:/@zZ"
#define ACTION32 TEN TEN TEN "-z"

TEST_CASE(test_list) {
        static const char form[] = "a notice is a JSON object with texts id, kind, action and deadline, and advisory true or false\n";
        static const char id[] = "a notice needs an id of letters, digits and -_.:/@ (128 at most)\n";
        static const char action[] = "an action is one word of letters, digits and - (32 at most)\n";
        static const char time[] = "a deadline is a time such as 2027-01-21T09:00:00Z\n";
        static const struct {
                const char *what, *body, *expected;
        } rows[] = {
                { "the least", "{\"id\":\"w\"}", "w maintenance reboot early\n" },
                { "all of it", "{\"id\":\"ups-1\",\"kind\":\"spot\",\"action\":\"terminate\",\"deadline\":\"2027-01-15T08:05:00Z\",\"x\":1}",
                  "ups-1 spot terminate 2027-01-15T08:05:00Z until 2027-01-15T08:05:00Z\n" },
                { "a time that has passed", "{\"id\":\"w\",\"deadline\":\"2027-01-15T07:05:00Z\"}",
                  "w maintenance reboot early 2027-01-15T07:05:00Z until 2027-01-15T08:00:00Z\n" },
                { "advice", "[{\"id\":\"w\",\"advisory\":true}]", "w maintenance reboot advice\n" },
                { "no advice", "[{\"id\":\"w\",\"advisory\":false,\"action\":\"stop\"}]", "w maintenance stop\n" },
                { "a kind of its own", "[{\"id\":\"w\",\"kind\":\"flood\"}]", "w maintenance reboot advice\n" },
                { "a kind that people have", "[{\"id\":\"w\",\"kind\":\"manual\"}]", "w maintenance reboot advice\n" },
                { "a kind that shutdowns have", "[{\"id\":\"w\",\"kind\":\"shutdown\"}]", "w maintenance reboot advice\n" },
                { "two", "[{\"id\":\"a\"},{\"id\":\"b\",\"kind\":\"scale-in\"}]", "a maintenance reboot early\nb scale-in reboot early\n" },
                { "none", "[]", "" },
                { "the longest texts", "{\"id\":\"" ID128 "\",\"action\":\"" ACTION32 "\"}", ID128 " maintenance " ACTION32 "\n" },
                { "a longer id", "{\"id\":\"" ID128 "x\"}", id },
                { "an empty id", "{\"id\":\"\"}", id },
                { "no id", "[{\"kind\":\"spot\"}]", id },
                { "an id with a blank", "[{\"id\":\"a b\"}]", id },
                { "letters beside the alphabet", "[{\"id\":\"a[\"}]", id },
                { "and below it", "[{\"id\":\"a`\"}]", id },
                { "and above it", "[{\"id\":\"a{\"}]", id },
                { "above the digits", "[{\"id\":\"a;\"}]", id },
                { "a longer action", "{\"id\":\"a\",\"action\":\"" ACTION32 "x\"}", action },
                { "an empty action", "{\"id\":\"a\",\"action\":\"\"}", action },
                { "two words", "[{\"id\":\"a\",\"action\":\"go away\"}]", action },
                { "a dot in an action", "[{\"id\":\"a\",\"action\":\"a.b\"}]", action },
                { "no time", "[{\"id\":\"a\",\"deadline\":\"soon\"}]", time },
                { "an id that is a number", "[{\"id\":7}]", form },
                { "a kind that is a number", "[{\"id\":\"a\",\"kind\":7}]", form },
                { "an action that is a number", "[{\"id\":\"a\",\"action\":7}]", form },
                { "a time that is a number", "[{\"id\":\"a\",\"deadline\":7}]", form },
                { "advice of another type", "[{\"id\":\"a\",\"advisory\":\"yes\"}]", form },
                { "a list in a list", "[[]]", form },
                { "a text", "\"a\"", form },
                { "one id for two", "[{\"id\":\"a\"},{\"id\":\"a\"}]", "two notices with one id\n" },
                { "a bad one behind a good one", "[{\"id\":\"a\"},{\"id\":\"\"}]", id },
                { "a bad one before a good one", "[{\"id\":\"\"},{\"id\":\"a\"}]", id },
                { "half of it", "[{\"id\":\"a\"", "no JSON\n" },
                { "nothing", "", "no JSON\n" },
        };
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = print_list(&b, rows[i].body, strlen(rows[i].body));

                print_message("%s\n", rows[i].what);
                assert_string_equal(text, rows[i].expected);
        }
        bench_done(&b);
}

TEST_CASE(test_list_bounds) {
        Bench b;

        bench_init(&b);
        for (unsigned more = 0; more <= 1; more++) {
                _cleanup_strbuf_ StrBuf body = { 0 };
                _cleanup_free_ char *many = NULL, *large = NULL;

                for (unsigned i = 0; i < NOTICES_OF_FEED_MAX + more; i++)
                        strbuf_addf(&body, "%s{\"id\":\"w-%u\"}", i > 0 ? "," : "[", i);
                strbuf_add(&body, "]");
                many = print_list(&b, body.data, body.size);
                if (more)
                        assert_string_equal(many, "more than 32 notices at once\n");
                else
                        assert_non_null(strstr(many, "w-31 maintenance reboot early\n"));
                strbuf_truncate(&body, 0);
                strbuf_add(&body, "{\"id\":\"w\"}");
                while (body.size < 65536 + more)
                        strbuf_add(&body, " ");
                large = print_list(&b, body.data, body.size);
                assert_string_equal(large, more ? "more than 64 KiB\n" : "w maintenance reboot early\n");
        }
        bench_done(&b);
}

/* -- the file ------------------------------------------------------------------------------------ */

TEST_CASE(test_file) {
        static const struct {
                mode_t mode;
                NoticePollResult result;
        } modes[] = { { 0644, NOTICE_POLL_NOTICE }, { 0664, NOTICE_POLL_UNKNOWN }, { 0646, NOTICE_POLL_UNKNOWN },
                      { 0600, NOTICE_POLL_NOTICE }, { 0755, NOTICE_POLL_NOTICE } };
        const NoticeFileOptions options = { .poll_usec = POLL };
        NoticeFileOptions o = options;
        Bench b;

        bench_init(&b);
        o.path = b.path;
        assert_return_code(notice_file_new(&b.env, &o, on_look, &b, &b.source), 0);
        b.source->ops->start(b.source);
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_NONE); /* it is not there */

        put(&b, "[{\"id\":\"window-17\",\"deadline\":\"2027-01-15T09:00:00Z\"}]\n");
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_NOTICE);
        assert_string_equal(b.notices[0]->id, "window-17");
        assert_true(b.notices[0]->deadline_usec != USEC_INFINITY);

        put(&b, "[{\"id\":");
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(b.why, "notices.json: no JSON"));
        put(&b, "[]");
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_NONE);

        put(&b, "[{\"id\":\"a\"}]");
        assert_return_code(chmod(b.path, 0666), 0);
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(b.why, "others may write it"));
        if (geteuid() == 0) {
                assert_return_code(chmod(b.path, 0644), 0);
                assert_return_code(chown(b.path, 65534, 65534), 0);
                run(&b, POLL);
                assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
                assert_non_null(strstr(b.why, "it is not root's"));
                assert_return_code(chown(b.path, 0, 0), 0);
        }
        put(&b, "[{\"id\":\"a\"}]");
        for (size_t i = 0; i < ELEMENTSOF(modes); i++) {
                assert_return_code(chmod(b.path, modes[i].mode), 0);
                run(&b, POLL);
                assert_int_equal(b.result, modes[i].result);
        }
        for (unsigned more = 0; more <= 1; more++) {
                _cleanup_strbuf_ StrBuf body = { 0 };

                strbuf_add(&body, "[]");
                while (body.size < 65536 + more)
                        strbuf_add(&body, " ");
                put(&b, body.data);
                run(&b, POLL);
                assert_int_equal(b.result, more ? NOTICE_POLL_UNKNOWN : NOTICE_POLL_NONE);
                assert_int_equal(strstr(b.why, "larger than 64 KiB") != NULL, more);
        }
        assert_return_code(unlink(b.path), 0);
        assert_return_code(mkdir(b.path, 0755), 0);
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(b.why, "no regular file"));
        assert_return_code(rmdir(b.path), 0);
        /* A pipe holds nobody up. */
        assert_return_code(mkfifo(b.path, 0600), 0);
        run(&b, POLL);
        assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
        bench_done(&b);
}

/* What was counted down stays, whatever is done to the clock meanwhile. */
TEST_CASE(test_file_clock) {
        NoticeFileOptions o = { .poll_usec = POLL };
        usec_t deadline;
        Bench b;

        bench_init(&b);
        o.path = b.path;
        put(&b, "{\"id\":\"a\",\"deadline\":\"2027-01-15T09:00:00Z\"}");
        assert_return_code(notice_file_new(&b.env, &o, on_look, &b, &b.source), 0);
        b.source->ops->start(b.source);
        run(&b, POLL);
        deadline = b.notices[0]->deadline_usec;
        assert_true(b.notices[0]->estimated);
        loop_virtual_step_wall(b.loop, (int64_t) USEC_PER_HOUR);
        run(&b, 5 * POLL);
        assert_true(b.notices[0]->deadline_usec == deadline);
        bench_done(&b);
}

/* -- the command --------------------------------------------------------------------------------- */

TEST_CASE(test_exec) {
        char *command[] = { (char *) (uintptr_t) "/opt/ups", (char *) (uintptr_t) "--node", NULL };
        const NoticeExecOptions o = { .command = command, .node = "n1", .poll_usec = 10 * USEC_PER_SEC };
        static const struct {
                const char *what;
                FakeChildAnswer answer;
                NoticePollResult result;
                const char *why;
        } rows[] = {
                { "nothing printed", { .output = "" }, NOTICE_POLL_NONE, "" },
                { "blanks", { .output = " \n" }, NOTICE_POLL_NONE, "" },
                { "a notice", { .output = "{\"id\":\"ups\",\"action\":\"stop\"}\n" }, NOTICE_POLL_NOTICE, "" },
                { "no list", { .output = "on battery\n" }, NOTICE_POLL_UNKNOWN, "what /opt/ups prints is no list of notices: no JSON" },
                { "it fails", { .exit_status = 3, .output = "[]", .errors = "trying\nno UPS at \033[1m/dev/ttyS0\n" }, NOTICE_POLL_UNKNOWN,
                  "/opt/ups ended with exit status 3: no UPS at " },
                { "it hangs", { .error = -ETIMEDOUT }, NOTICE_POLL_UNKNOWN, "has not ended within 30 s" },
                { "it is not there", { .error = -ENOENT }, NOTICE_POLL_UNKNOWN, "/opt/ups could not be run: No such file" },
        };
        Bench b;

        bench_init(&b);
        assert_return_code(notice_exec_new(&b.env, &o, on_look, &b, &b.source), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                fake_children_answer(b.children, rows[i].answer);
        b.source->ops->start(b.source);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                while (b.n_looks == i)
                        run(&b, USEC_PER_SEC);
                assert_int_equal(b.n_looks, i + 1);
                assert_int_equal(b.result, rows[i].result);
                assert_non_null(strstr(b.why, rows[i].why));
                assert_null(strchr(b.why, '\033'));
        }
        assert_string_equal(b.children->argv, "/opt/ups --node");
        assert_string_equal(fake_children_env(b.children, "VESPER_NODE"), "n1");
        assert_null(fake_children_env(b.children, "HOME"));
        assert_true(b.children->timeout_usec == 30 * USEC_PER_SEC);
        /* One that never ends is alone: none is started beside it. */
        run(&b, USEC_PER_HOUR);
        assert_int_equal(b.children->n_started, ELEMENTSOF(rows) + 1);
        bench_done(&b);
}

/* The command runs at its pace: from the end of a run to the next start. Failures in a row make it slower, and an answer ends that. */
TEST_CASE(test_exec_pace) {
        char *command[] = { (char *) (uintptr_t) "/opt/ups", NULL };
        const NoticeExecOptions o = { .command = command, .node = "n1", .poll_usec = 10 * USEC_PER_SEC };
        usec_t start;
        Bench b;

        bench_init(&b);
        assert_return_code(notice_exec_new(&b.env, &o, on_look, &b, &b.source), 0);
        for (unsigned i = 0; i < 90; i++)
                fake_children_answer(b.children, (FakeChildAnswer){ .output = i < 20 || (i >= 45 && i < 65) ? "[]" : "no" });
        b.source->ops->start(b.source);
        start = virtual_time_now(b.time);
        while (b.n_looks < 20)
                run(&b, USEC_PER_SEC);
        assert_int_equal(b.result, NOTICE_POLL_NONE);
        assert_in_range(virtual_time_now(b.time) - start, 185 * USEC_PER_SEC, 201 * USEC_PER_SEC);
        assert_string_equal(fake_children_env(b.children, "LANG"), "C.UTF-8");
        assert_non_null(strstr(fake_children_env(b.children, "PATH"), "/usr/bin"));
        for (unsigned round = 0; round < 2; round++) {
                usec_t begun = virtual_time_now(b.time);
                size_t n = b.n_looks;

                while (b.n_looks < n + 3)
                        run(&b, USEC_PER_SEC);
                print_message("round %u: 3 failures in %llu s\n", round, (unsigned long long) ((virtual_time_now(b.time) - begun) / USEC_PER_SEC));
                assert_in_range(virtual_time_now(b.time) - begun, 30 * USEC_PER_SEC, 60 * USEC_PER_SEC);
                while (b.n_looks < n + 15)
                        run(&b, USEC_PER_SEC);
                n = b.n_looks;
                run(&b, 400 * USEC_PER_SEC); /* eight polls apart, at most */
                assert_in_range(b.n_looks - n, 5, 8);
                n = b.n_looks;
                notice_source_kick(b.source);
                run(&b, USEC_PER_SEC / 10);
                assert_int_equal(b.n_looks, n + 1);
                if (round > 0)
                        break;
                while (b.n_looks < 65)
                        run(&b, USEC_PER_SEC);
                n = b.n_looks;
                notice_source_kick(b.source); /* the command did not fail: the kick changes nothing */
                run(&b, 5 * USEC_PER_SEC);
                assert_int_equal(b.n_looks, n);
        }
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_list_bounds),
                cmocka_unit_test(test_file),
                cmocka_unit_test(test_file_clock),
                cmocka_unit_test(test_exec),
                cmocka_unit_test(test_exec_pace),
        };
        return cmocka_run_group_tests_name("notice-local", tests, NULL, NULL);
}
