/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What one process remembers of this boot: a handful of small named records. A seam: the real store is a folder under /run
 * (write to a temporary file, then rename), the simulated one loses what was not renamed, and everything at a boot.
 * Records are small and /run is memory, so calls are synchronous and wait for no device. A record survives the process; it
 * survives neither a boot nor a power cut, and nothing is synced.
 */

#include <stddef.h>

#include "macro.h"

#define STATE_RECORD_MAX_BYTES (64u * 1024u)

typedef struct StateStore StateStore;

typedef struct StateStoreOps {
        int (*read)(StateStore *s, const char *name, char **ret, size_t *ret_size);
        int (*write)(StateStore *s, const char *name, const void *data, size_t size);
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
/* 0: a process that starts after a crash of this one reads the new record. On failure the old one is still there whole. */
static inline int state_store_write(StateStore *s, const char *name, const void *data, size_t size) {
        return s->ops->write(s, name, data, size);
}
