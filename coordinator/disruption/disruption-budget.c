/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-budget.h"

#include "calendar.h"

int pool_schedule_is_active(const PoolSchedule *schedule, const char *zone_directory, usec_t now_usec) {
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

static void apply_budgets(const DisruptionScene *s, const DisruptionPool *pool, DisruptionReason reason, PoolAllowance *a) {
        const PoolDisruption *d = &pool->pool->disruption;

        for (size_t i = 0; i < d->n_budgets; i++) {
                int active;

                if (!schedule_is_about(&d->budgets[i].when, reason))
                        continue;
                active = pool_schedule_is_active(&d->budgets[i].when, s->zone_directory, s->now_usec);
                a->is_unreadable = a->is_unreadable || active < 0;
                if (active > 0)
                        a->cap = MIN(a->cap, budget_cap(d->budgets + i, pool->n_nodes));
        }
}

static void apply_windows(const DisruptionScene *s, const PoolDisruption *d, DisruptionReason reason, PoolAllowance *a) {
        a->is_outside_windows = d->n_windows > 0;
        for (size_t i = 0; i < d->n_windows; i++) {
                int active;

                if (!schedule_is_about(d->windows + i, reason))
                        continue;
                active = pool_schedule_is_active(d->windows + i, s->zone_directory, s->now_usec);
                a->is_unreadable = a->is_unreadable || active < 0;
                if (active > 0)
                        a->is_outside_windows = false;
        }
}

PoolAllowance pool_allowance(const DisruptionScene *s, const DisruptionPool *pool, DisruptionReason reason) {
        const PoolDisruption *d = &pool->pool->disruption;
        PoolAllowance a = { .cap = INT64_MAX, .allowed = INT64_MAX };

        apply_budgets(s, pool, reason, &a);
        apply_windows(s, d, reason, &a);
        if (a.cap != INT64_MAX)
                a.allowed = MAX(a.cap - pool->n_busy - pool->n_taken, INT64_C(0));
        if (d->max_concurrent > 0) {
                int64_t left = MAX(d->max_concurrent - pool->n_leaving - pool->n_taken, INT64_C(0));

                a.is_one_at_a_time = left < a.allowed;
                a.allowed = MIN(a.allowed, left);
        }
        if (a.is_unreadable || a.is_outside_windows)
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
