/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the conditions of a Node (KEP-5683, marks.h) say of a drain for what the interruption queue told (heard-drain.h). Pure.
 *
 *                    MaintenancePlanned  MaintenanceInProgress  DrainInProgress  Drained
 *      PLANNED              True               (False)             (False)       (False)   load balancers go first
 *      LATER                True               (False)             (False)       (False)   nothing is due yet
 *      BEHIND_AGENT         True               (False)             (False)       (False)   its agent drains it, and gets on with that
 *      HANDED_OVER          True               (False)             (False)       (False)   its NodeClaim is to be deleted for it
 *      DRAINING            (False)              True                True         (False)
 *      DRAINED             (False)              True               (False)        True
 *      EXPIRED             (False)              True               (False)        False    the announced time has passed, with pods left
 *      OVERRULED, OVER     (False)             (False)             (False)       (False)   a person opened the node; it has outlived that
 *      AGENTS              (False)                -                   -             -      the node's agent says how far its drain is
 *
 * (False): where the coordinator has said True before. The agent comes first: while DrainInProgress or Drained are its words,
 * nothing but AGENTS is said, and a condition that is its own is never written over; neither is one of the first two types that
 * is True and somebody else's.
 */

#include "heard-rule.h"
#include "node-drain.h"

typedef enum HeardSay {
        HEARD_SAY_NOTHING, /* all stays as it is: the node's removal says it */
        HEARD_SAY_PLANNED,
        HEARD_SAY_LATER,
        HEARD_SAY_BEHIND_AGENT,
        HEARD_SAY_HANDED_OVER,
        HEARD_SAY_DRAINING,
        HEARD_SAY_DRAINED,
        HEARD_SAY_EXPIRED,
        HEARD_SAY_OVERRULED,
        HEARD_SAY_OVER,
        HEARD_SAY_AGENTS,
        _HEARD_SAY_MAX,
        _HEARD_SAY_INVALID = -EINVAL,
} HeardSay;

#define HEARD_CONDITIONS 4u

/* DrainInProgress or Drained are its agent's words: that drain is its to tell of. */
bool heard_conditions_are_agents(const KubeNode *n);
/* A condition of this type is the coordinator's to write. */
bool heard_condition_is_free(const KubeNode *n, const char *type);
/* The coordinator says True somewhere. */
bool heard_conditions_stand(const KubeNode *n);

typedef struct HeardWords {
        const AnnouncedList *announced; /* the notices; those that stand are named */
        InterruptionDelete deletes;     /* [Interruption] Delete=; NEVER also for a node without NodeClaim */
        const char *why;                /* of OVER: heard_end_text(); NULL: not known to this leader */
        const char *how_far;            /* of DRAINING, DRAINED, EXPIRED: who is left, or how it went; NULL: not known */
} HeardWords;

/* What one type is to say; said: what it says by now (NULL: nothing), of the coordinator's own last word if there is one.
 * 1: *ret, whose message is *ret_message (free it); 0: nothing new; -ENOMEM. */
int heard_condition(HeardSay say, size_t type, const Condition *said, const HeardWords *words, Condition *ret, char **ret_message);
const char *heard_condition_type(size_t i); /* of HEARD_CONDITIONS; static */

/* "the end of its machine (spot, terminate) by 2026-11-27T08:00:00Z"; "a stop", "a change". NULL on ENOMEM; free it. */
char *heard_announced_text(const Notice *notice);
/* The same of the first three that stand, but for except (NULL: none), and how many more there are. deletes: also what is done for each of them;
 * NULL: that is not said. "": nothing stands. NULL on ENOMEM; free it. */
char *heard_announced_list_text(const AnnouncedList *l, const Notice *except, const InterruptionDelete *deletes);
/* Why a drain has ended: "it has outlived ...". Static. */
const char *heard_end_text(HeardEnd e);
/* For HeardWords.how_far. Each: NULL on ENOMEM; free it. How many pods are left, and which of them do not go by themselves. */
char *heard_pods_left_text(size_t n_left, const DrainBlocker *b, size_t n);
/* Wall clock; how many pods this leader's drain has removed. */
char *heard_drained_text(usec_t begun_usec, usec_t drained_usec, size_t n_evicted, size_t n_deleted);
