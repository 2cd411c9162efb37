/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verdict: if these nodes went, would each pod that moves find a seat? Asked three times: of a scheduler that packs (the first
 * node by name that takes a pod) and of one that spreads (the freest), each with the largest pods first; and of one that spreads and
 * gets the pods that could go anywhere first. kube-scheduler may do any of it, for pods come to it as they are evicted, and all
 * three have to place everything. It may still do something else: where room is tight a yes is no promise.
 *
 * With the pods of these nodes compete those of nodes that are leaving already, pods that were evicted and have no successor yet,
 * and pending ones (simulator_seat_waiting()). A pending pod, or one of a leaving node, that no node takes as things are says nothing.
 * One that a node takes now must not lose that: if it has no seat any more where packing places them all, that is a no. A pod
 * whose successor is still to come only takes room. Of those, and of pending pods whose rules are not looked at, no more than a part competes
 * (waiting-pods.c): that they come is likely, and no more.
 *
 * No preemption: room that only a victim would make is not counted.
 */

#include "simulator.h"

typedef struct SimulatePlacement {
        uint32_t pod, node;
} SimulatePlacement;

typedef struct SimulateUnplaced {
        uint32_t pod;
        PodUnmodelled unmodelled;             /* other than POD_MODELLED: nobody was asked */
        bool waits;                           /* it is pending, or of a node that is leaving already, and has a seat now */
        uint32_t counts[_FIT_REASON_MAX];     /* nodes by what they say, when nothing more could be placed */
        uint32_t nearest;                     /* node, or UINT32_MAX */
} SimulateUnplaced;

typedef struct SimulateVerdict {
        bool fits;
        bool fits_packed, fits_spread, fits_any_order; /* each way by itself; none is tried after one that fails */
        bool only_by_preference;       /* it would fit if preferences were ignored */
        SimulatePlacement *placements; /* of the pods that move, as packing placed them, in that order */
        size_t n_placements;
        SimulatePlacement *sequence;   /* the same with the pods that compete with them: each seat in the order of its taking; not of a quick one */
        size_t n_sequence;
        SimulateUnplaced *unplaced;    /* pods of these nodes, and those that wait, by key */
        size_t n_unplaced;
} SimulateVerdict;

void simulate_verdict_done(SimulateVerdict *v);

typedef struct SimulateOptions {
        bool respect_preferences; /* consolidation.preferences: Respect */
        bool quick;               /* the verdict alone, and of a yes the movers' seats: no reasons, no second try without preferences, and a no is said
                                   * with the first pod that has no seat */
} SimulateOptions;

/* The nodes must not be removed yet. The simulator is afterwards as it was, or with `keep`, if they fit, with the nodes
 * removed and the pods where packing has put them (undo by a mark taken before). 0 or -ENOMEM. */
int simulate_removal(Simulator *s, const uint32_t *nodes, size_t n_nodes, const SimulateOptions *options, bool keep,
                     SimulateVerdict *ret);
