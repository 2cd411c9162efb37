/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An index over the objects of an informer: outer key (a namespace, a node, a providerID) -> object key ->
 * object. An entry holds a reference to its object. The owner changes the index only in the informer's event,
 * so the two cannot disagree.
 */

#include "hashmap.h"
#include "kube-object.h"

typedef struct ObjectIndex {
        Hashmap *map; /* of Hashmap; NULL before object_index_init() */
} ObjectIndex;

/* 0 or -ENOMEM. */
int object_index_init(ObjectIndex *i);
void object_index_done(ObjectIndex *i); /* a zeroed one is fine */

/* Moves an object from the key where `old` stood to the key where `new` stands. old, new: NULL if the object was
 * just created or deleted; pass NULL as its outer key, too. An object whose outer key is NULL stands nowhere.
 * 0 or -ENOMEM: the index is then incomplete. */
int object_index_move(ObjectIndex *i, const char *old_outer, KubeObject *old, const char *new_outer, KubeObject *new);

/* Returns the objects with this outer key, by their own keys; NULL: there are none. Borrowed until the next
 * move. */
Hashmap *object_index_inner(const ObjectIndex *i, const char *outer);
bool object_index_iterate(const ObjectIndex *i, const char *outer, HashmapIterator *it, KubeObject **ret);
