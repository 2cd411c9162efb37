/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "blocked-by.h"
#include "budget-math.h"
#include "explain-scene.h"
#include "marks.h"
#include "pause-mark.h"

void explain_leader(Explain *x, bool holds) {
        const ExplainFacts *f = x->f;
        usec_t until = usec_add(f->leader_seen_usec, f->lease_usec);
        bool expired = !isempty(f->leader) && f->leader_seen_usec > 0 && until < f->now_usec;
        ExplainCause *c;

        if (!f->leader || (!isempty(f->leader) && !expired))
                return;
        c = explain_cause_add(x->causes, holds, "NoLeader", kube_lease_kind.kind, f->lease_ns, f->lease_name,
                              expired ? until : 0);
        if (expired)
                explain_cause_say(x->causes, c,
                                  "No coordinator leads: the Lease %s/%s has run out, which %s was the last to renew.",
                                  f->lease_ns, f->lease_name, f->leader);
        else
                explain_cause_say(x->causes, c, "No coordinator leads: nobody holds the Lease %s/%s.",
                                  f->lease_ns, f->lease_name);
        explain_cause_set_command(x->causes, c,
                                  "kubectl get pods -n %s -l app.kubernetes.io/name=vesper-coordinator -o wide",
                                  f->lease_ns);
        explain_cause_advise(x->causes, c,
                             "The coordinator drains and ends nothing before one of its replicas runs and leads; that one goes on where the last one stopped.");
}

/* Reads the pause that o sets; o may be NULL. Free it with pause_mark_done(). */
static PauseMark pause_of(Explain *x, const KubeObject *o) {
        PauseMark m = {};

        if (o && pause_mark_read(&o->meta, &m) < 0)
                x->causes->failed = true;
        return m;
}

/* Adds the cause for a pause that o sets. whom: the subject of its sentence, such as "All removals of
 * nodes". since_usec: when it began, if m does not record that. */
static ExplainCause *add_pause(Explain *x, bool holds, const KubeObject *o, const PauseMark *m,
                               const char *whom, usec_t since_usec) {
        ExplainCause *c = explain_add(x, holds, REMOVAL_PAUSED, o->kind, o->meta.name,
                                      m->since_usec ?: since_usec);
        _cleanup_free_ char *text = pause_mark_text(m);

        if (!text)
                x->causes->failed = true;
        explain_cause_say(x->causes, c, "%s are paused, by the annotation " ANNOTATION_PAUSED " of %s %s%s.", whom,
                          o->kind->kind, o->meta.name, strempty(text));
        return c;
}

void explain_pause(Explain *x, bool holds) {
        const Condition *k = x->pool ? kube_node_pool_condition(x->pool, POOL_PAUSED) : NULL;
        _cleanup_(pause_mark_done) PauseMark all = pause_of(x, x->f->pause_ns);
        _cleanup_(pause_mark_done) PauseMark pool = pause_of(x, x->pool ? &x->pool->object : NULL);
        bool told = x->blocked && streq_ptr(x->blocked->reason, REMOVAL_PAUSED);
        usec_t since = k && k->status == CONDITION_TRUE ? k->last_transition_usec
                       : told                           ? x->blocked->last_transition_usec
                                                        : 0;
        ExplainCause *c;

        if (all.is_paused) {
                c = add_pause(x, holds, x->f->pause_ns, &all, "All removals of nodes", since);
                explain_cause_set_command(x->causes, c, "vesperctl resume");
        }
        if (pool.is_paused) {
                c = add_pause(x, holds, &x->pool->object, &pool, "Removals of its nodes", since);
                explain_cause_set_command(x->causes, c, "vesperctl resume %s", x->pool->object.meta.name);
        }
        if (all.is_paused || pool.is_paused) {
                explain_cause_advise(x->causes, c,
                                     "All removals that it holds begin then, this one among them, one by one and in the order of deletion.");
                return;
        }
        if (!told || !holds)
                return;
        c = explain_add_for_node(x, true, REMOVAL_PAUSED, x->blocked->last_transition_usec);
        explain_cause_say(x->causes, c, "%s.", strempty(x->blocked->message));
        explain_cause_advise(x->causes, c,
                             "One begins in the first minute, and twice as many in each minute after one that went well: this one has its turn by itself.");
}

static void name_charges(Explain *x, ExplainCause *c, const KubeNodeBudget *b) {
        _cleanup_strbuf_ StrBuf names = {};
        size_t n;

        for (n = 0; n < b->n_charges && n < 5; n++)
                strbuf_addf(&names, "%s%s", n > 0 ? ", " : "", b->charges[n].name);
        if (b->n_charges > n)
                strbuf_addf(&names, " and %zu more", b->n_charges - n);
        if (b->n_charges > 0)
                explain_cause_say(x->causes, c, "It has admitted the disruption of %s.", strbuf_str(&names));
}

/* A number can be changed by a command, to where there is room for one more. The status counts this node as unavailable as
 * soon as it is deleted; the removal that waits is not counted against itself (budget-count.h). A percentage is for a person
 * to choose. */
static void fix_budget(Explain *x, ExplainCause *c, const KubeNodeBudget *b) {
        const char *name = b->object.meta.name;
        int64_t counted = x->node->object.meta.deletion_usec > 0 && kube_node_is_ready(x->node);
        int64_t available = MIN(b->current_available + counted, b->expected_nodes);
        int64_t unavailable = b->expected_nodes - available;
        bool max = b->max_unavailable.unit == NODE_AMOUNT_NODES;
        bool min = b->min_available.unit == NODE_AMOUNT_NODES && b->min_available.value > 0;

        if (!max && !min)
                explain_cause_set_command(x->causes, c, "kubectl edit nodedisruptionbudgets.vesper.sh %s", name);
        else
                explain_cause_set_command(x->causes, c,
                                          "kubectl patch nodedisruptionbudgets.vesper.sh %s --type=merge -p '{\"spec\":{\"%s\":%" PRIi64 "}}'",
                                          name, max ? "maxUnavailable" : "minAvailable",
                                          max ? MAX(b->max_unavailable.value, unavailable) + 1
                                              : MAX(MIN(b->min_available.value, available) - 1, INT64_C(0)));
        explain_cause_advise(x->causes, c, "With room for one more, fewer of its nodes are left in service at once. Without a change it has room when nodes that are unavailable are Ready or gone.");
}

static void tell_budget(Explain *x, const KubeNodeBudget *b, bool holds) {
        bool told = x->blocked && streq_ptr(x->blocked->reason, WAITING_FOR_BUDGET);
        const char *name = b->object.meta.name;
        _cleanup_free_ char *amount = budget_amount_format(b);
        ExplainCause *c;

        c = explain_add(x, holds, WAITING_FOR_BUDGET, &kube_node_budget_kind, name,
                        told ? x->blocked->last_transition_usec : 0);
        explain_cause_count(c, "available", b->current_available);
        explain_cause_count(c, "needed", b->desired_available);
        explain_cause_count(c, "expected", b->expected_nodes);
        explain_cause_count(c, "allowed", b->disruptions_allowed);
        explain_cause_count(c, "admitted", (int64_t) b->n_charges);
        if (told && strstr(strempty(x->blocked->message), name))
                explain_say_sentence(x, c, x->blocked->message);
        else {
                explain_cause_say(x->causes, c,
                                  "NodeDisruptionBudget %s %s this node: %s, so %" PRIi64 " must stay available, and %" PRIi64 " of %" PRIi64 " are.",
                                  name, holds ? "has no room for" : "would delay the removal of",
                                  strempty(amount), b->desired_available, b->current_available,
                                  b->expected_nodes);
                name_charges(x, c, b);
        }
        fix_budget(x, c, b);
}

/* Those that select it, and have not paid for it. */
size_t explain_budgets(Explain *x, bool holds) {
        size_t n = 0;

        for (size_t i = 0; i < x->f->budgets.n_items; i++) {
                const KubeNodeBudget *b = (const KubeNodeBudget *) x->f->budgets.items[i];

                if (!kube_node_budget_matches(b, x->node) || kube_node_budget_charge(b, strempty(x->node->object.meta.uid)) ||
                    b->disruptions_allowed > 0)
                        continue;
                tell_budget(x, b, holds);
                n++;
        }
        return n;
}

/* The coordinator says so, and none that we see has no room: they may not be read, or it reads newer ones. */
void explain_told_budget(Explain *x) {
        ExplainCause *c;

        if (!x->blocked || !streq_ptr(x->blocked->reason, WAITING_FOR_BUDGET))
                return;
        c = explain_add_for_node(x, true, WAITING_FOR_BUDGET, x->blocked->last_transition_usec);
        explain_say_sentence(x, c, strempty(x->blocked->message));
        explain_cause_set_command(x->causes, c, "kubectl get nodedisruptionbudgets.vesper.sh");
}

static bool is_budgeted(const Explain *x) {
        for (size_t i = 0; i < x->f->budgets.n_items; i++)
                if (kube_node_budget_matches((const KubeNodeBudget *) x->f->budgets.items[i], x->node))
                        return true;
        return false;
}

/* Whoever deletes the Node now is refused, or passes without having been asked. */
void explain_webhook(Explain *x) {
        const KubeWebhookConfiguration *w = (const KubeWebhookConfiguration *) x->f->webhook;
        bool lacks_ca = false, closed = false;
        ExplainCause *c;

        for (size_t i = 0; w && i < w->n_webhooks; i++) {
                lacks_ca = lacks_ca || isempty(w->webhooks[i].ca_bundle);
                closed = closed || w->webhooks[i].fails_closed;
        }
        if (!w || (!lacks_ca && !x->f->service_is_missing) || (!closed && !is_budgeted(x)))
                return;
        c = explain_cause_add(x->causes, false, lacks_ca ? "WebhookWithoutCA" : "WebhookWithoutService",
                              "ValidatingWebhookConfiguration", NULL, w->object.meta.name, 0);
        explain_cause_say(x->causes, c, "The API server cannot ask whether this Node may be deleted: %s.",
                          lacks_ca ? "the webhook has no caBundle, which the leading coordinator writes" : "the Service that its webhook names is not there");
        explain_cause_say(x->causes, c, closed ? "Its failurePolicy is Fail, so a deletion is refused."
                                               : "Its failurePolicy is Ignore, so a deletion passes, and the removal waits for its budgets undrained.");
        if (lacks_ca)
                explain_cause_advise(x->causes, c,
                                     "A coordinator that leads writes it within seconds; its log says what keeps it from that.");
        else
                explain_cause_advise(x->causes, c,
                                     "The manifest of the webhook has the Service, too: apply it whole.");
}
