/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-budget.h"

#include "calendar.h"

/* Does it hold at that time? -EINVAL: its schedule or zone cannot be read; -ENOMEM. */
static int schedule_is_active(const PoolSchedule *schedule, const char *zone_directory, usec_t now_usec) {
        _cleanup_(calendar_done) Calendar c = {};
        const char *expected;
        int r;

        if (!schedule->schedule)
                return 1;
        r = calendar_parse(schedule->schedule, &c, &expected);
        if (r >= 0 && schedule->time_zone)
                r = time_zone_load(zone_directory ?: TIME_ZONE_DIRECTORY, schedule->time_zone, &c.zone);
        if (r < 0)
                return r == -ENOMEM ? r : -EINVAL;
        return calendar_active(&c, schedule->duration_usec, now_usec);
}

static bool schedule_is_about(const PoolSchedule *s, DisruptionReason reason) {
        return s->reasons == 0 || s->reasons & 1u << reason;
}

/* Rounded up, as a budget of Kubernetes is. */
static int64_t budget_cap(const PoolBudget *b, int64_t n_nodes) {
        switch (b->nodes.unit) {
        case NODE_AMOUNT_NODES:
                return b->nodes.value;
        case NODE_AMOUNT_PERCENT:
                return (n_nodes * b->nodes.value + 99) / 100;
        case NODE_AMOUNT_UNSET:
                break;
        }
        return 0;
}

static int read_budgets(const DisruptionPool *pool, DisruptionReason reason, const char *zone_directory, usec_t now_usec, PoolHours *h) {
        const PoolDisruption *d = &pool->pool->disruption;

        for (size_t i = 0; i < d->n_budgets; i++) {
                int active;

                if (!schedule_is_about(&d->budgets[i].when, reason))
                        continue;
                active = schedule_is_active(&d->budgets[i].when, zone_directory, now_usec);
                if (active == -ENOMEM)
                        return active;
                h->is_unreadable = h->is_unreadable || active < 0;
                if (active > 0)
                        h->cap = MIN(h->cap, budget_cap(d->budgets + i, pool->n_nodes));
        }
        return 0;
}

static int read_windows(const PoolDisruption *d, DisruptionReason reason, const char *zone_directory, usec_t now_usec, PoolHours *h) {
        h->is_outside_windows = d->n_windows > 0;
        for (size_t i = 0; i < d->n_windows; i++) {
                int active;

                if (!schedule_is_about(d->windows + i, reason))
                        continue;
                active = schedule_is_active(d->windows + i, zone_directory, now_usec);
                if (active == -ENOMEM)
                        return active;
                h->is_unreadable = h->is_unreadable || active < 0;
                if (active > 0)
                        h->is_outside_windows = false;
        }
        return 0;
}

int pool_read_hours(DisruptionPool *pool, const char *zone_directory, usec_t now_usec) {
        int r = 0;

        for (DisruptionReason reason = 0; reason < _DISRUPTION_REASON_MAX && r >= 0; reason++) {
                PoolHours *h = pool->hours + reason;

                *h = (PoolHours){ .cap = INT64_MAX };
                r = read_budgets(pool, reason, zone_directory, now_usec, h);
                if (r >= 0)
                        r = read_windows(&pool->pool->disruption, reason, zone_directory, now_usec, h);
        }
        return r;
}

PoolAllowance pool_allowance(const DisruptionPool *pool, DisruptionReason reason) {
        const PoolDisruption *d = &pool->pool->disruption;
        const PoolHours *h = pool->hours + reason;
        PoolAllowance a = { .hours = h, .allowed = INT64_MAX };

        if (h->cap != INT64_MAX)
                a.allowed = MAX(h->cap - pool->n_busy - pool->n_taken, INT64_C(0));
        if (d->max_concurrent > 0) {
                int64_t left = MAX(d->max_concurrent - pool->n_leaving - pool->n_taken, INT64_C(0));

                a.is_one_at_a_time = left < a.allowed;
                a.allowed = MIN(a.allowed, left);
        }
        if (h->is_unreadable || h->is_outside_windows)
                a.allowed = 0;
        return a;
}

/* -- NodeDisruptionBudgets ------------------------------------------------------------------------------ */

/* One that is unavailable already makes nothing worse. */
static bool is_available(const KubeNode *n, const KubeNodeBudget *b) {
        return kube_node_is_ready(n) && n->object.meta.deletion_usec == 0 &&
               !(n->object.meta.uid && kube_node_budget_charge(b, n->object.meta.uid));
}

const DisruptionNodeBudget *node_budget_without_room(const DisruptionScene *s, uint32_t node) {
        const KubeNode *n = scene_node(s, node);

        for (size_t i = 0; i < s->n_node_budgets; i++) {
                const DisruptionNodeBudget *b = s->node_budgets + i;

                if (kube_node_budget_matches(b->budget, n) && is_available(n, b->budget) && b->figures.allowed <= b->n_taken)
                        return b;
        }
        return NULL;
}

void disruption_count_taken(DisruptionScene *s, uint32_t node, int sign) {
        const KubeNode *n = scene_node(s, node);
        DisruptionPool *pool = node < s->n_nodes ? s->nodes[node].pool : NULL;

        /* A node that was busy is counted already. */
        if (pool && n->object.meta.deletion_usec == 0 && !n->unschedulable && kube_node_is_ready(n))
                pool->n_taken += sign;
        for (size_t i = 0; i < s->n_node_budgets; i++) {
                DisruptionNodeBudget *b = s->node_budgets + i;

                if (kube_node_budget_matches(b->budget, n) && is_available(n, b->budget))
                        b->n_taken += sign;
        }
}
