/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include "alloc-util.h"
#include "string-util.h"

const KubeKind *snapshot_kube_kind(SnapshotKind kind) {
        static const KubeKind *const kinds[_SNAPSHOT_KIND_MAX] = {
                [SNAPSHOT_NODES] = &kube_scheduled_node_kind,
                [SNAPSHOT_PODS] = &kube_scheduled_pod_kind,
                [SNAPSHOT_PDBS] = &kube_pdb_kind,
                [SNAPSHOT_VOLUME_CLAIMS] = &kube_scheduled_claim_kind,
                [SNAPSHOT_VOLUMES] = &kube_volume_kind,
                [SNAPSHOT_STORAGE_CLASSES] = &kube_storage_class_kind,
                [SNAPSHOT_CSI_NODES] = &kube_csi_node_kind,
                [SNAPSHOT_NAMESPACES] = &kube_namespace_kind,
                [SNAPSHOT_NODE_POOLS] = &kube_node_pool_kind,
                [SNAPSHOT_NODE_CLAIMS] = &kube_node_claim_kind,
                [SNAPSHOT_NODE_BUDGETS] = &kube_node_budget_kind,
        };

        assert(kind >= 0 && kind < _SNAPSHOT_KIND_MAX);
        return kinds[kind];
}

static bool says_version(const KubeKind *kind, const char *api_version) {
        const char *version = *kind->group ? startswith(api_version, kind->group) : api_version;

        if (*kind->group)
                version = version && *version == '/' ? version + 1 : NULL;
        return streq_ptr(version, kind->version);
}

SnapshotKind snapshot_kind_of(const char *api_version, const char *kind) {
        assert(api_version);
        assert(kind);
        for (SnapshotKind i = 0; i < _SNAPSHOT_KIND_MAX; i++) {
                const KubeKind *k = snapshot_kube_kind(i);

                if (streq(k->kind, kind) && says_version(k, api_version))
                        return i;
        }
        return _SNAPSHOT_KIND_INVALID;
}

int snapshot_new(InternPool *pool, usec_t taken_usec, Snapshot **ret) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;

        assert(pool);
        assert(ret);
        s = new0(Snapshot, 1);
        if (!s)
                return -ENOMEM;
        s->pool = pool;
        s->taken_usec = taken_usec;
        for (SnapshotKind i = 0; i < _SNAPSHOT_KIND_MAX; i++) {
                int r = hashmap_new(0, &s->objects[i]);

                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(s);
        return 0;
}

static void *unref_value(void *value) {
        return kube_object_unref(value);
}

Snapshot *snapshot_free(Snapshot *s) {
        if (!s)
                return NULL;
        for (SnapshotKind i = 0; i < _SNAPSHOT_KIND_MAX; i++)
                hashmap_free_with(s->objects[i], unref_value);
        return mfree(s);
}

int snapshot_put(Snapshot *s, SnapshotKind kind, KubeObject *object) {
        _cleanup_free_ char *key = NULL;
        void *old = NULL;
        int r;

        assert(s);
        assert(object);
        assert(object->kind == snapshot_kube_kind(kind));
        assert(object->pool == s->pool);

        key = kube_object_key(object);
        if (!key)
                return -ENOMEM;
        r = hashmap_replace(s->objects[kind], key, object, &old);
        if (r < 0)
                return r;
        kube_object_ref(object);
        kube_object_unref(old);
        s->is_known[kind] = true;
        return 0;
}

void snapshot_forget(Snapshot *s, SnapshotKind kind) {
        KubeObject *o;
        const char *key;

        assert(s);
        while ((o = hashmap_first(s->objects[kind], &key))) {
                hashmap_remove(s->objects[kind], key);
                kube_object_unref(o);
        }
        s->is_known[kind] = false;
}

KubeObject *snapshot_get(const Snapshot *s, SnapshotKind kind, const char *key) {
        assert(s);
        return hashmap_get(s->objects[kind], key);
}

typedef struct Keyed {
        const char *key;
        KubeObject *object;
} Keyed;

static int keyed_compare(const void *a, const void *b) {
        return strcmp(((const Keyed *) a)->key, ((const Keyed *) b)->key);
}

int snapshot_sorted(const Snapshot *s, SnapshotKind kind, KubeObject ***ret, size_t *ret_n) {
        _cleanup_free_ Keyed *sorted = NULL;
        HashmapIterator i = { 0 };
        KubeObject **objects;
        size_t n = 0, size;

        assert(s);
        assert(ret && ret_n);
        size = hashmap_size(s->objects[kind]);
        sorted = new0(Keyed, size + 1);
        objects = new0(KubeObject *, size + 1);
        if (!sorted || !objects) {
                free(objects);
                return -ENOMEM;
        }
        while (hashmap_iterate(s->objects[kind], &i, &sorted[n].key, (void **) &sorted[n].object))
                n++;
        qsort(sorted, n, sizeof(*sorted), keyed_compare);
        for (size_t k = 0; k < n; k++)
                objects[k] = sorted[k].object;
        *ret = objects;
        *ret_n = n;
        return 0;
}
