/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A snapshot from files: one that `vesperctl snapshot` wrote, or some that `kubectl get ... -o json` printed, which together
 * are one.
 */

#include "snapshot.h"

typedef struct SnapshotInputOptions {
        usec_t now_usec;  /* wall clock: of standard input, which has no time of its own */
        bool is_complete; /* what kubectl's lists have none of does not exist; else it is unknown */
} SnapshotInputOptions;

/* paths: "-" is standard input. Says on standard error what is wrong, and then is negative. *ret_notes: sentences, what was
 * passed over, what is unknown; the caller's. */
int snapshot_input(char *const *paths, const SnapshotInputOptions *options, InternPool *pool, Snapshot **ret, char ***ret_notes);
