/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Letting go: a Node that no pool selects any more, and the pools themselves when they are deleted. Nothing
 * of ours stays on them, and the machines go on.
 *
 *      Node: marks and finalizer off --> claim: finalizer off --> claim deleted
 *
 * In this order whoever dies in between leaves nothing that could be taken for a wish to end the machine: a
 * claim with our finalizer that is being deleted would be one.
 *
 * A pool that is deleted stays, by our finalizer, until its last claim is gone. Its deletionPolicy says how:
 * Release lets its nodes go as above; Delete deletes its claims, and each node is drained and ended as
 * usual.
 */

#include "termination-context.h"
#include "object-writes.h"

typedef struct Release Release;

/* All borrowed. */
int release_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, Release **ret);
Release *release_free(Release *r);
DEFINE_FREEP(Release, release_free);

/* Is there anything of ours on this Node? claim: its claim, or NULL. Pure. */
bool release_is_called_for(const KubeNode *n, const KubeNodeClaim *claim);
/* Returns true if release_node() still has something to write. */
bool release_is_unfinished(const Release *r, const KubeNode *n, const KubeNodeClaim *claim);
/* Level-triggered; for a Node that is not being deleted. A claim that names another Node stays as it is. */
void release_node(Release *r, const KubeNode *n, const KubeNodeClaim *claim);
/* A claim without Node. */
void release_claim(Release *r, const KubeNodeClaim *claim, const char *reconcile_key);
/* A pool being deleted: its claims by its policy, then our finalizer. */
void release_pool(Release *r, const KubeNodePool *pool);
