/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sim-world.h"

/* Counters of the coordinators, and of the agent of one machine, as their metrics have them now. */
typedef struct cJSON SimCounters;

SimCounters *sim_counters_take(SimWorld *w, size_t machine);
/* Returns what the daemons have counted since then, a line for each series, sorted. Free it. A daemon that
 * has started since then counts from its start. Frees the counters. */
char *sim_counters_since(SimCounters *before, SimWorld *w, size_t machine);
