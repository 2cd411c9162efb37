/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `vesperctl drain` says of a node, and when: pure. */

#include "node-drain.h"
#include "string-util.h"

/*
 *      READING --> CORDONING --> LISTING --> DRAINING --> DRAINED
 *
 * and from each of them to one of the others behind DRAINED, which are ends as well.
 */
typedef enum CtlDrainState {
        CTL_DRAIN_READING,   /* the Node, and whether its pods may be listed: nothing has been changed */
        CTL_DRAIN_CORDONING, /* the patch is under way */
        CTL_DRAIN_LISTING,   /* waits for the first list of its pods, and for the budgets */
        CTL_DRAIN_DRAINING,
        CTL_DRAIN_DRAINED,   /* proved by a consistent list */
        CTL_DRAIN_FAILED,
        CTL_DRAIN_TIMED_OUT, /* --timeout */
        CTL_DRAIN_EXPIRED,   /* --deadline has passed, and pods are left */
        CTL_DRAIN_OPENED,    /* somebody has made the node schedulable: nothing more is evicted */
        CTL_DRAIN_GONE,      /* the Node was deleted meanwhile */
        _CTL_DRAIN_STATE_MAX,
        _CTL_DRAIN_STATE_INVALID = -EINVAL,
} CtlDrainState;

const char *ctl_drain_state_to_string(CtlDrainState s); /* "Draining" */
bool ctl_drain_state_is_end(CtlDrainState s);

/* How far one node is. All is borrowed. */
typedef struct DrainProgress {
        const char *node;
        CtlDrainState state;
        bool is_cordoned;         /* by us or before us: it stays so */
        bool is_ours;             /* undrain opens it */
        size_t n_ended;           /* evictions and deletes that were accepted */
        const DrainBlocker *left; /* the pods that are still there */
        size_t n_left;
        usec_t took_usec;         /* from the command's start to its end; while it goes on: until now */
        const char *error;        /* of FAILED, a sentence's words without the node; else NULL */
} DrainProgress;

/* The pod of them that people should look at first: one that does not go by itself, then the one that has
 * waited longest. NULL: there is none. */
const DrainBlocker *drain_progress_holder(const DrainProgress *p);

/* "worker-1: draining, 12 pods left; pod shop/web-1 waits: BlockedByPDB web, for 35s". No line's end. */
void drain_progress_add_line(StrBuf *b, const DrainProgress *p, usec_t wall_now_usec);
/* What is behind `columns` of the text that begins at `from` goes: a line that is rewritten in place must be
 * one. */
void drain_progress_cut(StrBuf *b, size_t from, size_t columns);
/* The state in which an interrupted command leaves the node: what stays, and what would open it. No line's
 * end. */
void drain_progress_add_stopped(StrBuf *b, const DrainProgress *p);
/* An array of objects; NULL on ENOMEM. */
char *drain_progress_json(const DrainProgress *list, size_t n);

/* What was said last of one node where lines are not rewritten in place. */
typedef struct DrainSaid {
        bool any;
        CtlDrainState state;
        size_t n_left;
        uint64_t holder; /* a hash of the pod and the reason */
        usec_t at_usec;
} DrainSaid;

/* Is this to be said now (then it is noted as said)? A new state or end is at once; another holder or
 * another number of pods every few seconds; a pod that holds for long is said again once a minute. now_usec:
 * any clock that does not jump. */
bool drain_progress_is_news(DrainSaid *said, const DrainProgress *p, usec_t now_usec);
