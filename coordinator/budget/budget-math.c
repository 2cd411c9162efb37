/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-math.h"

#include "marks.h"
#include "string-util.h"

/* -- nodes ---------------------------------------------------------------------------------------------- */

static bool is_ending(const Interruption *i) {
        return i && notice_ends_machine(i->notice);
}

static bool is_drained_for(const Interruption *i) {
        if (!i)
                return false;
        switch (i->phase) {
        case INTERRUPTION_DRAINING:
        case INTERRUPTION_VOLUMES:
        case INTERRUPTION_DRAINED:
        case INTERRUPTION_ENDING:
        case INTERRUPTION_LATER:
                return true;
        case INTERRUPTION_PHASE_NONE:
        case INTERRUPTION_PLANNED:
        case INTERRUPTION_CORDONED:
                return is_ending(i);
        case INTERRUPTION_CANCELLED:
        case INTERRUPTION_RELEASED:
        case _INTERRUPTION_PHASE_MAX:
                break;
        }
        return false;
}

bool budget_node_is_drained(const KubeNode *n) {
        return kube_node_has_taint(n, TAINT_DISRUPTED, NULL) ||
               (n->unschedulable && object_meta_annotation(&n->object.meta, ANNOTATION_CORDONED_BY_VESPERCTL)) ||
               is_drained_for(kube_node_standing_interruption(n)) || is_drained_for(kube_node_standing_heard(n));
}

/* Deleted, and the second gate does not hold it: our finalizer is not there, or not any more. */
static bool is_gone(const KubeNode *n) {
        return n->object.meta.deletion_usec > 0 && !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
}

bool budget_node_is_available(const KubeNode *n) {
        return kube_node_is_ready(n) && !is_gone(n) && !budget_node_is_drained(n);
}

bool budget_node_is_ending(const KubeNode *n) {
        return is_ending(kube_node_standing_interruption(n)) || is_ending(kube_node_standing_heard(n));
}

bool budget_node_passes(const KubeNode *n) {
        return !kube_node_is_ready(n) || is_gone(n) || kube_node_has_taint(n, TAINT_DISRUPTED, NULL) || budget_node_is_ending(n);
}

bool budget_node_is_held_back(const KubeNode *n) {
        return budget_node_is_drained(n) && !budget_node_passes(n);
}

/* -- amounts -------------------------------------------------------------------------------------------- */

static int64_t amount_of(const NodeAmount *a, int64_t expected) {
        if (a->unit != NODE_AMOUNT_PERCENT)
                return a->value;
        return expected / 100 * a->value + (expected % 100 * a->value + 99) / 100;
}

bool budget_amount_is_readable(const KubeNodeBudget *b) {
        return (b->min_available.unit == NODE_AMOUNT_UNSET) != (b->max_unavailable.unit == NODE_AMOUNT_UNSET);
}

BudgetFigures budget_figures(const KubeNodeBudget *b, int64_t expected, int64_t available) {
        BudgetFigures f = { .expected = expected, .available = available };

        assert(b && available <= expected && available >= 0);
        if (!budget_amount_is_readable(b))
                f.desired = expected;
        else if (b->min_available.unit != NODE_AMOUNT_UNSET)
                f.desired = amount_of(&b->min_available, expected);
        else
                f.desired = MAX(expected - amount_of(&b->max_unavailable, expected), INT64_C(0));
        f.allowed = budget_amount_is_readable(b) ? MAX(available - f.desired, INT64_C(0)) : 0;
        return f;
}

bool budget_never_allows(const KubeNodeBudget *b, int64_t expected) {
        return budget_figures(b, expected, expected).allowed == 0;
}

bool budget_stops_as_nodes_go(const KubeNodeBudget *b, int64_t expected) {
        return b->min_available.unit == NODE_AMOUNT_PERCENT && b->min_available.value > 0 && b->min_available.value < 100 &&
               budget_never_allows(b, expected);
}

char *budget_amount_format(const KubeNodeBudget *b) {
        bool is_min = b->min_available.unit != NODE_AMOUNT_UNSET;
        const NodeAmount *a = is_min ? &b->min_available : &b->max_unavailable;

        if (!budget_amount_is_readable(b))
                return strf("its amount cannot be read: %s", strempty(b->object.invalid));
        return strf("%s %lld%s", is_min ? "minAvailable" : "maxUnavailable", (long long) a->value,
                    a->unit == NODE_AMOUNT_PERCENT ? "%" : "");
}
