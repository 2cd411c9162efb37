/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a NodeDisruptionBudget allows, from how many nodes it selects and how many of them are available. Pure. Rounding is
 * a PodDisruptionBudget's (Kubernetes, pkg/controller/disruption): a percentage of nodes is rounded up, of minAvailable
 * and of maxUnavailable.
 */

#include "kube-kinds.h"

typedef struct BudgetFigures {
        int64_t expected;  /* nodes that it selects */
        int64_t available; /* of these: budget_node_is_available(), and not charged */
        int64_t desired;   /* that many are to stay available */
        int64_t allowed;   /* that many more may be disrupted now; never < 0 */
        int64_t held_back; /* of those that are not available: budget_node_is_held_back(), and not charged; filled in by budget_count() */
} BudgetFigures;

/* Returns true if the node is being drained or has been: by a removal that the budgets have admitted (taint vesper.sh/disrupted), by
 * its agent, for the interruption queue, or by vesperctl drain. A notice that ends the machine counts from its cordon on, any other
 * from the drain on. `kubectl drain` leaves no trace that can be told from a cordon. */
bool budget_node_is_drained(const KubeNode *n);
/* Returns true if the node is Ready, and nobody drains or removes it. A deletion that waits for a NodeDisruptionBudget
 * (budget-gate.h) leaves the node in service: it counts as available. */
bool budget_node_is_available(const KubeNode *n);
/* Returns true if a notice that stands ends the machine: the agent's, or what the interruption queue announced for a Node without
 * NodeClaim. */
bool budget_node_is_ending(const KubeNode *n);
/* Returns true if budgets count the node's disruption and never refuse it, because a refusal would protect nothing: the node is
 * not Ready, its removal has begun, or budget_node_is_ending(). A drain that the node comes back from is not such a reason. */
bool budget_node_passes(const KubeNode *n);
/* Returns true if the node is drained, and its removal would have to ask its budgets. Such nodes do not hold each other: of several
 * that a person has drained beyond the budget one after the other may be removed. */
bool budget_node_is_held_back(const KubeNode *n);

/* Of a budget whose amount cannot be read all nodes are to stay available: it refuses its own nodes, and no other's. */
BudgetFigures budget_figures(const KubeNodeBudget *b, int64_t expected, int64_t available);
bool budget_amount_is_readable(const KubeNodeBudget *b);
/* It allows nothing even while each of its nodes is available. */
bool budget_never_allows(const KubeNodeBudget *b, int64_t expected);
/* minAvailable is a percentage that comes to a standstill as nodes go without a successor: 80 % of 5 is 4, and so is 80 %
 * of the 4 that are left. */
bool budget_stops_as_nodes_go(const KubeNodeBudget *b, int64_t expected);
/* "minAvailable 80%", "maxUnavailable 3"; of one that cannot be read, why. Free it; NULL on ENOMEM. */
char *budget_amount_format(const KubeNodeBudget *b);
