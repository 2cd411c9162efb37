/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* clang-format off */
/*
 * The rules of a charge in a NodeDisruptionBudget's status.disruptedNodes: who may have a charge that stands
 * already, and when a charge ends. Pure. vesper(7), BUDGETS OF NODES, has them for users.
 *
 *      kind        holder               the charge ends
 *      DELETE      the user             when the leader has seen the charge for 2 minutes, and sees no
 *                                       deletionTimestamp on the Node or its NodeClaim
 *      reboot      the reboot slot      when it is released, or 2 minutes after its holder left the view
 *      operation   the NodeDisruption   as reboot
 *      successor   the new NodeClaim    as reboot
 *
 * Two holders never share a charge. A DELETE takes the charge of a reboot slot or an operation over, because
 * the deletion of a node makes the other disruption pointless and takes no further node away. If the
 * deletion does not come, the earlier holder gets the charge back.
 */
/* clang-format on */

#include "kube-kinds.h"

/* Time after which a charge ends for which the leader sees no reason: a DELETE without deletionTimestamp, or
 * a holder that is not in the view. In that time every view catches up with the API server. */
#define BUDGET_CHARGE_USEC (2 * USEC_PER_MINUTE)

typedef enum ChargeClaim {
        CHARGE_CLAIM_NONE,    /* the node is not charged: a charge needs room */
        CHARGE_CLAIM_OWN,     /* the charge is that of the asking holder */
        CHARGE_CLAIM_REPLACE, /* a new charge of the asking DELETE takes the place of this one, and needs no
                                 room */
        CHARGE_CLAIM_REFUSED, /* the charge is another holder's */
        _CHARGE_CLAIM_MAX,
} ChargeClaim;

/* Holder of the coordinator's own DELETE charges, and of those for deletions that passed the webhook
 * uncharged. */
#define BUDGET_HOLDER_COORDINATOR "vesper-coordinator"

/* Returns what the holder, who asks for a charge of that kind, may do with the charge of the node. c: NULL
 * if the node is not charged. is_deleting: the Node or its NodeClaim is being deleted already, so every
 * DELETE charge is for that deletion. A user who deletes again when half of the time of the charge is over
 * gets a new charge, because the old one could end before the deletion comes. A user also takes over the
 * coordinator's own DELETE charge: a coordinator that does not run under its ServiceAccount is such a user
 * itself. */
ChargeClaim budget_charge_claim(const NodeCharge *c, NodeChargeKind kind, const char *holder,
                                bool is_deleting, usec_t wall_now_usec);

/* Facts about a charge, as the leader sees them. */
typedef struct ChargeFacts {
        bool node_is_there;    /* the view has the Node, with the uid of the charge */
        bool node_is_deleting; /* the view has its deletionTimestamp, or that of its NodeClaim, too */
        bool holder_stands;    /* the holder is in the view; of a reboot, an operation, a successor only */
        bool is_held_before;   /* NodeCharge.held_before is still in the view as such a holder */
        bool is_released;      /* the holder has released the charge */
        usec_t seen_usec;      /* how long this leader has seen the charge with this holder */
        usec_t unheld_usec; /* how long this leader has seen the charge while the holder was not in the view;
                               0: holder_stands */
} ChargeFacts;

typedef enum ChargeFate {
        CHARGE_FATE_STANDS,
        CHARGE_FATE_ENDS,
        CHARGE_FATE_GOES_BACK, /* to NodeCharge.held_before */
        _CHARGE_FATE_MAX,
} ChargeFate;

/* Returns what becomes of the charge now. *ret_left_usec: the time after which to ask again if no fact
 * changes; USEC_INFINITY: only a fact changes it. */
ChargeFate budget_charge_fate(const NodeCharge *c, const ChargeFacts *f, usec_t *ret_left_usec);
