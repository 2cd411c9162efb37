/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands on a NodePool: our finalizer, how many nodes it has and how many of them go, and in conditions
 * what is wrong with it: it cannot be understood (Invalid), quarrels with another about a node
 * (Conflicting), selects nodes that cannot be adopted (NodesNotAdopted), or sets fields that this release
 * does nothing about (FieldsNotActedOn). What is wrong is told in an Event, too, once. A pool's counts are
 * those of its claims.
 */

#include "termination-context.h"
#include "object-writes.h"

/* Level-triggered; for a pool that is or is not being deleted. key: of the queue, for when to look again.
 * All borrowed for the call, but what writes keeps. */
void pool_status_reconcile(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                           const char *key, const KubeNodePool *pool);

/* The patch of its status on what the view shows; NULL on ENOMEM. Pure. */
char *pool_status_body(const ClusterView *view, const CloudProvider *provider, const KubeNodePool *pool,
                       usec_t wall_now_usec);
