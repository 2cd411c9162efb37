/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice/: where the end of a machine is announced. One source per file behind NoticeSource. What a source asks is
 * divided into feeds (EC2: spot/instance-action, events/maintenance/scheduled, ...). Each look is at one feed, and gives
 * the set of notices that this feed announces, or says that it does not know. Only a feed that has answered may
 * cancel: a notice that it announces (announces()) and does not show any more is over once may_cancel() says so.
 */

#include "backoff.h"
#include "env.h"
#include "notice.h"
#include "wakeup.h"

typedef enum NoticePollResult {
        NOTICE_POLL_NOTICE,  /* the feed has answered: these stand, one or more */
        NOTICE_POLL_NONE,    /* positively: asked the right instance, and there is no notice */
        NOTICE_POLL_UNKNOWN, /* time-out, 401, 403, 429, 5xx, garbage: changes nothing */
} NoticePollResult;

/* Whose machine has metadata answered for: that of this node? */
typedef enum NoticeIdentity {
        NOTICE_IDENTITY_UNKNOWN, /* metadata or the providerID does not tell */
        NOTICE_IDENTITY_SAME,
        NOTICE_IDENTITY_FIRMWARE, /* that of this node, as the machine's firmware says: it is the providerID that names another one */
        NOTICE_IDENTITY_OTHER,
} NoticeIdentity;

/* More than any feed has; a source that is told more says so (log), and gives the first of them. */
#define NOTICES_OF_FEED_MAX 32u

/* What a feed announces; owns its notices. */
typedef struct NoticeSet {
        Notice *items[NOTICES_OF_FEED_MAX];
        size_t n;
} NoticeSet;

const Notice *notice_set_find(const NoticeSet *s, const char *id); /* NULL: it is not in it */
void notice_set_done(NoticeSet *s);                                /* empties it */

typedef struct NoticeSource NoticeSource;

typedef struct NoticeLook {
        const char *feed; /* static, "spot/instance-action"; the source's name where it has one feed alone */
        NoticePollResult result;
        Notice *const *notices; /* NOTICE: all that this feed announces, no two of one id; borrowed */
        size_t n_notices;
        const char *why;      /* UNKNOWN: for people */
        usec_t answered_usec; /* loop_now() when the answer that decided arrived */
} NoticeLook;

typedef void (*notice_look_t)(NoticeSource *s, const NoticeLook *look, void *userdata);

/* The cloud has taken the acknowledgement (why NULL), or not: `why` is for people, borrowed. */
typedef void (*notice_acknowledged_t)(const char *why, void *userdata);

typedef struct NoticeSourceOps {
        const char *name; /* also Notice.source of what it gives */
        const char *const *feeds; /* all of them, NULL-terminated: each look is at one of these */
        void (*start)(NoticeSource *s); /* begins to look; each look is reported, from the loop */
        void (*kick)(NoticeSource *s);  /* the network came back: look now if backing off. NULL: it never does */
        /* Is this notice of this source one that the feed would show? Pure. NULL: it has one feed alone. */
        bool (*announces)(const NoticeSource *s, const char *feed, const Notice *n);
        /* Holds what metadata has called its machine last against the providerID of the Node; *ret_name: that (borrowed), where it
         * is another one. Pure. NULL: it is no cloud's, and never another's. */
        NoticeIdentity (*identity)(const NoticeSource *s, const char *provider_id, const char **ret_name);
        /* Is this notice (maybe of an earlier life of the agent), by its id, of the machine that metadata has answered for last? Pure.
         * NULL: ids do not tell. */
        bool (*is_of_machine)(const NoticeSource *s, const Notice *n);
        /* What metadata has called its machine is another's: asks anew, once a minute at most; until that is
         * answered whole, identity() says what it said. NULL: each of its looks tells. */
        void (*ask_identity)(NoticeSource *s);
        /* May its absence cancel this notice now? Pure in (notice, time). NULL: at once. */
        bool (*may_cancel)(const NoticeSource *s, const Notice *n, usec_t now_usec);
        /* Tells the cloud that the event of this id may begin now, for all machines that it names. One at a time: another one
         * takes its place. `done` comes from the loop. 0 or negative. NULL: this source has nothing to acknowledge. */
        int (*acknowledge)(NoticeSource *s, const char *id, notice_acknowledged_t done, void *userdata);
        /* Returns true while an acknowledgement is under way: `done` will be called. NULL: never. */
        bool (*acknowledges)(const NoticeSource *s);
        /* Reports each feed. A request is under way, or the next one begins within NOTICE_SOURCE_WAKEUP_USEC
         * or one poll interval, whichever is longer. */
        void (*next_wakeup)(const NoticeSource *s, Wakeups *w);
        void (*free)(NoticeSource *s);
} NoticeSourceOps;

#define NOTICE_SOURCE_WAKEUP_USEC (2 * USEC_PER_MINUTE)

struct NoticeSource {
        const NoticeSourceOps *ops;
        notice_look_t on_look;
        void *userdata;
};

NoticeSource *notice_source_free(NoticeSource *s);
DEFINE_FREEP(NoticeSource, notice_source_free);

void notice_source_kick(NoticeSource *s);
/* Is this notice (maybe of an earlier life of the agent) one of this source that the feed would show? */
bool notice_source_announces(const NoticeSource *s, const char *feed, const Notice *n);
bool notice_source_may_cancel(const NoticeSource *s, const Notice *n, usec_t now_usec);
/* provider_id: NULL: not known. */
NoticeIdentity notice_source_identity(const NoticeSource *s, const char *provider_id, const char **ret_name);
bool notice_source_is_of_machine(const NoticeSource *s, const Notice *n);
void notice_source_ask_identity(NoticeSource *s);
/* The may_cancel of clouds: a spot notice is over ten minutes after its own time, for nobody says so; what else they take back
 * they take back in so many words. */
bool notice_source_cloud_may_cancel(const NoticeSource *s, const Notice *n, usec_t now_usec);

/* Looks that fail in a row: from base_usec on, with jitter, never slower than cap_usec. */
#define NOTICE_SOURCE_BACKOFF(base, cap) (Backoff){ .base_usec = (base), .cap_usec = (cap), .jitter_permille = 200 }
#define NOTICE_SOURCE_IDENTITY_USEC USEC_PER_MINUTE /* between two questions whose machine it is */
#define NOTICE_SOURCE_SLOWEST_POLLS 8u /* of most of them, as many polls as cap_usec */
usec_t notice_source_pause(Backoff *b, Random *random); /* until the next look */

/* Reports a look: */
void notice_source_unknown(NoticeSource *s, const char *feed, const char *why, usec_t answered_usec);
/* n_notices may be 0: then there is none. */
void notice_source_found(NoticeSource *s, const char *feed, Notice *const *notices, size_t n_notices, usec_t answered_usec);

/* A Notice of this source, whose time is not said yet. NULL on ENOMEM. */
Notice *notice_source_make(const NoticeSource *s, NoticeKind kind, const char *id, const char *action);

/* Sets announced_usec to time_usec (wall clock of the giver), and deadline_usec (boot-time clock) by what was left then:
 * from the Date of that same answer (date_usec; 0: it has none), else from this machine's clock, and then it is
 * estimated. No later than lead_usec from now, the most that its giver ever gives (USEC_INFINITY: any time). standing:
 * the same notice as the last look gave it, or NULL: what has been counted down from the same time stays, unless this
 * look counts nearer by more than its clocks differ, or counts where the last one estimated. */
void notice_source_judge(const Loop *loop, Notice *n, const Notice *standing, usec_t time_usec, usec_t date_usec,
                         usec_t answered_usec, usec_t lead_usec);
/* The last of it: what `standing` has counted down from the same time stays. begun: it began when it was first seen, and no
 * look counts nearer. */
void notice_source_keep(Notice *n, const Notice *standing, bool begun);
