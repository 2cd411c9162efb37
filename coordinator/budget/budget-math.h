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
        int64_t available; /* of these: Ready, not being deleted, not charged */
        int64_t desired;   /* that many are to stay available */
        int64_t allowed;   /* that many more may be disrupted now; never < 0 */
} BudgetFigures;

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
