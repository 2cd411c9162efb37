/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-gate.h"

#include "log.h"
#include "marks.h"
#include "string-util.h"

#define ASK_AGAIN_USEC USEC_PER_SEC

struct BudgetGate {
        const TerminationContext *context;
        BudgetRequest *request;
        bool passed;
        char *message;
        Timer *again; /* armed: do not ask before it fires, after ENOMEM or a refused charge */
        void (*changed)(void *userdata);
        void *userdata;
};

static void on_again(Timer *t, void *userdata) {
        BudgetGate *g = userdata;

        g->changed(g->userdata);
}

int budget_gate_new(const TerminationContext *context, void (*changed)(void *userdata), void *userdata, BudgetGate **ret) {
        _cleanup_(budget_gate_freep) BudgetGate *g = new0(BudgetGate, 1);
        int r;

        if (!g)
                return -ENOMEM;
        g->context = context;
        g->changed = changed;
        g->userdata = userdata;
        r = timer_new(context->env->loop, "budget-gate", on_again, g, &g->again);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(g);
        return 0;
}

BudgetGate *budget_gate_free(BudgetGate *g) {
        if (!g)
                return NULL;
        budget_request_free(g->request);
        timer_free(g->again);
        free(g->message);
        return mfree(g);
}

static void on_answered(BudgetAnswer a, const char *message, void *userdata) {
        BudgetGate *g = userdata;

        if (a != BUDGET_ADMITTED && free_and_strdup(&g->message, message) < 0)
                g->message = mfree(g->message);
        if (a != BUDGET_REFUSED)
                g->request = budget_request_free(g->request); /* the message goes with it */
        g->passed = a == BUDGET_ADMITTED;
        if (a == BUDGET_UNKNOWN)
                timer_arm_in(g->again, ASK_AGAIN_USEC);
        g->changed(g->userdata);
}

BudgetAsk budget_ask_delete(const KubeNode *n, bool begun) {
        return (BudgetAsk) { .node = n,
                             .kind = NODE_CHARGE_DELETE,
                             .holder = BUDGET_HOLDER_COORDINATOR,
                             .as_leader = true,
                             .begun = begun };
}

bool budget_gate_is_passed(BudgetGate *g, const KubeNode *n) {
        const BudgetAsk ask = budget_ask_delete(n, true);
        int r;

        if (g->passed || g->request || timer_is_armed(g->again))
                return g->passed;
        r = budget_ledger_ask(g->context->ledger, &ask, on_answered, g, &g->request);
        if (r < 0) {
                log_warning_errno(g->context->env->log, r, "Failed to ask the budgets of node %s, retrying: %m",
                                  n->object.meta.name);
                timer_arm_in(g->again, ASK_AGAIN_USEC);
        }
        return false;
}

const char *budget_gate_message(const BudgetGate *g) {
        return g->message;
}

void budget_gate_add_wakeup(const BudgetGate *g, Wakeups *w) {
        wakeups_timer(w, g->again);
        wakeups_await(w, g->request);
}
