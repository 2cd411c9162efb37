/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of the texts for a disruption that a NodeDisruptionBudget refuses. The test budget-text plays each
 * row with the pure functions. The test budget-rows builds such a cluster, and compares the message of the
 * refusal.
 */

#include "kube-kinds.h"

/* Refusals because the budget has no room. The unavailable nodes are n1, n2, ...: n1 is being deleted, n3 is
 * charged for a DELETE, n4 for a reboot, and the others are not Ready. n1 is unavailable since 08:00, and
 * each next node since a minute later. */
typedef struct BudgetSentenceRow {
        NodeAmountUnit unit;
        bool is_min;
        int64_t value, expected, n_unavailable;
        bool begun;
        const char *text;
} BudgetSentenceRow;

static const BudgetSentenceRow budget_sentence_rows[] = {
        { NODE_AMOUNT_NODES, false, 3, 50, 3, false,
          "it has maxUnavailable 3, so 47 nodes must stay available (now: 47 of 50). "
          "Unavailable are n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready "
          "since 2027-01-15T08:01:00Z), n3 (may be deleted since 2027-01-15T08:02:00Z). Try "
          "again when one of them is gone or available again, or change the budget." },
        { NODE_AMOUNT_NODES, false, 3, 50, 3, true,
          "it has maxUnavailable 3, so 47 nodes must stay available (now: 47 of 50). "
          "Unavailable are n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready "
          "since 2027-01-15T08:01:00Z), n3 (may be deleted since 2027-01-15T08:02:00Z). The "
          "removal goes on when one of them is gone or available again, or the budget is changed." },
        { NODE_AMOUNT_NODES, false, 1, 3, 1, false,
          "it has maxUnavailable 1, so 2 nodes must stay available (now: 2 of 3). Unavailable "
          "is n1 (is being deleted since 2027-01-15T08:00:00Z). Try again when that node is "
          "gone or available again, or change the budget." },
        { NODE_AMOUNT_NODES, false, 3, 50, 9, false,
          "it has maxUnavailable 3, so 47 nodes must stay available (now: 41 of 50). "
          "Unavailable are n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready "
          "since 2027-01-15T08:01:00Z), n3 (may be deleted since 2027-01-15T08:02:00Z), n4 "
          "(may reboot since 2027-01-15T08:03:00Z), n5 (is not Ready) and 4 more. Try again "
          "when enough of them are gone or available again, or change the budget." },
        /* A deleted node makes no other one available. */
        { NODE_AMOUNT_NODES, true, 4, 5, 1, false,
          "it has minAvailable 4, so 4 nodes must stay available (now: 4 of 5). Unavailable is "
          "n1 (is being deleted since 2027-01-15T08:00:00Z). When that node is gone, 4 nodes "
          "are left, and 4 must stay available. Try again when that node is available again, or has a "
          "successor, or change the budget." },
        { NODE_AMOUNT_NODES, true, 1, 3, 2, true,
          "it has minAvailable 1, so 1 node must stay available (now: 1 of 3). Unavailable are "
          "n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready since "
          "2027-01-15T08:01:00Z). When they are gone, 1 node is left, and 1 must stay "
          "available. The removal goes on when one of them is available again, or has a successor, or "
          "the budget is changed." },
        { NODE_AMOUNT_NODES, true, 4, 5, 3, false,
          "it has minAvailable 4, so 4 nodes must stay available (now: 2 of 5). Unavailable are "
          "n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready since "
          "2027-01-15T08:01:00Z), n3 (may be deleted since 2027-01-15T08:02:00Z). When they are "
          "gone, 2 nodes are left, and 4 must stay available. Try again when enough of them are "
          "available again, or have successors, or change the budget." },
        /* 80 % of 5 is 4, and of the 4 that are left as well. */
        { NODE_AMOUNT_PERCENT, true, 80, 5, 1, false,
          "it has minAvailable 80%, so 4 nodes must stay available (now: 4 of 5). Unavailable "
          "is n1 (is being deleted since 2027-01-15T08:00:00Z). When that node is gone, 4 "
          "nodes are left, and 4 must stay available, rounded up. Try again when that node is "
          "available again, or has a successor, or change the budget." },
        { NODE_AMOUNT_PERCENT, true, 80, 4, 0, false,
          "it has minAvailable 80%, so 4 nodes must stay available (now: 4 of 4). 80% of the 4 "
          "nodes that there are is all of them, rounded up: add a node, or set a number, or "
          "maxUnavailable, which does not come to a standstill as nodes go." },
        /* 80 % of 10 is 8; of the 8 that are left it is 7, and there is room for one. */
        { NODE_AMOUNT_PERCENT, true, 80, 10, 2, false,
          "it has minAvailable 80%, so 8 nodes must stay available (now: 8 of 10). Unavailable "
          "are n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready since "
          "2027-01-15T08:01:00Z). Try again when enough of them are gone or available again, or change the "
          "budget." },
        { NODE_AMOUNT_PERCENT, false, 20, 5, 1, false,
          "it has maxUnavailable 20%, so 4 nodes must stay available (now: 4 of 5). "
          "Unavailable is n1 (is being deleted since 2027-01-15T08:00:00Z). Try again when "
          "that node is gone or available again, or change the budget." },
        { NODE_AMOUNT_PERCENT, true, 100, 3, 0, false,
          "it has minAvailable 100%, so 3 nodes must stay available (now: 3 of 3). So it never "
          "allows one: change the budget." },
        { NODE_AMOUNT_NODES, false, 0, 3, 0, false,
          "it has maxUnavailable 0, so 3 nodes must stay available (now: 3 of 3). So it never "
          "allows one: change the budget." },
        { NODE_AMOUNT_NODES, true, 3, 3, 0, false,
          "it has minAvailable 3, so 3 nodes must stay available (now: 3 of 3). So it never "
          "allows one: change the budget, or add nodes." },
        { NODE_AMOUNT_NODES, true, 9, 5, 0, false,
          "it has minAvailable 9, so 9 nodes must stay available (now: 5 of 5). So it never "
          "allows one: change the budget, or add nodes." },
        { NODE_AMOUNT_NODES, false, 3, 50, 2, false,
          "it has maxUnavailable 3, so 47 nodes must stay available (now: 48 of 50). "
          "Unavailable are n1 (is being deleted since 2027-01-15T08:00:00Z), n2 (is not Ready "
          "since 2027-01-15T08:01:00Z). By this coordinator's count there is room, but not yet "
          "by the budget's status: try again in a moment." },
        { NODE_AMOUNT_UNSET, false, 0, 3, 0, false,
          "its amount cannot be read: spec.minAvailable: '3 nodes' is neither a number of "
          "nodes nor a percentage from 0% to 100%. Correct the budget, and try again." },
};

/* Refusals because another holder has charged the node. */
#define HELD "NodeDisruptionBudget web allows no second disruption of node n9: "
#define LATER ". If the node is still there two minutes after that time, try again."
#define ENDED ". Try again when that disruption has ended."
typedef struct BudgetHeldRow {
        NodeCharge charge;
        const char *text;
} BudgetHeldRow;

static const BudgetHeldRow budget_held_rows[] = {
        { { .kind = NODE_CHARGE_DELETE, .holder = (char *) "alice" },
          HELD "its deletion by alice was admitted at 2027-01-15T08:00:00Z" LATER },
        { { .kind = NODE_CHARGE_DELETE },
          HELD "an earlier version of vesper has admitted its disruption at 2027-01-15T08:00:00Z" LATER },
        { { .kind = NODE_CHARGE_REBOOT, .holder = (char *) "r1" },
          HELD "its reboot was admitted at 2027-01-15T08:00:00Z for request r1" ENDED },
        { { .kind = NODE_CHARGE_OPERATION, .holder = (char *) "u1" },
          HELD "it was admitted for NodeDisruption u1 at 2027-01-15T08:00:00Z" ENDED },
        { { .kind = NODE_CHARGE_SUCCESSOR, .holder = (char *) "u2" },
          HELD
          "it was admitted for NodeClaim u2, which replaces another node, at 2027-01-15T08:00:00Z" ENDED },
};
