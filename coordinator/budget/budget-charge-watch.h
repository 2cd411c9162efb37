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

/* Tells charge_watch() which holders exist. Borrowed functions. */
typedef struct BudgetHolders {
        /* Returns true if the holder of a charge of this kind exists now. node: name of the Node. False for
         * kinds that this version never charges. */
        bool (*holder_exists)(NodeChargeKind kind, const char *node, const char *holder, void *userdata);
        void *userdata;
} BudgetHolders;

/* Returns the key of a charge, from its Node's uid and its holder. holder: NULL: not known. Free it; NULL on
 * ENOMEM. */
char *charge_key(const char *uid, const char *holder);
/* Returns true if the status has that charge, or one that was taken over from that holder. */
bool charge_key_is_in(const KubeNodeBudget *b, const char *key);

/* Returns the kind of the holder that the charge goes back to; _NODE_CHARGE_KIND_MAX: to nobody. */
NodeChargeKind charge_kind_before(const BudgetHolders *h, const NodeCharge *c);

/* Decides what becomes of the charge. seen: memory by charge_key(), freed with mfree(); NULL: the
 * coordinator does not lead, and only a release ends a charge. *ret_left_usec: time after which to call
 * again, USEC_INFINITY: at the next change. 0 or -ENOMEM. */
int charge_watch(Hashmap *seen, const ClusterView *view, const BudgetHolders *h, const NodeCharge *c,
                 bool is_released, usec_t now_usec, ChargeFate *ret, usec_t *ret_left_usec);
