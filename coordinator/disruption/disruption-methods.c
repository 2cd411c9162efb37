/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-methods.h"

#include "disruption-cost.h"
#include "disruption-drift.h"
#include "string-util.h"

#define JITTER_MAX_USEC USEC_PER_DAY
#define CLAIM_DRIFTED "Drifted"

/* A node that is due, and why. */
typedef struct DueNode {
        uint32_t node;
        usec_t since_usec; /* the earliest goes first */
        bool is_empty, by_force;
        char *why;
} DueNode;

typedef struct DueNodes {
        DueNode *items;
        size_t n_items;
} DueNodes;

static void due_nodes_done(DueNodes *d) {
        for (size_t i = 0; i < d->n_items; i++)
                free(d->items[i].why);
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
        if (a->since_usec != b->since_usec)
                return a->since_usec < b->since_usec ? -1 : 1;
        return a->node < b->node ? -1 : 1;
}

static void add_time(StrBuf *b, usec_t wall_usec) {
        char time[RFC3339_MAX];

        rfc3339_format(wall_usec, time);
        strbuf_add(b, time);
}

/* One after the other, as budgets allow: those that are to be replaced may need a successor. */
static int take_due(DisruptionPlan *p, PlanMethod method, DisruptionReason reason, DueNodes *due) {
        int r = 0;

        qsort(due->items, due->n_items, sizeof(DueNode), due_compare);
        for (size_t i = 0; i < due->n_items && r >= 0; i++) {
                DueNode *d = due->items + i;
                GateFlags flags = (scene_drain_is_bounded(p->scene, d->node) ? GATE_PODS_MAY_WAIT : 0) |
                                  (d->by_force ? GATE_BY_FORCE : 0);
                const StepDraft draft = { .method = method, .how = d->by_force ? "hard deadline" : d->is_empty ? "empty" : NULL };
                GateFindings *f = plan_lacks(p, d->node, method);
                bool may_go;

                r = 0;
                gate_node(p->scene, d->node, flags, f);
                if (!d->by_force)
                        gate_budgets(p->scene, d->node, reason, f);
                if (f->failed)
                        return -ENOMEM;
                may_go = f->n_items == 0;
                if (may_go)
                        r = plan_try_with_successor(p, &draft, d->node, &d->why, f);
                if (r == 0 && may_go && d->by_force)
                        r = plan_force(p, &draft, d->node, &d->why);
        }
        return MIN(r, 0);
}

/* Of the nodes that are left, those that note() finds due. */
static int take_noted(DisruptionPlan *p, PlanMethod method, DisruptionReason reason,
                      int (*note)(DisruptionPlan *p, uint32_t node, DueNodes *due)) {
        _cleanup_(due_nodes_done) DueNodes due = {};
        _cleanup_free_ uint32_t *nodes = NULL;
        size_t n;
        int r;

        nodes = plan_nodes_left(p, &n);
        r = nodes ? due_nodes_new(p, &due) : -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++)
                r = note(p, nodes[i], &due);
        return r < 0 ? r : take_due(p, method, reason, &due);
}

/* -- expiration ----------------------------------------------------------------------------------------- */

usec_t node_expires_usec(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;
        usec_t ttl = n->pool ? n->pool->pool->disruption.expire_after_usec : USEC_INFINITY, jitter;
        const char *uid = strempty(scene_node(s, node)->object.meta.uid);

        if (ttl == USEC_INFINITY)
                return USEC_INFINITY;
        jitter = MIN(ttl / 10, JITTER_MAX_USEC);
        if (jitter > 0)
                ttl -= hash64(uid, strlen(uid)) % jitter;
        return usec_add(n->created_usec, ttl);
}

usec_t node_expires_hard_usec(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;

        return n->pool ? usec_add(n->created_usec, n->pool->pool->disruption.expire_hard_after_usec) : USEC_INFINITY;
}

static int note_expiry(DisruptionPlan *p, uint32_t node, DueNodes *due) {
        usec_t at = node_expires_usec(p->scene, node), hard = node_expires_hard_usec(p->scene, node);
        bool by_force = hard <= p->scene->now_usec;
        DueNode *d = due->items + due->n_items;
        _cleanup_strbuf_ StrBuf b = {};

        if (at == USEC_INFINITY && !by_force) {
                gate_add(plan_lacks(p, node, PLAN_EXPIRATION), GATE_DISABLED, NULL, USEC_INFINITY,
                         strdup("spec.disruption.expireAfter of its pool is not set"));
                return 0;
        }
        if (at > p->scene->now_usec && !by_force) {
                strbuf_add(&b, "it expires at ");
                add_time(&b, at);
                gate_add(plan_lacks(p, node, PLAN_EXPIRATION), GATE_NOT_EXPIRED, NULL, at, strbuf_steal(&b));
                return 0;
        }
        strbuf_add(&b, by_force ? "past its hard deadline since " : "expired since ");
        add_time(&b, by_force ? hard : at);
        *d = (DueNode){ .node = node,
                        .since_usec = MIN(at, hard),
                        .is_empty = p->scene->nodes[node].n_moving == 0,
                        .by_force = by_force,
                        .why = strbuf_steal(&b) };
        due->n_items++;
        return d->why ? 0 : -ENOMEM;
}

int method_expiration(DisruptionPlan *p) {
        return take_noted(p, PLAN_EXPIRATION, DISRUPTION_EXPIRED, note_expiry);
}

/* -- drift ---------------------------------------------------------------------------------------------- */

static int note_drift(DisruptionPlan *p, uint32_t node, DueNodes *due) {
        const DisruptionNode *n = p->scene->nodes + node;
        const Condition *marked = n->claim ? kube_node_claim_condition(n->claim, CLAIM_DRIFTED) : NULL;
        DueNode *d = due->items + due->n_items;
        char *why = NULL;
        int r;

        if (!n->pool->pool->disruption.drift) {
                gate_add(plan_lacks(p, node, PLAN_DRIFT), GATE_DISABLED, NULL, USEC_INFINITY,
                         strdup("spec.disruption.drift of its pool is not Auto"));
                return 0;
        }
        r = node_drift(simulator_node(p->scene->simulator, node), n->claim, n->pool->pool, &why);
        if (r < 0)
                return r;
        if (!why) {
                gate_add(plan_lacks(p, node, PLAN_DRIFT), GATE_NOT_DRIFTED, NULL, USEC_INFINITY,
                         strdup("it is as its pool says"));
                return 0;
        }
        *d = (DueNode){ .node = node,
                        .since_usec = marked && marked->status == CONDITION_TRUE ? marked->last_transition_usec : n->created_usec,
                        .is_empty = n->n_moving == 0,
                        .why = why };
        due->n_items++;
        return 0;
}

int method_drift(DisruptionPlan *p) {
        return take_noted(p, PLAN_DRIFT, DISRUPTION_DRIFTED, note_drift);
}

/* -- emptiness ------------------------------------------------------------------------------------------ */

static void add_arrivals(const DisruptionPlan *p, uint32_t node, GateFindings *f) {
        size_t n = p->nodes[node].n_arrived;

        if (n > 0)
                gate_add(f, GATE_DESTINATION, NULL, USEC_INFINITY,
                         strf("%zu pod%s of nodes that go before it would come to it", n, n == 1 ? "" : "s"));
}

/* A pod that is deleted leaves no trace: without a claim that says so it may have been emptied later than objects show. */
static void add_empty_since(StrBuf *b, const DisruptionNode *n) {
        strbuf_add(b, "empty since ");
        add_time(b, n->empty_since_usec);
        if (!n->is_empty_since_known)
                strbuf_add(b, " or later");
}

/* True: nothing that moves is on it, and has not been for long enough. */
static bool check_empty_since(const DisruptionPlan *p, uint32_t node, usec_t after_usec, GateFindings *f) {
        const DisruptionNode *n = p->scene->nodes + node;
        usec_t due = usec_add(n->empty_since_usec, after_usec);
        _cleanup_strbuf_ StrBuf b = {};

        if (n->n_moving > 0) {
                gate_add(f, GATE_NOT_EMPTY, NULL, USEC_INFINITY,
                         strf("it runs %zu pod%s that would have to move", n->n_moving, n->n_moving == 1 ? "" : "s"));
                return false;
        }
        if (due <= p->scene->now_usec)
                return true;
        strbuf_add(&b, "it has been ");
        add_empty_since(&b, n);
        strbuf_add(&b, ", and may go at ");
        add_time(&b, due);
        gate_add(f, GATE_QUIET_PERIOD, NULL, due, strbuf_steal(&b));
        return false;
}

static char *empty_text(const DisruptionPlan *p, uint32_t node) {
        _cleanup_strbuf_ StrBuf b = {};

        add_empty_since(&b, p->scene->nodes + node);
        return strbuf_steal(&b);
}

/* Those that are empty go together: where nothing moves there is nothing to simulate. */
static int take_empty(DisruptionPlan *p, PlanMethod method, const uint32_t *nodes, size_t n) {
        const StepDraft draft = { .method = method, .how = "empty" };
        _cleanup_free_ uint32_t *chosen = new0(uint32_t, n + 1);
        _cleanup_free_ char **why = new0(char *, n + 1);
        size_t n_chosen = 0;
        int r = chosen && why ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && r >= 0; i++) {
                GateFindings *f = p->nodes[nodes[i]].lacks + method;

                gate_budgets(p->scene, nodes[i], DISRUPTION_EMPTY, f);
                if (f->failed)
                        r = -ENOMEM;
                if (r < 0 || f->n_items > 0)
                        continue;
                why[n_chosen] = empty_text(p, nodes[i]);
                if (!why[n_chosen])
                        r = -ENOMEM;
                chosen[n_chosen++] = nodes[i];
                disruption_count_taken(p->scene, nodes[i], 1);
        }
        for (size_t i = 0; i < n_chosen; i++)
                disruption_count_taken(p->scene, chosen[i], -1); /* a step counts its own */
        if (r >= 0 && n_chosen > 0)
                r = plan_try(p, &draft, chosen, n_chosen, why, NULL, NULL);
        for (size_t i = 0; i < n_chosen; i++)
                free(why[i]);
        return MIN(r, 0);
}

static bool emptiness_is_due(DisruptionPlan *p, uint32_t node) {
        usec_t after = p->scene->nodes[node].pool->pool->disruption.empty_after_usec;
        GateFindings *f = plan_lacks(p, node, PLAN_EMPTINESS);

        if (after == USEC_INFINITY) {
                gate_add(f, GATE_DISABLED, NULL, USEC_INFINITY, strdup("spec.disruption.emptyAfter of its pool is not set"));
                return false;
        }
        gate_node(p->scene, node, 0, f);
        (void) check_empty_since(p, node, after, f);
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

/* 1: it is a candidate; of which kind, its pods say. */
static bool consolidation_is_due(DisruptionPlan *p, uint32_t node) {
        const DisruptionNode *n = p->scene->nodes + node;
        const PoolDisruption *d = &n->pool->pool->disruption;
        GateFindings *f = plan_lacks(p, node, PLAN_CONSOLIDATION);
        usec_t due = usec_add(n->quiet_since_usec, d->consolidate_after_usec);

        if (d->consolidation == CONSOLIDATION_NEVER) {
                gate_add(f, GATE_DISABLED, NULL, USEC_INFINITY,
                         strdup("spec.disruption.consolidation.policy of its pool is not set"));
                return false;
        }
        gate_node(p->scene, node, GATE_FOR_CONSOLIDATION, f);
        if (n->n_moving > 0 && d->consolidation == CONSOLIDATION_WHEN_EMPTY)
                gate_add(f, GATE_WHEN_EMPTY_ONLY, NULL, USEC_INFINITY,
                         strf("its pool consolidates empty nodes only, and it runs %zu pod%s that would have to move", n->n_moving,
                              n->n_moving == 1 ? "" : "s"));
        if (n->n_moving == 0)
                (void) check_empty_since(p, node, d->consolidate_after_usec, f);
        else if (due > p->scene->now_usec) {
                _cleanup_strbuf_ StrBuf b = {};

                strbuf_add(&b, "pods came or went, or it became Ready, at ");
                add_time(&b, n->quiet_since_usec);
                strbuf_add(&b, ": it may go at ");
                add_time(&b, due);
                gate_add(f, GATE_QUIET_PERIOD, NULL, due, strbuf_steal(&b));
        }
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

static char *consolidate_text(const DisruptionPlan *p, uint32_t node) {
        size_t n = p->scene->nodes[node].n_moving;

        return strf("its %zu pod%s fit%s on other nodes", n, n == 1 ? "" : "s", n == 1 ? "s" : "");
}

/* As one set, without which no decision is taken: the last that were chosen are dropped until it holds, one, then two, then four
 * more. 1: some go. */
static int take_set(DisruptionPlan *p, const uint32_t *nodes, size_t n) {
        StepDraft draft = { .method = PLAN_CONSOLIDATION };
        _cleanup_free_ char **why = new0(char *, n + 1);
        int r = why ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && r >= 0; i++) {
                draft.respects_preferences |= pool_respects_preferences(p->scene, nodes[i]);
                why[i] = consolidate_text(p, nodes[i]);
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
        size_t n_chosen;
        int r = chosen ? choose_greedily(p, candidates, n, chosen, &n_chosen) : -ENOMEM;

        if (r < 0)
                return r;
        simulator_undo(p->scene->simulator, mark);
        for (size_t i = 0; i < n_chosen; i++)
                disruption_count_taken(p->scene, chosen[i], -1); /* a step counts its own */
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
                if (r >= 0 && !v.fits) {
                        gate_add_price(p->scene, nodes[i], f);
                        gate_add_verdict(p->scene, &v, f);
                }
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
