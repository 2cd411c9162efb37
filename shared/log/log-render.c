/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>

#include "alloc-util.h"
#include "log-internal.h"
#include "macro.h"

/* Appends a text that may quote what came from outside. No control character (utf8_is_control()) reaches
 * a terminal, no line feed starts a line that looks like one of ours, and nothing is appended that is not
 * UTF-8. */
static void add_line_safe(StrBuf *b, const char *s) {
        size_t size = strlen(s);

        for (size_t i = 0, n; i < size; i += MAX(n, (size_t) 1)) {
                n = utf8_sequence_size(s + i, size - i);
                if (n == 0 || utf8_is_control(s + i, n))
                        strbuf_add_char(b, '?');
                else
                        strbuf_add_n(b, s + i, n);
        }
}

static void add_field_value(StrBuf *b, const char *value, void (*add)(StrBuf *b, const char *s)) {
        _cleanup_free_ char *copy = log_redacted_copy(value);

        if (copy)
                add(b, copy);
        else
                b->failed = true;
}

void log_render_text(const LogRecord *record, StrBuf *b) {
        struct tm tm = { 0 };
        size_t n = 0;

        (void) localtime_r(&record->time.tv_sec, &tm);
        strbuf_addf(b, "%02d:%02d:%02d.%03ld %-7s ", tm.tm_hour, tm.tm_min, tm.tm_sec,
                    record->time.tv_nsec / 1000000, log_level_to_string(record->level));
        add_line_safe(b, record->text);
        for (size_t i = 0; i < record->n_fields; i++)
                if (record->fields[i].value) {
                        strbuf_addf(b, "%s%s=", n++ == 0 ? " (" : " ", record->fields[i].key);
                        add_field_value(b, record->fields[i].value, add_line_safe);
                }
        strbuf_add(b, n > 0 ? ")\n" : "\n");
}

/* Number of bytes that stand for themselves in a string of JSON. */
static size_t plain_size(const char *s, size_t size) {
        size_t i, n;

        for (i = 0; i < size && s[i] != '"' && s[i] != '\\'; i += n) {
                n = utf8_sequence_size(s + i, size - i);
                if (n == 0 || utf8_is_control(s + i, n))
                        break;
        }
        return i;
}

/* json/ lies above this room, so this is all of JSON that is known here. Bytes that are no UTF-8 become
 * U+FFFD. Control characters beyond ASCII are escaped, too: JSON allows them, but a terminal obeys them. */
static void add_json_string(StrBuf *b, const char *s) {
        size_t size = strlen(s), n;

        strbuf_add_char(b, '"');
        for (;;) {
                n = plain_size(s, size);
                strbuf_add_n(b, s, n);
                s += n;
                size -= n;
                if (size == 0)
                        break;
                n = utf8_sequence_size(s, size);
                if (*s == '"' || *s == '\\') {
                        strbuf_add_char(b, '\\');
                        strbuf_add_char(b, *s);
                } else if (*s == '\n')
                        strbuf_add(b, "\\n");
                else if (n == 0)
                        strbuf_add(b, UTF8_REPLACEMENT);
                else
                        strbuf_addf(b, "\\u%04x", utf8_code_point(s, n));
                n = MAX(n, (size_t) 1);
                s += n;
                size -= n;
        }
        strbuf_add_char(b, '"');
}

static void add_json_member(StrBuf *b, const char *key, const char *value) {
        strbuf_add_char(b, ',');
        add_json_string(b, key);
        strbuf_add_char(b, ':');
        add_field_value(b, value, add_json_string);
}

/* "NODE" becomes "node". A name that the line itself has gets an underscore, so that no key stands there
 * twice. */
static void add_json_field(StrBuf *b, const LogField *f) {
        static const char *const taken[] = { "time", "level", "logger", "msg", "message_id" };
        char key[64];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(taken); i++)
                if (strcasecmp(f->key, taken[i]) == 0)
                        key[n++] = '_';
        for (const char *p = f->key; *p && n < sizeof(key) - 1; p++)
                key[n++] = (char) tolower((unsigned char) *p);
        key[n] = 0;
        add_json_member(b, key, f->value);
}

void log_render_json(const LogRecord *record, StrBuf *b) {
        char stamp[sizeof("2026-11-21T05:03:00")] = "";
        struct tm tm = { 0 };

        (void) gmtime_r(&record->time.tv_sec, &tm);
        (void) strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
        strbuf_addf(b, "{\"time\":\"%s.%06ldZ\",\"level\":\"%s\",\"logger\":", stamp,
                    record->time.tv_nsec / 1000, log_level_to_string(record->level));
        add_json_string(b, record->identifier);
        add_json_member(b, "msg", record->text);
        if (record->message_id)
                add_json_member(b, "message_id", record->message_id);
        for (size_t i = 0; i < record->n_fields; i++)
                if (record->fields[i].value)
                        add_json_field(b, record->fields + i);
        strbuf_add(b, "}\n");
}
