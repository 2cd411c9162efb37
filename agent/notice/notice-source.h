/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice/: where the end of a machine is announced. One source per file behind NoticeSource. What a source asks is
 * divided into feeds (EC2: spot/instance-action, events/maintenance/scheduled, ...). Each look is at one feed, and gives
 * the set of notices that this feed announces, or says that it does not know. Only a feed that has answered may
 * cancel: a notice that it announces (announces()) and does not show any more is over once may_cancel() says so.
 */

#include "env.h"
#include "notice.h"

typedef enum NoticePollResult {
        NOTICE_POLL_NOTICE,  /* the feed has answered: these stand, one or more */
        NOTICE_POLL_NONE,    /* positively: asked the right instance, and there is no notice */
        NOTICE_POLL_UNKNOWN, /* time-out, 401, 403, 429, 5xx, garbage: changes nothing */
} NoticePollResult;

/* More than any feed has; a source that is told more says so (log), and gives the first of them. */
#define NOTICES_OF_FEED_MAX 32u

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

typedef struct NoticeSourceOps {
        const char *name; /* also Notice.source of what it gives */
        void (*start)(NoticeSource *s); /* begins to look; each look is reported, from the loop */
        void (*kick)(NoticeSource *s);  /* the network came back: look now if backing off */
        /* Is this notice (of this source; maybe of an earlier life of the agent) one that the feed would show? Pure. */
        bool (*announces)(const NoticeSource *s, const char *feed, const Notice *n);
        /* May its absence cancel this notice now? Pure in (notice, time). */
        bool (*may_cancel)(const NoticeSource *s, const Notice *n, usec_t now_usec);
        void (*free)(NoticeSource *s);
} NoticeSourceOps;

struct NoticeSource {
        const NoticeSourceOps *ops;
        notice_look_t on_look;
        void *userdata;
};

NoticeSource *notice_source_free(NoticeSource *s);
DEFINE_FREEP(NoticeSource, notice_source_free);

/* Reports a look: */
void notice_source_none(NoticeSource *s, const char *feed, usec_t answered_usec);
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
