/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of a NodeDisruptionBudget, as a pure function of what it is to say. */

#include "budget-math.h"

/* charges: all that are to stand; figures NULL: only they, and how many more are allowed. Free it; NULL on ENOMEM. */
char *budget_status_patch(const KubeNodeBudget *b, const NodeCharge *charges, size_t n_charges, const BudgetFigures *figures,
                          int64_t allowed, usec_t wall_now_usec);
/* Returns true if the status has these figures and conditions already; ignores charges. False on ENOMEM,
 * too. */
bool budget_status_says(const KubeNodeBudget *b, const BudgetFigures *figures);
