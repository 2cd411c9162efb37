/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notice/: what announces the end of a machine, as agent, coordinator and vesperctl know it.
 *
 *      notice.c        a Notice, and its JSON
 *      interruption.c  the annotation vesper.sh/interruption: a Notice, and how far its agent is
 *      announced.c     the annotation vesper.sh/announced: all Notices of the interruption queue about one machine
 */

#include "json.h"
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

/* The drain that people on this machine ask for, which outlives the notice. */
typedef enum NoticeByHand {
        BY_HAND_NONE,
        BY_HAND_DRAIN,
        BY_HAND_FORCE, /* drained in spite of do-not-evict pods */
        _BY_HAND_MAX,
        _BY_HAND_INVALID = -EINVAL,
} NoticeByHand;

/* The act that ends the event of an announced reboot before its time. No other event may be taken early. */
typedef enum NoticeEarly {
        NOTICE_EARLY_NEVER,
        NOTICE_EARLY_CLOUD,   /* a reboot by the cloud's own call (EC2, system-reboot) */
        NOTICE_EARLY_ACK,     /* its acknowledgement (Azure), if it names this machine alone */
        NOTICE_EARLY_MACHINE, /* the machine's own reboot: somebody on it has announced that */
} NoticeEarly;

/* The source of what the interruption queue tells. */
#define NOTICE_SOURCE_QUEUE "sqs"

/* In place of the names of an event that names more machines than NOTICE_RESOURCES_MAX: no machine is called so. */
#define NOTICE_RESOURCES_TOO_MANY "*"
#define NOTICE_RESOURCES_MAX 32u
/* Maximum sizes of texts that can be read back; vesper's own are much shorter. */
#define NOTICE_ID_BYTES_MAX 256u
#define NOTICE_WORD_BYTES_MAX 64u
#define BOOT_ID_BYTES_MAX 64u

typedef struct Notice {
        char *id; /* stable per occurrence; spot on EC2: instance id + action + boot id */
        NoticeKind kind;
        char *source;           /* "ec2" */
        char *action;           /* "terminate", "stop", "hibernate", "reboot" */
        usec_t not_before_usec; /* wall clock; 0: now */
        usec_t announced_usec;  /* wall clock of its giver: when the machine may be gone; 0: not said */
        usec_t said_usec;       /* of what the queue told: wall clock of its giver, when that was said; 0: not known */
        usec_t until_usec;      /* the same: of a scheduled change, when the window in which it may begin closes; 0: not said */
        usec_t received_usec;   /* notices from the queue: wall clock of the API server when the coordinator last wrote the notice; 0: not known */
        usec_t deadline_usec;   /* the same on the boot-time clock (loop_now()) of this machine, which nobody sets;
                                   USEC_INFINITY: not said */
        bool estimated;         /* deadline_usec: no Date of the giver's tells what the giver's clock says */
        usec_t own_deadline_usec; /* deadline_usec as it was before another notice brought that nearer; 0: none did */
        NoticeCertainty certainty;
        NoticeByHand by_hand; /* stands on the Node with it, so that a restart does not lose it */
        NoticeEarly early;    /* as its source says; no part of the JSON */
        char **resources;     /* the machines that its event names, by the cloud's names; NULL: this one alone, or it has no event */
} Notice;

int notice_copy(const Notice *n, Notice **ret);
Notice *notice_free(Notice *n);
DEFINE_FREEP(Notice, notice_free);
/* Returns the time that is reported to others: the giver's own. USEC_INFINITY: not said. */
usec_t notice_announced(const Notice *n);
/* The last moment at which what is announced may begin: announced_usec, or until_usec where that is later, by NOTICE_WINDOW_MAX_USEC
 * at most. USEC_INFINITY: not said. */
#define NOTICE_WINDOW_MAX_USEC USEC_PER_DAY
usec_t notice_window_end(const Notice *n);
/* When the machine may be gone by this notice alone (boot-time clock); USEC_INFINITY: not said. */
usec_t notice_own_deadline(const Notice *n);
/* Each of *known's two times becomes that of *seen, another notice, where that is earlier; but no estimate replaces what was
 * counted from a Date for the same time or an earlier one. True: one did. */
bool notice_take_nearer(Notice *known, const Notice *seen);
/* Do their events name the same machines, in the same order? */
bool notice_names_same(const Notice *a, const Notice *b);
/* Honours do-not-evict pods: a person on this machine (or its reboot) can wait for them, and did not say otherwise.
 * Who takes the machine away waits for nobody. */
bool notice_waits_for_protected(const Notice *n);

/* Does this action end the machine (terminate, stop, hibernate), so that its node must not come back by
 * itself? */
bool notice_ends_machine(const Notice *n);
/* ... and for good (terminate)? */
bool notice_ends_for_good(const Notice *n);

/* How much it takes from the machine: 0: it comes back by itself (a reboot, a maintenance), 1: it ends (stop, hibernate), 2: for good. */
unsigned notice_rank(const Notice *n);
/* Does a take the place of b, when both stand? What ends the machine for good comes before what ends it, and that before
 * what it comes back from; of equals the one that stands stays. */
bool notice_outranks(const Notice *a, const Notice *b);

/* Pure: what becomes of a notice that is known when a look brings another of the same id: the earliest
 * deadline wins, but one that was counted from a Date replaces an estimate of the same time or a later one, and no
 * estimate replaces that;
 * action, not_before and what it names are the newer ones. True: *known changed. */
int notice_merge(Notice *known, const Notice *seen, bool *ret_changed);
/* JSON of the annotation vesper.sh/interruption and of the intent log; parsed back by notice_from_json (fuzzed). "deadline" is what was announced,
 * "said" is said_usec, "until" until_usec, "received" received_usec. For the agent alone, in the boot that stands beside them: "deadlineUptimeUsec" is deadline_usec,
 * "estimated" says how it was found, "ownDeadlineUptimeUsec" is own_deadline_usec. "byHand" is "drain" or "force"; a manual notice that drains
 * always has one, also where an older agent left it out. "resources" are the names of all machines of an event that names others, too. */
void notice_to_json(const Notice *n, JsonWriter *w); /* adds its members to the open object */
/* Passes over what a later version writes: kind and by_hand become _INVALID if they are unknown. What is not
 * said is "" or zero. -EINVAL: a member of another type, a time that is none, or longer than a notice may be; -ENOMEM. */
int notice_from_json(const Json *o, Notice **ret);
/* All is there that a notice of this version has: id, kind, source. */
bool notice_is_complete(const Notice *n);
