/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of the arithmetic of a NodeDisruptionBudget. The test budget-math plays each row with the pure
 * functions. The test budget-rows builds a cluster of such nodes, and reads the figures from the status of
 * the budget.
 */

#include <stdbool.h>
#include <stdint.h>

/* Percentages are rounded as the disruption controller rounds: up, both ways. */
typedef struct BudgetFigureRow {
        const char *amount;
        int64_t expected, available, desired, allowed;
        bool never, stops;
        const char *reason; /* of the condition DisruptionAllowed */
} BudgetFigureRow;

static const BudgetFigureRow budget_figure_rows[] = {
        { "'minAvailable':3", 5, 5, 3, 2, false, false, "SufficientNodes" },
        { "'minAvailable':3", 5, 3, 3, 0, false, false, "InsufficientNodes" },
        { "'minAvailable':3", 5, 1, 3, 0, false, false, "InsufficientNodes" },
        { "'minAvailable':9", 5, 5, 9, 0, true, false, "AllowsNone" },
        { "'minAvailable':0", 5, 1, 0, 1, false, false, "SufficientNodes" },
        { "'minAvailable':'100%'", 5, 5, 5, 0, true, false, "AllowsNone" },
        { "'minAvailable':'0%'", 5, 5, 0, 5, false, false, "SufficientNodes" },
        { "'maxUnavailable':0", 5, 5, 5, 0, true, false, "AllowsNone" },
        { "'maxUnavailable':1", 5, 5, 4, 1, false, false, "SufficientNodes" },
        { "'maxUnavailable':1", 5, 4, 4, 0, false, false, "InsufficientNodes" },
        { "'maxUnavailable':9", 5, 2, 0, 2, false, false, "SufficientNodes" },
        { "'maxUnavailable':'5%'", 3, 3, 2, 1, false, false, "SufficientNodes" }, /* rounded up: one */
        { "'maxUnavailable':'100%'", 5, 5, 0, 5, false, false, "SufficientNodes" },
        { "'minAvailable':'33%'", 3, 3, 1, 2, false, false, "SufficientNodes" },
        { "'minAvailable':'34%'", 3, 3, 2, 1, false, false, "SufficientNodes" },
        /* 80 % of 5, of the 4 that are left, of 3: a standstill at 4. */
        { "'minAvailable':'80%'", 5, 5, 4, 1, false, false, "SufficientNodes" },
        { "'minAvailable':'80%'", 4, 4, 4, 0, true, true, "PercentageOfFewerNodes" },
        { "'maxUnavailable':'20%'", 5, 5, 4, 1, false, false, "SufficientNodes" },
        { "'maxUnavailable':'20%'", 4, 4, 3, 1, false, false, "SufficientNodes" },
        { "'minAvailable':'99%'", 1000000007, 1000000007, 990000007, 10000000, false, false, "SufficientNodes" },
        { "'minAvailable':'x'", 5, 5, 5, 0, true, false, "InvalidAmount" },
};

/* A budget whose selector a kubelet can match by labels of its own has a condition about that. */
typedef struct BudgetSelectorRow {
        const char *selector, *expected;
} BudgetSelectorRow;

static const BudgetSelectorRow budget_selector_rows[] = {
        { "{'matchLabels':{'pool':'a'}}", "\"type\":\"SelectorOpenToKubelets\",\"status\":\"True\",\"reason\":\"LabelOfKubelet\",\"message\":\"A kubelet may set pool on its own Node" },
        { "{'matchLabels':{'vesper.sh/nodepool':'a'}}", "A kubelet may set vesper.sh/nodepool on its own Node" },
        { "{'matchLabels':{'node-restriction.kubernetes.io/pool':'a'}}", "\"type\":\"SelectorOpenToKubelets\",\"status\":\"False\",\"reason\":\"LabelsProtected\"" },
        { "{}", "\"type\":\"SelectorOpenToKubelets\",\"status\":\"False\",\"reason\":\"SelectsNothing\"" },
};

#define SAYS(key, action, phase, boot) \
        "'annotations':{'vesper.sh/" key "':'{\\'id\\':\\'i\\',\\'action\\':\\'" action "\\',\\'phase\\':\\'" phase "\\',\\'bootID\\':\\'" boot "\\'}'}"
#define FINALIZED "'finalizers':['vesper.sh/termination']"
#define DELETED "'deletionTimestamp':'2027-01-15T08:00:00Z'"

/* How a node counts: available, drained, ending by a notice, and free to go regardless of its budgets. */
typedef struct BudgetNodeRow {
        const char *what, *meta, *spec, *ready;
        bool available, drained, ending, passes;
} BudgetNodeRow;

static const BudgetNodeRow budget_node_rows[] = {
        { "in service", "", "", "True", true, false, false, false },
        { "not Ready", "", "", "Unknown", false, false, false, true },
        { "cordoned by somebody", "", "'unschedulable':true", "True", true, false, false, false },
        { "drained by vesperctl", "'annotations':{'vesper.sh/cordoned-by-vesperctl':'{}'}", "'unschedulable':true", "True", false, true, false,
          false },
        { "opened again by a person", "'annotations':{'vesper.sh/cordoned-by-vesperctl':'{}'}", "", "True", true, false, false, false },
        { "removal held at the second gate", FINALIZED "," DELETED, "", "True", true, false, false, false },
        { "removal past the second gate", FINALIZED "," DELETED, "'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]", "True",
          false, true, false, true },
        { "deleted, and kept by another finalizer", "'finalizers':['a/b']," DELETED, "", "True", false, false, false, true },
        { "taken by an operation", "", "'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]", "True", false, true, false, true },
        { "spot notice, just cordoned", SAYS("interruption", "terminate", "Cordoned", "b1"), "", "True", false, true, true, true },
        { "spot notice, drained", SAYS("interruption", "terminate", "Drained", "b1"), "", "True", false, true, true, true },
        { "hibernation", SAYS("interruption", "hibernate", "Draining", "b1"), "", "True", false, true, true, true },
        { "reboot, only cordoned", SAYS("interruption", "reboot", "Cordoned", "b1"), "", "True", true, false, false, false },
        { "reboot, drained", SAYS("interruption", "reboot", "Drained", "b1"), "", "True", false, true, false, false },
        { "reboot, in a phase of a later version", SAYS("interruption", "reboot", "Hiding", "b1"), "", "True", false, true, false, false },
        { "released by a person", SAYS("interruption", "terminate", "Released", "b1"), "", "True", true, false, false, false },
        { "of an earlier boot", SAYS("interruption", "terminate", "Draining", "b0"), "", "True", true, false, false, false },
        { "announced by the queue, and it may be weeks away", SAYS("announced", "terminate", "", "b1"), "", "True", true, false, false, false },
        { "drained for what the queue announced", SAYS("heard", "terminate", "Draining", "b1"), "", "True", false, true, true, true },
        { "drained for a reboot that the queue announced", SAYS("heard", "reboot", "Drained", "b1"), "", "True", false, true, false, false },
        { "announced by the queue in an earlier boot", SAYS("heard", "terminate", "Draining", "b0"), "", "True", true, false, false, false },
};
