/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Durable state of one process: a handful of small named records. A seam: the real one is a folder (write to a temporary
 * file, fsync, rename, fsync of the folder), the simulated one loses what was not synced and can be told to fail or to
 * cut a write in two. Synchronous: records are small and the disk is local; callers never do it on the way to the first
 * act of an interruption.
 */

#include <stddef.h>

#include "macro.h"

#define STATE_RECORD_MAX_BYTES (64u * 1024u)

typedef struct StateStore StateStore;

typedef struct StateStoreOps {
        int (*read)(StateStore *s, const char *name, char **ret, size_t *ret_size);
        int (*write)(StateStore *s, const char *name, const void *data, size_t size);
        int (*remove)(StateStore *s, const char *name);
        void (*free)(StateStore *s);
} StateStoreOps;

struct StateStore {
        const StateStoreOps *ops;
};

int state_store_new_directory(const char *path, StateStore **ret); /* made with mode 0700 if absent */
StateStore *state_store_free(StateStore *s);
DEFINE_FREEP(StateStore, state_store_free);

/* -ENOENT if there is none, -E2BIG past STATE_RECORD_MAX_BYTES; a NUL stands behind *ret. Names: [a-z0-9.-]+. */
static inline int state_store_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        return s->ops->read(s, name, ret, ret_size);
}
/* On return 0 the record survives a power cut; on failure the old one is still there whole. */
static inline int state_store_write(StateStore *s, const char *name, const void *data, size_t size) {
        return s->ops->write(s, name, data, size);
}
/* 0 also if there was none. */
static inline int state_store_remove(StateStore *s, const char *name) {
        return s->ops->remove(s, name);
}
