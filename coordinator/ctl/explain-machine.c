/* SPDX-License-Identifier: Apache-2.0 */
#include "blocked-by.h"
#include "explain-scene.h"
#include "marks.h"
#include "strv.h"

static bool is_held_before_drain(const Explain *x) {
        return x->blocked && (streq_ptr(x->blocked->reason, REMOVAL_PAUSED) || streq_ptr(x->blocked->reason, WAITING_FOR_BUDGET));
}

/* Returns the EC2 instance of the claim. NULL: the claim names none that can stand in a command. */
static const char *ec2_instance(const KubeNodeClaim *claim) {
        const char *id = claim ? machine_id_ec2_instance(claim->provider_id) : NULL;

        return id && startswith(id, "i-") && explain_is_word(id) ? id : NULL;
}

static void fix_protection(Explain *x, ExplainCause *c) {
        const char *instance = ec2_instance(x->claim), *region = x->claim ? x->claim->identity.region : NULL;

        if (instance)
                explain_cause_set_command(x->causes, c, "aws ec2 modify-instance-attribute --no-disable-api-termination --instance-id %s%s%s", instance,
                                          explain_is_word(region) ? " --region " : "", explain_is_word(region) ? region : "");
        explain_cause_advise(x->causes, c,
                             "Take the termination protection off at the cloud, if the machine is to end: somebody has set it. Vesper tries again by itself, within 5 min.");
}

static void fix_identity(Explain *x, ExplainCause *c) {
        if (x->pool)
                explain_cause_set_command(x->causes, c,
                                          "kubectl patch nodepools.vesper.sh %s --type=merge -p '{\"spec\":{\"provider\":{\"identity\":\"ProviderID\"}}}'",
                                          x->pool->object.meta.name);
        explain_cause_advise(x->causes, c,
                             "What the message asks for is better. The command has vesper believe spec.providerID of all nodes of the pool: " "a kubelet that lies about it then has another node's machine ended.");
}

static void fix_machine(Explain *x, ExplainCause *c, BlockedBy by) {
        static const struct {
                BlockedBy by;
                const char *says;
        } advice[] = {
                { BLOCKED_BY_CLOUD_DENIED, "Give the coordinator's credential at the cloud the permission that the message names. Vesper tries again by itself, within 5 min." },
                { BLOCKED_BY_CLOUD_UNAVAILABLE, "The cloud throttles or does not answer: vesper tries again by itself, within a minute." },
                { BLOCKED_BY_CLOUD_UNKNOWN, "The cloud does not say whether the machine is there: vesper asks again by itself. If it is not the cloud's answer, its account or region may be the wrong one." },
                { BLOCKED_BY_CLOUD_REFUSED, "The cloud takes the request for wrong: the message says why. Vesper tries again by itself, within 5 min." },
                { BLOCKED_BY_MACHINE_SHARED, "Another Node in service says that it is the same machine: delete the Node that is not." },
                { BLOCKED_BY_MACHINE_MISSING, "The cloud finds no such machine, and yet its kubelet reports: look which account and region the coordinator asks." },
                { BLOCKED_BY_DRAIN_UNPROVED, "The API server gives no consistent list of the node's pods: it is asked again by itself." },
        };

        if (by == BLOCKED_BY_TERMINATION_PROTECTED)
                fix_protection(x, c);
        else if (by == BLOCKED_BY_IDENTITY_UNPROVED)
                fix_identity(x, c);
        for (size_t i = 0; i < ELEMENTSOF(advice); i++)
                if (advice[i].by == by)
                        explain_cause_advise(x->causes, c, "%s", advice[i].says);
}

/* "CloudDenied: it may not": what a claim keeps of the cloud's last answer. */
void explain_last_error(Explain *x, const KubeNodeClaim *claim) {
        const char *text = strempty(claim->last_cloud_error), *colon = strchr(text, ':');
        _cleanup_free_ char *reason = colon ? strndup(text, (size_t) (colon - text)) : strdup("CloudUnavailable");
        ExplainCause *c;

        if (isempty(text))
                return;
        if (!reason) {
                x->causes->failed = true;
                return;
        }
        c = explain_add(x, true, reason, &kube_node_claim_kind, claim->object.meta.name, 0);
        explain_say_sentence(x, c, colon ? colon + 1 + strspn(colon + 1, " ") : text);
        fix_machine(x, c, blocked_by_from_reason(reason));
}

void explain_machine(Explain *x) {
        const Condition *k = x->claim ? kube_node_claim_condition(x->claim, CLAIM_IDENTITY_PROVED) : NULL;
        ExplainCause *c;

        if (x->blocked && !is_held_before_drain(x)) {
                c = explain_add_for_node(x, true, strempty(x->blocked->reason),
                                         x->blocked->last_transition_usec);
                explain_say_sentence(x, c, strempty(x->blocked->message));
                fix_machine(x, c, blocked_by_from_reason(strempty(x->blocked->reason)));
        } else if (x->claim && x->claim->last_cloud_error)
                explain_last_error(x, x->claim);
        else if (k && k->status == CONDITION_FALSE) {
                c = explain_add(x, explain_has_phase(x, "Terminating"), "IdentityUnproved",
                                &kube_node_claim_kind, x->claim->object.meta.name, k->last_transition_usec);
                explain_say_sentence(x, c, strempty(k->message));
                fix_identity(x, c);
        }
}

void explain_finalizers(Explain *x, const KubeObject *o, bool ours) {
        size_t i = 0;

        STRV_FOREACH(name, o->meta.finalizers) {
                ExplainCause *c;
                size_t at = i++;

                if (streq(*name, FINALIZER_TERMINATION))
                        continue;
                c = explain_add(x, !ours, "ForeignFinalizer", o->kind, o->meta.name, o->meta.deletion_usec);
                explain_cause_say(x->causes, c,
                                  ours ? "%s %s has finalizer %s, too, which is not vesper's: it is kept by that after its removal." : "%s %s is kept by finalizer %s, which is not vesper's: nothing of vesper's holds it.",
                                  o->kind->kind, o->meta.name, *name);
                if (explain_is_word(*name))
                        explain_cause_set_command(x->causes, c,
                                                  "kubectl patch %s%s%s %s --type=json -p '[{\"op\":\"test\",\"path\":\"/metadata/finalizers/%zu\",\"value\":\"%s\"}," "{\"op\":\"remove\",\"path\":\"/metadata/finalizers/%zu\"}]'",
                                                  o->kind->plural, isempty(o->kind->group) ? "" : ".",
                                                  strempty(o->kind->group), o->meta.name, at, *name, at);
                explain_cause_advise(x->causes, c,
                                     "The controller that put it there takes it off when it is done. What it has still to do stays undone by the command: only where that controller is gone for good.");
        }
}
