/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-object.h"

#include "kube-decode.h"
#include "string-util.h"
#include "strv.h"

/* -- labels, annotations -------------------------------------------------------------------------------- */

static int key_value_compare(const void *a, const void *b) {
        return strcmp(((const KeyValue *) a)->key, ((const KeyValue *) b)->key);
}

const char *key_values_get(const KeyValues *kv, const char *key) {
        const KeyValue wanted = { .key = key }, *found;

        assert(kv);
        assert(key);
        if (kv->n_items == 0)
                return NULL;
        found = bsearch(&wanted, kv->items, kv->n_items, sizeof(KeyValue), key_value_compare);
        return found ? found->value : NULL;
}

int key_values_add(KeyValues *kv, InternPool *pool, const char *key, const char *value) {
        KeyValue *item = kv->items + kv->n_items++;

        *item = (KeyValue){ intern(pool, key), intern(pool, value) };
        return item->key && item->value ? 0 : -ENOMEM;
}

void key_values_sort(KeyValues *kv) {
        if (kv->n_items > 1)
                qsort(kv->items, kv->n_items, sizeof(KeyValue), key_value_compare);
}

void key_values_done(KeyValues *kv, InternPool *pool) {
        for (size_t i = 0; i < kv->n_items; i++) {
                intern_unref(pool, kv->items[i].key);
                intern_unref(pool, kv->items[i].value);
        }
        free(kv->items);
}

static size_t key_values_bytes(const KeyValues *kv) {
        size_t bytes = kv->n_items * sizeof(KeyValue);

        for (size_t i = 0; i < kv->n_items; i++)
                bytes += intern_own_bytes(kv->items[i].key) + intern_own_bytes(kv->items[i].value);
        return bytes;
}

static bool key_wanted(const char *key, bool all, bool (*wanted)(const char *key)) {
        return all || (wanted && wanted(key));
}

void decode_key_values(Decoder *d, const Json *v, const char *path, bool all, bool (*wanted)(const char *key),
                       KeyValues *kv) {
        size_t n = 0;

        if (!v || json_is_null(v))
                return;
        if (!json_is_object(v)) {
                decoder_invalid(d, "%s is no map", path);
                return;
        }
        JSON_FOREACH (i, v)
                n += key_wanted(json_key(i), all, wanted);
        if (n == 0)
                return;
        if (n > DECODE_KEY_VALUES_MAX) {
                kv->unread = kv->is_cut = true;
                decoder_invalid(d, "%s has more than %u entries", path, DECODE_KEY_VALUES_MAX);
                return;
        }

        kv->items = new0(KeyValue, n);
        if (!kv->items) {
                d->failed = true;
                return;
        }
        JSON_FOREACH (i, v) {
                if (!key_wanted(json_key(i), all, wanted))
                        continue;
                if (!json_is_string(i)) {
                        decoder_invalid(d, "a value in %s is no string", path);
                        continue;
                }
                if (key_values_add(kv, d->pool, json_key(i), json_string_or_null(i)) < 0) {
                        d->failed = true;
                        return;
                }
        }
        key_values_sort(kv);
}

/* A kubelet can remove every label that it can set. So dropping those of a Node with too many gives it no
 * new power. */
static void decode_labels(Decoder *d, const Json *v, const KubeKind *kind, KeyValues *kv) {
        bool all = !kind->label_kept || json_size(v) <= DECODE_KEY_VALUES_MAX;

        decode_key_values(d, v, "metadata.labels", all, kind->label_kept, kv);
        kv->is_cut |= !all;
        if (!all)
                decoder_invalid(d,
                                "metadata.labels has more than %u entries; only those that a kubelet cannot "
                                "set are read",
                                DECODE_KEY_VALUES_MAX);
}

/* -- metadata ------------------------------------------------------------------------------------------- */

static bool owner_is_too_large(const Json *v) {
        static const char *const members[] = { "apiVersion", "kind", "name", "uid" };
        size_t bytes = 0;

        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                bytes += strlen(strempty(json_string_or_null(json_get(v, members[i]))));
        return bytes > DECODE_OWNER_BYTES_MAX;
}

static void decode_owners(Decoder *d, const Json *v, ObjectMeta *m) {
        const Json *list = decode_array(d, v, "metadata.ownerReferences");

        m->owners = decode_room(d, list, "metadata.ownerReferences", DECODE_LIST_MAX, sizeof(OwnerRef));
        JSON_FOREACH (i, m->owners ? list : NULL) {
                OwnerRef *o = m->owners + m->n_owners;

                if (owner_is_too_large(i)) {
                        decoder_invalid(d, "an owner in metadata.ownerReferences has more than %u bytes",
                                        DECODE_OWNER_BYTES_MAX);
                        continue;
                }
                m->n_owners++;

                decode_interned(d, json_get(i, "apiVersion"), "metadata.ownerReferences.apiVersion",
                                &o->api_version);
                decode_interned(d, json_get(i, "kind"), "metadata.ownerReferences.kind", &o->kind);
                decode_interned(d, json_get(i, "name"), "metadata.ownerReferences.name", &o->name);
                decode_string(d, json_get(i, "uid"), "metadata.ownerReferences.uid", &o->uid);
                decode_bool(d, json_get(i, "controller"), "metadata.ownerReferences.controller",
                            &o->controller);
                if (!d->failed && (!o->api_version || !o->kind || !o->name))
                        decoder_invalid(
                                d, "an owner in metadata.ownerReferences has no apiVersion, kind or name");
        }
}

static void decode_meta(Decoder *d, const Json *v, const KubeKind *kind, ObjectMeta *m) {
        m->deletion_grace_sec = -1;
        decode_string(d, json_get(v, "name"), "metadata.name", &m->name);
        decode_interned(d, json_get(v, "namespace"), "metadata.namespace", &m->ns);
        decode_string(d, json_get(v, "uid"), "metadata.uid", &m->uid);
        decode_string(d, json_get(v, "resourceVersion"), "metadata.resourceVersion", &m->resource_version);
        decode_int64(d, json_get(v, "generation"), "metadata.generation", &m->generation);
        decode_time(d, json_get(v, "creationTimestamp"), "metadata.creationTimestamp", &m->creation_usec);
        decode_time(d, json_get(v, "deletionTimestamp"), "metadata.deletionTimestamp", &m->deletion_usec);
        decode_int64(d, json_get(v, "deletionGracePeriodSeconds"), "metadata.deletionGracePeriodSeconds",
                     &m->deletion_grace_sec);
        decode_labels(d, json_get(v, "labels"), kind, &m->labels);
        decode_key_values(d, json_get(v, "annotations"), "metadata.annotations", false,
                          kind->annotation_wanted, &m->annotations);
        decode_owners(d, json_get(v, "ownerReferences"), m);
        decode_names(d, json_get(v, "finalizers"), "metadata.finalizers", NULL,
                     kind->namespaced ? DECODE_FINALIZERS_MAX : SIZE_MAX, &m->finalizers);
}

static size_t meta_bytes(const ObjectMeta *m) {
        size_t bytes = m->n_owners * sizeof(OwnerRef);

        STRV_FOREACH (name, m->finalizers)
                bytes += sizeof(char *) + strlen(*name) + 1;
        for (size_t i = 0; i < m->n_owners; i++)
                bytes += intern_own_bytes(m->owners[i].api_version) + intern_own_bytes(m->owners[i].kind) +
                         intern_own_bytes(m->owners[i].name) + strlen(strempty(m->owners[i].uid));
        return bytes;
}

static void meta_done(ObjectMeta *m, InternPool *pool) {
        intern_unref(pool, m->ns);
        free(m->name);
        free(m->uid);
        free(m->resource_version);
        key_values_done(&m->labels, pool);
        key_values_done(&m->annotations, pool);
        for (size_t i = 0; i < m->n_owners; i++) {
                intern_unref(pool, m->owners[i].api_version);
                intern_unref(pool, m->owners[i].kind);
                intern_unref(pool, m->owners[i].name);
                free(m->owners[i].uid);
        }
        free(m->owners);
        free(m->finalizers);
}

/* -- object --------------------------------------------------------------------------------------------- */

static bool api_version_matches(const KubeKind *kind, const char *v) {
        const char *rest;

        if (isempty(kind->group))
                return streq(v, kind->version);
        rest = startswith(v, kind->group);
        return rest && *rest == '/' && streq(rest + 1, kind->version);
}

/* Items of a list name neither kind nor apiVersion; what is named must be right. */
static bool kind_matches(const KubeKind *kind, const Json *json) {
        const Json *k = json_get(json, "kind"), *v = json_get(json, "apiVersion");

        return (!k || streq_ptr(json_string_or_null(k), kind->kind)) &&
               (!v || (json_is_string(v) && api_version_matches(kind, json_string_or_null(v))));
}

int kube_object_decode(const KubeKind *kind, const Json *json, InternPool *pool, KubeObject **ret) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        Decoder d = { .pool = pool };
        const Json *meta;
        int r;

        assert(kind);
        assert(kind->size >= sizeof(KubeObject));
        assert(pool);
        assert(ret);

        meta = json_get(json, "metadata");
        if (!kind_matches(kind, json) || isempty(json_string_or_null(json_get(meta, "name"))))
                return -EINVAL;

        d.object = o = calloc(1, kind->size);
        if (!o)
                return -ENOMEM;

        o->kind = kind;
        o->pool = pool;
        o->n_ref = 1;
        decode_meta(&d, meta, kind, &o->meta);
        if (kind->namespaced && !o->meta.ns && !d.failed)
                decoder_invalid(&d, "metadata.namespace is missing");
        if (d.failed)
                return -ENOMEM;

        r = kind->decode ? kind->decode(o, json, pool) : 0;
        if (r < 0 && !(r == -EINVAL && o->invalid))
                return r;
        o->kept_bytes += kind->size + key_values_bytes(&o->meta.labels) +
                         key_values_bytes(&o->meta.annotations) + meta_bytes(&o->meta);
        *ret = TAKE_PTR(o);
        return 0;
}

KubeObject *kube_object_ref(KubeObject *o) {
        assert(o);
        assert(o->n_ref > 0);
        o->n_ref++;
        return o;
}

KubeObject *kube_object_unref(KubeObject *o) {
        if (!o)
                return NULL;

        assert(o->n_ref > 0);
        if (--o->n_ref > 0)
                return NULL;

        if (o->kind->done)
                o->kind->done(o, o->pool);
        meta_done(&o->meta, o->pool);
        free(o->invalid);
        free(o);
        return NULL;
}

/* Once for each event, so not printed. */
char *kube_object_key(const KubeObject *o) {
        size_t n_ns, n_name;
        char *key;

        assert(o);
        if (!o->meta.ns)
                return strdup(o->meta.name);
        n_ns = strlen(o->meta.ns);
        n_name = strlen(o->meta.name) + 1;
        key = malloc(n_ns + 1 + n_name);
        if (!key)
                return NULL;
        memcpy(key, o->meta.ns, n_ns);
        key[n_ns] = '/';
        memcpy(key + n_ns + 1, o->meta.name, n_name);
        return key;
}

/* Interned by one pool: the same text is the same pointer. */
bool key_values_are_same(const KeyValues *a, const KeyValues *b) {
        if (a->n_items != b->n_items || a->is_cut != b->is_cut || a->unread != b->unread)
                return false;
        for (size_t i = 0; i < a->n_items; i++)
                if (a->items[i].key != b->items[i].key || a->items[i].value != b->items[i].value)
                        return false;
        return true;
}

static bool owners_are_same(const ObjectMeta *a, const ObjectMeta *b) {
        if (a->n_owners != b->n_owners)
                return false;
        for (size_t i = 0; i < a->n_owners; i++) {
                const OwnerRef *x = a->owners + i, *y = b->owners + i;

                if (x->api_version != y->api_version || x->kind != y->kind || x->name != y->name ||
                    x->controller != y->controller || !streq_ptr(x->uid, y->uid))
                        return false;
        }
        return true;
}

bool kube_object_says_same(const KubeObject *a, const KubeObject *b) {
        const ObjectMeta *x = &a->meta, *y = &b->meta;

        assert(a->kind == b->kind && a->pool == b->pool);
        return x->ns == y->ns && streq_ptr(x->name, y->name) && streq_ptr(x->uid, y->uid) &&
               x->generation == y->generation && x->creation_usec == y->creation_usec &&
               x->deletion_usec == y->deletion_usec && x->deletion_grace_sec == y->deletion_grace_sec &&
               key_values_are_same(&x->labels, &y->labels) &&
               key_values_are_same(&x->annotations, &y->annotations) && owners_are_same(x, y) &&
               strv_equal(x->finalizers, y->finalizers) && streq_ptr(a->invalid, b->invalid);
}

const OwnerRef *object_meta_controller(const ObjectMeta *m) {
        assert(m);
        for (size_t i = 0; i < m->n_owners; i++)
                if (m->owners[i].controller)
                        return m->owners + i;
        return NULL;
}

bool object_meta_has_finalizer(const ObjectMeta *m, const char *finalizer) {
        assert(m);
        return strv_contains(m->finalizers, finalizer);
}

const char *object_meta_annotation(const ObjectMeta *m, const char *key) {
        assert(m);
        return key_values_get(&m->annotations, key);
}

const char *object_meta_label(const ObjectMeta *m, const char *key) {
        assert(m);
        return key_values_get(&m->labels, key);
}

char *annotations_patch(const KeyValue *items, size_t n_items) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_open_object(w, "annotations");
        for (size_t i = 0; i < n_items; i++)
                if (items[i].value)
                        json_add_string(w, items[i].key, items[i].value);
                else
                        json_add_null(w, items[i].key);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}
