/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-text.h"

#include "string-util.h"

static void text_figures(StrBuf *s, const KubeNodeBudget *b, const BudgetFigures *f, const char *amount) {
        if (budget_amount_is_readable(b))
                strbuf_addf(s, "it has %s, so %lld node%s must stay available (now: %lld of %lld).", amount,
                            (long long) f->desired, f->desired == 1 ? "" : "s", (long long) f->available,
                            (long long) f->expected);
        else
                strbuf_addf(s, "%s.", amount);
}

/* As many of them as max_bytes have room for. */
static void text_users(StrBuf *s, const BudgetUsers *users, size_t max_bytes) {
        static const char end[] = " and 18446744073709551615 more.";
        size_t begin = s->size, n;

        if (users->n_all == 0)
                return;
        strbuf_add(s, users->n_all == 1 ? " Unavailable is " : " Unavailable are ");
        for (n = 0; n < users->n; n++) {
                const BudgetUser *u = users->list + n;
                size_t before = s->size;
                char since[RFC3339_MAX];

                strbuf_addf(s, "%s%s (%s", n > 0 ? ", " : "", u->node, u->why);
                if (u->since_usec > 0) {
                        rfc3339_format(u->since_usec, since);
                        strbuf_addf(s, " since %s", since);
                }
                strbuf_add_char(s, ')');
                if (s->size - begin + strlen(end) > max_bytes) {
                        strbuf_truncate(s, before);
                        break;
                }
        }
        if (n == 0)
                strbuf_addf(s, "%zu of them", users->n_all);
        else if (users->n_all > n)
                strbuf_addf(s, " and %zu more", users->n_all - n);
        strbuf_add_char(s, '.');
}

/* When the unavailable nodes are gone, the budget is reckoned anew with those that are left; for
 * minAvailable that is no help, or none before many are gone. */
static void text_advice_in_use(StrBuf *s, const KubeNodeBudget *b, const BudgetFigures *f,
                               const BudgetUsers *users, bool begun) {
        const BudgetFigures left = budget_figures(b, f->available, f->available);
        const bool gone_helps = left.allowed > 0, one = users->n_all == 1;
        /* After the next of them. */
        const BudgetFigures next = gone_helps ? budget_figures(b, f->expected - 1, f->available)
                                              : budget_figures(b, f->expected, f->available + 1);

        if (!gone_helps)
                strbuf_addf(s, " When %s gone, %lld node%s left, and %lld must stay available%s.",
                            one ? "that node is" : "they are", (long long) left.expected,
                            left.expected == 1 ? " is" : "s are", (long long) left.desired,
                            b->min_available.unit == NODE_AMOUNT_PERCENT ? ", rounded up" : "");
        strbuf_addf(s, " %s when %s %s, or %s.", begun ? "The removal goes on" : "Try again",
                    one                ? "that node is"
                    : next.allowed > 0 ? "one of them is"
                                       : "enough of them are",
                    gone_helps                ? "gone or available again"
                    : one || next.allowed > 0 ? "available again, or has a successor"
                                              : "available again, or have successors",
                    begun ? "the budget is changed" : "change the budget");
}

static void text_advice(StrBuf *s, const KubeNodeBudget *b, const BudgetFigures *f, const BudgetUsers *users,
                        bool begun) {
        if (f->allowed > 0)
                strbuf_addf(
                        s,
                        " By this coordinator's count there is room, but not yet by the budget's status%s.",
                        begun ? "" : ": try again in a moment");
        else if (!budget_amount_is_readable(b))
                strbuf_addf(s, " Correct the budget%s.", begun ? "" : ", and try again");
        else if (budget_stops_as_nodes_go(b, f->expected))
                strbuf_addf(
                        s,
                        " %lld%% of the %lld nodes that there are is all of them, rounded up: add a node, or set a "
                        "number, or maxUnavailable, which does not come to a standstill as nodes go.",
                        (long long) b->min_available.value, (long long) f->expected);
        else if (budget_never_allows(b, f->expected))
                strbuf_addf(s, " So it never allows one: change the budget%s.",
                            b->min_available.unit == NODE_AMOUNT_NODES ? ", or add nodes" : "");
        else
                text_advice_in_use(s, b, f, users, begun);
}

char *budget_text_refusal(const KubeNodeBudget *b, const BudgetFigures *f, const BudgetUsers *users,
                          const char *node, bool begun) {
        _cleanup_strbuf_ StrBuf s = { 0 }, advice = { 0 };
        _cleanup_free_ char *amount = NULL, *text = NULL;
        size_t size;

        assert(b && f && users && node && users->n <= BUDGET_USERS_MAX && users->n <= users->n_all);
        amount = budget_amount_format(b);
        if (!amount)
                return NULL;
        strbuf_addf(&s, "NodeDisruptionBudget %s allows no disruption of node %s now: ", b->object.meta.name,
                    node);
        text_figures(&s, b, f, amount);
        text_advice(&advice, b, f, users, begun);
        size = s.size + advice.size;
        text_users(&s, users, BUDGET_TEXT_BYTES_MAX - MIN(size, BUDGET_TEXT_BYTES_MAX));
        strbuf_add(&s, strbuf_str(&advice));
        if (advice.failed)
                return NULL;
        text = strbuf_steal(&s);
        return text ? str_sanitize(text, BUDGET_TEXT_BYTES_MAX) : NULL;
}

static void text_holder(StrBuf *s, const NodeCharge *c) {
        char since[RFC3339_MAX];

        rfc3339_format(c->time_usec, since);
        switch (c->kind) {
        case NODE_CHARGE_DELETE:
                if (c->holder)
                        strbuf_addf(s, "its deletion by %s was admitted at %s", c->holder, since);
                else
                        strbuf_addf(s, "an earlier version of vesper has admitted its disruption at %s",
                                    since);
                break;
        case NODE_CHARGE_REBOOT:
                strbuf_addf(s, "its reboot was admitted at %s for request %s", since, strempty(c->holder));
                break;
        case NODE_CHARGE_OPERATION:
                strbuf_addf(s, "it was admitted for NodeDisruption %s at %s", strempty(c->holder), since);
                break;
        case NODE_CHARGE_SUCCESSOR:
                strbuf_addf(s, "it was admitted for NodeClaim %s, which replaces another node, at %s",
                            strempty(c->holder), since);
                break;
        case _NODE_CHARGE_KIND_MAX:
                break;
        }
}

char *budget_text_held(const KubeNodeBudget *b, const NodeCharge *c, const char *node) {
        _cleanup_strbuf_ StrBuf s = { 0 };
        _cleanup_free_ char *text = NULL;

        assert(b && c && node);
        strbuf_addf(&s,
                    "NodeDisruptionBudget %s allows no second disruption of node %s: ", b->object.meta.name,
                    node);
        text_holder(&s, c);
        strbuf_add(&s, c->kind == NODE_CHARGE_DELETE
                               ? ". If the node is still there two minutes after that time, try again."
                               : ". Try again when that disruption has ended.");
        text = strbuf_steal(&s);
        return text ? str_sanitize(text, BUDGET_TEXT_BYTES_MAX) : NULL;
}
