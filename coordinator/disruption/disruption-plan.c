/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-plan.h"

#include "disruption-methods.h"
#include "string-util.h"

static const char *const method_names[_PLAN_METHOD_MAX] = {
        [PLAN_EXPIRATION] = "Expiration",
        [PLAN_DRIFT] = "Drift",
        [PLAN_EMPTINESS] = "Emptiness",
        [PLAN_CONSOLIDATION] = "Consolidation",
};

const char *plan_method_to_string(PlanMethod m) {
        return m >= 0 && m < _PLAN_METHOD_MAX ? method_names[m] : NULL;
}

DisruptionPlan *disruption_plan_free(DisruptionPlan *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_steps; i++)
                plan_step_done(p->steps + i);
        free(p->steps);
        for (uint32_t i = 0; p->nodes && i < p->n_nodes; i++)
                for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                        gate_findings_done(p->nodes[i].lacks + m);
        free(p->nodes);
        free(p->standing);
        return mfree(p);
}

/* All that is known of one that no pool has. */
static int note_unmanaged(DisruptionPlan *p) {
        for (uint32_t i = 0; i < p->n_nodes; i++) {
                GateFindings *f = p->nodes[i].lacks + PLAN_CONSOLIDATION;

                if (p->scene->nodes[i].pool || (p->only != NO_NODE && p->only != i))
                        continue;
                gate_add(f, GATE_NOT_MANAGED, NULL, USEC_INFINITY, strf("it is not managed: %s", p->scene->nodes[i].unmanaged));
                if (f->failed)
                        return -ENOMEM;
        }
        return 0;
}

/* A finding that there was no memory for: the node was no candidate then, and the plan is none. */
static bool lacks_a_finding(const DisruptionPlan *p) {
        for (uint32_t i = 0; i < p->n_nodes; i++)
                for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                        if (p->nodes[i].lacks[m].failed)
                                return true;
        return false;
}

static int plan_make(DisruptionScene *s, uint32_t only, DisruptionPlan **ret) {
        static int (*const methods[_PLAN_METHOD_MAX])(DisruptionPlan *p) = {
                [PLAN_EXPIRATION] = method_expiration,
                [PLAN_DRIFT] = method_drift,
                [PLAN_EMPTINESS] = method_emptiness,
                [PLAN_CONSOLIDATION] = method_consolidation,
        };
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = new0(DisruptionPlan, 1);
        int r;

        if (!p)
                return -ENOMEM;
        p->scene = s;
        p->only = only;
        p->nodes = new0(PlanNode, (size_t) s->n_nodes + 1);
        p->standing = new0(uint32_t, (size_t) simulator_n_pods(s->simulator) + 1);
        if (!p->nodes || !p->standing)
                return -ENOMEM;
        for (uint32_t i = 0; i < simulator_n_pods(s->simulator); i++)
                p->standing[i] = simulator_home_of(s->simulator, i);
        p->n_nodes = s->n_nodes;
        for (uint32_t i = 0; i < p->n_nodes; i++)
                p->nodes[i].step = NO_STEP;
        r = note_unmanaged(p);
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX && r >= 0; m++) {
                r = methods[m](p);
                if (r >= 0 && lacks_a_finding(p)) /* before a step forgets what a node that goes has lacked */
                        r = -ENOMEM;
        }
        if (r < 0)
                return r;

        *ret = TAKE_PTR(p);
        return 0;
}

int disruption_plan_new(DisruptionScene *s, DisruptionPlan **ret) {
        return plan_make(s, NO_NODE, ret);
}

int disruption_plan_node(DisruptionScene *s, uint32_t node, DisruptionPlan **ret) {
        return plan_make(s, node, ret);
}

static bool is_not_asked_for(const GateFindings *f) {
        return f->n_items == 0 || gate_has(f, GATE_DISABLED) || gate_has(f, GATE_NOT_EXPIRED) || gate_has(f, GATE_NOT_DRIFTED) ||
               gate_has(f, GATE_NOT_EMPTY);
}

PlanMethod plan_nearest_method(const DisruptionPlan *p, uint32_t node) {
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                if (!is_not_asked_for(p->nodes[node].lacks + m))
                        return m;
        for (PlanMethod m = _PLAN_METHOD_MAX; m > 0; m--) {
                const GateFinding *first = gate_first(p->nodes[node].lacks + m - 1);

                if (first && first->code != GATE_DISABLED)
                        return m - 1;
        }
        return PLAN_CONSOLIDATION;
}
