/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which new, cheaper node could take a node's place: one of an offering of its pool, the cheapest first, beside which its pods find
 * seats. Spot capacity never takes the place of spot capacity (the cheapest is the one that is interrupted first), and the pool's
 * minimumSavings is kept. A whole plan asks the same of several nodes at once: disruption-replace.c.
 */

#include "disruption-gate.h"
#include "simulate.h"

/* Makes pool->shapes, once: at most so many, so that no node takes long. -ENOMEM. */
#define SHAPES_MAX 64u
int pool_find_shapes(DisruptionScene *s, DisruptionPool *pool);
/* A node of that shape behind all others; scene_drop_node(). 1; 0: there cannot be one; -ENOMEM. */
int shape_add(DisruptionScene *s, const PoolShape *shape, uint32_t *ret);
/* One more of that shape is within the pool's limits. */
bool shape_is_allowed(const DisruptionScene *s, const DisruptionPool *pool, const PoolShape *shape);
/* "m5.large in eu-west-1a, spot"; NULL on ENOMEM. */
char *offering_text(const PoolOffering *o);
/* What the node costs is known, and it is not spot for spot. */
bool offering_may_replace(const DisruptionScene *s, uint32_t node, const PoolOffering *o);
bool offering_saves_enough(const DisruptionPool *pool, int64_t before_micros, const PoolOffering *o);
/* Why nodes go that cost so much together: "its pods fit on other nodes and one new m5.large, which saves 2.5 of its 4". NULL on ENOMEM. */
char *replaced_text(const PoolOffering *o, int64_t before_micros, size_t n_nodes);

/* Of a node that a pool has, whose pods do not fit on other nodes: with *ret, the cheapest that the pool's limits allow, they would. 1;
 * 0: there is none; -ENOMEM. Leaves the simulator as it was. */
int node_find_cheaper(DisruptionScene *s, uint32_t node, const PoolOffering **ret);
/* Why not, where its pool has offerings; and the sentences of that verdict, which is a no: each in the order of codes. Leaves the simulator
 * as it was. */
void gate_add_no_seats(DisruptionScene *s, uint32_t node, GoesWith with, const SimulateVerdict *v, GateFindings *f);
