/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-json.h"

#include <stdio.h>

static const cJSON *walk(const cJSON *o, va_list ap) {
        const char *key;

        while (o && (key = va_arg(ap, const char *)))
                o = cJSON_IsObject(o) ? fj_member(o, key) : NULL;
        return o;
}

const cJSON *fj_get(const cJSON *o, ...) {
        const cJSON *v;
        va_list ap;

        va_start(ap, o);
        v = walk(o, ap);
        va_end(ap);
        return v;
}

const char *fj_string(const cJSON *o, ...) {
        const cJSON *v;
        va_list ap;

        va_start(ap, o);
        v = walk(o, ap);
        va_end(ap);
        return cJSON_IsString(v) ? v->valuestring : NULL;
}

int64_t fj_int(const cJSON *o, int64_t otherwise, ...) {
        const cJSON *v;
        va_list ap;

        va_start(ap, otherwise);
        v = walk(o, ap);
        va_end(ap);
        return cJSON_IsNumber(v) ? (int64_t) v->valuedouble : otherwise;
}

bool fj_true(const cJSON *o, ...) {
        const cJSON *v;
        va_list ap;

        va_start(ap, o);
        v = walk(o, ap);
        va_end(ap);
        return cJSON_IsTrue(v);
}

cJSON *fj_object(cJSON *o, const char *key) {
        cJSON *v = fj_member(o, key);

        return cJSON_IsObject(v) ? v : fj_set(o, key, MUST(cJSON_CreateObject()));
}

cJSON *fj_array(cJSON *o, const char *key) {
        cJSON *v = fj_member(o, key);

        return cJSON_IsArray(v) ? v : fj_set(o, key, MUST(cJSON_CreateArray()));
}

cJSON *fj_set(cJSON *o, const char *key, cJSON *value) {
        bool done;

        MUST(value);
        if (fj_member(o, key))
                done = cJSON_ReplaceItemInObjectCaseSensitive(o, key, value);
        else
                done = cJSON_AddItemToObject(o, key, value);
        assert(done && "out of memory");
        return value;
}

void fj_set_string(cJSON *o, const char *key, const char *value) {
        fj_set(o, key, cJSON_CreateString(value));
}

void fj_set_int(cJSON *o, const char *key, int64_t value) {
        fj_set(o, key, cJSON_CreateNumber((double) value));
}

void fj_set_bool(cJSON *o, const char *key, bool value) {
        fj_set(o, key, cJSON_CreateBool(value));
}

void fj_set_copy(cJSON *o, const char *key, const cJSON *value) {
        if (value)
                fj_set(o, key, fj_copy(value));
        else
                fj_remove(o, key);
}

void fj_remove(cJSON *o, const char *key) {
        cJSON_DeleteItemFromObjectCaseSensitive(o, key);
}

bool fj_equal(const cJSON *a, const cJSON *b) {
        return a == b || (a && b && cJSON_Compare(a, b, true));
}

cJSON *fj_copy(const cJSON *o) {
        return MUST(cJSON_Duplicate(o, true));
}

char *fj_print(const cJSON *o) {
        return MUST(cJSON_PrintUnformatted(o));
}

cJSON *fj_parse(const char *fmt, ...) {
        _cleanup_free_ char *text = NULL;
        cJSON *v;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&text, fmt, ap);
        va_end(ap);
        assert(r >= 0);

        for (char *p = text; *p; p++)
                if (*p == '\'')
                        *p = '"';
        v = cJSON_ParseWithOpts(text, NULL, true);
        if (!v)
                fprintf(stderr, "Not JSON: %s\n", text);
        return MUST(v);
}

bool fj_array_has(const cJSON *array, const char *s) {
        const cJSON *e;

        cJSON_ArrayForEach (e, array)
                if (cJSON_IsString(e) && streq(e->valuestring, s))
                        return true;
        return false;
}

cJSON *fj_find(const cJSON *array, const char *key, const char *value) {
        cJSON *e;

        cJSON_ArrayForEach (e, array)
                if (streq_ptr(fj_string(e, key, NULL), value))
                        return e;
        return NULL;
}
