/* SPDX-License-Identifier: Apache-2.0 */
#include "json-internal.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-util.h"
#include "macro.h"

/*
 * The strict half of the reader: one pass over the bytes, no allocation (but for the spans of a split list,
 * or of what is left out), nothing decoded. What passes here is RFC 8259 and within the limits of json.h, so
 * that cJSON, which is lenient nearly everywhere, has no room left to be lenient in, and so that a failure
 * of cJSON after it can only mean a lack of memory. What it counts is what json-tree.c needs.
 *
 * Recursive descent; JSON_MAX_DEPTH bounds the stack.
 */

static int scan_value(JsonScan *s);

static int scan_fail(JsonScan *s, const unsigned char *where, const char *message) {
        s->error.offset = (size_t) (where - (const unsigned char *) s->data);
        s->error.message = message;
        return -EBADMSG;
}

static bool is_digit(const JsonScan *s) {
        return s->p < s->end && *s->p >= '0' && *s->p <= '9';
}

static bool is_char(const JsonScan *s, char c) {
        return s->p < s->end && *s->p == (unsigned char) c;
}

/* RFC 8259 section 2: these four and no others. */
static void skip_space(JsonScan *s) {
        while (s->p < s->end && *s->p <= ' ' &&
               (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
                s->p++;
}

static bool is_continuation(unsigned char c) {
        return (c & 0xc0) == 0x80;
}

size_t json_utf8_size(const unsigned char *p, size_t size) {
        if (size == 0)
                return 0;
        if (p[0] < 0x80)
                return 1;
        if (p[0] >= 0xc2 && p[0] <= 0xdf)
                return size >= 2 && is_continuation(p[1]) ? 2 : 0;
        if ((p[0] & 0xf0) == 0xe0) {
                if (size < 3 || !is_continuation(p[1]) || !is_continuation(p[2]))
                        return 0;
                if (p[0] == 0xe0 && p[1] < 0xa0) /* overlong */
                        return 0;
                if (p[0] == 0xed && p[1] > 0x9f) /* surrogate */
                        return 0;
                return 3;
        }
        if (p[0] >= 0xf0 && p[0] <= 0xf4) {
                if (size < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3]))
                        return 0;
                if (p[0] == 0xf0 && p[1] < 0x90) /* overlong */
                        return 0;
                if (p[0] == 0xf4 && p[1] > 0x8f) /* beyond U+10FFFF */
                        return 0;
                return 4;
        }
        return 0;
}

static int hex_value(unsigned char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -EINVAL;
}

/* The number behind "\u" at p, or -EINVAL. */
static int scan_hex4(const unsigned char *p, const unsigned char *end) {
        int value = 0;

        if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
                return -EINVAL;
        for (size_t i = 2; i < 6; i++) {
                int digit = hex_value(p[i]);

                if (digit < 0)
                        return digit;
                value = value * 16 + digit;
        }
        return value;
}

/* p: the backslash. Leaves s->p behind the escape, both halves of a surrogate pair included. */
static int scan_escape(JsonScan *s, const unsigned char *p) {
        int unit, low;

        if (s->end - p < 2)
                return scan_fail(s, p, "unterminated string");
        if (p[1] != 'u') {
                if (!strchr("\"\\/bfnrt", p[1]) || p[1] == 0)
                        return scan_fail(s, p, "invalid escape");
                s->p = p + 2;
                return 0;
        }

        unit = scan_hex4(p, s->end);
        if (unit < 0)
                return scan_fail(s, p, "invalid escape");
        s->has_nul |= unit == 0;
        if (unit >= 0xdc00 && unit <= 0xdfff)
                return scan_fail(s, p, "lone surrogate");
        s->p = p + 6;
        if (unit < 0xd800 || unit > 0xdbff)
                return 0;

        low = scan_hex4(p + 6, s->end);
        if (low < 0xdc00 || low > 0xdfff)
                return scan_fail(s, p, "lone surrogate");
        s->p = p + 12;
        return 0;
}

static bool is_plain(unsigned char c) {
        return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static const unsigned char *skip_plain(const unsigned char *p, const unsigned char *end) {
        while (end - p >= 8) {
                unsigned n = json_plain_bytes(p);

                p += n;
                if (n < 8)
                        return p;
        }
        while (p < end && is_plain(*p))
                p++;
        return p;
}

static int scan_string(JsonScan *s) {
        const unsigned char *begin = s->p, *p = begin + 1;

        for (;;) {
                size_t n;
                int r;

                p = skip_plain(p, s->end);
                if (p == s->end)
                        return scan_fail(s, s->p, "unterminated string");
                if (*p == '"') {
                        s->p = p + 1;
                        s->count.text_bytes += (size_t) (p - begin); /* a NUL for the opening quote */
                        return 0;
                }
                if (*p == '\\') {
                        r = scan_escape(s, p);
                        if (r < 0)
                                return r;
                        p = s->p;
                        continue;
                }
                if (*p < 0x20)
                        return scan_fail(s, p, "control character in a string");

                n = json_utf8_size(p, (size_t) (s->end - p));
                if (n == 0)
                        return scan_fail(s, p, "invalid UTF-8");
                p += n;
        }
}

/* Nothing in the tree calls setlocale(), so strtod() knows the point for what it is, here and inside cJSON.
 */
double json_number(const unsigned char *begin, size_t size) {
        char copy[JSON_NUMBER_MAX_BYTES + 1];

        assert(size <= JSON_NUMBER_MAX_BYTES);
        memcpy(copy, begin, size);
        copy[size] = 0;
        return strtod(copy, NULL);
}

static bool skip_digits(JsonScan *s) {
        if (!is_digit(s))
                return false;
        while (is_digit(s))
                s->p++;
        return true;
}

static int scan_number(JsonScan *s) {
        const unsigned char *begin = s->p;
        bool exponent = false;

        if (is_char(s, '-'))
                s->p++;
        if (is_char(s, '0'))
                s->p++;
        else if (!skip_digits(s))
                return scan_fail(s, begin, "invalid number");
        if (is_char(s, '.')) {
                s->p++;
                if (!skip_digits(s))
                        return scan_fail(s, begin, "invalid number");
        }
        if (is_char(s, 'e') || is_char(s, 'E')) {
                exponent = true;
                s->p++;
                if (is_char(s, '+') || is_char(s, '-'))
                        s->p++;
                if (!skip_digits(s))
                        return scan_fail(s, begin, "invalid number");
        }

        if ((size_t) (s->p - begin) > JSON_NUMBER_MAX_BYTES)
                return scan_fail(s, begin, "number too long");
        /* Only a number with an exponent can: without one JSON_NUMBER_MAX_BYTES digits are not enough. */
        if (exponent && isinf(json_number(begin, (size_t) (s->p - begin))))
                return scan_fail(s, begin, "number out of range");
        return 0;
}

static int scan_literal(JsonScan *s, const char *literal) {
        size_t n = strlen(literal);

        if ((size_t) (s->end - s->p) < n || memcmp(s->p, literal, n) != 0)
                return scan_fail(s, s->p, "invalid literal");
        s->p += n;
        return 0;
}

/* Whether the key whose bytes lie between its quotes decodes to "items"; it may be written with escapes. */
static bool key_is_items(const unsigned char *p, const unsigned char *end) {
        for (const char *c = "items"; *c; c++) {
                int unit;

                if (p < end && *p == (unsigned char) *c) {
                        p++;
                        continue;
                }
                unit = scan_hex4(p, end);
                if (unit != *c)
                        return false;
                p += 6;
        }
        return p == end;
}

static int add_item(JsonScan *s, const unsigned char *begin) {
        int r;

        r = GREEDY_REALLOC(s->items, s->items_allocated, s->n_items + 1);
        if (r < 0)
                return r;
        s->items[s->n_items++] = (JsonSpan){
                .offset = (size_t) (begin - (const unsigned char *) s->data),
                .size = (size_t) (s->p - begin),
        };
        return 0;
}

static int scan_array(JsonScan *s, bool is_items) {
        int r;

        s->p++;
        skip_space(s);
        if (is_char(s, ']')) {
                s->p++;
                return 0;
        }
        for (;;) {
                const unsigned char *begin;

                skip_space(s);
                begin = s->p;
                r = scan_value(s);
                if (r < 0)
                        return r;
                if (is_items) {
                        r = add_item(s, begin);
                        if (r < 0)
                                return r;
                }
                skip_space(s);
                if (is_char(s, ']')) {
                        s->p++;
                        return 0;
                }
                if (!is_char(s, ','))
                        return scan_fail(s, s->p, "expected , or ]");
                s->p++;
        }
}

/* The value of "items" in the outermost object of a list that is being split. */
static int scan_items(JsonScan *s) {
        const unsigned char *begin = s->p;
        int r;

        if (s->has_items)
                return scan_fail(s, begin, "duplicate key");
        s->has_items = true;
        s->list.offset = (size_t) (begin - (const unsigned char *) s->data);

        if (is_char(s, 'n')) { /* how Go writes an empty list that was never made */
                r = scan_literal(s, "null");
        } else if (is_char(s, '[')) {
                s->depth++;
                r = scan_array(s, true);
                s->depth--;
        } else
                return scan_fail(s, begin, "items is not an array");

        s->list.size = (size_t) (s->p - begin);
        return r;
}

static bool span_is(const JsonScan *s, const JsonSpan *key, const char *name) {
        size_t n = strlen(name);

        return key->size == n + 2 && memcmp(s->data + key->offset + 1, name, n) == 0;
}

/* Keeps the keys that lead to where we are, as far as somebody may ask for them. */
static void enter_key(JsonScan *s, const JsonSpan *key) {
        if (s->depth > JSON_KEYS_AROUND)
                return;
        s->keys[s->depth - 1] = *key;
        for (unsigned d = s->depth; d < JSON_KEYS_AROUND; d++)
                s->keys[d] = (JsonSpan){ 0 };
}

/* A key that is written with escapes is not recognised: its value is read then, which does no harm. */
static bool is_omitted(const JsonScan *s, const JsonSpan *key) {
        const JsonOmits *o = s->omits;
        const JsonSpan *section = o->root ? &s->keys[1] : &s->keys[0];

        if (s->depth != (o->root ? 3 : 2) || (o->root && !span_is(s, &s->keys[0], o->root)))
                return false;
        for (size_t i = 0; i < o->n_list; i++)
                if (span_is(s, key, o->list[i].key) && span_is(s, section, o->list[i].section))
                        return true;
        return false;
}

/* The value of a member, which may be one to leave out. */
static int scan_member_value(JsonScan *s, const JsonSpan *key) {
        const unsigned char *begin = s->p;
        bool omitted = (is_char(s, '{') || is_char(s, '[')) && is_omitted(s, key);
        JsonCount before = s->count;
        int r;

        enter_key(s, key);
        r = scan_value(s);
        if (r < 0 || !omitted)
                return r;
        s->count = before;
        s->count.values++; /* the null in its place */
        return add_item(s, begin);
}

static int scan_member(JsonScan *s) {
        const unsigned char *key = s->p;
        JsonSpan span = { .offset = (size_t) (key - (const unsigned char *) s->data) };
        bool is_items;
        int r;

        if (!is_char(s, '"'))
                return scan_fail(s, s->p, "expected a key");
        if (++s->n_keys == s->key_wanted)
                s->key_offset = span.offset;
        r = scan_string(s);
        if (r < 0)
                return r;
        span.size = (size_t) (s->p - key);
        is_items = s->split && s->depth == 1 && key_is_items(key + 1, s->p - 1);

        skip_space(s);
        if (!is_char(s, ':'))
                return scan_fail(s, s->p, "expected :");
        s->p++;
        skip_space(s);
        if (s->omits)
                return scan_member_value(s, &span);
        return is_items ? scan_items(s) : scan_value(s);
}

static int scan_object(JsonScan *s) {
        int r;

        s->p++;
        skip_space(s);
        if (is_char(s, '}')) {
                s->p++;
                return 0;
        }
        for (;;) {
                skip_space(s);
                r = scan_member(s);
                if (r < 0)
                        return r;
                skip_space(s);
                if (is_char(s, '}')) {
                        s->p++;
                        return 0;
                }
                if (!is_char(s, ','))
                        return scan_fail(s, s->p, "expected , or }");
                s->p++;
        }
}

static int scan_value(JsonScan *s) {
        int r;

        if (s->p == s->end)
                return scan_fail(s, s->p, "unexpected end");
        s->count.values++;
        switch (*s->p) {
        case '{':
        case '[':
                if (s->depth == JSON_MAX_DEPTH)
                        return scan_fail(s, s->p, "nested too deeply");
                s->depth++;
                r = *s->p == '{' ? scan_object(s) : scan_array(s, false);
                s->depth--;
                return r;
        case '"':
                return scan_string(s);
        case 't':
                return scan_literal(s, "true");
        case 'f':
                return scan_literal(s, "false");
        case 'n':
                return scan_literal(s, "null");
        default:
                if (*s->p == '-' || is_digit(s))
                        return scan_number(s);
                return scan_fail(s, s->p, "expected a value");
        }
}

int json_scan(JsonScan *s) {
        int r;

        assert(s);
        assert(s->data || s->size == 0);

        s->p = (const unsigned char *) (s->data ? s->data : "");
        s->end = s->p + s->size;
        if (!s->data)
                s->data = (const char *) s->p;

        skip_space(s);
        if (s->split && !is_char(s, '{'))
                return scan_fail(s, s->p, "expected an object");
        r = scan_value(s);
        if (r < 0)
                return r;
        skip_space(s);
        if (s->p != s->end)
                return scan_fail(s, s->p, "something after the value");
        return 0;
}

void json_scan_done(JsonScan *s) {
        s->items = mfree(s->items);
        s->n_items = s->items_allocated = 0;
}
