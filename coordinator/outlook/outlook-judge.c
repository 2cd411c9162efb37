/* SPDX-License-Identifier: Apache-2.0 */
#include "outlook-judge.h"

#include "disruption-cheaper.h"
#include "disruption-due.h"
#include "disruption-limit.h"
#include "disruption-methods.h"
#include "string-util.h"

void node_judgement_done(NodeJudgement *j) {
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                free(j->methods[m].text);
        *j = (NodeJudgement){};
}

bool pool_asks(const KubeNodePool *pool, PlanMethod m) {
        const PoolDisruption *d = &pool->disruption;

        switch (m) {
        case PLAN_EXPIRATION:
                return d->expire_after_usec != USEC_INFINITY || d->expire_hard_after_usec != USEC_INFINITY;
        case PLAN_DRIFT:
                return d->drift;
        case PLAN_EMPTINESS: /* consolidation of an empty node goes by the time that this says */
                return d->empty_after_usec != USEC_INFINITY || d->consolidation != CONSOLIDATION_NEVER;
        case PLAN_CONSOLIDATION:
                return d->consolidation != CONSOLIDATION_NEVER;
        case _PLAN_METHOD_MAX:
        case _PLAN_METHOD_INVALID:
                break;
        }
        return false;
}

bool pool_asks_for_any(const KubeNodePool *pool) {
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                if (pool_asks(pool, m))
                        return true;
        return false;
}

/* The first finding, or that there is none. why: taken over. */
static int settle(MethodOutlook *m, bool holds, char *why, GateFindings *f) {
        const GateFinding *first = gate_first(f);

        m->is_asked = true;
        m->holds = holds;
        m->code = first ? first->code : _GATE_CODE_INVALID;
        m->until_usec = first ? first->until_usec : USEC_INFINITY;
        m->text = first ? strdup(first->text) : TAKE_PTR(why);
        free(why);
        return f->failed || !m->text ? -ENOMEM : 0;
}

/* Where limits allow no successor, its pods have to find seats without one. */
static int gate_successor(DisruptionScene *s, uint32_t node, GateFindings *f) {
        const SimulateOptions quick = { .quick = true };
        SimulateVerdict v = {};
        int r;

        if (pool_limits_allow(s, s->nodes[node].pool, node, NULL))
                return 0;
        r = simulate_removal(s->simulator, &node, 1, &quick, false, &v);
        if (r >= 0 && !v.fits)
                gate_add_limit(s, s->nodes[node].pool, node, NULL, strdup(SUCCESSOR_WANTED), f);
        simulate_verdict_done(&v);
        return r;
}

/* One that is due and may go is replaced, so nothing is simulated while its pool may have one more. */
static int judge_due(DisruptionScene *s, uint32_t node, DisruptionReason reason,
                     int (*is_due)(const DisruptionScene *s, uint32_t node, NodeDue *ret, GateFindings *f), MethodOutlook *ret) {
        _cleanup_(gate_findings_done) GateFindings f = {};
        NodeDue due = {};
        int r = is_due(s, node, &due, &f), k = 0;

        if (r > 0) {
                gate_node(s, node, (scene_drain_is_bounded(s, node) ? GATE_PODS_MAY_WAIT : 0) | (due.by_force ? GATE_BY_FORCE : 0), &f);
                if (!due.by_force)
                        gate_budgets(s, node, reason, &f);
                if (!due.by_force && f.n_items == 0)
                        k = gate_successor(s, node, &f);
        }
        if (r < 0 || k < 0) {
                free(due.why);
                return MIN(r, k);
        }
        return settle(ret, r > 0, due.why, &f);
}

/* Where only consolidation asks, that is what would take it. */
static int judge_emptiness(DisruptionScene *s, uint32_t node, MethodOutlook *ret) {
        bool has_time = s->nodes[node].pool->pool->disruption.empty_after_usec != USEC_INFINITY;
        _cleanup_(gate_findings_done) GateFindings f = {};
        bool holds = s->nodes[node].n_moving == 0;
        int r = 0;

        if (!holds) /* whatever else there is to say of it */
                gate_add(&f, GATE_NOT_EMPTY, NULL, USEC_INFINITY,
                         strf("it runs %zu pod%s that would have to move", s->nodes[node].n_moving,
                              s->nodes[node].n_moving == 1 ? "" : "s"));
        else if (has_time)
                gate_emptiness(s, node, &f);
        else
                gate_consolidation(s, node, &f);
        if (holds) {
                gate_budgets(s, node, DISRUPTION_EMPTY, &f);
                r = gate_waiting(s, node, GOES_ALONE, &f);
        }
        return r < 0 ? r : settle(ret, holds, empty_since_text(s, node), &f);
}

/* On other nodes, or beside a new one that is cheaper; else `f` says why not. */
static int find_seats(DisruptionScene *s, uint32_t node, const PoolOffering **ret_new, GateFindings *f) {
        const SimulateOptions quick = { .respect_preferences = pool_respects_preferences(s, node), .quick = true };
        const SimulateOptions thorough = { .respect_preferences = quick.respect_preferences };
        SimulateVerdict v = {};
        bool fits;
        int r;

        r = simulate_removal(s->simulator, &node, 1, &quick, false, &v);
        fits = v.fits;
        simulate_verdict_done(&v);
        if (r < 0 || fits)
                return r;
        r = node_find_cheaper(s, node, ret_new);
        if (r != 0)
                return r;
        v = (SimulateVerdict){};
        r = simulate_removal(s->simulator, &node, 1, &thorough, false, &v);
        if (r >= 0 && !v.fits)
                gate_add_no_seats(s, node, GOES_ALONE, &v, f);
        simulate_verdict_done(&v);
        return r;
}

static int judge_consolidation(DisruptionScene *s, uint32_t node, MethodOutlook *ret) {
        _cleanup_(gate_findings_done) GateFindings f = {};
        bool is_empty = s->nodes[node].n_moving == 0;
        const PoolOffering *new = NULL;
        char *why;
        int r = 0;

        gate_consolidation(s, node, &f);
        gate_budgets(s, node, is_empty ? DISRUPTION_EMPTY : DISRUPTION_UNDERUTILIZED, &f);
        if (f.n_items == 0 && !f.failed)
                r = is_empty ? gate_waiting(s, node, GOES_ALONE, &f) : find_seats(s, node, &new, &f);
        if (r < 0)
                return r;
        why = is_empty ? empty_since_text(s, node)
              : new    ? replaced_text(new, scene_price_micros(s, node), 1)
                       : pods_fit_text(s, node);
        return settle(ret, f.n_items == 0, why, &f);
}

int outlook_judge(DisruptionScene *s, uint32_t node, NodeJudgement *ret) {
        const DisruptionPool *pool = s->nodes[node].pool;
        int r = 0;

        *ret = (NodeJudgement){};
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX && pool && r >= 0; m++) {
                MethodOutlook *o = ret->methods + m;

                if (!pool_asks(pool->pool, m))
                        continue;
                switch (m) {
                case PLAN_EXPIRATION:
                        r = judge_due(s, node, DISRUPTION_EXPIRED, node_due_by_expiry, o);
                        break;
                case PLAN_DRIFT:
                        r = judge_due(s, node, DISRUPTION_DRIFTED, node_due_by_drift, o);
                        break;
                case PLAN_EMPTINESS:
                        r = judge_emptiness(s, node, o);
                        break;
                case PLAN_CONSOLIDATION:
                        r = judge_consolidation(s, node, o);
                        break;
                case _PLAN_METHOD_MAX:
                case _PLAN_METHOD_INVALID:
                        break;
                }
        }
        if (r < 0)
                node_judgement_done(ret);
        return r;
}
