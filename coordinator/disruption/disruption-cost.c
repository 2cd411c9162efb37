/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-cost.h"

#include "string-util.h"

#define COST_MAX (10 * EVICTION_COST_ONE)
/* A deletion cost of 2^27, or a priority of 2^25, is worth one pod. */
#define PRIORITY_PART 4

typedef struct Candidate {
        uint32_t node;
        NodeCost cost;
        size_t n_moving;
        usec_t created_usec;
} Candidate;

int64_t eviction_cost(const KubeScheduledPod *pod) {
        const int64_t limit = 20 * EVICTION_COST_ONE; /* neither sum nor product leaves int64_t */
        int64_t deletion = MAX(MIN(pod->deletion_cost, limit), -limit),
                priority = MAX(MIN(pod->pod.priority, limit), -limit) * PRIORITY_PART;

        return MAX(MIN(EVICTION_COST_ONE + deletion + priority, COST_MAX), -COST_MAX);
}

static int64_t node_life(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;
        usec_t ttl = n->pool ? n->pool->pool->disruption.expire_after_usec : USEC_INFINITY, age;

        if (ttl == USEC_INFINITY || ttl == 0)
                return ttl == 0 ? 0 : LIFE_WHOLE;
        age = usec_sub(s->now_usec, n->created_usec);
        if (age >= ttl)
                return 0;
        return (int64_t) ((ttl - age) / (ttl / (usec_t) LIFE_WHOLE + 1));
}

NodeCost node_cost(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;
        size_t n_pods;
        const uint32_t *pods = simulator_pods_of(s->simulator, node, &n_pods);
        NodeCost c = { .life = node_life(s, node), .price_micros = -1 };

        for (size_t i = 0; i < n_pods; i++)
                if (simulator_pod_moves(s->simulator, pods[i]))
                        c.eviction += eviction_cost(simulator_pod(s->simulator, pods[i]));
        c.disruption = c.eviction / LIFE_WHOLE * c.life;
        if (n->pool && n->pool->pool->disruption.minimum_savings_permille > 0)
                c.price_micros = scene_price_micros(s, node);
        return c;
}

static int compare_int64(int64_t a, int64_t b) {
        return a < b ? -1 : a > b;
}

/* The greater price for each pod first; without a price last. */
static int compare_ratio(const NodeCost *a, const NodeCost *b) {
        __int128 left = (__int128) a->price_micros * (EVICTION_COST_ONE + MAX(b->eviction, INT64_C(0))),
                 right = (__int128) b->price_micros * (EVICTION_COST_ONE + MAX(a->eviction, INT64_C(0)));

        if (a->price_micros < 0 || b->price_micros < 0)
                return compare_int64(b->price_micros >= 0, a->price_micros >= 0);
        return left > right ? -1 : left < right;
}

static int candidate_compare(const void *x, const void *y) {
        const Candidate *a = x, *b = y;
        int r = compare_ratio(&a->cost, &b->cost);

        if (r == 0)
                r = compare_int64(a->cost.disruption, b->cost.disruption);
        if (r == 0)
                r = compare_int64(a->cost.life, b->cost.life);
        if (r == 0)
                r = compare_int64((int64_t) a->n_moving, (int64_t) b->n_moving);
        if (r == 0 && a->created_usec != b->created_usec)
                r = a->created_usec < b->created_usec ? -1 : 1;
        return r != 0 ? r : compare_int64(a->node, b->node); /* numbers are in the order of names */
}

int disruption_sort(const DisruptionScene *s, uint32_t *nodes, size_t n) {
        _cleanup_free_ Candidate *c = new0(Candidate, n + 1);

        if (!c)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                c[i] = (Candidate){ .node = nodes[i],
                                    .cost = node_cost(s, nodes[i]),
                                    .n_moving = s->nodes[nodes[i]].n_moving,
                                    .created_usec = s->nodes[nodes[i]].created_usec };
        qsort(c, n, sizeof(Candidate), candidate_compare);
        for (size_t i = 0; i < n; i++)
                nodes[i] = c[i].node;
        return 0;
}
