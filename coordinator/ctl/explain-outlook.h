/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The voluntary half of `vesperctl explain --simulate`: would this node go if nobody asked for it; if not, each thing that stands
 * in the way; and of each of its pods how many nodes would take it, which comes nearest to it, and what it lacks. Of this node by
 * itself: which others would go before it, only a whole plan says. Pure.
 */

#include "disruption-plan.h"

typedef struct PodOutlook {
        uint32_t pod;
        PodUnmodelled unmodelled;
        uint32_t n_takers;  /* nodes that would take it, were the node gone */
        uint32_t counts[_FIT_REASON_MAX];
        uint32_t nearest;   /* NO_NODE: one takes it, or none comes near */
        char *remedy;       /* what would free it; NULL: it has a place */
} PodOutlook;

typedef struct NodeOutlook {
        DisruptionPlan *plan; /* of this node: disruption_plan_node() */
        uint32_t node;
        PodOutlook *pods;
        size_t n_pods;
} NodeOutlook;

/* Leaves the scene as disruption_plan_node() does. -ENOENT: there is no such node; -ENOMEM. */
int node_outlook_make(DisruptionScene *s, const char *node, NodeOutlook *ret);
void node_outlook_done(NodeOutlook *o);
/* For the caller to free; NULL on ENOMEM. */
char *node_outlook_json(const NodeOutlook *o, char *const *unknown);
char *node_outlook_text(const NodeOutlook *o, char *const *unknown);
