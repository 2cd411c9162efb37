/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cmocka-test.h"
#include "expected-file.h"
#include "strv.h"
#include "texts.h"
#include "timeline.h"

static void take(Timeline *t, int (*taken)(Timeline *, const Json *), const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert_return_code(json_parse(text, strlen(text), 1u << 20, &doc, NULL), 0);
        assert_return_code(taken(t, json_root(doc)), 0);
}

static const char node[] =
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"creationTimestamp\":\"2027-01-01T00:00:00Z\","
        "\"deletionTimestamp\":\"2027-01-15T08:00:00Z\",\"managedFields\":["
        "{\"manager\":\"kubelet\",\"operation\":\"Update\",\"subresource\":\"status\",\"time\":\"2027-01-15T08:00:02Z\"},"
        "{\"manager\":\"vesper-coordinator\",\"operation\":\"Update\",\"time\":\"2027-01-15T08:00:01Z\"},{}]},"
        "\"status\":{\"conditions\":[{\"type\":\"Drained\",\"status\":\"True\",\"reason\":\"DrainCompleted\","
        "\"message\":\"all <gone> & \\\"well\\\"\",\"lastTransitionTime\":\"2027-01-15T08:00:03Z\"},"
        "{\"type\":\"Ready\",\"status\":\"True\"}]}}";
static const char event[] =
        "{\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"web\",\"name\":\"w-1\"},\"reason\":\"Evicted\","
        "\"message\":\"it was\\u001b[2J evicted\",\"source\":{\"component\":\"vesper\"},\"firstTimestamp\":\"2027-01-15T08:00:01Z\","
        "\"lastTimestamp\":\"2027-01-15T08:00:05Z\",\"count\":3}";

TEST_CASE(test_all_sources) {
        static const struct {
                const char *line;
                int expected;
        } lines[] = {
                { "{\"time\":\"2027-01-15T08:00:00.500000Z\",\"logger\":\"vesper-coordinator\",\"msg\":\"begins\",\"node\":\"n1\"}\n", 1 },
                { "{\"__REALTIME_TIMESTAMP\":\"1800000000600000\",\"MESSAGE\":\"evicting\",\"NODE\":\"n1\",\"POD\":\"web/w-1\","
                  "\"SYSLOG_IDENTIFIER\":\"vesper-agent\",\"REASON\":\"Spot\"}",
                  1 },
                { "{\"time\":\"2027-01-15T08:00:00Z\",\"msg\":\"of another\",\"node\":\"n2\"}", 0 },
                { "{\"__REALTIME_TIMESTAMP\":\"-5\",\"MESSAGE\":\"when?\",\"NODE\":\"n1\"}", 0 },
                { "plain text about n1", 0 },
                { "{\"node\":\"n1\",", 0 },
                { "{\"time\":\"yesterday\",\"node\":\"n1\"}", 0 },
                { "", 0 },
        };
        static const char *const order[] = { "Created", "Deleted", NULL,           "Spot",   NULL,
                                             "Evicted", NULL,      "DrainCompleted", "Evicted" };
        _cleanup_(timeline_done) Timeline t = {};

        assert_return_code(timeline_init(&t, "n1"), 0);
        take(&t, timeline_take_object, node);
        take(&t, timeline_take_event, event);
        take(&t, timeline_take_event, event); /* the same again: told once */
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_int_equal(timeline_take_log_line(&t, lines[i].line, strlen(lines[i].line)), lines[i].expected);
        timeline_sort(&t);
        assert_int_equal(t.n_entries, ELEMENTSOF(order));
        for (size_t i = 0; i < t.n_entries; i++) {
                assert_true(streq_ptr(t.entries[i].reason, order[i]));
                assert_true(i == 0 || t.entries[i - 1].at_usec <= t.entries[i].at_usec);
        }
        assert_string_equal(t.entries[4].actor, "vesper-coordinator");
        assert_string_equal(t.entries[5].text, "it was?[2J evicted");
        assert_int_equal(t.entries[8].count, 3);
        assert_string_equal(t.entries[3].object, "Pod web/w-1");
}

/* Texts that the cases of this file print: expected/timeline.txt. */
static StrBuf printed;
static bool write_files;

static void print_text(const char *what, char *text) {
        _cleanup_free_ char *own = text;

        assert_non_null(own);
        strbuf_addf(&printed, "# %s\n%s%s", what, own, endswith(own, "\n") ? "" : "\n");
}

static void print_all(const char *what, const Timeline *t, size_t n) {
        for (size_t i = 0; i < n; i++) {
                print_text(what, timeline_text(t + i));
                print_text("as JSON", timeline_json(t + i));
        }
        print_text("as SVG", timeline_svg(t, n));
}

#define EVENT_OF(object, fields) "{\"involvedObject\":{" object "},\"reason\":\"R\",\"message\":\"m\"," fields "}"
#define OF_NODE "\"kind\":\"Node\",\"name\":\"n1\""
#define AT(key, time) "\"" key "\":\"2027-01-15T" time "Z\""

TEST_CASE(test_printed) {
        static const char *const events[] = {
                event,
                EVENT_OF(OF_NODE, AT("eventTime", "08:00:30.250000") ",\"reportingComponent\":\"kubelet\",\"source\":{\"component\":\"other\"}"),
                EVENT_OF("\"kind\":\"NodeClaim\",\"name\":\"nc\"", AT("firstTimestamp", "08:00:59") ","
                         AT("lastTimestamp", "08:00:59") ",\"count\":4"),
                EVENT_OF("\"kind\":\"Lease\",\"name\":\"l\"", AT("firstTimestamp", "08:01:00") "," AT("lastTimestamp", "08:01:01") ",\"count\":1"),
                EVENT_OF("\"kind\":\"Lease\",\"name\":\"l\"", AT("firstTimestamp", "08:01:10") "," AT("lastTimestamp", "08:59:59") ",\"count\":2"),
                EVENT_OF("\"kind\":\"Lease\",\"name\":\"l\"", AT("firstTimestamp", "08:30:00") "," AT("eventTime", "08:29:00")),
                EVENT_OF(OF_NODE, AT("firstTimestamp", "09:00:00")),
                EVENT_OF(OF_NODE, "\"firstTimestamp\":\"2027-01-16T07:59:59Z\""),
                EVENT_OF(OF_NODE, "\"firstTimestamp\":\"2027-01-16T08:00:00Z\""),
                EVENT_OF(OF_NODE, "\"firstTimestamp\":\"2027-01-18T13:30:00Z\""),
                EVENT_OF(OF_NODE, "\"count\":7"),
        };
        static const char *const lines[] = {
                "{\"time\":\"2027-01-15T08:00:00.500000Z\",\"logger\":\"vesper-coordinator\",\"msg\":\"Node n1 "
                "begins with its object\",\"node\":\"n1\",\"reason\":\"of more words\"}",
                "{\"time\":\"2027-01-15T08:00:00.500000Z\",\"logger\":\"vesper-coordinator\",\"msg\":\"Node n1 "
                "begins with its object\",\"node\":\"n1\",\"reason\":\"Begins\"}",
                "{\"__REALTIME_TIMESTAMP\":\"1800000000600000\",\"MESSAGE\":\"evicting\",\"NODE\":\"n1\",\"node\":\"n2\",\"POD\":\"web/w-1\","
                "\"SYSLOG_IDENTIFIER\":\"vesper-agent\",\"REASON\":\"Spot\"}",
                "{\"time\":\"2027-01-15T08:00:00.700000Z\",\"msg\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80 and a text "
                "that is longer than the line of a picture has columns, so that its end is left out"
                " there while the title of the text has all of it\",\"node\":\"n1\",\"pod\":\"web/w-2\"}",
                "{\"time\":\"2027-01-15T08:00:00.800000Z\",\"node\":\"n1\"}",
        };
        _cleanup_(timeline_done) Timeline t = {};

        assert_return_code(timeline_init(&t, "n1"), 0);
        take(&t, timeline_take_object, node);
        for (size_t i = 0; i < ELEMENTSOF(events); i++)
                take(&t, timeline_take_event, events[i]);
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                assert_int_equal(timeline_take_log_line(&t, lines[i], strlen(lines[i])), 1);
        assert_return_code(timeline_miss(&t, "No <log>."), 0);
        assert_return_code(timeline_miss(&t, "No <log>."), 0);
        assert_return_code(timeline_miss(&t, "No claim."), 0);
        timeline_sort(&t);
        print_all("a node", &t, 1);
}

/* Without an Event, a log or a deletion, the axis begins with the first entry. */
TEST_CASE(test_quiet) {
        _cleanup_(timeline_done) Timeline t = {};

        assert_return_code(timeline_init(&t, "n1"), 0);
        take(&t, timeline_take_object,
             "{\"kind\":\"Node\",\"metadata\":{\"creationTimestamp\":\"2027-01-15T08:00:00Z\"},\"status\":{\"conditions\":["
             "{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"2027-01-15T08:00:10Z\"}]}}");
        timeline_sort(&t);
        print_all("a node in service", &t, 1);
}

/* A picture has 200 rows. */
TEST_CASE(test_rows) {
        static const unsigned counts[] = { 200, 201, 203 };

        for (size_t k = 0; k < ELEMENTSOF(counts); k++) {
                _cleanup_(timeline_done) Timeline t = {};
                _cleanup_free_ char *svg = NULL;

                assert_return_code(timeline_init(&t, "n1"), 0);
                for (unsigned i = 0; i < counts[k]; i++) {
                        _cleanup_free_ char *line = strf("{\"time\":\"2027-01-15T08:%02u:%02uZ\",\"msg\":\"m%u\","
                                                         "\"node\":\"n1\"}", i / 60, i % 60, i);

                        assert_int_equal(timeline_take_log_line(&t, line, strlen(line)), 1);
                }
                assert_return_code(timeline_miss(&t, "Something is missing."), 0);
                timeline_sort(&t);
                svg = timeline_svg(&t, 1);
                assert_non_null(svg);
                assert_int_equal(text_count(svg, "<circle"), 200);
                strbuf_addf(&printed, "# the end of a picture of %u entries\n%.80s\n%s", counts[k], svg,
                            strstr(svg, ">m198</text>") ?: strstr(svg, "<title>m198<"));
        }
}

TEST_CASE(test_expected) {
        _cleanup_free_ char *path = expected_file_path("expected/timeline.txt");

        if (!path)
                skip();
        expected_file_compare(path, strbuf_str(&printed), write_files);
        strbuf_done(&printed);
}

TEST_CASE(test_nothing) {
        _cleanup_free_ char *text = NULL, *json = NULL, *svg = NULL;
        _cleanup_(timeline_done) Timeline t = {};

        assert_return_code(timeline_init(&t, "n1"), 0);
        take(&t, timeline_take_object, "{}");
        take(&t, timeline_take_event, "{\"involvedObject\":7,\"metadata\":[]}");
        timeline_sort(&t);
        assert_int_equal(t.n_entries, 0);
        text = timeline_text(&t);
        json = timeline_json(&t);
        svg = timeline_svg(&t, 1);
        assert_string_equal(text, "Node n1\n");
        assert_string_equal(json, "{\"node\":\"n1\",\"entries\":[],\"missing\":[]}");
        assert_non_null(svg);
}

/* Several nodes: a lane for each, one axis from the first to the last of all, and rows in order of time, each with its node. */
TEST_CASE(test_lanes) {
        static const char *const lines[] = {
                "{\"time\":\"2027-01-15T08:00:00Z\",\"msg\":\"first\",\"node\":\"n1\"}",
                "{\"time\":\"2027-01-15T08:00:05Z\",\"msg\":\"second\",\"node\":\"n2<\"}",
                "{\"time\":\"2027-01-15T08:00:10Z\",\"msg\":\"third\",\"node\":\"n1\"}",
                "{\"time\":\"2027-01-15T08:00:20Z\",\"msg\":\"fourth\",\"node\":\"n2<\"}",
        };
        Timeline t[3] = {};

        for (size_t i = 0; i < ELEMENTSOF(t); i++) {
                assert_return_code(timeline_init(t + i, (const char *[]){ "n1", "n2<", "n3" }[i]), 0);
                for (size_t k = 0; k < ELEMENTSOF(lines); k++)
                        assert_return_code(timeline_take_log_line(t + i, lines[k], strlen(lines[k])), 0);
        }
        assert_return_code(timeline_miss(t + 2, "The Node is gone."), 0);
        for (size_t i = 0; i < ELEMENTSOF(t); i++)
                timeline_sort(t + i);
        print_all("three nodes", t, ELEMENTSOF(t));
        for (size_t i = 0; i < ELEMENTSOF(t); i++)
                timeline_done(t + i);
}

TEST_CASE(test_many) {
        const char line[] = "{\"time\":\"2027-01-15T08:00:00Z\",\"msg\":\"x\",\"node\":\"n1\"}";
        _cleanup_(timeline_done) Timeline t = {};

        assert_return_code(timeline_init(&t, "n1"), 0);
        for (unsigned i = 0; i < TIMELINE_ENTRIES_MAX + 5; i++)
                assert_int_equal(timeline_take_log_line(&t, line, sizeof(line) - 1), 1);
        assert_int_equal(t.n_entries, TIMELINE_ENTRIES_MAX);
        assert_int_equal(strv_length(t.missing), 1);
}

int main(int argc, char **argv) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_sources),
                cmocka_unit_test(test_printed),
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_lanes),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_quiet),
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_expected), /* the last */
        };

        write_files = expected_file_is_written(argc, argv);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
