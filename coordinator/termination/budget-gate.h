/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The second gate of a node's removal: a deletion that no NodeDisruptionBudget has charged yet (it came while no webhook was
 * asked, or by somebody who is exempt) is not acted upon before the ledger has room for it. Those that wait go in the order
 * of their deletion.
 */

#include "budget-ledger.h"
#include "termination-context.h"
#include "wakeup.h"

typedef struct BudgetGate BudgetGate;

/* Called from the loop: it may be passed now, or waits for something else. */
int budget_gate_new(const TerminationContext *context, void (*changed)(void *userdata), void *userdata, BudgetGate **ret);
BudgetGate *budget_gate_free(BudgetGate *g);
DEFINE_FREEP(BudgetGate, budget_gate_free);

/* Returns the coordinator's own DELETE ask for a node. begun: the deletion passed uncharged. n and the
 * holder are borrowed. */
BudgetAsk budget_ask_delete(const KubeNode *n, bool begun);

/* Charged, or no budget selects it. The first call asks. */
bool budget_gate_is_passed(BudgetGate *g, const KubeNode *n);
const char *budget_gate_message(const BudgetGate *g); /* what it waits for; NULL: it has not been told yet */
/* Adds the gate's wake-up to the report of its owner: the request under way, which the ledger reports, or
 * the timer of the next request. */
void budget_gate_add_wakeup(const BudgetGate *g, Wakeups *w);
