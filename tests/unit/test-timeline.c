/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "cmocka-test.h"
#include "strv.h"
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

TEST_CASE(test_printed) {
        _cleanup_free_ char *text = NULL, *json = NULL, *svg = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(timeline_done) Timeline t = {};

        assert_return_code(timeline_init(&t, "n1"), 0);
        take(&t, timeline_take_object, node);
        take(&t, timeline_take_event, event);
        assert_return_code(timeline_miss(&t, "No <log>."), 0);
        assert_return_code(timeline_miss(&t, "No <log>."), 0);
        assert_int_equal(strv_length(t.missing), 1);
        timeline_sort(&t);

        text = timeline_text(&t);
        assert_non_null(strstr(text, "Evicted: it was?[2J evicted (3 times)"));
        assert_non_null(strstr(text, "\nNo <log>.\n"));
        json = timeline_json(&t);
        assert_return_code(json_parse(json, strlen(json), 1u << 20, &doc, NULL), 0);
        assert_int_equal(json_size(json_get(json_root(doc), "entries")), t.n_entries);
        svg = timeline_svg(&t, 1);
        assert_non_null(startswith(svg, "<svg "));
        assert_non_null(endswith(svg, "</svg>\n"));
        assert_non_null(strstr(svg, "all &lt;gone&gt; &amp; &quot;well&quot;"));
        assert_non_null(strstr(svg, "No &lt;log&gt;."));
        assert_non_null(strstr(svg, "+0 is 2027-01-15T08:00:00"));
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
        static const char *const in_order[] = {
                "Nodes n1, n2&lt;, n3",
                "y=\"98\">n1</text>",
                "y=\"144\">n2&lt;</text>",
                "y=\"190\">n3</text>",
                "y=\"214\" text-anchor=\"end\">+20.000 s</text>", /* below the name of the last lane */
                ">n1 <tspan class=\"dim\">Node</tspan> first<",
                ">n2&lt; <tspan class=\"dim\">Node</tspan> second<",
                ">n1 <tspan class=\"dim\">Node</tspan> third<",
                ">n2&lt; <tspan class=\"dim\">Node</tspan> fourth<",
                ">n3: The Node is gone.</text>",
                "</svg>",
        };
        Timeline t[3] = {};
        _cleanup_free_ char *svg = NULL, *one = NULL;
        const char *at;

        for (size_t i = 0; i < ELEMENTSOF(t); i++) {
                assert_return_code(timeline_init(t + i, (const char *[]){ "n1", "n2<", "n3" }[i]), 0);
                for (size_t k = 0; k < ELEMENTSOF(lines); k++)
                        assert_return_code(timeline_take_log_line(t + i, lines[k], strlen(lines[k])), 0);
        }
        assert_return_code(timeline_miss(t + 2, "The Node is gone."), 0);
        for (size_t i = 0; i < ELEMENTSOF(t); i++)
                timeline_sort(t + i);
        at = svg = timeline_svg(t, ELEMENTSOF(t));
        for (size_t i = 0; i < ELEMENTSOF(in_order); i++) {
                at = strstr(at, in_order[i]);
                if (!at)
                        fail_msg("'%s' does not follow in:\n%s", in_order[i], svg);
        }
        /* Marks: half-way and at the end of the axis, each in its node's lane, 20 above its line. */
        assert_non_null(strstr(svg, "<rect class=\"log\" x=\"539.0\" y=\"64\""));
        assert_non_null(strstr(svg, "<rect class=\"log\" x=\"1055.0\" y=\"110\""));
        one = timeline_svg(t, 1);
        assert_non_null(strstr(one, ">Node n1<"));
        assert_null(strstr(one, ">n1 "));
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_sources),
                cmocka_unit_test(test_printed),
                cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_lanes),
                cmocka_unit_test(test_many),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
