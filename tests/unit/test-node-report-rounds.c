/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmocka-test.h"
#include "json.h"
#include "kube-rig.h"
#include "marks.h"
#include "node-marks.h"
#include "node-report.h"
#include "string-util.h"

/*
 * A report against a scripted API server: what counts from when a request left, what an answer that comes late finds changed,
 * and what is left of one failure, conflict or goal when the next one begins.
 */

#define BOOT "0123456789abcdef0123456789abcdef"
#define MSEC USEC_PER_MSEC
#define SEC USEC_PER_SEC
#define TAINTED "\"unschedulable\":true,\"taints\":[{\"key\":\"node.kubernetes.io/unschedulable\",\"effect\":\"NoSchedule\"}]"
#define NODE(uid, version, annotations, spec) \
        "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\",\"uid\":\"" uid "\",\"resourceVersion\":\"" version \
        "\",\"annotations\":{" annotations "}},\"spec\":{" spec "}}"
#define PLAIN(version) NODE("u1", version, "", "")
#define CORDONED_BY_US "\"vesper.sh/cordoned-by-agent\":\"{}\""
#define CORDONED(version) NODE("u1", version, CORDONED_BY_US, TAINTED)
#define CONFLICT \
        "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"changed\",\"code\":409}"

typedef struct Bench {
        Rig *rig;
        NodeReport *report;
        Notice notice;
        unsigned n_cordoned, n_undone, n_reads, n_back, n_first, n_errors;
        usec_t sent_usec;
        bool claimed, uncordoned;
} Bench;

static void on_cordoned(NodeReport *report, usec_t sent_usec, bool claimed, void *userdata) {
        Bench *b = userdata;

        b->n_cordoned++;
        b->sent_usec = sent_usec;
        b->claimed = claimed;
}

static void on_undone(NodeReport *report, bool uncordoned, void *userdata) {
        Bench *b = userdata;

        b->n_undone++;
        b->uncordoned = uncordoned;
}

static void on_api(NodeReport *report, const ApiError *error, bool first, void *userdata) {
        Bench *b = userdata;

        b->n_back += !error;
        b->n_errors += error != NULL;
        b->n_first += error && first;
}

static void on_read(NodeReport *report, void *userdata) {
        ((Bench *) userdata)->n_reads++;
}

/* "G", "P" by a merge patch, "S" for the conditions. */
static void describe(const HttpExchange *x, StrBuf *t) {
        strbuf_add(t, x->method == HTTP_GET ? "G" : strstr(x->path, "/status") ? "S" : "P");
}

static void bench_init(Bench *b) {
        const NodeReportHandler handler = {
                .on_cordoned = on_cordoned, .on_undone = on_undone, .on_api = on_api, .on_read = on_read, .userdata = b
        };

        *b = (Bench){ .rig = rig_new() };
        b->rig->describe = describe;
        b->rig->host->env.boot_id = BOOT;
        b->notice = (Notice){ .id = (char *) "x",
                              .kind = NOTICE_SPOT,
                              .source = (char *) "ec2",
                              .deadline_usec = 2 * USEC_PER_HOUR };
        assert_return_code(node_report_new(b->rig->host->client, "n1", &handler, &b->report), 0);
}

static void bench_done(Bench *b) {
        node_report_free(b->report);
        rig_free(b->rig);
}
#define _cleanup_bench_ _cleanup_(bench_done)

static void see(Bench *b, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;

        assert_return_code(json_parse(text, strlen(text), 1 << 20, &doc, NULL), 0);
        assert_return_code(
                kube_object_decode(&kube_node_kind, json_root(doc), kube_client_pool(b->rig->host->client), &o), 0);
        node_report_see(b->report, (KubeNode *) o);
        kube_object_unref(o);
}

static void mark_left(Bench *b, const char *phase, size_t pods_left) {
        const NodeWish wish = { .notice = &b->notice, .phase = interruption_phase_from_string(phase), .pods_left = pods_left };

        assert_return_code(node_report_mark(b->report, &wish), 0);
}

static void mark(Bench *b, const char *phase) {
        mark_left(b, phase, 0);
}

static const char *last_body(Bench *b) {
        return b->rig->requests[b->rig->n_requests - 1].body;
}

static usec_t gap(Bench *b, size_t i) {
        return b->rig->requests[i].at_usec - b->rig->requests[i - 1].at_usec;
}

/* Cordoned, with nothing left to write. */
static void bench_init_cordoned(Bench *b) {
        bench_init(b);
        see(b, PLAIN("10"));
        rig_answer(b->rig, 200, CORDONED("11"));
        mark(b, "Cordoned");
        rig_run_for(b->rig, SEC);
        assert_trace(b->rig, "P");
        assert_int_equal(b->n_cordoned, 1);
        assert_true(node_report_is_done(b->report));
        see(b, CORDONED("11"));
}

/* -- from when it counts ---------------------------------------------------------------------------------- */

TEST_CASE(test_sent_not_answered) {
        _cleanup_bench_ Bench b;
        usec_t start;

        bench_init(&b);
        b.rig->request_delay_usec = 200 * MSEC;
        b.rig->reply_delay_usec = 300 * MSEC;
        see(&b, PLAIN("10"));
        rig_silence(b.rig);
        rig_answer(b.rig, 200, CORDONED("11"));
        start = virtual_time_now(b.rig->time);
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 4 * SEC);
        assert_trace(b.rig, "P P");
        assert_int_equal(b.n_cordoned, 1);
        assert_int_equal(b.sent_usec, start); /* the first of them, when it left */
}

TEST_CASE(test_fresh_from_the_question) {
        _cleanup_bench_ Bench b;
        usec_t asked;

        bench_init_cordoned(&b);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_false(node_report_is_fresh(b.report, 15 * SEC));
        b.rig->reply_delay_usec = 3 * SEC;
        rig_answer(b.rig, 200, CORDONED("12"));
        asked = virtual_time_now(b.rig->time);
        node_report_read(b.report);
        node_report_read(b.report); /* one is under way */
        rig_run_for(b.rig, 3 * SEC);
        assert_trace(b.rig, "G");
        assert_int_equal(b.n_reads, 1);
        assert_true(node_report_is_fresh(b.report, 15 * SEC));
        rig_run_until(b.rig->time, asked + 15 * SEC - 1);
        assert_true(node_report_is_fresh(b.report, 15 * SEC));
        rig_run_until(b.rig->time, asked + 15 * SEC);
        assert_false(node_report_is_fresh(b.report, 15 * SEC));

        /* And again. */
        b.rig->reply_delay_usec = 0;
        rig_answer(b.rig, 200, CORDONED("13"));
        node_report_read(b.report);
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "G");
        assert_int_equal(b.n_reads, 2);
        assert_true(node_report_is_fresh(b.report, 15 * SEC));
}

/* The wish changes while the write of the earlier one is on its way: the new one is written, too. */
TEST_CASE(test_news_during_a_write) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        b.rig->reply_delay_usec = 300 * MSEC;
        see(&b, PLAIN("10"));
        rig_answer(b.rig, 200, CORDONED("11"));
        rig_answer(b.rig, 200, CORDONED("12"));
        rig_answer(b.rig, 200, CORDONED("13"));
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 100 * MSEC);
        b.notice.deadline_usec -= USEC_PER_MINUTE;
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 400 * MSEC);
        assert_trace(b.rig, "P P");
        assert_non_null(strstr(last_body(&b), "7140000000"));
        b.notice.deadline_usec -= USEC_PER_MINUTE;
        mark(&b, "Cordoned");
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P");
        assert_non_null(strstr(last_body(&b), "7080000000"));
        assert_true(node_report_is_done(b.report));
}

/* How many pods are left is written at once with a phase, and else every ten seconds, however often it changes. */
TEST_CASE(test_pods_left) {
        _cleanup_bench_ Bench b;

        bench_init_cordoned(&b);
        for (unsigned i = 0; i < 20; i++)
                rig_answer(b.rig, 200, CORDONED("20"));
        mark_left(&b, "Draining", 100);
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P");
        see(&b, CORDONED("20"));
        for (size_t left = 99; left >= 40; left--) {
                mark_left(&b, "Draining", left);
                rig_run_for(b.rig, SEC);
        }
        assert_trace(b.rig, "P P P P P P");
        for (size_t i = b.rig->n_requests - 5; i < b.rig->n_requests; i++)
                assert_in_range(gap(&b, i), 10 * SEC, 11 * SEC);
}

/* Each alone is a reason to write, and until it is written the report is not done. */
TEST_CASE(test_one_of_the_text) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        b.notice.announced_usec = RIG_START_WALL;
        see(&b, PLAIN("10"));
        rig_answer(b.rig, 200, CORDONED("11"));
        for (unsigned i = 0; i < 5; i++)
                rig_answer(b.rig, 200, CORDONED("20"));
        mark(&b, "Cordoned");
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P");

        print_message("the deadline\n");
        b.notice.deadline_usec -= USEC_PER_MINUTE;
        mark(&b, "Cordoned");
        assert_false(node_report_is_done(b.report));
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P");
        assert_true(node_report_is_done(b.report));

        print_message("when it was announced\n");
        b.notice.announced_usec += USEC_PER_MINUTE;
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P");

        print_message("the action\n");
        b.notice.action = (char *) "stop";
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P");

        print_message("the pods left, which waits\n");
        mark_left(&b, "Cordoned", 7);
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "");
        assert_false(node_report_is_done(b.report));
        rig_run_for(b.rig, 10 * SEC);
        assert_trace(b.rig, "P");
        assert_true(node_report_is_done(b.report));
}

/* A Node as one that ran before has left it; `pods_left` below zero: it did not say. */
static char *node_left(Bench *b, const char *phase, int pods_left, const char *spec) {
        _cleanup_free_ char *text = interruption_format(&b->notice, interruption_phase_from_string(phase), (size_t) MAX(pods_left, 0), BOOT);
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char *node, *end;

        assert_non_null(text);
        if (pods_left < 0) {
                end = strstr(text, ",\"podsLeft\":0");
                assert_non_null(end);
                memmove(end, end + strlen(",\"podsLeft\":0"), strlen(end + strlen(",\"podsLeft\":0")) + 1);
        }
        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        json_add_string(w, ANNOTATION_INTERRUPTION, text);
        json_close_object(w);
        end = json_writer_steal(w, NULL);
        node = strf("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u1\","
                    "\"resourceVersion\":\"10\",\"annotations\":%s},\"spec\":{%s}}",
                    end, spec);
        free(end);
        assert_non_null(node);
        return node;
}

/* Marks that stand on the Node are not written again. Missing ones are written at once, and the pods left after a while. */
TEST_CASE(test_resume) {
        static const struct {
                const char *what, *phase;
                int pods_left;
                const char *at_once, *later;
        } rows[] = {
                { "all stands there", "Draining", 3, "", "" },
                { "another phase", "Cordoned", 3, "P", "" },
                { "other pods left", "Draining", 4, "", "P" },
                { "no pods left were said", "Draining", -1, "P", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_bench_ Bench b;
                _cleanup_free_ char *node = NULL;
                const NodeWish wish = { .notice = &b.notice, .phase = INTERRUPTION_DRAINING, .pods_left = 3 };

                print_message("%s\n", rows[i].what);
                bench_init(&b);
                node = node_left(&b, rows[i].phase, rows[i].pods_left, TAINTED);
                see(&b, node);
                rig_answer(b.rig, 200, CORDONED("11"));
                assert_return_code(node_report_resume(b.report, &wish), 0);
                rig_run_for(b.rig, 5 * SEC);
                assert_trace(b.rig, rows[i].at_once);
                assert_int_equal(node_report_is_done(b.report), rows[i].later[0] == 0);
                rig_run_for(b.rig, 6 * SEC);
                assert_trace(b.rig, rows[i].later);
                assert_true(node_report_is_done(b.report));
        }
}

/* -- failures, and the next ones --------------------------------------------------------------------------- */

TEST_CASE(test_fails_again) {
        _cleanup_bench_ Bench b;
        size_t n;

        bench_init_cordoned(&b);
        for (unsigned i = 0; i < 6; i++)
                rig_answer_later(b.rig, 500, NULL);
        rig_answer(b.rig, 200, CORDONED("12"));
        mark(&b, "Draining");
        rig_run_for(b.rig, 30 * SEC);
        assert_trace(b.rig, "P P P P P P P");
        assert_int_equal(b.n_errors, 6);
        assert_int_equal(b.n_first, 1);
        assert_int_equal(b.n_back, 1);
        see(&b, CORDONED("12"));

        /* Nothing of that is left. */
        n = b.rig->n_requests;
        rig_answer_later(b.rig, 500, NULL);
        rig_answer_later(b.rig, 500, NULL);
        rig_answer(b.rig, 200, CORDONED("13"));
        mark(&b, "Drained");
        rig_run_for(b.rig, 30 * SEC);
        assert_trace(b.rig, "P P P");
        assert_in_range(gap(&b, n + 1), 80 * MSEC, 120 * MSEC);
        assert_in_range(gap(&b, n + 2), 160 * MSEC, 240 * MSEC);
        assert_int_equal(b.n_first, 2);
        assert_int_equal(b.n_back, 2);
}

/* Five conflicts in a row are answered at once, each on a Node that is read; more of them wait; the first that is taken ends the
 * row, and a read does not. */
TEST_CASE(test_conflicts_again) {
        _cleanup_bench_ Bench b;

        bench_init_cordoned(&b);
        for (unsigned round = 0; round < 2; round++) {
                for (unsigned i = 0; i < 6; i++) {
                        rig_answer(b.rig, 409, CONFLICT);
                        rig_answer(b.rig, 200, CORDONED("12"));
                }
                rig_answer(b.rig, 200, CORDONED("13"));
                mark(&b, round == 0 ? "Draining" : "Drained");
                rig_run_for(b.rig, 0);
                assert_trace(b.rig, "P G P G P G P G P G P");
                rig_run_for(b.rig, SEC);
                assert_trace(b.rig, "G P");
        }
        assert_int_equal(b.n_first, 0); /* no failures */
}

/* The watch has brought a newer Node than the one that was refused: that one is written on, not read. */
TEST_CASE(test_conflict_with_news) {
        _cleanup_bench_ Bench b;

        bench_init_cordoned(&b);
        b.rig->reply_delay_usec = 100 * MSEC;
        rig_answer(b.rig, 409, CONFLICT);
        rig_answer(b.rig, 200, CORDONED("13"));
        mark(&b, "Draining");
        rig_run_for(b.rig, 50 * MSEC);
        see(&b, CORDONED("12"));
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P P");
        assert_non_null(strstr(last_body(&b), "\"resourceVersion\":\"12\""));

        /* A late object of the same Node is older; one of another Node is not. */
        see(&b, CORDONED("12"));
        assert_string_equal(node_report_view(b.report)->object.meta.resource_version, "13");
        rig_answer(b.rig, 200, NODE("u2", "6", CORDONED_BY_US, TAINTED));
        see(&b, NODE("u2", "5", "", ""));
        assert_string_equal(node_report_view(b.report)->object.meta.resource_version, "5");
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P"); /* and is cordoned */
        assert_int_equal(b.n_cordoned, 2);
}

/* -- reads --------------------------------------------------------------------------------------------------- */

TEST_CASE(test_reads) {
        _cleanup_bench_ Bench b;

        /* A write that is taken is as good. */
        bench_init_cordoned(&b);
        b.rig->reply_delay_usec = 100 * MSEC;
        rig_answer(b.rig, 200, CORDONED("12"));
        mark(&b, "Draining");
        rig_run_for(b.rig, 50 * MSEC);
        node_report_read(b.report);
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P");
        assert_int_equal(b.n_reads, 1);

        /* An answer that is no Node is followed by a read, and logged. */
        b.rig->reply_delay_usec = 0;
        rig_answer_later(b.rig, 500, NULL);
        rig_answer_later(b.rig, 503, NULL);
        rig_answer(b.rig, 200, CORDONED("12"));
        node_report_read(b.report);
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "G G G");
        assert_int_equal(b.n_reads, 2);

        /* A Node that is gone is an answer, too; the next one can be asked about again. */
        rig_answer(b.rig, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"none\",\"code\":404}");
        node_report_read(b.report);
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "G");
        assert_int_equal(b.n_reads, 3);
        assert_null(node_report_view(b.report));
        rig_answer(b.rig, 200, CORDONED("21"));
        rig_answer(b.rig, 200, CORDONED("21"));
        see(&b, PLAIN("20"));
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P");
        node_report_read(b.report);
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "G");
        assert_int_equal(b.n_reads, 4);
}

/* -- from one goal to the next ------------------------------------------------------------------------------- */

#define MARKED(version) \
        NODE("u1", version, \
             CORDONED_BY_US ",\"vesper.sh/interruption\":\"{\\\"id\\\":\\\"x\\\",\\\"kind\\\":\\\"spot\\\",\\\"source\\\":\\\"ec2\\\"," \
                            "\\\"phase\\\":\\\"Cordoned\\\",\\\"podsLeft\\\":0,\\\"bootID\\\":\\\"" BOOT "\\\"}\"", \
             TAINTED)

/* Marked, undone, marked, released, marked: each from its beginning. */
TEST_CASE(test_goals) {
        static const char *const marked[] = { MARKED("11"), MARKED("21"), MARKED("31"), MARKED("41") };
        static const char *const plain[] = { PLAIN("12"), PLAIN("22"), PLAIN("32"), PLAIN("42") };
        _cleanup_bench_ Bench b;

        bench_init(&b);
        see(&b, PLAIN("10"));
        for (unsigned round = 0; round < 4; round++) {
                usec_t start = virtual_time_now(b.rig->time);
                bool released = round == 1;

                print_message("round %u%s\n", round, released ? ", a person un-cordons" : "");
                /* The first cordon of each round takes two tries, and so much longer than settling does. */
                rig_answer_later(b.rig, 500, NULL);
                rig_answer(b.rig, 200, marked[round]);
                mark(&b, "Cordoned");
                rig_run_for(b.rig, SEC);
                assert_trace(b.rig, "P P");
                assert_int_equal(b.n_cordoned, round + 1);
                assert_int_equal(b.sent_usec, start);
                assert_true(b.claimed);
                assert_non_null(strstr(last_body(&b), "\"unschedulable\":true"));
                assert_true(node_report_is_done(b.report));

                /* The undo is sent, too; the wait of the mark does not hold it up. */
                rig_answer_later(b.rig, 503, NULL);
                rig_answer(b.rig, 200, plain[round]);
                start = virtual_time_now(b.rig->time);
                if (released)
                        node_report_overruled(b.report);
                else
                        node_report_unmark(b.report);
                rig_run_for(b.rig, SEC);
                assert_trace(b.rig, "P P");
                assert_int_equal(b.rig->requests[b.rig->n_requests - 2].at_usec, start);
                assert_in_range(gap(&b, b.rig->n_requests - 1), 80 * MSEC, 120 * MSEC);
                assert_int_equal(b.n_undone, round + 1);
                assert_int_equal(b.uncordoned, !released);
                assert_int_equal(strstr(last_body(&b), "Released") != NULL, released);
                assert_true(node_report_is_done(b.report));
                see(&b, plain[round]);
                rig_run_for(b.rig, USEC_PER_MINUTE);
                assert_trace(b.rig, "");
        }
}

/* A wait that one goal was told is not the next one's. */
TEST_CASE(test_goal_does_not_wait) {
        _cleanup_bench_ Bench b;

        bench_init_cordoned(&b);
        see(&b, MARKED("12"));
        rig_answer_later(b.rig, 429, "30");
        mark(&b, "Draining");
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P");
        rig_answer(b.rig, 200, PLAIN("13"));
        node_report_unmark(b.report);
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P");
        assert_int_equal(b.n_undone, 1);
}

/* A write under way for the old goal has no effect on the new one, and neither has a read that it wanted. */
TEST_CASE(test_goal_changes_during_a_write) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        b.rig->reply_delay_usec = 200 * MSEC;
        see(&b, PLAIN("10"));
        rig_answer(b.rig, 200, MARKED("11"));
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 100 * MSEC);
        node_report_read(b.report);
        b.rig->reply_delay_usec = 0;
        see(&b, MARKED("11")); /* it has landed */
        rig_answer(b.rig, 200, PLAIN("12"));
        node_report_unmark(b.report);
        rig_run_for(b.rig, SEC);
        assert_trace(b.rig, "P P");
        assert_int_equal(b.n_cordoned, 0);
        assert_int_equal(b.n_undone, 1);
        assert_int_equal(b.n_reads, 0);
}

/* The cordon lands, its answer is lost, and a person un-cordons before the next try. The report writes
 * nothing more. It tells its owner once that the cordon is not the agent's any more. */
TEST_CASE(test_uncordoned_before_the_retry) {
        _cleanup_bench_ Bench b;
        _cleanup_free_ char *node = NULL;

        bench_init(&b);
        see(&b, PLAIN("9"));
        rig_silence(b.rig);
        mark(&b, "Cordoned");
        rig_run_for(b.rig, 100 * MSEC);
        node = node_left(&b, "Cordoned", 0, "");
        see(&b, node);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_trace(b.rig, "P");
        assert_int_equal(b.n_cordoned, 1);
        assert_false(b.claimed);
        assert_true(node_report_is_done(b.report));
}

/* Conflicts of one goal are not in a row with those of the next. */
TEST_CASE(test_goal_forgets_conflicts) {
        _cleanup_bench_ Bench b;

        bench_init_cordoned(&b);
        see(&b, MARKED("12"));
        for (unsigned i = 0; i < 5; i++) {
                rig_answer(b.rig, 409, CONFLICT);
                rig_answer(b.rig, 200, MARKED("12"));
        }
        rig_silence(b.rig);
        mark(&b, "Draining");
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P G P G P G P G P G P");
        for (unsigned i = 0; i < 5; i++) {
                rig_answer(b.rig, 409, CONFLICT);
                rig_answer(b.rig, 200, MARKED("12"));
        }
        rig_answer(b.rig, 200, PLAIN("13"));
        node_report_unmark(b.report);
        rig_run_for(b.rig, 0);
        assert_trace(b.rig, "P G P G P G P G P G P");
        assert_int_equal(b.n_undone, 1);
}

/* The path is another one: tried at once, and the next failure waits as short as the first. */
TEST_CASE(test_kick) {
        _cleanup_bench_ Bench b;

        bench_init_cordoned(&b);
        for (unsigned i = 0; i < 7; i++)
                rig_answer_later(b.rig, 500, NULL);
        rig_answer(b.rig, 200, CORDONED("12"));
        mark(&b, "Draining");
        while (b.rig->n_requests < 7)
                assert_int_equal(virtual_time_step(b.rig->time, USEC_INFINITY), 1);
        rig_run_for(b.rig, 10 * MSEC);
        node_report_kick(b.report);
        rig_run_for(b.rig, 0);
        assert_int_equal(b.rig->n_requests, 8);
        rig_run_for(b.rig, SEC);
        assert_int_equal(b.rig->n_requests, 9);
        assert_in_range(gap(&b, 8), 80 * MSEC, 120 * MSEC);
}

/* Until the node controller has set its taint nothing more is written; then, or after a moment, it is. */
TEST_CASE(test_settling) {
        for (int tainted = 0; tainted <= 1; tainted++) {
                _cleanup_bench_ Bench b;

                bench_init(&b);
                see(&b, PLAIN("10"));
                rig_answer(b.rig, 200, NODE("u1", "11", CORDONED_BY_US, "\"unschedulable\":true"));
                rig_answer(b.rig, 200, CORDONED("13"));
                mark(&b, "Cordoned");
                rig_run_for(b.rig, 0);
                mark(&b, "Draining");
                rig_run_for(b.rig, 50 * MSEC);
                assert_trace(b.rig, "P");
                if (tainted)
                        see(&b, CORDONED("12"));
                rig_run_for(b.rig, 0);
                assert_trace(b.rig, tainted ? "P" : "");
                rig_run_for(b.rig, 50 * MSEC);
                assert_trace(b.rig, tainted ? "" : "P");
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sent_not_answered),
                cmocka_unit_test(test_fresh_from_the_question),
                cmocka_unit_test(test_news_during_a_write),
                cmocka_unit_test(test_pods_left),
                cmocka_unit_test(test_one_of_the_text),
                cmocka_unit_test(test_resume),
                cmocka_unit_test(test_fails_again),
                cmocka_unit_test(test_conflicts_again),
                cmocka_unit_test(test_conflict_with_news),
                cmocka_unit_test(test_reads),
                cmocka_unit_test(test_goals),
                cmocka_unit_test(test_goal_does_not_wait),
                cmocka_unit_test(test_goal_changes_during_a_write),
                cmocka_unit_test(test_goal_forgets_conflicts),
                cmocka_unit_test(test_uncordoned_before_the_retry),
                cmocka_unit_test(test_kick),
                cmocka_unit_test(test_settling),
        };
        return cmocka_run_group_tests_name("node-report-rounds", tests, NULL, NULL);
}
