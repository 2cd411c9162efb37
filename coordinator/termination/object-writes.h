/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes on API objects that a reconcile starts and does not wait for: at most one under way per key, and
 * none again for ten minutes on the very state on which one has already succeeded, since then the view only has
 * not caught up. When a write is answered, its reconcile key is dirty again: at once after a success, with backoff
 * after a failure. Urgent ones (a node is being removed) have a backoff of their own (100 ms to 10 s) however often
 * their key gets dirty. The log warns of urgent ones that fail, and of any that the API server
 * refuses as invalid (422): ten at once, then six a minute.
 */

#include "kube-client.h"
#include "work-queue.h"

typedef struct ObjectWrites ObjectWrites;

/* Longest time until the reconcile key of an unfinished write runs again. */
#define OBJECT_WRITES_WAKEUP_USEC (10 * USEC_PER_MINUTE)

/* After the answer (error NULL: success), before the key is marked. Borrowed for the callback. */
typedef void (*object_written_t)(const char *name, const ApiError *error, void *userdata);

typedef struct ObjectWrite {
        /* of this kind at most one under way for that object; a verb for people, before the object's kind and name: "take the
         * finalizer off" */
        const char *what;
        KubeTarget target;
        /* what it is decided on: a resourceVersion, or any text that changes with it */
        const char *state;
        const char *reconcile_key; /* "node/NAME" */
        /* reason of an error that means "it is so already": "AlreadyExists", or NULL */
        const char *also_fine;
        bool urgent;
        KubeRank rank; /* of an urgent one; others never are of the first. FOLLOWS goes over the bulk lane */
        object_written_t written; /* may be NULL */
        void *userdata;
} ObjectWrite;

/* Writes on what is in view of this kind are refused as decided on an old state, three in a row on the same one, so the view
 * is what is old. */
typedef void (*view_is_old_t)(const KubeKind *kind, void *userdata);

/* Client and queue are borrowed. */
int object_writes_new(KubeClient *c, WorkQueue *queue, HttpGuard guard, ObjectWrites **ret);
ObjectWrites *object_writes_free(ObjectWrites *w); /* calls under way are dropped */
DEFINE_FREEP(ObjectWrites, object_writes_free);

/* NULL (the default): nobody is told. */
void object_writes_set_view_is_old(ObjectWrites *w, view_is_old_t view_is_old, void *userdata);

/* May this write be sent now? False: one is under way, or it has been done on this state. */
bool object_writes_may(ObjectWrites *w, const ObjectWrite *o);
/* Was this (urgent) write refused, or not answered, when it was last tried? */
bool object_writes_failing(ObjectWrites *w, const ObjectWrite *o);
/* The object is gone: what was written on it need not be remembered. */
void object_writes_forget(ObjectWrites *w, const KubeKind *kind, const char *ns, const char *name);
/* Each asks object_writes_may() first. 1: sent; 0: not now; -ENOMEM (the key is marked for a retry). */
int object_writes_patch(ObjectWrites *w, const ObjectWrite *o, KubePatchType type, const char *body);
int object_writes_create(ObjectWrites *w, const ObjectWrite *o, const char *body);
/* Preconditions: uid, and resource_version unless NULL. */
int object_writes_delete(ObjectWrites *w, const ObjectWrite *o, const char *uid,
                         const char *resource_version);
/* Returns true if a write on the object is under way: its answer marks the key of the reconcile. */
bool object_writes_are_under_way(const ObjectWrites *w, const KubeKind *kind, const char *ns,
                                 const char *name);
