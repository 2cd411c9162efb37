/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-math.h"

#include "string-util.h"

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
