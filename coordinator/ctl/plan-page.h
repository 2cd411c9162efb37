/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a page shows of a plan, or of nodes that a person asks about: of each node its room before and after, what becomes of
 * it and why; and the moves of pods. Pure. plan-html.c writes it, plan-flow.c its picture of moves.
 */

#include "disruption-plan.h"
#include "string-util.h"

typedef enum PageRole {
        PAGE_GOES,
        PAGE_REFUSED, /* a person asked about it, and it could not go */
        PAGE_NEW,     /* it does not exist yet */
        PAGE_TAKES,   /* it stays, and takes pods */
        PAGE_STAYS,
        _PAGE_ROLE_MAX,
} PageRole;

const char *page_role_class(PageRole r); /* "goes": in class= of the page */

typedef struct PageRoom {
        int64_t has;           /* allocatable; 0: not said */
        int64_t before, after; /* what its pods ask for; after: 0 once the node is gone */
} PageRoom;

typedef struct PageNode {
        uint32_t number;
        const char *name, *pool;   /* pool NULL: none has it */
        PageRole role;
        size_t step;               /* 1, 2, ...: with which it goes, or is new; 0 */
        const PlanStep *of_step;   /* NULL: of no plan */
        const char *why;           /* of one that goes: a sentence without its stop; NULL */
        const char *method;        /* of one that stays: the method that comes nearest; NULL */
        const GateFindings *lacks; /* what keeps it; NULL */
        size_t n_out, n_in;        /* pods */
        PageRoom cpu, memory;      /* thousandths of a CPU, bytes */
} PageNode;

typedef struct PageMove {
        size_t step;
        PlanMove move;
} PageMove;

typedef struct PlanPage {
        const DisruptionScene *scene;
        const DisruptionPlan *plan; /* NULL: it is about what_if */
        const WhatIf *what_if;
        char *const *notes;         /* sentences; NULL: none */
        PageNode *nodes;            /* of one pool together, pools by name, nodes without a pool last; those that go first */
        size_t n_nodes;
        uint32_t *index;            /* in nodes[], of each number; NO_NODE: not shown */
        PageMove *moves;            /* by step, from, to, pod; behind them those of pods that wait, which leave no node that goes */
        size_t n_moves, n_waiting;
        size_t counts[_PAGE_ROLE_MAX];
} PlanPage;

/* All borrow what they are made of. -ENOMEM. */
int plan_page_of_plan(const DisruptionPlan *p, char *const *notes, PlanPage *ret);
int plan_page_of_what_if(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *notes, PlanPage *ret);
void plan_page_done(PlanPage *p);

static inline const PageNode *page_node(const PlanPage *p, uint32_t number) {
        return p->index[number] == NO_NODE ? NULL : p->nodes + p->index[number];
}
/* Hundredths of what it has; -1: not said what it has. */
int64_t page_percent(int64_t asked, int64_t has);
/* "a PodDisruptionBudget allows no eviction now": for somebody who does not know the codes. */
const char *page_code_words(GateCode c);
const char *page_method_words(PlanMethod m);

/* Nodes by pool with bars of their room. Of a cluster that is too large for that, all of them as a map of small squares, and bars
 * of those that something becomes of. Says itself what it has left out. */
void plan_cards_add(StrBuf *b, const PlanPage *p);
/* The picture of moves: nodes that pods leave, nodes that they go to, an arrow for each pod, or, of many moves, for each pair of
 * nodes. Says itself what it has left out. Nothing where no pod moves. */
void plan_flow_add(StrBuf *b, const PlanPage *p);
