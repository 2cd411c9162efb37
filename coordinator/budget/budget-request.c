/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-account.h"

#include "budget-status.h"
#include "budget-text.h"
#include "hashmap.h"
#include "string-util.h"
#include "strv.h"

/* A request
 *
 *      joins --the first budget that has not charged it--> WAITS --in a patch--> SENT --200--> joins again
 *        |                                                  | ^                   |
 *        +---charged in each---> admitted                   | +--409, no answer---+
 *                                                           | +--4xx, of several--+ (then alone in a patch)
 *                                                           |                     +--4xx, alone--> unknown
 *                                                           +--no room, or another holder--> refused
 *
 * and one that has begun is not refused, but PARKED, and joins again when there is room.
 *
 * A request that is refused, or whose patch the API server refuses, gives back what other budgets have
 * charged for it. */

#define ASK_USEC (10 * USEC_PER_SEC)

void budget_request_leave(BudgetRequest *r) {
        if (r->account)
                list_remove(&r->account->lists[r->place], &r->in_account);
        r->account = NULL;
}

void budget_request_put(BudgetRequest *r, BudgetAccount *a, BudgetRequestPlace place) {
        budget_request_leave(r);
        r->account = a;
        r->place = place;
        list_append(&a->lists[place], &r->in_account);
}

void budget_request_answer(BudgetRequest *r, BudgetAnswer answer, char *message) {
        r->has_answer = true;
        r->answer = answer;
        free(r->message);
        r->message = message;
        timer_arm_in(r->timer, 0);
}

char *budget_request_refusal(const BudgetRequest *r, const KubeNodeBudget *b) {
        return budget_refusal(r->ledger->view, b, r->ask.node->object.meta.name, r->ask.begun);
}

void budget_request_give_back(BudgetRequest *r) {
        if (r->has_charged)
                budget_ledger_release(r->ledger, r->ask.node->object.meta.uid, r->holder);
        r->has_charged = false;
}

void budget_request_refuse(BudgetRequest *r, const KubeNodeBudget *b, char *message) {
        BudgetLedger *l = r->ledger;
        BudgetAccount *a = r->ask.begun ? budget_account_of(l, b->object.meta.name) : NULL;

        budget_request_leave(r);
        if (r->ask.begun && !a) { /* it cannot be parked: it has to be asked for anew */
                free(message);
                budget_request_answer(r, BUDGET_UNKNOWN, NULL);
        } else
                budget_request_answer(r, BUDGET_REFUSED, message ? message : budget_request_refusal(r, b));
        budget_request_give_back(r);
        if (!a)
                return;
        r->told_usec = loop_now(l->env->loop);
        budget_request_put(r, a, BUDGET_REQUEST_PARKED);
        timer_arm_earlier(a->timer, usec_add(r->told_usec, BUDGET_PARKED_TELL_USEC));
}

void budget_request_refuse_held(BudgetRequest *r, const KubeNodeBudget *b, const NodeCharge *c) {
        budget_request_refuse(r, b, budget_text_held(b, c, r->ask.node->object.meta.name));
}

static void on_request_timer(Timer *t, void *userdata) {
        BudgetRequest *r = userdata;

        if (!r->has_answer) {
                budget_request_leave(r);
                r->answer = BUDGET_UNKNOWN;
        }
        r->has_answer = false;
        r->ledger->answers[r->answer]++;
        r->answered(
                r->answer,
                r->answer == BUDGET_ADMITTED ? NULL
                : r->message                 ? r->message
                : r->answer == BUDGET_REFUSED
                        ? "A NodeDisruptionBudget allows no disruption now."
                        : "The API server did not take the charge in its NodeDisruptionBudget's status in time.",
                r->userdata);
}

BudgetRequest *budget_request_free(BudgetRequest *r) {
        if (!r)
                return NULL;
        budget_request_leave(r);
        timer_free(r->timer);
        strv_free(r->budgets);
        free(r->holder);
        kube_object_unref((KubeObject *) r->ask.node);
        free(r->message);
        r->ledger->n_requests--;
        return mfree(r);
}

bool budget_request_matches(const KubeNodeBudget *b, const BudgetRequest *r) {
        return kube_node_budget_matches(b, r->ask.node);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int find_budgets(const BudgetLedger *l, BudgetRequest *r) {
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                if (budget_request_matches(b, r)) {
                        int k = strv_extend(&r->budgets, b->object.meta.name);

                        if (k < 0)
                                return k;
                }
        if (r->budgets)
                qsort(r->budgets, strv_length(r->budgets), sizeof(char *), compare_names);
        return 0;
}

/* -- holders and room ----------------------------------------------------------------------------------- */

ChargeClaim budget_ask_claim(const BudgetLedger *l, const NodeCharge *c, const BudgetAsk *ask) {
        return budget_charge_claim(c, ask->kind, ask->holder, ask->begun || ask->claim_is_deleting,
                                   loop_wall(l->env->loop));
}

bool budget_ask_is_charged(const BudgetLedger *l, const KubeNodeBudget *b, const BudgetAsk *ask) {
        const NodeCharge *c;

        if (!b || !kube_node_budget_matches(b, ask->node))
                return true;
        c = kube_node_budget_charge(b, ask->node->object.meta.uid);
        return budget_ask_claim(l, c, ask) == CHARGE_CLAIM_OWN &&
               !budget_account_ends_charge(hashmap_get(l->accounts, b->object.meta.name), c);
}

bool budget_request_has_room(BudgetRequest *r) {
        STRV_FOREACH(name, r->budgets) {
                const KubeNodeBudget *b = budget_ledger_newest(r->ledger, *name);
                const NodeCharge *c;
                BudgetDraft d;

                if (!b || !budget_request_matches(b, r))
                        continue;
                c = kube_node_budget_charge(b, r->ask.node->object.meta.uid);
                if (budget_ask_claim(r->ledger, c, &r->ask) == CHARGE_CLAIM_REFUSED) {
                        budget_request_refuse_held(r, b, c);
                        return false;
                }
                if (c)
                        continue;
                budget_draft_init(&d, r->ledger->view, b, r->ledger->leads);
                if (!budget_draft_has_room(&d, r->ask.node)) {
                        budget_request_refuse(r, b, NULL);
                        return false;
                }
        }
        return true;
}

void budget_request_join(BudgetRequest *r) {
        BudgetAccount *a;

        budget_request_leave(r);
        STRV_FOREACH (name, r->budgets) {
                if (budget_ask_is_charged(r->ledger, budget_ledger_newest(r->ledger, *name), &r->ask))
                        continue;
                a = budget_account_of(r->ledger, *name);
                if (!a) {
                        budget_request_answer(r, BUDGET_UNKNOWN, NULL);
                        return;
                }
                budget_request_put(r, a, BUDGET_REQUEST_WAITS);
                timer_arm_earlier(a->timer, loop_now(r->ledger->env->loop));
                return;
        }
        budget_request_answer(r, BUDGET_ADMITTED, NULL);
}

int budget_ledger_ask(BudgetLedger *l, const BudgetAsk *ask, budget_answered_t answered, void *userdata,
                      BudgetRequest **ret) {
        _cleanup_(budget_request_freep) BudgetRequest *r = NULL;
        int k;

        assert(l && ask && ask->node && ask->node->object.meta.uid && ask->holder && answered && ret);
        assert(strlen(ask->holder) <= NODE_CHARGE_HOLDER_BYTES_MAX);
        r = new0(BudgetRequest, 1);
        if (!r)
                return -ENOMEM;
        l->n_requests++;
        r->ledger = l;
        r->ask = *ask;
        r->answered = answered;
        r->userdata = userdata;
        kube_object_ref((KubeObject *) ask->node);
        r->ask.holder = r->holder = strdup(ask->holder);
        if (!r->holder)
                return -ENOMEM;
        k = timer_new(l->env->loop, "budget-request", on_request_timer, r, &r->timer);
        if (k < 0)
                return k;
        if (ask->begun || !budget_node_passes(ask->node)) {
                k = find_budgets(l, r);
                if (k < 0)
                        return k;
        }
        if (!ask->begun)
                timer_arm_in(r->timer, ask->timeout_usec > 0 ? ask->timeout_usec : ASK_USEC);
        if (budget_request_has_room(r)) {
                if (ask->dry_run)
                        budget_request_answer(r, BUDGET_ADMITTED, NULL);
                else
                        budget_request_join(r);
        }
        *ret = TAKE_PTR(r);
        return 0;
}
