/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-cheaper.h"

#include "disruption-limit.h"
#include "disruption-methods.h"
#include "string-util.h"

/* -- shapes --------------------------------------------------------------------------------------------- */

static int shape_compare(const void *x, const void *y) {
        const PoolOffering *a = ((const PoolShape *) x)->offering, *b = ((const PoolShape *) y)->offering;

        if (a->price_micros != b->price_micros)
                return a->price_micros < b->price_micros ? -1 : 1;
        return strcmp(a->instance_type, b->instance_type) ?: strcmp(strempty(a->zone), strempty(b->zone))
                       ?: strcmp(strempty(a->capacity_type), strempty(b->capacity_type));
}

/* Of each the first node of the pool of its type; *ret_any: the first of any type. */
static void find_likes(const DisruptionScene *s, const DisruptionPool *pool, PoolShape *shapes, size_t n, uint32_t *ret_any) {
        *ret_any = UINT32_MAX;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                const KubeScheduledNode *node = simulator_node(s->simulator, i);
                const char *type;

                if (s->nodes[i].pool != pool || !node->is_initialized || node->node.unschedulable)
                        continue;
                *ret_any = MIN(*ret_any, i);
                type = object_meta_label(&node->node.object.meta, "node.kubernetes.io/instance-type");
                for (size_t k = 0; k < n; k++)
                        if (shapes[k].like == UINT32_MAX && streq_ptr(type, shapes[k].offering->instance_type))
                                shapes[k].like = i;
        }
}

/* A node of one is as one of the same type is; else, where the offering says what it has room for, as any of the pool. Of others
 * nobody knows how they would be. */
int pool_find_shapes(DisruptionScene *s, DisruptionPool *pool) {
        const KubeNodePool *p = pool->pool;
        uint32_t any;
        size_t n = 0;

        if (pool->knows_shapes)
                return 0;
        pool->shapes = new0(PoolShape, p->n_offerings + 1);
        if (!pool->shapes)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_offerings; i++)
                pool->shapes[i] = (PoolShape){ p->offerings + i, UINT32_MAX };
        find_likes(s, pool, pool->shapes, p->n_offerings, &any);
        for (size_t i = 0; i < p->n_offerings; i++) {
                PoolShape *shape = pool->shapes + i;

                if (shape->like == UINT32_MAX && shape->offering->allocatable.n_items > 0)
                        shape->like = any;
                if (shape->like != UINT32_MAX)
                        pool->shapes[n++] = *shape;
        }
        qsort(pool->shapes, n, sizeof(PoolShape), shape_compare);
        pool->n_shapes = MIN(n, (size_t) SHAPES_MAX);
        pool->knows_shapes = true;
        return 0;
}

int shape_add(DisruptionScene *s, const PoolShape *shape, uint32_t *ret) {
        const PoolOffering *o = shape->offering;
        KeyValue items[4];
        KeyValues labels = { items, 0 };
        int r;

        /* By key. */
        if (o->capacity_type)
                items[labels.n_items++] = (KeyValue){ "karpenter.sh/capacity-type", o->capacity_type };
        items[labels.n_items++] = (KeyValue){ "node.kubernetes.io/instance-type", o->instance_type };
        if (o->zone)
                items[labels.n_items++] = (KeyValue){ "topology.kubernetes.io/zone", o->zone };
        if (o->capacity_type)
                items[labels.n_items++] = (KeyValue){ "vesper.sh/capacity-type", o->capacity_type };
        r = scene_add_node(s,
                           &(SimulatorNewNode){ .like = shape->like,
                                                .labels = &labels,
                                                .allocatable = o->allocatable.n_items > 0 ? &o->allocatable : NULL },
                           ret);
        if (r == -EINVAL || r == -E2BIG)
                return 0;
        return r < 0 ? r : 1;
}

bool shape_is_allowed(const DisruptionScene *s, const DisruptionPool *pool, const PoolShape *shape) {
        return pool_limits_allow(s, pool, shape->like, &shape->offering->allocatable);
}

/* -- prices --------------------------------------------------------------------------------------------- */

char *offering_text(const PoolOffering *o) {
        return strf("%s%s%s%s%s", o->instance_type, o->zone ? " in " : "", strempty(o->zone), o->capacity_type ? ", " : "",
                    strempty(o->capacity_type));
}

static bool is_spot(const char *capacity_type) {
        return streq_ptr(capacity_type, "spot");
}

static bool node_is_spot(const DisruptionScene *s, uint32_t node) {
        return is_spot(scene_capacity_type(scene_node(s, node)));
}

bool offering_may_replace(const DisruptionScene *s, uint32_t node, const PoolOffering *o) {
        return scene_price_micros(s, node) >= 0 && !(node_is_spot(s, node) && (!o->capacity_type || is_spot(o->capacity_type)));
}

bool offering_saves_enough(const DisruptionPool *pool, int64_t before_micros, const PoolOffering *o) {
        return before_micros > o->price_micros &&
               (__int128) (before_micros - o->price_micros) * 1000 >=
                       (__int128) before_micros * pool->pool->disruption.minimum_savings_permille;
}

char *replaced_text(const PoolOffering *o, int64_t before_micros, size_t n_nodes) {
        _cleanup_free_ char *like = offering_text(o);
        _cleanup_strbuf_ StrBuf b = {};

        if (!like)
                return NULL;
        strbuf_addf(&b, "its pods fit on other nodes and one new %s, which saves %.6g of ", like,
                    (double) (before_micros - o->price_micros) / PRICE_MICROS);
        if (n_nodes == 1)
                strbuf_addf(&b, "its %.6g", (double) before_micros / PRICE_MICROS);
        else
                strbuf_addf(&b, "the %.6g that these %zu nodes cost", (double) before_micros / PRICE_MICROS, n_nodes);
        return strbuf_steal(&b);
}

/* -- one node ------------------------------------------------------------------------------------------- */

/* One that nobody can tell a place for has none on a new node either. */
static bool has_unmodelled(const DisruptionScene *s, uint32_t node) {
        size_t n;
        const uint32_t *pods = simulator_pods_of(s->simulator, node, &n);

        for (size_t i = 0; i < n; i++)
                if (simulator_pod_moves(s->simulator, pods[i]) && simulator_pod_unmodelled(s->simulator, pods[i]) != POD_MODELLED)
                        return true;
        return false;
}

/* 1: its pods find seats if one of that shape comes. */
static int try_shape(DisruptionScene *s, uint32_t node, const PoolShape *shape) {
        const SimulateOptions o = { .respect_preferences = pool_respects_preferences(s, node), .quick = true };
        SimulateVerdict v = {};
        uint32_t new;
        bool fits;
        int r = shape_add(s, shape, &new);

        if (r <= 0)
                return r;
        r = simulate_removal(s->simulator, &node, 1, &o, false, &v);
        fits = r >= 0 && v.fits;
        simulate_verdict_done(&v);
        scene_drop_node(s, new);
        return r < 0 ? r : fits;
}

/* The cheapest of those that limits allow, or else of those that they do not. */
static int find_shape(DisruptionScene *s, uint32_t node, bool allowed, const PoolShape **ret) {
        DisruptionPool *pool = s->nodes[node].pool;
        int r = 0;

        if (pool->pool->n_offerings == 0 || has_unmodelled(s, node))
                return 0;
        r = pool_find_shapes(s, pool);
        for (size_t i = 0; i < pool->n_shapes && r == 0; i++) {
                const PoolShape *shape = pool->shapes + i;

                if (!offering_may_replace(s, node, shape->offering) || shape_is_allowed(s, pool, shape) != allowed)
                        continue;
                if (!offering_saves_enough(pool, scene_price_micros(s, node), shape->offering))
                        break; /* nor do those behind it */
                r = try_shape(s, node, shape);
                if (r > 0)
                        *ret = shape;
        }
        return r;
}

int node_find_cheaper(DisruptionScene *s, uint32_t node, const PoolOffering **ret) {
        const PoolShape *shape;
        int r = find_shape(s, node, true, &shape);

        if (r > 0)
                *ret = shape->offering;
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

/* In the words that people of other consolidators know, then the figures. */
static void gate_add_price(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionPool *pool = s->nodes[node].pool;
        int64_t price = scene_price_micros(s, node);
        bool spot = node_is_spot(s, node);
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
        else if (!offering_saves_enough(pool, price, o))
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

/* Limits alone stand in the way? */
static void gate_add_shape_limit(DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionPool *pool = s->nodes[node].pool;
        _cleanup_free_ char *like = NULL;
        const PoolShape *shape;
        int r = pool->n_limits > 0 ? find_shape(s, node, false, &shape) : 0;

        if (r > 0)
                like = offering_text(shape->offering);
        if (r < 0 || (r > 0 && !like))
                f->failed = true;
        else if (r > 0)
                gate_add_limit(s, pool, shape->like, &shape->offering->allocatable,
                               strf("one new %s would take its place, and save %.6g of its %.6g", like,
                                    (double) (scene_price_micros(s, node) - shape->offering->price_micros) / PRICE_MICROS,
                                    (double) scene_price_micros(s, node) / PRICE_MICROS),
                               f);
}

void gate_add_no_seats(DisruptionScene *s, uint32_t node, GoesWith with, const SimulateVerdict *v, GateFindings *f) {
        size_t before = f->n_items;

        if (!verdict_is_of_waiting(v)) { /* its own pods have places: it needs no successor */
                gate_add_shape_limit(s, node, f);
                if (f->n_items == before)
                        gate_add_price(s, node, f);
        }
        gate_add_verdict(s, node, with, v, f);
        gate_sort(f, before);
}
