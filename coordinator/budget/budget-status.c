/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-status.h"

#include "kubelet-labels.h"
#include "marks.h"
#include "status-patch.h"
#include "string-util.h"

#define N_CONDITIONS 3u

/* Returns the message of BUDGET_OPEN_TO_KUBELETS in *ret, NULL if the condition is False. The message
 * changes only with the budget's spec. 0 or -ENOMEM. */
static int make_open_message(const KubeNodeBudget *b, char **ret) {
        _cleanup_free_ char *labels = NULL;
        int r;

        *ret = NULL;
        r = selector_kubelet_labels(b->selector, &labels);
        if (r < 0 || !labels)
                return r;
        *ret = strf("A kubelet may set %s on its own Node, join this budget, and use it up by not being Ready. "
                    "Select by labels of node-restriction.kubernetes.io/, which no kubelet can set: "
                    "see BUDGETS OF NODES in vesper(7)",
                    labels);
        return *ret ? 0 : -ENOMEM;
}

/* open_message is borrowed: see make_open_message(). */
static void make_conditions(const KubeNodeBudget *b, const BudgetFigures *f, const char *open_message,
                            Condition ret[static N_CONDITIONS], usec_t wall_now_usec) {
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
        ret[2] = (Condition){ .type = BUDGET_OPEN_TO_KUBELETS,
                              .status = open_message ? CONDITION_TRUE : CONDITION_FALSE,
                              .reason = open_message                    ? "LabelOfKubelet"
                                        : selector_is_empty(b->selector) ? "SelectsNothing"
                                                                         : "LabelsProtected",
                              .message = open_message,
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
                json_add_string(w, "kind", kube_charge_kind_names[c->kind]);
                if (c->holder)
                        json_add_string(w, "holder", c->holder);
                if (c->held_before)
                        json_add_string(w, "heldBefore", c->held_before);
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
                _cleanup_free_ char *open_message = NULL;
                Condition conditions[N_CONDITIONS];

                if (make_open_message(b, &open_message) < 0) {
                        json_writer_free(w);
                        return NULL;
                }
                json_add_int64(w, "expectedNodes", figures->expected);
                json_add_int64(w, "currentAvailable", figures->available);
                json_add_int64(w, "desiredAvailable", figures->desired);
                json_add_int64(w, "observedGeneration", b->object.meta.generation);
                make_conditions(b, figures, open_message, conditions, wall_now_usec);
                status_patch_add_conditions(w, &b->object, conditions, N_CONDITIONS, 0, NULL);
        }
        return status_patch_close(w);
}

bool budget_status_says(const KubeNodeBudget *b, const BudgetFigures *f) {
        _cleanup_free_ char *open_message = NULL;
        Condition conditions[N_CONDITIONS];

        if (make_open_message(b, &open_message) < 0)
                return false;
        make_conditions(b, f, open_message, conditions, 0);
        for (size_t i = 0; i < N_CONDITIONS; i++)
                if (!condition_is_said(&b->object, conditions + i))
                        return false;
        return b->observed_generation == b->object.meta.generation && b->expected_nodes == f->expected &&
               b->current_available == f->available && b->desired_available == f->desired &&
               b->disruptions_allowed == f->allowed;
}
