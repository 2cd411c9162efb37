/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ctl-launch.h"
#include "explain-scene.h"
#include "launch-rule.h"
#include "marks.h"
#include "strv.h"
#include "successors.h"

/* -- which claims belong together ----------------------------------------------------------------------- */

static const KubeNodeClaim *claim_in(const ObjectList *l, const char *name) {
        for (size_t i = 0; i < l->n_items; i++)
                if (streq(l->items[i]->meta.name, name))
                        return (const KubeNodeClaim *) l->items[i];
        return NULL;
}

/* Returns the claim of that name; NULL: it is gone, or could not be read. */
static const KubeNodeClaim *claim_named(const ExplainFacts *f, const char *name) {
        return claim_in(&f->claims, name) ?: claim_in(&f->replacements, name);
}

static const KubeNodeClaim *latest_in(const ObjectList *l, const char *replaced,
                                      const KubeNodeClaim *latest) {
        for (size_t i = 0; i < l->n_items; i++) {
                const KubeNodeClaim *c = (const KubeNodeClaim *) l->items[i];

                if (strv_contains(c->replaces, replaced) && (!latest || c->attempt > latest->attempt))
                        latest = c;
        }
        return latest;
}

const KubeNodeClaim *explain_successor_claim(const ExplainFacts *f) {
        const KubeNodeClaim *claim = explain_claim(f);

        const char *name = claim ? claim->object.meta.name : NULL;

        const KubeNodeClaim *latest = NULL;

        if (name)
                latest = latest_in(&f->replacements, name, latest_in(&f->claims, name, NULL));

        return latest || !claim || !claim->successor ? latest : claim_named(f, claim->successor);
}

static const KubeNodeClaim *named_in(const ObjectList *l, const char *successor) {
        for (size_t i = 0; i < l->n_items; i++)
                if (streq_ptr(((const KubeNodeClaim *) l->items[i])->successor, successor))
                        return (const KubeNodeClaim *) l->items[i];
        return NULL;
}

/* Returns the claim that names this one as its successor; NULL: none does. */
static const KubeNodeClaim *named_by(const ExplainFacts *f, const KubeNodeClaim *claim) {
        const char *name = claim->object.meta.name;

        return named_in(&f->claims, name) ?: named_in(&f->replacements, name);
}

/* -- how far the new machine is ------------------------------------------------------------------------- */

/* Reports what the request waits for. */
static void say_not_asked(Explain *x, ExplainCause *c, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = explain_pool_named(x->f, claim->node_pool);
        const KubeNodeClaim *before = claim->attempt > 1 ? named_by(x->f, claim) : NULL;
        _cleanup_free_ char *what = launch_request_text(claim);

        x->causes->failed = x->causes->failed || !what;
        explain_cause_say(x->causes, c, "vesper has not asked for %s yet.", strempty(what));
        if (isempty(claim->phase) && x->f->knows_claims && !named_by(x->f, claim))
                explain_cause_say(x->causes, c,
                                  "No NodeClaim names this one in status.successor, as vesper does for the "
                                  "claims that it makes itself: vesper launches no machine for it.");
        else if (before)
                explain_cause_say(x->causes, c,
                                  "vesper asks when NodeClaim %s, attempt %" PRIi64 ", has gone.",
                                  before->object.meta.name, before->attempt);
        else if (pool && pool->limits.n_items > 0)
                explain_cause_say(x->causes, c,
                                  "vesper asks when spec.limits of NodePool %s have room for one more "
                                  "machine.",
                                  pool->object.meta.name);
}

/* Reports the request, the cloud's last answer, and what follows. */
static void say_asked(Explain *x, ExplainCause *c, const KubeNodeClaim *claim, LaunchState state) {
        static const char *const answers[_LAUNCH_STATE_MAX] = {
                [LAUNCH_STATE_NO_CAPACITY] = "The cloud has no capacity for it now",
                [LAUNCH_STATE_FAILED] = "The cloud did not launch it now",
                [LAUNCH_STATE_UNKNOWN] = "Whether the last request launched a machine is not known",
                [LAUNCH_STATE_REFUSED] = "The cloud refused the request",
        };
        const ClaimRequest *r = &claim->request;
        _cleanup_free_ char *what = launch_request_text(claim);
        char since[RFC3339_MAX], last[RFC3339_MAX], until[RFC3339_MAX];

        x->causes->failed = x->causes->failed || !what;
        rfc3339_format(r->since_usec, since);
        rfc3339_format(r->time_usec, last);
        rfc3339_format(launch_asked_until(claim), until);
        explain_cause_say(x->causes, c,
                          "vesper has asked for %s since %s, last at %s.", strempty(what), since, last);
        if (answers[state])
                explain_cause_say(x->causes, c, "%s: %s%s", answers[state],
                                  isempty(r->message) ? "it gave no reason." : r->message,
                                  isempty(r->message) ? "" : full_stop(r->message));
        else
                explain_cause_say(x->causes, c,
                                  r->answer ? "The cloud accepted the request, and has named no machine yet."
                                            : "No answer is recorded yet.");
        if (r->unresolved)
                explain_cause_say(x->causes, c,
                                  "A request may have launched a machine, so vesper looks for that before "
                                  "it asks again.");
        explain_cause_say(x->causes, c,
                          "vesper repeats the request until %s. "
                          "Then it deletes the NodeClaim, and asks for no other machine.",
                          until);
}

/* Reports until when the node has to take pods, and what follows. */
static void say_launch_timeout(Explain *x, ExplainCause *c, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = explain_pool_named(x->f, claim->node_pool);
        usec_t timeout = pool ? pool->disruption.launch_timeout_usec : LAUNCH_TIMEOUT_USEC;
        usec_t due = usec_add(claim->request.time_usec, timeout);
        bool is_last = claim->attempt >= SUCCESSOR_ATTEMPTS_MAX;
        char when[RFC3339_MAX];

        if (claim->request.time_usec == 0)
                return;
        rfc3339_format(due, when);
        explain_cause_say(x->causes, c,
                          "If the node does not take pods by %s (launchTimeout of NodePool %s), "
                          "vesper ends the machine%s",
                          when, strempty(claim->node_pool), is_last ? " and asks for no other." : "");
        if (!is_last)
                explain_cause_say(x->causes, c, "and asks for the next one, attempt %" PRIi64 " of %d.",
                                  claim->attempt + 1, SUCCESSOR_ATTEMPTS_MAX);
}

static bool is_startup_taint(const KubeNodePool *pool, const Taint *t) {
        for (size_t i = 0; pool && i < pool->template.n_startup_taints; i++) {
                const Taint *s = pool->template.startup_taints + i;

                if (streq(s->key, t->key) && streq_ptr(s->effect, t->effect))
                        return true;
        }
        return false;
}

/* Names each thing that keeps the condition Initialized from being True. n NULL: the Node is not known. */
static void say_registered(Explain *x, ExplainCause *c, const KubeNodeClaim *claim, const KubeNode *n) {
        const KubeNodePool *pool = explain_pool_named(x->f, claim->node_pool);

        explain_cause_say(x->causes, c,
                          "Node %s has come, and it does not take pods yet.", claim->node_name);
        if (!n)
                return;
        if (!kube_node_is_ready(n))
                explain_cause_say(x->causes, c, "It is not Ready.");
        for (size_t i = 0; i < n->n_taints; i++)
                if (startswith(n->taints[i].key, TAINT_READINESS_PREFIX))
                        explain_cause_say(x->causes, c, "It has the taint %s.", n->taints[i].key);
                else if (is_startup_taint(pool, n->taints + i))
                        explain_cause_say(x->causes, c, "It has the startup taint %s.", n->taints[i].key);
}

static void say_deleted(Explain *x, ExplainCause *c, const KubeNodeClaim *claim) {
        if (claim->provider_id)
                explain_cause_say(x->causes, c,
                                  "The NodeClaim is being deleted: vesper ends its machine %s.",
                                  claim->provider_id);
        else if (claim->request.token)
                explain_cause_say(x->causes, c,
                                  "The NodeClaim is being deleted: vesper looks for the machine that its "
                                  "requests may have launched, and ends that.");
        else
                explain_cause_say(x->causes, c,
                                  "The NodeClaim is being deleted, and no machine was asked for.");
}

/* n: the Node of the claim; NULL: there is none, or it is not known. */
static void say_launch(Explain *x, ExplainCause *c, const KubeNodeClaim *claim, const KubeNode *n) {
        LaunchState state = launch_state(claim);

        switch (state) {
        case LAUNCH_STATE_NOT_ASKED:
                say_not_asked(x, c, claim);
                return;
        case LAUNCH_STATE_ASKED:
        case LAUNCH_STATE_NO_CAPACITY:
        case LAUNCH_STATE_FAILED:
        case LAUNCH_STATE_UNKNOWN:
        case LAUNCH_STATE_REFUSED:
                say_asked(x, c, claim, state);
                return;
        case LAUNCH_STATE_LAUNCHED:
                explain_cause_say(x->causes, c,
                                  "The cloud launched machine %s, and its Node has not come yet.",
                                  claim->provider_id);
                say_launch_timeout(x, c, claim);
                return;
        case LAUNCH_STATE_REGISTERED:
                say_registered(x, c, claim, n);
                say_launch_timeout(x, c, claim);
                return;
        case LAUNCH_STATE_READY:
                explain_cause_say(x->causes, c, "Its node %s takes pods.", strempty(claim->node_name));
                return;
        case LAUNCH_STATE_DELETED:
                say_deleted(x, c, claim);
                return;
        case _LAUNCH_STATE_MAX:
                break;
        }
        assert(false && "a launch without a state");
}

/* -- the claim of the new machine ----------------------------------------------------------------------- */

static usec_t launch_since(const KubeNodeClaim *claim) {
        return claim->object.meta.deletion_usec > 0    ? claim->object.meta.deletion_usec
               : launch_state(claim) == LAUNCH_STATE_READY ? 0
                                                           : claim->request.since_usec;
}

static bool may_stop(LaunchState s) {
        return s <= LAUNCH_STATE_REFUSED;
}

void explain_place(Explain *x) {
        const KubeNodeClaim *claim = x->claim, *replaced;
        const char *node;
        ExplainCause *c;
        LaunchState s;

        if (!claim || !claim->replaces)
                return;
        s = launch_state(claim);
        replaced = claim_named(x->f, claim->replaces[0]);
        c = explain_add(x, s != LAUNCH_STATE_READY,
                        s == LAUNCH_STATE_READY ? "Replaces" : launch_state_to_string(s),
                        &kube_node_claim_kind, claim->object.meta.name, launch_since(claim));
        node = replaced ? replaced->node_name : NULL;
        explain_cause_say(x->causes, c,
                          "NodeClaim %s takes the place of NodeClaim %s%s%s%s, attempt %" PRIi64 " of %d.",
                          claim->object.meta.name, claim->replaces[0], node ? " (node " : "", strempty(node),
                          node ? ")" : "", claim->attempt, SUCCESSOR_ATTEMPTS_MAX);
        if (s != LAUNCH_STATE_READY)
                say_launch(x, c, claim, x->node);
        explain_cause_count(c, "attempt", claim->attempt);
        if (!may_stop(s))
                return;
        explain_cause_set_command(x->causes, c,
                                  "kubectl delete nodeclaims.vesper.sh %s", claim->object.meta.name);
        explain_cause_advise(x->causes, c, "That stops the requests. "
                                           "A machine that they launched is ended, and vesper asks for no "
                                           "other.");
}

void explain_launch(Explain *x) {
        const KubeObject *o = &x->claim->object;

        if (o->meta.deletion_usec > 0 && !object_meta_has_finalizer(&o->meta, FINALIZER_TERMINATION)) {
                explain_finalizers(x, o, false);
                return;
        }
        explain_leader(x, true);
        explain_last_error(x, x->claim);
        explain_place(x);
        explain_successor(x);
}

/* -- the node that goes --------------------------------------------------------------------------------- */

void explain_successor(Explain *x) {
        const KubeNodeClaim *claim = x->claim, *successor = explain_successor_claim(x->f);
        const char *name = successor ? successor->object.meta.name : claim ? claim->successor : NULL;
        ExplainCause *c;

        if (!name)
                return;
        c = explain_add(x, false, successor || !claim->successor_is_made ? "Successor" : "SuccessorGone",
                        &kube_node_claim_kind, name, successor ? launch_since(successor) : 0);
        if (!successor && !x->f->knows_claims)
                explain_cause_say(x->causes, c,
                                  "NodeClaim %s takes the place of this machine. How far that is could not "
                                  "be read.", name);
        else if (!successor && !claim->successor_is_made)
                explain_cause_say(x->causes, c,
                                  "NodeClaim %s is to take the place of this machine, and is not created "
                                  "yet.", name);
        else if (!successor)
                explain_cause_say(x->causes, c,
                                  "NodeClaim %s was to take the place of this machine, and no such claim is "
                                  "left: the cloud launched no machine in 15 minutes, the nodes of %d "
                                  "attempts did not take pods in time, or somebody deleted the claim. "
                                  "vesper asks for no other machine.",
                                  name, SUCCESSOR_ATTEMPTS_MAX);
        if (!successor)
                return;
        explain_cause_say(x->causes, c,
                          "NodeClaim %s takes the place of this machine, attempt %" PRIi64 " of %d.", name,
                          successor->attempt, SUCCESSOR_ATTEMPTS_MAX);
        say_launch(x, c, successor, (const KubeNode *) x->f->new_node);
        explain_cause_count(c, "attempt", successor->attempt);
        explain_cause_advise(x->causes, c, "'vesperctl explain nodeclaim/%s' shows that claim alone.", name);
}
