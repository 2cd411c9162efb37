/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Instances that nobody knows: a provider lists one as its own (CLOUD_LIST), and neither a Node nor a
 * NodeClaim names it in spec.providerID. A Node and its claim that were both torn away leave one behind,
 * and so does a machine that never joined.
 *
 * The first list is asked for after a minute of leading, the others every five minutes; while the view
 * does not stand, none is, and an answer that comes then is not read: what is absent from an old view
 * proves nothing. An instance is an orphan once it was listed as present, or off, and unknown, and in no list
 * between as anything else, twice at least INSTANCE_ORPHAN_USEC apart, on our clock. It is told of once,
 * in the log, and counted for as long as that is so. Nothing is ended here.
 *
 * A list with objects that cannot be read (CloudResult.n_unreadable) is used without them, and the log names their
 * number. An instance that is left out counts as not listed: its time begins anew.
 */

#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

#define INSTANCE_ORPHANS_KEY "instances/all"
#define INSTANCE_ORPHAN_USEC (10 * USEC_PER_MINUTE)

/* -- which of them are orphans. Pure. ------------------------------------------------------------------- */

typedef struct InstanceLooks InstanceLooks;

int instance_looks_new(InstanceLooks **ret);
InstanceLooks *instance_looks_free(InstanceLooks *l);
DEFINE_FREEP(InstanceLooks, instance_looks_free);

/* One whole list. is_known: a Node or NodeClaim has this providerID. on_orphan: it is one as of this list,
 * and unknown since since_usec (loop_now()). -ENOMEM: what could not be noted is new in the next list. */
int instance_looks_note(InstanceLooks *l, const CloudInstance *list, size_t n, usec_t now_usec,
                        bool (*is_known)(const char *provider_id, void *userdata),
                        void (*on_orphan)(const char *provider_id, usec_t since_usec, void *userdata),
                        void *userdata);
size_t instance_looks_orphans(const InstanceLooks *l); /* as of the last list */

/* -- the lists of all providers ------------------------------------------------------------------------- */

typedef struct InstanceOrphans InstanceOrphans;

/* Both borrowed. Marks INSTANCE_ORPHANS_KEY, if any provider can list. */
int instance_orphans_new(const TerminationContext *context, WorkQueue *queue, InstanceOrphans **ret);
InstanceOrphans *instance_orphans_free(InstanceOrphans *o); /* what was asked is not answered any more */
DEFINE_FREEP(InstanceOrphans, instance_orphans_free);

/* INSTANCE_ORPHANS_KEY is due. */
void instance_orphans_reconcile(InstanceOrphans *o);
void instance_orphans_measure(const InstanceOrphans *o);
/* Reports the lists of instances, which repeat for ever, if a provider can list. The next one begins within
 * INSTANCE_ORPHANS_WAKEUP_USEC. */
#define INSTANCE_ORPHANS_WAKEUP_USEC (10 * USEC_PER_MINUTE)
void instance_orphans_next_wakeup(const InstanceOrphans *o, Wakeups *w);
