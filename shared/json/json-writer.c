/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "json-internal.h"
#include "string-util.h"

/*
 * Builds text from the first byte to the last; no tree. A lack of memory sticks in the buffers and makes
 * every later call do nothing, so that only json_writer_steal() has an error to look at.
 *
 * The open levels are a string of '{' and '['. It grows as it must: a copied value may come from outside and
 * be as deep as the reader allows, below levels of our own.
 */

#define TEXT_USUAL 255u /* most bodies are shorter */

struct JsonWriter {
        StrBuf text;
        StrBuf levels;
        bool need_comma; /* a value stands before this place on the same level */
        bool complete;   /* the outermost value is done */
};

int json_writer_new(JsonWriter **ret) {
        JsonWriter *w;

        assert(ret);
        w = new0(JsonWriter, 1);
        if (!w)
                return -ENOMEM;
        strbuf_make_room(&w->text, TEXT_USUAL);
        *ret = w;
        return 0;
}

JsonWriter *json_writer_free(JsonWriter *w) {
        if (!w)
                return NULL;
        strbuf_done(&w->text);
        strbuf_done(&w->levels);
        free(w);
        return NULL;
}

static bool writer_failed(const JsonWriter *w) {
        return w->text.failed || w->levels.failed;
}

static char writer_level(const JsonWriter *w) {
        return w->levels.size > 0 ? w->levels.data[w->levels.size - 1] : 0;
}

static void add_escaped_char(StrBuf *b, unsigned char c) {
        switch (c) {
        case '"':
                strbuf_add(b, "\\\"");
                break;
        case '\\':
                strbuf_add(b, "\\\\");
                break;
        case '\n':
                strbuf_add(b, "\\n");
                break;
        case '\r':
                strbuf_add(b, "\\r");
                break;
        case '\t':
                strbuf_add(b, "\\t");
                break;
        default:
                strbuf_addf(b, "\\u%04x", c);
        }
}

static bool is_plain(unsigned char c) {
        return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Runs of what needs nothing are copied whole. Each byte that is no part of valid UTF-8 becomes one
 * U+FFFD. */
static void add_quoted(StrBuf *b, const char *s) {
        const unsigned char *p = (const unsigned char *) s, *end = p + strlen(s), *run = p;

        strbuf_add_char(b, '"');
        while (p < end) {
                size_t n = is_plain(*p) ? 1 : json_utf8_size(p, (size_t) (end - p));

                if (n > 1 || is_plain(*p)) {
                        p += n;
                        continue;
                }
                strbuf_add_n(b, (const char *) run, (size_t) (p - run));
                if (n == 0)
                        strbuf_add(b, UTF8_REPLACEMENT);
                else
                        add_escaped_char(b, *p);
                run = ++p;
        }
        strbuf_add_n(b, (const char *) run, (size_t) (p - run));
        strbuf_add_char(b, '"');
}

/* What goes before every value: a comma, the key. False: nothing is to be written any more. */
static bool begin_value(JsonWriter *w, const char *key) {
        assert(w);
        if (writer_failed(w))
                return false;

        assert(!w->complete);
        if (writer_level(w) == '{')
                assert(key);
        else
                assert(!key);

        if (w->need_comma)
                strbuf_add_char(&w->text, ',');
        if (key) {
                add_quoted(&w->text, key);
                strbuf_add_char(&w->text, ':');
        }
        return true;
}

static void end_value(JsonWriter *w) {
        w->need_comma = true;
        if (w->levels.size == 0)
                w->complete = true;
}

static void open_level(JsonWriter *w, const char *key, char c) {
        if (!begin_value(w, key))
                return;
        strbuf_add_char(&w->text, c);
        strbuf_add_char(&w->levels, c);
        w->need_comma = false;
}

static void close_level(JsonWriter *w, char open, char c) {
        assert(w);
        if (writer_failed(w))
                return;
        assert(writer_level(w) == open);
        strbuf_truncate(&w->levels, w->levels.size - 1);
        strbuf_add_char(&w->text, c);
        end_value(w);
}

void json_open_object(JsonWriter *w, const char *key) {
        open_level(w, key, '{');
}

void json_close_object(JsonWriter *w) {
        close_level(w, '{', '}');
}

void json_open_array(JsonWriter *w, const char *key) {
        open_level(w, key, '[');
}

void json_close_array(JsonWriter *w) {
        close_level(w, '[', ']');
}

void json_add_string(JsonWriter *w, const char *key, const char *value) {
        if (!value || !begin_value(w, key))
                return;
        add_quoted(&w->text, value);
        end_value(w);
}

void json_addf(JsonWriter *w, const char *key, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf value = { 0 };
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&value, fmt, ap);
        va_end(ap);
        if (value.failed)
                w->text.failed = true;
        json_add_string(w, key, strbuf_str(&value));
}

static void add_plain(JsonWriter *w, const char *key, const char *text) {
        if (!begin_value(w, key))
                return;
        strbuf_add(&w->text, text);
        end_value(w);
}

void json_add_int64(JsonWriter *w, const char *key, int64_t value) {
        char text[sizeof("-9223372036854775808")];

        (void) snprintf(text, sizeof(text), "%" PRId64, value);
        add_plain(w, key, text);
}

void json_add_bool(JsonWriter *w, const char *key, bool value) {
        add_plain(w, key, value ? "true" : "false");
}

void json_add_time(JsonWriter *w, const char *key, usec_t wall_usec) {
        char text[RFC3339_MAX];

        if (wall_usec == 0 || wall_usec == USEC_INFINITY)
                return;
        rfc3339_format(wall_usec, text);
        json_add_string(w, key, text);
}

void json_add_null(JsonWriter *w, const char *key) {
        add_plain(w, key, "null");
}

void json_add_raw(JsonWriter *w, const char *key, const char *json) {
        if (json)
                add_plain(w, key, json);
}

/* The shortest text that reads back to the same double. */
static void add_double(JsonWriter *w, const char *key, double d) {
        char text[32];

        for (int digits = 15; digits <= 17; digits++) {
                (void) snprintf(text, sizeof(text), "%.*g", digits, d);
                if (strtod(text, NULL) == d)
                        break;
        }
        add_plain(w, key, text);
}

static void add_number(JsonWriter *w, const char *key, const Json *v) {
        int64_t i;
        double d;

        if (json_int64(v, &i) >= 0)
                json_add_int64(w, key, i);
        else if (json_double(v, &d) >= 0)
                add_double(w, key, d);
}

void json_add_value(JsonWriter *w, const char *key, const Json *v) {
        bool is_object = json_is_object(v), flag;

        if (!v)
                return;
        if (is_object || json_is_array(v)) {
                open_level(w, key, is_object ? '{' : '[');
                JSON_FOREACH (child, v)
                        json_add_value(w, json_key(child), child);
                close_level(w, is_object ? '{' : '[', is_object ? '}' : ']');
        } else if (json_is_string(v))
                json_add_string(w, key, json_string_or_null(v));
        else if (json_is_number(v))
                add_number(w, key, v);
        else if (json_bool(v, &flag) >= 0)
                json_add_bool(w, key, flag);
        else
                json_add_null(w, key);
}

size_t json_writer_size(const JsonWriter *w) {
        return w->text.size;
}

char *json_writer_steal(JsonWriter *w, size_t *ret_size) {
        size_t size;
        bool failed;
        char *text;

        assert(w);
        failed = writer_failed(w);
        assert(failed || w->complete);

        size = w->text.size;
        text = strbuf_steal(&w->text);
        if (failed)
                text = mfree(text);
        strbuf_done(&w->levels);
        *w = (JsonWriter){ 0 };
        if (text && ret_size)
                *ret_size = size;
        return text;
}

char *json_format(const Json *v) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        if (v)
                json_add_value(w, NULL, v);
        else
                json_add_null(w, NULL);
        return json_writer_steal(w, NULL);
}
