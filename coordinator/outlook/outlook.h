/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rounds over all nodes that NodePools ask about: one begins when something has changed, ten seconds after the last at the
 * earliest, and so late that judging takes a twentieth of a core (more only if a round takes longer than fifteen seconds); at the
 * latest after five minutes, or when what stands in a node's way ends by itself. It goes in turns of ten milliseconds, between which the loop does all else.
 * Where the view of the cluster is not whole, nothing is judged and nothing is written.
 *
 * What is to be written on NodeClaims goes at a rate of its own, one after the other, and only what the claim does not say
 * already: another leader finds nothing to write. Claims that are not adopted, or are being deleted, are left alone.
 */

#include "termination-context.h"
#include "token-bucket.h"
#include "wakeup.h"
#include "work-queue.h"

#define OUTLOOK_KEY "outlook/all"
/* Of LeadingPace: writes on NodeClaims, and Events. */
#define OUTLOOK_WRITES_BURST 20u
#define OUTLOOK_WRITES_PER_MINUTE 60u
#define OUTLOOK_EVENTS_BURST 20u
#define OUTLOOK_EVENTS_PER_MINUTE 60u

typedef struct Outlook Outlook;

/* queue: of OUTLOOK_KEY. Buckets: borrowed. The view is complete. */
int outlook_new(const TerminationContext *context, WorkQueue *queue, TokenBucket *writes, TokenBucket *events, Outlook **ret);
Outlook *outlook_free(Outlook *o);
DEFINE_FREEP(Outlook, outlook_free);

void outlook_reconcile(Outlook *o);
/* From the view. */
void outlook_on_pod(Outlook *o, const KubePod *old, const KubePod *new);
void outlook_on_node(Outlook *o, const KubeNode *old, const KubeNode *new);
void outlook_on_claim(Outlook *o, const KubeNodeClaim *claim); /* NULL: it is gone */
void outlook_changed(Outlook *o); /* a budget of either kind, a pause */
void outlook_pools_changed(Outlook *o);
void outlook_view_changed(Outlook *o, bool stands);
void outlook_measure(Outlook *o);
void outlook_unmeasure(Metrics *m);
/* Reports the rounds and the writes that are due. Rounds repeat while a NodePool asks for them and all
 * watches are synced. The next part of a round, round or write begins within OUTLOOK_WAKEUP_USEC. */
#define OUTLOOK_WAKEUP_USEC (10 * USEC_PER_MINUTE)
/* Maximum time from a change to the next round. */
#define OUTLOOK_CHANGED_WAKEUP_USEC (61 * USEC_PER_SEC)
void outlook_next_wakeup(const Outlook *o, Wakeups *w);
