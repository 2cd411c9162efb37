/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesperctl release --all: nothing of the coordinator's stays in the cluster.
 *
 *      LOOK      who leads, and what is left: where that is nothing, nobody has to lead, and RESUME follows. Deleted nodes that wait for a budget or a pause end it: they would wait for
 *                ever for the pause that follows
 *      PAUSE     no removal begins any more
 *      POOLS     each NodePool: deletionPolicy Release, then deleted
 *      WAIT      a coordinator lets go of what it has, and ends the removals that have begun; each second all is listed and
 *                what is left is told (a node that a person's claim has adopted it lets go of by vesper.sh/unmanaged, which
 *                stays on the Node)
 *      STRIP     with --without-coordinator, in the place of WAIT, what a coordinator would do, one object after the other:
 *                marks and finalizer off the Nodes, then finalizers off the NodeClaims, which are deleted, and off the
 *                NodePools
 *                Where the cluster knows neither NodePools nor NodeClaims there are none, and STRIP follows even without that
 *                option: no coordinator would do it. But a node that is being deleted stays, for whoever has begun that
 *      RESUME    the pause is taken off
 *
 * Who leads is judged by what the Lease does, and not by this machine's clock: a Lease that nobody has renewed while it
 * was watched, for as long as it holds, is nobody's. Each patch carries the resourceVersion that it was decided on; what
 * is refused is looked at again.
 */

#include "ctl.h"

typedef struct ReleaseAll ReleaseAll;

/* Prints, and ends the verb. */
int release_all_new(Ctl *ctl, ReleaseAll **ret);
ReleaseAll *release_all_free(ReleaseAll *a);
DEFINE_FREEP(ReleaseAll, release_all_free);
