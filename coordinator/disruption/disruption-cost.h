/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In which order nodes are tried: those whose removal disturbs least go first, that is with few pods, of low priority, and
 * soon to expire. Whole numbers only, and a total order: equal snapshots give equal orders.
 */

#include "disruption-scene.h"

/* Of one pod, in parts of EVICTION_COST_ONE: 1, more with its priority and pod-deletion-cost, -10 to 10. */
#define EVICTION_COST_ONE (INT64_C(1) << 27)
int64_t eviction_cost(const KubeScheduledPod *pod);

/* What is left of a node's life, 0 to LIFE_WHOLE; LIFE_WHOLE where it does not expire. */
#define LIFE_WHOLE INT64_C(10000)

typedef struct NodeCost {
        int64_t eviction;  /* sum over the pods that move */
        int64_t life;
        int64_t disruption; /* eviction x life / LIFE_WHOLE */
        int64_t price_micros; /* -1: not known, or the pool asks for no savings */
} NodeCost;

NodeCost node_cost(const DisruptionScene *s, uint32_t node);

/* The numbers of the nodes, in that order. Where pools say minimumSavings, what a node costs for each pod that it disturbs
 * comes first. 0 or -ENOMEM. */
int disruption_sort(const DisruptionScene *s, uint32_t *nodes, size_t n);
