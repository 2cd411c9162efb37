/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A draft of the next state of a NodeDisruptionBudget's charges: those that stand, and new ones while there
 * is room. The account of the budget writes it by one patch (budget-account.c).
 */

#include "budget-math.h"
#include "cluster-view.h"

typedef struct BudgetDraft {
        const ClusterView *view;
        KubeNodeBudget budget; /* a shallow copy; the strings of its charges are borrowed */
        NodeCharge *charges;   /* of the budget; NULL: they are borrowed */
        size_t n_kept;         /* charges that stood before; the new ones come behind them */
        size_t n_taken_over;   /* new charges that took the place of another holder's */
        bool changed;          /* the charges are not those of the budget any more */
        int64_t room; /* disruptions that may be charged; < 0: more nodes are unavailable than the budget
                         allows */
        int64_t held_back; /* drained nodes that may be charged beside them (BudgetFigures) */
} BudgetDraft;

/* Counts the room in the budget. is_leader: false limits the room to status.disruptionsAllowed, because both
 * counts may be behind. A follower has no room at all if the status is of an earlier generation. Until
 * budget_draft_make_room() the draft has the budget's own charges. view and b are borrowed. */
void budget_draft_init(BudgetDraft *d, const ClusterView *view, const KubeNodeBudget *b, bool is_leader);
/* Empties the list of charges, with room for those of the budget and n_more. -ENOMEM. budget_draft_done()
 * frees it. */
int budget_draft_make_room(BudgetDraft *d, size_t n_more);
void budget_draft_done(BudgetDraft *d);

/* Keeps a charge of the budget. Call it before budget_draft_add(). */
void budget_draft_keep(BudgetDraft *d, const NodeCharge *c);
/* Returns the charge of that Node; NULL: none. *ret_is_new: added or taken over in this draft. Borrowed
 * until the next change. */
const NodeCharge *budget_draft_charge(const BudgetDraft *d, const char *uid, bool *ret_is_new);

bool budget_draft_has_room(const BudgetDraft *d, const KubeNode *n);
/* Counts a disruption of the node. A drained node is counted as unavailable already, so it takes no room,
 * but from now on it holds other drained nodes. */
void budget_draft_take_room(BudgetDraft *d, const KubeNode *n);
/* Adds a charge of the node, which replaces the node's earlier charge, or takes room if there is none. */
void budget_draft_add(BudgetDraft *d, const KubeNode *n, const NodeCharge *c);

size_t budget_draft_n_new(const BudgetDraft *d);
/* Returns disruptionsAllowed for the patch. b: the budget that the draft was made of; f: the figures of the
 * draft. */
int64_t budget_draft_allowed(const BudgetDraft *d, const KubeNodeBudget *b, const BudgetFigures *f,
                             bool is_leader);
