/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"
#include "disruption-cheaper.h"
#include "disruption-limit.h"
#include "disruption-methods.h"

/*
 * Consolidation by one new, cheaper node for one node or several: an offering of the pool at a time, the cheapest first. A node
 * of that shape is added, and candidates go one after the other as long as their pods find seats on it or elsewhere; if what
 * has gone costs more than what has come, by minimumSavings, that is a step.
 */

/* As many candidates are tried with each offering; those behind them would be, once these are gone. */
#define CANDIDATES_MAX 100u

typedef struct Replacing {
        DisruptionPlan *plan;
        DisruptionPool *pool;
        uint32_t *nodes; /* candidates of the pool that are left */
        size_t n_nodes;
} Replacing;

static bool may_be_replaced(const Replacing *x, uint32_t node, const PoolOffering *o) {
        return x->plan->nodes[node].step == NO_STEP && x->plan->nodes[node].n_arrived == 0 && offering_may_replace(x->plan->scene, node, o);
}

/* If all of them went for one of these, would it save enough? Else no node need be added to see which could. */
static bool price_leaves_room(const Replacing *x, const PoolOffering *o) {
        int64_t price_micros = 0;

        for (size_t i = 0; i < x->n_nodes; i++)
                if (may_be_replaced(x, x->nodes[i], o))
                        price_micros += scene_price_micros(x->plan->scene, x->nodes[i]);
        return offering_saves_enough(x->pool, price_micros, o);
}

/* Those that go if it comes, one after the other. Leaves the simulator as it was. */
static int fill_shape(Replacing *x, const PoolOffering *o, uint32_t *chosen, size_t *ret_n, int64_t *ret_price_micros) {
        DisruptionScene *s = x->plan->scene;
        SimulatorMark mark = simulator_mark(s->simulator);
        int r = 0;

        *ret_n = 0;
        *ret_price_micros = 0;
        for (size_t i = 0; i < x->n_nodes && r >= 0; i++) {
                const SimulateOptions options = { .respect_preferences = pool_respects_preferences(s, x->nodes[i]), .quick = true };
                _cleanup_(gate_findings_done) GateFindings f = {};
                SimulateVerdict v = {};

                if (!may_be_replaced(x, x->nodes[i], o))
                        continue;
                gate_budgets(s, x->nodes[i], DISRUPTION_UNDERUTILIZED, &f);
                if (f.failed)
                        r = -ENOMEM;
                if (f.failed || f.n_items > 0)
                        continue;
                r = simulate_removal(s->simulator, x->nodes + i, 1, &options, true, &v);
                if (r >= 0 && v.fits) {
                        chosen[(*ret_n)++] = x->nodes[i];
                        *ret_price_micros += scene_price_micros(s, x->nodes[i]);
                        disruption_count_taken(s, x->nodes[i], 1);
                }
                simulate_verdict_done(&v);
        }
        simulator_undo(s->simulator, mark);
        for (size_t i = 0; i < *ret_n; i++)
                disruption_count_taken(s, chosen[i], -1);
        return r;
}

/* 1: they go, and it comes. */
static int take_shape(Replacing *x, const PoolOffering *o, uint32_t new, const uint32_t *nodes, size_t n, int64_t price_micros) {
        const StepDraft draft = { .method = PLAN_CONSOLIDATION,
                                  .how = "replace",
                                  .respects_preferences = pool_respects_preferences(x->plan->scene, nodes[0]) };
        _cleanup_free_ char **why = new0(char *, n + 1);
        _cleanup_free_ char *like = offering_text(o);
        PlanStep *step;
        int r = why && like ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && r >= 0; i++) {
                why[i] = replaced_text(o, price_micros, n);
                if (!why[i])
                        r = -ENOMEM;
        }
        if (r >= 0)
                r = plan_try(x->plan, &draft, nodes, n, why, NULL, &step);
        for (size_t i = 0; why && i < n; i++)
                free(why[i]);
        if (r > 0) {
                step->replacement = new;
                step->replacement_like = TAKE_PTR(like);
                step->price_after_micros = o->price_micros;
        }
        return r;
}

/* 1: one such step; 0: none. */
static int try_shape(Replacing *x, const PoolShape *shape) {
        _cleanup_free_ uint32_t *chosen = NULL;
        int64_t price_micros;
        uint32_t new;
        size_t n;
        int r;

        if (!price_leaves_room(x, shape->offering) || !shape_is_allowed(x->plan->scene, x->pool, shape))
                return 0;
        chosen = new0(uint32_t, x->n_nodes + 1);
        if (!chosen)
                return -ENOMEM;
        r = shape_add(x->plan->scene, shape, &new);
        if (r <= 0)
                return r;
        r = fill_shape(x, shape->offering, chosen, &n, &price_micros);
        if (r >= 0)
                r = n > 0 && offering_saves_enough(x->pool, price_micros, shape->offering)
                            ? take_shape(x, shape->offering, new, chosen, n, price_micros)
                            : 0;
        if (r > 0)
                pool_count_node(x->plan->scene, x->pool, shape->like, &shape->offering->allocatable, 1);
        if (r <= 0)
                scene_drop_node(x->plan->scene, new);
        return r;
}

static int replace_in_pool(Replacing *x) {
        int r = pool_find_shapes(x->plan->scene, x->pool);

        for (size_t i = 0; i < x->pool->n_shapes && r >= 0; i++)
                do
                        r = try_shape(x, x->pool->shapes + i);
                while (r > 0);
        return r;
}

int consolidate_by_replacing(DisruptionPlan *p, const uint32_t *candidates, size_t n) {
        int r = 0;

        for (size_t k = 0; k < p->scene->n_pools && r >= 0; k++) {
                Replacing x = { .plan = p, .pool = p->scene->pools + k };

                if (x.pool->pool->n_offerings == 0)
                        continue;
                x.nodes = new0(uint32_t, n + 1);
                if (!x.nodes)
                        return -ENOMEM;
                for (size_t i = 0; i < n && x.n_nodes < CANDIDATES_MAX; i++)
                        if (p->scene->nodes[candidates[i]].pool == x.pool && p->nodes[candidates[i]].step == NO_STEP)
                                x.nodes[x.n_nodes++] = candidates[i];
                r = replace_in_pool(&x);
                free(x.nodes);
        }
        return r;
}
