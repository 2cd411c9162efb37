/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A coordinator whose allocations fail. Only what it asks for is counted: the cluster and the cloud answer from wrapped calls
 * that pause the count, as what is due in the world's own loop does.
 */

#include "alloc-sweep.h"
#include "coordinator-rig.h"

/* So long until it is started again. */
#define RESTART_USEC (10 * USEC_PER_SEC)

/* The count is paused but for what is due in the coordinator. If that gives up, as it should where it cannot go on, it is
 * started again. */
void alloc_run_coordinator(CoordinatorRig *r, usec_t usec);
/* Starts it, again if that fails for want of memory. */
void alloc_start_coordinator(CoordinatorRig *r);
