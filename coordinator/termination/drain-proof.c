/* SPDX-License-Identifier: Apache-2.0 */
#include "drain-proof.h"

/* No machine is ended by an older proof that nothing runs there, but as node_drain_confirm() says. */
#define PROOF_MAX_USEC (5 * USEC_PER_SEC)
/* A person hears of a proof that is tried in vain for so long. */
#define UNPROVED_USEC USEC_PER_MINUTE

const char drain_proof_message[] =
        "no pod of the node is in view, but for a minute no list of its pods has proved that none is left: the API server refuses the list, takes longer than 15 s, or shows pods that the watch has not brought. "
        "Look at the API server, and at what the coordinator may do there";

void drain_proof_confirm(NodeDrain *drain, MachineEnd *machine, usec_t now_usec) {
        if (machine_end_asks(machine) && drain && node_drain_confirm(drain, PROOF_MAX_USEC))
                machine_end_confirm(machine, usec_add(now_usec, MACHINE_END_CONFIRMED_USEC));
}

usec_t drain_proof_overdue(const NodeDrain *drain) {
        usec_t since = drain ? node_drain_unproven_since(drain) : 0;

        return since > 0 ? usec_add(since, UNPROVED_USEC) : USEC_INFINITY;
}
