/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz-draw.h"

#include <assert.h>
#include <stdlib.h>

#include "json.h"
#include "string-util.h"

bool draw_is_text(const uint8_t *data, size_t size) {
        return size > 0 && (data[0] >= ' ' || data[0] == '\t' || data[0] == '\n' || data[0] == '\r');
}

uint8_t draw_byte(Draw *d) {
        if (d->size == 0)
                return 0;
        d->size--;
        return *d->data++;
}

uint64_t draw_uint64(Draw *d) {
        uint64_t v = 0;

        for (unsigned i = 0; i < 8; i++)
                v = v << 8 | draw_byte(d);
        return v;
}

size_t draw_below(Draw *d, size_t n) {
        assert(n > 0);
        return n <= 256 ? draw_byte(d) % n : draw_uint64(d) % n;
}

bool draw_bool(Draw *d) {
        return draw_byte(d) & 1;
}

usec_t draw_usec(Draw *d, usec_t near) {
        switch (draw_byte(d) % 8) {
        case 0:
                return near;
        case 1:
                return 0;
        case 2:
                return USEC_INFINITY;
        case 3:
                return usec_add(near, draw_byte(d) * USEC_PER_SEC);
        case 4:
                return usec_sub(near, draw_byte(d) * USEC_PER_SEC);
        case 5:
                return usec_add(near, draw_byte(d) * USEC_PER_HOUR);
        case 6:
                return usec_add(near, draw_byte(d));
        default:
                return draw_uint64(d);
        }
}

char *draw_text(Draw *d) {
        size_t n = draw_byte(d) % 41;
        char *s = calloc(n + 1, 1);

        assert(s);
        for (size_t i = 0; i < n; i++) {
                uint8_t b = draw_byte(d);

                s[i] = (char) (b ? b : 'a');
        }
        return s;
}

size_t draw_piece(Draw *d, size_t left) {
        size_t n = (size_t) draw_byte(d) + 1;

        assert(left > 0);
        return MIN(n, left);
}

/* -- JSON --------------------------------------------------------------------------------------- */

/* What parsers of numbers, times, spans, names and patterns stumble over. */
static const char *const odd_strings[] = {
        "",
        "0",
        "true",
        "false",
        "Never",
        "infinity",
        "0s",
        "30s",
        "1h30m",
        "99999999999999999999h",
        "-5s",
        "1.5s",
        "24x",
        "9223372036s",
        "1970-01-01T00:00:00Z",
        "2027-01-15T08:00:00Z",
        "2027-01-15T08:00:00.000001+14:00",
        "9999-12-31T23:59:60Z",
        "0000-00-00T00:00:00Z",
        "now",
        "None",
        "NoSchedule",
        "True",
        "False",
        "Unknown",
        "Running",
        "Failed",
        "Exists",
        "Equal",
        "In",
        "vesper.sh/disrupted",
        "terminate",
        "stop",
        "hibernate",
        "Cordoned",
        "Draining",
        "Drained",
        "a b",
        "\n",
        "\x1b[2J",
        "\"",
        "\\",
        "\xc3\xa9",
        "\xff",
        "../..",
        "{}",
        "{\"phase\":\"Draining\"}",
        "aws:///eu-west-1a/i-0123456789abcdef0",
        "TooManyRequests",
        "DisruptionBudget",
};
static const char *const odd_values[] = {
        "null",
        "true",
        "false",
        "0",
        "-1",
        "1",
        "0.5",
        "1e300",
        "-1e-300",
        "2147483648",
        "9007199254740991",
        "9007199254740992",
        "18446744073709551616",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "[{}]",
        "{\"\":0}",
        "\"\"",
};

static void bend_value(Draw *d, JsonWriter *w, const char *key, const Json *v, bool in_list);

static void bend_children(Draw *d, JsonWriter *w, const char *key, const Json *v) {
        bool list = json_is_array(v);

        if (list)
                json_open_array(w, key);
        else
                json_open_object(w, key);
        JSON_FOREACH (child, v)
                bend_value(d, w, json_key(child), child, list);
        if (list)
                json_close_array(w);
        else
                json_close_object(w);
}

static void keep_value(Draw *d, JsonWriter *w, const char *key, const Json *v) {
        if (json_is_object(v) || json_is_array(v))
                bend_children(d, w, key, v);
        else
                json_add_value(w, key, v);
}

static void add_text(Draw *d, JsonWriter *w, const char *key) {
        _cleanup_free_ char *text = draw_text(d);

        json_add_string(w, key, text);
}

/* A string inside of which JSON stands, as in annotations: bent inside. */
static void add_inner(Draw *d, JsonWriter *w, const char *key, const Json *v) {
        const char *inner = json_string_or_null(v);
        _cleanup_free_ char *bent = NULL;

        if (inner && inner[0] == '{')
                bent = draw_bent_json(d, inner);
        json_add_string(w, key, bent ? bent : inner ? inner : "");
}

static void bend_value(Draw *d, JsonWriter *w, const char *key, const Json *v, bool in_list) {
        uint8_t how = draw_byte(d);

        if (how < 208)
                keep_value(d, w, key, v);
        else if (how < 214)
                return; /* left out */
        else if (how < 226)
                json_add_string(w, key, draw_of(d, odd_strings));
        else if (how < 236)
                json_add_raw(w, key, draw_of(d, odd_values));
        else if (how < 242)
                add_text(d, w, key);
        else if (how < 248)
                add_inner(d, w, key, v);
        else if (how < 252) {
                json_open_array(w, key);
                keep_value(d, w, NULL, v);
                json_close_array(w);
        } else {
                keep_value(d, w, key, v);
                if (in_list)
                        keep_value(d, w, key, v);
        }
}

char *draw_bent_json(Draw *d, const char *json) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        char *text;
        int r;

        r = json_parse(json, strlen(json), strlen(json), &doc, NULL);
        if (r < 0)
                return strdup(json); /* an inner text that only looked like it */
        r = json_writer_new(&w);
        assert(r >= 0);
        keep_value(d, w, NULL, json_root(doc));
        text = json_writer_steal(w, NULL);
        assert(text);
        return text;
}

/* -- lines -------------------------------------------------------------------------------------- */

static const char *const odd_lines[] = {
        "",    " ",       "\t",    "#",      ";x",           "[",          "]",
        "[]",  "[Other]", "=",     "a=",     "=b",           "key: value", "  - item",
        "---", "...",     "&a *a", "!tag x", "\xef\xbb\xbf", "\xff",       "\\",
};

static void add_damaged(Draw *d, StrBuf *b, const char *line, size_t size) {
        size_t at = draw_below(d, size + 1), gone = draw_byte(d) % 8;
        _cleanup_free_ char *text = draw_text(d);

        strbuf_add_n(b, line, at);
        strbuf_add(b, text);
        if (at + gone < size)
                strbuf_add_n(b, line + at + gone, size - at - gone);
}

static void bend_line(Draw *d, StrBuf *b, const char *line, size_t size) {
        uint8_t how = draw_byte(d);

        if (how < 192 || (how >= 208 && how < 216))
                strbuf_add_n(b, line, size);
        else if (how < 208)
                add_damaged(d, b, line, size);
        else if (how < 228)
                return; /* left out */
        else if (how < 240) {
                strbuf_add(b, draw_of(d, odd_lines));
                strbuf_add_char(b, '\n');
                strbuf_add_n(b, line, size);
        } else {
                strbuf_add_n(b, line, size);
                strbuf_add_char(b, how < 248 ? '\n' : '\r');
                strbuf_add_n(b, line, size);
        }
        if (how != 208)
                strbuf_add_char(b, '\n');
}

char *draw_bent_lines(Draw *d, const char *text) {
        StrBuf b = { 0 };
        char *bent;

        while (*text) {
                size_t size = strcspn(text, "\n");

                bend_line(d, &b, text, size);
                text += size + (text[size] == '\n');
        }
        bent = strbuf_steal(&b);
        assert(bent);
        return bent;
}
