/* SPDX-License-Identifier: Apache-2.0 */
/* Each list has a generation: an entry that a list leaves with an older one is gone. */
#include "object-store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "string-util.h"

/* namespace (63) '/' name (253): the API server takes no longer ones for what we read. */
#define KEY_MAX (63 + 1 + 253 + 1)

typedef struct Entry {
        KubeObject *object;
        uint32_t generation; /* of the list that saw it last */
        char key[];
} Entry;

struct ObjectStore {
        const KubeKind *kind;
        InternPool *pool;
        Log *log;
        object_store_change_t on_change;
        void *userdata;

        Hashmap *entries; /* under their own keys */
        uint32_t generation;
        bool nameless; /* the list had an item that could be anything: it removes nothing */
        uint64_t undecodable;
};

/* For each event, so not printed. */
static int make_key(const char *ns, const char *name, char ret[KEY_MAX]) {
        size_t n_ns = strlen(strempty(ns)), n_name = strlen(strempty(name));
        char *p = ret;

        if (n_name == 0 || n_ns + (n_ns > 0) + n_name >= KEY_MAX)
                return -EINVAL;
        if (n_ns > 0) {
                p = mempcpy(p, ns, n_ns);
                *p++ = '/';
        }
        memcpy(p, name, n_name + 1);
        return 0;
}

/* Without decoding: for what cannot be, and what need not be. */
static int raw_key(const ObjectStore *s, const Json *object, char ret[KEY_MAX]) {
        const Json *meta = json_get(object, "metadata");

        return make_key(s->kind->namespaced ? json_string_or_null(json_get(meta, "namespace")) : NULL,
                        json_string_or_null(json_get(meta, "name")), ret);
}

static void *entry_free(void *value) {
        Entry *e = value;

        if (!e)
                return NULL;
        kube_object_unref(e->object);
        return mfree(e);
}

/* Consumes the reference on success. */
static int add_entry(ObjectStore *s, const char *key, KubeObject *o) {
        Entry *e = malloc(sizeof(Entry) + strlen(key) + 1);

        if (!e)
                return -ENOMEM;
        *e = (Entry){ .generation = s->generation };
        strcpy(e->key, key);
        if (hashmap_put(s->entries, e->key, e) < 0) {
                free(e);
                return -ENOMEM;
        }

        e->object = o;
        s->on_change(NULL, o, s->userdata);
        return 0;
}

static void remove_entry(ObjectStore *s, Entry *e) {
        hashmap_remove(s->entries, e->key);
        s->on_change(e->object, NULL, s->userdata);
        entry_free(e);
}

/* Consumes the reference on success. -EINVAL: its name is too long. */
static int apply_object(ObjectStore *s, KubeObject *o) {
        _cleanup_(kube_object_unrefp) KubeObject *old = NULL;
        char key[KEY_MAX];
        Entry *e;
        int r;

        r = make_key(o->meta.ns, o->meta.name, key);
        if (r < 0)
                return r;
        e = hashmap_get(s->entries, key);
        if (e && !streq_ptr(e->object->meta.uid, o->meta.uid)) {
                remove_entry(s, e);
                e = NULL;
        }
        if (!e)
                return add_entry(s, key, o);

        e->generation = s->generation;
        if (o->meta.resource_version &&
            streq_ptr(e->object->meta.resource_version, o->meta.resource_version)) {
                kube_object_unref(o);
                return 0;
        }
        old = e->object;
        e->object = o;
        s->on_change(old, o, s->userdata);
        return 0;
}

int object_store_take(ObjectStore *s, const Json *object) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        int r;

        assert(s);
        r = kube_object_decode(s->kind, object, s->pool, &o);
        if (r >= 0)
                r = apply_object(s, o);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                object_store_pass_over(s, object, "not such an object");
        else
                (void) TAKE_PTR(o);
        return 0;
}

void object_store_pass_over(ObjectStore *s, const Json *object, const char *why) {
        char key[KEY_MAX] = "";
        Entry *e = NULL;

        assert(s);
        s->undecodable++;
        if (raw_key(s, object, key) < 0)
                s->nameless = true;
        else
                e = hashmap_get(s->entries, key);
        if (e)
                e->generation = s->generation;
        log_debug(s->log, "One of %s ('%s') cannot be read, ignoring it: %s", s->kind->plural, key, why);
}

void object_store_take_deleted(ObjectStore *s, const Json *object) {
        const char *uid = json_string_or_null(json_path(object, "metadata", "uid", NULL));
        char key[KEY_MAX];
        Entry *e;

        assert(s);
        if (raw_key(s, object, key) < 0)
                return;
        e = hashmap_get(s->entries, key);
        if (e && (!uid || !e->object->meta.uid || streq(uid, e->object->meta.uid)))
                remove_entry(s, e);
}

void object_store_begin_list(ObjectStore *s) {
        assert(s);
        s->generation++;
        s->nameless = false;
}

void object_store_end_list(ObjectStore *s) {
        Entry *e;

        assert(s);
        if (s->nameless)
                return;
        HASHMAP_FOREACH (e, s->entries)
                if (e->generation != s->generation)
                        remove_entry(s, e);
}

int object_store_new(const KubeKind *kind, InternPool *pool, Log *log, object_store_change_t on_change,
                     void *userdata, ObjectStore **ret) {
        _cleanup_(object_store_freep) ObjectStore *s = NULL;
        int r;

        assert(kind && pool && on_change && ret);
        s = new0(ObjectStore, 1);
        if (!s)
                return -ENOMEM;
        s->kind = kind;
        s->pool = pool;
        s->log = log;
        s->on_change = on_change;
        s->userdata = userdata;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &s->entries);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

ObjectStore *object_store_free(ObjectStore *s) {
        if (!s)
                return NULL;
        hashmap_free_with(s->entries, entry_free);
        return mfree(s);
}

KubeObject *object_store_get(const ObjectStore *s, const char *ns, const char *name) {
        char key[KEY_MAX];
        Entry *e;

        if (make_key(s->kind->namespaced ? ns : NULL, name, key) < 0)
                return NULL;
        e = hashmap_get(s->entries, key);
        return e ? e->object : NULL;
}

size_t object_store_size(const ObjectStore *s) {
        return hashmap_size(s->entries);
}

bool object_store_iterate(const ObjectStore *s, HashmapIterator *it, KubeObject **ret) {
        void *value;

        if (!hashmap_iterate(s->entries, it, NULL, &value))
                return false;
        *ret = ((Entry *) value)->object;
        return true;
}

uint64_t object_store_undecodable(const ObjectStore *s) {
        return s->undecodable;
}
