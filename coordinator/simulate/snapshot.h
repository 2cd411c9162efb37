/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * simulate/: what would happen if these nodes went. Pure: a snapshot in, a verdict out; no clock, no randomness, no I/O,
 * and the room links nothing that has them. Calls base, json and kube's objects; called by whoever removes nodes, and by
 * vesperctl.
 *
 *      snapshot.h       the objects of one moment
 *      snapshot-file.h  the same as bytes; snapshot-anonymize.h: with made-up names, to be shown to others
 *      pod-template.h   what the scheduler reads of a pod, parsed once for all pods that have it in common
 *      simulator.h      room, domains and counts of a cluster, and pods that are placed and taken back
 *      fit-*.c          kube-scheduler's filters, one a file; seat-search.c, the nodes that they leave
 *      simulate.h       the verdict about a set of nodes
 *
 * snapshot.c: the objects of one moment by kind and key. A reference of its own on each.
 */

#include "hashmap.h"
#include "kube-scheduling.h"

typedef enum SnapshotKind {
        SNAPSHOT_NODES,
        SNAPSHOT_PODS,
        SNAPSHOT_PDBS,
        SNAPSHOT_VOLUME_CLAIMS,
        SNAPSHOT_VOLUMES,
        SNAPSHOT_STORAGE_CLASSES,
        SNAPSHOT_CSI_NODES,
        SNAPSHOT_NAMESPACES,
        SNAPSHOT_NODE_POOLS,
        SNAPSHOT_NODE_CLAIMS,
        SNAPSHOT_NODE_BUDGETS,
        _SNAPSHOT_KIND_MAX,
        _SNAPSHOT_KIND_INVALID = -EINVAL,
} SnapshotKind;

/* The kind by which objects of it are decoded. */
const KubeKind *snapshot_kube_kind(SnapshotKind kind);
/* By apiVersion and kind of an object; _SNAPSHOT_KIND_INVALID: a snapshot has none of these. */
SnapshotKind snapshot_kind_of(const char *api_version, const char *kind);

typedef struct Snapshot {
        InternPool *pool;                      /* borrowed; of all its objects */
        usec_t taken_usec;                     /* wall clock: the moment of which it is */
        Hashmap *objects[_SNAPSHOT_KIND_MAX];  /* key of the object ("ns/name") -> KubeObject, a reference each */
        bool is_known[_SNAPSHOT_KIND_MAX];     /* false: objects of that kind were not read; what depends on them is unmovable */
} Snapshot;

int snapshot_new(InternPool *pool, usec_t taken_usec, Snapshot **ret);
Snapshot *snapshot_free(Snapshot *s);
DEFINE_FREEP(Snapshot, snapshot_free);
/* Puts or replaces, by kind and key; takes a reference of its own. -ENOMEM. Makes the kind known. */
int snapshot_put(Snapshot *s, SnapshotKind kind, KubeObject *object);
/* Drops the objects of the kind, which is not known then. */
void snapshot_forget(Snapshot *s, SnapshotKind kind);
KubeObject *snapshot_get(const Snapshot *s, SnapshotKind kind, const char *key); /* NULL: there is none; borrowed */
/* All of a kind, sorted by key: an array of borrowed objects for the caller to free. -ENOMEM. */
int snapshot_sorted(const Snapshot *s, SnapshotKind kind, KubeObject ***ret, size_t *ret_n);
