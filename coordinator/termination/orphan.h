/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A NodeClaim for itself.
 *
 *   its Node is there       claim being deleted: the Node is deleted too (uid precondition), with our
 *                           finalizer on it, so that it is drained; node-termination.c does the rest
 *   no Node for 2 min       (on our clock, and only while the view stands) the cloud is asked:
 *                              gone, by proof      finalizer off, claim deleted
 *                              there               claim being deleted: proved to be its Node's, ended, then finalizer
 *                                                  off
 *                                                  else: a condition and an Event; its kubelet may come back
 *                              it cannot say       asked again, with backoff; nothing is taken off
 *   its Node not Ready for 2 min (likewise) the cloud is asked, too:
 *                              gone, by proof, or on its way    the claim is deleted, as a controller of the
 *                                                  cloud would delete the Node (where there is one)
 *                              there, or it cannot say          asked again, every 10 min or with backoff; so it is with
 *                                                  an instance that was never proved to be this Node's
 *   a person's, not acted on (standalone.h)  it says why, in a condition and an Event; being deleted it goes, and nothing
 *                           is ended
 */

#include "termination-context.h"
#include "object-writes.h"
#include "release.h"
#include "wakeup.h"

#define ORPHAN_ABSENCE_USEC (2 * USEC_PER_MINUTE)

typedef struct Orphans Orphans;

/* All borrowed. */
int orphans_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, Release *release,
                Orphans **ret);
Orphans *orphans_free(Orphans *o);
DEFINE_FREEP(Orphans, orphans_free);

/* Level-triggered; claim NULL: it is gone. `name` is its name. */
void orphans_reconcile_claim(Orphans *o, const char *name, const KubeNodeClaim *claim);
/* The view lost its watches, or has them back: absences are counted anew. It stands at first. */
void orphans_view_changed(Orphans *o, bool stands);
size_t orphans_size(const Orphans *o); /* claims without Node */
/* Reports each orphan, its machine and its status. An orphan is reconciled again within ORPHAN_WAKEUP_USEC.
 * While a watch is not synced nothing is reconciled; once all are, every orphan is. */
#define ORPHAN_WAKEUP_USEC (13 * USEC_PER_MINUTE)
void orphans_next_wakeup(const Orphans *o, Wakeups *w);
