/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-status.h"

#include "marks.h"
#include "status-patch.h"
#include "string-util.h"

#define N_CONDITIONS 2u

static void make_conditions(const KubeNodeBudget *b, const BudgetFigures *f, Condition ret[static N_CONDITIONS],
                            usec_t wall_now_usec) {
        bool valid = !b->object.invalid;
        /* Static: which node has used it up stands in disruptedNodes and in each refusal. */
        const char *why = f->allowed > 0                    ? "SufficientNodes"
                          : !budget_amount_is_readable(b)   ? "InvalidAmount"
                          : selector_is_empty(b->selector)  ? "SelectsNothing"
                          : f->expected == 0                ? "NoNodes"
                          : budget_stops_as_nodes_go(b, f->expected) ? "PercentageOfFewerNodes"
                          : budget_never_allows(b, f->expected)      ? "AllowsNone"
                                                                     : "InsufficientNodes";

        ret[0] = (Condition){ .type = BUDGET_DISRUPTION_ALLOWED,
                              .status = f->allowed > 0 ? CONDITION_TRUE : CONDITION_FALSE,
                              .reason = why,
                              .last_transition_usec = wall_now_usec };
        ret[1] = (Condition){ .type = BUDGET_INVALID,
                              .status = valid ? CONDITION_FALSE : CONDITION_TRUE,
                              .reason = valid ? "Valid" : "InvalidSpec",
                              .message = valid ? NULL : b->object.invalid,
                              .last_transition_usec = wall_now_usec };
}

static void add_charges(JsonWriter *w, const NodeCharge *charges, size_t n) {
        char text[RFC3339_MAX];

        json_open_array(w, "disruptedNodes");
        for (size_t i = 0; i < n; i++) {
                const NodeCharge *c = charges + i;

                json_open_object(w, NULL);
                json_add_string(w, "name", strempty(c->name));
                json_add_string(w, "uid", strempty(c->uid));
                rfc3339_format(c->time_usec, text); /* required by the CRD: json_add_time() leaves a time of 0 out */
                json_add_string(w, "time", text);
                if (c->kind)
                        json_add_string(w, "kind", c->kind);
                if (c->holder)
                        json_add_string(w, "holder", c->holder);
                json_add_time(w, "until", c->until_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

char *budget_status_patch(const KubeNodeBudget *b, const NodeCharge *charges, size_t n_charges, const BudgetFigures *figures,
                          int64_t allowed, usec_t wall_now_usec) {
        JsonWriter *w = status_patch_open(&b->object);

        if (!w)
                return NULL;
        add_charges(w, charges, n_charges);
        json_add_int64(w, "disruptionsAllowed", allowed);
        if (figures) {
                Condition conditions[N_CONDITIONS];

                json_add_int64(w, "expectedNodes", figures->expected);
                json_add_int64(w, "currentAvailable", figures->available);
                json_add_int64(w, "desiredAvailable", figures->desired);
                json_add_int64(w, "observedGeneration", b->object.meta.generation);
                make_conditions(b, figures, conditions, wall_now_usec);
                status_patch_add_conditions(w, &b->object, conditions, N_CONDITIONS, NULL);
        }
        return status_patch_close(w);
}

bool budget_status_says(const KubeNodeBudget *b, const BudgetFigures *f) {
        Condition conditions[N_CONDITIONS];

        make_conditions(b, f, conditions, 0);
        return b->observed_generation == b->object.meta.generation && b->expected_nodes == f->expected &&
               b->current_available == f->available && b->desired_available == f->desired &&
               b->disruptions_allowed == f->allowed && condition_is_said(&b->object, conditions) &&
               condition_is_said(&b->object, conditions + 1);
}
