/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of json/: the scan that goes before every tree, the tree in one piece, and UTF-8. */

#include <stdalign.h>
#include <stdbool.h>
#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "json.h"

/* cJSON copies a number into 64 bytes and takes what does not fit for the next token. */
#define JSON_NUMBER_MAX_BYTES 63u

typedef struct JsonSpan {
        size_t offset, size;
} JsonSpan;

/* Keys of the objects around the place that is scanned; more are not asked for. */
#define JSON_KEYS_AROUND 2u

/* What a tree of the text needs, without what is to be left out. */
typedef struct JsonCount {
        size_t values;
        size_t text_bytes; /* enough for all strings and keys, decoded, with their NULs */
} JsonCount;

typedef struct JsonScan {
        /* what to do; set by the caller, the rest zeroed */
        const char *data;
        size_t size;
        bool split;        /* wanted: the elements of "items" of the outermost object, which must be one */
        const JsonOmits *omits; /* wanted: the places of such values, in `items`; not together with split */
        size_t key_wanted; /* 1 and up: the place of that key in the text, 0: none */

        /* results */
        JsonError error;
        size_t key_offset; /* opening quote of key_wanted */
        bool has_items;
        bool has_nul; /* written as \u0000 somewhere */
        JsonSpan list;   /* "[...]" of items, brackets included */
        JsonSpan *items; /* elements, or what is to be left out; freed by json_scan_done() */
        size_t n_items;
        JsonCount count;

        /* how far it is */
        const unsigned char *p, *end;
        unsigned depth;
        JsonSpan keys[JSON_KEYS_AROUND]; /* by depth, quotes included; size 0: none, or an array lies between */
        size_t n_keys;
        size_t items_allocated;
} JsonScan;

/* One RFC 8259 value with white space around it: 0; -EBADMSG with error filled; -ENOMEM (only when
 * splitting or leaving out). */
int json_scan(JsonScan *s);
void json_scan_done(JsonScan *s);
/* The value of a number as it is written; at most JSON_NUMBER_MAX_BYTES. */
double json_number(const unsigned char *begin, size_t size);

/* What a tree of our own stands in, instead of cJSON's many: each begins with the place of the next. Nodes, which have
 * a double, come right behind: where a pointer has 4 bytes, too. */
typedef struct JsonPiece {
        alignas(max_align_t) struct JsonPiece *next;
} JsonPiece;

void json_pieces_free(JsonPiece *first);
/* The tree that cJSON would make of a text which json_scan() has passed (not split), with null for what is to be
 * left out, in one piece. -ENOMEM. */
int json_tree_new(const JsonScan *s, JsonPiece **ret_piece, cJSON **ret_root);
/* A document of a tree in pieces, which owns them then. -ENOMEM. */
int json_doc_new_of_pieces(cJSON *root, JsonPiece *first, JsonDoc **ret);
/* A member whose key the object has twice, or NULL in *ret. -ENOMEM. */
int json_find_duplicate_member(const cJSON *object, const cJSON **ret);

/* How many of the eight bytes at p need no look one by one before the first that does: ASCII from 0x20 up, no
 * quote, no backslash. The usual bit trick: a byte of x - 0x01.. has its high bit set by a borrow only if the byte
 * of x was zero, or the one below it was, so that the lowest mark is true. */
static inline unsigned json_plain_bytes(const unsigned char *p) {
        const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
        uint64_t w, quote, backslash, marks;

        memcpy(&w, p, sizeof(w));
        w = le64toh(w);
        quote = w ^ (ones * '"');
        backslash = w ^ (ones * '\\');
        marks = (w | (w - ones * 0x20) | (quote - ones) | (backslash - ones)) & highs;
        return marks == 0 ? 8 : (unsigned) __builtin_ctzll(marks) / 8;
}

/* Bytes of the UTF-8 sequence at p (1 to 4), or 0 if there is no valid one within `size` bytes. */
size_t json_utf8_size(const unsigned char *p, size_t size);
