/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "json-internal.h"

/*
 * A tree of cJSON's own items, made in one piece: pods and nodes come by the thousand, and cJSON asks malloc
 * for each value, each key and each string, and frees them one by one. The scan has refused what is not JSON
 * and bounded the depth, so that nothing here can fail; and it has counted, so that one allocation is
 * enough. That the two agree is asserted at each step; that the tree is cJSON's is what fuzz-json.c
 * compares.
 */

/* More digits may not fit a double. */
#define EXACT_DIGITS 15

typedef struct Build {
        const unsigned char *data, *p, *end;
        const JsonSpan *left_out; /* in the order of the text */
        size_t n_left_out;
        cJSON *value, *values_end; /* the next one to fill */
        char *text, *text_end;     /* the same for strings */
} Build;

static unsigned char look(const Build *b) {
        assert(b->p < b->end);
        return *b->p;
}

static void skip_space(Build *b) {
        while (look(b) <= ' ') /* the scan has let no other such byte through */
                b->p++;
}

/* -- strings -------------------------------------------------------------------------------------------- */

static unsigned hex4(const unsigned char *p) {
        unsigned value = 0;

        for (size_t i = 0; i < 4; i++)
                value = value * 16 + (p[i] <= '9' ? p[i] - (unsigned) '0' : (p[i] | 0x20u) - 'a' + 10u);
        return value;
}

static char *put_utf8(char *to, unsigned c) {
        if (c < 0x80) {
                *to++ = (char) c;
                return to;
        }
        if (c < 0x800)
                *to++ = (char) (0xc0 | c >> 6);
        else {
                if (c < 0x10000)
                        *to++ = (char) (0xe0 | c >> 12);
                else {
                        *to++ = (char) (0xf0 | c >> 18);
                        *to++ = (char) (0x80 | (c >> 12 & 0x3f));
                }
                *to++ = (char) (0x80 | (c >> 6 & 0x3f));
        }
        *to++ = (char) (0x80 | (c & 0x3f));
        return to;
}

/* p: the backslash. Returns what follows the escape, both halves of a surrogate pair included. */
static const unsigned char *decode_escape(const unsigned char *p, char **to) {
        static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
        unsigned c, low;

        if (p[1] != 'u') {
                *(*to)++ = means[strchr(letters, p[1]) - letters];
                return p + 2;
        }
        c = hex4(p + 2);
        p += 6;
        if (c == 0)
                c = 0xfffd;
        if (c >= 0xd800 && c <= 0xdbff) {
                low = hex4(p + 2);
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
                p += 6;
        }
        *to = put_utf8(*to, c);
        return p;
}

/* Copies up to the quote or the backslash; eight bytes at a time as long as both sides have them. */
static const unsigned char *copy_plain(Build *b, const unsigned char *p, char **to) {
        while (b->end - p >= 8 && b->text_end - *to >= 8) {
                unsigned n = json_plain_bytes(p);

                memcpy(*to, p, 8);
                p += n;
                *to += n;
                if (n < 8)
                        break;
        }
        for (; p < b->end && *p != '"' && *p != '\\' && *to < b->text_end; p++)
                *(*to)++ = (char) *p;
        assert(p < b->end && *to < b->text_end); /* its NUL fits, too */
        return p;
}

static char *build_string(Build *b) {
        char *begin = b->text, *to = begin;
        const unsigned char *p;

        for (p = copy_plain(b, b->p + 1, &to); *p != '"'; p = copy_plain(b, p, &to))
                p = decode_escape(p, &to); /* shorter than it is written */
        *to++ = 0;
        b->text = to;
        b->p = p + 1;
        return begin;
}

/* -- values --------------------------------------------------------------------------------------------- */

static bool is_of_number(unsigned char c) {
        return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

/* As cJSON has it: saturated. */
static int to_int(double d) {
        return d >= INT_MAX ? INT_MAX : d <= (double) INT_MIN ? INT_MIN : (int) d;
}

static double read_number(Build *b) {
        const unsigned char *begin = b->p, *digits = *begin == '-' ? begin + 1 : begin, *p = digits;
        int64_t n = 0;

        for (; p < b->end && *p >= '0' && *p <= '9' && p - digits < EXACT_DIGITS; p++)
                n = 10 * n + (*p - '0');
        b->p = p;
        /* -0 has a sign, which only a double keeps */
        if ((p == b->end || !is_of_number(*p)) && (n > 0 || begin == digits))
                return (double) (begin == digits ? n : -n);
        while (b->p < b->end && is_of_number(*b->p))
                b->p++;
        return json_number(begin, (size_t) (b->p - begin));
}

static void build_number(Build *b, cJSON *v) {
        v->type = cJSON_Number;
        v->valuedouble = read_number(b);
        v->valueint = to_int(v->valuedouble);
}

static void build_literal(Build *b, cJSON *v, int type, size_t size) {
        v->type = type;
        b->p += size;
}

static cJSON *build_value(Build *b, char *key);

static void build_children(Build *b, cJSON *v, unsigned char close) {
        cJSON *last = NULL;

        for (b->p++, skip_space(b); look(b) != close; skip_space(b)) {
                char *key = NULL;
                cJSON *child;

                if (*b->p == ',') {
                        b->p++;
                        skip_space(b);
                }
                if (close == '}') {
                        key = build_string(b);
                        skip_space(b);
                        b->p++; /* the colon */
                        skip_space(b);
                }
                child = build_value(b, key);
                child->prev = last;
                if (last)
                        last->next = child;
                else
                        v->child = child;
                last = child;
        }
        if (last)
                v->child->prev = last; /* as cJSON has it */
        b->p++;
}

static bool is_left_out(const Build *b) {
        return b->n_left_out > 0 && (size_t) (b->p - b->data) == b->left_out->offset;
}

static void skip_left_out(Build *b, cJSON *v) {
        build_literal(b, v, cJSON_NULL, b->left_out->size);
        b->left_out++;
        b->n_left_out--;
}

static cJSON *build_value(Build *b, char *key) {
        cJSON *v = b->value++;

        assert(v < b->values_end);
        *v = (cJSON){ .string = key };
        if (is_left_out(b)) {
                skip_left_out(b, v);
                return v;
        }
        switch (look(b)) {
        case '{':
                v->type = cJSON_Object;
                build_children(b, v, '}');
                break;
        case '[':
                v->type = cJSON_Array;
                build_children(b, v, ']');
                break;
        case '"':
                v->type = cJSON_String;
                v->valuestring = build_string(b);
                break;
        case 't':
                build_literal(b, v, cJSON_True, strlen("true"));
                v->valueint = 1;
                break;
        case 'f':
                build_literal(b, v, cJSON_False, strlen("false"));
                break;
        case 'n':
                build_literal(b, v, cJSON_NULL, strlen("null"));
                break;
        default:
                build_number(b, v);
        }
        return v;
}

int json_tree_new(const JsonScan *s, JsonPiece **ret_piece, cJSON **ret_root) {
        const unsigned char *data = (const unsigned char *) s->data;
        size_t values_bytes;
        JsonPiece *piece;
        cJSON *values;
        Build b;

        assert(!s->split);
        if (__builtin_mul_overflow(s->count.values, sizeof(cJSON), &values_bytes))
                return -ENOMEM;
        piece = malloc(sizeof(JsonPiece) + values_bytes + s->count.text_bytes);
        if (!piece)
                return -ENOMEM;
        piece->next = NULL;
        values = (cJSON *) (piece + 1);

        b = (Build){
                .data = data,
                .p = data,
                .end = data + s->size,
                .left_out = s->items,
                .n_left_out = s->n_items,
                .value = values,
                .values_end = values + s->count.values,
                .text = (char *) (values + s->count.values),
                .text_end = (char *) (values + s->count.values) + s->count.text_bytes,
        };
        skip_space(&b);
        (void) build_value(&b, NULL);
        assert(b.value == b.values_end && b.text <= b.text_end && b.n_left_out == 0);
        *ret_piece = piece;
        *ret_root = values;
        return 0;
}
