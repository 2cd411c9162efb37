/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many nodes may go now: a pool's budgets and windows (spec.disruption) for one reason, its maxConcurrent, and the
 * NodeDisruptionBudgets that select a node. What a plan has taken is counted in the scene.
 */

#include "disruption-scene.h"

typedef struct PoolAllowance {
        int64_t allowed;         /* more nodes; never < 0; INT64_MAX: as many as there are */
        int64_t cap;             /* of the budget that is the least; INT64_MAX: none holds */
        bool is_outside_windows; /* the pool has windows, and none is open for this reason */
        bool is_unreadable;      /* a schedule or zone that cannot be read: nothing goes */
        bool is_one_at_a_time;   /* maxConcurrent is what is the least */
} PoolAllowance;

PoolAllowance pool_allowance(const DisruptionScene *s, const DisruptionPool *pool, DisruptionReason reason);
/* Does it hold at that time? -EINVAL: its schedule or zone cannot be read; -ENOMEM. */
int pool_schedule_is_active(const PoolSchedule *schedule, const char *zone_directory, usec_t now_usec);
/* The first NodeDisruptionBudget that has no room for one more such node; NULL: there is room. */
const DisruptionNodeBudget *node_budget_without_room(const DisruptionScene *s, uint32_t node);
/* The plan takes the node: from here on it is counted as gone (sign 1), or not (-1). */
void disruption_count_taken(DisruptionScene *s, uint32_t node, int sign);
