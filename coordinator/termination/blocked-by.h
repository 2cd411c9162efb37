/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What keeps the removal of a node from going on, for metrics: the reasons by which conditions, blockers and
 * Events call it, as one bounded set. What passes by itself (a pod that ends in its grace, an eviction under
 * way) is none of them.
 */

#include <stdbool.h>

#include "node-drain.h"

/* What holds a removal before it begins. */
#define WAITING_FOR_BUDGET "WaitingForBudget"
#define REMOVAL_PAUSED "Paused"
/* ... and behind its drain. */
#define VOLUMES_ATTACHED "VolumesAttached"

typedef enum BlockedBy {
        BLOCKED_BY_BUDGET, /* a NodeDisruptionBudget */
        BLOCKED_BY_PAUSE,  /* a person, pauses.h */
        /* a pod: pod-wait.h */
        BLOCKED_BY_PROTECTED,
        BLOCKED_BY_PDB,
        BLOCKED_BY_PDB_NEVER,
        BLOCKED_BY_PDB_SYNC_FAILED,
        BLOCKED_BY_PDB_NOT_OBSERVED,
        BLOCKED_BY_SEVERAL_PDBS,
        BLOCKED_BY_FLOW_CONTROL,
        BLOCKED_BY_NAMESPACE_TERMINATING,
        BLOCKED_BY_EVICTION_WEBHOOK,
        BLOCKED_BY_WITHOUT_EFFECT,
        BLOCKED_BY_FORBIDDEN,
        BLOCKED_BY_SERVER_BUSY,
        BLOCKED_BY_NO_ANSWER,
        BLOCKED_BY_REFUSED_FOR_GOOD,
        BLOCKED_BY_DELETE_FAILED,
        BLOCKED_BY_TERMINATING, /* it should have ended a minute ago */
        /* a volume that is still attached */
        BLOCKED_BY_VOLUMES_ATTACHED,
        /* the proof that no pod is left */
        BLOCKED_BY_DRAIN_UNPROVED,
        /* the machine: reasons of the condition vesper.sh/TerminationBlocked */
        BLOCKED_BY_TERMINATION_PROTECTED,
        BLOCKED_BY_CLOUD_DENIED,
        BLOCKED_BY_CLOUD_UNAVAILABLE,
        BLOCKED_BY_CLOUD_REFUSED,
        BLOCKED_BY_CLOUD_UNKNOWN,
        BLOCKED_BY_MACHINE_SHARED,
        BLOCKED_BY_MACHINE_OF_ANOTHER,
        BLOCKED_BY_MACHINE_MISSING,
        BLOCKED_BY_IDENTITY_UNPROVED,
        BLOCKED_BY_OTHER,
        _BLOCKED_BY_MAX,
} BlockedBy;

/* "Protected", "BlockedByPDB"; NULL behind the last. */
extern const char *const blocked_by_names[_BLOCKED_BY_MAX + 1];

/* Of the reason of a condition or blocker; one that is none of them is OTHER. */
BlockedBy blocked_by_from_reason(const char *reason);
/* Sets what this pod blocks by; nothing if it goes by itself. */
void blocked_by_pod(const DrainBlocker *b, usec_t wall_now_usec, bool by[_BLOCKED_BY_MAX]);
