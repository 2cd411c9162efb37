/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The ledger of charges that every removal and every reboot asks: which disruptions the
 * NodeDisruptionBudgets have admitted. The charges lie in the status of the budgets (disruptedNodes), so
 * every replica asks the same ledger. A charge is one conditional patch, as the API server's own of a
 * PodDisruptionBudget's disruptedPods, so two replicas never both spend the last disruption.
 *
 * A charge has a kind and a holder, and two holders never share one (budget-charge-rule.h). Charging is
 * idempotent for a node's uid and a holder. A node that several budgets select is charged in each, in the
 * order of their names, all or none. Requests that wait for one budget go out in one patch, and one patch of
 * a budget is under way at a time. A patch with several charges that the API server refuses is split: each
 * charge is sent once by itself. A request that a budget refuses is answered at once; the caller decides
 * whether to ask again.
 *
 * The leader also keeps the figures of the status, and ends charges by the rules of their kinds
 * (budget-charge-watch.h).
 */

#include "budget-charge-watch.h"
#include "budget-count.h"
#include "wakeup.h"

/* Maximum number of charges that the CRD accepts. */
#define BUDGET_CHARGES_MAX NODE_CHARGES_MAX

typedef struct BudgetLedger BudgetLedger;
typedef struct BudgetRequest BudgetRequest;

typedef enum BudgetAnswer {
        BUDGET_ADMITTED,
        BUDGET_REFUSED, /* the message says by whom, and why */
        BUDGET_UNKNOWN, /* the API server gave no answer in time, or refuses the charge, as the message says:
                           no charge is known to stand */
        _BUDGET_ANSWER_MAX,
} BudgetAnswer;

/* "admitted"; NULL behind the last. */
extern const char *const budget_answer_names[_BUDGET_ANSWER_MAX + 1];

/* Called from the loop, never inside budget_ledger_ask(); once, unless the request has begun. message: NULL
 * if it is admitted; freed with the request, which may be freed inside. A request that has begun is not
 * refused for good: BUDGET_REFUSED says what it waits for, again when that may have changed, until
 * BUDGET_ADMITTED or BUDGET_UNKNOWN comes. */
typedef void (*budget_answered_t)(BudgetAnswer a, const char *message, void *userdata);

typedef struct BudgetAsk {
        const KubeNode *node;  /* as the asker knows it; a reference is taken */
        NodeChargeKind kind;
        const char *holder;    /* who asks: at most NODE_CHARGE_HOLDER_BYTES_MAX bytes; copied */
        usec_t for_usec;       /* expected length of a reboot slot, for `until`; 0: not known */
        usec_t timeout_usec;   /* 0: 10 s; what has begun has none */
        bool dry_run;          /* nothing is charged */
        bool as_leader;        /* charged only while we lead: budget_ledger_lead() */
        bool claim_is_deleting; /* the NodeClaim of the node is being deleted: every DELETE charge is for
                                   that deletion */
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

/* Returns true if a budget selects the node and has not charged it for this ask. Reads node, kind, holder,
 * begun and claim_is_deleting; ignores the other fields. */
bool budget_ledger_concerns(const BudgetLedger *l, const BudgetAsk *ask);
/* Releases the holder's charges of the node: the holder does not disrupt the node, or no longer. A charge
 * that the holder took over goes back to the earlier holder. A charge that was taken over from the holder no
 * longer goes back to it. */
void budget_ledger_release(BudgetLedger *l, const char *node_uid, const char *holder);

/* From the view. */
void budget_ledger_see_budget(BudgetLedger *l, const KubeNodeBudget *old, const KubeNodeBudget *new);
void budget_ledger_see_node(BudgetLedger *l, const KubeNode *old, const KubeNode *new);
/* Starts to write figures and to end charges, by calls that pass the guard. holders: copied; NULL: only
 * DELETE charges have holders. */
void budget_ledger_lead(BudgetLedger *l, HttpGuard guard, const BudgetHolders *holders);
/* Stops that. */
void budget_ledger_follow(BudgetLedger *l);
/* Answers given since the start: of what has begun each time that it is told to wait, too. */
const uint64_t *budget_ledger_answers(const BudgetLedger *l);
/* Patches sent since the start, for tests. */
uint64_t budget_ledger_n_patches(const BudgetLedger *l);
/* Reports each request that has no answer, each status that is to be read or written, and each charge that
 * may end by time alone. The ledger evaluates a budget again within BUDGET_LEDGER_WAKEUP_USEC. */
#define BUDGET_LEDGER_WAKEUP_USEC (3 * USEC_PER_MINUTE)
void budget_ledger_next_wakeup(const BudgetLedger *l, Wakeups *w);
