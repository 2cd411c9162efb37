/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the pods of a node hold it by. Pure. */

#include "drain-plan.h"
#include "explain.h"

typedef struct ExplainPods {
        const ExplainFacts *facts;
        const KubeNode *node;
        const KubeNodeClaim *claim;    /* NULL: none */
        const Interruption *heard;     /* the coordinator's drain for its interruption queue; NULL: none */
        const DrainRules *rules;       /* as the node is drained */
        bool is_draining;              /* pods that opted out are behind it */
} ExplainPods;

/* In this order: opted out, matched by several PDBs, by one that never allows, by one without room, terminating, and what
 * the coordinator says of others. */
void explain_pods(const ExplainPods *p, ExplainCauses *to);
/* Pods that a drain leaves alone as static or daemon pods, and that may be neither: they hold nothing. */
void explain_pods_left_alone(const ExplainPods *p, ExplainCauses *to);
/* Pods that the drain does not wait for because they came back too often: they hold nothing. */
void explain_pods_that_return(const ExplainPods *p, ExplainCauses *to);
