/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a judgement is to the API: which conditions a NodeClaim is to have and when they are worth a write, and which Event is
 * worth telling. Pure.
 *
 * A status or reason that is another is written as soon as writes are to be had; a message alone (its figures move) at most
 * every 15 minutes. A condition whose method the pool asks for no more goes.
 */

#include "outlook-judge.h"

#define OUTLOOK_MESSAGE_USEC (15 * USEC_PER_MINUTE)
#define OUTLOOK_EVENT_USEC (15 * USEC_PER_MINUTE)
#define OUTLOOK_REASON_MAX 32u
#define OUTLOOK_MESSAGE_MAX 1024u /* bytes of a condition's message */

/* What was judged of a node last, and what has been told of it. */
typedef struct NodeMemo {
        char *node, *uid;
        NodeJudgement judgement;
        usec_t since_usec[_PLAN_METHOD_MAX]; /* wall clock: since when it holds, or does not, as far as was seen; 0: not asked */
        usec_t candidate_since_usec;         /* wall clock: since when it would go by some method; 0: it would not */
        usec_t told_usec;                    /* loop_now(): when its messages were last written, or first seen */
        usec_t event_usec[_GATE_CODE_MAX];   /* loop_now(): when that was last told by an Event; 0: it was not */
        bool was_occupied;                   /* a pod that moves has come since it was judged */
        usec_t occupied_usec;                /* wall clock, whole seconds as conditions have: when it was last seen not to be empty; 0: never */
        usec_t left_usec;                    /* wall clock: when a pod was last seen to be gone; 0: none was */
        bool begins_anew;                    /* its claim says that it is empty since before that: it has to say first that it is not */
        uint64_t round;                      /* of its last judgement */
} NodeMemo;

int node_memo_new(const char *node, const char *uid, usec_t now_usec, NodeMemo **ret);
NodeMemo *node_memo_free(NodeMemo *m);
DEFINE_FREEP(NodeMemo, node_memo_free);

/* Before it is judged: since when it is empty if nothing that moves is on it now. Its claim says so, unless pods were seen on it
 * later than that; where the claim does not say that it is empty, since it was first judged to be. */
usec_t node_memo_empty_since(NodeMemo *m, const KubeNodeClaim *claim, usec_t wall_usec);
/* Takes the judgement over. A node that is empty again after a pod has been there counts as not empty until its claim in view says
 * so, so that its time begins anew. */
int node_memo_take(NodeMemo *m, NodeJudgement *j, usec_t wall_usec);
bool node_memo_would_go(const NodeMemo *m);

typedef enum OutlookWrite {
        OUTLOOK_WRITE_NOTHING,
        OUTLOOK_WRITE_LATER, /* nothing but messages has changed, and too lately: at told_usec + OUTLOOK_MESSAGE_USEC */
        OUTLOOK_WRITE_NOW,
} OutlookWrite;

typedef struct OutlookWish {
        Condition conditions[_PLAN_METHOD_MAX];
        size_t n_conditions;
        const char *dropped[_PLAN_METHOD_MAX + 1]; /* types, up to a NULL */
        char reasons[_PLAN_METHOD_MAX][OUTLOOK_REASON_MAX];
        char *messages[_PLAN_METHOD_MAX];
} OutlookWish;

void outlook_wish_done(OutlookWish *w);
/* m NULL: nobody asks about the node, what there is of our conditions goes. An OutlookWrite, or -ENOMEM. */
int outlook_wish(const KubeNodeClaim *claim, const NodeMemo *m, usec_t now_usec, OutlookWish *ret);
/* "PDB_BLOCKS" as the reason of a condition: "PdbBlocks"; of _GATE_CODE_INVALID "WouldGo". */
void outlook_reason(GateCode code, char ret[static OUTLOOK_REASON_MAX]);
const char *outlook_condition_type(PlanMethod m);

/* The text of an Event that is due, which is noted as told; NULL: none. claim: what an earlier leader has told of it stands
 * there, and is not told anew at once. */
char *outlook_event(NodeMemo *m, const KubeNodeClaim *claim, usec_t now_usec);

/* What stands in the way, in a few words for metrics, where there are any as other consolidators' metrics have them. */
typedef enum OutlookWord {
        OUTLOOK_WOULD_GO,
        OUTLOOK_NOT_DUE,
        OUTLOOK_BUDGET,
        OUTLOOK_NO_FEASIBLE_SCHEDULE,
        OUTLOOK_SAME_OR_MORE_EXPENSIVE_REPLACEMENT,
        OUTLOOK_POOL_LIMIT,
        OUTLOOK_PDB,
        OUTLOOK_OPT_OUT,
        OUTLOOK_QUIET_PERIOD,
        OUTLOOK_OUTSIDE_WINDOW,
        OUTLOOK_PAUSED,
        OUTLOOK_NOT_READY,
        OUTLOOK_NOMINATED,
        OUTLOOK_UNKNOWN,
        _OUTLOOK_WORD_MAX,
} OutlookWord;

extern const char *const outlook_word_names[_OUTLOOK_WORD_MAX + 1];
extern const char *const outlook_method_names[_PLAN_METHOD_MAX + 1];
OutlookWord outlook_word(GateCode code);
