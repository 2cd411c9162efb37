/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What runs in a simulated world: up to eight workloads "w0", "w1"..., each with its own kind of pods and its
 * own budgets. All pods of one carry the label app with its name. */

#include "fake-cluster.h"

#define SIM_WORKLOADS_MAX 8u
#define SIM_BUDGETS_MAX 2u

typedef struct SimWorld SimWorld;

typedef enum SimWorkloadKind {
        SIM_REPLICASET,
        SIM_STATEFULSET,
        SIM_BARE, /* pods that nobody makes again */
        _SIM_WORKLOAD_KIND_MAX,
} SimWorkloadKind;

typedef enum SimBudgetKind {
        SIM_BUDGET_NONE,
        SIM_BUDGET_MIN,
        SIM_BUDGET_MAX,
        SIM_BUDGET_MIN_PERCENT,
        SIM_BUDGET_MAX_PERCENT,
        _SIM_BUDGET_KIND_MAX,
} SimBudgetKind;

typedef struct SimBudget {
        unsigned kind, value;
} SimBudget;

typedef struct SimWorkload {
        unsigned kind;
        unsigned n_pods; /* 0: it is not there at all */
        unsigned stop_sec, grace_sec;
        SimBudget budgets[SIM_BUDGETS_MAX]; /* two over one pod: neither can be asked */
        unsigned opt_out;                   /* how its pods are protected; 0: they are not (sim_opt_out()) */
        unsigned critical, volumes;
} SimWorkload;

/* The ways to protect a pod: ".annotations" or ".labels" and key and value, as JSON with ' for "; NULL past
 * the last, which is 5; 0: none. */
const char *sim_opt_out(unsigned i);

void sim_workload_make(SimWorld *w, unsigned i);
/* Replicas of ReplicaSets and StatefulSets. */
void sim_workload_scale(SimWorld *w, unsigned i, unsigned n);
void sim_workload_set_budget(SimWorld *w, unsigned i, unsigned budget, const SimBudget *b);
/* No budget holds it back for ever, no pod of it is protected any more: what people do in the end. */
void sim_workload_let_go(SimWorld *w, unsigned i);
/* As many of its pods as there should be are Ready; of bare ones it is not known. */
bool sim_workload_is_back(SimWorld *w, unsigned i);
