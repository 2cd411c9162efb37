/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>

#include "alloc-util.h"
#include "log-internal.h"
#include "macro.h"

/* A message may quote what came from outside: no control character (C1 of U+0080 to U+009F included)
 * reaches a terminal, and no line feed starts a line that looks like one of ours. */
static void add_line_safe(StrBuf *b, const char *s) {
        for (const unsigned char *p = (const unsigned char *) s; *p; p++) {
                bool c1 = p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f;

                strbuf_add_char(b, *p < 0x20 || *p == 0x7f || c1 ? '?' : (char) *p);
                if (c1)
                        p++;
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

/* Bytes that stand for themselves in a string of JSON. */
static size_t plain_size(const char *s, bool valid) {
        size_t n = 0;

        for (unsigned char c; (c = (unsigned char) s[n]) >= 0x20; n++)
                if (c == '"' || c == '\\' || c == 0x7f || (c >= 0x80 && !valid))
                        break;
        return n;
}

/* json/ lies above this room, so this is all of JSON that is known here. Bytes that are no UTF-8 become
 * U+FFFD. */
static void add_json_string(StrBuf *b, const char *s) {
        bool valid = utf8_is_valid(s, strlen(s));

        strbuf_add_char(b, '"');
        for (; *s; s++) {
                size_t n = plain_size(s, valid);
                unsigned char c;

                strbuf_add_n(b, s, n);
                s += n;
                c = (unsigned char) *s;
                if (c == 0)
                        break;
                if (c == '"' || c == '\\') {
                        strbuf_add_char(b, '\\');
                        strbuf_add_char(b, *s);
                } else if (c == '\n')
                        strbuf_add(b, "\\n");
                else if (c < 0x20 || c == 0x7f)
                        strbuf_addf(b, "\\u%04x", c);
                else
                        strbuf_add(b, UTF8_REPLACEMENT);
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
