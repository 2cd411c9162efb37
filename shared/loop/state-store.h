/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Durable state of one process: a handful of small named records. A seam: the real one is a folder (write to a temporary
 * file, fsync, rename, fsync of the folder), the simulated one loses what was not synced and can be told to fail, to hang or
 * to cut a write in two. Records are small and the disk is local, so calls answer at once or not at all: the patient store
 * (state-store-patient.c) bounds how long a caller waits for a disk that hangs. Callers never do it on the way to the first
 * act of an interruption.
 */

#include <stddef.h>

#include "loop.h"
#include "macro.h"

#define STATE_RECORD_MAX_BYTES (64u * 1024u)
/* The answer is late: see state_store_on_settled(). No file system answers this, as ETIMEDOUT is NFS's too. */
#define STATE_LATE (-EINPROGRESS)

typedef struct StateStore StateStore;

typedef enum StateCall { STATE_READ, STATE_WRITE, STATE_REMOVE } StateCall;

/* How a call that was late has ended. */
typedef struct StateSettled {
        StateCall call;
        const char *name;
        int result;       /* what the call would have answered in time */
        const char *data; /* of a read; borrowed */
        size_t size;
} StateSettled;

typedef void (*state_store_settled_t)(const StateSettled *s, void *userdata);

typedef struct StateStoreOps {
        int (*read)(StateStore *s, const char *name, char **ret, size_t *ret_size);
        int (*write)(StateStore *s, const char *name, const void *data, size_t size);
        int (*remove)(StateStore *s, const char *name);
        void (*free)(StateStore *s);
} StateStoreOps;

struct StateStore {
        const StateStoreOps *ops;
        state_store_settled_t on_settled;
        void *settled_userdata;
};

int state_store_new_directory(const char *path, StateStore **ret); /* made with mode 0700 if absent; never late */
StateStore *state_store_free(StateStore *s);
DEFINE_FREEP(StateStore, state_store_free);

/* How a patient store opens the one that it looks after, in its own thread. */
typedef int (*state_store_open_t)(const char *path, StateStore **ret);

typedef struct StatePatience {
        usec_t read_usec;   /* for the opening, and for each read */
        usec_t change_usec; /* for each write and remove, and for what is still under way when the store is freed */
} StatePatience;
#define STATE_READ_PATIENCE_USEC (2 * USEC_PER_SEC)
#define STATE_CHANGE_PATIENCE_USEC (200 * USEC_PER_MSEC)

/* A store whose calls go through one thread, so that a disk that hangs holds up its caller for a bound time: see the file's top. The
 * loop is a real one, and outlives it; patience NULL: the two above. Answers as `open` does, or 0 if that is late (then so is each
 * call until it has ended). */
int state_store_new_patient(Loop *loop, const char *path, state_store_open_t open, const StatePatience *patience,
                            StateStore **ret);

/* -ENOENT if there is none, -E2BIG past STATE_RECORD_MAX_BYTES; a NUL stands behind *ret. Names: [a-z0-9.-]+.
 * STATE_LATE: nothing is read yet. */
static inline int state_store_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        return s->ops->read(s, name, ret, ret_size);
}
/* On return 0 the record survives a power cut; on failure the old one is still there whole. STATE_LATE: either may be what a
 * crash leaves; it is written when the disk answers, unless a later change of that record has taken its place. */
static inline int state_store_write(StateStore *s, const char *name, const void *data, size_t size) {
        return s->ops->write(s, name, data, size);
}
/* 0 also if there was none. STATE_LATE as above. */
static inline int state_store_remove(StateStore *s, const char *name) {
        return s->ops->remove(s, name);
}
/* Called from the loop, never inside a call, for each that was late, in the order in which they were asked for; a change of a record is
 * told only if none was asked for since. It may call the store, and not free it. NULL: nobody listens. */
static inline void state_store_on_settled(StateStore *s, state_store_settled_t fn, void *userdata) {
        s->on_settled = fn;
        s->settled_userdata = userdata;
}
