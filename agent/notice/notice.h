/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice/: where the end of a machine is announced. One source per file behind NoticeSource; all give a
 * Notice, or say that there is positively none, or that they do not know. Only "positively none" may ever
 * cancel.
 */

#include <stdbool.h>

#include "env.h"
#include "time-util.h"

typedef enum NoticeKind {
        NOTICE_SPOT,
        NOTICE_REBALANCE,
        NOTICE_MAINTENANCE,
        NOTICE_SCALE_IN,
        NOTICE_CAPACITY_BLOCK,
        NOTICE_SHUTDOWN,
        NOTICE_MANUAL,
        _NOTICE_KIND_MAX,
        _NOTICE_KIND_INVALID = -EINVAL,
} NoticeKind;

const char *notice_kind_to_string(NoticeKind k); /* "spot", "scale-in" */
NoticeKind notice_kind_from_string(const char *s);

typedef enum NoticeCertainty { NOTICE_CERTAIN, NOTICE_ADVISORY } NoticeCertainty;

/* What people on this machine ask for beside a notice, and whatever becomes of it. */
typedef enum NoticeByHand {
        BY_HAND_NONE,
        BY_HAND_DRAIN,
        BY_HAND_FORCE, /* drained in spite of do-not-evict pods */
        _BY_HAND_MAX,
        _BY_HAND_INVALID = -EINVAL,
} NoticeByHand;

typedef struct Notice {
        char *id; /* stable per occurrence; spot on EC2: instance id + action + boot id */
        NoticeKind kind;
        char *source;           /* "ec2" */
        char *action;           /* "terminate", "stop", "hibernate", "reboot" */
        usec_t not_before_usec; /* wall clock; 0: now */
        usec_t announced_usec;  /* wall clock of its giver: when the machine may be gone; 0: not said */
        usec_t deadline_usec;   /* the same on the boot-time clock (loop_now()) of this machine, which nobody sets;
                                   USEC_INFINITY: not said */
        bool estimated;         /* deadline_usec: no Date of the giver's tells what the giver's clock says */
        NoticeCertainty certainty;
        NoticeByHand by_hand; /* stands on the Node with it, so that a restart does not lose it */
} Notice;

int notice_copy(const Notice *n, Notice **ret);
Notice *notice_free(Notice *n);
DEFINE_FREEP(Notice, notice_free);
/* What others are told: the giver's own time. USEC_INFINITY: not said. */
usec_t notice_announced(const Notice *n);
/* Each of *known's two times becomes that of *seen where that is earlier. True: one did. */
bool notice_take_nearer(Notice *known, const Notice *seen);
/* Honours do-not-evict pods: a person on this machine (or its reboot) can wait for them, and did not say otherwise.
 * Who takes the machine away waits for nobody. */
bool notice_waits_for_protected(const Notice *n);
/* Does this action end the machine (terminate, stop, hibernate), so that its node must not come back by
 * itself? */
bool notice_ends_machine(const Notice *n);

/* Pure: what becomes of a notice that is known when a look brings another of the same id: the earliest
 * deadline wins, but one that was counted from a Date replaces an estimate, and no estimate replaces that;
 * action and not_before are the newer ones. True: *known changed. */
int notice_merge(Notice *known, const Notice *seen, bool *ret_changed);
/* JSON of the annotation vesper.sh/interruption and of the intent log; parsed back by notice_from_json
 * (fuzzed). "deadline" is what was announced. "deadlineUptimeUsec" is deadline_usec, and "estimated" says
 * how it was found: for the agent alone, in the boot that stands beside them. "byHand" is "drain" or
 * "force"; a manual notice that drains has always one, also where an older agent left it out. */
typedef struct JsonWriter JsonWriter;
typedef struct Json Json;
void notice_to_json(const Notice *n, JsonWriter *w); /* adds its members to the open object */
int notice_from_json(const Json *o, Notice **ret);

typedef enum NoticePollResult {
        NOTICE_POLL_NOTICE,
        NOTICE_POLL_NONE,    /* positively: asked the right instance, and there is no notice */
        NOTICE_POLL_UNKNOWN, /* time-out, 401, 403, 429, 5xx, garbage: changes nothing */
} NoticePollResult;

/* notice: borrowed; NULL unless NOTICE_POLL_NOTICE. why: for people, on UNKNOWN. answered_usec: loop_now()
 * when the answer that decided arrived. */
typedef void (*notice_poll_t)(NoticePollResult look, const Notice *notice, const char *why, usec_t answered_usec,
                              void *userdata);

typedef struct NoticeSource NoticeSource;

typedef struct NoticeSourceOps {
        const char *name;
        void (*start)(NoticeSource *s); /* begins to look; each look is reported */
        void (*kick)(NoticeSource *s);  /* the network came back: look now if backing off */
        /* May "none" cancel this notice now? Pure in (notice, time). */
        bool (*may_cancel)(const NoticeSource *s, const Notice *n, usec_t now_usec);
        void (*free)(NoticeSource *s);
} NoticeSourceOps;

struct NoticeSource {
        const NoticeSourceOps *ops;
        notice_poll_t on_poll;
        void *userdata;
};

NoticeSource *notice_source_free(NoticeSource *s);
DEFINE_FREEP(NoticeSource, notice_source_free);
