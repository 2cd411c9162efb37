/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-charge-watch.h"

#include "string-util.h"

/* Interval at which the ledger checks that holders are in the view. No event tells the ledger that one has
 * left. */
#define HOLDER_CHECK_USEC USEC_PER_MINUTE

/* Memory of a charge that this leader sees in the status. */
typedef struct ChargeMemory {
        usec_t since_usec;  /* loop_now() */
        usec_t unheld_usec; /* loop_now(): since when the holder is not in the view; 0: it is */
        usec_t time_usec;   /* NodeCharge.time_usec: a later one is a new charge of the same holder */
} ChargeMemory;

char *charge_key(const char *uid, const char *holder) {
        return strf("%s/%s", strempty(uid), strempty(holder)); /* no uid has a slash */
}

bool charge_key_is_in(const KubeNodeBudget *b, const char *key) {
        const char *holder = key + strcspn(key, "/") + 1;
        _cleanup_free_ char *uid = strndup(key, (size_t) (holder - key) - 1);
        const NodeCharge *c = uid ? kube_node_budget_charge(b, uid) : NULL;

        /* A charge without a holder was written by an earlier version: it is that of whoever releases the node. */
        return !uid || (c && (isempty(c->holder) || streq(c->holder, holder) || streq_ptr(c->held_before, holder)));
}

static bool holder_exists(const BudgetHolders *h, NodeChargeKind kind, const char *node,
                          const char *holder) {
        return h->holder_exists && holder && h->holder_exists(kind, strempty(node), holder, h->userdata);
}

NodeChargeKind charge_kind_before(const BudgetHolders *h, const NodeCharge *c) {
        static const NodeChargeKind kinds[] = { NODE_CHARGE_REBOOT, NODE_CHARGE_OPERATION };

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (holder_exists(h, kinds[i], c->name, c->held_before))
                        return kinds[i];
        return _NODE_CHARGE_KIND_MAX;
}

/* Returns the memory of the charge; NULL on ENOMEM. */
static ChargeMemory *see_charge(Hashmap *seen, const NodeCharge *c, usec_t now_usec) {
        _cleanup_free_ char *key = charge_key(c->uid, c->holder);
        ChargeMemory *s = key ? hashmap_get(seen, key) : NULL;

        if (!key)
                return NULL;
        if (!s) {
                s = new0(ChargeMemory, 1);
                if (!s || hashmap_put(seen, key, s) < 0)
                        return mfree(s);
        }
        if (s->since_usec == 0 || s->time_usec != c->time_usec)
                *s = (ChargeMemory) { .since_usec = now_usec, .time_usec = c->time_usec };
        return s;
}

/* Notes since when the holder is missing. A view with a watch that is down does not show that. */
static void see_holder(const BudgetHolders *h, const NodeCharge *c, bool is_complete, ChargeMemory *s,
                       usec_t now_usec, ChargeFacts *f) {
        f->holder_stands = holder_exists(h, c->kind, c->name, c->holder);
        if (f->holder_stands)
                s->unheld_usec = 0;
        else if (s->unheld_usec == 0 || !is_complete)
                s->unheld_usec = now_usec;
        f->unheld_usec = f->holder_stands ? 0 : now_usec - s->unheld_usec;
}

static bool is_deleting(const ClusterView *view, const KubeNode *n) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(view, n);

        return n->object.meta.deletion_usec > 0 || (claim && claim->object.meta.deletion_usec > 0);
}

int charge_watch(Hashmap *seen, const ClusterView *view, const BudgetHolders *h, const NodeCharge *c,
                 bool is_released, usec_t now_usec, ChargeFate *ret, usec_t *ret_left_usec) {
        const KubeNode *n = c->name ? cluster_view_node(view, c->name) : NULL;
        bool is_delete = c->kind == NODE_CHARGE_DELETE;
        ChargeFacts f = { .is_released = is_released };
        ChargeMemory *s;

        *ret_left_usec = USEC_INFINITY;
        *ret = CHARGE_FATE_STANDS;
        if (!seen) {
                /* The kind of the earlier holder is not known here: the leader gives the charge back. */
                if (is_released && !c->held_before)
                        *ret = CHARGE_FATE_ENDS;
                return 0;
        }
        s = see_charge(seen, c, now_usec);
        if (!s)
                return -ENOMEM;
        f.seen_usec = now_usec - s->since_usec;
        f.node_is_there = n && streq_ptr(n->object.meta.uid, c->uid);
        f.node_is_deleting = f.node_is_there && is_deleting(view, n);
        f.is_held_before = is_delete && charge_kind_before(h, c) != _NODE_CHARGE_KIND_MAX;
        if (!is_delete)
                see_holder(h, c, cluster_view_healthy(view), s, now_usec, &f);
        *ret = budget_charge_fate(c, &f, ret_left_usec);
        if (!is_delete && *ret == CHARGE_FATE_STANDS)
                *ret_left_usec = MIN(*ret_left_usec, HOLDER_CHECK_USEC);
        return 0;
}
