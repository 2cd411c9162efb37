/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-limit.h"

#include "kube-scheduling.h"
#include "string-util.h"

/* More than any cluster has: sums of as many stay far from overflow. */
#define AMOUNT_LIMIT (INT64_C(1) << 58)

static int64_t amount_of(const char *text, const char *resource) {
        int64_t amount;

        if (!text || quantity_parse(text, streq(resource, "cpu"), QUANTITY_ROUND_DOWN, &amount) < 0)
                return 0;
        return MIN(amount, AMOUNT_LIMIT);
}

/* What one more would have. */
static int64_t amount_of_one(const DisruptionScene *s, uint32_t like, const KeyValues *allocatable, const char *resource) {
        const char *said = allocatable ? key_values_get(allocatable, resource) : NULL;

        if (streq(resource, "nodes"))
                return 1;
        return amount_of(said ?: key_values_get(&simulator_node(s->simulator, like)->allocatable, resource), resource);
}

/* Sums that would overflow are as large as can be. */
static int64_t sum_of(int64_t used, int64_t more) {
        int64_t sum;

        return __builtin_add_overflow(used, more, &sum) ? INT64_MAX : sum;
}

int pool_read_limits(const DisruptionScene *s, DisruptionPool *pool) {
        const KeyValues *limits = &pool->pool->limits;

        pool->limits = new0(PoolLimit, limits->n_items + 1);
        if (!pool->limits)
                return -ENOMEM;
        for (size_t i = 0; i < limits->n_items; i++)
                pool->limits[pool->n_limits++] = (PoolLimit){ .resource = limits->items[i].key,
                                                              .said = limits->items[i].value,
                                                              .limit = amount_of(limits->items[i].value, limits->items[i].key) };
        for (uint32_t i = 0; pool->n_limits > 0 && i < s->n_nodes; i++)
                if (s->nodes[i].pool == pool)
                        pool_count_node(s, pool, i, NULL, 1);
        return 0;
}

void pool_count_node(const DisruptionScene *s, DisruptionPool *pool, uint32_t like, const KeyValues *allocatable, int direction) {
        for (size_t i = 0; pool && i < pool->n_limits; i++) {
                PoolLimit *l = pool->limits + i;

                l->used = sum_of(l->used, direction * amount_of_one(s, like, allocatable, l->resource));
        }
}

/* NULL: there is room. */
static const PoolLimit *find_broken(const DisruptionScene *s, const DisruptionPool *pool, uint32_t like, const KeyValues *allocatable) {
        for (size_t i = 0; pool && i < pool->n_limits; i++) {
                const PoolLimit *l = pool->limits + i;

                if (sum_of(l->used, amount_of_one(s, like, allocatable, l->resource)) > l->limit)
                        return l;
        }
        return NULL;
}

bool pool_limits_allow(const DisruptionScene *s, const DisruptionPool *pool, uint32_t like, const KeyValues *allocatable) {
        return !find_broken(s, pool, like, allocatable);
}

static bool is_in_bytes(const char *resource) {
        return streq(resource, "memory") || streq(resource, "ephemeral-storage") || startswith(resource, "hugepages-");
}

/* As people write it: "3.5", "64Gi". */
static void add_amount(StrBuf *b, const char *resource, int64_t amount) {
        if (streq(resource, "cpu"))
                strbuf_addf(b, "%.6g", (double) amount / 1000);
        else if (is_in_bytes(resource))
                strbuf_addf(b, "%.6gGi", (double) amount / (1 << 30));
        else
                strbuf_addf(b, "%lld", (long long) amount);
}

/* As a quantity that is not less. */
static void add_enough(StrBuf *b, const char *resource, int64_t amount) {
        int64_t mib = amount / (1 << 20) + (amount % (1 << 20) > 0);

        if (is_in_bytes(resource) && mib % 1024 == 0)
                strbuf_addf(b, "%lldGi", (long long) mib / 1024);
        else if (is_in_bytes(resource))
                strbuf_addf(b, "%lldMi", (long long) mib);
        else if (streq(resource, "cpu") && amount % 1000 > 0)
                strbuf_addf(b, "%lldm", (long long) amount);
        else
                strbuf_addf(b, "%lld", (long long) (streq(resource, "cpu") ? amount / 1000 : amount));
}

void gate_add_limit(const DisruptionScene *s, const DisruptionPool *pool, uint32_t like, const KeyValues *allocatable, char *what,
                    GateFindings *f) {
        const PoolLimit *l = find_broken(s, pool, like, allocatable);
        _cleanup_free_ char *object = l ? strf("nodepool %s", pool->pool->object.meta.name) : NULL, *begin = what;
        _cleanup_strbuf_ StrBuf b = {};
        int64_t more;

        if (!l)
                return;
        if (!object || !begin) {
                f->failed = true;
                return;
        }
        more = amount_of_one(s, like, allocatable, l->resource);
        strbuf_addf(&b, "%s, but NodePool %s may have %s ", begin, pool->pool->object.meta.name, l->said);
        if (streq(l->resource, "nodes"))
                strbuf_addf(&b, "node%s (spec.limits) and has %lld, this one included", l->limit == 1 ? "" : "s", (long long) l->used);
        else {
                strbuf_addf(&b, "%s (spec.limits): its nodes, this one included, have ", l->resource);
                add_amount(&b, l->resource, l->used);
                strbuf_add(&b, ", and the new one would add ");
                add_amount(&b, l->resource, more);
        }
        strbuf_addf(&b, ". Raise spec.limits.%s to at least ", l->resource);
        add_enough(&b, l->resource, sum_of(l->used, more));
        gate_add(f, GATE_POOL_LIMIT, object, USEC_INFINITY, strbuf_steal(&b));
}
