/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Informer: a local copy of one kind (all of it, or what a selector picks), kept by paged list, then watch.
 *
 *      LISTING ---all pages---> WATCHING ---stream ended: from the last resourceVersion---> WATCHING
 *         ^                        |
 *         +---410, or failing------+      a relist sends DELETED for everything that is no longer there
 *
 * Pages are 500 objects at resourceVersion "0"-less consistent reads, half as many whenever one is larger than 64 MiB; bookmarks are asked for; a watch without a byte for
 * stall_usec (bookmarks come every minute) is cut and begun again, one that nobody begins to answer after 19 s; where watches have
 * stood for twice that together without bringing anything, a list comes first (a restored etcd has not reached their version yet), and
 * at once where the owner distrusts them; errors back off with jitter, a path that came back
 * (informer_kick) tries at once, but a Retry-After of the server is always waited for. Events of one informer come in order; old
 * and new are borrowed for the callback (take a reference to keep one). Until the first list is complete on_event gets ADDED for
 * each object, then on_synced once.
 *
 * An object that cannot be decoded at all (no usable name, another kind, broken) is counted and passed over; what was known of
 * that name stays as it was, until the object can be read again or is deleted. A list with an item that has not even a name
 * removes nothing.
 *
 * Connected: the list or the watch was answered and has not failed since. A clean end of a watch and a relist that goes well are
 * no loss. A watch begun again after a failure counts once it brought something or has stood for 20 s (the API server sends no
 * byte before the first event).
 */

#include "hashmap.h"
#include "kube-client.h"
#include "wakeup.h"

typedef struct Informer Informer;

typedef enum InformerEvent { INFORMER_ADDED, INFORMER_MODIFIED, INFORMER_DELETED } InformerEvent;

typedef struct InformerHandler {
        /* ADDED: old NULL. DELETED: new NULL, old is the last state known. The informer may not be freed inside. */
        void (*on_event)(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata);
        void (*on_synced)(Informer *i, void *userdata);                 /* once, after the first list; may be NULL */
        /* After each list, when its events have come: informer_resource_version() is that of the list. May be NULL. */
        void (*on_listed)(Informer *i, void *userdata);
        /* Changes only, and the first failure; why: for people, "" when connected. May be NULL. */
        void (*on_health)(Informer *i, bool connected, const char *why, void *userdata);
        void *userdata;
} InformerHandler;

typedef struct InformerOptions {
        const char *ns;             /* NULL: all */
        const char *label_selector, *field_selector;
        unsigned page_size;         /* 0: 500 */
        usec_t stall_usec;          /* 0: 150 s */
        usec_t watch_timeout_usec;  /* asked of the server, jittered; 0: 8 min */
        bool coalesced;               /* it changes all the time: see http_transport_set_immediate() */
} InformerOptions;

/* Begins at once; the first callback comes from the loop. Strings are copied. */
int informer_new(KubeClient *c, const KubeKind *kind, const InformerOptions *o, const InformerHandler *h, Informer **ret);
Informer *informer_free(Informer *i); /* no event comes after; stored objects are released */
DEFINE_FREEP(Informer, informer_free);

bool informer_synced(const Informer *i);
bool informer_connected(const Informer *i); /* the watch stands */
KubeObject *informer_get(const Informer *i, const char *ns, const char *name); /* borrowed; NULL if absent */
size_t informer_size(const Informer *i);
bool informer_iterate(const Informer *i, HashmapIterator *it, KubeObject **ret);
#define INFORMER_FOREACH(o, i) \
        for (HashmapIterator _it_##o = { 0 }; informer_iterate((i), &_it_##o, &(o));)
/* Objects passed over since the start, for metrics. */
uint64_t informer_undecodable(const Informer *i);
/* The network came back: cancels a backoff that is being waited for, and begins a call again that may hang (nothing was heard
 * since the last failure, and it is older than a second). A call that is doing well is left alone. */
void informer_kick(Informer *i);
/* Writes on an object of the store are refused again and again, as decided on an old state of it, and the watch brings no
 * newer one: a list is asked for instead of the watch. Nothing happens within a minute of the last list. */
void informer_distrust(Informer *i);
/* Returns true if the last list was of a time before what was known: etcd was restored from a backup. Watches of other kinds may be mute
 * then, too (informer_distrust()). Resource versions of one kind can be compared (KEP-5504). */
bool informer_went_back(const Informer *i);
/* The newest resourceVersion seen; NULL before the first list. */
const char *informer_resource_version(const Informer *i);
/* Reports the informer, which is never finished: a list or watch is under way, or the timer of the next try
 * is due within INFORMER_WAKEUP_USEC. */
#define INFORMER_WAKEUP_USEC (6 * USEC_PER_MINUTE)
void informer_next_wakeup(const Informer *i, Wakeups *w);
