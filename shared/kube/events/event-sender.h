/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Carries the event recorder's writes to the API server in the background: bulk lane, at most 4 under way and 100 a second beyond
 * a burst of 100, at most 256 waiting (the oldest is lost then). Transport errors, 5xx and 429 are tried again up to three times; any other answer is final.
 */

#include "kube-client.h"
#include "wakeup.h"

typedef struct EventSender EventSender;

extern const KubeKind kube_event_kind; /* core/v1; nothing is decoded of it */

typedef enum EventOutcome {
        EVENT_SENT,
        EVENT_LOST,    /* given up or pushed out of the queue */
        EVENT_REFUSED, /* by the server, for good; 404 of a patch: it is no longer there */
} EventOutcome;

/* tag: as given to event_sender_post(), borrowed. Always from the loop; may not free the sender. */
typedef void (*event_outcome_t)(const char *tag, EventOutcome outcome, void *userdata);

int event_sender_new(KubeClient *c, event_outcome_t on_outcome, void *userdata, EventSender **ret);
EventSender *event_sender_free(EventSender *s); /* what waits or is under way is dropped without a word */
DEFINE_FREEP(EventSender, event_sender_free);

/* name NULL: create; else a merge patch of that Event. Everything is copied. 0 or -ENOMEM. */
int event_sender_post(EventSender *s, const char *ns, const char *name, const char *body, const char *tag);
size_t event_sender_pending(const EventSender *s);
/* Reports each Event that is to be sent. The Event is sent, or dropped, within EVENT_SENDER_WAKEUP_USEC,
 * unless other Events are under way. */
#define EVENT_SENDER_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void event_sender_next_wakeup(const EventSender *s, Wakeups *w);
