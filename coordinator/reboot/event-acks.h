/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Says by ANNOTATION_ACK_OK to the agents of a cloud's event that names several machines that all of them are drained for it
 * (event-ack-rule.h): set on each of those Nodes then, taken off as soon as that is not so any more. The agents tell the cloud
 * (agent/acknowledge.h), each after a read of its own Node. Where nodes stand drained for minutes and another one holds the event
 * up, log and Events on those say which.
 */

#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

#define EVENT_ACKS_KEY "acks/all"

typedef struct EventAcks EventAcks;

/* All borrowed. Looks at every node of the view. */
int event_acks_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, EventAcks **ret);
EventAcks *event_acks_free(EventAcks *a);
DEFINE_FREEP(EventAcks, event_acks_free);

/* This Node came, changed or went (NULL). Marks EVENT_ACKS_KEY where that matters. */
void event_acks_see_node(EventAcks *a, const char *name, const KubeNode *n);
/* EVENT_ACKS_KEY is due. */
void event_acks_reconcile(EventAcks *a);
/* Reports each event of several machines for which a node is drained. The coordinator evaluates the event
 * again, and logs why the acknowledgement waits, within EVENT_ACKS_WAKEUP_USEC. */
#define EVENT_ACKS_WAKEUP_USEC (3 * USEC_PER_MINUTE)
void event_acks_next_wakeup(const EventAcks *a, Wakeups *w);
