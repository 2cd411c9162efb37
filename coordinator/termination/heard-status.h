/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Writes what heard-conditions.h says on Nodes, by late-status.h: in the background, and never waited for. What has been said is
 * written once; how far a drain is, at most every 10 s. A patch is made of the Node in view, and only that version takes it: what
 * the node's agent writes meanwhile stays, and what is to be said is decided anew.
 */

#include "heard-conditions.h"
#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

/* The figures of a drain, here and in the annotation, told last at told_usec: may they be told now (loop_now())? Every 10 s at most,
 * and of very many nodes in turn. *ret_at: else then. */
bool heard_progress_may(const TerminationContext *context, usec_t told_usec, usec_t *ret_at);

typedef struct HeardStatuses HeardStatuses;

/* All borrowed. */
int heard_statuses_new(const TerminationContext *context, WorkQueue *queue, HeardStatuses **ret);
HeardStatuses *heard_statuses_free(HeardStatuses *h); /* what was not sent is not sent any more */
DEFINE_FREEP(HeardStatuses, heard_statuses_free);

/* Level-triggered. key: dirty again when there is more to say, or memory was short. */
void heard_statuses_say(HeardStatuses *h, const KubeNode *n, const char *key, HeardSay say, const HeardWords *words);
void heard_statuses_forget(HeardStatuses *h, const char *node); /* it is gone */
void heard_statuses_next_wakeup(const HeardStatuses *h, Wakeups *w); /* see late-status.h */
