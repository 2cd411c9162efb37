/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * outlook/: the coordinator says of each node that a NodePool asks about (spec.disruption) whether it would go though nobody
 * has asked for it, in conditions of its NodeClaim, by Events and in metrics. It removes nothing. It lives while the
 * coordinator leads, and does nothing at all while no pool asks. Calls disruption/, cluster/, termination's writes; called
 * by leading.c.
 *
 *      outlook-judge.c   of one node by itself, each method (pure)
 *      outlook-rule.c    what of that is to be written on a NodeClaim now, and told by an Event (pure)
 *      outlook-kinds.c   watches of what only scheduling reads: volumes, storage classes, namespaces' labels
 *      outlook-feed.c    snapshot and simulator as the cluster changes, and the scene of a round
 *      outlook.c         rounds over all nodes, in turns; writes, Events, figures
 *
 * outlook-judge.c: each node is judged as if it alone were to go, as disruption_plan_node() would. What a plan would take first
 * (vesperctl plan), and that pods of other nodes might come to it, is not asked.
 */

#include "disruption-plan.h"

typedef struct MethodOutlook {
        bool is_asked;     /* its pool asks for this method */
        bool holds;        /* it is expired, has drifted, is empty; of consolidation: it would go */
        GateCode code;     /* the first thing that stands in the way; _GATE_CODE_INVALID: none does, it would go */
        char *text;        /* the sentence to that, or why it would go */
        usec_t until_usec; /* wall clock: when what stands in the way ends by itself; USEC_INFINITY */
} MethodOutlook;

typedef struct NodeJudgement {
        MethodOutlook methods[_PLAN_METHOD_MAX];
} NodeJudgement;

void node_judgement_done(NodeJudgement *j);
/* Does this pool ask for the method? */
bool pool_asks(const KubeNodePool *pool, PlanMethod m);
bool pool_asks_for_any(const KubeNodePool *pool);
/* Leaves the simulator as it was. A node without pool is asked about by none. -ENOMEM. */
int outlook_judge(DisruptionScene *s, uint32_t node, NodeJudgement *ret);
