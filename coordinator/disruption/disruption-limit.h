/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * spec.limits of a pool: with one more node its nodes stay within what it says of each resource, by their allocatable; of "nodes", by
 * their number. A node that goes counts until it is gone: what takes its place comes before.
 */

#include "disruption-gate.h"

/* Makes pool->limits, of the scene's nodes. -ENOMEM. */
int pool_read_limits(const DisruptionScene *s, DisruptionPool *pool);
/* A node that would be as `like` is, but for that allocatable (NULL: in all) has come (1), or gone (-1). pool NULL: nothing. */
void pool_count_node(const DisruptionScene *s, DisruptionPool *pool, uint32_t like, const KeyValues *allocatable, int direction);
/* Is there room for one more? pool NULL: yes. */
bool pool_limits_allow(const DisruptionScene *s, const DisruptionPool *pool, uint32_t like, const KeyValues *allocatable);
/* Of a node that goes once one like it has come, since its pods have no place elsewhere. */
#define SUCCESSOR_WANTED "its pods have no place elsewhere, so that one like it has to come first"
/* The first limit that one more would break. what: what there would be of it, before the figures; taken over, NULL is -ENOMEM. */
void gate_add_limit(const DisruptionScene *s, const DisruptionPool *pool, uint32_t like, const KeyValues *allocatable, char *what,
                    GateFindings *f);
