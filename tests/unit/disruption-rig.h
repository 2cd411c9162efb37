/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small clusters written as tables, and what the plan of one says as a line, for tests of coordinator/disruption. */

#include "disruption-plan.h"

#define RIG_NOW "2027-01-15T08:00:00Z"
#define RIG_NOW_USEC (1800000000 * USEC_PER_SEC)
/* Older than whatever a test asks for, unless it says otherwise. */
#define RIG_OLD "2027-01-01T00:00:00Z"

typedef struct RigNode {
        const char *name, *cpu;
        const char *meta; /* members of metadata as JSON with ' for ", such as "'labels':{...}"; NULL: label pool=a */
        const char *spec; /* members of spec; NULL: none */
        const char *ready; /* status of condition Ready; NULL: True */
} RigNode;

typedef struct RigPod {
        const char *name, *node, *cpu; /* node NULL: pending */
        const char *meta; /* members of metadata; NULL: one owner that is a ReplicaSet, label app=NAME without its digits */
        const char *spec; /* members of spec */
        const char *status; /* members of status; NULL: running and ready since RIG_OLD */
} RigPod;

#define RIG_ROWS 12
typedef struct RigCluster {
        RigNode nodes[RIG_ROWS];
        RigPod pods[RIG_ROWS];
        const char *pool;      /* members of spec of NodePool a, which selects pool=a; NULL: there is none */
        const char *others[4]; /* objects */
} RigCluster;

#define RIG_TYPE(t) "'labels':{'pool':'a','node.kubernetes.io/instance-type':'" t "'}"
#define RIG_UNDERUTILIZED "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}}"
#define RIG_PDB(name, app, status) \
        "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'namespace':'x','name':'" name "'}," \
        "'spec':{'selector':{'matchLabels':{'app':'" app "'}}},'status':{" status "}}"

/* Of pool a: a is empty; b has p1 and p2, which nothing would make anew, and stays; q of c goes to d, which no pool selects. A budget
 * web allows that p1 or p2 goes. */
extern const RigCluster rig_plan_cluster;

typedef struct DisruptionRig {
        InternPool *interned;
        Snapshot *snapshot;
        Simulator *simulator;
        DisruptionScene *scene;
} DisruptionRig;

DisruptionRig *disruption_rig_new(const RigCluster *c);
DisruptionRig *disruption_rig_free(DisruptionRig *r);
DEFINE_FREEP(DisruptionRig, disruption_rig_free);
void rig_put_object(DisruptionRig *r, SnapshotKind kind, const char *text);
/* Makes simulator and scene of what is in the snapshot. */
void rig_judge(DisruptionRig *r);

/* "Emptiness/empty a; Consolidation/multi-node b c p>d; d: NOT_PLACED". Free it. */
char *rig_plan_line(const DisruptionRig *r, const DisruptionPlan *p);
char *rig_codes(const GateFindings *f); /* "PDB_BLOCKS POD_OPT_OUT" */
void rig_expect(const char *text, const char *piece); /* fails with both, where that piece is not in the text */
uint32_t rig_number(const DisruptionRig *r, const char *node);
