/* SPDX-License-Identifier: Apache-2.0 */
#include "markup-text.h"

#include <stdarg.h>

/* Returns the bytes of the character, by its first byte. A byte that begins no valid UTF-8 is a character by itself. */
static size_t character_size(const char *s) {
        unsigned char c = (unsigned char) *s;
        size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;

        return strnlen(s, n) == n && utf8_is_valid(s, n) ? n : 1;
}

/* U+FFFE and U+FFFF. */
static bool is_no_character(const char *s, size_t n) {
        return n == 3 && s[0] == '\xef' && s[1] == '\xbf' && (s[2] == '\xbe' || s[2] == '\xbf');
}

static void add_character(StrBuf *b, const char *s, size_t n) {
        if ((n == 1 && (unsigned char) *s >= 0x80) || utf8_is_control(s, n) || is_no_character(s, n))
                strbuf_add_char(b, '?');
        else if (*s == '<')
                strbuf_add(b, "&lt;");
        else if (*s == '>')
                strbuf_add(b, "&gt;");
        else if (*s == '&')
                strbuf_add(b, "&amp;");
        else if (*s == '"')
                strbuf_add(b, "&quot;");
        else if (*s == '\'')
                strbuf_add(b, "&#39;");
        else
                strbuf_add_n(b, s, n);
}

void markup_add_text(StrBuf *b, const char *s, size_t max_columns) {
        size_t columns = 0;

        for (size_t n; *s && columns < max_columns; s += n, columns++) {
                n = character_size(s);
                add_character(b, s, n);
        }
        if (*s)
                strbuf_add(b, "\xe2\x80\xa6");
}

void markup_add_textf(StrBuf *b, size_t max_columns, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf text = {};
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&text, fmt, ap);
        va_end(ap);
        markup_add_text(b, strbuf_str(&text), max_columns);
        b->failed = b->failed || text.failed;
}
