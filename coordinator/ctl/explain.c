/* SPDX-License-Identifier: Apache-2.0 */
#include "explain.h"

#include <inttypes.h>

#include "blocked-by.h"
#include "budget-math.h"
#include "ctl-held.h"
#include "ctl-launch.h"
#include "explain-pods.h"
#include "explain-scene.h"
#include "heard-conditions.h"
#include "marks.h"
#include "strv.h"

static void explain_done(Explain *x) {
        node_deadline_done(&x->deadline);
        reboot_case_done(&x->reboot);
}

void explain_facts_done(ExplainFacts *f) {
        kube_object_unref(f->node);
        object_list_done(&f->claims);
        object_list_done(&f->replacements);
        kube_object_unref(f->new_node);
        object_list_done(&f->pools);
        object_list_done(&f->budgets);
        object_list_done(&f->pods);
        object_list_done(&f->pdbs);
        object_list_done(&f->volumes);
        kube_object_unref(f->pause_ns);
        kube_object_unref(f->webhook);
        free(f->leader);
        strv_free(f->unknown);
        strv_free(f->missing_owners);
        *f = (ExplainFacts){};
}

/* -- what belongs to the node --------------------------------------------------------------------------- */

static const KubeNodeClaim *claim_at(const ExplainFacts *f, size_t i) {
        return (const KubeNodeClaim *) f->claims.items[i];
}

static bool claim_is_of(const KubeNodeClaim *c, const KubeNode *n) {
        const char *name = machine_id_node_name(c->provider_id);

        return name ? streq(name, n->object.meta.name) : streq_ptr(c->provider_id, kube_node_machine_id(n));
}

/* Of several of one machine the one that names this Node. */
static const KubeNodeClaim *find_claim(const ExplainFacts *f, const KubeNode *n) {
        const KubeNodeClaim *found = NULL;

        for (size_t i = 0; i < f->claims.n_items; i++) {
                const KubeNodeClaim *c = claim_at(f, i);

                if (f->claim_name ? streq(c->object.meta.name, f->claim_name)
                    : !n ? streq_ptr(c->node_name, f->node_name) || streq_ptr(c->made_for, f->node_name)
                       : claim_is_of(c, n) && (!found || streq_ptr(c->node_name, n->object.meta.name)))
                        found = c;
        }
        return found;
}

const KubeNodeClaim *explain_claim(const ExplainFacts *f) {
        return find_claim(f, (const KubeNode *) f->node);
}

const KubeNodePool *explain_pool_named(const ExplainFacts *f, const char *name) {
        for (size_t i = 0; i < f->pools.n_items; i++)
                if (streq_ptr(f->pools.items[i]->meta.name, name))
                        return (const KubeNodePool *) f->pools.items[i];
        return NULL;
}

/* As the coordinator chooses. */
static void find_pools(Explain *x) {
        for (size_t i = 0; i < x->f->pools.n_items && !kube_node_is_unmanaged(x->node); i++) {
                const KubeNodePool *p = (const KubeNodePool *) x->f->pools.items[i];

                if (p->object.invalid || p->object.meta.deletion_usec > 0 || selector_is_empty(p->selector) ||
                    !selector_matches(p->selector, &x->node->object.meta.labels))
                        continue;
                if (!x->pool)
                        x->pool = p;
                else if (!x->other)
                        x->other = p;
        }
        if (x->claim && explain_pool_named(x->f, x->claim->node_pool))
                x->pool = explain_pool_named(x->f, x->claim->node_pool);
}

bool explain_is_ours(const Explain *x) {
        return object_meta_has_finalizer(&x->node->object.meta, FINALIZER_TERMINATION);
}

static bool is_deleted(const Explain *x) {
        return x->node->object.meta.deletion_usec > 0 || (x->claim && x->claim->object.meta.deletion_usec > 0);
}

static bool deadline_passed(const Explain *x) {
        return node_deadline_passed(&x->deadline, x->f->now_usec);
}

ExplainCause *explain_add(Explain *x, bool holds, const char *reason, const KubeKind *kind, const char *name,
                          usec_t since_usec) {
        return explain_cause_add(x->causes, holds, reason, kind->kind, NULL, name, since_usec);
}

ExplainCause *explain_add_for_node(Explain *x, bool holds, const char *reason, usec_t since_usec) {
        return explain_add(x, holds, reason, &kube_node_kind, x->f->node_name, since_usec);
}

void explain_say_sentence(Explain *x, ExplainCause *c, const char *text) {
        explain_cause_say(x->causes, c, "%s%s", text, full_stop(text));
}

bool explain_has_phase(const Explain *x, const char *phase) {
        return x->claim && streq_ptr(x->claim->phase, phase);
}

/* Its drain has not touched it: pauses and budgets come before. */
static bool has_begun(const Explain *x) {
        return kube_node_has_taint(x->node, TAINT_DISRUPTED, NULL) ||
               object_meta_annotation(&x->node->object.meta, ANNOTATION_CORDONED_BY_COORDINATOR);
}

/* What the coordinator lets begin, whatever is paused or used up. */
static bool passes_gates(const Explain *x) {
        return has_begun(x) || deadline_passed(x) || node_deadline_has_notice(&x->deadline) || budget_node_passes(x->node);
}

/* -- in service ----------------------------------------------------------------------------------------- */

static void say_pods_left(Explain *x, ExplainCause *c, int64_t n) {
        if (n < 0)
                return;
        explain_cause_say(x->causes, c, "%" PRIi64 " pod%s left.", n, n == 1 ? " is" : "s are");
        explain_cause_count(c, "podsLeft", n);
}

/* who: a sentence's beginning. figures: how many pods are left, and more of them, where that is told; NULL: it is not. */
static void say_interruption(Explain *x, ExplainCause *c, const char *who, const Interruption *i, const char *figures) {
        _cleanup_free_ char *action = str_sanitize(isempty(i->notice->action) ? "no action said" : i->notice->action, NOTICE_WORD_BYTES_MAX);
        const char *phase = i->phase == INTERRUPTION_LATER ? "unknown to this version" : interruption_phase_to_string(i->phase);

        if (i->notice->kind == NOTICE_MANUAL)
                explain_cause_say(x->causes, c, "%s, phase %s: a person asked for that on the machine (%s).", who, phase, strempty(action));
        else
                explain_cause_say(x->causes, c, "%s, phase %s: a notice of kind %s (%s) announces %s of the machine.", who, phase,
                                  notice_kind_to_string(i->notice->kind) ?: "unknown", strempty(action),
                                  i->notice->kind == NOTICE_MAINTENANCE && !notice_ends_machine(i->notice) ? "a change" : "the end");
        if (!figures)
                say_pods_left(x, c, i->pods_left);
        else {
                explain_say_sentence(x, c, figures);
                if (i->pods_left >= 0)
                        explain_cause_count(c, "podsLeft", i->pods_left);
        }
}

/* What its notice comes to when nobody does anything. */
static const char *heard_comes_to(const Notice *notice) {
        if (notice->kind == NOTICE_SCALE_IN && notice_announced(notice) == USEC_INFINITY)
                return "It stays cordoned until it is gone, its machine has booted anew, or a person opens it.";
        if (notice->kind == NOTICE_MAINTENANCE)
                return "It is opened again when its machine has booted after that time, when AWS calls the change off or moves it, or, if the node is Ready then, ten "
                       "minutes after the change's window. A boot before that time does not open it.";
        return "It is opened again when its machine has booted anew, or has outlived by ten minutes what was announced.";
}

/* "2 pods are left, and it waits for web/a (Protected k)"; NULL: no pod is told to hold it, or no memory. */
static char *figures_of(const Interruption *i) {
        _cleanup_strbuf_ StrBuf text = {};
        size_t n = 0;

        while (n < i->n_blockers && !streq(i->blockers[n].reason, POD_WAIT_NAME_COMES_BACK)) /* those stand behind the others */
                n++;
        if (n == 0 || i->pods_left < 0)
                return NULL;
        strbuf_addf(&text, "%" PRIi64 " pod%s left, and it waits for ", i->pods_left, i->pods_left == 1 ? " is" : "s are");
        for (size_t k = 0; k < n; k++)
                strbuf_addf(&text, "%s%s (%s%s%s)", k > 0 ? ", " : "", i->blockers[k].pod, i->blockers[k].reason,
                            isempty(i->blockers[k].detail) ? "" : " ", i->blockers[k].detail);
        return strbuf_steal(&text);
}

/* The coordinator drains it, and keeps it. */
static bool is_drained_for_queue(const Explain *x) {
        return x->heard && !interruption_has_drained(x->heard);
}

static ExplainPods pods_of(const Explain *x) {
        return (ExplainPods){ .facts = x->f, .node = x->node, .claim = x->claim, .heard = x->heard, .rules = &x->rules,
                              .is_draining = explain_has_phase(x, "Draining") || explain_has_phase(x, "LoadBalancers") || is_drained_for_queue(x) };
}

/* The coordinator drains it, or has, and keeps it: what is left is said of its pods. */
static void explain_heard(Explain *x) {
        const Interruption *i = x->heard;
        const Condition *k = kube_node_condition(x->node, CONDITION_DRAIN_IN_PROGRESS);
        bool drained = interruption_has_drained(i), holds = !drained && !explain_causes_first(x->causes);
        usec_t at = notice_announced(i->notice);
        _cleanup_free_ char *figures = drained ? NULL : figures_of(i);
        ExplainPods pods = pods_of(x);
        char when[RFC3339_MAX];
        ExplainCause *c;

        if (!condition_is_of_coordinator(k) || k->status != CONDITION_TRUE)
                k = NULL;
        c = explain_add_for_node(x, holds, drained ? "DrainedForQueue" : HELD_BY_QUEUE_DRAIN, k ? k->last_transition_usec : 0);
        say_interruption(x, c,
                         x->claim ? drained ? "The coordinator has cordoned and drained it for its interruption queue, and keeps it"
                                            : "The coordinator drains it for its interruption queue, and keeps it"
                         : drained ? "The coordinator has cordoned and drained it for its interruption queue ([Queue] Unmanaged=drain)"
                                   : "The coordinator drains it for its interruption queue ([Queue] Unmanaged=drain)",
                         i, figures);
        if (at != USEC_INFINITY) {
                rfc3339_format(at, when);
                explain_cause_say(x->causes, c, "The machine may be gone from %s on%s.", when,
                                  drained ? "" : "; pods whose grace ends later are deleted before it, their PodDisruptionBudgets not asked");
        }
        explain_cause_say(x->causes, c, "Its machine is left to its cloud. %s", heard_comes_to(i->notice));
        explain_cause_set_command(x->causes, c, "vesperctl undrain %s", x->f->node_name);
        explain_cause_advise(x->causes, c, "That opens the node. What is due now is then ignored; a later notice is acted upon.");
        explain_pods_that_return(&pods, x->causes);
}

/* The drain under way is for a notice that the brake holds: it has no deadline. */
static bool heard_is_held(const Explain *x) {
        const Announced *a = x->heard ? announced_list_find(&x->announced, x->heard->notice->id) : NULL;

        return a && a->state == ANNOUNCED_HELD;
}

static void say_held_drain(Explain *x, ExplainCause *c) {
        _cleanup_free_ char *figures = NULL;

        if (!heard_is_held(x))
                explain_cause_say(x->causes, c, "The coordinator cordons the node and evicts its pods as their PodDisruptionBudgets allow.");
        else if (interruption_has_drained(x->heard))
                explain_cause_say(x->causes, c, "The coordinator has cordoned and drained the node.");
        else {
                explain_cause_say(x->causes, c, "The coordinator has cordoned the node and evicts its pods as their PodDisruptionBudgets allow.");
                figures = figures_of(x->heard);
                if (figures)
                        explain_say_sentence(x, c, figures);
                else
                        say_pods_left(x, c, x->heard->pods_left);
        }
}

static void explain_held(Explain *x) {
        const HeldNotices h = held_notices(x->node, x->claim);
        HeldState state = x->announced.n_items > 0 ? held_state(&h) : HELD_NOTHING;
        _cleanup_free_ char *announced = NULL;
        ExplainPods pods = pods_of(x);
        ExplainCause *c;

        if (state == HELD_NOTHING)
                return;
        announced = held_text(&h);
        x->causes->failed = x->causes->failed || !announced;
        c = explain_add_for_node(x, state == HELD_HELD, "QueueBrake", held_first(&h, ANNOUNCED_HELD)->notice->received_usec);
        explain_cause_say(x->causes, c, "The interruption queue announced %s. The brake of the queue holds that, because " HELD_BECAUSE ".", strempty(announced));
        say_held_drain(x, c);
        if (state == HELD_LET_GO) {
                explain_cause_say(x->causes, c, "Somebody has let it go (annotation " ANNOTATION_LET_GO "): the leading coordinator acts on that.");
                return;
        }
        explain_cause_say(x->causes, c, "No deadline is set and the machine is not ended until the node's agent reports the notice, EC2 or Auto Scaling confirms it, or a person "
                          "confirms it.");
        explain_cause_set_command(x->causes, c, "vesperctl let-go %s", x->f->node_name);
        explain_cause_advise(x->causes, c, "The command shows what follows from confirming the notice, and changes nothing before --yes is added. If the announcement is false, 'vesperctl undrain %s' "
                             "opens the node. To check it: aws ec2 describe-instances, describe-spot-instance-requests or describe-instance-status.",
                             x->f->node_name);
        if (heard_is_held(x))
                explain_pods_that_return(&pods, x->causes);
}

/* The drain for the queue, under way or done, and what the brake of the queue holds. */
static void explain_queue(Explain *x) {
        if (x->heard && !heard_is_held(x))
                explain_heard(x);
        explain_held(x);
}

/* Nothing is done for it yet. */
static void explain_announced(Explain *x) {
        const Condition *k = kube_node_condition(x->node, CONDITION_MAINTENANCE_PLANNED);
        _cleanup_free_ char *announced = heard_announced_list_text(&x->announced, x->heard ? x->heard->notice : NULL, NULL);
        ExplainCause *c;

        x->causes->failed = x->causes->failed || !announced;
        if (isempty(announced))
                return;
        c = explain_add_for_node(x, false, "Announced", condition_is_of_coordinator(k) ? k->last_transition_usec : 0);
        explain_cause_say(x->causes, c, "The interruption queue announced %s. The coordinator acts upon a scheduled change when it comes near ([Interruption] BeforeSec=), upon "
                          "anything else at once, and upon nothing while [Interruption] Delete= is never.",
                          announced);
        explain_cause_set_command(x->causes, c, "vesperctl drain %s", x->f->node_name);
        explain_cause_advise(x->causes, c, "That drains the node now.");
}

/* What would hold its removal, if it began now. */
static void explain_prospects(Explain *x) {
        if (!explain_is_ours(x))
                return;
        explain_leader(x, false);
        explain_pause(x, false);
        (void) explain_budgets(x, false);
        explain_webhook(x);
}

/* -- the agent, load balancers, volumes ----------------------------------------------------------------- */

static ExplainCause *add_agents_drain(Explain *x, bool holds, const char *reason, const char *who) {
        usec_t at = notice_announced(x->interruption->notice);
        ExplainCause *c = explain_add_for_node(x, holds, reason, 0);
        char when[RFC3339_MAX];

        say_interruption(x, c, who, x->interruption, NULL);
        if (at != USEC_INFINITY) {
                rfc3339_format(at, when);
                explain_cause_say(x->causes, c,
                                  explain_reboots_early(x) ? "The cloud announced that for %s; it is taken early."
                                                           : "The machine may be gone from %s on.",
                                  when);
        }
        return c;
}

/* Explains a drain of the node's agent that is over while its notice stands. */
static void explain_agent_drained(Explain *x) {
        ExplainCause *c;

        if (!x->interruption)
                return;
        c = add_agents_drain(x, false, "DrainedByAgent", "Its agent has drained it");
        explain_cause_advise(x->causes, c, x->interruption->notice->kind == NOTICE_MANUAL
                             ? "The agent undoes what it did to the node when a person runs 'vesper-agent --cancel-drain' on the machine, or the machine has booted anew."
                             : "The agent undoes what it did to the node when the notice is withdrawn, or the machine has booted anew.");
}

static void explain_agent(Explain *x) {
        const Interruption *i = x->interruption;
        ExplainCause *c;

        if (!i || !interruption_is_draining(i))
                return;
        c = add_agents_drain(x, true, "AgentDrains", "Its agent drains it");
        explain_cause_advise(x->causes, c,
                             "It goes on by itself; after 15 s in which nothing changes the coordinator helps, where the node is a pool's.");
}

static void explain_load_balancers(Explain *x) {
        ExplainCause *c;

        if (!explain_has_phase(x, "LoadBalancers"))
                return;
        c = explain_add_for_node(x, true, "LoadBalancers", 0);
        explain_cause_say(x->causes, c,
                          "Load balancers are given time to let go of the node (label " LABEL_EXCLUDE_FROM_LB ") before its pods are evicted.");
        explain_cause_advise(x->causes, c,
                             "It passes by itself, after [Drain] LoadBalancerWaitSec= of coordinator.conf.");
}

#define VOLUMES_ADVICE "Their CSI driver detaches them. Vesper waits until 2 min after the last one was detached, or until the deadline, and ends the machine then."

/* What the coordinator says of it; NULL: nothing. */
static const ClaimBlocker *volumes_blocker(const Explain *x) {
        for (size_t i = 0; i < x->claim->n_blockers; i++)
                if (streq_ptr(x->claim->blockers[i].reason, VOLUMES_ATTACHED))
                        return x->claim->blockers + i;
        return NULL;
}

static void tell_volume(Explain *x, const KubeVolumeAttachment *v, usec_t since_usec) {
        bool goes = v->object.meta.deletion_usec > 0;
        ExplainCause *c = explain_add(x, true, VOLUMES_ATTACHED, &kube_volume_attachment_kind,
                                      v->object.meta.name, since_usec);

        explain_cause_say(x->causes, c, "The node is drained, and its volume %s is still attached%s.",
                          v->pv_name ?: "(inline)", goes ? ", though its VolumeAttachment is being deleted" : "");
        explain_cause_set_command(x->causes, c, "kubectl describe volumeattachment %s", v->object.meta.name);
        explain_cause_advise(x->causes, c, VOLUMES_ADVICE);
}

static void explain_volumes(Explain *x) {
        const ClaimBlocker *told = explain_has_phase(x, "Volumes") ? volumes_blocker(x) : NULL;
        size_t n = 0, listed = strv_length(x->node->volumes_attached);
        ExplainCause *c;

        if (!explain_has_phase(x, "Volumes"))
                return;
        for (size_t i = 0; i < x->f->volumes.n_items; i++) {
                const KubeVolumeAttachment *v = (const KubeVolumeAttachment *) x->f->volumes.items[i];

                if (!streq_ptr(v->node_name, x->f->node_name))
                        continue;
                tell_volume(x, v, told ? told->since_usec : 0);
                n++;
        }
        if (n > 0 || (!told && listed == 0))
                return;
        /* They could not be read, or the node alone knows of them. */
        c = explain_add_for_node(x, true, VOLUMES_ATTACHED, told ? told->since_usec : 0);
        explain_cause_say(x->causes, c, "The node is drained, and its volumes are given time to detach: its status lists %zu%s%s.",
                          listed, told ? "; the coordinator says: " : "", told ? strempty(told->message) : "");
        explain_cause_count(c, "volumesAttached", (int64_t) listed);
        explain_cause_advise(x->causes, c, VOLUMES_ADVICE);
}

/* -- deadline ---------------------------------------------------------------------------------------- */

static void explain_deadline(Explain *x) {
        usec_t at = x->deadline.at_usec;
        const KubeNodeClaim *claim = x->claim;
        char when[RFC3339_MAX];
        ExplainCause *c;

        if (!claim || !explain_causes_first(x->causes))
                return;
        if (at == USEC_INFINITY) {
                c = explain_add(x, false, "NoDeadline", &kube_node_claim_kind, claim->object.meta.name, 0);
                explain_cause_say(x->causes, c,
                                  "No deadline is set (terminationGracePeriod of NodePool %s, as it was when the node was adopted): it waits for ever.",
                                  strempty(claim->node_pool));
        } else {
                rfc3339_format(at, when);
                c = explain_add(x, false, deadline_passed(x) ? "DeadlinePassed" : "Deadline", &kube_node_claim_kind, claim->object.meta.name, deadline_passed(x) ? at : 0);
                if (deadline_passed(x)) {
                        explain_cause_say(x->causes, c,
                                          "Its deadline has passed, at %s, by %s: no pod, budget or pause holds it any more, and its machine is ended as soon as the cloud lets it.",
                                          when, node_deadline_source(&x->deadline));
                        return;
                }
                explain_cause_say(x->causes, c,
                                  "At %s, by %s, no pod, budget or pause holds it any more: pods whose grace ends later are deleted before it, their PodDisruptionBudgets not asked, and the machine is ended.",
                                  when, node_deadline_source(&x->deadline));
                explain_cause_count(c, "secondsLeft",
                                    (int64_t) (usec_sub(at, x->f->now_usec) / USEC_PER_SEC));
        }
        explain_cause_set_command(x->causes, c, "vesperctl force %s --deadline=10m", x->f->node_name);
        explain_cause_advise(x->causes, c,
                             "It says which pods a deadline in 10 min would end, and changes nothing before --yes is added; with it pods are deleted without their PodDisruptionBudgets being asked.");
}

/* -- the order ------------------------------------------------------------------------------------------ */

static void explain_drain(Explain *x) {
        ExplainPods pods = pods_of(x);

        explain_pods(&pods, x->causes);
        explain_agent(x);
        if (x->reboot.request_state == REBOOT_REQUEST_HOLDS_SLOT)
                explain_reboot(x);
        explain_load_balancers(x);
}

/* Nothing waits for a person: how far it is. */
static void explain_progress(Explain *x) {
        bool claim = x->claim && !isempty(x->claim->phase);
        ExplainCause *c;

        if (explain_causes_first(x->causes))
                return;
        c = explain_add_for_node(x, false, "InProgress", x->node->object.meta.deletion_usec);
        explain_cause_say(x->causes, c, "Node %s is being removed, and %s holds it%s%s.", x->f->node_name,
                          strv_length(x->f->unknown) > 0 ? "nothing that could be read" : "nothing",
                          claim ? ": phase " : "", claim ? x->claim->phase : "");
        if (x->claim)
                say_pods_left(x, c, x->claim->pods_left);
}

/* A Node that is being deleted and is not, or no longer, vesper's: others keep it. */
static bool is_anothers(const Explain *x) {
        return x->node->object.meta.deletion_usec > 0 && !explain_is_ours(x);
}

static void explain_removal(Explain *x) {
        ExplainPods pods = pods_of(x);
        bool at_the_machine = explain_has_phase(x, "Terminating") || explain_has_phase(x,
                                                "Volumes") || explain_has_phase(x, "Finished");

        if (is_deleted(x))
                explain_leader(x, true);
        if (is_deleted(x) && !passes_gates(x)) {
                explain_pause(x, true);
                if (explain_budgets(x, true) == 0)
                        explain_told_budget(x);
        }
        if (!at_the_machine)
                explain_drain(x);
        explain_volumes(x);
        if (is_deleted(x)) {
                explain_machine(x);
                explain_finalizers(x, &x->node->object, true);
                explain_deadline(x);
        }
        explain_pods_that_return(&pods, x->causes);
        explain_progress(x);
}

static void explain_node(Explain *x) {
        ExplainPods pods = pods_of(x);

        if (is_anothers(x)) {
                explain_finalizers(x, &x->node->object, false);
                explain_progress(x);
        } else if (is_drained_for_queue(x)) {
                explain_leader(x, true);
                explain_drain(x);
                explain_queue(x);
        } else if (is_deleted(x) || (x->interruption && interruption_is_draining(x->interruption)))
                explain_removal(x);
        else {
                explain_overruled(x);
                explain_service(x);
                explain_kubelet(x);
                explain_agent_drained(x);
                explain_queue(x);
                explain_announced(x);
                explain_planned(x);
                explain_reboot(x);
                explain_prospects(x);
        }
        explain_pods_left_alone(&pods, x->causes);
        explain_place(x);
        explain_successor(x);
}

/* A claim that a person made, of which the coordinator knows no Node. */
static void explain_not_adopted_claim(Explain *x) {
        const Condition *k = kube_node_claim_condition(x->claim, CLAIM_NOT_ADOPTED);
        bool told = k && k->status == CONDITION_TRUE;
        ExplainCause *c = explain_add(x, true, told ? strempty(k->reason) : "NotAdoptedYet", &kube_node_claim_kind,
                                      x->claim->object.meta.name, told ? k->last_transition_usec : 0);

        explain_cause_say(x->causes, c, "NodeClaim %s has adopted no Node.", x->claim->object.meta.name);
        if (told && !isempty(k->message))
                explain_say_sentence(x, c, k->message);
}

/* Its Node is gone, its claim is not: its machine may be there. */
static void explain_orphan(Explain *x) {
        const KubeNodeClaim *claim = x->claim;
        const char *name = claim->object.meta.name;
        const Condition *k = kube_node_claim_condition(claim, CLAIM_NODE_ABSENT);
        ExplainCause *c;

        if (claim->object.meta.deletion_usec > 0 && !object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION)) {
                explain_finalizers(x, &claim->object, false);
                return;
        }
        explain_leader(x, true);
        explain_last_error(x, claim);
        c = explain_add(x, !explain_causes_first(x->causes), "NodeAbsent", &kube_node_claim_kind, name,
                        k ? k->last_transition_usec : claim->object.meta.deletion_usec);
        explain_cause_say(x->causes, c,
                          "Node %s is gone, and NodeClaim %s stands for a machine that may still be there.",
                          x->f->node_name, name);
        if (k && !isempty(k->message))
                explain_say_sentence(x, c, k->message);
        explain_cause_advise(x->causes, c,
                             "The coordinator asks the cloud about it: the claim goes when the machine is gone, or its kubelet has made the Node anew.");
}

static void read_node(Explain *x) {
        const KubeNode *n = x->node;
        bool ignores;

        x->interruption = kube_node_standing_interruption(n);
        if (reboot_case_read(n, x->f->now_usec, USEC_PER_DAY, &x->reboot) < 0)
                x->causes->failed = true;
        if (x->claim ? x->claim->object.meta.deletion_usec == 0 : !explain_is_ours(x) && !x->pool && !kube_node_is_unmanaged(n)) {
                x->heard = n->heard;
                x->announced = x->claim ? x->claim->announced : n->announced;
        }
        if (x->heard && !heard_is_held(x)) {
                x->deadline.is_heard = true;
                x->deadline.heard_usec = notice_announced(x->heard->notice);
        }
        (void) node_deadline_update(&x->deadline, n, x->claim, x->f->now_usec);
        ignores = (x->heard && !heard_is_held(x)) || (x->interruption && !notice_waits_for_protected(x->interruption->notice));
        x->rules = node_deadline_rules(&x->deadline, n, ignores ? PROTECTED_IGNORE : PROTECTED_WAIT);
        x->blocked = kube_node_condition(n, CONDITION_TERMINATION_BLOCKED);
        if (x->blocked && x->blocked->status != CONDITION_TRUE)
                x->blocked = NULL;
}

int explain_make(const ExplainFacts *f, ExplainCauses *ret) {
        _cleanup_(explain_done) Explain x = { .f = f,
                                              .node = (const KubeNode *) f->node,
                                              .deadline = NODE_DEADLINE_NONE,
                                              .causes = ret };

        assert(f && (f->node_name || f->claim_name) && f->lease_ns && f->lease_name && ret);
        assert(ret->n == 0);
        x.claim = explain_claim(f);
        if (!x.node && !x.claim)
                return -ENOENT;
        if (x.node) {
                find_pools(&x);
                read_node(&x);
                explain_node(&x);
        } else if (launch_is_without_node(x.claim))
                explain_launch(&x);
        else if (!f->node_name)
                explain_not_adopted_claim(&x);
        else {
                explain_orphan(&x);
                explain_successor(&x);
        }
        if (!ret->failed)
                return 0;
        explain_causes_done(ret);
        return -ENOMEM;
}
