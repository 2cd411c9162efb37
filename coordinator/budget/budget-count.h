/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many nodes of the view a budget selects, and who uses it up: what budget-math.h reckons with. A node is unavailable
 * while it is not Ready, is being deleted, or is charged in status.disruptedNodes.
 */

#include "budget-text.h"
#include "cluster-view.h"

BudgetFigures budget_count(const ClusterView *v, const KubeNodeBudget *b);
/* The same for a deletion that has begun and was never charged: others like it, Ready and not charged, are not counted as
 * unavailable, since they are not drained before they are charged. */
BudgetFigures budget_count_begun(const ClusterView *v, const KubeNodeBudget *b);
/* Ready, and not being deleted. */
bool budget_node_is_available(const KubeNode *n);
/* Who is counted as unavailable by budget_count(), or with begun by budget_count_begun(). */
BudgetUsers budget_users(const ClusterView *v, const KubeNodeBudget *b, bool begun);

/* The sentence of a refusal, from the view (budget-text.h); of a deletion that has begun, why it waits. Free it; NULL on
 * ENOMEM. */
char *budget_refusal(const ClusterView *v, const KubeNodeBudget *b, const char *node, bool begun);
