/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The objects of one kind, each as the server said last, by namespace and name. An informer fills one from lists
 * and watches; what the store holds stays without either.
 *
 * A list has a beginning and an end: what was neither listed nor watched in between is gone at its end. An
 * object that cannot be decoded is counted and passed over: what was known of that name stays. If an item of the
 * list has not even a name, it could be any of them, so that list removes nothing.
 */

#include "hashmap.h"
#include "kube-object.h"
#include "log.h"

typedef struct ObjectStore ObjectStore;

/* old NULL: added; new NULL: removed; both are borrowed. The store may not be freed inside. */
typedef void (*object_store_change_t)(KubeObject *old, KubeObject *new, void *userdata);

/* kind, pool and log are borrowed. -ENOMEM. */
int object_store_new(const KubeKind *kind, InternPool *pool, Log *log, object_store_change_t on_change,
                     void *userdata, ObjectStore **ret);
ObjectStore *object_store_free(ObjectStore *s); /* the objects are released without a change being told */
DEFINE_FREEP(ObjectStore, object_store_free);

/* A list begins, and the one before it, if it did not end, counts for nothing. */
void object_store_begin_list(ObjectStore *s);
void object_store_end_list(ObjectStore *s);

/* One object as the server has it now. 0, also if it was passed over; -ENOMEM. Another uid under a known name is
 * one object removed and another added; the same resourceVersion is no change. */
int object_store_take(ObjectStore *s, const Json *object);
/* There is such an object, but what it is cannot be told. object NULL: nor whose. why: for the log. */
void object_store_pass_over(ObjectStore *s, const Json *object, const char *why);
/* The object is deleted. Another uid than the known one is that of its predecessor: nothing happens. */
void object_store_take_deleted(ObjectStore *s, const Json *object);

KubeObject *object_store_get(const ObjectStore *s, const char *ns, const char *name); /* borrowed; NULL if absent */
size_t object_store_size(const ObjectStore *s);
bool object_store_iterate(const ObjectStore *s, HashmapIterator *it, KubeObject **ret);
uint64_t object_store_undecodable(const ObjectStore *s); /* passed over since the start */
