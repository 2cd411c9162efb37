/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "kube-decode.h"
#include "string-util.h"

/* Where a value stands, for a sentence: nobody builds a path for what is good. */
typedef struct Place {
        const struct Place *parent;
        const char *name;
} Place;

typedef struct Copy {
        Decoder *d;
        JsonWriter *w;
} Copy;

static void add_path(StrBuf *b, const Place *p) {
        if (p->parent) {
                add_path(b, p->parent);
                strbuf_add_char(b, '.');
        }
        strbuf_add(b, p->name);
}

static void wrong_type(Decoder *d, const Place *p, const char *what) {
        _cleanup_strbuf_ StrBuf path = { 0 };

        add_path(&path, p);
        if (path.failed)
                d->failed = true;
        else
                decoder_invalid(d, "%s is no %s", strbuf_str(&path), what);
}

/* Returns true if the copy is full; then also marks the object invalid. */
static bool is_full(const Copy *c, const Place *at) {
        _cleanup_strbuf_ StrBuf path = { 0 };

        if (json_writer_size(c->w) <= DECODE_COPY_BYTES_MAX)
                return false;
        c->d->is_cut = true;
        add_path(&path, at);
        if (path.failed)
                c->d->failed = true;
        else
                decoder_invalid(c->d, "%s: vesper keeps at most %u bytes of what kube-scheduler reads",
                                strbuf_str(&path), DECODE_COPY_BYTES_MAX);
        return true;
}

static bool is_absent(const Json *v) {
        return !v || json_is_null(v);
}

static bool is_filled(Decoder *d, const Json *v, const Place *p, bool (*has_type)(const Json *v), const char *what) {
        if (is_absent(v))
                return false;
        if (!has_type(v)) {
                wrong_type(d, p, what);
                return false;
        }
        return json_size(v) > 0;
}

/* -- maps ----------------------------------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b) {
        return strcmp(json_key(*(const Json *const *) a), json_key(*(const Json *const *) b));
}

static bool map_value_is_good(const Json *v, bool of_quantities) {
        int64_t n;

        return json_is_string(v) || (of_quantities && json_int64(v, &n) >= 0); /* as apimachinery reads it */
}

static void copy_map_value(const Copy *c, const Json *v) {
        int64_t n;

        if (json_is_string(v))
                json_add_string(c->w, json_key(v), json_string_or_null(v));
        else if (json_int64(v, &n) >= 0)
                json_addf(c->w, json_key(v), "%" PRId64, n);
}

/* Copies a map without its wrong entries. */
static bool copy_map(const Copy *c, const Json *v, const Place *at, bool of_quantities, const char *key) {
        _cleanup_free_ const Json **sorted = NULL;
        size_t n = 0;

        if (!is_filled(c->d, v, at, json_is_object, "map"))
                return false;
        sorted = new0(const Json *, json_size(v));
        if (!sorted) {
                c->d->failed = true;
                return false;
        }
        JSON_FOREACH (i, v)
                if (map_value_is_good(i, of_quantities))
                        sorted[n++] = i;
                else
                        wrong_type(c->d, &(Place){ at, json_key(i) }, of_quantities ? "quantity" : "string");
        if (n == 0)
                return false;
        qsort(sorted, n, sizeof(*sorted), compare_keys);
        json_open_object(c->w, key);
        for (size_t i = 0; i < n && !is_full(c, at); i++)
                copy_map_value(c, sorted[i]);
        json_close_object(c->w);
        return true;
}

/* -- by a shape ----------------------------------------------------------------------------------------- */

static void copy_members(const Copy *c, const Json *v, const Place *at, const ProtobufShape *shape);

static bool copy_object(const Copy *c, const Json *v, const Place *at, const ProtobufShape *shape, const char *key) {
        if (is_absent(v))
                return false;
        if (!json_is_object(v)) {
                wrong_type(c->d, at, "object");
                return false;
        }
        json_open_object(c->w, key);
        copy_members(c, v, at, shape);
        json_close_object(c->w);
        return true;
}

/* shape NULL: of strings, where an empty one counts. What is wrong is left out. */
static bool copy_list(const Copy *c, const Json *v, const Place *at, const ProtobufShape *shape, const char *key) {
        size_t n = 0;

        if (!is_filled(c->d, v, at, json_is_array, "list"))
                return false;
        JSON_FOREACH (i, v)
                n += shape ? json_is_object(i) : json_is_string(i);
        if (n < json_size(v))
                wrong_type(c->d, at, shape ? "list of objects" : "list of strings");
        if (n == 0)
                return false;
        json_open_array(c->w, key);
        JSON_FOREACH (i, v) {
                if (is_full(c, at))
                        break;
                if (shape && json_is_object(i))
                        (void) copy_object(c, i, at, shape, NULL);
                else if (!shape && json_is_string(i))
                        json_add_string(c->w, NULL, json_string_or_null(i));
        }
        json_close_array(c->w);
        return true;
}

static void copy_plain(const Copy *c, const Json *v, const Place *at, const ProtobufField *f) {
        bool flag = false;
        int64_t n = 0;

        if (f->type == PROTOBUF_INT) {
                if (json_int64(v, &n) < 0)
                        wrong_type(c->d, at, "integer in range");
                else if (n != 0)
                        json_add_int64(c->w, f->name, n);
        } else if (f->type == PROTOBUF_BOOL) {
                if (json_bool(v, &flag) < 0)
                        wrong_type(c->d, at, "flag");
                else if (flag)
                        json_add_bool(c->w, f->name, true);
        } else if (!json_is_string(v))
                wrong_type(c->d, at, "string");
        else if (!isempty(json_string_or_null(v)))
                json_add_string(c->w, f->name, json_string_or_null(v));
}

static void copy_member(const Copy *c, const Json *v, const Place *at, const ProtobufField *f) {
        if (is_absent(v))
                return;
        if (f->repeated) {
                (void) copy_list(c, v, at, f->shape, f->name);
                return;
        }
        switch (f->type) {
        case PROTOBUF_MESSAGE:
                (void) copy_object(c, v, at, f->shape, f->name);
                return;
        case PROTOBUF_MAP:
        case PROTOBUF_QUANTITY_MAP:
                (void) copy_map(c, v, at, f->type == PROTOBUF_QUANTITY_MAP, f->name);
                return;
        case PROTOBUF_STRING:
        case PROTOBUF_STRING_KEPT:
        case PROTOBUF_TIME:
        case PROTOBUF_INT:
        case PROTOBUF_BOOL:
                copy_plain(c, v, at, f);
                return;
        case PROTOBUF_INLINE:
                break;
        }
        assert(false && "an embedded message is copied with its outer one");
}

static void copy_members(const Copy *c, const Json *v, const Place *at, const ProtobufShape *shape) {
        for (size_t i = 0; i < shape->n_fields; i++) {
                const ProtobufField *f = shape->fields + i;

                if (f->type == PROTOBUF_INLINE)
                        copy_members(c, v, at, f->shape);
                else
                        copy_member(c, json_get(v, f->name), &(Place){ at, f->name }, f);
        }
}

/* -- for decoders --------------------------------------------------------------------------------------- */

bool decode_copy_list(Decoder *d, const Json *v, const char *path, const ProtobufShape *shape, JsonWriter *w,
                      const char *key) {
        return copy_list(&(Copy){ d, w }, v, &(Place){ NULL, path }, shape, key);
}

bool decode_copy_map(Decoder *d, const Json *v, const char *path, bool of_quantities, JsonWriter *w,
                     const char *key) {
        return copy_map(&(Copy){ d, w }, v, &(Place){ NULL, path }, of_quantities, key);
}

bool decode_copy_map_has(const Json *v, bool of_quantities) {
        if (json_is_object(v))
                JSON_FOREACH (i, v)
                        if (map_value_is_good(i, of_quantities))
                                return true;
        return false;
}

void decode_copy_text(Decoder *d, const Json *v, const char *path, const ProtobufShape *shape, bool list,
                      char **ret) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0) {
                d->failed = true;
                return;
        }
        if (list ? !decode_copy_list(d, v, path, shape, w, NULL)
                 : !copy_object(&(Copy){ d, w }, v, &(Place){ NULL, path }, shape, NULL))
                return;
        if (is_full(&(Copy){ d, w }, &(Place){ NULL, path }))
                return;
        *ret = json_writer_steal(w, NULL);
        d->failed |= !*ret;
}
