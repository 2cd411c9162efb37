/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-field-list.h says of each field whether a decoder looks at it. Here json_get() and json_path() are
 * wrapped, so that it can be seen what decoders look at: just that must be READ in the list. A field that a
 * decoder looks at and the list lacks would be absent whenever an object comes in protobuf.
 */
#include <stdio.h>
#include <stdlib.h>

#include "api-error.h"
#include "cmocka-test.h"
#include "fake-json.h"
#include "fake-protobuf.h"
#include "kube-protobuf.h"
#include "kube-scheduling.h"
#include "string-util.h"
#include "strv.h"

#define PATH_SIZE 256u
#define VALUES_MAX 1024u

/* -- what is looked at ---------------------------------------------------------------------------------- */

typedef struct Watched {
        const Json *value;
        char *path; /* "spec.taints"; the same for a list and its elements */
} Watched;

static struct {
        Watched values[VALUES_MAX]; /* of the document that is being decoded */
        size_t n_values;
        char **asked; /* paths of members, each once */
} seen;

const Json *__real_json_get(const Json *o, const char *key);
const Json *__wrap_json_get(const Json *o, const char *key);
const Json *__wrap_json_path(const Json *o, ...);
const Json *__real_json_root(const JsonDoc *d);
const Json *__wrap_json_root(const JsonDoc *d);

static void join(char *ret, const char *path, const char *key) {
        assert_true(snprintf(ret, PATH_SIZE, "%s%s%s", path, *path ? "." : "", key) < (int) PATH_SIZE);
}

static void watch_values(const Json *v, const char *path) {
        assert_true(seen.n_values < VALUES_MAX);
        seen.values[seen.n_values++] = (Watched){ v, MUST(strdup(path)) };
        JSON_FOREACH (i, v) {
                char below[PATH_SIZE];

                join(below, path, strempty(json_key(i)));
                watch_values(i, json_is_array(v) ? path : below);
        }
}

static void forget_values(void) {
        for (size_t i = 0; i < seen.n_values; i++)
                free(seen.values[i].path);
        seen.n_values = 0;
}

const Json *__wrap_json_root(const JsonDoc *d) {
        const Json *root = __real_json_root(d);

        if (root && seen.n_values == 0)
                watch_values(root, "");
        return root;
}

const Json *__wrap_json_get(const Json *o, const char *key) {
        for (size_t i = 0; o && i < seen.n_values; i++)
                if (seen.values[i].value == o) {
                        char path[PATH_SIZE];

                        join(path, seen.values[i].path, key);
                        if (!strv_contains(seen.asked, path))
                                assert_return_code(strv_extend(&seen.asked, path), 0);
                        break;
                }
        return __real_json_get(o, key);
}

const Json *__wrap_json_path(const Json *o, ...) {
        const char *key;
        va_list ap;

        va_start(ap, o);
        while (o && (key = va_arg(ap, const char *)))
                o = __wrap_json_get(o, key);
        va_end(ap);
        return o;
}

/* -- an object in which every field of a shape has a value of its own ----------------------------------- */

typedef struct Maker {
        JsonWriter *w;
        const char *without; /* the path of a field that is to be absent; NULL: none */
        bool alone;          /* lists of objects also have an element for each field, with nothing else */
        char **paths;        /* of all fields */
        unsigned n;          /* values so far */
} Maker;

/* Some values open a decoder's way to other fields. */
static const struct {
        const char *path, *value;
} keys[] = {
        { "spec.restartPolicy", "Always" }, /* volumes are looked at */
        { "status.conditions.type", "Ready" },
        { "kind", "Status" },
};

static const char *text_of(Maker *m, const char *path, char ret[static PATH_SIZE]) {
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(path, keys[i].path))
                        return keys[i].value;
        snprintf(ret, PATH_SIZE, "v%u", m->n);
        return ret;
}

static void make_members(Maker *m, const ProtobufShape *shape, const char *path, const ProtobufField *only);

static void make_object(Maker *m, const char *key, const ProtobufField *f, const char *path,
                        const ProtobufField *only) {
        json_open_object(m->w, key);
        make_members(m, f->shape, path, only);
        json_close_object(m->w);
}

static void make_lone_members(Maker *m, const ProtobufField *list, const ProtobufShape *shape,
                              const char *path) {
        for (size_t i = 0; i < shape->n_fields; i++)
                if (shape->fields[i].type == PROTOBUF_INLINE)
                        make_lone_members(m, list, shape->fields[i].shape, path);
                else
                        make_object(m, NULL, list, path, shape->fields + i);
}

static void make_list(Maker *m, const ProtobufField *f, const char *path) {
        char text[PATH_SIZE];

        json_open_array(m->w, f->name);
        if (f->type == PROTOBUF_MESSAGE) {
                make_object(m, NULL, f, path, NULL);
                if (m->alone)
                        make_lone_members(m, f, f->shape, path);
        } else
                json_add_string(m->w, NULL, text_of(m, path, text));
        json_close_array(m->w);
}

static void make_member(Maker *m, const ProtobufField *f, const char *path) {
        char text[PATH_SIZE];

        m->n++;
        if (!strv_contains(m->paths, path))
                assert_return_code(strv_extend(&m->paths, path), 0);
        if (m->without && streq(path, m->without))
                return;
        if (f->repeated) {
                make_list(m, f, path);
                return;
        }
        switch (f->type) {
        case PROTOBUF_STRING:
        case PROTOBUF_STRING_KEPT:
                json_add_string(m->w, f->name, text_of(m, path, text));
                return;
        case PROTOBUF_INT:
                json_add_int64(m->w, f->name, m->n);
                return;
        case PROTOBUF_BOOL:
                json_add_bool(m->w, f->name, true);
                return;
        case PROTOBUF_TIME:
                json_addf(m->w, f->name, "2026-11-21T%02u:%02u:00Z", m->n / 60 % 24, m->n % 60);
                return;
        case PROTOBUF_MAP:
        case PROTOBUF_QUANTITY_MAP:
                json_open_object(m->w, f->name);
                json_add_string(m->w, "vesper.sh/key", text_of(m, path, text));
                json_close_object(m->w);
                return;
        case PROTOBUF_MESSAGE:
                make_object(m, f->name, f, path, NULL);
                return;
        case PROTOBUF_INLINE:
                break;
        }
        fail();
}

/* only NULL: all. */
static void make_members(Maker *m, const ProtobufShape *shape, const char *path, const ProtobufField *only) {
        for (size_t i = 0; i < shape->n_fields; i++) {
                const ProtobufField *f = shape->fields + i;
                char below[PATH_SIZE];

                if (f->type == PROTOBUF_INLINE) {
                        make_members(m, f->shape, path, only);
                        continue;
                }
                join(below, path, f->name);
                if (!only || only == f)
                        make_member(m, f, below);
        }
}

/* The text of one, to be freed; ret_paths may be NULL. */
static char *make(const ProtobufShape *shape, const char *kind, const char *without, bool alone,
                  char ***ret_paths) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        Maker m = { .without = without, .alone = alone };

        assert_return_code(json_writer_new(&w), 0);
        m.w = w;
        json_open_object(w, NULL);
        json_add_string(w, "kind", kind);
        make_members(&m, shape, "", NULL);
        json_close_object(w);
        if (ret_paths)
                *ret_paths = m.paths;
        else
                strv_free(m.paths);
        return MUST(json_writer_steal(w, NULL));
}

/* -- READ is what decoders look at ---------------------------------------------------------------------- */

typedef struct Row {
        const char *name;
        const KubeKind *kind;       /* NULL: a Status */
        const ProtobufShape *shape; /* without a kind */
        const char *elsewhere;      /* what others than the decoder look at */
} Row;

static void decode(const Row *row, const char *text) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_(api_error_done) ApiError e = { 0 };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        if (row->kind) {
                assert_return_code(json_parse(text, strlen(text), SIZE_MAX, &doc, NULL), 0);
                (void) kube_object_decode(row->kind, json_root(doc), pool, &o);
                o = kube_object_unref(o);
        } else
                assert_return_code(api_error_from_body(500, text, strlen(text), 0, &e), 0);
        forget_values();
}

/* Of APIs later than the list's: their numbers are not known here, so they are read where JSON comes. */
static bool is_later(const char *path) {
        return streq(path, "spec.workloadRef") || streq(path, "spec.schedulingGroup");
}

static void check_row(const Row *row) {
        const ProtobufShape *shape = row->kind ? row->kind->shape : row->shape;
        const char *kind = row->kind ? row->kind->kind : "Status";
        _cleanup_free_ char *whole = NULL;
        char **paths = NULL;

        print_message("%s\n", row->name);
        whole = make(shape, kind, NULL, true, &paths);
        decode(row, whole);
        for (size_t i = 0; paths[i]; i++) {
                _cleanup_free_ char *text = make(shape, kind, paths[i], true, NULL);

                decode(row, text);
        }
        for (size_t i = 0; i < strv_length(seen.asked); i++)
                if (!strv_contains(paths, seen.asked[i]) && !streq(seen.asked[i], "kind") &&
                    !streq(seen.asked[i], "apiVersion") && !is_later(seen.asked[i]))
                        fail_msg("The decoder of %s looks at %s, which is not READ in kube-field-list.h",
                                 row->name, seen.asked[i]);
        for (size_t i = 0; paths[i]; i++)
                if (!strv_contains(seen.asked, paths[i]) && !streq_ptr(paths[i], row->elsewhere))
                        fail_msg("%s of %s is READ in kube-field-list.h, but no decoder looks at it",
                                 paths[i], row->name);
        strv_free(paths);
        seen.asked = strv_free(seen.asked);
}

TEST_CASE(test_read_is_what_decoders_look_at) {
        static const Row rows[] = {
                { "Node", &kube_node_kind },
                { "Pod", &kube_pod_kind },
                { "a node's own Pod", &kube_own_pod_kind },
                { "PodDisruptionBudget", &kube_pdb_kind },
                { "VolumeAttachment", &kube_volume_attachment_kind },
                { "Namespace", &kube_namespace_kind },
                { "Pod, as scheduled", &kube_scheduled_pod_kind },
                { "Node, as scheduled", &kube_scheduled_node_kind },
                { "PersistentVolume", &kube_volume_kind },
                { "PersistentVolumeClaim", &kube_scheduled_claim_kind },
                { "StorageClass", &kube_storage_class_kind },
                { "CSINode", &kube_csi_node_kind },
                { "Status", NULL, &kube_shape_status, "code" }, /* informer.c: of an ERROR event */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                check_row(rows + i);
}

/* -- what is sent arrives ------------------------------------------------------------------------------- */

TEST_CASE(test_what_is_sent_arrives) {
        static const struct {
                const KubeKind *kind;
                FakeResourceId id;
        } rows[] = {
                { &kube_node_kind, FAKE_NODES },
                { &kube_pod_kind, FAKE_PODS },
                { &kube_own_pod_kind, FAKE_PODS },
                { &kube_pdb_kind, FAKE_PDBS },
                { &kube_volume_attachment_kind, FAKE_VOLUMEATTACHMENTS },
                { &kube_namespace_kind, FAKE_NAMESPACES },
                { &kube_scheduled_pod_kind, FAKE_PODS },
                { &kube_scheduled_node_kind, FAKE_NODES },
                { &kube_volume_kind, FAKE_PVS },
                { &kube_scheduled_claim_kind, FAKE_PVCS },
                { &kube_storage_class_kind, FAKE_STORAGECLASSES },
                { &kube_csi_node_kind, FAKE_CSINODES },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *sent = make(rows[i].kind->shape, NULL, NULL, false, NULL), *came = NULL;
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_cjson_ cJSON *object = MUST(cJSON_Parse(sent));
                _cleanup_strbuf_ StrBuf message = { 0 };

                fake_protobuf_add_message(&message, fake_resource(rows[i].id), object, false);
                assert_return_code(json_from_protobuf(message.data, message.size, SIZE_MAX,
                                                      rows[i].kind->shape, &doc, NULL),
                                   0);
                came = MUST(json_format(json_root(doc)));
                assert_string_equal(came, sent);
                forget_values();
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read_is_what_decoders_look_at),
                cmocka_unit_test(test_what_is_sent_arrives),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
