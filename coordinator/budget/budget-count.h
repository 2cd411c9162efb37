/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts how many nodes of the view a budget selects, and how many of them are available (budget-math.h) and not charged in
 * status.disruptedNodes; lists those that are not.
 */

#include "budget-text.h"
#include "cluster-view.h"

BudgetFigures budget_count(const ClusterView *v, const KubeNodeBudget *b);
/* Returns the nodes that budget_count() does not count as available, longest first. */
BudgetUsers budget_users(const ClusterView *v, const KubeNodeBudget *b);

/* The sentence of a refusal, from the view (budget-text.h); of a deletion that has begun, why it waits. Free it; NULL on
 * ENOMEM. */
char *budget_refusal(const ClusterView *v, const KubeNodeBudget *b, const char *node, bool begun);
