/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesperctl release --all: nothing of vesper's stays in the cluster, and every machine goes on.
 *
 *      PAUSE     no removal begins any more
 *      POOLS     each NodePool: deletionPolicy Release, then deleted
 *      WAIT      while a coordinator leads it lets go of what it has, and ends the removals that have begun; each second
 *                all is listed and what is left is told
 *                (a node that a person's claim has adopted it lets go of by vesper.sh/unmanaged, which stays on the Node)
 *      STRIP     while none leads: what it would do, one object after the other: marks and finalizer off the Nodes, then
 *                finalizers off the NodeClaims, which are deleted, and off the NodePools
 *      RESUME    the pause is taken off
 *
 * WAIT and STRIP take turns by what the Lease says at each list. Each patch carries the resourceVersion that it was
 * decided on; what is refused is looked at again.
 */

#include "ctl.h"

typedef struct ReleaseAll ReleaseAll;

/* Prints, and ends the verb. */
int release_all_new(Ctl *ctl, ReleaseAll **ret);
ReleaseAll *release_all_free(ReleaseAll *a);
DEFINE_FREEP(ReleaseAll, release_all_free);
