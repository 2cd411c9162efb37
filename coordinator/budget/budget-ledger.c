/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-ledger.h"

#include "budget-account.h"
#include "hashmap.h"
#include "parse-util.h"
#include "string-util.h"

const char *const budget_answer_names[_BUDGET_ANSWER_MAX + 1] = {
        [BUDGET_ADMITTED] = "admitted",
        [BUDGET_REFUSED] = "refused",
        [BUDGET_UNKNOWN] = "unknown",
};

/* -- the newest state ----------------------------------------------------------------------------------- */

static bool is_newer(const KubeNodeBudget *a, const KubeNodeBudget *b) {
        uint64_t x, y;

        return streq_ptr(a->object.meta.uid, b->object.meta.uid) &&
               parse_uint64(strempty(a->object.meta.resource_version), &x) >= 0 &&
               parse_uint64(strempty(b->object.meta.resource_version), &y) >= 0 && x > y;
}

const KubeNodeBudget *budget_ledger_newest(const BudgetLedger *l, const char *name) {
        const KubeNodeBudget *seen = cluster_view_budget(l->view, name);
        const BudgetAccount *a = hashmap_get(l->accounts, name);

        return seen && a && a->answered && (a->was_read || is_newer(a->answered, seen)) ? a->answered : seen;
}

/* -- from outside --------------------------------------------------------------------------------------- */

void budget_ledger_release(BudgetLedger *l, const char *node_uid, const char *holder) {
        _cleanup_free_ char *key = charge_key(node_uid, holder);
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; key && cluster_view_iterate_budgets(l->view, &it, &b);) {
                const KubeNodeBudget *now = budget_ledger_newest(l, b->object.meta.name);
                BudgetAccount *a =
                        now && charge_key_is_in(now, key) ? budget_account_of(l, b->object.meta.name) : NULL;

                /* A charge that is not released for want of memory ends by the rule of its kind. */
                if (a && hashmap_replace(a->released, key, a, NULL) >= 0)
                        timer_arm_earlier(a->timer, loop_now(l->env->loop));
        }
}

bool budget_ledger_concerns(const BudgetLedger *l, const BudgetAsk *ask) {
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                if (!budget_ask_is_charged(l, budget_ledger_newest(l, b->object.meta.name), ask))
                        return true;
        return false;
}

static void account_wake(BudgetLedger *l, const char *name) {
        BudgetAccount *a = l->leads ? budget_account_of(l, name) : hashmap_get(l->accounts, name);

        if (a)
                timer_arm_earlier(a->timer, loop_now(l->env->loop));
}

static bool account_is_idle(const BudgetAccount *a) {
        for (size_t i = 0; i < _BUDGET_REQUEST_PLACE_MAX; i++)
                if (a->lists[i].size > 0)
                        return false;
        return !a->call;
}

void budget_ledger_see_budget(BudgetLedger *l, const KubeNodeBudget *old, const KubeNodeBudget *new) {
        BudgetAccount *a = hashmap_get(l->accounts, (new ? new : old)->object.meta.name);

        /* It goes back only where etcd was restored: what was answered before is not so any more. */
        if (a && a->answered && (!new || !is_newer(a->answered, new) || (old && is_newer(old, new))))
                budget_account_forget_answered(a);
        if (new)
                account_wake(l, new->object.meta.name);
        else if (a && account_is_idle(a)) {
                hashmap_remove(l->accounts, a->name);
                budget_account_free(a);
        } else if (a)
                timer_arm_earlier(a->timer, loop_now(l->env->loop));
}

/* Nothing that a budget counts. */
static bool counts_the_same(const KubeNode *a, const KubeNode *b) {
        return streq(a->object.meta.uid, b->object.meta.uid) &&
               budget_node_is_available(a) == budget_node_is_available(b) &&
               (a->object.meta.deletion_usec > 0) == (b->object.meta.deletion_usec > 0) &&
               key_values_are_same(&a->object.meta.labels, &b->object.meta.labels);
}

void budget_ledger_see_node(BudgetLedger *l, const KubeNode *old, const KubeNode *new) {
        const KubeNodeBudget *b;

        if (!l->leads || (old && new && counts_the_same(old, new)))
                return;
        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                if ((old && kube_node_budget_matches(b, old)) || (new && kube_node_budget_matches(b, new)))
                        account_wake(l, b->object.meta.name);
}

void budget_ledger_lead(BudgetLedger *l, HttpGuard guard, const BudgetHolders *holders) {
        const KubeNodeBudget *b;

        l->leads = true;
        l->guard = guard;
        l->holders = holders ? *holders : (BudgetHolders) { 0 };
        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                account_wake(l, b->object.meta.name);
}

void budget_ledger_follow(BudgetLedger *l) {
        BudgetAccount *a;

        l->leads = false;
        l->guard = (HttpGuard){ 0 };
        l->holders = (BudgetHolders) { 0 };
        HASHMAP_FOREACH (a, l->accounts) {
                hashmap_clear(a->released); /* the next leader sees when they have ended */
                hashmap_free_with(a->seen, mfree);
                a->seen = NULL;
                (void) hashmap_new(0, &a->seen);
        }
}

const uint64_t *budget_ledger_answers(const BudgetLedger *l) {
        return l->answers;
}

uint64_t budget_ledger_n_patches(const BudgetLedger *l) {
        return l->n_patches;
}

int budget_ledger_new(KubeClient *c, const ClusterView *v, BudgetLedger **ret) {
        _cleanup_(budget_ledger_freep) BudgetLedger *l = NULL;
        int r;

        assert(c && v && ret);
        l = new0(BudgetLedger, 1);
        if (!l)
                return -ENOMEM;
        l->client = c;
        l->env = kube_client_env(c);
        l->view = v;
        r = hashmap_new(0, &l->accounts);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(l);
        return 0;
}

BudgetLedger *budget_ledger_free(BudgetLedger *l) {
        if (!l)
                return NULL;
        assert(l->n_requests == 0);
        hashmap_free_with(l->accounts, budget_account_free);
        return mfree(l);
}

void budget_ledger_next_wakeup(const BudgetLedger *l, Wakeups *w) {
        const KubeNodeBudget *b;
        BudgetAccount *a;

        HASHMAP_FOREACH (a, l->accounts)
                budget_account_next_wakeup(a, w);
        for (HashmapIterator it = {}; l->leads && cluster_view_iterate_budgets(l->view, &it, &b);)
                if (!hashmap_get(l->accounts,
                                 b->object.meta.name)) /* only an account writes the budget's status */
                        wakeups_unfinished(w, "figures of budget", b->object.meta.name, "no account",
                                           BUDGET_LEDGER_WAKEUP_USEC);
}
