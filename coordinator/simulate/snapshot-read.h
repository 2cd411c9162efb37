/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files that read snapshots. */

#include "snapshot.h"

#define SNAPSHOT_MAGIC "vesperSnapshot"

/* -EBADMSG with the sentence in *reterr, or -ENOMEM. */
int snapshot_refuse(char **reterr, const char *fmt, ...) _printf_(2, 3);
/* Puts one object. where: "line 7", for a sentence. -EBADMSG: it has no name, or without `replace` is there already. */
int snapshot_read_object(Snapshot *s, const Json *json, SnapshotKind kind, bool replace, const char *where, char **reterr);
