/* SPDX-License-Identifier: Apache-2.0 */
#include "object-index.h"

#include <errno.h>

#include "string-util.h"

static void *inner_free(void *p) {
        Hashmap *inner = p;
        KubeObject *o;

        HASHMAP_FOREACH (o, inner)
                kube_object_unref(o);
        return hashmap_free(inner);
}

Hashmap *object_index_inner(const ObjectIndex *i, const char *outer) {
        return outer ? hashmap_get(i->map, outer) : NULL;
}

static int index_remove(ObjectIndex *i, const char *outer, const KubeObject *o) {
        _cleanup_free_ char *key = kube_object_key(o);
        Hashmap *inner = object_index_inner(i, outer);

        if (!inner)
                return 0;
        if (!key)
                return -ENOMEM;
        kube_object_unref(hashmap_remove(inner, key));
        if (hashmap_size(inner) == 0) {
                hashmap_remove(i->map, outer);
                hashmap_free(inner);
        }
        return 0;
}

/* Replaces an older state of the same object. */
static int index_put(ObjectIndex *i, const char *outer, KubeObject *o) {
        _cleanup_free_ char *key = kube_object_key(o);
        Hashmap *inner;
        void *old = NULL;
        int r;

        if (!outer)
                return 0;
        if (!key)
                return -ENOMEM;
        inner = hashmap_get(i->map, outer);
        if (!inner) {
                r = hashmap_new(0, &inner);
                if (r < 0)
                        return r;
                r = hashmap_put(i->map, outer, inner);
                if (r < 0) {
                        hashmap_free(inner);
                        return r;
                }
        }
        r = hashmap_replace(inner, key, o, &old);
        if (r < 0)
                return r;
        kube_object_ref(o);
        kube_object_unref(old);
        return 0;
}

int object_index_init(ObjectIndex *i) {
        return hashmap_new(0, &i->map);
}

void object_index_done(ObjectIndex *i) {
        hashmap_free_with(i->map, inner_free);
        i->map = NULL;
}

int object_index_move(ObjectIndex *i, const char *old_outer, KubeObject *old, const char *new_outer, KubeObject *new) {
        int r = 0;

        if (old && !streq_ptr(old_outer, new_outer))
                r = index_remove(i, old_outer, old);
        if (new && r >= 0)
                r = index_put(i, new_outer, new);
        return r;
}

bool object_index_iterate(const ObjectIndex *i, const char *outer, HashmapIterator *it, KubeObject **ret) {
        return hashmap_iterate(object_index_inner(i, outer), it, NULL, (void **) ret);
}
