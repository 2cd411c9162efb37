/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kube/: the Kubernetes client: credentials, calls, objects as vesper reads them, informers, leader election, Events,
 * selectors and quantities. Calls base .. metrics; called by drain/, agent/, coordinator/.
 *
 * An object is parsed once into a struct that holds what decisions read and nothing else (a pod is a few hundred bytes);
 * repeated texts (namespaces, label keys and values, owners, node names) are interned in the pool of the process. A value that
 * cannot be parsed does not make the whole object unreadable where that would hide it: the object is kept with `invalid` set to
 * a sentence: it fails closed, others go on.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "intern.h"
#include "json-protobuf.h"
#include "time-util.h"

typedef struct KeyValue {
        const char *key, *value; /* interned */
} KeyValue;

/* Sorted by key. */
typedef struct KeyValues {
        KeyValue *items;
        size_t n_items;
        bool unread; /* too many entries: none is kept, the object is invalid, and no selector matches. Kinds
                      * with label_kept() keep the protected labels instead, and unread stays false, unless
                      * these are too many themselves */
        bool is_cut; /* there were too many, and some or all are not here */
} KeyValues;

const char *key_values_get(const KeyValues *kv, const char *key); /* NULL if absent */
/* Whoever makes one: room for the items first, then each, then in order. -ENOMEM: the item is half there, for done(). */
int key_values_add(KeyValues *kv, InternPool *pool, const char *key, const char *value);
void key_values_sort(KeyValues *kv);
void key_values_done(KeyValues *kv, InternPool *pool); /* frees items, and what they have interned */
bool key_values_are_same(const KeyValues *a, const KeyValues *b); /* of objects of one pool, in the same order */

typedef struct OwnerRef {
        const char *api_version, *kind, *name; /* interned */
        char *uid;
        bool controller;
} OwnerRef;

typedef struct ObjectMeta {
        const char *ns; /* interned; NULL for cluster-scoped */
        char *name, *uid, *resource_version;
        int64_t generation;
        usec_t creation_usec;         /* wall clock */
        usec_t deletion_usec;         /* wall clock; 0: not being deleted. For pods it includes the grace */
        int64_t deletion_grace_sec;   /* -1: absent */
        KeyValues labels;
        KeyValues annotations;        /* only those the kind asks for: see KubeKind.annotation_wanted */
        OwnerRef *owners;
        size_t n_owners;
        char **finalizers;            /* NULL-terminated, in one allocation. All of a cluster-scoped object,
                                       * since a patch writes the list back; else DECODE_FINALIZERS_MAX */
} ObjectMeta;

typedef struct KubeObject KubeObject;
typedef struct KubeKind KubeKind;

struct KubeKind {
        const char *group;   /* "" for core */
        const char *version; /* "v1" */
        const char *plural;  /* "nodes" */
        const char *kind;    /* "Node" */
        bool namespaced;
        size_t size;         /* of the struct, which begins with KubeObject */
        /* Fills what follows the KubeObject; meta is already there. 0; -EINVAL with o->invalid set is still an object;
         * -ENOMEM. NULL: nothing follows. */
        int (*decode)(KubeObject *o, const Json *json, InternPool *pool);
        void (*done)(KubeObject *o, InternPool *pool); /* frees what decode() made; NULL: nothing */
        bool (*annotation_wanted)(const char *key);    /* NULL: none are kept */
        /* Returns true for labels to keep if an object has too many: those that only an administrator can
         * set. NULL: none. */
        bool (*label_kept)(const char *key);
        /* The parts that decode() never reads, most of a pod or a node. Informers read objects without them. */
        const JsonOmit *unread;
        size_t n_unread;
        /* The message of an object: what decode() and every object's metadata look at, and nothing else. Informers then ask
         * for protobuf, which costs the API server and us the least. NULL: there is JSON only (custom resources). */
        const ProtobufShape *shape;
};

struct KubeObject {
        const KubeKind *kind;
        InternPool *pool; /* borrowed; outlives the object */
        unsigned n_ref;   /* the store and whoever holds it across loop iterations */
        size_t kept_bytes; /* estimated memory of this object, without texts that it shares with others
                            * (intern_own_bytes()) */
        char *invalid;    /* NULL, or what could not be understood: "spec.terminationGracePeriod: '24x' is no duration" */
        ObjectMeta meta;
};

/* Decodes one object of that kind. -EINVAL if it has no metadata.name or is of another kind; -ENOMEM. One reference. */
int kube_object_decode(const KubeKind *kind, const Json *json, InternPool *pool, KubeObject **ret);
KubeObject *kube_object_ref(KubeObject *o);
KubeObject *kube_object_unref(KubeObject *o); /* returns NULL */
DEFINE_FREEP(KubeObject, kube_object_unref);
/* "namespace/name", or "name" for cluster-scoped: the key of stores and queues. Free it. NULL on ENOMEM. */
char *kube_object_key(const KubeObject *o);
/* Do two states of one kind and pool differ in nothing that every object has, but for their resourceVersion? */
bool kube_object_says_same(const KubeObject *a, const KubeObject *b);
/* The owner with controller=true, or NULL. */
const OwnerRef *object_meta_controller(const ObjectMeta *m);
bool object_meta_has_finalizer(const ObjectMeta *m, const char *finalizer);
const char *object_meta_annotation(const ObjectMeta *m, const char *key);
const char *object_meta_label(const ObjectMeta *m, const char *key);
/* Returns a merge patch (RFC 7386) that sets these annotations; value NULL: removes that one. Free it; NULL on ENOMEM. */
char *annotations_patch(const KeyValue *items, size_t n_items);
