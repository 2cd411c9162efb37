/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-ledger.h"

#include "backoff.h"
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
 *        |                                                   |  ^                  |
 *        +---charged in each---> admitted                    |  +--409, no answer--+
 *                                                            +---no room---> refused (what others charged for it goes);
 *                                                                            or, where it has begun, PARKED --room--> joins
 *
 * and an account, one of each budget, sends one patch at a time: what waits, what is released, and, where we lead, the
 * figures. After a conflict it reads the budget first. */

#define ASK_USEC (10 * USEC_PER_SEC)
/* Figures alone are written at most so often. */
#define FIGURES_USEC (250 * USEC_PER_MSEC)
/* What is parked is told anew at most so often why. */
#define TELL_USEC USEC_PER_MINUTE
#define RETRY_BASE_USEC (100 * USEC_PER_MSEC)
#define RETRY_CAP_USEC (5 * USEC_PER_SEC)
/* Room of a budget that admits nobody, not even a node that is counted already. */
#define NO_ROOM INT64_C(-1)

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
        HttpGuard guard; /* while we lead */
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
        char **released;          /* uids */
        char **releasing;         /* in the patch under way */
        Hashmap *seen;            /* uid -> Seen, while we lead */
        Timer *timer;
        Backoff backoff;
        bool failing;             /* that its status cannot be written is told */
        usec_t held_until_usec;   /* loop_now(): after a failure */
        usec_t figures_usec;      /* loop_now(): when figures were written last */
} Account;

/* A charge that this leader sees stand. */
typedef struct Seen {
        usec_t since_usec; /* loop_now() */
} Seen;

struct BudgetRequest {
        BudgetLedger *ledger;
        BudgetAsk ask; /* its node is ours */
        char **budgets; /* that select the node, by name */
        size_t at;      /* the first that may not have charged it */
        Account *account; /* in that place of which it is; or NULL */
        RequestPlace place;
        usec_t told_usec;  /* loop_now(): when it was told what it is parked for */
        bool has_charged; /* a patch of ours has, for it */
        ListNode in_account;
        Timer *timer; /* its time-out; or its answer, as soon as the loop comes to it */
        bool has_answer;
        BudgetAnswer answer;
        char *message;
        budget_answered_t answered;
        void *userdata;
};

/* What the next patch of an account is to say. */
typedef struct Draft {
        KubeNodeBudget budget; /* a shallow copy, with the charges that are to stand */
        size_t n_new;
        bool by_any;           /* one of the new is not the leader's alone to ask for */
        bool changed;          /* its charges are others */
        int64_t room;          /* disruptions that may be charged; negative: more nodes are unavailable than the budget allows */
        int64_t held_back;     /* drained nodes that may be charged beside them (BudgetFigures) */
} Draft;

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
        strv_free(a->released);
        strv_free(a->releasing);
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

/* What budgets before that one charged for it goes again; a node that was charged when it was asked for keeps that. */
static void request_refuse(BudgetRequest *r, const KubeNodeBudget *b) {
        BudgetLedger *l = r->ledger;
        Account *a = r->ask.begun ? account_of(l, b->object.meta.name) : NULL;

        request_leave(r);
        if (r->ask.begun && !a) /* it cannot be parked: it has to be asked for anew */
                request_answer(r, BUDGET_UNKNOWN, NULL);
        else
                request_answer(r, BUDGET_REFUSED, refusal(r, b));
        if (r->has_charged)
                budget_ledger_release(l, r->ask.node->object.meta.uid);
        r->has_charged = false;
        if (!a)
                return;
        r->told_usec = loop_now(l->env->loop);
        request_put(r, a, REQUEST_PARKED);
        timer_arm_earlier(a->timer, usec_add(r->told_usec, TELL_USEC));
}

static void on_request_timer(Timer *t, void *userdata) {
        BudgetRequest *r = userdata;

        if (!r->has_answer) {
                request_leave(r);
                r->answer = BUDGET_UNKNOWN;
        }
        r->has_answer = false;
        r->ledger->answers[r->answer]++;
        r->answered(r->answer,
                    r->answer == BUDGET_ADMITTED   ? NULL
                    : r->answer == BUDGET_REFUSED ? (r->message ? r->message : "A NodeDisruptionBudget allows no disruption now.")
                                                  : "The API server did not take the charge in its NodeDisruptionBudget's status in time.",
                    r->userdata);
}

BudgetRequest *budget_request_free(BudgetRequest *r) {
        if (!r)
                return NULL;
        request_leave(r);
        timer_free(r->timer);
        strv_free(r->budgets);
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

/* -- is there room? ------------------------------------------------------------------------------------- */

static void draft_init(const BudgetLedger *l, const KubeNodeBudget *b, Draft *ret) {
        bool is_current = b->observed_generation == b->object.meta.generation;

        BudgetFigures f = budget_count(l->view, b);

        *ret = (Draft){ .budget = *b, .room = f.available - f.desired, .held_back = f.held_back };
        /* What the leader reckoned and what we see: the smaller, since either may lie behind. */
        if (!l->leads)
                ret->room = is_current ? MIN(ret->room, b->disruptions_allowed) : NO_ROOM;
        if (b->n_charges >= BUDGET_CHARGES_MAX)
                ret->room = NO_ROOM;
}

/* Returns true if the node of r is counted as unavailable already, for example because its agent drains it for a reboot. */
static bool is_counted(const BudgetLedger *l, const BudgetRequest *r) {
        const KubeNode *n = cluster_view_node(l->view, r->ask.node->object.meta.name);

        return n && streq_ptr(n->object.meta.uid, r->ask.node->object.meta.uid) && !budget_node_is_available(n);
}

static bool draft_has_room(const BudgetLedger *l, const Draft *d, const BudgetRequest *r) {
        return d->room + (is_counted(l, r) ? d->held_back : 0) > 0;
}

/* Admits the node of r. A drained node is counted as unavailable already, so it takes no room; from now on it holds other drained nodes. */
static void draft_take_room(const BudgetLedger *l, Draft *d, const BudgetRequest *r) {
        if (is_counted(l, r))
                d->held_back--;
        else
                d->room--;
}

/* Before anything is charged: has each of them room? */
static bool all_have_room(BudgetRequest *r) {
        STRV_FOREACH(name, r->budgets) {
                const KubeNodeBudget *b = newest(r->ledger, *name);
                Draft d;

                if (!b || !matches(b, r) || kube_node_budget_charge(b, r->ask.node->object.meta.uid))
                        continue;
                draft_init(r->ledger, b, &d);
                if (!draft_has_room(r->ledger, &d, r)) {
                        request_refuse(r, b);
                        return false;
                }
        }
        return true;
}

static bool is_charged(const BudgetRequest *r, const KubeNodeBudget *b) {
        return !b || !matches(b, r) || kube_node_budget_charge(b, r->ask.node->object.meta.uid);
}

static void request_join(BudgetRequest *r) {
        Account *a;

        request_leave(r);
        while (r->budgets && r->budgets[r->at] && is_charged(r, newest(r->ledger, r->budgets[r->at])))
                r->at++;
        if (!r->budgets || !r->budgets[r->at]) {
                request_answer(r, BUDGET_ADMITTED, NULL);
                return;
        }
        a = account_of(r->ledger, r->budgets[r->at]);
        if (!a) {
                request_answer(r, BUDGET_UNKNOWN, NULL);
                return;
        }
        request_put(r, a, REQUEST_WAITS);
        timer_arm_earlier(a->timer, loop_now(r->ledger->env->loop));
}

int budget_ledger_ask(BudgetLedger *l, const BudgetAsk *ask, budget_answered_t answered, void *userdata, BudgetRequest **ret) {
        _cleanup_(budget_request_freep) BudgetRequest *r = NULL;
        int k;

        assert(l && ask && ask->node && ask->node->object.meta.uid && ask->holder && answered && ret);
        r = new0(BudgetRequest, 1);
        if (!r)
                return -ENOMEM;
        l->n_requests++;
        r->ledger = l;
        r->ask = *ask;
        r->answered = answered;
        r->userdata = userdata;
        kube_object_ref((KubeObject *) ask->node);
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

static bool is_deleting(const BudgetLedger *l, const NodeCharge *c) {
        const KubeNode *n = c->name ? cluster_view_node(l->view, c->name) : NULL;

        return n && streq_ptr(n->object.meta.uid, c->uid) && n->object.meta.deletion_usec > 0;
}

/* Is there a DELETE still to come on this charge, or one that has come? */
static bool charge_is_needed(const BudgetLedger *l, const NodeCharge *c, usec_t seen_for_usec) {
        const KubeNode *n = c->name ? cluster_view_node(l->view, c->name) : NULL;

        if (!n || !streq_ptr(n->object.meta.uid, c->uid))
                return seen_for_usec < BUDGET_CHARGE_USEC;
        return n->object.meta.deletion_usec > 0 ||
               seen_for_usec < MAX(usec_sub(c->until_usec, c->time_usec), BUDGET_CHARGE_USEC);
}

static bool charge_has_ended(Account *a, const NodeCharge *c) {
        usec_t now = loop_now(a->ledger->env->loop), until;
        const char *uid = strempty(c->uid);
        Seen *s;

        if (strv_contains(a->released, uid) && !is_deleting(a->ledger, c))
                return true;
        if (!a->ledger->leads)
                return false;
        s = hashmap_get(a->seen, uid);
        if (!s) {
                s = new0(Seen, 1);
                if (!s)
                        return false;
                s->since_usec = now;
                if (hashmap_put(a->seen, uid, s) < 0) {
                        free(s);
                        return false;
                }
        }
        if (!charge_is_needed(a->ledger, c, usec_sub(now, s->since_usec)))
                return true;
        until = usec_add(s->since_usec, MAX(usec_sub(c->until_usec, c->time_usec), BUDGET_CHARGE_USEC));
        timer_arm_earlier(a->timer, MAX(until, now + USEC_PER_MINUTE));
        return false;
}

static void forget_seen(Account *a, const KubeNodeBudget *b) {
        _cleanup_strv_free_ char **gone = NULL;
        const char *uid;
        void *s;

        for (HashmapIterator it = {}; hashmap_iterate(a->seen, &it, &uid, &s);)
                if (!kube_node_budget_charge(b, uid))
                        (void) strv_extend(&gone, uid);
        STRV_FOREACH(g, gone)
                free(hashmap_remove(a->seen, *g));
}

/* -- one patch ------------------------------------------------------------------------------------------ */

/* Its charges: those of the budget that still stand, and room for what waits. */
static int draft_charges(Account *a, Draft *d, const KubeNodeBudget *b) {
        NodeCharge *kept = new0(NodeCharge, b->n_charges + a->lists[REQUEST_WAITS].size + 1);

        if (!kept)
                return -ENOMEM;
        d->budget.charges = kept;
        d->budget.n_charges = 0;
        for (size_t i = 0; i < b->n_charges; i++)
                if (!charge_has_ended(a, b->charges + i))
                        kept[d->budget.n_charges++] = b->charges[i];
        d->changed = d->budget.n_charges < b->n_charges;
        return 0;
}

static void draft_add(const BudgetLedger *l, Draft *d, const BudgetRequest *r, usec_t wall_now_usec) {
        usec_t stands = r->ask.for_usec > 0 ? r->ask.for_usec : BUDGET_CHARGE_USEC;

        d->budget.charges[d->budget.n_charges++] =
                (NodeCharge) { .name = r->ask.node->object.meta.name,
                               .uid = r->ask.node->object.meta.uid,
                               .kind = r->ask.kind,
                               .holder = (char *) r->ask.holder,
                               .time_usec = wall_now_usec,
                               .until_usec = usec_add(wall_now_usec, stands) };
        d->n_new++;
        d->by_any = d->by_any || !r->ask.as_leader;
        d->changed = true;
        draft_take_room(l, d, r);
}

static void serve(Account *a, Draft *d, const KubeNodeBudget *b) {
        usec_t wall = loop_wall(a->ledger->env->loop);

        LIST_FOREACH (r, &a->lists[REQUEST_WAITS], BudgetRequest, in_account) {
                if (is_charged(r, b))
                        request_join(r);
                else if (kube_node_budget_charge(&d->budget, r->ask.node->object.meta.uid))
                        continue; /* in this very patch, for another who asks */
                else if (!draft_has_room(a->ledger, d, r))
                        request_refuse(r, &d->budget);
                else {
                        draft_add(a->ledger, d, r, wall);
                        request_put(r, a, REQUEST_SENT);
                }
        }
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

/* As many as there is room for begin anew; elsewhere there may be none, and they are parked there. */
static void unpark(Account *a, Draft *d, const KubeNodeBudget *b) {
        /* A webhook had charged it, and that is seen only now: it needs no room. */
        LIST_FOREACH (r, &a->lists[REQUEST_PARKED], BudgetRequest, in_account)
                if (is_charged(r, b)) {
                        r->at = 0;
                        request_join(r);
                }
        for (size_t left = a->lists[REQUEST_PARKED].size; left > 0; left--) {
                BudgetRequest *r = first_parked(a);

                if (!r || (b && !draft_has_room(a->ledger, d, r)))
                        break;
                r->at = 0;
                if (b)
                        draft_take_room(a->ledger, d, r);
                if (all_have_room(r))
                        request_join(r);
        }
        if (b && a->lists[REQUEST_PARKED].size > 0)
                tell_parked(a, b);
}

static void unsend(Account *a) {
        LIST_FOREACH (r, &a->lists[REQUEST_SENT], BudgetRequest, in_account)
                request_put(r, a, REQUEST_WAITS);
        STRV_FOREACH(uid, a->releasing)
                (void) strv_extend(&a->released, *uid);
        a->releasing = strv_free(a->releasing);
}

static void hold(Account *a) {
        a->held_until_usec = usec_add(loop_now(a->ledger->env->loop), backoff_next(&a->backoff, a->ledger->env->random));
        timer_arm(a->timer, a->held_until_usec);
}

static void on_answer(const KubeReply *reply, void *userdata) {
        Account *a = userdata;
        bool read = a->reads;

        a->call = kube_call_free(a->call);
        a->reads = false;
        if (!reply->error) {
                if (!read) {
                        backoff_reset(&a->backoff);
                        a->failing = false;
                }
                account_take(a, reply->object, read);
                if (!read) {
                        a->releasing = strv_free(a->releasing);
                        LIST_FOREACH (r, &a->lists[REQUEST_SENT], BudgetRequest, in_account) {
                                r->has_charged = true;
                                request_join(r);
                        }
                }
                pump(a);
                return;
        }
        unsend(a);
        /* Another replica was faster, and is again: each waits a while. */
        if (reply->error->http != 409 || read || a->backoff.failures++ > 0)
                hold(a);
        a->reads = reply->error->http == 409 || reply->error->http == 0;
        if (reply->error->http == 404) /* the view will say so, too */
                forget_answered(a);
        else if (!read && reply->error->http != 409 && !a->failing)
                log_warning(a->ledger->env->log,
                            "Failed to write the status of NodeDisruptionBudget %s, retrying: %s (HTTP %u)", a->name,
                            strempty(reply->error->message), reply->error->http);
        a->failing = a->failing || (!read && reply->error->http != 409);
        pump(a);
}

static void call_failed(Account *a, int r) {
        log_warning_errno(a->ledger->env->log, r, "Failed to ask for NodeDisruptionBudget %s, retrying: %m", a->name);
        unsend(a);
        hold(a);
}

static void read_anew(Account *a) {
        KubeTarget t = { .kind = &kube_node_budget_kind, .name = a->name };
        int r = kube_get(a->ledger->client, &t, NULL, on_answer, a, &a->call);

        if (r < 0)
                call_failed(a, r);
}

static void send(Account *a, const Draft *d, const KubeNodeBudget *b) {
        BudgetLedger *l = a->ledger;
        BudgetFigures f = budget_count(l->view, &d->budget);
        int64_t released = (int64_t) b->n_charges - (int64_t) (d->budget.n_charges - d->n_new);
        int64_t allowed = l->leads ? f.allowed : MAX(b->disruptions_allowed - (int64_t) d->n_new, INT64_C(0));
        KubeCallOptions o = { .guard = d->by_any ? (HttpGuard){ 0 } : l->guard };
        KubeTarget t = { .kind = &kube_node_budget_kind, .name = a->name, .subresource = "status" };
        _cleanup_free_ char *body = NULL;
        int r;

        if (!l->leads && released > 0) /* only what is surely free again */
                allowed = MIN(allowed + released, f.allowed);
        body = budget_status_patch(b, d->budget.charges, d->budget.n_charges, l->leads ? &f : NULL, allowed,
                                   loop_wall(l->env->loop));
        a->releasing = TAKE_PTR(a->released);
        r = body ? kube_patch(l->client, &t, KUBE_PATCH_MERGE, body, &o, on_answer, a, &a->call) : -ENOMEM;
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
        Draft d;

        if (a->call)
                return;
        if (!b) {
                LIST_FOREACH (r, &a->lists[REQUEST_WAITS], BudgetRequest, in_account)
                        request_join(r);
                unpark(a, NULL, NULL);
                a->released = strv_free(a->released);
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
        forget_seen(a, b);
        draft_init(a->ledger, b, &d);
        if (draft_charges(a, &d, b) < 0) {
                hold(a);
                return;
        }
        serve(a, &d, b);
        unpark(a, &d, &d.budget);
        if (d.changed || figures_are_due(a, b))
                send(a, &d, b);
        else
                a->released = strv_free(a->released); /* it holds none of them */
        free(d.budget.charges);
}

/* -- from outside --------------------------------------------------------------------------------------- */

void budget_ledger_release(BudgetLedger *l, const char *node_uid) {
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);) {
                const KubeNodeBudget *now = newest(l, b->object.meta.name);
                Account *a = now && kube_node_budget_charge(now, node_uid) ? account_of(l, b->object.meta.name) : NULL;

                /* What is lost here stands for its time. */
                if (a && !strv_contains(a->released, node_uid) && strv_extend(&a->released, node_uid) >= 0)
                        timer_arm_earlier(a->timer, loop_now(l->env->loop));
        }
}

bool budget_ledger_concerns(const BudgetLedger *l, const KubeNode *n) {
        const KubeNodeBudget *b;

        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);) {
                const KubeNodeBudget *now = newest(l, b->object.meta.name);

                if (now && kube_node_budget_matches(now, n) && !kube_node_budget_charge(now, n->object.meta.uid))
                        return true;
        }
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

void budget_ledger_lead(BudgetLedger *l, HttpGuard guard) {
        const KubeNodeBudget *b;

        l->leads = true;
        l->guard = guard;
        for (HashmapIterator it = {}; cluster_view_iterate_budgets(l->view, &it, &b);)
                account_wake(l, b->object.meta.name);
}

void budget_ledger_follow(BudgetLedger *l) {
        Account *a;

        l->leads = false;
        l->guard = (HttpGuard){ 0 };
        HASHMAP_FOREACH (a, l->accounts) {
                a->released = strv_free(a->released); /* the next leader sees when they have ended */
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
