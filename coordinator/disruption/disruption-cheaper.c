/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-cheaper.h"

#include "disruption-limit.h"
#include "disruption-methods.h"
#include "string-util.h"

#define LABEL_INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define LABEL_ZONE "topology.kubernetes.io/zone"
#define LABEL_ZONE_BETA "failure-domain.beta.kubernetes.io/zone"
#define LABEL_REGION "topology.kubernetes.io/region"
#define LABEL_REGION_BETA "failure-domain.beta.kubernetes.io/region"
#define LIKE_TYPE 4u

/* -- shapes --------------------------------------------------------------------------------------------- */

static int shape_compare(const void *x, const void *y) {
        const PoolOffering *a = ((const PoolShape *) x)->offering, *b = ((const PoolShape *) y)->offering;

        if (a->price_micros != b->price_micros)
                return a->price_micros < b->price_micros ? -1 : 1;
        return strcmp(a->instance_type, b->instance_type) ?: strcmp(strempty(a->zone), strempty(b->zone))
                       ?: strcmp(strempty(a->capacity_type), strempty(b->capacity_type));
}

static const char *label_of(const DisruptionScene *s, uint32_t node, const char *key, const char *beta) {
        const ObjectMeta *m = &scene_node(s, node)->object.meta;

        return object_meta_label(m, key) ?: object_meta_label(m, beta);
}

static const char *zone_of(const DisruptionScene *s, uint32_t node) {
        return label_of(s, node, LABEL_ZONE, LABEL_ZONE_BETA);
}

static const char *region_of(const DisruptionScene *s, uint32_t node) {
        return label_of(s, node, LABEL_REGION, LABEL_REGION_BETA);
}

/* How much a node is as the offering says: by its type above all, then by its zone. */
static unsigned likeness(const PoolOffering *o, const char *type, const char *zone, const char *capacity_type) {
        return LIKE_TYPE * streq_ptr(type, o->instance_type) + 2u * (!o->zone || streq_ptr(zone, o->zone)) +
               (!o->capacity_type || streq_ptr(capacity_type, o->capacity_type));
}

/* Of each the node of the pool that is most like it, the first of these; of another type only where the offering says what it has room for. Of
 * others nobody knows how they would be. */
static void find_likes(const DisruptionScene *s, const DisruptionPool *pool, PoolShape *shapes, size_t n) {
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                const KubeScheduledNode *node = simulator_node(s->simulator, i);
                const char *type, *zone, *capacity_type;

                if (s->nodes[i].pool != pool || !node->is_initialized || node->node.unschedulable)
                        continue;
                type = object_meta_label(&node->node.object.meta, LABEL_INSTANCE_TYPE);
                zone = zone_of(s, i);
                capacity_type = scene_capacity_type(&node->node);
                for (size_t k = 0; k < n; k++) {
                        unsigned now = likeness(shapes[k].offering, type, zone, capacity_type);

                        if (now < LIKE_TYPE && shapes[k].offering->allocatable.n_items == 0)
                                continue;
                        if (shapes[k].like == UINT32_MAX || now > shapes[k].likeness) {
                                shapes[k].like = i;
                                shapes[k].likeness = now;
                        }
                }
        }
}

/* Of each zone that a node is in, its region. */
static int gather_regions(const DisruptionScene *s, Hashmap *regions) {
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                const char *zone = zone_of(s, i), *region = region_of(s, i);

                if (zone && region && hashmap_replace(regions, zone, (void *) region, NULL) == -ENOMEM)
                        return -ENOMEM;
        }
        return 0;
}

/* In which region the offering's zone is, if another than its like's. False: in another one, nobody knows which: names of zones begin with that
 * of their region at the clouds that we know, and this one does not. */
static bool find_region(const DisruptionScene *s, const Hashmap *regions, PoolShape *shape) {
        const char *wanted = shape->offering->zone, *zone = zone_of(s, shape->like), *region = region_of(s, shape->like);

        if (!wanted || !region || streq_ptr(wanted, zone))
                return true;
        shape->region = hashmap_get(regions, wanted);
        return shape->region || !zone || !startswith(zone, region) || startswith(wanted, region);
}

int pool_find_shapes(DisruptionScene *s, DisruptionPool *pool) {
        _cleanup_(hashmap_freep) Hashmap *regions = NULL;
        const KubeNodePool *p = pool->pool;
        size_t n = 0;
        int r;

        if (pool->knows_shapes)
                return 0;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &regions);
        if (r >= 0)
                r = gather_regions(s, regions);
        if (r >= 0 && !pool->shapes)
                pool->shapes = new0(PoolShape, p->n_offerings + 1);
        if (r < 0 || !pool->shapes)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_offerings; i++)
                pool->shapes[i] = (PoolShape){ .offering = p->offerings + i, .like = UINT32_MAX };
        find_likes(s, pool, pool->shapes, p->n_offerings);
        for (size_t i = 0; i < p->n_offerings; i++)
                if (pool->shapes[i].like != UINT32_MAX && find_region(s, regions, pool->shapes + i))
                        pool->shapes[n++] = pool->shapes[i];
        qsort(pool->shapes, n, sizeof(PoolShape), shape_compare);
        pool->n_shapes = MIN(n, (size_t) SHAPES_MAX);
        pool->knows_shapes = true;
        return 0;
}

/* -- its labels ----------------------------------------------------------------------------------------- */

/* What a label of its like is on a node of that shape; NULL: the same. Clouds, their volume drivers and people repeat zone, region and type under
 * keys of their own, so labels are known by what they say. */
static const char *shape_label(const DisruptionScene *s, const PoolShape *shape, const KeyValue *label) {
        const PoolOffering *o = shape->offering;
        const char *capacity = o->capacity_type ? scene_capacity_label(label->key, o->capacity_type) : NULL;

        if (capacity)
                return capacity;
        if (streq(label->key, LABEL_INSTANCE_TYPE))
                return o->instance_type;
        if (o->zone && streq_ptr(label->value, zone_of(s, shape->like)))
                return o->zone;
        if (shape->region && streq_ptr(label->value, region_of(s, shape->like)))
                return shape->region;
        if (streq_ptr(label->value, object_meta_label(&scene_node(s, shape->like)->object.meta, LABEL_INSTANCE_TYPE)))
                return o->instance_type;
        return NULL;
}

/* Borrows what is in it. */
static int shape_labels(const DisruptionScene *s, const PoolShape *shape, KeyValues *ret) {
        const KeyValue more[] = { { LABEL_INSTANCE_TYPE, shape->offering->instance_type },
                                  { LABEL_ZONE, shape->offering->zone },
                                  { "karpenter.sh/capacity-type", shape->offering->capacity_type },
                                  { "vesper.sh/capacity-type", shape->offering->capacity_type } };
        const KeyValues *labels = &scene_node(s, shape->like)->object.meta.labels;

        ret->items = new0(KeyValue, labels->n_items + ELEMENTSOF(more));
        if (!ret->items)
                return -ENOMEM;
        for (size_t i = 0; i < labels->n_items; i++) {
                const char *value = shape_label(s, shape, labels->items + i);

                if (value)
                        ret->items[ret->n_items++] = (KeyValue){ labels->items[i].key, value };
        }
        for (size_t i = 0; i < ELEMENTSOF(more); i++)
                if (more[i].value && !key_values_get(labels, more[i].key))
                        ret->items[ret->n_items++] = more[i];
        key_values_sort(ret);
        return 0;
}

int shape_add(DisruptionScene *s, const PoolShape *shape, uint32_t *ret) {
        const KeyValues *room = &shape->offering->allocatable;
        KeyValues labels = {};
        int r = shape_labels(s, shape, &labels);

        if (r >= 0)
                r = scene_add_node(s,
                                   &(SimulatorNewNode){ .like = shape->like, .labels = &labels, .allocatable = room->n_items > 0 ? room : NULL },
                                   ret);
        free(labels.items);
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
