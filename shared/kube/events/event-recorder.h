/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * core/v1 Events (the kubelet's credential may not write events.k8s.io). Repeats of the same (object, reason, message) within
 * 10 minutes become a count on the first one by PATCH, at most once a minute; over all, a burst of 25 per object and then one per
 * 5 minutes, as client-go's spam filter. Events are told in the background on the bulk lane: a lost Event changes nothing, and
 * none is ever waited for. What is remembered is bounded: 1,024 Events and as many objects, 256 writes waiting, 4 under way, 100 a second.
 */

#include "kube-client.h"
#include "wakeup.h"

typedef struct EventRecorder EventRecorder;

typedef enum EventType { EVENT_NORMAL, EVENT_WARNING } EventType;

typedef struct EventObject {
        const char *api_version, *kind, *ns, *name, *uid; /* ns NULL: cluster-scoped (the Event lies in "default") */
        const char *group; /* NULL or "": api_version is complete; else api_version is the version only */
} EventObject;

/* component: "vesper-agent"; host: node name or hostname. */
int event_recorder_new(KubeClient *c, const char *component, const char *host, EventRecorder **ret);
EventRecorder *event_recorder_free(EventRecorder *r);
DEFINE_FREEP(EventRecorder, event_recorder_free);
/* Message is cut to 1,024 bytes. Cannot fail as far as the caller cares. */
void event_record(EventRecorder *r, const EventObject *o, EventType type, const char *reason, const char *fmt, ...) _printf_(5, 6);
/* The EventObject of a decoded object; borrowed from it. */
EventObject event_object(const KubeObject *o);
/* Writes under way or waiting, for a clean end; counts that wait for their minute are none. */
size_t event_recorder_pending(const EventRecorder *r);
/* Reports each Event whose count is to be written, and each Event that is to be sent. The next write of a
 * count begins within EVENT_RECORDER_WAKEUP_USEC. */
#define EVENT_RECORDER_WAKEUP_USEC (20 * USEC_PER_MINUTE)
void event_recorder_next_wakeup(const EventRecorder *r, Wakeups *w);
