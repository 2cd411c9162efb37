/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "metrics.h"
#include "string-util.h"

enum { PLAIN, LABELLED, GAUGE, SECONDS, SIZES };

static const char *const outcomes[] = { "evicted", "blocked", "a \"b\" \\ \n", NULL };
static const char *const lanes[] = { "urgent", "bulk", NULL };
static const double bounds[] = { 0.1, 1, 2.5 };

static const MetricFamily families[] = {
        [PLAIN] = { "t_polls_total", METRIC_COUNTER, "Polls, \\ and\nmore \"or\" less." },
        [LABELLED] = { "t_evictions_total", METRIC_COUNTER, "Evictions.", "outcome", outcomes },
        [GAUGE] = { "t_pods", METRIC_GAUGE, "Pods." },
        [SECONDS] = { "t_seconds", METRIC_HISTOGRAM, "Time.", NULL, NULL, bounds, ELEMENTSOF(bounds) },
        [SIZES] = { "t_bytes", METRIC_HISTOGRAM, "Size.", "lane", lanes, bounds, 1 },
};

/* The text up to the process's own figures. */
static char *format_ours(const Metrics *m) {
        StrBuf b = { 0 };
        char *text, *process;

        metrics_format(m, &b);
        text = strbuf_steal(&b);
        assert_non_null(text);
        process = strstr(text, "# HELP process_");
        assert_non_null(process);
        *process = 0;
        return text;
}

TEST_CASE(test_format) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(metrics_new(families, ELEMENTSOF(families), &m), 0);
        metrics_add(m, PLAIN, 0, 1);
        metrics_add(m, PLAIN, 0, (UINT64_C(1) << 60));
        metrics_add(m, LABELLED, 1, 7);
        metrics_set(m, GAUGE, 0, 17);
        metrics_set(m, GAUGE, 0, -0.1);
        metrics_observe(m, SECONDS, 0, 0.1);
        metrics_observe(m, SECONDS, 0, 0.5);
        metrics_observe(m, SECONDS, 0, 2);
        metrics_observe(m, SECONDS, 0, 2.6);
        metrics_observe(m, SIZES, 1, 9);

        text = format_ours(m);
        assert_string_equal(text, "# HELP t_polls_total Polls, \\\\ and\\nmore \"or\" less.\n"
                                  "# TYPE t_polls_total counter\n"
                                  "t_polls_total 1152921504606846977\n"
                                  "# HELP t_evictions_total Evictions.\n"
                                  "# TYPE t_evictions_total counter\n"
                                  "t_evictions_total{outcome=\"evicted\"} 0\n"
                                  "t_evictions_total{outcome=\"blocked\"} 7\n"
                                  "t_evictions_total{outcome=\"a \\\"b\\\" \\\\ \\n\"} 0\n"
                                  "# HELP t_pods Pods.\n"
                                  "# TYPE t_pods gauge\n"
                                  "t_pods -0.1\n"
                                  "# HELP t_seconds Time.\n"
                                  "# TYPE t_seconds histogram\n"
                                  "t_seconds_bucket{le=\"0.1\"} 1\n"
                                  "t_seconds_bucket{le=\"1\"} 2\n"
                                  "t_seconds_bucket{le=\"2.5\"} 3\n"
                                  "t_seconds_bucket{le=\"+Inf\"} 4\n"
                                  "t_seconds_sum 5.2\n"
                                  "t_seconds_count 4\n"
                                  "# HELP t_bytes Size.\n"
                                  "# TYPE t_bytes histogram\n"
                                  "t_bytes_bucket{lane=\"urgent\",le=\"0.1\"} 0\n"
                                  "t_bytes_bucket{lane=\"urgent\",le=\"+Inf\"} 0\n"
                                  "t_bytes_sum{lane=\"urgent\"} 0\n"
                                  "t_bytes_count{lane=\"urgent\"} 0\n"
                                  "t_bytes_bucket{lane=\"bulk\",le=\"0.1\"} 0\n"
                                  "t_bytes_bucket{lane=\"bulk\",le=\"+Inf\"} 1\n"
                                  "t_bytes_sum{lane=\"bulk\"} 9\n"
                                  "t_bytes_count{lane=\"bulk\"} 1\n");
}

TEST_CASE(test_values) {
        _cleanup_(metrics_freep) Metrics *m = NULL;

        assert_return_code(metrics_new(families, ELEMENTSOF(families), &m), 0);
        assert_true(metrics_value(m, PLAIN, 0) == 0);
        metrics_add(m, LABELLED, 2, 3);
        metrics_add(m, LABELLED, 2, 4);
        metrics_set(m, GAUGE, 0, 2.5);
        metrics_observe(m, SIZES, 1, 100);
        metrics_observe(m, SIZES, 1, NAN);
        assert_true(metrics_value(m, LABELLED, 2) == 7);
        assert_true(metrics_value(m, LABELLED, 1) == 0);
        assert_true(metrics_value(m, GAUGE, 0) == 2.5);
        assert_true(metrics_value(m, SIZES, 0) == 0);
        assert_true(metrics_value(m, SIZES, 1) == 2);
}

TEST_CASE(test_gauge_texts) {
        static const struct {
                double value;
                const char *expected;
        } rows[] = {
                { 0, "0" },
                { 1e6, "1000000" },
                { 1234567890123, "1234567890123" },
                { 0.30000000000000004, "0.30000000000000004" },
                { 1e21, "1e+21" },
                { INFINITY, "+Inf" },
                { -INFINITY, "-Inf" },
                { NAN, "NaN" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(metrics_freep) Metrics *m = NULL;
                _cleanup_free_ char *text = NULL, *expected = NULL;

                assert_return_code(metrics_new(families + GAUGE, 1, &m), 0);
                metrics_set(m, 0, 0, rows[i].value);
                text = format_ours(m);
                expected = strf("\nt_pods %s\n", rows[i].expected);
                assert_non_null(endswith(text, expected));
        }
}

TEST_CASE(test_without_metrics) {
        _cleanup_free_ char *text = NULL;

        metrics_add(NULL, PLAIN, 0, 1);
        metrics_set(NULL, GAUGE, 0, 1);
        metrics_observe(NULL, SECONDS, 0, 1);
        assert_true(metrics_value(NULL, PLAIN, 0) == 0);
        text = format_ours(NULL);
        assert_string_equal(text, "");
        assert_null(metrics_free(NULL));
}

static double figure(const char *name) {
        _cleanup_free_ char *text = NULL, *line = NULL;
        StrBuf b = { 0 };
        const char *at;

        metrics_format(NULL, &b);
        text = strbuf_steal(&b);
        line = strf("\n%s ", name);
        at = strstr(text, line);
        assert_non_null(at);
        return strtod(at + strlen(line), NULL);
}

/* Of both kinds; what is told is counted in ticks. */
static double cpu_spent(void) {
        struct rusage u;

        assert_return_code(getrusage(RUSAGE_SELF, &u), errno);
        return (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static unsigned n_descriptors(void) {
        struct stat st;
        unsigned n = 0;

        for (int fd = 0; fd < 1024; fd++)
                n += fstat(fd, &st) >= 0;
        return n;
}

TEST_CASE(test_process) {
        double before, spent, now = (double) time(NULL);
        struct rusage u;
        int fd;

        do /* until both kinds tell */
                assert_return_code(getrusage(RUSAGE_SELF, &u), errno);
        while (u.ru_stime.tv_sec == 0 && u.ru_stime.tv_usec < 60000);
        spent = cpu_spent();
        assert_true(figure("process_cpu_seconds_total") >= spent - 0.025);
        assert_true(figure("process_cpu_seconds_total") <= cpu_spent() + 0.025);
        assert_true(figure("process_cpu_seconds_total") >= 0 && figure("process_cpu_seconds_total") < 600);
        assert_true(figure("process_resident_memory_bytes") > 100e3);
        assert_true(figure("process_virtual_memory_bytes") >= figure("process_resident_memory_bytes"));
        assert_true(figure("process_start_time_seconds") > now - 600 &&
                    figure("process_start_time_seconds") < now + 5);
        assert_true(figure("process_max_fds") >= 20);

        before = figure("process_open_fds");
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_return_code(fd, errno);
        assert_true(figure("process_open_fds") == before + 1);
        assert_true(figure("process_open_fds") == n_descriptors());
        close(fd);
}

static const char *const verbs[] = { "ask", "end", NULL };
static const char *const ways[] = { "ok", "failed", "late", NULL };
static const MetricLabel more_labels[] = { { "verb", verbs }, { "way", ways }, {} };
static const MetricFamily crossed = {
        .name = "t_calls_total",
        .type = METRIC_COUNTER,
        .help = "Calls - all.",
        .label = "lane",
        .values = lanes,
        .more = more_labels,
};

TEST_CASE(test_several_labels) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        _cleanup_free_ char *text = NULL;
        size_t n = 0;

        assert_return_code(metrics_new(&crossed, 1, &m), 0);
        for (size_t lane = 0; lane < 2; lane++)
                for (size_t verb = 0; verb < 2; verb++)
                        for (size_t way = 0; way < 3; way++) {
                                size_t index = metrics_index(m, 0, (size_t[]){ lane, verb, way });

                                assert_int_equal(index, n++);
                                metrics_add(m, 0, index, 100 * lane + 10 * verb + way);
                        }
        text = format_ours(m);
        assert_non_null(strstr(text, "\nt_calls_total{lane=\"urgent\",verb=\"ask\",way=\"ok\"} 0\n"));
        assert_non_null(strstr(text, "\nt_calls_total{lane=\"urgent\",verb=\"end\",way=\"late\"} 12\n"));
        assert_non_null(strstr(text, "\nt_calls_total{lane=\"bulk\",verb=\"ask\",way=\"failed\"} 101\n"));
        assert_non_null(strstr(text, "\nt_calls_total{lane=\"bulk\",verb=\"end\",way=\"late\"} 112\n"));
        assert_int_equal(metrics_index(NULL, 0, (size_t[]){ 1, 1, 1 }), 0);
}

/* The file at `path` with that text. */
static void put_file(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

TEST_CASE(test_reference) {
        char path[] = "/tmp/test-metrics-XXXXXX", *text = NULL;
        size_t size;
        FILE *f;
        int fd = mkstemp(path);

        assert_return_code(fd, errno);
        close(fd);
        put_file(path, ".SH A\n@METRICS@\n.SH B\n");
        f = open_memstream(&text, &size);
        assert_non_null(f);
        assert_return_code(metrics_reference(f, path, &crossed, 1), 0);
        fclose(f);
        assert_string_equal(text,
                            ".SH A\n.TP\n.B t_calls_total\nCounter. Calls \\- all.\nLabel\n.BR lane :\n"
                            "urgent,\nbulk.\nLabel\n.BR verb :\nask,\nend.\nLabel\n.BR way :\nok,\n"
                            "failed,\nlate.\n.SH B\n");
        free(text);

        print_message("  no place for them, no file\n");
        put_file(path, ".SH A\n");
        f = fopen("/dev/null", "we");
        assert_int_equal(metrics_reference(f, path, &crossed, 1), -EINVAL);
        unlink(path);
        assert_int_equal(metrics_reference(f, path, &crossed, 1), -ENOENT);
        fclose(f);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_format),         cmocka_unit_test(test_values),
                cmocka_unit_test(test_gauge_texts),    cmocka_unit_test(test_without_metrics),
                cmocka_unit_test(test_several_labels), cmocka_unit_test(test_reference),
                cmocka_unit_test(test_process),
        };
        return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
