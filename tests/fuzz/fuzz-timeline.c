/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "fuzz-draw.h"
#include "string-util.h"
#include "timeline.h"

static const char template[] =
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"creationTimestamp\":\"2027-01-01T00:00:00Z\",\"managedFields\":"
        "[{\"manager\":\"k\",\"operation\":\"Update\",\"time\":\"2027-01-15T08:00:02Z\"}]},\"status\":{\"conditions\":"
        "[{\"type\":\"Drained\",\"status\":\"True\",\"lastTransitionTime\":\"2027-01-15T08:00:03Z\"}]},"
        "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"w\",\"name\":\"p\"},\"reason\":\"R\",\"message\":\"<m>&\","
        "\"firstTimestamp\":\"2027-01-15T08:00:01Z\",\"lastTimestamp\":\"2027-01-15T08:00:05Z\",\"count\":3,"
        "\"time\":\"2027-01-15T08:00:00.500000Z\",\"msg\":\"x\",\"node\":\"n\",\"__REALTIME_TIMESTAMP\":\"1800000000600000\"}";

/* No control character but line ends reaches a terminal; the picture's tags are ours alone. */
static void check_printed(const Timeline *t) {
        _cleanup_free_ char *text = timeline_text(t), *json = timeline_json(t), *svg = timeline_svg(t, 1);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert(text && json && svg);
        for (const char *p = text; *p; p++)
                assert((unsigned char) *p >= ' ' || *p == '\n');
        assert(json_parse(json, strlen(json), SIZE_MAX, &doc, NULL) == 0);
        for (const char *p = svg; (p = strchr(p, '<')); p++)
                assert(startswith(p, "<svg ") || startswith(p, "</") || startswith(p, "<style>") || startswith(p, "<text ") ||
                       startswith(p, "<tspan ") || startswith(p, "<line ") || startswith(p, "<rect ") ||
                       startswith(p, "<circle ") || startswith(p, "<title>"));
}

/* The same bytes as an object, an Event and a line of a log. */
static void check(const char *data, size_t size) {
        _cleanup_(timeline_done) Timeline t = {};
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert(timeline_init(&t, "n") == 0);
        assert(timeline_take_log_line(&t, data, size) >= 0);
        if (json_parse(data, size, size, &doc, NULL) >= 0) {
                assert(timeline_take_object(&t, json_root(doc)) == 0);
                assert(timeline_take_event(&t, json_root(doc)) == 0);
        }
        timeline_sort(&t);
        for (size_t i = 1; i < t.n_entries; i++)
                assert(t.entries[i - 1].at_usec <= t.entries[i].at_usec);
        check_printed(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check((const char *) data, size);
        else {
                bent = draw_bent_json(&d, template);
                check(bent, strlen(bent));
        }
        return 0;
}
