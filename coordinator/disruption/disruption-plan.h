/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The plan: which nodes each method would remove now, in which order and why; where their pods go; and of every other node
 * what stands in the way. Methods are looked at in the order expiration, drift, emptiness, consolidation, each with what the
 * ones before it have chosen gone. Made of a snapshot alone: equal snapshots give equal plans.
 */

#include "disruption-gate.h"
#include "disruption-waves.h"
#include "simulate.h"

#define NO_STEP UINT32_MAX
#define NO_NODE UINT32_MAX

typedef enum PlanMethod {
        PLAN_EXPIRATION,
        PLAN_DRIFT,
        PLAN_EMPTINESS,
        PLAN_CONSOLIDATION,
        _PLAN_METHOD_MAX,
        _PLAN_METHOD_INVALID = -EINVAL,
} PlanMethod;

const char *plan_method_to_string(PlanMethod m); /* "Expiration" */

typedef struct PlanMove {
        uint32_t pod;
        uint32_t from; /* where the steps before have left it; of one that waits where it runs, NO_NODE: it is pending */
        uint32_t to;   /* maybe a node that was added */
        bool waits;    /* it runs on none of the nodes that go, which only had room for it: it is pending, or its node is leaving already */
} PlanMove;

/* Nodes that go together, with one decision. */
typedef struct PlanStep {
        PlanMethod method;
        const char *how;      /* static: "empty", "multi-node", "single-node", "replace", "hard deadline" ...; NULL */
        uint32_t *nodes;
        size_t n_nodes;
        char **why;           /* of each node, in their order */
        PlanMove *moves;
        size_t n_moves;
        uint32_t replacement; /* a node that has to be there before; NO_NODE: none */
        char *replacement_like; /* for people: "m5.large in eu-west-1a, spot", "worker-3" */
        int64_t price_before_micros, price_after_micros; /* -1: not known */
        DrainEstimate drain;
        size_t n_naked;       /* pods without a controller: they go, and do not come again */
} PlanStep;

typedef struct PlanNode {
        uint32_t step; /* NO_STEP: it stays */
        GateFindings lacks[_PLAN_METHOD_MAX]; /* while it stays: of each method what stands in the way */
        size_t n_arrived; /* pods that earlier steps have sent to it */
} PlanNode;

typedef struct DisruptionPlan {
        DisruptionScene *scene; /* borrowed */
        PlanStep *steps;
        size_t n_steps, steps_allocated;
        PlanNode *nodes;
        uint32_t n_nodes; /* of the snapshot: those that were added are no candidates */
        uint32_t only;    /* the one candidate; NO_NODE: all are */
        uint32_t *standing; /* of each pod: where the steps so far have left it; NO_NODE: nowhere */
} DisruptionPlan;

/* Leaves scene and simulator as if all of it had been done. -ENOMEM. */
int disruption_plan_new(DisruptionScene *s, DisruptionPlan **ret);
/* The same of one node by itself, as if no other were a candidate: what plans say of it in the same words, without what those that come
 * before it would take (budgets, seats), or leave. The others have neither step nor findings. Costs a thirtieth of a plan; scene and simulator
 * are of no use for another one. */
int disruption_plan_node(DisruptionScene *s, uint32_t node, DisruptionPlan **ret);
DisruptionPlan *disruption_plan_free(DisruptionPlan *p);
DEFINE_FREEP(DisruptionPlan, disruption_plan_free);
/* Of a node that stays: the method that comes nearest to removing it, that is the first whose findings are other than that it
 * is not asked for; consolidation if all of them are that. */
PlanMethod plan_nearest_method(const DisruptionPlan *p, uint32_t node);

/* -- what would be -------------------------------------------------------------------------------------- */

/* Nodes like that one, or like an offering of that instance type (of the first pool by name that has it), are there as well:
 * before anything else is asked. -ENOENT: there is neither; -E2BIG: too many; -ENOMEM. */
int disruption_add_nodes(DisruptionScene *s, const char *shape, unsigned n);

/* Could these go, all together, whoever's they are? */
typedef struct WhatIf {
        uint32_t *nodes;
        size_t n_nodes;
        GateFindings *lacks; /* of each node: what stands against it, or its pods */
        bool fits;           /* each of their pods finds a seat */
        bool has_objections; /* a node has a finding of its own */
        PlanMove *moves;
        size_t n_moves;
        DrainEstimate drain;
} WhatIf;

void what_if_done(WhatIf *w);
/* names: of nodes. -ENOENT: *reterr_name is none; -ENOMEM. Leaves the simulator as it was. */
int disruption_without(DisruptionScene *s, char *const *names, size_t n, WhatIf *ret, const char **reterr_name);
/* The most nodes, as a greedy search finds them, that could go together now: whoever's, whatever pools say. The nodes that could
 * not have their findings in `lacks_of_others`, by number (empty: it is one of those that go). Leaves the simulator as it was. */
int disruption_all_drainable(DisruptionScene *s, WhatIf *ret, GateFindings **ret_lacks_of_others);

/* To roll a pool: each node is replaced by one like it. */
typedef struct UpgradeWave {
        uint32_t *nodes; /* that go at once */
        size_t n_nodes;
        DrainEstimate drain;
        unsigned n_new;  /* nodes that have to be there before */
} UpgradeWave;

typedef struct UpgradePlan {
        const KubeNodePool *pool;
        UpgradeWave *waves;
        size_t n_waves;
        usec_t usec;         /* at most about so long, with what a machine takes to start; not of a plan that is_endless */
        bool is_endless;     /* a PodDisruptionBudget allows no eviction of a wave's pods now */
        uint32_t *blocked;   /* nodes that cannot go as things are */
        GateFindings *lacks; /* of these */
        size_t n_blocked;
        bool is_cut;         /* more nodes than can be simulated anew: the rest is as the last wave */
} UpgradePlan;

/* So long a machine is taken to need from being asked for until its node is Ready. */
#define MACHINE_START_USEC (3 * USEC_PER_MINUTE)
void upgrade_plan_done(UpgradePlan *u);
/* -ENOENT: there is no such pool; -EBADMSG: it cannot be understood; -ENOMEM. */
int disruption_upgrade(DisruptionScene *s, const char *pool, UpgradePlan *ret);
