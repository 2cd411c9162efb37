/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads all that a snapshot holds, with a person's own credential: a list per kind, in pages, all at once. A kind that may not be
 * read is unknown, and said; one that is not installed (of vesper's own) is known to have no objects.
 */

#include "kube-client.h"
#include "snapshot.h"

typedef struct SnapshotFetch SnapshotFetch;

/* message: for a person, why there is no snapshot; NULL: there is one, the caller's from here on. unknown: sentences, borrowed. */
typedef void (*snapshot_fetched_t)(const char *message, Snapshot *snapshot, char *const *unknown, void *userdata);

typedef struct SnapshotFetchOptions {
        bool progress; /* on standard error: how many of which kind there are */
} SnapshotFetchOptions;

int snapshot_fetch_new(KubeClient *c, const SnapshotFetchOptions *options, snapshot_fetched_t done, void *userdata,
                       SnapshotFetch **ret);
SnapshotFetch *snapshot_fetch_free(SnapshotFetch *f);
DEFINE_FREEP(SnapshotFetch, snapshot_fetch_free);
