/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * fake/: one cluster in one process, for tests: an API server that answers as kube-apiserver 1.34 does in
 * everything that vesper touches, and just enough controllers. It shares no logic with vesper (only base/
 * and loop/, and the list of protobuf fields), so that a mistake of ours is not made twice. Two faces, one handler: in-process (http-inproc,
 * virtual time) and real servers (http-server). tests/contract runs the same cases against it and against
 * the real thing.
 *
 * This header: cJSON with paths. The fake is test code: memory that runs out ends the test (MUST).
 */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "alloc-util.h"
#include "string-util.h"

#define MUST(p) \
        ({ \
                __typeof__(p) _must_p = (p); \
                assert(_must_p && "out of memory"); \
                _must_p; \
        })

static inline void cjson_freep(cJSON **p) {
        cJSON_Delete(*p);
        *p = NULL;
}
#define _cleanup_cjson_ _cleanup_(cjson_freep)

/* fj_get(pod, "spec", "nodeName", NULL): NULL if anything on the way is absent or no object. */
const cJSON *fj_get(const cJSON *o, ...) __attribute__((sentinel));
/* The string at that path, or NULL. */
const char *fj_string(const cJSON *o, ...) __attribute__((sentinel));
/* The number at that path, or `otherwise`. */
int64_t fj_int(const cJSON *o, int64_t otherwise, ...) __attribute__((sentinel));
bool fj_true(const cJSON *o, ...) __attribute__((sentinel));

/* One member. */
static inline cJSON *fj_member(const cJSON *o, const char *key) {
        return cJSON_GetObjectItemCaseSensitive(o, key);
}
/* The object under that key, made if there is none. */
cJSON *fj_object(cJSON *o, const char *key);
cJSON *fj_array(cJSON *o, const char *key);
/* Puts or replaces; the value is taken. Returns it. */
cJSON *fj_set(cJSON *o, const char *key, cJSON *value);
void fj_set_string(cJSON *o, const char *key, const char *value);
void fj_set_int(cJSON *o, const char *key, int64_t value);
void fj_set_bool(cJSON *o, const char *key, bool value);
/* `value` NULL: the member goes; else a copy of it is put. */
void fj_set_copy(cJSON *o, const char *key, const cJSON *value);
void fj_remove(cJSON *o, const char *key);
/* Deep, without order of keys; NULL equals NULL. */
bool fj_equal(const cJSON *a, const cJSON *b);
cJSON *fj_copy(const cJSON *o);
char *fj_print(const cJSON *o);
/* From a format: fj_parse("{'a': %d}", 1); every ' becomes ". For tests and makers of objects. */
cJSON *fj_parse(const char *fmt, ...) _printf_(1, 2);

/* The string in an array of strings. */
bool fj_array_has(const cJSON *array, const char *s);
/* The element whose member `key` is the string `value`, or NULL. */
cJSON *fj_find(const cJSON *array, const char *key, const char *value);
