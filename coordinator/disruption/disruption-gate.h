/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether a node may be a candidate: each thing that stands against it, as a stable code and a sentence with its figures, in
 * one order. The first is the reason that is told first.
 */

#include "disruption-budget.h"

typedef enum GateCode {
        /* of the node */
        GATE_NOT_MANAGED,         /* no pool, or more than one, has it */
        GATE_DELETING,            /* it is being deleted already */
        GATE_NOT_INITIALISED,
        GATE_NOMINATED,           /* a pod that waits was promised this node, or would have no place without it; or too many wait to know */
        GATE_NODE_OPT_OUT,
        GATE_POOL_INVALID,        /* the pool cannot be understood */
        GATE_PAUSED,
        /* of its pods */
        GATE_SNAPSHOT_INCOMPLETE, /* objects of a kind that this depends on were not read */
        GATE_POD_OPT_OUT,
        GATE_NAKED_POD,           /* without a controller, and the pool says nakedPods: Block */
        GATE_MULTI_PDB,           /* several select one pod: the API server evicts none such */
        GATE_PDB_IMPOSSIBLE,      /* it allows none even when each of its pods is healthy */
        GATE_PDB_BLOCKS,          /* it allows none now */
        /* of the method */
        GATE_DISABLED,            /* the pool does not ask for it */
        GATE_NOT_EXPIRED,
        GATE_NOT_DRIFTED,
        GATE_NOT_EMPTY,
        GATE_WHEN_EMPTY_ONLY,
        GATE_QUIET_PERIOD,        /* it has not been empty, or without change, for long enough */
        GATE_DESTINATION,         /* pods would come to it as the nodes before it go */
        GATE_OUTSIDE_WINDOW,
        GATE_BUDGET,              /* of the pool */
        GATE_NODE_BUDGET,         /* a NodeDisruptionBudget */
        /* of the simulation */
        GATE_UNMODELLED,          /* a pod that cannot be simulated */
        GATE_PRICE_UNKNOWN,       /* what it costs is not said: it may go, and not be replaced by something cheaper */
        GATE_NO_CHEAPER,          /* no offering that would take its pods is cheaper */
        GATE_SPOT_TO_SPOT,        /* what is cheaper is spot capacity, as it is itself */
        GATE_SAVINGS_LOW,         /* what is cheaper saves less than minimumSavings */
        GATE_POOL_LIMIT,          /* with the new node that it would need its pool would have more than spec.limits says */
        GATE_NOT_PLACED,          /* pods that no other node takes */
        GATE_PREFERENCE,          /* they fit, against a preference that is respected */
        _GATE_CODE_MAX,
        _GATE_CODE_INVALID = -EINVAL,
} GateCode;

const char *gate_code_to_string(GateCode c); /* "PDB_BLOCKS" */

typedef struct GateFinding {
        GateCode code;
        char *text;        /* a sentence, without its stop */
        char *object;      /* "pod ns/name", "pdb ns/name", "nodepool name"; NULL: the node itself */
        usec_t until_usec; /* wall clock: when it ends by itself; USEC_INFINITY: it does not, or nobody knows */
} GateFinding;

typedef struct GateFindings {
        GateFinding *items;
        size_t n_items, allocated;
        bool failed; /* out of memory */
} GateFindings;

void gate_findings_done(GateFindings *f);
/* Behind the others. object: copied; text: taken over, NULL is -ENOMEM. */
void gate_add(GateFindings *f, GateCode code, const char *object, usec_t until_usec, char *text);
const GateFinding *gate_first(const GateFindings *f); /* NULL: none */
bool gate_has(const GateFindings *f, GateCode code);
void gate_sort(GateFindings *f, size_t from); /* by code */

/* With what else a node would be gone. */
typedef enum GoesWith {
        GOES_ALONE,
        GOES_AFTER_OTHERS, /* the plan, or the set, has some already */
        GOES_AMONG_OTHERS, /* all of a set at once */
} GoesWith;

typedef enum GateFlags {
        GATE_UNMANAGED_TOO = 1 << 0,  /* neither pool nor pauses are asked for: what could go, whoever's it is */
        GATE_PODS_MAY_WAIT = 1 << 1,  /* its drain ends by itself, so opt-outs and PDBs only slow it */
        GATE_BY_FORCE = 1 << 2,       /* past a hard deadline: nothing but what the node itself says */
        GATE_FOR_CONSOLIDATION = 1 << 3, /* opt-outs of nodes that are about that count, too */
        GATE_FOR_GOOD = 1 << 4,       /* nothing comes in its place: pods that it was promised to keep it */
} GateFlags;

/* What stands against the node and its pods, whichever method asks. f->failed: -ENOMEM. */
void gate_node(const DisruptionScene *s, uint32_t node, GateFlags flags, GateFindings *f);
/* Budgets and windows of one more node for that reason. */
void gate_budgets(const DisruptionScene *s, uint32_t node, DisruptionReason reason, GateFindings *f);
