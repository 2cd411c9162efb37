/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-util.h"
#include "json-internal.h"
#include "macro.h"
#include "string-util.h"

/* Members up to here are compared each with each, more are sorted first. */
#define COMPARE_ALL_MAX 24u

/* 2^53 itself is out: the text 9007199254740993 becomes the same double. */
#define INTEGER_MAX INT64_C(9007199254740991)

/* A Json is a cJSON under another name, so that nobody outside can touch it by cJSON's own calls. */
struct JsonDoc {
        cJSON *root;
        JsonPiece *pieces; /* that it stands in; NULL: it is cJSON's own */
};

static const cJSON *from_json(const Json *v) {
        return (const cJSON *) (const void *) v;
}

static const Json *to_json(const cJSON *v) {
        return (const Json *) (const void *) v;
}

/* -- duplicate keys ------------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b) {
        const cJSON *x = *(const cJSON *const *) a, *y = *(const cJSON *const *) b;

        return strcmp(x->string, y->string);
}

static int find_duplicate_sorted(const cJSON *object, size_t n, const cJSON **ret) {
        _cleanup_free_ const cJSON **members = NULL;
        size_t i = 0;

        members = new0(const cJSON *, n);
        if (!members)
                return -ENOMEM;
        for (const cJSON *child = object->child; child; child = child->next)
                members[i++] = child;
        qsort(members, n, sizeof(members[0]), compare_keys);
        for (i = 1; i < n; i++)
                if (streq(members[i - 1]->string, members[i]->string)) {
                        *ret = members[i];
                        return 0;
                }
        return 0;
}

/* Most keys of one object differ in their first byte. */
static bool is_key(const cJSON *member, const char *key) {
        return *member->string == *key && streq(member->string, key);
}

int json_find_duplicate_member(const cJSON *object, const cJSON **ret) {
        size_t n = 0;

        for (const cJSON *child = object->child; child; child = child->next)
                n++;
        if (n > COMPARE_ALL_MAX)
                return find_duplicate_sorted(object, n, ret);

        for (const cJSON *child = object->child; child; child = child->next)
                for (const cJSON *other = object->child; other != child; other = other->next)
                        if (is_key(child, other->string)) {
                                *ret = child;
                                return 0;
                        }
        return 0;
}

/* One member whose key its object has twice, or NULL. The scan has bounded the depth. */
static int find_duplicate(const cJSON *v, const cJSON **ret) {
        int r;

        if (cJSON_IsObject(v)) {
                r = json_find_duplicate_member(v, ret);
                if (r < 0 || *ret)
                        return r;
        }
        for (const cJSON *child = v->child; child; child = child->next)
                if (child->child) {
                        r = find_duplicate(child, ret);
                        if (r < 0 || *ret)
                                return r;
                }
        return 0;
}

/* Counts keys in the order of the text up to and with `wanted`. */
static bool count_keys(const cJSON *v, const cJSON *wanted, size_t *n) {
        for (const cJSON *child = v->child; child; child = child->next) {
                if (child->string)
                        (*n)++;
                if (child == wanted || count_keys(child, wanted, n))
                        return true;
        }
        return false;
}

/* The tree has no places in it, so the failing case, and only it, scans a second time. */
static size_t key_offset(const cJSON *root, const cJSON *member, const char *data, size_t size) {
        JsonScan s = { .data = data, .size = size };

        if (!count_keys(root, member, &s.key_wanted))
                return 0;
        (void) json_scan(&s);
        return s.key_offset;
}

/* -- documents ------------------------------------------------------------------------------------------ */

static void put_error(JsonError *reterr, size_t offset, const char *message) {
        if (reterr)
                *reterr = (JsonError){ .offset = offset, .message = message };
}

/* cJSON's strings end at a NUL. U+FFFD is as long when it is written as an escape. */
static char *replace_nuls(const char *data, size_t size) {
        char *copy = memdup_str(data, size);

        for (char *p = copy; p && (p = strchr(p, '\\')); p += 2)
                if (strncmp(p, "\\u0000", 6) == 0)
                        memcpy(p + 2, "fffd", 4);
        return copy;
}

/* From bytes that json_scan() has passed. */
static int doc_build(const char *data, size_t size, bool has_nul, JsonDoc **ret, JsonError *reterr) {
        _cleanup_free_ char *copy = has_nul ? replace_nuls(data, size) : NULL;
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        const cJSON *duplicate = NULL;
        int r;

        if (has_nul && !copy)
                return -ENOMEM;

        d = new0(JsonDoc, 1);
        if (!d)
                return -ENOMEM;
        d->root = cJSON_ParseWithLengthOpts(has_nul ? copy : data, size, NULL, false);
        if (!d->root)
                return -ENOMEM;

        r = find_duplicate(d->root, &duplicate);
        if (r < 0)
                return r;
        if (duplicate) {
                put_error(reterr, key_offset(d->root, duplicate, data, size), "duplicate key");
                return -EBADMSG;
        }
        *ret = TAKE_PTR(d);
        return 0;
}

int json_doc_new_of_pieces(cJSON *root, JsonPiece *first, JsonDoc **ret) {
        JsonDoc *d = new0(JsonDoc, 1);

        if (!d)
                return -ENOMEM;
        *d = (JsonDoc){ .root = root, .pieces = first };
        *ret = d;
        return 0;
}

void json_pieces_free(JsonPiece *first) {
        while (first) {
                JsonPiece *next = first->next;

                free(first);
                first = next;
        }
}

/* The same without what the scan says is to be left out. */
static int doc_build_without(const JsonScan *s, JsonDoc **ret, JsonError *reterr) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        const cJSON *duplicate = NULL;
        JsonPiece *piece;
        cJSON *root;
        int r;

        r = json_tree_new(s, &piece, &root);
        if (r < 0)
                return r;
        r = json_doc_new_of_pieces(root, piece, &d);
        if (r < 0) {
                json_pieces_free(piece);
                return r;
        }
        r = find_duplicate(d->root, &duplicate);
        if (r < 0)
                return r;
        if (duplicate) /* where, can be told of a whole tree only */
                return doc_build(s->data, s->size, s->has_nul, ret, reterr);
        *ret = TAKE_PTR(d);
        return 0;
}

/* What passed the scan, or the error of it. */
static int scan_whole(JsonScan *s, size_t max_bytes, JsonError *reterr) {
        int r;

        if (s->size > max_bytes) {
                put_error(reterr, max_bytes, "too large");
                return -E2BIG;
        }
        r = json_scan(s);
        if (r == -EBADMSG)
                put_error(reterr, s->error.offset, s->error.message);
        return r;
}

int json_parse(const char *data, size_t size, size_t max_bytes, JsonDoc **ret, JsonError *reterr) {
        JsonScan s = { .data = data, .size = size };
        int r;

        assert(ret);
        r = scan_whole(&s, max_bytes, reterr);
        return r < 0 ? r : doc_build(data, size, s.has_nul, ret, reterr);
}

int json_parse_without(const char *data, size_t size, size_t max_bytes, const JsonOmits *omits,
                       JsonDoc **ret, JsonError *reterr) {
        _cleanup_(json_scan_done) JsonScan s = { .data = data, .size = size, .omits = omits };
        int r;

        assert(ret);
        r = scan_whole(&s, max_bytes, reterr);
        return r < 0 ? r : doc_build_without(&s, ret, reterr);
}

int json_check(const char *data, size_t size, size_t max_bytes, JsonError *reterr) {
        JsonScan s = { .data = data, .size = size };

        return scan_whole(&s, max_bytes, reterr);
}

JsonDoc *json_doc_free(JsonDoc *d) {
        if (d && d->pieces)
                json_pieces_free(d->pieces);
        else if (d)
                cJSON_Delete(d->root);
        free(d);
        return NULL;
}

const Json *json_root(const JsonDoc *d) {
        assert(d);
        return to_json(d->root);
}

/* The text with "[]" in the place of the items. */
static int build_rest(const JsonScan *s, JsonDoc **ret, JsonError *reterr) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        JsonError error = { 0 };
        size_t behind = s->list.offset + s->list.size, emptied;
        int r;

        if (!s->has_items)
                return doc_build(s->data, s->size, s->has_nul, ret, reterr);

        strbuf_add_n(&b, s->data, s->list.offset);
        strbuf_add(&b, "[]");
        emptied = b.size;
        strbuf_add_n(&b, s->data + behind, s->size - behind);
        if (b.failed)
                return -ENOMEM;
        r = doc_build(b.data, b.size, s->has_nul, ret, &error);
        if (r == -EBADMSG) {
                size_t offset = error.offset < emptied ? error.offset : error.offset - emptied + behind;

                put_error(reterr, offset, error.message);
        }
        return r;
}

int json_split_items(const char *data, size_t size, size_t max_bytes, json_item_t on_item, void *userdata,
                     JsonDoc **ret_rest, JsonError *reterr) {
        _cleanup_(json_scan_done) JsonScan s = { .data = data, .size = size, .split = true };
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        int r;

        assert(on_item);
        assert(ret_rest);
        r = scan_whole(&s, max_bytes, reterr);
        if (r < 0)
                return r;
        r = build_rest(&s, &rest, reterr);
        if (r < 0)
                return r;

        for (size_t i = 0; i < s.n_items; i++) {
                r = on_item(data + s.items[i].offset, s.items[i].size, userdata);
                if (r < 0)
                        return r;
        }
        *ret_rest = TAKE_PTR(rest);
        return 0;
}

/* -- looking -------------------------------------------------------------------------------------------- */

const Json *json_get(const Json *o, const char *key) {
        assert(key);
        if (!json_is_object(o))
                return NULL;
        for (const cJSON *child = from_json(o)->child; child; child = child->next)
                if (is_key(child, key))
                        return to_json(child);
        return NULL;
}

const Json *json_path(const Json *o, ...) {
        const char *key;
        va_list ap;

        va_start(ap, o);
        while (o && (key = va_arg(ap, const char *)))
                o = json_get(o, key);
        va_end(ap);
        return o;
}

bool json_is_null(const Json *v) {
        return cJSON_IsNull(from_json(v));
}

bool json_is_object(const Json *v) {
        return cJSON_IsObject(from_json(v));
}

bool json_is_array(const Json *v) {
        return cJSON_IsArray(from_json(v));
}

bool json_is_string(const Json *v) {
        return cJSON_IsString(from_json(v));
}

bool json_is_number(const Json *v) {
        return cJSON_IsNumber(from_json(v));
}

static int check(const Json *v, bool type_fits) {
        if (!v || json_is_null(v))
                return -ENODATA;
        return type_fits ? 0 : -EINVAL;
}

int json_string(const Json *v, const char **ret) {
        int r = check(v, json_is_string(v));

        if (r < 0)
                return r;
        *ret = from_json(v)->valuestring;
        return 0;
}

int json_double(const Json *v, double *ret) {
        int r = check(v, json_is_number(v));

        if (r < 0)
                return r;
        *ret = from_json(v)->valuedouble;
        return 0;
}

int json_int64(const Json *v, int64_t *ret) {
        double d;
        int r;

        r = json_double(v, &d);
        if (r < 0)
                return r;
        if (fabs(d) > (double) INTEGER_MAX)
                return -ERANGE;
        if ((double) (int64_t) d != d)
                return -EINVAL;
        *ret = (int64_t) d;
        return 0;
}

int json_bool(const Json *v, bool *ret) {
        int r = check(v, cJSON_IsBool(from_json(v)));

        if (r < 0)
                return r;
        *ret = cJSON_IsTrue(from_json(v));
        return 0;
}

const char *json_string_or_null(const Json *v) {
        return json_is_string(v) ? from_json(v)->valuestring : NULL;
}

size_t json_size(const Json *v) {
        size_t n = 0;

        JSON_FOREACH (child, v)
                n++;
        return n;
}

const Json *json_first(const Json *v) {
        return json_is_object(v) || json_is_array(v) ? to_json(from_json(v)->child) : NULL;
}

const Json *json_next(const Json *child) {
        return child ? to_json(from_json(child)->next) : NULL;
}

const char *json_key(const Json *child) {
        return child ? from_json(child)->string : NULL;
}
