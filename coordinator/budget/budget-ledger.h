/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one ledger that everybody asks who takes a node: which disruptions the NodeDisruptionBudgets have admitted. It lies in
 * their status (disruptedNodes), so every replica asks the same one: a charge is one conditional patch, as the API server's
 * own of a PodDisruptionBudget's disruptedPods, and two replicas can never both spend the last disruption.
 *
 * A node that several budgets select is charged in each, in the order of their names, all or none. What waits for one budget
 * goes out together, one patch of it under way at a time. A charge is idempotent per node uid: asked for again it is
 * admitted. What a budget refuses is refused at once; whether it may be asked again later is the asker's business.
 *
 * The leader keeps the figures of the status besides, and takes a charge off when nothing can need it any more: its node has
 * gone, or its time is up and its node is not being deleted; and never before this leader itself has seen it stand for
 * CHARGE_SEEN_USEC, so that neither a view that lies behind nor a clock that is ahead gives room that is not there.
 */

#include "budget-count.h"

/* As long as a webhook's DELETE may need to show in every view. */
#define BUDGET_CHARGE_USEC (2 * USEC_PER_MINUTE)
/* As many charges as the CRD takes. */
#define BUDGET_CHARGES_MAX 2000u

typedef struct BudgetLedger BudgetLedger;
typedef struct BudgetRequest BudgetRequest;

typedef enum BudgetAnswer {
        BUDGET_ADMITTED,
        BUDGET_REFUSED, /* the message says by whom, and why */
        BUDGET_UNKNOWN, /* the API server gave no answer in time: no charge is known to stand */
        _BUDGET_ANSWER_MAX,
} BudgetAnswer;

/* "admitted"; NULL behind the last. */
extern const char *const budget_answer_names[_BUDGET_ANSWER_MAX + 1];

/* Once, from the loop, never inside budget_ledger_ask(). message: NULL where it is admitted; it goes with the request,
 * which may be freed inside. What has begun is not refused for good: it waits its turn, BUDGET_REFUSED says for what, again when that
 * may have changed, and BUDGET_ADMITTED comes in the end. */
typedef void (*budget_answered_t)(BudgetAnswer a, const char *message, void *userdata);

typedef struct BudgetAsk {
        const KubeNode *node;  /* as the asker knows it; a reference is taken */
        NodeChargeKind kind;
        const char *holder;    /* who asks; static */
        usec_t for_usec;       /* how long the charge stands at least; 0: BUDGET_CHARGE_USEC */
        usec_t timeout_usec;   /* 0: 10 s; what has begun has none */
        bool dry_run;          /* nothing is charged */
        bool as_leader;        /* charged only while we lead: budget_ledger_lead() */
        bool begun;            /* its deletion passed uncharged: it is being deleted, and not drained yet */
} BudgetAsk;

/* Client and view are borrowed. */
int budget_ledger_new(KubeClient *c, const ClusterView *v, BudgetLedger **ret);
BudgetLedger *budget_ledger_free(BudgetLedger *l); /* requests must be freed before */
DEFINE_FREEP(BudgetLedger, budget_ledger_free);

/* A node that no budget selects, or that passes (budget_node_passes()), is admitted without a charge. A node that is drained
 * already is counted as unavailable: admitting it takes no further room, and other drained nodes do not hold it
 * (budget_node_is_held_back()). */
int budget_ledger_ask(BudgetLedger *l, const BudgetAsk *ask, budget_answered_t answered, void *userdata, BudgetRequest **ret);
/* No answer comes after; what is charged by then stands for its time. */
BudgetRequest *budget_request_free(BudgetRequest *r);
DEFINE_FREEP(BudgetRequest, budget_request_free);

/* Some budget selects this node, and has not charged it. */
bool budget_ledger_concerns(const BudgetLedger *l, const KubeNode *n);
/* The node is not taken, after all, or is back: its charges go, unless it is being deleted. */
void budget_ledger_release(BudgetLedger *l, const char *node_uid);

/* From the view. */
void budget_ledger_see_budget(BudgetLedger *l, const KubeNodeBudget *old, const KubeNodeBudget *new);
void budget_ledger_see_node(BudgetLedger *l, const KubeNode *old, const KubeNode *new);
/* Figures are kept from now on, by calls that the guard lets through; or no longer. */
void budget_ledger_lead(BudgetLedger *l, HttpGuard guard);
void budget_ledger_follow(BudgetLedger *l);
/* Answers given since the start: of what has begun each time that it is told to wait, too. */
const uint64_t *budget_ledger_answers(const BudgetLedger *l);
/* Patches sent since the start, for tests. */
uint64_t budget_ledger_n_patches(const BudgetLedger *l);
