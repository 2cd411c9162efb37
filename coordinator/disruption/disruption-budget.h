/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many nodes may go now: a pool's budgets and windows (spec.disruption) for one reason, its maxConcurrent, and the
 * NodeDisruptionBudgets that select a node. What a plan has taken is counted in the scene.
 */

#include "disruption-scene.h"

typedef struct PoolAllowance {
        int64_t allowed;        /* more nodes; never < 0; INT64_MAX: as many as there are */
        bool is_one_at_a_time;  /* maxConcurrent is what is the least */
        const PoolHours *hours; /* of the pool */
} PoolAllowance;

PoolAllowance pool_allowance(const DisruptionPool *pool, DisruptionReason reason);
/* Fills pool->hours, once its nodes are counted. zone_directory: of the time zones' files; NULL: that of the system. -ENOMEM. */
int pool_read_hours(DisruptionPool *pool, const char *zone_directory, usec_t now_usec);
/* The first NodeDisruptionBudget that has no room for one more such node; NULL: there is room. */
const DisruptionNodeBudget *node_budget_without_room(const DisruptionScene *s, uint32_t node);
/* The plan takes the node: from here on it is counted as gone (sign 1), or not (-1). */
void disruption_count_taken(DisruptionScene *s, uint32_t node, int sign);
