/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-draft.h"

#include "alloc-util.h"
#include "budget-count.h"
#include "budget-ledger.h"
#include "string-util.h"

/* Leaves no room for any node, not even for a drained one, which is counted as unavailable already. */
static void draft_close(BudgetDraft *d) {
        d->room = d->held_back = 0;
}

void budget_draft_init(BudgetDraft *d, const ClusterView *view, const KubeNodeBudget *b, bool is_leader) {
        bool is_current = b->observed_generation == b->object.meta.generation;
        BudgetFigures f = budget_count(view, b);

        *d = (BudgetDraft) { .view = view,
                             .budget = *b,
                             .n_kept = b->n_charges,
                             .room = f.available - f.desired,
                             .held_back = f.held_back };
        if (!is_leader)
                d->room = MIN(d->room, b->disruptions_allowed);
        if ((!is_leader && !is_current) || b->n_charges >= BUDGET_CHARGES_MAX)
                draft_close(d);
}

int budget_draft_make_room(BudgetDraft *d, size_t n_more) {
        NodeCharge *charges = new0(NodeCharge, d->budget.n_charges + n_more + 1);

        if (!charges)
                return -ENOMEM;
        d->budget.charges = d->charges = charges;
        d->budget.n_charges = d->n_kept = 0;
        return 0;
}

void budget_draft_done(BudgetDraft *d) {
        d->charges = d->budget.charges = mfree(d->charges);
}

void budget_draft_keep(BudgetDraft *d, const NodeCharge *c) {
        d->budget.charges[d->budget.n_charges++] = *c;
        d->n_kept = d->budget.n_charges;
}

const NodeCharge *budget_draft_charge(const BudgetDraft *d, const char *uid, bool *ret_is_new) {
        const NodeCharge *c = kube_node_budget_charge(&d->budget, uid);

        *ret_is_new = c && (size_t) (c - d->budget.charges) >= d->n_kept;
        return c;
}

/* Returns true if the node is counted as unavailable already, for example because its agent drains it for a
 * reboot. */
static bool is_counted(const BudgetDraft *d, const KubeNode *n) {
        const KubeNode *seen = cluster_view_node(d->view, n->object.meta.name);

        return seen && streq_ptr(seen->object.meta.uid, n->object.meta.uid) &&
               !budget_node_is_available(seen);
}

bool budget_draft_has_room(const BudgetDraft *d, const KubeNode *n) {
        return d->room + (is_counted(d, n) ? d->held_back : 0) > 0;
}

void budget_draft_take_room(BudgetDraft *d, const KubeNode *n) {
        if (is_counted(d, n))
                d->held_back--;
        else
                d->room--;
}

void budget_draft_add(BudgetDraft *d, const KubeNode *n, const NodeCharge *c) {
        size_t size = d->budget.n_charges;
        NodeCharge *old = (NodeCharge *) kube_node_budget_charge(&d->budget, c->uid);

        d->changed = true;
        if (old) {
                memmove(old, old + 1, (size_t) (d->budget.charges + size - old - 1) * sizeof(NodeCharge));
                d->n_kept--;
                d->n_taken_over++;
                size--;
        } else
                budget_draft_take_room(d, n);
        d->budget.charges[size] = *c;
        d->budget.n_charges = size + 1;
}

size_t budget_draft_n_new(const BudgetDraft *d) {
        return d->budget.n_charges - d->n_kept;
}

int64_t budget_draft_allowed(const BudgetDraft *d, const KubeNodeBudget *b, const BudgetFigures *f,
                             bool is_leader) {
        int64_t added = (int64_t) (budget_draft_n_new(d) - d->n_taken_over),
                ended = (int64_t) b->n_charges - (int64_t) (d->n_kept + d->n_taken_over),
                allowed = MAX(b->disruptions_allowed - added, INT64_C(0));

        if (is_leader)
                return f->allowed;
        /* The follower gives back only what is surely free again. */
        return ended > 0 ? MIN(allowed + ended, f->allowed) : allowed;
}
