/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The leader's memory of the charges of one budget: for how long it has seen each of them. A charge ends by
 * the leader's own monotonic clock, never by a timestamp. So neither a view that lies behind nor a clock
 * that is ahead gives room that is not there.
 */

#include "budget-charge-rule.h"
#include "cluster-view.h"
#include "hashmap.h"

/* The source of what the view shows about holders. */
typedef struct BudgetHolders {
        /* Returns true if the view shows that holder of a charge of the node. node: its name. Of a kind that
         * this version does not charge there is no holder. */
        bool (*stand)(NodeChargeKind kind, const char *node, const char *holder, void *userdata);
        void *userdata;
} BudgetHolders;

/* Names a charge by its Node and its holder. holder: NULL: not known. Free it; NULL on ENOMEM. */
char *charge_key(const char *uid, const char *holder);
/* Returns true if the status has that charge, or one that was taken over from that holder. */
bool charge_key_is_in(const KubeNodeBudget *b, const char *key);

/* Returns the kind of the holder that the charge goes back to; _NODE_CHARGE_KIND_MAX: to nobody. */
NodeChargeKind charge_kind_before(const BudgetHolders *h, const NodeCharge *c);

/* Returns what becomes of the charge, from the view and from what was seen of it (charge_key() -> its
 * memory; freed with mfree()). seen NULL: the coordinator does not lead, so the charge ends by its release
 * alone. *ret_left_usec: look again after this time; USEC_INFINITY: when something changes. -ENOMEM. */
int charge_watch(Hashmap *seen, const ClusterView *view, const BudgetHolders *h, const NodeCharge *c,
                 bool is_released, usec_t now_usec, ChargeFate *ret, usec_t *ret_left_usec);
