/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * json/: cJSON behind a strict reader, and a writer of our own. The only room that includes cJSON.
 *
 * What the reader refuses, before cJSON sees a byte: anything but one RFC 8259 value with white space around it, invalid
 * UTF-8, lone surrogates, nesting deeper than JSON_MAX_DEPTH, more than max_bytes; and, afterwards, duplicate keys in
 * one object (compared decoded, case-sensitively). Numbers are doubles inside: json_int64() answers -ERANGE for a value that
 * a double cannot hold exactly (from 2^53 on: 2^53 + 1 reads as the same double), and any number that overflows to infinity,
 * or that is written with more than 63 bytes, is refused.
 * \u0000, which ends a string of C, is read as U+FFFD: whoever may write an annotation may write that, and no object and no list
 * shall be unreadable for it.
 * Each trap of cJSON 1.7.15 that this closes has a row in test-json.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "macro.h"
#include "time-util.h"

#define JSON_MAX_DEPTH 100u

typedef struct JsonDoc JsonDoc;
typedef struct Json Json; /* one value inside a document; borrowed from it; NULL stands for "absent" in every call below */

typedef struct JsonError {
        size_t offset;       /* byte where it went wrong */
        const char *message; /* static */
} JsonError;

/* -EBADMSG with *reterr filled (reterr may be NULL), -E2BIG, -ENOMEM. Keeps no reference to `data`. */
int json_parse(const char *data, size_t size, size_t max_bytes, JsonDoc **ret, JsonError *reterr);

/* What a reader does not want to know: the member `key` of the object that is the member `section`. */
typedef struct JsonOmit {
        const char *section, *key; /* ASCII, without anything that JSON escapes */
} JsonOmit;

typedef struct JsonOmits {
        const char *root; /* the sections are members of this member of the outermost object; NULL: of that itself */
        const JsonOmit *list;
        size_t n_list;
} JsonOmits;

/* 0, or why json_parse() would refuse it: -EBADMSG, -E2BIG; but duplicate keys pass, and are the reader's to refuse. */
int json_check(const char *data, size_t size, size_t max_bytes, JsonError *reterr);
/* json_parse(), but objects and arrays in such places are null in the document and cost next to nothing. They are checked like
 * everything else, but for duplicate keys inside them. omits NULL: none. For what comes by the thousand: the document is made
 * by a decoder of our own (json-tree.c) in one piece of memory, and is the same as cJSON's (fuzz-json.c). */
int json_parse_without(const char *data, size_t size, size_t max_bytes, const JsonOmits *omits, JsonDoc **ret,
                       JsonError *reterr);
JsonDoc *json_doc_free(JsonDoc *d);
DEFINE_FREEP(JsonDoc, json_doc_free);
const Json *json_root(const JsonDoc *d);

/* Splits {"...": ..., "items": [...], ...} without building the whole tree: calls on_item for each element's bytes, in
 * order, after the text as a whole was checked as json_parse() does (duplicate keys inside items are found when the item is
 * parsed). Everything but the items comes back as a document in *ret_rest (with "items": []). on_item returning < 0 stops.
 * A text that is no object, or whose items are neither an array nor null, is -EBADMSG; one without items has none. */
typedef int (*json_item_t)(const char *item, size_t size, void *userdata);
int json_split_items(const char *data, size_t size, size_t max_bytes, json_item_t on_item, void *userdata, JsonDoc **ret_rest,
                     JsonError *reterr);

/* Case-sensitive; NULL if absent, if `o` is NULL, or if it is no object. An explicit null is a value (json_is_null()). */
const Json *json_get(const Json *o, const char *key);
/* json_get() through several objects: json_path(pod, "spec", "nodeName", NULL). */
const Json *json_path(const Json *o, ...) __attribute__((sentinel));

bool json_is_null(const Json *v);
bool json_is_object(const Json *v);
bool json_is_array(const Json *v);
bool json_is_string(const Json *v);
bool json_is_number(const Json *v);

/* Each: 0; -ENODATA if absent or null; -EINVAL for another type; -ERANGE. */
int json_string(const Json *v, const char **ret); /* borrowed */
int json_int64(const Json *v, int64_t *ret);      /* an integer; 1.0 counts, 1.5 does not */
int json_double(const Json *v, double *ret);
int json_bool(const Json *v, bool *ret);
/* The string, or NULL if absent, null or another type. */
const char *json_string_or_null(const Json *v);

size_t json_size(const Json *v);          /* of an array or object; 0 for anything else */
#define JSON_FOREACH(i, v) for (const Json *i = json_first(v); i; i = json_next(i))
const Json *json_first(const Json *v);    /* first child of an array or object, or NULL */
const Json *json_next(const Json *child);
const char *json_key(const Json *child);  /* of an object's child */
/* Compact text of a value, for tests and messages. NULL on ENOMEM. */
char *json_format(const Json *v);

/* -- a table per struct: name, type, place ------------------------------------------------------------------------- */

typedef struct JsonField {
        const char *name;
        /* Parses `v` (never NULL) into target + offset. -EINVAL, -ERANGE, -ENOMEM. */
        int (*parse)(const Json *v, void *target);
        size_t offset;
        bool mandatory;
} JsonField;

/* Unknown fields are passed over, null counts as absent. -EINVAL for a value of the wrong type, -ENODATA for a mandatory
 * one that is missing: *reterr_field is its name ("." if `o` itself is no object). On failure `target` is half filled. */
int json_dispatch(const Json *o, const JsonField *table, size_t n_table, void *target, const char **reterr_field);
int json_parse_strdup(const Json *v, void *target);   /* char * (the old one is freed) */
int json_parse_int64(const Json *v, void *target);    /* int64_t */
int json_parse_bool(const Json *v, void *target);     /* bool */
int json_parse_rfc3339(const Json *v, void *target);  /* usec_t */

/* -- writer: never fails in between, json_writer_steal() reports ----------------------------------------------------- */

typedef struct JsonWriter JsonWriter;

int json_writer_new(JsonWriter **ret);
JsonWriter *json_writer_free(JsonWriter *w);
DEFINE_FREEP(JsonWriter, json_writer_free);

/* `key` is NULL inside an array and for the outermost value. Misuse (a key in an array, unbalanced ends) is asserted.
 * Strings: invalid UTF-8 is replaced by U+FFFD. */
void json_open_object(JsonWriter *w, const char *key);
void json_close_object(JsonWriter *w);
void json_open_array(JsonWriter *w, const char *key);
void json_close_array(JsonWriter *w);
void json_add_string(JsonWriter *w, const char *key, const char *value); /* NULL value: left out */
void json_addf(JsonWriter *w, const char *key, const char *fmt, ...) _printf_(3, 4);
void json_add_int64(JsonWriter *w, const char *key, int64_t value);
void json_add_bool(JsonWriter *w, const char *key, bool value);
/* Wall clock, as metav1.Time; 0 and USEC_INFINITY: left out. */
void json_add_time(JsonWriter *w, const char *key, usec_t wall_usec);
void json_add_null(JsonWriter *w, const char *key);
void json_add_raw(JsonWriter *w, const char *key, const char *json); /* must be valid JSON: of our own making */
void json_add_value(JsonWriter *w, const char *key, const Json *v);  /* a copy of a parsed value; integers as they were up
                                                                       * to 2^53 - 1 */
size_t json_writer_size(const JsonWriter *w); /* bytes written so far */
/* The text, owned by the caller; the writer is then empty and usable again. NULL: out of memory. */
char *json_writer_steal(JsonWriter *w, size_t *ret_size);
