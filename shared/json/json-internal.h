/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of json/: the scan that goes before every tree, and UTF-8. */

#include <stdbool.h>
#include <stddef.h>

#include "json.h"

/* cJSON copies a number into 64 bytes and takes what does not fit for the next token. */
#define JSON_NUMBER_MAX_BYTES 63u

typedef struct JsonSpan {
        size_t offset, size;
} JsonSpan;

/* Keys of the objects around the place that is scanned; more are not asked for. */
#define JSON_KEYS_AROUND 2u

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
        JsonSpan list;   /* "[...]" of items, brackets included */
        JsonSpan *items; /* elements, or what is to be left out; freed by json_scan_done() */
        size_t n_items;

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

/* Bytes of the UTF-8 sequence at p (1 to 4), or 0 if there is no valid one within `size` bytes. */
size_t json_utf8_size(const unsigned char *p, size_t size);
