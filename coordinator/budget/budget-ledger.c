/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-ledger.h"

#include "backoff.h"
#include "budget-draft.h"
#include "budget-status.h"
#include "env.h"
#include "hashmap.h"
#include "list.h"
#include "log.h"
#include "parse-util.h"
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
 * An account, one of each budget, sends one patch at a time: what waits, what is released, and, where the
 * coordinator leads, the figures. After a conflict it reads the budget first. A request that is refused, or
 * whose patch the API server refuses, gives back what other budgets have charged for it. */

#define ASK_USEC (10 * USEC_PER_SEC)
/* Figures alone are written at most so often. */
#define FIGURES_USEC (250 * USEC_PER_MSEC)
/* What is parked is told anew at most so often why. */
#define TELL_USEC USEC_PER_MINUTE
#define RETRY_BASE_USEC (100 * USEC_PER_MSEC)
#define RETRY_CAP_USEC (5 * USEC_PER_SEC)

const char *const budget_answer_names[_BUDGET_ANSWER_MAX + 1] = {
        [BUDGET_ADMITTED] = "admitted",
        [BUDGET_REFUSED] = "refused",
        [BUDGET_UNKNOWN] = "unknown",
};

struct BudgetLedger {
        KubeClient *client;
        Env *env;
        const ClusterView *view;
        Hashmap *accounts; /* name -> Account */
        bool leads;
        HttpGuard guard;       /* set while the coordinator leads */
        BudgetHolders holders; /* set while the coordinator leads */
        uint64_t n_patches, answers[_BUDGET_ANSWER_MAX];
        size_t n_requests;
};

/* Where in its account. */
typedef enum RequestPlace { REQUEST_WAITS, REQUEST_SENT, REQUEST_PARKED, _REQUEST_PLACE_MAX } RequestPlace;

typedef struct Account {
        BudgetLedger *ledger;
        char *name;
        KubeNodeBudget *answered; /* newer than the view's; or NULL */
        bool was_read;            /* it was read, so it is how the budget stands, though etcd was restored */
        KubeCall *call;
        bool reads;               /* the call does; or the next one is to */
        List lists[_REQUEST_PLACE_MAX]; /* of BudgetRequest.in_account */
        Hashmap *released; /* keys of the charges (charge_key()) whose holders are done with them */
        Hashmap *dropped;  /* keys of the charges that the patch under way takes off */
        Hashmap *seen;     /* memory of charge_watch() while the coordinator leads */
        Timer *timer;
        Backoff backoff;
        bool failing;             /* that its status cannot be written is told */
        usec_t held_until_usec;   /* loop_now(): after a failure */
        usec_t figures_usec;      /* loop_now(): when figures were written last */
} Account;

struct BudgetRequest {
        BudgetLedger *ledger;
        BudgetAsk ask; /* its node is ours */
        char *holder;
        char **budgets; /* that select the node, by name */
        Account *account; /* in that place of which it is; or NULL */
        RequestPlace place;
        usec_t told_usec;  /* loop_now(): when it was told what it is parked for */
        bool has_charged;  /* a patch of this process has charged the node for the request */
        bool is_alone;     /* the API server refused a patch with this request and others: send it alone */
        ListNode in_account;
        Timer *timer; /* its time-out; or its answer, as soon as the loop comes to it */
        bool has_answer;
        BudgetAnswer answer;
        char *message;
        budget_answered_t answered;
        void *userdata;
};

static void pump(Account *a);
static Account *account_of(BudgetLedger *l, const char *name);

/* -- the newest state ----------------------------------------------------------------------------------- */

static bool is_newer(const KubeNodeBudget *a, const KubeNodeBudget *b) {
        uint64_t x, y;

        return streq_ptr(a->object.meta.uid, b->object.meta.uid) &&
               parse_uint64(strempty(a->object.meta.resource_version), &x) >= 0 &&
               parse_uint64(strempty(b->object.meta.resource_version), &y) >= 0 && x > y;
}

/* NULL: there is no such budget (any more). */
static const KubeNodeBudget *newest(const BudgetLedger *l, const char *name) {
        const KubeNodeBudget *seen = cluster_view_budget(l->view, name);
        const Account *a = hashmap_get(l->accounts, name);

        return seen && a && a->answered && (a->was_read || is_newer(a->answered, seen)) ? a->answered : seen;
}

static void forget_answered(Account *a) {
        kube_object_unref((KubeObject *) a->answered);
        a->answered = NULL;
}

static void account_take(Account *a, const Json *object, bool was_read) {
        KubeObject *o;
        int r;

        if (!object)
                return;
        r = kube_object_decode(&kube_node_budget_kind, object, kube_client_pool(a->ledger->client), &o);
        if (r < 0)
                return;
        forget_answered(a);
        a->answered = (KubeNodeBudget *) o;
        a->was_read = was_read;
}

/* -- accounts ------------------------------------------------------------------------------------------- */

static void on_account_timer(Timer *t, void *userdata) {
        pump(userdata);
}

static void *account_free(void *p) {
        Account *a = p;

        kube_call_free(a->call);
        timer_free(a->timer);
        kube_object_unref((KubeObject *) a->answered);
        hashmap_free(a->released);
        hashmap_free(a->dropped);
        hashmap_free_with(a->seen, mfree);
        free(a->name);
        return mfree(a);
}

static Account *account_of(BudgetLedger *l, const char *name) {
        Account *a = hashmap_get(l->accounts, name);

        if (a)
                return a;
        a = new0(Account, 1);
        if (!a)
                return NULL;
        a->ledger = l;
        a->backoff = (Backoff){ .base_usec = RETRY_BASE_USEC, .cap_usec = RETRY_CAP_USEC, .jitter_permille = 500 };
        if (free_and_strdup(&a->name, name) < 0 || hashmap_new(0, &a->seen) < 0 ||
            hashmap_new(0, &a->released) < 0 || hashmap_new(0, &a->dropped) < 0 ||
            timer_new(l->env->loop, "budget", on_account_timer, a, &a->timer) < 0 ||
            hashmap_put(l->accounts, a->name, a) < 0)
                return account_free(a);
        return a;
}

/* -- requests ------------------------------------------------------------------------------------------- */

static void request_leave(BudgetRequest *r) {
        if (r->account)
                list_remove(&r->account->lists[r->place], &r->in_account);
        r->account = NULL;
}

static void request_put(BudgetRequest *r, Account *a, RequestPlace place) {
        request_leave(r);
        r->account = a;
        r->place = place;
        list_append(&a->lists[place], &r->in_account);
}

static void request_answer(BudgetRequest *r, BudgetAnswer answer, char *message) {
        r->has_answer = true;
        r->answer = answer;
        free(r->message);
        r->message = message;
        timer_arm_in(r->timer, 0);
}

static char *refusal(const BudgetRequest *r, const KubeNodeBudget *b) {
        return budget_refusal(r->ledger->view, b, r->ask.node->object.meta.name, r->ask.begun);
}

/* Gives back what budgets before this one have charged for the request. A node that was charged when the
 * request came keeps that. */
static void request_give_back(BudgetRequest *r) {
        if (r->has_charged)
                budget_ledger_release(r->ledger, r->ask.node->object.meta.uid, r->holder);
        r->has_charged = false;
}

/* Answers the request, parks it if it has begun, and gives its charges back. message: taken; NULL: the
 * budget has no room. */
static void request_refuse(BudgetRequest *r, const KubeNodeBudget *b, char *message) {
        BudgetLedger *l = r->ledger;
        Account *a = r->ask.begun ? account_of(l, b->object.meta.name) : NULL;

        request_leave(r);
        if (r->ask.begun && !a) { /* it cannot be parked: it has to be asked for anew */
                free(message);
                request_answer(r, BUDGET_UNKNOWN, NULL);
        } else
                request_answer(r, BUDGET_REFUSED, message ? message : refusal(r, b));
        request_give_back(r);
        if (!a)
                return;
        r->told_usec = loop_now(l->env->loop);
        request_put(r, a, REQUEST_PARKED);
        timer_arm_earlier(a->timer, usec_add(r->told_usec, TELL_USEC));
}

static void request_refuse_held(BudgetRequest *r, const KubeNodeBudget *b, const NodeCharge *c) {
        request_refuse(r, b, budget_text_held(b, c, r->ask.node->object.meta.name));
}

static void on_request_timer(Timer *t, void *userdata) {
        BudgetRequest *r = userdata;

        if (!r->has_answer) {
                request_leave(r);
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
        request_leave(r);
        timer_free(r->timer);
        strv_free(r->budgets);
        free(r->holder);
        kube_object_unref((KubeObject *) r->ask.node);
        free(r->message);
        r->ledger->n_requests--;
        return mfree(r);
}

static bool matches(const KubeNodeBudget *b, const BudgetRequest *r) {
        return kube_node_budget_matches(b, r->ask.node);
}

static int compare_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int find_budgets(const BudgetLedger *l, BudgetRequest *r) {
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                if (matches(b, r)) {
                        int k = strv_extend(&r->budgets, b->object.meta.name);

                        if (k < 0)
                                return k;
                }
        if (r->budgets)
                qsort(r->budgets, strv_length(r->budgets), sizeof(char *), compare_names);
        return 0;
}

/* -- holders and room ----------------------------------------------------------------------------------- */

/* Returns true if the charge, which the status still has, is about to be taken off; also on ENOMEM, because
 * charging again is safe. */
static bool charge_is_ending(const Account *a, const NodeCharge *c) {
        _cleanup_free_ char *key = NULL;

        if (!a || (hashmap_size(a->released) == 0 && hashmap_size(a->dropped) == 0))
                return false;
        key = charge_key(c->uid, c->holder);
        return !key || hashmap_contains(a->released, key) || hashmap_contains(a->dropped, key);
}

static ChargeClaim claim_on(const BudgetLedger *l, const NodeCharge *c, const BudgetAsk *ask) {
        return budget_charge_claim(c, ask->kind, ask->holder, ask->begun || ask->claim_is_deleting,
                                   loop_wall(l->env->loop));
}

/* Returns true if nothing is left to charge for the ask in the budget. NULL: there is no such budget. */
static bool is_charged(const BudgetLedger *l, const KubeNodeBudget *b, const BudgetAsk *ask) {
        const NodeCharge *c;

        if (!b || !kube_node_budget_matches(b, ask->node))
                return true;
        c = kube_node_budget_charge(b, ask->node->object.meta.uid);
        return claim_on(l, c, ask) == CHARGE_CLAIM_OWN &&
               !charge_is_ending(hashmap_get(l->accounts, b->object.meta.name), c);
}

/* Returns true if each budget has room for the request and no other holder of the node. Else the request is
 * refused. */
static bool all_have_room(BudgetRequest *r) {
        STRV_FOREACH(name, r->budgets) {
                const KubeNodeBudget *b = newest(r->ledger, *name);
                const NodeCharge *c;
                BudgetDraft d;

                if (!b || !matches(b, r))
                        continue;
                c = kube_node_budget_charge(b, r->ask.node->object.meta.uid);
                if (claim_on(r->ledger, c, &r->ask) == CHARGE_CLAIM_REFUSED) {
                        request_refuse_held(r, b, c);
                        return false;
                }
                if (c)
                        continue;
                budget_draft_init(&d, r->ledger->view, b, r->ledger->leads);
                if (!budget_draft_has_room(&d, r->ask.node)) {
                        request_refuse(r, b, NULL);
                        return false;
                }
        }
        return true;
}

/* Puts the request into the first budget that has not charged it, or admits it. Every budget is checked
 * again, because an earlier one may have taken its charge off meanwhile. */
static void request_join(BudgetRequest *r) {
        Account *a;

        request_leave(r);
        STRV_FOREACH (name, r->budgets) {
                if (is_charged(r->ledger, newest(r->ledger, *name), &r->ask))
                        continue;
                a = account_of(r->ledger, *name);
                if (!a) {
                        request_answer(r, BUDGET_UNKNOWN, NULL);
                        return;
                }
                request_put(r, a, REQUEST_WAITS);
                timer_arm_earlier(a->timer, loop_now(r->ledger->env->loop));
                return;
        }
        request_answer(r, BUDGET_ADMITTED, NULL);
}

int budget_ledger_ask(BudgetLedger *l, const BudgetAsk *ask, budget_answered_t answered, void *userdata, BudgetRequest **ret) {
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
        if (all_have_room(r)) {
                if (ask->dry_run)
                        request_answer(r, BUDGET_ADMITTED, NULL);
                else
                        request_join(r);
        }
        *ret = TAKE_PTR(r);
        return 0;
}

/* -- what stands no longer ------------------------------------------------------------------------------ */

/* Forgets charges that the status does not have any more. */
static void forget_charges(Account *a, const KubeNodeBudget *b) {
        const char *key;
        void *s;

        for (HashmapIterator it = {}; hashmap_iterate(a->seen, &it, &key, &s);)
                if (!charge_key_is_in(b, key)) {
                        hashmap_remove(a->seen, key);
                        free(s);
                }
        for (HashmapIterator it = {}; hashmap_iterate(a->released, &it, &key, &s);)
                if (!charge_key_is_in(b, key))
                        hashmap_remove(a->released, key);
}

/* -- one patch ------------------------------------------------------------------------------------------ */

/* Returns true if any holder has released its charge of the node. */
static bool is_node_released(const Account *a, const char *uid) {
        const char *key, *holder;

        for (HashmapIterator it = {}; hashmap_iterate(a->released, &it, &key, NULL);) {
                holder = startswith(key, strempty(uid));
                if (holder && *holder == '/')
                        return true;
        }
        return false;
}

/* A charge without a holder was written by an earlier version: whoever releases the node releases that. */
static bool is_released(const Account *a, const char *uid, const char *holder, int *r) {
        _cleanup_free_ char *key = hashmap_size(a->released) > 0 ? charge_key(uid, holder) : NULL;

        if (hashmap_size(a->released) > 0 && !key)
                *r = -ENOMEM;
        return key && (hashmap_contains(a->released, key) || (isempty(holder) && is_node_released(a, uid)));
}

/* Puts the charge into the draft as it stands from now on, unless it ends. */
static int draft_charge(Account *a, BudgetDraft *d, const NodeCharge *c) {
        BudgetLedger *l = a->ledger;
        usec_t now = loop_now(l->env->loop), left;
        _cleanup_free_ char *key = charge_key(c->uid, c->holder);
        NodeCharge kept = *c;
        ChargeFate fate;
        int r = 0;

        if (c->held_before && is_released(a, c->uid, c->held_before, &r)) {
                kept.held_before = NULL;
                d->changed = true;
        }
        if (r >= 0)
                r = charge_watch(l->leads ? a->seen : NULL, l->view, &l->holders, &kept,
                                 is_released(a, c->uid, c->holder, &r), now, &fate, &left);
        if (r < 0 || !key)
                return -ENOMEM;
        if (left != USEC_INFINITY)
                timer_arm_earlier(a->timer, usec_add(now, left));
        if (fate == CHARGE_FATE_STANDS) {
                budget_draft_keep(d, &kept);
                return 0;
        }
        d->changed = true;
        if (fate == CHARGE_FATE_GOES_BACK)
                budget_draft_keep(d, &(NodeCharge) { .name = c->name,
                                                     .uid = c->uid,
                                                     .kind = charge_kind_before(&l->holders, c),
                                                     .holder = c->held_before,
                                                     .time_usec = loop_wall(l->env->loop) });
        return hashmap_replace(a->dropped, key, a, NULL);
}

/* Puts the charges that still stand into the draft, with place for the requests that wait. */
static int draft_charges(Account *a, BudgetDraft *d, const KubeNodeBudget *b) {
        int r = budget_draft_make_room(d, a->lists[REQUEST_WAITS].size);

        hashmap_clear(a->dropped);
        /* A holder that asks again is not done with its charge. */
        LIST_FOREACH (w, &a->lists[REQUEST_WAITS], BudgetRequest, in_account) {
                _cleanup_free_ char *key = charge_key(w->ask.node->object.meta.uid, w->holder);

                if (key)
                        hashmap_remove(a->released, key);
        }
        for (size_t i = 0; i < b->n_charges && r >= 0; i++)
                r = draft_charge(a, d, b->charges + i);
        return r;
}

/* Adds a charge for the request to the draft. replaced: the charge whose place it takes; NULL: none. */
static void draft_request(Account *a, BudgetDraft *d, BudgetRequest *r, const NodeCharge *replaced) {
        bool is_delete = replaced && replaced->kind == NODE_CHARGE_DELETE; /* for the same deletion */
        usec_t now = loop_wall(a->ledger->env->loop),
               stands = r->ask.kind == NODE_CHARGE_DELETE ? BUDGET_CHARGE_USEC : r->ask.for_usec;

        budget_draft_add(d, r->ask.node,
                         &(NodeCharge) { .name = r->ask.node->object.meta.name,
                                         .uid = r->ask.node->object.meta.uid,
                                         .kind = r->ask.kind,
                                         .holder = r->holder,
                                         .held_before = !replaced   ? NULL
                                                        : is_delete ? replaced->held_before
                                                                    : replaced->holder,
                                         .time_usec = now,
                                         .until_usec = stands > 0 ? usec_add(now, stands) : 0 });
        request_put(r, a, REQUEST_SENT);
}

static void serve_request(Account *a, BudgetDraft *d, BudgetRequest *r, const KubeNodeBudget *b) {
        bool is_new;
        const NodeCharge *c = budget_draft_charge(d, r->ask.node->object.meta.uid, &is_new);

        if (!matches(b, r)) {
                request_join(r);
                return;
        }
        if (is_new)
                return; /* charged by this same patch for another request, whose outcome decides */
        switch (claim_on(a->ledger, c, &r->ask)) {
        case CHARGE_CLAIM_OWN:
                request_join(r);
                break;
        case CHARGE_CLAIM_REPLACE:
                draft_request(a, d, r, c);
                break;
        case CHARGE_CLAIM_NONE:
                if (budget_draft_has_room(d, r->ask.node))
                        draft_request(a, d, r, NULL);
                else
                        request_refuse(r, &d->budget, NULL);
                break;
        case CHARGE_CLAIM_REFUSED:
        case _CHARGE_CLAIM_MAX:
                request_refuse_held(r, b, c);
                break;
        }
}

static void account_serve_requests(Account *a, BudgetDraft *d, const KubeNodeBudget *b) {
        BudgetRequest *alone = NULL;

        LIST_FOREACH (r, &a->lists[REQUEST_WAITS], BudgetRequest, in_account)
                if (r->is_alone && !alone)
                        alone = r;
        if (alone) {
                serve_request(a, d, alone, b);
                return;
        }
        LIST_FOREACH (r, &a->lists[REQUEST_WAITS], BudgetRequest, in_account)
                serve_request(a, d, r, b);
}

/* Whose deletion came first. */
static BudgetRequest *first_parked(Account *a) {
        BudgetRequest *first = NULL;

        LIST_FOREACH (r, &a->lists[REQUEST_PARKED], BudgetRequest, in_account)
                if (!first || r->ask.node->object.meta.deletion_usec < first->ask.node->object.meta.deletion_usec)
                        first = r;
        return first;
}

static void tell_parked(Account *a, const KubeNodeBudget *b) {
        usec_t now = loop_now(a->ledger->env->loop);

        LIST_FOREACH (r, &a->lists[REQUEST_PARKED], BudgetRequest, in_account)
                if (now >= usec_add(r->told_usec, TELL_USEC)) {
                        r->told_usec = now;
                        request_answer(r, BUDGET_REFUSED, refusal(r, b));
                }
        timer_arm_earlier(a->timer, usec_add(now, TELL_USEC));
}

/* Returns true if the charge of the node is for this deletion, or may be taken over by it. */
static bool is_for_deletion(const BudgetLedger *l, const KubeNodeBudget *b, const BudgetRequest *r) {
        ChargeClaim claim = claim_on(l, kube_node_budget_charge(b, r->ask.node->object.meta.uid), &r->ask);

        return claim == CHARGE_CLAIM_OWN || claim == CHARGE_CLAIM_REPLACE;
}

/* As many as there is room for begin anew; elsewhere there may be none, and they are parked there. */
static void unpark(Account *a, BudgetDraft *d, const KubeNodeBudget *b) {
        /* A webhook may have charged the node, and the view shows that only now. Such a request needs no
         * room. */
        LIST_FOREACH (r, &a->lists[REQUEST_PARKED], BudgetRequest, in_account)
                if (!b || !matches(b, r) || is_for_deletion(a->ledger, b, r))
                        request_join(r);
        for (size_t left = a->lists[REQUEST_PARKED].size; left > 0; left--) {
                BudgetRequest *r = first_parked(a);

                if (!r || (b && !budget_draft_has_room(d, r->ask.node)))
                        break;
                if (b)
                        budget_draft_take_room(d, r->ask.node);
                if (all_have_room(r))
                        request_join(r);
        }
        if (b && a->lists[REQUEST_PARKED].size > 0)
                tell_parked(a, b);
}

static void unsend(Account *a) {
        LIST_FOREACH (r, &a->lists[REQUEST_SENT], BudgetRequest, in_account)
                request_put(r, a, REQUEST_WAITS);
        hashmap_clear(a->dropped);
}

/* Pauses the account's writes for the backoff, or for least_usec if that is longer. least_usec: the pause
 * that the API server asks for; 0: none. */
static void hold(Account *a, usec_t least_usec) {
        usec_t pause = MAX(backoff_next(&a->backoff, a->ledger->env->random), least_usec);

        a->held_until_usec = usec_add(loop_now(a->ledger->env->loop), pause);
        timer_arm(a->timer, a->held_until_usec);
}

/* Returns true if the API server refuses the content of the patch, and would refuse it again. The other
 * codes are about the credential (401), a budget that has gone (404), or the moment (408, 409, 429). */
static bool patch_is_refused(const ApiError *e) {
        return e->http >= 400 && e->http < 500 && e->http != 401 && e->http != 404 && e->http != 408 &&
               e->http != 409 && e->http != 429;
}

static void account_warn_failing(Account *a, const ApiError *e, const char *then) {
        if (!a->failing)
                log_warning(a->ledger->env->log,
                            "Failed to write the status of NodeDisruptionBudget %s, %s: %s (HTTP %u)",
                            a->name, then, strempty(e->message), e->http);
        a->failing = true;
}

/* A refused patch with several charges is not sent again: each charge is tried once by itself. The answer
 * to a request whose charge is refused by itself has the API server's message. */
static void account_on_refused(Account *a, const ApiError *e) {
        bool is_one = a->lists[REQUEST_SENT].size == 1;

        account_warn_failing(
                a, e, is_one ? "leaving out the charge that it refuses" : "trying each charge by itself");
        LIST_FOREACH (r, &a->lists[REQUEST_SENT], BudgetRequest, in_account) {
                if (!is_one) {
                        r->is_alone = true;
                        continue;
                }
                _cleanup_free_ char *text = strf(
                        "The API server refuses the charge of node %s in NodeDisruptionBudget %s (HTTP %u): %s",
                        r->ask.node->object.meta.name, a->name, e->http, strempty(e->message));

                request_leave(r);
                request_answer(r, BUDGET_UNKNOWN, text ? str_sanitize(text, BUDGET_TEXT_BYTES_MAX) : NULL);
                request_give_back(r);
        }
        unsend(a);
}

static void account_on_charged(Account *a) {
        hashmap_clear(a->dropped);
        LIST_FOREACH (r, &a->lists[REQUEST_SENT], BudgetRequest, in_account) {
                r->has_charged = true;
                r->is_alone = false;
                request_join(r);
        }
}

static void on_answer(const KubeReply *reply, void *userdata) {
        Account *a = userdata;
        const ApiError *e = reply->error;
        bool read = a->reads;

        a->call = kube_call_free(a->call);
        a->reads = false;
        if (!e) {
                account_take(a, reply->object, read);
                if (!read) {
                        backoff_reset(&a->backoff);
                        a->failing = false;
                        account_on_charged(a);
                }
        } else if (!read && patch_is_refused(e) && a->lists[REQUEST_SENT].size > 0)
                account_on_refused(a, e);
        else {
                unsend(a);
                /* Another replica was faster, and is again: each waits a while. */
                if (e->http != 409 || read || a->backoff.failures++ > 0)
                        hold(a, e->retry_after_usec);
                a->reads = e->http == 409 || e->http == 0;
                if (e->http == 404) /* the view will say so, too */
                        forget_answered(a);
                else if (!read && e->http != 409)
                        account_warn_failing(a, e, "retrying");
        }
        pump(a);
}

static void call_failed(Account *a, int r) {
        log_warning_errno(a->ledger->env->log, r, "Failed to ask for NodeDisruptionBudget %s, retrying: %m", a->name);
        unsend(a);
        hold(a, 0);
}

static void read_anew(Account *a) {
        KubeTarget t = { .kind = &kube_node_budget_kind, .name = a->name };
        int r = kube_get(a->ledger->client, &t, NULL, on_answer, a, &a->call);

        if (r < 0)
                call_failed(a, r);
}

static bool is_for_leader(const Account *a) {
        LIST_FOREACH (r, &a->lists[REQUEST_SENT], BudgetRequest, in_account)
                if (!r->ask.as_leader)
                        return false;
        return true;
}

static void send(Account *a, const BudgetDraft *d, const KubeNodeBudget *b) {
        BudgetLedger *l = a->ledger;
        BudgetFigures f = budget_count(l->view, &d->budget);
        KubeCallOptions o = { .guard = is_for_leader(a) ? l->guard : (HttpGuard) { 0 } };
        KubeTarget t = { .kind = &kube_node_budget_kind, .name = a->name, .subresource = "status" };
        _cleanup_free_ char *body =
                budget_status_patch(b, d->budget.charges, d->budget.n_charges, l->leads ? &f : NULL,
                                    budget_draft_allowed(d, b, &f, l->leads), loop_wall(l->env->loop));
        int r = body ? kube_patch(l->client, &t, KUBE_PATCH_MERGE, body, &o, on_answer, a, &a->call)
                     : -ENOMEM;

        if (r < 0) {
                call_failed(a, r);
                return;
        }
        l->n_patches++;
        if (l->leads)
                a->figures_usec = loop_now(l->env->loop);
}

/* Does the status say what we, who lead, see? */
static bool figures_are_due(Account *a, const KubeNodeBudget *b) {
        BudgetFigures f;
        usec_t due;

        if (!a->ledger->leads)
                return false;
        f = budget_count(a->ledger->view, b);
        if (budget_status_says(b, &f))
                return false;
        due = usec_add(a->figures_usec, FIGURES_USEC);
        if (a->figures_usec > 0 && loop_now(a->ledger->env->loop) < due) {
                timer_arm_earlier(a->timer, due);
                return false;
        }
        return true;
}

static void pump(Account *a) {
        const KubeNodeBudget *b = newest(a->ledger, a->name);
        BudgetDraft d;

        if (a->call)
                return;
        if (!b) {
                LIST_FOREACH (r, &a->lists[REQUEST_WAITS], BudgetRequest, in_account)
                        request_join(r);
                unpark(a, NULL, NULL);
                hashmap_clear(a->released);
                return;
        }
        if (loop_now(a->ledger->env->loop) < a->held_until_usec) {
                timer_arm_earlier(a->timer, a->held_until_usec);
                return;
        }
        if (a->reads) {
                read_anew(a);
                return;
        }
        forget_charges(a, b);
        budget_draft_init(&d, a->ledger->view, b, a->ledger->leads);
        if (draft_charges(a, &d, b) < 0) {
                budget_draft_done(&d);
                hashmap_clear(a->dropped);
                hold(a, 0);
                return;
        }
        account_serve_requests(a, &d, b);
        unpark(a, &d, &d.budget);
        if (d.changed || figures_are_due(a, b))
                send(a, &d, b);
        budget_draft_done(&d);
}

/* -- from outside --------------------------------------------------------------------------------------- */

void budget_ledger_release(BudgetLedger *l, const char *node_uid, const char *holder) {
        _cleanup_free_ char *key = charge_key(node_uid, holder);
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; key && cluster_view_iterate_budgets(l->view, &it, &b);) {
                const KubeNodeBudget *now = newest(l, b->object.meta.name);
                Account *a = now && charge_key_is_in(now, key) ? account_of(l, b->object.meta.name) : NULL;

                /* A charge that is not released for want of memory ends by the rule of its kind. */
                if (a && hashmap_replace(a->released, key, a, NULL) >= 0)
                        timer_arm_earlier(a->timer, loop_now(l->env->loop));
        }
}

bool budget_ledger_concerns(const BudgetLedger *l, const BudgetAsk *ask) {
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                if (!is_charged(l, newest(l, b->object.meta.name), ask))
                        return true;
        return false;
}

static void account_wake(BudgetLedger *l, const char *name) {
        Account *a = l->leads ? account_of(l, name) : hashmap_get(l->accounts, name);

        if (a)
                timer_arm_earlier(a->timer, loop_now(l->env->loop));
}

static bool account_is_idle(const Account *a) {
        for (size_t i = 0; i < _REQUEST_PLACE_MAX; i++)
                if (a->lists[i].size > 0)
                        return false;
        return !a->call;
}

void budget_ledger_see_budget(BudgetLedger *l, const KubeNodeBudget *old, const KubeNodeBudget *new) {
        Account *a = hashmap_get(l->accounts, (new ? new : old)->object.meta.name);

        /* It goes back only where etcd was restored: what was answered before is not so any more. */
        if (a && a->answered && (!new || !is_newer(a->answered, new) || (old && is_newer(old, new))))
                forget_answered(a);
        if (new)
                account_wake(l, new->object.meta.name);
        else if (a && account_is_idle(a)) {
                hashmap_remove(l->accounts, a->name);
                account_free(a);
        } else if (a)
                timer_arm_earlier(a->timer, loop_now(l->env->loop));
}

/* Nothing that a budget counts. */
static bool counts_the_same(const KubeNode *a, const KubeNode *b) {
        return streq(a->object.meta.uid, b->object.meta.uid) && budget_node_is_available(a) == budget_node_is_available(b) &&
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
        Account *a;

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
        hashmap_free_with(l->accounts, account_free);
        return mfree(l);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static const char *const place_names[_REQUEST_PLACE_MAX] = {
        [REQUEST_WAITS] = "waits", [REQUEST_SENT] = "sent", [REQUEST_PARKED] = "parked",
};

/* Returns true if the budget has a charge that may end without an event. The deletion of the Node ends a
 * DELETE charge once it has begun; each other charge ends by time, or with its holder. */
static bool has_charge_to_watch(const BudgetLedger *l, const KubeNodeBudget *b) {
        for (size_t i = 0; i < b->n_charges; i++) {
                const NodeCharge *c = b->charges + i;
                const KubeNode *n = c->name ? cluster_view_node(l->view, c->name) : NULL;
                const KubeNodeClaim *claim = n ? cluster_view_claim_of_node(l->view, n) : NULL;

                if (c->kind != NODE_CHARGE_DELETE || !n || !streq_ptr(n->object.meta.uid, c->uid) ||
                    (n->object.meta.deletion_usec == 0 && !(claim && claim->object.meta.deletion_usec > 0)))
                        return true;
        }
        return false;
}

static void report_account(Account *a, Wakeups *w) {
        const KubeNodeBudget *b = newest(a->ledger, a->name);

        for (RequestPlace place = 0; place < _REQUEST_PLACE_MAX; place++)
                LIST_FOREACH (r, &a->lists[place], BudgetRequest, in_account) {
                        wakeups_unfinished(w, "charge of node", r->ask.node->object.meta.name,
                                           place_names[place], BUDGET_LEDGER_WAKEUP_USEC);
                        wakeups_timer(w, place == REQUEST_SENT ? NULL : a->timer);
                        wakeups_await(w, a->call);
                }
        if (!b)
                return;
        if (a->reads || hashmap_size(a->released) > 0) {
                wakeups_unfinished(w, "budget", a->name, a->reads ? "to be read" : "charges are released",
                                   BUDGET_LEDGER_WAKEUP_USEC);
                wakeups_timer(w, a->timer);
                wakeups_await(w, a->call);
        }
        if (!a->ledger->leads)
                return;
        if (has_charge_to_watch(a->ledger, b)) {
                wakeups_unfinished(w, "charges of budget", a->name, "may end", BUDGET_LEDGER_WAKEUP_USEC);
                wakeups_timer(w, a->timer);
                wakeups_await(w, a->call);
        }
        BudgetFigures f = budget_count(a->ledger->view, b);

        if (budget_status_says(b, &f))
                return;
        wakeups_unfinished(w, "figures of budget", a->name, "not written", BUDGET_LEDGER_WAKEUP_USEC);
        wakeups_timer(w, a->timer);
        wakeups_await(w, a->call);
}

void budget_ledger_next_wakeup(const BudgetLedger *l, Wakeups *w) {
        const KubeNodeBudget *b;
        Account *a;

        HASHMAP_FOREACH (a, l->accounts)
                report_account(a, w);
        for (HashmapIterator it = {}; l->leads && cluster_view_iterate_budgets(l->view, &it, &b);)
                if (!hashmap_get(l->accounts,
                                 b->object.meta.name)) /* only an account writes the budget's status */
                        wakeups_unfinished(w, "figures of budget", b->object.meta.name, "no account",
                                           BUDGET_LEDGER_WAKEUP_USEC);
}
