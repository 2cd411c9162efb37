/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-methods.h"

#include "string-util.h"

/*
 * Consolidation by one new, cheaper node for one node or several: an offering of the pool at a time, the cheapest first. A node
 * of that shape is added, and candidates go one after the other as long as their pods find seats on it or elsewhere; if what
 * has gone costs more than what has come, by minimumSavings, that is a step. Spot capacity never takes the place of spot
 * capacity: the cheapest is the one that is interrupted first.
 */

/* As many candidates are tried with each offering; those behind them would be, once these are gone. */
#define CANDIDATES_MAX 100u
/* As many offerings. */
#define SHAPES_MAX 64u

typedef struct Shape {
        const PoolOffering *offering;
        uint32_t like;
} Shape;

typedef struct Replacing {
        DisruptionPlan *plan;
        const DisruptionPool *pool;
        uint32_t *nodes; /* candidates of the pool that are left */
        size_t n_nodes;
} Replacing;

/* A node like which one of that offering would be: one of the same type, else, where the offering says what it has room for, any
 * of the pool. */
static uint32_t find_like(const DisruptionPlan *p, const DisruptionPool *pool, const PoolOffering *o) {
        uint32_t any = NO_NODE;

        for (uint32_t i = 0; i < p->n_nodes; i++) {
                const KubeScheduledNode *n = simulator_node(p->scene->simulator, i);

                if (p->scene->nodes[i].pool != pool || !n->is_initialized || n->node.unschedulable)
                        continue;
                if (streq_ptr(object_meta_label(&n->node.object.meta, "node.kubernetes.io/instance-type"), o->instance_type))
                        return i;
                if (any == NO_NODE)
                        any = i;
        }
        return o->allocatable.n_items > 0 ? any : NO_NODE;
}

static int shape_compare(const void *x, const void *y) {
        const PoolOffering *a = ((const Shape *) x)->offering, *b = ((const Shape *) y)->offering;

        if (a->price_micros != b->price_micros)
                return a->price_micros < b->price_micros ? -1 : 1;
        return strcmp(a->instance_type, b->instance_type) ?: strcmp(strempty(a->zone), strempty(b->zone))
                       ?: strcmp(strempty(a->capacity_type), strempty(b->capacity_type));
}

static char *shape_text(const PoolOffering *o) {
        return strf("%s%s%s%s%s", o->instance_type, o->zone ? " in " : "", strempty(o->zone), o->capacity_type ? ", " : "",
                    strempty(o->capacity_type));
}

/* 1; 0: one of that shape cannot be added. */
static int add_shape(DisruptionPlan *p, const Shape *shape, uint32_t *ret) {
        const PoolOffering *o = shape->offering;
        KeyValue items[4];
        KeyValues labels = { items, 0 };
        _cleanup_free_ char *name = strf("new-%u", ++p->n_added);
        int r;

        if (!name)
                return -ENOMEM;
        /* By key. */
        if (o->capacity_type)
                items[labels.n_items++] = (KeyValue){ "karpenter.sh/capacity-type", o->capacity_type };
        items[labels.n_items++] = (KeyValue){ "node.kubernetes.io/instance-type", o->instance_type };
        if (o->zone)
                items[labels.n_items++] = (KeyValue){ "topology.kubernetes.io/zone", o->zone };
        if (o->capacity_type)
                items[labels.n_items++] = (KeyValue){ "vesper.sh/capacity-type", o->capacity_type };
        r = simulator_add_node(p->scene->simulator,
                               &(SimulatorNewNode){ .name = name,
                                                    .like = shape->like,
                                                    .labels = &labels,
                                                    .allocatable = o->allocatable.n_items > 0 ? &o->allocatable : NULL },
                               ret);
        if (r == -EINVAL || r == -EEXIST || r == -E2BIG)
                return 0;
        return r < 0 ? r : 1;
}

static bool is_spot(const char *capacity_type) {
        return streq_ptr(capacity_type, "spot");
}

static bool may_be_replaced(const Replacing *x, uint32_t node, const PoolOffering *o) {
        const DisruptionScene *s = x->plan->scene;

        return x->plan->nodes[node].step == NO_STEP && x->plan->nodes[node].n_arrived == 0 && scene_price_micros(s, node) >= 0 &&
               !(is_spot(scene_capacity_type(scene_node(s, node))) && (!o->capacity_type || is_spot(o->capacity_type)));
}

/* Enough is saved? */
static bool saves_enough(const DisruptionPool *pool, int64_t before_micros, int64_t after_micros) {
        return before_micros > after_micros &&
               (__int128) (before_micros - after_micros) * 1000 >=
                       (__int128) before_micros * pool->pool->disruption.minimum_savings_permille;
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
                        return -ENOMEM;
                if (f.n_items > 0)
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
static int take_shape(Replacing *x, const PoolOffering *o, uint32_t new, const uint32_t *nodes, size_t n) {
        const StepDraft draft = { .method = PLAN_CONSOLIDATION,
                                  .how = "replace",
                                  .respects_preferences = pool_respects_preferences(x->plan->scene, nodes[0]) };
        _cleanup_free_ char **why = new0(char *, n + 1);
        _cleanup_free_ char *like = shape_text(o);
        PlanStep *step;
        int r = why && like ? 0 : -ENOMEM;

        for (size_t i = 0; i < n && r >= 0; i++) {
                why[i] = strf("its pods fit on other nodes and one new %s", like);
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
static int try_shape(Replacing *x, const Shape *shape) {
        _cleanup_free_ uint32_t *chosen = new0(uint32_t, x->n_nodes + 1);
        int64_t price_micros;
        uint32_t new;
        size_t n;
        int r;

        if (!chosen)
                return -ENOMEM;
        r = add_shape(x->plan, shape, &new);
        if (r <= 0)
                return r;
        r = fill_shape(x, shape->offering, chosen, &n, &price_micros);
        if (r >= 0)
                r = n > 0 && saves_enough(x->pool, price_micros, shape->offering->price_micros)
                            ? take_shape(x, shape->offering, new, chosen, n)
                            : 0;
        if (r == 0) {
                int k = simulator_remove_node(x->plan->scene->simulator, new);

                return MIN(k, 0);
        }
        return r;
}

/* -- why not -------------------------------------------------------------------------------------------- */

static const PoolOffering *cheapest(const KubeNodePool *pool, bool but_spot) {
        const PoolOffering *found = NULL;

        for (size_t i = 0; i < pool->n_offerings; i++) {
                const PoolOffering *o = pool->offerings + i;

                if (but_spot && (!o->capacity_type || is_spot(o->capacity_type)))
                        continue;
                if (!found || o->price_micros < found->price_micros)
                        found = o;
        }
        return found;
}

bool node_price_leaves_room(const DisruptionScene *s, uint32_t node) {
        const DisruptionPool *pool = s->nodes[node].pool;
        int64_t price = scene_price_micros(s, node);
        const PoolOffering *o = cheapest(pool->pool, is_spot(scene_capacity_type(scene_node(s, node))));

        return price >= 0 && o && saves_enough(pool, price, o->price_micros);
}

/* In the words that people of other consolidators know, then the figures. */
void gate_add_price(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionPool *pool = s->nodes[node].pool;
        int64_t price = scene_price_micros(s, node);
        bool spot = is_spot(scene_capacity_type(scene_node(s, node)));
        const PoolOffering *any = cheapest(pool->pool, false), *o = cheapest(pool->pool, spot);

        if (!any)
                return;
        if (price < 0)
                gate_add(f, GATE_PRICE_UNKNOWN, NULL, USEC_INFINITY,
                         strdup("no offering of its pool says what it costs, so that nothing is known to be cheaper"));
        else if (spot && any->price_micros < price && (!o || o->price_micros >= price))
                gate_add(f, GATE_SPOT_TO_SPOT, NULL, USEC_INFINITY,
                         strf("it is spot capacity, and so is all that is cheaper than its %.6g", (double) price / PRICE_MICROS));
        else if (!o || o->price_micros >= price)
                gate_add(f, GATE_NO_CHEAPER, NULL, USEC_INFINITY,
                         strf("can't replace with a cheaper node: it costs %.6g, and the cheapest offering of its pool %.6g",
                              (double) price / PRICE_MICROS, (double) any->price_micros / PRICE_MICROS));
        else if (!saves_enough(pool, price, o->price_micros))
                gate_add(f, GATE_SAVINGS_LOW, NULL, USEC_INFINITY,
                         strf("it costs %.6g, and %s at %.6g would save less than the %.6g %% that its pool asks for (minimumSavings)",
                              (double) price / PRICE_MICROS, o->instance_type, (double) o->price_micros / PRICE_MICROS,
                              (double) pool->pool->disruption.minimum_savings_permille / 10));
        else
                gate_add(f, GATE_NO_CHEAPER, NULL, USEC_INFINITY,
                         strf("can't replace with a cheaper node: it costs %.6g, and with none of the cheaper offerings of its pool, "
                              "from %.6g on, do all its pods find a place",
                              (double) price / PRICE_MICROS, (double) o->price_micros / PRICE_MICROS));
}

/* -- a pool --------------------------------------------------------------------------------------------- */

static int replace_in_pool(Replacing *x) {
        const KubeNodePool *pool = x->pool->pool;
        _cleanup_free_ Shape *shapes = new0(Shape, pool->n_offerings + 1);
        size_t n = 0;
        int r = shapes ? 0 : -ENOMEM;

        for (size_t i = 0; i < pool->n_offerings && r >= 0; i++) {
                uint32_t like = find_like(x->plan, x->pool, pool->offerings + i);

                if (like != NO_NODE)
                        shapes[n++] = (Shape){ pool->offerings + i, like };
        }
        if (r >= 0)
                qsort(shapes, n, sizeof(Shape), shape_compare);
        for (size_t i = 0; i < MIN(n, SHAPES_MAX) && r >= 0; i++)
                do
                        r = try_shape(x, shapes + i);
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
