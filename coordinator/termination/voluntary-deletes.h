/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Deletions of nodes that vesper itself carries out and that can wait: of a node labelled terminable, of a node that is to be repaired
 * and is Ready, of the nodes of a pool that is deleted with deletionPolicy Delete. Each is charged to the NodeDisruptionBudgets first, and deleted then: so they
 * go in waves, as nodes come back or have gone, and serve until their turn.
 *
 * Few are asked for at once, and after a refusal none for a second: of a pool of thousands of nodes it is enough to ask for
 * those that may go next. One that was refused lets others pass. While its pool is paused (pauses.h) none is deleted.
 */

#include "termination-context.h"
#include "work-queue.h"

typedef struct VoluntaryDeletes VoluntaryDeletes;

int voluntary_deletes_new(const TerminationContext *context, WorkQueue *queue, VoluntaryDeletes **ret);
VoluntaryDeletes *voluntary_deletes_free(VoluntaryDeletes *d);
DEFINE_FREEP(VoluntaryDeletes, voluntary_deletes_free);

/* True: it may be deleted now. pool: its own, or NULL. False: not yet; the key is dirty when that has changed. why: static, for its Event: "it is
 * labelled terminable". */
bool voluntary_delete_is_admitted(VoluntaryDeletes *d, const KubeNode *n, const KubeNodePool *pool, const char *why,
                                  const char *key);
/* Returns true while the ledger is asked for the node: its answer marks the key. */
bool voluntary_delete_is_asked(const VoluntaryDeletes *d, const char *node);
void voluntary_deletes_forget(VoluntaryDeletes *d, const char *node); /* it is being deleted, or gone */
void voluntary_deletes_budgets_changed(VoluntaryDeletes *d);
