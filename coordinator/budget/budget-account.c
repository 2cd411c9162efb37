/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-account.h"

#include "budget-status.h"
#include "hashmap.h"
#include "log.h"
#include "string-util.h"

/* An account has one budget: the state that the API server answered last, the requests that wait for it, and
 * one call at a time. A patch has the charges of the requests that wait, takes off the charges that end or are released,
 * and has the figures while the coordinator leads. After a conflict, and after a call without an answer, the
 * account reads the budget before its next patch. */

/* Minimum interval between two patches that have only figures. */
#define FIGURES_USEC (250 * USEC_PER_MSEC)
#define RETRY_BASE_USEC (100 * USEC_PER_MSEC)
#define RETRY_CAP_USEC (5 * USEC_PER_SEC)

static void pump(BudgetAccount *a);

void budget_account_forget_answered(BudgetAccount *a) {
        kube_object_unref((KubeObject *) a->answered);
        a->answered = NULL;
}

static void account_take(BudgetAccount *a, const Json *object, bool was_read) {
        KubeObject *o;
        int r;

        if (!object)
                return;
        r = kube_object_decode(&kube_node_budget_kind, object, kube_client_pool(a->ledger->client), &o);
        if (r < 0)
                return;
        a->was_read = was_read || (a->answered && a->was_read); /* the patch was made of what was read */
        budget_account_forget_answered(a);
        a->answered = (KubeNodeBudget *) o;
}

/* -- accounts ------------------------------------------------------------------------------------------- */

static void on_account_timer(Timer *t, void *userdata) {
        pump(userdata);
}

void *budget_account_free(void *p) {
        BudgetAccount *a = p;

        kube_call_free(a->call);
        timer_free(a->timer);
        kube_object_unref((KubeObject *) a->answered);
        hashmap_free(a->released);
        hashmap_free(a->dropped);
        hashmap_free_with(a->seen, mfree);
        free(a->name);
        return mfree(a);
}

BudgetAccount *budget_account_of(BudgetLedger *l, const char *name) {
        BudgetAccount *a = hashmap_get(l->accounts, name);

        if (a)
                return a;
        a = new0(BudgetAccount, 1);
        if (!a)
                return NULL;
        a->ledger = l;
        a->backoff = (Backoff) {
                .base_usec = RETRY_BASE_USEC, .cap_usec = RETRY_CAP_USEC, .jitter_permille = 500
        };
        if (free_and_strdup(&a->name, name) < 0 || hashmap_new(0, &a->seen) < 0 ||
            hashmap_new(0, &a->released) < 0 || hashmap_new(0, &a->dropped) < 0 ||
            timer_new(l->env->loop, "budget", on_account_timer, a, &a->timer) < 0 ||
            hashmap_put(l->accounts, a->name, a) < 0)
                return budget_account_free(a);
        return a;
}

bool budget_account_ends_charge(const BudgetAccount *a, const NodeCharge *c) {
        _cleanup_free_ char *key = NULL;

        if (!a || (hashmap_size(a->released) == 0 && hashmap_size(a->dropped) == 0))
                return false;
        key = charge_key(c->uid, c->holder);
        return !key || hashmap_contains(a->released, key) || hashmap_contains(a->dropped, key);
}

/* -- what stands no longer ------------------------------------------------------------------------------ */

/* Forgets charges that the status does not have any more. */
static void forget_charges(BudgetAccount *a, const KubeNodeBudget *b) {
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
static bool is_node_released(const BudgetAccount *a, const char *uid) {
        const char *key, *holder;

        for (HashmapIterator it = {}; hashmap_iterate(a->released, &it, &key, NULL);) {
                holder = startswith(key, strempty(uid));
                if (holder && *holder == '/')
                        return true;
        }
        return false;
}

/* A charge without a holder was written by an earlier version: whoever releases the node releases that. */
static bool is_released(const BudgetAccount *a, const char *uid, const char *holder, int *r) {
        _cleanup_free_ char *key = hashmap_size(a->released) > 0 ? charge_key(uid, holder) : NULL;

        if (hashmap_size(a->released) > 0 && !key)
                *r = -ENOMEM;
        return key && (hashmap_contains(a->released, key) || (isempty(holder) && is_node_released(a, uid)));
}

/* Puts the charge into the draft as it stands from now on, unless it ends. */
static int draft_charge(BudgetAccount *a, BudgetDraft *d, const NodeCharge *c) {
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
static int draft_charges(BudgetAccount *a, BudgetDraft *d, const KubeNodeBudget *b) {
        int r = budget_draft_make_room(d, a->lists[BUDGET_REQUEST_WAITS].size);

        hashmap_clear(a->dropped);
        /* A holder that asks again is not done with its charge. */
        LIST_FOREACH (w, &a->lists[BUDGET_REQUEST_WAITS], BudgetRequest, in_account) {
                _cleanup_free_ char *key = charge_key(w->ask.node->object.meta.uid, w->holder);

                if (key)
                        hashmap_remove(a->released, key);
        }
        for (size_t i = 0; i < b->n_charges && r >= 0; i++)
                r = draft_charge(a, d, b->charges + i);
        return r;
}

/* Adds a charge for the request to the draft. replaced: the charge whose place it takes; NULL: none. */
static void draft_request(BudgetAccount *a, BudgetDraft *d, BudgetRequest *r, const NodeCharge *replaced) {
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
        budget_request_put(r, a, BUDGET_REQUEST_SENT);
}

static void serve_request(BudgetAccount *a, BudgetDraft *d, BudgetRequest *r, const KubeNodeBudget *b) {
        bool is_new;
        const NodeCharge *c = budget_draft_charge(d, r->ask.node->object.meta.uid, &is_new);

        if (!budget_request_matches(b, r)) {
                budget_request_join(r);
                return;
        }
        if (is_new)
                return; /* charged by this same patch for another request, whose outcome decides */
        switch (budget_ask_claim(a->ledger, c, &r->ask)) {
        case CHARGE_CLAIM_OWN:
                budget_request_join(r);
                break;
        case CHARGE_CLAIM_REPLACE:
                draft_request(a, d, r, c);
                break;
        case CHARGE_CLAIM_NONE:
                if (budget_draft_has_room(d, r->ask.node))
                        draft_request(a, d, r, NULL);
                else
                        budget_request_refuse(r, &d->budget, NULL);
                break;
        case CHARGE_CLAIM_REFUSED:
        case _CHARGE_CLAIM_MAX:
                budget_request_refuse_held(r, b, c);
                break;
        }
}

/* Serves each request that waits, or, while some are to be sent by themselves, the first of these that needs a patch. */
static void account_serve_requests(BudgetAccount *a, BudgetDraft *d, const KubeNodeBudget *b) {
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_WAITS], BudgetRequest, in_account)
                if (r->is_alone) {
                        serve_request(a, d, r, b);
                        if (a->lists[BUDGET_REQUEST_SENT].size > 0)
                                return;
                }
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_WAITS], BudgetRequest, in_account)
                serve_request(a, d, r, b);
}

/* Returns the parked request whose Node was deleted first. NULL: no request is parked. */
static BudgetRequest *first_parked(BudgetAccount *a) {
        BudgetRequest *first = NULL;

        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_PARKED], BudgetRequest, in_account)
                if (!first ||
                    r->ask.node->object.meta.deletion_usec < first->ask.node->object.meta.deletion_usec)
                        first = r;
        return first;
}

/* Reports to each parked request why it waits, a minute after the last report to it. */
static void tell_parked(BudgetAccount *a, const KubeNodeBudget *b) {
        usec_t now = loop_now(a->ledger->env->loop);

        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_PARKED], BudgetRequest, in_account) {
                if (now >= usec_add(r->told_usec, BUDGET_PARKED_TELL_USEC)) {
                        r->told_usec = now;
                        budget_request_answer(r, BUDGET_REFUSED, budget_request_refusal(r, b));
                }
                timer_arm_earlier(a->timer, usec_add(r->told_usec, BUDGET_PARKED_TELL_USEC));
        }
}

/* Returns true if the charge of the node is for this deletion, or may be taken over by it. */
static bool is_for_deletion(const BudgetLedger *l, const KubeNodeBudget *b, const BudgetRequest *r) {
        ChargeClaim claim =
                budget_ask_claim(l, kube_node_budget_charge(b, r->ask.node->object.meta.uid), &r->ask);

        return claim == CHARGE_CLAIM_OWN || claim == CHARGE_CLAIM_REPLACE;
}

/* Starts as many parked requests anew as the budget has room for. Another budget without room parks them again. */
static void unpark(BudgetAccount *a, BudgetDraft *d, const KubeNodeBudget *b) {
        /* A webhook may have charged the node, and the view shows that only now. Such a request needs no
         * room. */
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_PARKED], BudgetRequest, in_account)
                if (!b || !budget_request_matches(b, r) || is_for_deletion(a->ledger, b, r))
                        budget_request_join(r);
        for (size_t left = a->lists[BUDGET_REQUEST_PARKED].size; left > 0; left--) {
                BudgetRequest *r = first_parked(a);

                if (!r || (b && !budget_draft_has_room(d, r->ask.node)))
                        break;
                if (b)
                        budget_draft_take_room(d, r->ask.node);
                if (budget_request_has_room(r))
                        budget_request_join(r);
        }
        if (b && a->lists[BUDGET_REQUEST_PARKED].size > 0)
                tell_parked(a, b);
}

static void unsend(BudgetAccount *a) {
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_SENT], BudgetRequest, in_account)
                budget_request_put(r, a, BUDGET_REQUEST_WAITS);
        hashmap_clear(a->dropped);
}

/* Pauses the account's writes for the backoff, or for least_usec if that is longer. least_usec: the pause
 * that the API server asks for; 0: none. */
static void hold(BudgetAccount *a, usec_t least_usec) {
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

static void account_warn_failing(BudgetAccount *a, const ApiError *e, const char *then) {
        BudgetWarned warned = patch_is_refused(e) ? BUDGET_WARNED_REFUSED : BUDGET_WARNED_FAILING;

        if (warned <= a->warned)
                return;
        a->warned = warned;
        log_warning(a->ledger->env->log,
                    "Failed to write the status of NodeDisruptionBudget %s, %s: %s (HTTP %u)", a->name, then,
                    strempty(e->message), e->http);
}

/* A refused patch with several charges is not sent again: each charge is tried once by itself. The answer
 * to a request whose charge is refused by itself has the API server's message. */
static void account_on_refused(BudgetAccount *a, const ApiError *e) {
        bool is_one = a->lists[BUDGET_REQUEST_SENT].size == 1;

        account_warn_failing(
                a, e, is_one ? "leaving out the charge that it refuses" : "trying each charge by itself");
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_SENT], BudgetRequest, in_account) {
                if (!is_one) {
                        r->is_alone = true;
                        continue;
                }
                _cleanup_free_ char *text = strf(
                        "The API server refuses the charge of node %s in NodeDisruptionBudget %s (HTTP %u): %s",
                        r->ask.node->object.meta.name, a->name, e->http, strempty(e->message));

                budget_request_leave(r);
                budget_request_answer(r, BUDGET_UNKNOWN,
                                      text ? str_sanitize(text, BUDGET_TEXT_BYTES_MAX) : NULL);
                budget_request_give_back(r);
        }
        unsend(a);
}

static void account_on_charged(BudgetAccount *a) {
        hashmap_clear(a->dropped);
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_SENT], BudgetRequest, in_account) {
                r->has_charged = true;
                r->is_alone = false;
                budget_request_join(r);
        }
}

static void on_answer(const KubeReply *reply, void *userdata) {
        BudgetAccount *a = userdata;
        const ApiError *e = reply->error;
        bool read = a->reads;

        a->call = kube_call_free(a->call);
        a->reads = false;
        if (!e) {
                account_take(a, reply->object, read);
                if (!read) {
                        backoff_reset(&a->backoff);
                        a->warned = BUDGET_WARNED_NOTHING;
                        account_on_charged(a);
                }
        } else if (!read && patch_is_refused(e) && a->lists[BUDGET_REQUEST_SENT].size > 0)
                account_on_refused(a, e);
        else {
                unsend(a);
                /* Another replica was faster, and is again: each waits a while. */
                if (e->http != 409 || read || a->backoff.failures++ > 0)
                        hold(a, e->retry_after_usec);
                a->reads = e->http == 409 || e->http == 0;
                if (e->http == 404) /* the view will say so, too */
                        budget_account_forget_answered(a);
                else if (!read && e->http != 409)
                        account_warn_failing(a, e, "retrying");
        }
        pump(a);
}

static void call_failed(BudgetAccount *a, int r) {
        log_warning_errno(a->ledger->env->log, r, "Failed to ask for NodeDisruptionBudget %s, retrying: %m",
                          a->name);
        unsend(a);
        hold(a, 0);
}

static void read_anew(BudgetAccount *a) {
        KubeTarget t = { .kind = &kube_node_budget_kind, .name = a->name };
        int r = kube_get(a->ledger->client, &t, NULL, on_answer, a, &a->call);

        if (r < 0)
                call_failed(a, r);
}

static bool is_for_leader(const BudgetAccount *a) {
        LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_SENT], BudgetRequest, in_account)
                if (!r->ask.as_leader)
                        return false;
        return true;
}

static void send(BudgetAccount *a, const BudgetDraft *d, const KubeNodeBudget *b) {
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

/* Returns true if the coordinator leads, and counts other figures than the status has. */
static bool figures_differ(const BudgetAccount *a, const KubeNodeBudget *b) {
        BudgetFigures f;

        if (!a->ledger->leads)
                return false;
        f = budget_count(a->ledger->view, b);
        return !budget_status_says(b, &f);
}

/* Returns true if figures may be written now. Else the timer of the account is armed for the time when they may. */
static bool figures_are_due(BudgetAccount *a) {
        usec_t due = usec_add(a->figures_usec, FIGURES_USEC);

        if (a->figures_usec == 0 || loop_now(a->ledger->env->loop) >= due)
                return true;
        timer_arm_earlier(a->timer, due);
        return false;
}

static void pump(BudgetAccount *a) {
        const KubeNodeBudget *b = budget_ledger_newest(a->ledger, a->name);
        BudgetDraft d;
        bool differ;

        if (a->call)
                return;
        if (!b) {
                LIST_FOREACH (r, &a->lists[BUDGET_REQUEST_WAITS], BudgetRequest, in_account)
                        budget_request_join(r);
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
        differ = figures_differ(a, b);
        if (d.changed || (differ && figures_are_due(a)))
                send(a, &d, b);
        else if (!differ && a->warned == BUDGET_WARNED_FAILING)
                /* A patch without an answer was done, or nobody needs it any more. */
                a->warned = BUDGET_WARNED_NOTHING;
        budget_draft_done(&d);
}

/* -- wake-ups ------------------------------------------------------------------------------------------- */

static const char *const place_names[_BUDGET_REQUEST_PLACE_MAX] = {
        [BUDGET_REQUEST_WAITS] = "waits", [BUDGET_REQUEST_SENT] = "sent", [BUDGET_REQUEST_PARKED] = "parked",
};

/* Returns true if the budget has a charge that may end without an event. The deletion of the Node ends a
 * DELETE charge once it has begun; each other charge ends by time, or with its holder. */
static bool charges_have_next_wakeup(const BudgetLedger *l, const KubeNodeBudget *b) {
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

void budget_account_next_wakeup(BudgetAccount *a, Wakeups *w) {
        const KubeNodeBudget *b = budget_ledger_newest(a->ledger, a->name);

        for (BudgetRequestPlace place = 0; place < _BUDGET_REQUEST_PLACE_MAX; place++)
                LIST_FOREACH (r, &a->lists[place], BudgetRequest, in_account) {
                        wakeups_unfinished(w, "charge of node", r->ask.node->object.meta.name,
                                           place_names[place], BUDGET_LEDGER_WAKEUP_USEC);
                        wakeups_timer(w, place == BUDGET_REQUEST_SENT ? NULL : a->timer);
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
        if (charges_have_next_wakeup(a->ledger, b)) {
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
