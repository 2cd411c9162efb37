/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands on a NodePool: our finalizer, how many nodes it has and how many of them go, and in conditions
 * what is wrong with it: it cannot be understood (Invalid), quarrels with another about a node
 * (Conflicting), selects nodes that cannot be adopted (NodesNotAdopted), sets fields that this release
 * does nothing about (FieldsNotActedOn), has nodes with notices that the brake of the queue holds (InterruptionsHeld: queue-brake.h), or has nodes that wait to be
 * repaired (RepairHeld: repair/). What is
 * wrong is told in an Event, too, once. Ready, Progressing and Stalled are for tools that wait. A pool's counts are those of its
 * claims. Told late and at a rate (late-status.h).
 */

#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

typedef struct PoolStatuses PoolStatuses;

/* Both borrowed. */
int pool_statuses_new(const TerminationContext *context, WorkQueue *queue, PoolStatuses **ret);
PoolStatuses *pool_statuses_free(PoolStatuses *p); /* what was not told yet is not told any more */
DEFINE_FREEP(PoolStatuses, pool_statuses_free);

/* Level-triggered; for a pool that is or is not being deleted. key: of the queue, marked for what has to be tried again. */
void pool_statuses_reconcile(PoolStatuses *p, const char *key, const KubeNodePool *pool);
/* Nodes of this pool are to be repaired and wait: why (static), and what people read; reason NULL: none do any more. False: not
 * now, as the pool was not reconciled yet. A pool that is gone is told. */
bool pool_statuses_set_repair_held(PoolStatuses *p, const char *pool, const char *reason, const char *message);
/* The pool is gone. */
void pool_statuses_forget(PoolStatuses *p, const char *pool);
void pool_statuses_next_wakeup(const PoolStatuses *p, Wakeups *w); /* see late-status.h */
