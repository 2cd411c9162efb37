/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a person is told whose deletion a budget refuses, or whose node waits for one: the budget, its
 * figures, who uses it up, and what to do. Pure. */

#include "budget-math.h"

#define BUDGET_TEXT_BYTES_MAX 1024u
/* Named in a text; of more there stands how many. */
#define BUDGET_USERS_MAX 5u

/* A node that is unavailable. */
typedef struct BudgetUser {
        const char *node;  /* borrowed */
        const char *why;   /* static: "is being deleted" */
        usec_t since_usec; /* wall clock; 0: not known */
} BudgetUser;

typedef struct BudgetUsers {
        BudgetUser list[BUDGET_USERS_MAX]; /* those that are unavailable for longest, first */
        size_t n;                          /* of the list */
        size_t n_all;                      /* >= n */
} BudgetUsers;

/* begun: the node is being deleted already, and waits; else its deletion was refused. Times are told, not
 * spans: the text stays the same while nothing changes. Free it; NULL on ENOMEM. At most
 * BUDGET_TEXT_BYTES_MAX bytes. */
char *budget_text_refusal(const KubeNodeBudget *b, const BudgetFigures *f, const BudgetUsers *users,
                          const char *node, bool begun);
/* Returns the message for a holder who asks for the disruption of a node that another holder has charged.
 * Free it; NULL on ENOMEM. At most BUDGET_TEXT_BYTES_MAX bytes. */
char *budget_text_held(const KubeNodeBudget *b, const NodeCharge *c, const char *node);
