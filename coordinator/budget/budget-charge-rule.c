/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-charge-rule.h"

#include "string-util.h"

ChargeClaim budget_charge_claim(const NodeCharge *c, NodeChargeKind kind, const char *holder,
                                bool is_deleting, usec_t wall_now_usec) {
        assert(holder);
        if (!c)
                return CHARGE_CLAIM_NONE;
        if (c->kind == kind && streq_ptr(c->holder, holder))
                return kind == NODE_CHARGE_DELETE && !is_deleting &&
                                       wall_now_usec >= usec_add(c->time_usec, BUDGET_CHARGE_USEC / 2)
                               ? CHARGE_CLAIM_REPLACE
                               : CHARGE_CLAIM_OWN;
        if (kind != NODE_CHARGE_DELETE)
                return CHARGE_CLAIM_REFUSED;
        switch (c->kind) {
        case NODE_CHARGE_DELETE:
                /* A charge without holder was written by an earlier version, perhaps for the same user. */
                return is_deleting || !c->holder                     ? CHARGE_CLAIM_OWN
                       : streq(c->holder, BUDGET_HOLDER_COORDINATOR) ? CHARGE_CLAIM_REPLACE
                                                                     : CHARGE_CLAIM_REFUSED;
        case NODE_CHARGE_REBOOT:
        case NODE_CHARGE_OPERATION:
                return CHARGE_CLAIM_REPLACE;
        case NODE_CHARGE_SUCCESSOR:
        case _NODE_CHARGE_KIND_MAX:
                break;
        }
        return CHARGE_CLAIM_REFUSED;
}

/* Returns for how long the leader must have seen a DELETE charge without the deletion that it is for. */
static usec_t delete_charge_usec(const NodeCharge *c, const ChargeFacts *f) {
        /* `until` is later than that only in the charge of a reboot that an earlier version wrote. */
        return f->node_is_there ? MAX(usec_sub(c->until_usec, c->time_usec), BUDGET_CHARGE_USEC)
                                : BUDGET_CHARGE_USEC;
}

ChargeFate budget_charge_fate(const NodeCharge *c, const ChargeFacts *f, usec_t *ret_left_usec) {
        bool is_delete = c->kind == NODE_CHARGE_DELETE;
        usec_t wait_usec = is_delete ? delete_charge_usec(c, f) : BUDGET_CHARGE_USEC,
               waited_usec = is_delete ? f->seen_usec : f->unheld_usec;

        *ret_left_usec = USEC_INFINITY;
        if (!f->is_released && (is_delete ? f->node_is_deleting : f->holder_stands))
                return CHARGE_FATE_STANDS;
        if (!f->is_released && waited_usec < wait_usec) {
                *ret_left_usec = wait_usec - waited_usec;
                return CHARGE_FATE_STANDS;
        }
        return is_delete && c->held_before && f->is_held_before ? CHARGE_FATE_GOES_BACK : CHARGE_FATE_ENDS;
}
