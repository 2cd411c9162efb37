/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The proof that no pod is left, before a machine is ended: one consistent list of the node's pods (node-drain.h) that
 * is no older than 5 s when the terminate leaves. Volumes, rate, other Nodes and the turn at the cloud may have taken
 * long, the cloud may have refused meanwhile, and a watch may not have told of a pod that was bound since; so the proof
 * is asked for when the turn has come (machine_end_asks()), and anew each time.
 */

#include "machine-end.h"
#include "node-drain.h"

/* Sends the terminate that has its turn, once the drain has proved that no pod is left; else the drain goes on proving,
 * and tells its owner. Nothing happens where the machine has no turn, or drain is NULL. */
void drain_proof_confirm(NodeDrain *drain, MachineEnd *machine, usec_t now_usec);

/* When a person is to hear of a proof that is tried in vain (loop_now()); USEC_INFINITY: none is due. drain NULL: none. */
usec_t drain_proof_overdue(const NodeDrain *drain);
/* What they hear then, and the reason. */
#define DRAIN_PROOF_REASON "DrainUnproved"
extern const char drain_proof_message[];
