/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
}

static void put(Bench *b, const char *text) {
        FILE *f = fopen(b->path, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_return_code(chmod(b->path, 0644), 0);
}

/* -- the form ------------------------------------------------------------------------------------ */

TEST_CASE(test_list) {
        static const struct {
                const char *what, *body;
                int r;
                size_t n;
                NoticeKind kind;
                NoticeCertainty certainty;
                const char *action, *announced; /* NULL: not said */
        } rows[] = {
                { "the least", "{\"id\":\"w\"}", 0, 1, NOTICE_MAINTENANCE, NOTICE_CERTAIN, "reboot", NULL },
                { "all of it", "{\"id\":\"ups-1\",\"kind\":\"spot\",\"action\":\"terminate\",\"deadline\":\"2027-01-15T08:05:00Z\",\"x\":1}", 0,
                  1, NOTICE_SPOT, NOTICE_CERTAIN, "terminate", "2027-01-15T08:05:00Z" },
                { "advice", "[{\"id\":\"w\",\"advisory\":true}]", 0, 1, NOTICE_MAINTENANCE, NOTICE_ADVISORY, "reboot", NULL },
                { "a kind of its own", "[{\"id\":\"w\",\"kind\":\"flood\"}]", 0, 1, NOTICE_MAINTENANCE, NOTICE_ADVISORY, "reboot", NULL },
                { "a kind that people have", "[{\"id\":\"w\",\"kind\":\"manual\"}]", 0, 1, NOTICE_MAINTENANCE, NOTICE_ADVISORY, "reboot",
                  NULL },
                { "two", "[{\"id\":\"a\"},{\"id\":\"b\"}]", 0, 2, NOTICE_MAINTENANCE, NOTICE_CERTAIN, "reboot", NULL },
                { "none", "[]", 0, 0, 0, 0, NULL, NULL },
                { "one id for two", "[{\"id\":\"a\"},{\"id\":\"a\"}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "no id", "[{\"kind\":\"spot\"}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "an id with a blank", "[{\"id\":\"a b\"}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "an id that is a number", "[{\"id\":7}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "two words", "[{\"id\":\"a\",\"action\":\"go away\"}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "no time", "[{\"id\":\"a\",\"deadline\":\"soon\"}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "advice of another type", "[{\"id\":\"a\",\"advisory\":\"yes\"}]", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "half of it", "[{\"id\":\"a\"", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "nothing", "", -EBADMSG, 0, 0, 0, NULL, NULL },
                { "a text", "\"a\"", -EBADMSG, 0, 0, 0, NULL, NULL },
        };
        static const NoticeSourceOps ops = { .name = "file" };
        const NoticeSource source = { .ops = &ops };
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                NoticeSet known = { 0 }, list = { 0 };
                char announced[RFC3339_MAX] = "";
                const char *why = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(notice_list_parse(&source, b.loop, rows[i].body, strlen(rows[i].body), loop_now(b.loop), &known, &list,
                                                   &why),
                                 rows[i].r);
                assert_int_equal(list.n, rows[i].n);
                assert_true(rows[i].r == 0 || why);
                if (list.n > 0) {
                        const Notice *n = list.items[0];

                        assert_int_equal(n->kind, rows[i].kind);
                        assert_int_equal(n->certainty, rows[i].certainty);
                        assert_string_equal(n->action, rows[i].action);
                        assert_string_equal(n->source, "file");
                        if (n->announced_usec > 0)
                                rfc3339_format(n->announced_usec, announced);
                        assert_string_equal(announced, strempty(rows[i].announced));
                        assert_true((n->deadline_usec == USEC_INFINITY) == !rows[i].announced);
                }
                notice_set_done(&list);
        }
        bench_done(&b);
}

/* -- the file ------------------------------------------------------------------------------------ */

TEST_CASE(test_file) {
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

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_file),
                cmocka_unit_test(test_file_clock),
                cmocka_unit_test(test_exec),
        };
        return cmocka_run_group_tests_name("notice-local", tests, NULL, NULL);
}
