/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-methods.h"

#include "disruption-cheaper.h"
#include "disruption-cost.h"
#include "disruption-due.h"
#include "string-util.h"

/* The earliest goes first. */
typedef struct DueNode {
        uint32_t node;
        bool is_empty;
        NodeDue due;
} DueNode;

typedef struct DueNodes {
        DueNode *items;
        size_t n_items;
} DueNodes;

static void due_nodes_done(DueNodes *d) {
        for (size_t i = 0; i < d->n_items; i++)
                free(d->items[i].due.why);
        free(d->items);
}

static int due_nodes_new(const DisruptionPlan *p, DueNodes *d) {
        d->items = new0(DueNode, (size_t) p->n_nodes + 1);
        return d->items ? 0 : -ENOMEM;
}

/* Empty ones first, so that no pods are sent to a node that is about to go. */
static int due_compare(const void *x, const void *y) {
        const DueNode *a = x, *b = y;

        if (a->is_empty != b->is_empty)
                return a->is_empty ? -1 : 1;
        if (a->due.since_usec != b->due.since_usec)
                return a->due.since_usec < b->due.since_usec ? -1 : 1;
        return a->node < b->node ? -1 : 1;
}

/* One after the other, as budgets allow: those that are to be replaced may need a successor. */
static int take_due(DisruptionPlan *p, PlanMethod method, DisruptionReason reason, DueNodes *due) {
        int r = 0;

        qsort(due->items, due->n_items, sizeof(DueNode), due_compare);
        for (size_t i = 0; i < due->n_items && r >= 0; i++) {
                DueNode *d = due->items + i;
                GateFlags flags = (scene_drain_is_bounded(p->scene, d->node) ? GATE_PODS_MAY_WAIT : 0) |
                                  (d->due.by_force ? GATE_BY_FORCE : 0);
                const StepDraft draft = { .method = method, .how = d->due.by_force ? "hard deadline" : d->is_empty ? "empty" : NULL };
                GateFindings *f = plan_lacks(p, d->node, method);
                bool may_go;

                r = 0;
                gate_node(p->scene, d->node, flags, f);
                if (!d->due.by_force)
                        gate_budgets(p->scene, d->node, reason, f);
                if (f->failed)
                        return -ENOMEM;
                may_go = f->n_items == 0;
                if (may_go)
                        r = plan_try_with_successor(p, &draft, d->node, &d->due.why, f);
                if (r == 0 && may_go && d->due.by_force)
                        r = plan_force(p, &draft, d->node, &d->due.why);
        }
        return MIN(r, 0);
}

/* Of the nodes that are left, those that are due. */
static int take_noted(DisruptionPlan *p, PlanMethod method, DisruptionReason reason,
                      int (*is_due)(const DisruptionScene *s, uint32_t node, NodeDue *ret, GateFindings *f)) {
        _cleanup_(due_nodes_done) DueNodes due = {};
        _cleanup_free_ uint32_t *nodes = NULL;
        size_t n;
        int r;

        nodes = plan_nodes_left(p, &n);
        r = nodes ? due_nodes_new(p, &due) : -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++) {
                DueNode *d = due.items + due.n_items;

                *d = (DueNode){ .node = nodes[i], .is_empty = p->scene->nodes[nodes[i]].n_moving == 0 };
                r = is_due(p->scene, nodes[i], &d->due, plan_lacks(p, nodes[i], method));
                due.n_items += r > 0;
        }
        return r < 0 ? r : take_due(p, method, reason, &due);
}

/* -- expiration ----------------------------------------------------------------------------------------- */

int method_expiration(DisruptionPlan *p) {
        return take_noted(p, PLAN_EXPIRATION, DISRUPTION_EXPIRED, node_due_by_expiry);
}

/* -- drift ---------------------------------------------------------------------------------------------- */

int method_drift(DisruptionPlan *p) {
        return take_noted(p, PLAN_DRIFT, DISRUPTION_DRIFTED, node_due_by_drift);
}

/* -- emptiness ------------------------------------------------------------------------------------------ */

static void add_arrivals(const DisruptionPlan *p, uint32_t node, GateFindings *f) {
        size_t n = p->nodes[node].n_arrived;

        if (n > 0)
                gate_add(f, GATE_DESTINATION, NULL, USEC_INFINITY,
                         strf("%zu pod%s would come to it as the nodes before it go", n, n == 1 ? "" : "s"));
}

/* It is gone, and what waited for it has other seats. */
static int leave_out(DisruptionPlan *p, uint32_t node) {
        const SimulateOptions quick = { .quick = true };
        SimulateVerdict v = {};
        int r;

        if (!simulator_any_moves(p->scene->simulator, node))
                return simulator_remove_node(p->scene->simulator, node);
        r = simulate_removal(p->scene->simulator, &node, 1, &quick, true, &v);
        simulate_verdict_done(&v);
        return r;
}

/* As one step, without the last that were chosen if pods that wait have no place otherwise: one, then two, then four more. Each set that
 * was one too many says at its last node which pod has none. */
static int take_empty_set(DisruptionPlan *p, const StepDraft *draft, const uint32_t *nodes, size_t n, char **why) {
        size_t left = n;
        int r = 0;

        for (size_t drop = 1; left > 0; left = left > drop ? left - drop : left > 1, drop *= 2) {
                r = plan_try(p, draft, nodes, left, why, p->nodes[nodes[left - 1]].lacks + draft->method, NULL);
                if (r != 0)
                        break;
        }
        for (size_t i = left; i < n && r >= 0; i++) {
                GateFindings *f = p->nodes[nodes[i]].lacks + draft->method;

                if (f->n_items == 0)
                        gate_add(f, GATE_NOMINATED, NULL, USEC_INFINITY, strdup("pods that wait for a node would have no place if it and the others went"));
                if (f->failed)
                        r = -ENOMEM;
        }
        return MIN(r, 0);
}

/* Those that are empty go together: nothing moves, but pods that wait may need one of them. */
static int take_empty(DisruptionPlan *p, PlanMethod method, const uint32_t *nodes, size_t n) {
        const StepDraft draft = { .method = method, .how = "empty" };
        SimulatorMark mark = simulator_mark(p->scene->simulator);
        _cleanup_free_ uint32_t *chosen = new0(uint32_t, n + 1);
        _cleanup_free_ char **why = new0(char *, n + 1);
        size_t n_chosen = 0;
        int r = chosen && why ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && r >= 0; i++) {
                GateFindings *f = p->nodes[nodes[i]].lacks + method;

                gate_budgets(p->scene, nodes[i], DISRUPTION_EMPTY, f);
                r = gate_waiting(p->scene, nodes[i], n_chosen > 0 ? GOES_AFTER_OTHERS : plan_goes_with(p), f);
                if (f->failed)
                        r = -ENOMEM;
                if (r < 0 || f->n_items > 0)
                        continue;
                r = leave_out(p, nodes[i]);
                why[n_chosen] = empty_since_text(p->scene, nodes[i]);
                if (!why[n_chosen])
                        r = -ENOMEM;
                chosen[n_chosen++] = nodes[i];
                disruption_count_taken(p->scene, nodes[i], 1);
        }
        for (size_t i = 0; i < n_chosen; i++)
                disruption_count_taken(p->scene, chosen[i], -1); /* a step counts its own */
        simulator_undo(p->scene->simulator, mark);
        if (r >= 0 && n_chosen > 0)
                r = take_empty_set(p, &draft, chosen, n_chosen, why);
        for (size_t i = 0; i < n_chosen; i++)
                free(why[i]);
        return MIN(r, 0);
}

static bool emptiness_is_due(DisruptionPlan *p, uint32_t node) {
        GateFindings *f = plan_lacks(p, node, PLAN_EMPTINESS);

        gate_emptiness(p->scene, node, f);
        if (!gate_has(f, GATE_DISABLED))
                add_arrivals(p, node, f);
        return f->n_items == 0 && !f->failed;
}

int method_emptiness(DisruptionPlan *p) {
        _cleanup_free_ uint32_t *nodes = NULL;
        size_t n, n_due = 0;
        int r;

        nodes = plan_nodes_left(p, &n);
        if (!nodes)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (emptiness_is_due(p, nodes[i]))
                        nodes[n_due++] = nodes[i];
        r = disruption_sort(p->scene, nodes, n_due);
        return r < 0 ? r : take_empty(p, PLAN_EMPTINESS, nodes, n_due);
}

/* -- consolidation -------------------------------------------------------------------------------------- */

/* It is a candidate; of which kind, its pods say. */
static bool consolidation_is_due(DisruptionPlan *p, uint32_t node) {
        GateFindings *f = plan_lacks(p, node, PLAN_CONSOLIDATION);

        gate_consolidation(p->scene, node, f);
        if (!gate_has(f, GATE_DISABLED))
                add_arrivals(p, node, f);
        return f->n_items == 0 && !f->failed;
}

/* One more of them goes if all that were chosen before and it find seats. */
static int choose_greedily(DisruptionPlan *p, const uint32_t *candidates, size_t n, uint32_t *chosen, size_t *ret_n) {
        DisruptionScene *s = p->scene;
        int r = 0;

        *ret_n = 0;
        for (size_t i = 0; i < n && r >= 0; i++) {
                const SimulateOptions o = { .respect_preferences = pool_respects_preferences(s, candidates[i]), .quick = true };
                _cleanup_(gate_findings_done) GateFindings f = {};
                SimulateVerdict v = {};

                if (p->nodes[candidates[i]].step != NO_STEP || p->nodes[candidates[i]].n_arrived > 0)
                        continue;
                gate_budgets(s, candidates[i], DISRUPTION_UNDERUTILIZED, &f);
                if (f.failed)
                        return -ENOMEM;
                if (f.n_items > 0)
                        continue;
                r = simulate_removal(s->simulator, candidates + i, 1, &o, true, &v);
                if (r >= 0 && v.fits) {
                        chosen[(*ret_n)++] = candidates[i];
                        disruption_count_taken(s, candidates[i], 1);
                }
                simulate_verdict_done(&v);
        }
        return r;
}

/* As one set, without which no decision is taken: the last that were chosen are dropped until it holds, one, then two, then four
 * more. 1: some go. */
static int take_set(DisruptionPlan *p, const uint32_t *nodes, size_t n) {
        StepDraft draft = { .method = PLAN_CONSOLIDATION };
        _cleanup_free_ char **why = new0(char *, n + 1);
        int r = why ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && r >= 0; i++) {
                draft.respects_preferences |= pool_respects_preferences(p->scene, nodes[i]);
                why[i] = pods_fit_text(p->scene, nodes[i]);
                if (!why[i])
                        r = -ENOMEM;
        }
        for (size_t left = n, drop = 1; left > 0 && r == 0; left = left > drop ? left - drop : left > 1, drop *= 2) {
                draft.how = left > 1 ? "multi-node" : "single-node";
                r = plan_try(p, &draft, nodes, left, why, NULL, NULL);
        }
        for (size_t i = 0; why && i < n; i++)
                free(why[i]);
        return r;
}

/* One set. */
static int consolidate_by_deleting(DisruptionPlan *p, const uint32_t *candidates, size_t n) {
        _cleanup_free_ uint32_t *chosen = new0(uint32_t, n + 1);
        SimulatorMark mark = simulator_mark(p->scene->simulator);
        size_t n_chosen = 0;
        int r = chosen ? choose_greedily(p, candidates, n, chosen, &n_chosen) : -ENOMEM;

        simulator_undo(p->scene->simulator, mark);
        for (size_t i = 0; i < n_chosen; i++)
                disruption_count_taken(p->scene, chosen[i], -1); /* a step counts its own */
        if (r < 0)
                return r;
        r = n_chosen > 0 ? take_set(p, chosen, n_chosen) : 0;
        return MIN(r, 0);
}

/* Until none is left that could go: what one set leaves, or a new node has room for, another may take. */
static int consolidate_all(DisruptionPlan *p, const uint32_t *candidates, size_t n) {
        size_t n_steps;
        int r;

        do {
                n_steps = p->n_steps;
                r = consolidate_by_deleting(p, candidates, n);
                if (r >= 0 && p->n_steps == n_steps)
                        r = consolidate_by_replacing(p, candidates, n);
        } while (r >= 0 && p->n_steps > n_steps);
        return r;
}

/* What the simulator says of each that stays, as the plan leaves the cluster; but not of those that pods come to: they are other nodes
 * by then. */
static int note_verdicts(DisruptionPlan *p, const uint32_t *nodes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const SimulateOptions o = { .respect_preferences = pool_respects_preferences(p->scene, nodes[i]) };
                GateFindings *f = p->nodes[nodes[i]].lacks + PLAN_CONSOLIDATION;
                SimulateVerdict v = {};
                int r;

                if (p->nodes[nodes[i]].step != NO_STEP)
                        continue;
                add_arrivals(p, nodes[i], f);
                gate_budgets(p->scene, nodes[i], DISRUPTION_UNDERUTILIZED, f);
                if (f->failed)
                        return -ENOMEM;
                if (p->nodes[nodes[i]].n_arrived > 0)
                        continue;
                r = simulate_removal(p->scene->simulator, nodes + i, 1, &o, false, &v);
                if (r >= 0 && !v.fits)
                        gate_add_no_seats(p->scene, nodes[i], plan_goes_with(p), &v, f);
                simulate_verdict_done(&v);
                if (r < 0 || f->failed)
                        return -ENOMEM;
        }
        return 0;
}

int method_consolidation(DisruptionPlan *p) {
        _cleanup_free_ uint32_t *nodes = NULL, *empty = NULL, *full = NULL;
        size_t n, n_empty = 0, n_full = 0;
        int r;

        nodes = plan_nodes_left(p, &n);
        empty = new0(uint32_t, n + 1);
        full = new0(uint32_t, n + 1);
        if (!nodes || !empty || !full)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (!consolidation_is_due(p, nodes[i]))
                        continue;
                if (p->scene->nodes[nodes[i]].n_moving == 0)
                        empty[n_empty++] = nodes[i];
                else
                        full[n_full++] = nodes[i];
        }
        r = disruption_sort(p->scene, empty, n_empty);
        if (r >= 0)
                r = take_empty(p, PLAN_CONSOLIDATION, empty, n_empty);
        if (r >= 0)
                r = disruption_sort(p->scene, full, n_full);
        if (r >= 0)
                r = consolidate_all(p, full, n_full);
        return r < 0 ? r : note_verdicts(p, full, n_full);
}
