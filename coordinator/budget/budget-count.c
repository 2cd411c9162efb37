/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-count.h"

#include "marks.h"
#include "string-util.h"

/* Is that charge what makes the node unavailable? */
static bool charge_counts(const ClusterView *v, const KubeNodeBudget *b, const NodeCharge *c) {
        const KubeNode *n = c->name ? cluster_view_node(v, c->name) : NULL;

        return n && streq_ptr(n->object.meta.uid, c->uid) && kube_node_budget_matches(b, n) && budget_node_is_available(n);
}

BudgetFigures budget_count(const ClusterView *v, const KubeNodeBudget *b) {
        int64_t expected = 0, available = 0, held_back = 0;
        const KubeNode *n;
        BudgetFigures f;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(v, &it, &n);)
                if (kube_node_budget_matches(b, n)) {
                        expected++;
                        available += budget_node_is_available(n);
                        held_back += budget_node_is_held_back(n) && !kube_node_budget_charge(b, n->object.meta.uid);
                }
        for (size_t i = 0; i < b->n_charges; i++)
                available -= charge_counts(v, b, b->charges + i);
        f = budget_figures(b, expected, MAX(available, INT64_C(0)));
        f.held_back = held_back;
        return f;
}

/* -- who uses it up ------------------------------------------------------------------------------------- */

static usec_t drained_since(const KubeNode *n) {
        const Condition *c = kube_node_condition(n, CONDITION_DRAIN_IN_PROGRESS);

        return c ? c->last_transition_usec : 0;
}

static const char *charge_reason(const NodeCharge *c) {
        switch (c->kind) {
        case NODE_CHARGE_DELETE:
                return "may be deleted";
        case NODE_CHARGE_REBOOT:
                return "may reboot";
        case NODE_CHARGE_OPERATION:
                return "is in a NodeDisruption";
        case NODE_CHARGE_SUCCESSOR:
                return "is a successor that is not ready yet";
        case _NODE_CHARGE_KIND_MAX:
                break;
        }
        return NULL;
}

static bool is_user(const KubeNodeBudget *b, const KubeNode *n, BudgetUser *ret) {
        const NodeCharge *charge = kube_node_budget_charge(b, n->object.meta.uid);
        const Condition *ready = kube_node_condition(n, "Ready");

        *ret = (BudgetUser){ .node = n->object.meta.name };
        if (n->object.meta.deletion_usec > 0 && (charge || !budget_node_is_available(n))) {
                ret->why = "is being deleted";
                ret->since_usec = n->object.meta.deletion_usec;
        } else if (!kube_node_is_ready(n)) {
                ret->why = "is not Ready";
                ret->since_usec = ready ? ready->last_transition_usec : n->object.meta.creation_usec;
        } else if (charge) {
                ret->why = charge_reason(charge);
                ret->since_usec = charge->time_usec;
        } else if (budget_node_is_drained(n)) {
                ret->why = "is being drained";
                ret->since_usec = drained_since(n);
        } else
                return false;
        return true;
}

BudgetUsers budget_users(const ClusterView *v, const KubeNodeBudget *b) {
        BudgetUsers all = { 0 };
        const KubeNode *node;
        BudgetUser u;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(v, &it, &node);) {
                size_t at;

                if (!kube_node_budget_matches(b, node) || !is_user(b, node, &u))
                        continue;
                all.n_all++;
                for (at = all.n; at > 0 && u.since_usec < all.list[at - 1].since_usec; at--)
                        if (at < BUDGET_USERS_MAX)
                                all.list[at] = all.list[at - 1];
                if (at == BUDGET_USERS_MAX)
                        continue;
                all.list[at] = u;
                all.n = MIN(all.n + 1, (size_t) BUDGET_USERS_MAX);
        }
        return all;
}

char *budget_refusal(const ClusterView *v, const KubeNodeBudget *b, const char *node, bool begun) {
        BudgetFigures f = budget_count(v, b);
        BudgetUsers users = budget_users(v, b);

        return budget_text_refusal(b, &f, &users, node, begun);
}
