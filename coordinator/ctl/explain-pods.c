/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-pods.h"

#include <inttypes.h>

#include "blocked-by.h"
#include "strv.h"

/* Of causes that name one pod each; of the others it is said how many there are. */
#define PODS_TOLD_MAX 5u
/* A pod that ends within its grace, and so much later, holds nothing where a kubelet reports. */
#define OVERDUE_USEC USEC_PER_MINUTE

static const char *pod_name(const KubePod *pod) {
        return pod->object.meta.name;
}

static const char *pod_ns(const KubePod *pod) {
        return pod->object.meta.ns;
}

static const KubePod *pod_at(const ExplainPods *p, size_t i) {
        return (const KubePod *) p->facts->pods.items[i];
}

static bool is_ns_name(const char *text, const char *ns, const char *name) {
        const char *rest = text ? startswith(text, ns) : NULL;

        return rest && *rest == '/' && streq(rest + 1, name);
}

static const ClaimBlocker *blocker_of(const ExplainPods *p, const KubePod *pod) {
        for (size_t i = 0; p->claim && i < p->claim->n_blockers; i++)
                if (is_ns_name(p->claim->blockers[i].pod, pod_ns(pod), pod_name(pod)))
                        return p->claim->blockers + i;
        return NULL;
}

/* Since when the coordinator says so of this pod; 0: it does not. */
static usec_t since_of(const ExplainPods *p, const KubePod *pod, const char *reason) {
        const ClaimBlocker *b = blocker_of(p, pod);

        return b && streq_ptr(b->reason, reason) ? b->since_usec : 0;
}

/* NodeClaim or Node say that the drain does not wait for the pod, as it came back too often (pod-returns.h). */
static bool is_return(const ExplainPods *p, const KubePod *pod) {
        const ClaimBlocker *b = blocker_of(p, pod);

        for (size_t i = 0; p->heard && i < p->heard->n_blockers; i++)
                if (streq(p->heard->blockers[i].reason, POD_WAIT_NAME_COMES_BACK) && is_ns_name(p->heard->blockers[i].pod, pod_ns(pod), pod_name(pod)))
                        return true;
        return b && streq_ptr(b->reason, POD_WAIT_NAME_COMES_BACK);
}

static bool is_waited_for(const ExplainPods *p, const KubePod *pod) {
        return !is_return(p, pod) && drain_waits_for(pod, p->rules, p->facts->now_usec);
}

/* It opted out, and that is respected: once its node drains all the same, the coordinator says which it waits for. */
static bool is_protected(const ExplainPods *p, const KubePod *pod, const char **ret_key,
                         usec_t *ret_until_usec) {
        const ClaimBlocker *b = blocker_of(p, pod);

        return p->rules->protected_policy != PROTECTED_IGNORE &&
               pod_classify(pod, p->facts->now_usec, ret_key, ret_until_usec) == POD_CLASS_PROTECTED &&
               (!p->is_draining || !b || streq_ptr(b->reason, POD_WAIT_NAME_PROTECTED));
}

/* To be evicted now: of a class that is, and held by nothing of its own. */
static bool is_to_evict(const ExplainPods *p, const KubePod *pod) {
        PodClass class = pod_classify(pod, p->facts->now_usec, NULL, NULL);

        return (class == POD_CLASS_ORDINARY || class == POD_CLASS_PROTECTED) && is_waited_for(p, pod) && !is_protected(p, pod, NULL, NULL);
}

/* Adds the number of pods beyond those that have a cause of their own. one, many: the predicate for one pod and for several. */
static void tell_others(const ExplainPods *p, ExplainCauses *to, bool holds, size_t n, const char *reason, const char *one, const char *many) {
        size_t more = n > PODS_TOLD_MAX ? n - PODS_TOLD_MAX : 0;
        ExplainCause *c;

        if (more == 0)
                return;
        c = explain_cause_add(to, holds, reason, "Node", NULL, p->facts->node_name, 0);
        explain_cause_say(to, c, "%zu more pod%s of this node %s.", more, more == 1 ? "" : "s", more == 1 ? one : many);
        explain_cause_count(c, "pods", (int64_t) more);
}

/* -- opted out ------------------------------------------------------------------------------------------ */

static void tell_protected(const ExplainPods *p, ExplainCauses *to, const KubePod *pod, const char *key,
                           usec_t until_usec) {
        bool label = !object_meta_annotation(&pod->object.meta, key);
        char until[RFC3339_MAX];
        ExplainCause *c;

        c = explain_cause_add(to, true, "Protected", "Pod", pod_ns(pod), pod_name(pod),
                              since_of(p, pod, "Protected"));
        explain_cause_say(to, c, "Pod %s/%s opted out of drains by its %s %s.", pod_ns(pod), pod_name(pod),
                          label ? "label" : "annotation", key);
        if (until_usec != USEC_INFINITY) {
                rfc3339_format(until_usec, until);
                explain_cause_say(to, c, "That ends at %s.", until);
                explain_cause_count(c, "secondsLeft",
                                    (int64_t) (usec_sub(until_usec, p->facts->now_usec) / USEC_PER_SEC));
        } else
                explain_cause_say(to, c,
                                  "The node waits until the pod has ended by itself, or the key is taken off.");
        explain_cause_set_command(to, c, "kubectl %s pod %s -n %s %s-", label ? "label" : "annotate",
                                  pod_name(pod), pod_ns(pod), key);
        explain_cause_advise(to, c,
                             "The pod is evicted then as any other, which its owner has asked not to happen before it is done.");
}

static void find_protected(const ExplainPods *p, ExplainCauses *to) {
        size_t n = 0;

        for (size_t i = 0; i < p->facts->pods.n_items; i++) {
                const KubePod *pod = pod_at(p, i);
                usec_t until_usec = USEC_INFINITY;
                const char *key = NULL;

                if (!is_protected(p, pod, &key, &until_usec) || !is_waited_for(p, pod))
                        continue;
                if (n++ < PODS_TOLD_MAX)
                        tell_protected(p, to, pod, key, until_usec);
        }
        tell_others(p, to, true, n, "Protected", "opted out of drains", "opted out of drains");
}

/* -- PodDisruptionBudgets ------------------------------------------------------------------------------- */

/* How many match it, and the first two of them. */
static size_t match_pdbs(const ExplainPods *p, const KubePod *pod, const KubePdb *ret[2]) {
        size_t n = 0;

        for (size_t i = 0; i < p->facts->pdbs.n_items; i++) {
                const KubePdb *pdb = (const KubePdb *) p->facts->pdbs.items[i];

                if (!kube_pdb_matches(pdb, pod))
                        continue;
                if (n < 2)
                        ret[n] = pdb;
                n++;
        }
        return n;
}

static void tell_several(const ExplainPods *p, ExplainCauses *to, const KubePod *pod,
                         const KubePdb *const pdbs[2], size_t n) {
        const char *one = pdbs[0]->object.meta.name, *other = pdbs[1]->object.meta.name;
        ExplainCause *c;

        c = explain_cause_add(to, true, "SeveralPDBs", "Pod", pod_ns(pod), pod_name(pod),
                              since_of(p, pod, "SeveralPDBs"));
        explain_cause_say(to, c,
                          "%zu PodDisruptionBudgets match pod %s/%s, among them %s and %s, and the eviction API lets no such pod pass, " "whatever they allow. Only a deadline ends it.",
                          n, pod_ns(pod), pod_name(pod), one, other);
        explain_cause_count(c, "budgets", (int64_t) n);
        explain_cause_set_command(to, c, "kubectl delete poddisruptionbudget %s -n %s", other, pod_ns(pod));
        explain_cause_advise(to, c,
                             "Pods that %s matches and no other does are protected by none then; where there are such, make the selectors disjoint instead: " "'kubectl edit poddisruptionbudget %s -n %s'.",
                             other, other, pod_ns(pod));
}

static void find_several(const ExplainPods *p, ExplainCauses *to) {
        size_t told = 0;

        for (size_t i = 0; i < p->facts->pods.n_items; i++) {
                const KubePod *pod = pod_at(p, i);
                const KubePdb *pdbs[2] = {};
                size_t n;

                if (pod->phase == POD_PENDING || !is_to_evict(p, pod))
                        continue;
                n = match_pdbs(p, pod, pdbs);
                if (n > 1 && told++ < PODS_TOLD_MAX)
                        tell_several(p, to, pod, pdbs, n);
        }
        tell_others(p, to, true, told, "SeveralPDBs", "is matched by several PodDisruptionBudgets",
                    "are matched by several PodDisruptionBudgets");
}

/* Since when the coordinator says that the PDB holds the pod; 0: it does not. Where a PDB never allows an eviction, the webhook of the
 * operator that owns it may answer for it. */
static usec_t since_held_by_pdb(const ExplainPods *p, const KubePod *pod, const KubePdb *pdb) {
        const ClaimBlocker *b = blocker_of(p, pod);
        PodWait wait = b ? pod_wait_from_string(b->reason) : _POD_WAIT_INVALID;

        return pod_wait_is_of_pdb(wait) || (wait == POD_WAIT_WEBHOOK && kube_pdb_never_allows(pdb)) ? b->since_usec : 0;
}

/* Of the pods that this PDB alone holds: the first, how many, and since when the coordinator says so. */
typedef struct HeldPods {
        const KubePod *first;
        size_t n;
        usec_t since_usec;
} HeldPods;

static HeldPods held_by(const ExplainPods *p, const KubePdb *pdb) {
        HeldPods held = {};

        for (size_t i = 0; i < p->facts->pods.n_items; i++) {
                const KubePod *pod = pod_at(p, i);
                const KubePdb *pdbs[2] = {};
                usec_t since;

                if (!kube_pdb_matches(pdb, pod) || kube_pdb_passes_by(pdb, pod) || !is_to_evict(p, pod) ||
                    match_pdbs(p, pod, pdbs) != 1)
                        continue;
                since = since_held_by_pdb(p, pod, pdb);
                held.first = held.first ?: pod;
                held.n++;
                if (since > 0 && (held.since_usec == 0 || since < held.since_usec))
                        held.since_usec = since;
        }
        return held;
}

static bool is_not_observed(const KubePdb *pdb) {
        return pdb->observed_generation < pdb->object.meta.generation;
}

static ExplainCause *add_pdb(ExplainCauses *to, const KubePdb *pdb, const HeldPods *held,
                             const char *reason) {
        const ObjectMeta *m = &pdb->object.meta;
        ExplainCause *c = explain_cause_add(to, true, reason, "PodDisruptionBudget", m->ns, m->name,
                                            held->since_usec);

        explain_cause_count(c, "healthy", pdb->current_healthy);
        explain_cause_count(c, "needed", pdb->desired_healthy);
        explain_cause_count(c, "expected", pdb->expected_pods);
        explain_cause_count(c, "allowed", pdb->disruptions_allowed);
        explain_cause_count(c, "pods", (int64_t) held->n);
        return c;
}

static void say_held(ExplainCauses *to, ExplainCause *c, const HeldPods *held) {
        if (held->n > 1)
                explain_cause_say(to, c, "It holds pod %s/%s of this node and %zu more.",
                                  pod_ns(held->first), pod_name(held->first), held->n - 1);
        else
                explain_cause_say(to, c, "It holds pod %s/%s of this node.", pod_ns(held->first),
                                  pod_name(held->first));
}

/* So that one more may go than is missing now. */
static void fix_pdb(ExplainCauses *to, ExplainCause *c, const KubePdb *pdb) {
        const ObjectMeta *m = &pdb->object.meta;
        int64_t missing = MAX(pdb->expected_pods - pdb->current_healthy, INT64_C(0));
        int64_t unavailable = MIN(missing + 1, MAX(pdb->expected_pods, INT64_C(1)));

        explain_cause_set_command(to, c,
                                  "kubectl patch poddisruptionbudget %s -n %s --type=merge -p '{\"spec\":{\"minAvailable\":null,\"maxUnavailable\":%" PRIi64 "}}'",
                                  m->name, m->ns, unavailable);
        explain_cause_advise(to, c,
                             "From then on %" PRIi64 " of its %" PRIi64 " pods may be unavailable at once%s.",
                             unavailable, MAX(pdb->expected_pods, pdb->current_healthy),
                             unavailable >= pdb->expected_pods ? ", which are all: whatever they serve is down until one is Ready elsewhere" : "");
}

/* Whoever owns such a budget may have made it on purpose: nothing advises to loosen it. */
static void tell_never(ExplainCauses *to, const KubePdb *pdb, const HeldPods *held) {
        const ObjectMeta *m = &pdb->object.meta;
        ExplainCause *c = add_pdb(to, pdb, held, POD_WAIT_NAME_PDB_NEVER);

        explain_cause_say(to, c,
                          "PodDisruptionBudget %s/%s allows no eviction as it stands: it needs %" PRIi64
                          " healthy of %" PRIi64 " expected, which %s, and %" PRIi64 " %s healthy.",
                          m->ns, m->name, pdb->desired_healthy, pdb->expected_pods,
                          pdb->desired_healthy > pdb->expected_pods ? "is more than there are"
                          : pdb->expected_pods == 1                 ? "is its only pod"
                                                                    : "is all of them",
                          pdb->current_healthy, pdb->current_healthy == 1 ? "is" : "are");
        say_held(to, c, held);
        explain_cause_say(to, c,
                          "Operators (Strimzi, KubeVirt and others) make such budgets on purpose: a webhook of theirs sees each request for an eviction, and they move the pod themselves. vesper asks for each pod once, and again every 5 minutes.");
        explain_cause_set_command(to, c, "kubectl describe poddisruptionbudget %s -n %s", m->name, m->ns);
        explain_cause_advise(to, c,
                             "If an operator owns these pods, its log says whether it moves them. If nobody does, ask the owner of the budget: another replica helps where it says a number of pods.");
}

static void tell_sync_failed(ExplainCauses *to, const KubePdb *pdb, const HeldPods *held) {
        const ObjectMeta *m = &pdb->object.meta;
        ExplainCause *c = add_pdb(to, pdb, held, POD_WAIT_NAME_PDB_SYNC_FAILED);

        explain_cause_say(to, c, "PodDisruptionBudget %s/%s allows no eviction, because kube-controller-manager cannot count it: SyncFailed: %s%s",
                          m->ns, m->name, isempty(pdb->sync_failed) ? "no message." : pdb->sync_failed, full_stop(pdb->sync_failed));
        say_held(to, c, held);
        explain_cause_say(to, c, "vesper evicts what it holds as soon as it allows a disruption.");
        explain_cause_set_command(to, c, "kubectl edit poddisruptionbudget %s -n %s", m->name, m->ns);
        explain_cause_advise(to, c,
                             "The message says why; more replicas do not help while it stands. If the pods' controller has no scale subresource, or the pods "
                             "have no controller, give the budget a minAvailable that is a number.");
}

static void tell_no_room(ExplainCauses *to, const KubePdb *pdb, const HeldPods *held) {
        ExplainCause *c;

        if (is_not_observed(pdb)) {
                c = add_pdb(to, pdb, held, "PDBNotObserved");
                explain_cause_say(to, c,
                                  "PodDisruptionBudget %s/%s has changed, and its controller has not counted since: until then no eviction passes.",
                                  pdb->object.meta.ns, pdb->object.meta.name);
                say_held(to, c, held);
                explain_cause_advise(to, c,
                                     "It passes by itself; where it does not, kube-controller-manager does not run.");
                return;
        }
        c = add_pdb(to, pdb, held, "BlockedByPDB");
        explain_cause_say(to, c,
                          "PodDisruptionBudget %s/%s allows no eviction now: %" PRIi64 " healthy, needs %" PRIi64 ", of %" PRIi64 " expected.",
                          pdb->object.meta.ns, pdb->object.meta.name, pdb->current_healthy,
                          pdb->desired_healthy, pdb->expected_pods);
        say_held(to, c, held);
        fix_pdb(to, c, pdb);
        explain_cause_advise(to, c,
                             "Better, make more of its pods Ready elsewhere: then it allows one by itself.");
}

static void find_held_by_pdbs(const ExplainPods *p, ExplainCauses *to, bool never) {
        for (size_t i = 0; i < p->facts->pdbs.n_items; i++) {
                const KubePdb *pdb = (const KubePdb *) p->facts->pdbs.items[i];
                HeldPods held;

                if ((pdb->disruptions_allowed > 0 && !is_not_observed(pdb)) || kube_pdb_never_allows(pdb) != never)
                        continue;
                held = held_by(p, pdb);
                if (held.n > 0 && pdb->sync_failed)
                        tell_sync_failed(to, pdb, &held);
                else if (held.n > 0 && never)
                        tell_never(to, pdb, &held);
                else if (held.n > 0)
                        tell_no_room(to, pdb, &held);
        }
}

/* -- terminating ---------------------------------------------------------------------------------------- */

static void advise_force_delete(ExplainCauses *to, ExplainCause *c, const KubePod *pod) {
        explain_cause_set_command(to, c, "kubectl delete pod %s -n %s --grace-period=0 --force",
                                  pod_name(pod), pod_ns(pod));
        explain_cause_advise(to, c,
                             "It takes the pod off the API and ends no container: make sure before that the machine is off, or two pods of one StatefulSet may run and write to one volume.");
}

/* Returns when the pod's deletion was asked for: its deletionTimestamp is the end of its grace. */
static usec_t deletion_began(const ObjectMeta *m) {
        return usec_sub(m->deletion_usec, (usec_t) MAX(m->deletion_grace_sec, INT64_C(0)) * USEC_PER_SEC);
}

static void tell_terminating(const ExplainPods *p, ExplainCauses *to, const KubePod *pod) {
        const ObjectMeta *m = &pod->object.meta;
        const Condition *ready = kube_node_condition(p->node, "Ready");
        char end[RFC3339_MAX], since[RFC3339_MAX];
        ExplainCause *c;

        rfc3339_format(m->deletion_usec, end);
        c = explain_cause_add(to, true, "Terminating", "Pod", m->ns, m->name, deletion_began(m));
        if (strv_length(m->finalizers) > 0) {
                explain_cause_say(to, c,
                                  "Pod %s/%s is being deleted, its grace %s at %s, and finalizer %s keeps it.",
                                  m->ns, m->name, m->deletion_usec > p->facts->now_usec ? "ends" : "ended",
                                  end, m->finalizers[0]);
                if (explain_is_word(m->finalizers[0]))
                        explain_cause_set_command(to, c,
                                                  "kubectl patch pod %s -n %s --type=json -p '[{\"op\":\"test\",\"path\":\"/metadata/finalizers/0\",\"value\":\"%s\"}," "{\"op\":\"remove\",\"path\":\"/metadata/finalizers/0\"}]'",
                                                  m->name, m->ns, m->finalizers[0]);
                explain_cause_advise(to, c,
                                     "What the controller of that finalizer has still to do for this pod stays undone: only where that controller is gone for good.");
                explain_cause_count(c, "finalizers", (int64_t) strv_length(m->finalizers));
                return;
        }
        if (kube_node_is_ready(p->node)) {
                explain_cause_say(to, c,
                                  "Pod %s/%s is being deleted, its grace ended at %s, and it is still there: its kubelet reports, and has not ended its containers.",
                                  m->ns, m->name, end);
                explain_cause_advise(to, c,
                                     "The kubelet's journal on the node says what it waits for, often a volume that does not unmount.");
                return;
        }
        explain_cause_say(to, c,
                          "Pod %s/%s is being deleted, and the node's kubelet is silent, so that nobody ends it",
                          m->ns, m->name);
        if (ready && ready->last_transition_usec > 0) {
                rfc3339_format(ready->last_transition_usec, since);
                explain_cause_say(to, c, "(not Ready since %s).", since);
        } else
                explain_cause_say(to, c, "(not Ready).");
        if (p->rules->stuck_after_usec > 0) {
                rfc3339_format(usec_add(m->deletion_usec, p->rules->stuck_after_usec), end);
                explain_cause_say(to, c, "Vesper no longer waits for it from %s on.", end);
        }
        advise_force_delete(to, c, pod);
}

static void find_terminating(const ExplainPods *p, ExplainCauses *to) {
        usec_t now = p->facts->now_usec;
        size_t n = 0;

        for (size_t i = 0; i < p->facts->pods.n_items; i++) {
                const KubePod *pod = pod_at(p, i);
                usec_t end = pod->object.meta.deletion_usec;
                bool ends = strv_length(pod->object.meta.finalizers) > 0 ? now < end
                            : kube_node_is_ready(p->node)                ? now < usec_add(end, OVERDUE_USEC)
                                                                         : false;

                if (pod_classify(pod, now, NULL, NULL) != POD_CLASS_TERMINATING || ends || !is_waited_for(p, pod))
                        continue;
                if (n++ < PODS_TOLD_MAX)
                        tell_terminating(p, to, pod);
        }
        tell_others(p, to, true, n, "Terminating", "is being deleted and does not go", "are being deleted and do not go");
}

/* -- came back too often -------------------------------------------------------------------------------- */

static void tell_return(const ExplainPods *p, ExplainCauses *to, const KubePod *pod, usec_t since_usec) {
        const ObjectMeta *m = &pod->object.meta;
        const OwnerRef *owner = object_meta_controller(m);
        _cleanup_free_ char *who = owner ? strf("%s %s", owner->kind, owner->name) : strdup("its creator");
        ExplainCause *c = explain_cause_add(to, false, POD_WAIT_NAME_COMES_BACK, "Pod", m->ns, m->name, since_usec);

        if (!who) {
                to->failed = true;
                return;
        }
        explain_cause_say(to, c,
                          "Pod %s/%s came back onto this node after %u evictions: %s made it again, in spite of the cordon. The drain no longer "
                          "evicts it and does not wait for it; it runs on until the machine ends.",
                          m->ns, m->name, POD_ROUNDS_MAX, who);
        if (owner && explain_is_word(owner->kind) && explain_is_word(owner->name))
                explain_cause_set_command(to, c, "kubectl edit %s %s -n %s", owner->kind, owner->name, m->ns);
        explain_cause_advise(to, c,
                             pod->tolerates_unschedulable
                                     ? "Take the toleration of the cordon (key node.kubernetes.io/unschedulable, or operator Exists without a key) out of the "
                                       "pod template of %s, or of the object that manages it; then delete the pod, and the next one goes elsewhere."
                                     : "Take spec.nodeName out of the pod template of %s, or of the object that manages it; then delete the pod, and the next "
                                       "one goes elsewhere.",
                             who);
}

void explain_pods_that_return(const ExplainPods *p, ExplainCauses *to) {
        size_t n = 0;

        for (size_t i = 0; i < p->facts->pods.n_items; i++) {
                const KubePod *pod = pod_at(p, i);

                if (is_return(p, pod) && n++ < PODS_TOLD_MAX)
                        tell_return(p, to, pod, since_of(p, pod, POD_WAIT_NAME_COMES_BACK));
        }
        tell_others(p, to, false, n, POD_WAIT_NAME_COMES_BACK, "came back too often, and is not waited for",
                    "came back too often, and are not waited for");
}

/* -- left alone ----------------------------------------------------------------------------------------- */

char *explain_owner_key(const char *ns, const OwnerRef *o) {
        return strf("%s/%s/%s", strempty(ns), strempty(o->name), strempty(o->uid));
}

/* Sets *ret to the reason why a daemon pod may belong to no DaemonSet: there is none, or vesper does not
 * check it. NULL: no such doubt. 0 or -ENOMEM. */
static int daemon_doubt(const ExplainPods *p, const KubePod *pod, char **ret) {
        const OwnerRef *o = object_meta_controller(&pod->object.meta);
        _cleanup_free_ char *key = NULL;
        bool is_missing;

        *ret = NULL;
        if (pod->is_static || !pod->is_daemon || !o || !streq_ptr(o->kind, "DaemonSet"))
                return 0;
        key = explain_owner_key(pod_ns(pod), o);
        if (!key)
                return -ENOMEM;
        is_missing = startswith(strempty(o->api_version), "apps/");
        if (is_missing && !strv_contains(p->facts->missing_owners, key))
                return 0;
        if (is_missing)
                *ret = strf("its controller is DaemonSet %s, and no DaemonSet of that name and uid exists",
                            o->name);
        else
                *ret = strf("its controller is DaemonSet %s of %s, which vesper does not check", o->name,
                            strempty(o->api_version));
        return *ret ? 0 : -ENOMEM;
}

/* Sets *ret to a sentence without a full stop; NULL: the pod is rightly left alone, or is not left alone. */
static int left_alone_text(const ExplainPods *p, const KubePod *pod, char **ret) {
        _cleanup_free_ char *of_daemon = NULL;
        int r = daemon_doubt(p, pod, &of_daemon);
        const char *reason = of_daemon ?: pod_static_doubt(pod);

        *ret = NULL;
        if (r < 0 || !reason)
                return r;
        *ret = strf("Pod %s/%s is neither evicted nor waited for in a drain: %s. It runs on until the "
                    "machine ends",
                    pod_ns(pod), pod_name(pod), reason);
        return *ret ? 0 : -ENOMEM;
}

void explain_pods_left_alone(const ExplainPods *p, ExplainCauses *to) {
        size_t n = 0;

        for (size_t i = 0; i < p->facts->pods.n_items; i++) {
                const KubePod *pod = pod_at(p, i);
                _cleanup_free_ char *text = NULL;
                ExplainCause *c;

                to->failed = to->failed || left_alone_text(p, pod, &text) < 0;
                if (!text || n++ >= PODS_TOLD_MAX)
                        continue;
                c = explain_cause_add(to, false, "PodLeftAlone", "Pod", pod_ns(pod), pod_name(pod),
                                      pod->object.meta.creation_usec);
                explain_cause_say(to, c, "%s.", text);
                explain_cause_set_command(to, c, "kubectl delete pod %s -n %s", pod_name(pod), pod_ns(pod));
                explain_cause_advise(to, c,
                                     "If it is neither a static pod nor a pod that runs once on each node, "
                                     "delete it with this command before the machine ends.");
        }
        tell_others(p, to, false, n, "PodLeftAlone", "is left alone in a drain, and may be neither a static pod nor a daemon pod",
                    "are left alone in a drain, and may be neither static pods nor daemon pods");
}

/* -- what the coordinator says -------------------------------------------------------------------------- */

/* The objects themselves have told of it. */
static bool is_derived(const ExplainPods *p, BlockedBy by) {
        if (by == BLOCKED_BY_PROTECTED || by == BLOCKED_BY_TERMINATING)
                return p->facts->knows_pods;
        if (by == BLOCKED_BY_PDB || by == BLOCKED_BY_PDB_NOT_OBSERVED || by == BLOCKED_BY_PDB_NEVER || by == BLOCKED_BY_PDB_SYNC_FAILED ||
            by == BLOCKED_BY_SEVERAL_PDBS)
                return p->facts->knows_pods && p->facts->knows_pdbs;
        return by == BLOCKED_BY_OTHER; /* it goes on by itself */
}

static bool is_there(const ExplainPods *p, const char *pod) {
        for (size_t i = 0; i < p->facts->pods.n_items; i++)
                if (is_ns_name(pod, pod_ns(pod_at(p, i)), pod_name(pod_at(p, i))))
                        return true;
        return !p->facts->knows_pods;
}

static const char *advice_of(BlockedBy by) {
        if (by == BLOCKED_BY_FORBIDDEN)
                return "An admission webhook or the authorizer refuses its eviction: the message says which. The coordinator needs create of pods/eviction.";
        if (by == BLOCKED_BY_NAMESPACE_TERMINATING)
                return "Its namespace is being deleted, and takes the pod with it.";
        if (by == BLOCKED_BY_FLOW_CONTROL || by == BLOCKED_BY_SERVER_BUSY || by == BLOCKED_BY_NO_ANSWER)
                return "The eviction is tried again by itself, as soon as the API server answers.";
        return pod_wait_remedy(pod_wait_from_string(blocked_by_names[by]));
}

static void find_told(const ExplainPods *p, ExplainCauses *to) {
        for (size_t i = 0; p->claim && i < p->claim->n_blockers; i++) {
                const ClaimBlocker *b = p->claim->blockers + i;
                BlockedBy by = blocked_by_from_reason(strempty(b->reason));
                const char *slash = b->pod ? strchr(b->pod, '/') : NULL;
                _cleanup_free_ char *ns = NULL;
                ExplainCause *c;

                if (!slash || is_derived(p, by) || !is_there(p, b->pod))
                        continue;
                ns = strndup(b->pod, (size_t) (slash - b->pod));
                c = explain_cause_add(to, true, b->reason, "Pod", ns, slash + 1, b->since_usec);
                explain_cause_say(to, c, "Pod %s holds it, says the coordinator (%s%s%s)%s%s%s", b->pod, b->reason, b->pdb ? " " : "", strempty(b->pdb),
                                  isempty(b->message) ? "." : ": ", strempty(b->message), full_stop(b->message));
                if (advice_of(by))
                        explain_cause_advise(to, c, "%s", advice_of(by));
        }
}

void explain_pods(const ExplainPods *p, ExplainCauses *to) {
        assert(p && p->facts && p->node && p->rules && to);
        find_protected(p, to);
        find_several(p, to);
        find_held_by_pdbs(p, to, true);
        find_held_by_pdbs(p, to, false);
        find_terminating(p, to);
        find_told(p, to);
}
