/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The inside of the ledger, for budget-ledger.c, budget-request.c and budget-account.c alone.
 *
 *      BudgetLedger --one of each budget--> BudgetAccount --lists by place--> BudgetRequest
 *
 * An account reads the status of its budget and sends the patches, one call at a time.
 */

#include "backoff.h"
#include "budget-draft.h"
#include "budget-ledger.h"
#include "env.h"
#include "list.h"

/* Interval at which a parked request is answered again with the reason why it waits. */
#define BUDGET_PARKED_TELL_USEC USEC_PER_MINUTE

struct BudgetLedger {
        KubeClient *client;
        Env *env;
        const ClusterView *view;
        Hashmap *accounts; /* name -> BudgetAccount */
        bool leads;
        HttpGuard guard;       /* set while the coordinator leads */
        BudgetHolders holders; /* set while the coordinator leads */
        uint64_t n_patches, answers[_BUDGET_ANSWER_MAX];
        size_t n_requests;
};

/* List of its account in which a request is. */
typedef enum BudgetRequestPlace {
        BUDGET_REQUEST_WAITS,
        BUDGET_REQUEST_SENT, /* its charge is in the patch under way */
        BUDGET_REQUEST_PARKED,
        _BUDGET_REQUEST_PLACE_MAX,
} BudgetRequestPlace;

/* The gravest warning that the log has about writes of this status since the last one that succeeded. */
typedef enum BudgetWarned {
        BUDGET_WARNED_NOTHING,
        BUDGET_WARNED_FAILING, /* writes fail, and are tried again; until nothing is left to write, too */
        BUDGET_WARNED_REFUSED, /* the API server refuses writes */
} BudgetWarned;

typedef struct BudgetAccount {
        BudgetLedger *ledger;
        char *name;
        KubeNodeBudget *answered; /* newer than the view's; or NULL */
        bool was_read;            /* it was read, or a patch of what was read: newer than the view's, whatever
                                     its version says after a restore of etcd */
        KubeCall *call;
        bool reads;               /* the call does; or the next one is to */
        List lists[_BUDGET_REQUEST_PLACE_MAX]; /* of BudgetRequest.in_account */
        Hashmap *released; /* keys of the charges (charge_key()) whose holders are done with them */
        Hashmap *dropped;  /* keys of the charges that the patch under way takes off */
        Hashmap *seen;     /* memory of charge_watch() while the coordinator leads */
        Timer *timer;
        Backoff backoff;
        BudgetWarned warned;
        usec_t held_until_usec;   /* loop_now(): after a failure */
        usec_t figures_usec;      /* loop_now(): when figures were written last */
} BudgetAccount;

struct BudgetRequest {
        BudgetLedger *ledger;
        BudgetAsk ask; /* with a reference to its node */
        char *holder;
        char **budgets;         /* names of the budgets that select the node, sorted */
        BudgetAccount *account; /* NULL: in no list */
        BudgetRequestPlace place;
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

/* -- budget-ledger.c -- */

/* Returns the newest known state of the budget. NULL: it does not exist. Borrowed. */
const KubeNodeBudget *budget_ledger_newest(const BudgetLedger *l, const char *name);

/* -- budget-account.c -- */

/* Returns the account of the budget, which it creates if there is none. NULL on ENOMEM. */
BudgetAccount *budget_account_of(BudgetLedger *l, const char *name);
void *budget_account_free(void *p);
/* Drops the state that the API server answered: the view has a newer one, or the budget is gone. */
void budget_account_forget_answered(BudgetAccount *a);
/* Returns true if the charge, which the status still has, is about to be taken off; also on ENOMEM, because
 * charging again is safe. a: NULL: no account, so nothing ends. */
bool budget_account_ends_charge(const BudgetAccount *a, const NodeCharge *c);
void budget_account_next_wakeup(BudgetAccount *a, Wakeups *w);

/* -- budget-request.c -- */

/* Takes the request out of its account's list. */
void budget_request_leave(BudgetRequest *r);
void budget_request_put(BudgetRequest *r, BudgetAccount *a, BudgetRequestPlace place);
/* Puts the request into the first budget that has not charged it, or admits it. Every budget is checked
 * again, because an earlier one may have taken its charge off meanwhile. */
void budget_request_join(BudgetRequest *r);
/* Calls answered() from the loop. message: taken; NULL: none. */
void budget_request_answer(BudgetRequest *r, BudgetAnswer answer, char *message);
/* Answers the request, parks it if it has begun, and gives its charges back. message: taken; NULL: the
 * budget has no room. */
void budget_request_refuse(BudgetRequest *r, const KubeNodeBudget *b, char *message);
/* Refuses the request because c, a charge of another holder, is in its way. */
void budget_request_refuse_held(BudgetRequest *r, const KubeNodeBudget *b, const NodeCharge *c);
/* Gives back what budgets before this one have charged for the request. A node that was charged when the
 * request came keeps that. */
void budget_request_give_back(BudgetRequest *r);
/* Returns the message for a request for which the budget has no room. Free it; NULL on ENOMEM. */
char *budget_request_refusal(const BudgetRequest *r, const KubeNodeBudget *b);
bool budget_request_matches(const KubeNodeBudget *b, const BudgetRequest *r);
/* Returns true if each budget has room for the request and no other holder of the node. Else the request is
 * refused. */
bool budget_request_has_room(BudgetRequest *r);
/* Returns the claim of the ask on its node that has the charge c. NULL: no charge. */
ChargeClaim budget_ask_claim(const BudgetLedger *l, const NodeCharge *c, const BudgetAsk *ask);
/* Returns true if nothing is left to charge for the ask in the budget. NULL: there is no such budget. */
bool budget_ask_is_charged(const BudgetLedger *l, const KubeNodeBudget *b, const BudgetAsk *ask);
