/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What etcd and the watch cache are: objects by resource, in the order of their keys, one global
 * resourceVersion, and a bounded history of each resource for watches and for lists of the past.
 *
 * Every state of an object is an immutable, counted FakeVersion. Objects are kept without apiVersion and
 * kind (a built-in list leaves them out of its items, everything else writes them in front);
 * metadata.resourceVersion is set here.
 */

#include "fake-json.h"
#include "fake-resource.h"
#include "loop.h"

typedef struct FakeStore FakeStore;
typedef struct FakeBackup FakeBackup;

typedef struct FakeVersion {
        unsigned n_ref;
        uint64_t rv;
        cJSON *json;
        char *text; /* printed once wanted */
        char *message; /* in protobuf, the same */
        size_t message_size;
        bool looked, ready, going; /* fake_version_health() */
} FakeVersion;

typedef enum FakeHealth { FAKE_UNREADY, FAKE_READY, FAKE_GOING } FakeHealth;

/* One write. Created: old NULL. Deleted: new NULL, and `gone` is the last state with the version of the
 * deletion. */
typedef struct FakeChange {
        const FakeResource *resource;
        uint64_t rv;
        FakeVersion *old, *new, *gone;
} FakeChange;

/* Called inside the write: mark and arm timers, do not write. */
typedef void (*fake_store_observer_t)(const FakeChange *change, void *userdata);

/* history: changes kept per resource; 0: 50,000. */
FakeStore *fake_store_new(Loop *loop, size_t history);
FakeStore *fake_store_free(FakeStore *s);
DEFINE_FREEP(FakeStore, fake_store_free);

FakeVersion *fake_version_ref(FakeVersion *v);
FakeVersion *fake_version_unref(FakeVersion *v);
DEFINE_FREEP(FakeVersion, fake_version_unref);
/* The object as the API shows it: with kind and apiVersion in front. `text` of the version is without. */
char *fake_version_print(const FakeResource *r, FakeVersion *v);
const char *fake_version_text(FakeVersion *v);
/* The same in protobuf, of a resource that has it (fake-protobuf.h). Some are of a later API than ours. */
const char *fake_version_message(const FakeResource *r, FakeVersion *v, size_t *ret_size);
/* Of a pod: being deleted, else whether its condition Ready is True. Looked up once: budgets ask for all
 * their pods each time that one of them changes. */
FakeHealth fake_version_health(FakeVersion *v);
static inline const cJSON *fake_version_json(const FakeVersion *v) {
        return v ? v->json : NULL;
}

Loop *fake_store_loop(const FakeStore *s);
uint64_t fake_store_rv(const FakeStore *s);
/* Now, as metadata.creationTimestamp has it. */
const char *fake_store_timestamp(const FakeStore *s, char ret[RFC3339_MAX]);

/* ns NULL or "": cluster-scoped. Borrowed until the next write; NULL if absent. */
FakeVersion *fake_store_version(const FakeStore *s, FakeResourceId id, const char *ns, const char *name);
const cJSON *fake_store_get(const FakeStore *s, FakeResourceId id, const char *ns, const char *name);
/* Takes the object, which must have its name and namespace in metadata. Creating what is there, or updating
 * what is not, is a bug of the caller. An update that changes nothing is none: no version, no event. Returns
 * the state now, borrowed. */
FakeVersion *fake_store_create(FakeStore *s, FakeResourceId id, cJSON *object);
FakeVersion *fake_store_update(FakeStore *s, FakeResourceId id, cJSON *object);
/* True if it was there. */
bool fake_store_delete(FakeStore *s, FakeResourceId id, const char *ns, const char *name);
void fake_store_observe(FakeStore *s, fake_store_observer_t observer, void *userdata);

/* In the order of keys ("ns/name" byte by byte). The n-th, or NULL past the end. */
size_t fake_store_size(const FakeStore *s, FakeResourceId id);
FakeVersion *fake_store_at(const FakeStore *s, FakeResourceId id, size_t i);
/* Index of the first whose key is not below "ns/name" (name may be "": the namespace's first). */
size_t fake_store_lower_bound(const FakeStore *s, FakeResourceId id, const char *ns, const char *name);
/* For each object of a namespace (NULL: of all). Writing ends the validity of the walk. */
#define FAKE_STORE_FOREACH(object, s, id, ns) \
        for (size_t _i_##object = fake_store_first((s), (id), (ns)); \
             ((object) = fake_store_in_ns((s), (id), (ns), _i_##object)); _i_##object++)
size_t fake_store_first(const FakeStore *s, FakeResourceId id, const char *ns);
const cJSON *fake_store_in_ns(const FakeStore *s, FakeResourceId id, const char *ns, size_t i);

/* The n-th pod bound to that node, of that owner (by uid), in the order of keys; NULL past the last. Cheap in clusters of
 * any size. */
FakeVersion *fake_store_node_pod(const FakeStore *s, const char *node, size_t n);
FakeVersion *fake_store_owned_pod(const FakeStore *s, const char *uid, size_t n);
#define FAKE_STORE_FOREACH_NODE_POD(object, s, node) \
        for (size_t _i_##object = 0; ((object) = fake_version_json(fake_store_node_pod((s), (node), _i_##object))); \
             _i_##object++)

/* -- the past ------------------------------------------------------------------------------------------ */

/* Nothing at or before this version can be had any more (a watch may begin from it, though). */
uint64_t fake_store_compacted(const FakeStore *s, FakeResourceId id);
/* Forgets the whole history: what is now is all that can be listed; watches from before get 410. */
void fake_store_compact(FakeStore *s);
/* What an etcd has at this moment, and that again. The version goes back, too, or, where bump is not 0, lies so far
 * beyond the backup's (etcdutl snapshot restore --bump-revision= --mark-compacted); no history is left. Observers
 * are told of each object that is not what it was as of one that goes and another that comes: nobody writes that,
 * and no watch may tell it (fake_cluster_restore()). */
FakeBackup *fake_store_backup(const FakeStore *s);
FakeBackup *fake_backup_free(FakeBackup *b);
DEFINE_FREEP(FakeBackup, fake_backup_free);
void fake_store_restore(FakeStore *s, const FakeBackup *b, uint64_t bump);
/* So many writes of things that nobody here knows. */
void fake_store_skip(FakeStore *s, uint64_t n);
/* The changes of a resource after `rv`, oldest first: index of the first, and access. */
size_t fake_store_changes_after(const FakeStore *s, FakeResourceId id, uint64_t rv);
const FakeChange *fake_store_change(const FakeStore *s, FakeResourceId id, size_t i);
/* All objects as they were at rv (> compacted): an array of n references to be freed with
 * fake_versions_free(). */
FakeVersion **fake_store_snapshot(const FakeStore *s, FakeResourceId id, uint64_t rv, size_t *ret_n);
void fake_versions_free(FakeVersion **v, size_t n);

/* "ns/name" or "name" of an object; free it. */
char *fake_object_key(const cJSON *object);
