/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The methods, each of which takes what it would remove now into the plan, and notes at every other node of a pool what
 * stands in the way. Simulation decides the same for all: disruption-try.c.
 */

#include "disruption-plan.h"

int method_expiration(DisruptionPlan *p);
int method_drift(DisruptionPlan *p);
int method_emptiness(DisruptionPlan *p);
int method_consolidation(DisruptionPlan *p); /* empty nodes, then others */
/* disruption-replace.c: what can go if one cheaper node comes. */
int consolidate_by_replacing(DisruptionPlan *p, const uint32_t *candidates, size_t n);

/* -- disruption-try.c: what they share ------------------------------------------------------------------ */

/* A step without nodes behind those that are there. */
typedef struct StepDraft {
        PlanMethod method;
        const char *how;
        bool respects_preferences;
} StepDraft;

/* 1: their pods fit, and they are taken into the plan as one step, gone from scene and simulator; 0: they do not, nothing has changed,
 * and `f` (if wanted) has the reasons. why: of each node; taken over (the texts) if it is 1. -ENOMEM. */
int plan_try(DisruptionPlan *p, const StepDraft *draft, const uint32_t *nodes, size_t n, char **why, GateFindings *f,
             PlanStep **ret_step);
/* It goes whether its pods find seats or not, which are in no move then. 1, or -ENOMEM. */
int plan_force(DisruptionPlan *p, const StepDraft *draft, uint32_t node, char **why);
/* The same, where a node like `node` may come first: for what is to be replaced. */
int plan_try_with_successor(DisruptionPlan *p, const StepDraft *draft, uint32_t node, char **why, GateFindings *f);
void plan_step_done(PlanStep *step);
static inline GoesWith plan_goes_with(const DisruptionPlan *p) {
        return p->n_steps > 0 ? GOES_AFTER_OTHERS : GOES_ALONE;
}
bool is_node_of(const uint32_t *nodes, size_t n, uint32_t node);
/* Of a node without pods that move, when emptiness or consolidation would take it: that pods which wait would have no
 * place without it. As the simulator stands, which stays as it is. f->failed: -ENOMEM. */
int gate_waiting(const DisruptionScene *s, uint32_t node, GoesWith with, GateFindings *f);
/* The sentences of a verdict that is a no, for that node. */
void gate_add_verdict(const DisruptionScene *s, uint32_t node, GoesWith with, const SimulateVerdict *v, GateFindings *f);
/* Its own pods have places: nothing but pods that wait is in the way. */
bool verdict_is_of_waiting(const SimulateVerdict *v);
/* "pod ns/name has a preferred Anti-Affinity which can prevent consolidation"; NULL on ENOMEM. */
char *preference_text(const KubeScheduledPod *pod);
bool pool_respects_preferences(const DisruptionScene *s, uint32_t node);
/* Nodes of the snapshot that a pool has, and that the plan has not taken yet. NULL on ENOMEM. */
uint32_t *plan_nodes_left(const DisruptionPlan *p, size_t *ret_n);
/* The findings of that method at the node, made anew. */
GateFindings *plan_lacks(DisruptionPlan *p, uint32_t node, PlanMethod m);
