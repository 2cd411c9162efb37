/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot-file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "snapshot-object.h"
#include "snapshot-read.h"
#include "string-util.h"

/* -- writing -------------------------------------------------------------------------------------------- */

static void write_known_kinds(JsonWriter *w, const char *key, const Snapshot *s) {
        json_open_array(w, key);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                if (s->is_known[k])
                        json_add_string(w, NULL, snapshot_kube_kind(k)->kind);
        json_close_array(w);
}

static size_t count_objects(const Snapshot *s) {
        size_t n = 0;

        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                n += hashmap_size(s->objects[k]);
        return n;
}

/* What has been written so far becomes a line. */
static int end_line(JsonWriter *w, StrBuf *text) {
        _cleanup_free_ char *line = NULL;
        size_t size;

        line = json_writer_steal(w, &size);
        if (!line)
                return -ENOMEM;
        strbuf_add_n(text, line, size);
        strbuf_add_char(text, '\n');
        return text->failed ? -ENOMEM : 0;
}

static int save_objects(const Snapshot *s, JsonWriter *w, StrBuf *text) {
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++) {
                _cleanup_free_ KubeObject **list = NULL;
                size_t n;
                int r;

                r = snapshot_sorted(s, k, &list, &n);
                for (size_t i = 0; r >= 0 && i < n; i++) {
                        r = snapshot_object_write(w, list[i]);
                        if (r >= 0)
                                r = end_line(w, text);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* All that is said of the cluster: which kinds are known, in a line of *ret_line bytes, and the objects. */
static int save_body(const Snapshot *s, JsonWriter *w, StrBuf *text, size_t *ret_line) {
        int r;

        write_known_kinds(w, NULL, s);
        r = end_line(w, text);
        *ret_line = text->size;
        return r < 0 ? r : save_objects(s, w, text);
}

static void fingerprint_of(const StrBuf *body, char ret[static SNAPSHOT_FINGERPRINT_SIZE]) {
        /* Any two keys will do, but for ever the same. */
        static const uint8_t keys[2][16] = { "vesper snapshot", "a second opinion" };

        (void) snprintf(ret, SNAPSHOT_FINGERPRINT_SIZE, "%016" PRIx64 "%016" PRIx64,
                        siphash24(body->data, body->size, keys[0]), siphash24(body->data, body->size, keys[1]));
}

static int save_head(const Snapshot *s, JsonWriter *w, const char *fingerprint, StrBuf *text) {
        char taken[RFC3339_MAX];

        rfc3339_format(s->taken_usec, taken);
        json_open_object(w, NULL);
        json_add_int64(w, SNAPSHOT_MAGIC, SNAPSHOT_FORMAT);
        json_add_string(w, "taken", taken);
        write_known_kinds(w, "kinds", s);
        json_add_int64(w, "objects", (int64_t) count_objects(s));
        json_add_string(w, "fingerprint", fingerprint);
        json_close_object(w);
        return end_line(w, text);
}

/* The first n bytes give way to others, where they lie: there is not memory for all of it twice. */
static int replace_front(StrBuf *text, size_t n, const StrBuf *front) {
        size_t size = text->size;

        assert(front->size >= n);
        strbuf_add_n(text, front->data, front->size - n);
        if (text->failed)
                return -ENOMEM;
        memmove(text->data + front->size, text->data + n, size - n);
        memcpy(text->data, front->data, front->size);
        return 0;
}

int snapshot_save(const Snapshot *s, char **ret, size_t *ret_size) {
        char fingerprint[SNAPSHOT_FINGERPRINT_SIZE];
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_strbuf_ StrBuf text = { 0 }, head = { 0 };
        size_t line;
        int r;

        assert(s);
        assert(ret && ret_size);
        r = json_writer_new(&w);
        if (r >= 0)
                r = save_body(s, w, &text, &line);
        if (r < 0)
                return r;
        fingerprint_of(&text, fingerprint);
        r = save_head(s, w, fingerprint, &head);
        if (r >= 0)
                r = replace_front(&text, line, &head);
        if (r < 0)
                return r;
        *ret_size = text.size;
        *ret = strbuf_steal(&text);
        return *ret ? 0 : -ENOMEM;
}

int snapshot_fingerprint(const Snapshot *s, char ret[static SNAPSHOT_FINGERPRINT_SIZE]) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_strbuf_ StrBuf text = { 0 };
        size_t line;
        int r;

        assert(s);
        r = json_writer_new(&w);
        if (r >= 0)
                r = save_body(s, w, &text, &line);
        if (r < 0)
                return r;
        fingerprint_of(&text, ret);
        return 0;
}

/* -- reading -------------------------------------------------------------------------------------------- */

int snapshot_refuse(char **reterr, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        *reterr = strbuf_steal(&b);
        return *reterr ? -EBADMSG : -ENOMEM;
}

typedef struct Lines {
        const char *p, *end; /* what is left */
        size_t number;       /* of the line that was taken last */
        char **reterr;
} Lines;

/* 1: a line, without its newline; 0: there is none left; -EBADMSG. */
static int take_line(Lines *l, const char **ret, size_t *ret_size) {
        const char *newline;

        if (l->p == l->end)
                return 0;
        l->number++;
        newline = memchr(l->p, '\n', (size_t) (l->end - l->p));
        if (!newline)
                return snapshot_refuse(l->reterr, "line %zu does not end: the file was cut off", l->number);
        *ret = l->p;
        *ret_size = (size_t) (newline - l->p);
        l->p = newline + 1;
        return 1;
}

static int parse_line(const Lines *l, const char *line, size_t size, JsonDoc **ret) {
        JsonError e = { 0 };
        int r;

        r = json_parse(line, size, SNAPSHOT_LINE_BYTES_MAX, ret, &e);
        if (r < 0 && r != -ENOMEM)
                return snapshot_refuse(l->reterr, "line %zu is no JSON: %s at its byte %zu", l->number, e.message,
                                       e.offset + 1);
        return r;
}

static int read_kinds(const Lines *l, const Json *list, Snapshot *s) {
        if (!json_is_array(list))
                return snapshot_refuse(l->reterr, "line 1 does not say which kinds are known");
        JSON_FOREACH (i, list)
                for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                        if (streq_ptr(json_string_or_null(i), snapshot_kube_kind(k)->kind))
                                s->is_known[k] = true;
        return 0;
}

/* Only an object of this form has a meaning here; another may be of a time to come. */
static int read_head(const Lines *l, const Json *head, InternPool *pool, Snapshot **ret, int64_t *ret_objects) {
        const char *taken = json_string_or_null(json_get(head, "taken"));
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        int64_t format = 0;
        usec_t at;
        int r;

        if (json_int64(json_get(head, SNAPSHOT_MAGIC), &format) < 0 || format < 1)
                return snapshot_refuse(l->reterr, "line 1 is not the beginning of a snapshot");
        if (format > SNAPSHOT_FORMAT)
                return snapshot_refuse(l->reterr,
                                       "the snapshot has format %" PRId64 ", and this vesper reads formats up to %d: read it "
                                       "with the version that has written it, or a later one",
                                       format, SNAPSHOT_FORMAT);
        if (!taken || rfc3339_parse(taken, &at) < 0)
                return snapshot_refuse(l->reterr, "line 1 does not say when the snapshot was taken");
        if (json_int64(json_get(head, "objects"), ret_objects) < 0)
                return snapshot_refuse(l->reterr, "line 1 does not say how many objects follow");
        r = snapshot_new(pool, at, &s);
        if (r >= 0)
                r = read_kinds(l, json_get(head, "kinds"), s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

int snapshot_read_object(Snapshot *s, const Json *json, SnapshotKind kind, bool replace, const char *where,
                         char **reterr) {
        const char *unreadable = json_string_or_null(json_get(json, SNAPSHOT_UNREADABLE));
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_free_ char *key = NULL;
        int r;

        r = kube_object_decode(snapshot_kube_kind(kind), json, s->pool, &o);
        if (r == -EINVAL)
                return snapshot_refuse(reterr, "%s: a %s without a name", where, snapshot_kube_kind(kind)->kind);
        if (r < 0)
                return r;
        if (unreadable && free_and_strdup(&o->invalid, unreadable) < 0)
                return -ENOMEM;
        key = kube_object_key(o);
        if (!key)
                return -ENOMEM;
        if (!replace && snapshot_get(s, kind, key))
                return snapshot_refuse(reterr, "%s: %s %s is there twice", where, o->kind->kind, key);
        return snapshot_put(s, kind, o);
}

static int read_line(const Lines *l, Snapshot *s, const char *line, size_t size) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *name = NULL;
        const char *version, *kind_name;
        SnapshotKind kind;
        char where[32];
        int r;

        r = parse_line(l, line, size, &doc);
        if (r < 0)
                return r;
        version = json_string_or_null(json_get(json_root(doc), "apiVersion"));
        kind_name = json_string_or_null(json_get(json_root(doc), "kind"));
        if (!version || !kind_name)
                return snapshot_refuse(l->reterr, "line %zu is no object with apiVersion and kind", l->number);
        kind = snapshot_kind_of(version, kind_name);
        if (kind < 0) {
                name = str_sanitize(kind_name, 64);
                return name ? snapshot_refuse(l->reterr, "line %zu: a snapshot has no objects of kind %s", l->number, name)
                            : -ENOMEM;
        }
        (void) snprintf(where, sizeof(where), "line %zu", l->number);
        return snapshot_read_object(s, json_root(doc), kind, false, where, l->reterr);
}

bool snapshot_is_file(const char *data, size_t size) {
        static const char begin[] = "{\"" SNAPSHOT_MAGIC "\":";

        return size >= sizeof(begin) - 1 && memcmp(data, begin, sizeof(begin) - 1) == 0;
}

static int load(Lines *l, InternPool *pool, Snapshot **ret) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        _cleanup_(json_doc_freep) JsonDoc *head = NULL;
        int64_t objects = 0;
        const char *line;
        size_t size;
        int r;

        r = take_line(l, &line, &size);
        if (r == 0)
                return snapshot_refuse(l->reterr, "the file is empty");
        if (r > 0)
                r = parse_line(l, line, size, &head);
        if (r >= 0)
                r = read_head(l, json_root(head), pool, &s, &objects);
        if (r < 0)
                return r;
        while ((r = take_line(l, &line, &size)) > 0) {
                r = read_line(l, s, line, size);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if ((uint64_t) objects != l->number - 1)
                return snapshot_refuse(l->reterr, "line 1 announces %" PRId64 " objects, and %zu follow: the file was cut "
                                                  "off or changed", objects, l->number - 1);
        *ret = TAKE_PTR(s);
        return 0;
}

int snapshot_load(const char *data, size_t size, InternPool *pool, Snapshot **ret, char **reterr) {
        Lines l = { .p = data, .end = data + size, .reterr = reterr };

        assert(data || size == 0);
        assert(pool);
        assert(ret && reterr);
        *reterr = NULL;
        if (size > SNAPSHOT_BYTES_MAX)
                return snapshot_refuse(reterr, "the file has more than %zu bytes", SNAPSHOT_BYTES_MAX);
        return load(&l, pool, ret);
}
