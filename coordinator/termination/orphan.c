/* SPDX-License-Identifier: Apache-2.0 */
#include "orphan.h"

#include "backoff.h"
#include "claim-status.h"
#include "hashmap.h"
#include "log-catalog.h"
#include "log.h"
#include "machine-end.h"
#include "machine-facts.h"
#include "marks.h"
#include "standalone.h"
#include "string-util.h"
#include "termination-marks.h"
#include "token-bucket.h"

#define PRESENT_AGAIN_USEC (10 * USEC_PER_MINUTE)

/* One claim without Node, or whose Node is not Ready. */
typedef struct Orphan {
        Orphans *orphans;
        char *name, *uid, *key;
        bool has_node;
        usec_t absent_usec; /* since when Node, or kubelet, loop_now() */
        usec_t next_describe_usec;
        MachineEnd *machine;
        ClaimStatus *status;
        Backoff backoff; /* of looks that were not answered */
        bool rate_taken, told_present;
} Orphan;

struct Orphans {
        const TerminationContext *context;
        Env *env;
        WorkQueue *queue;
        ObjectWrites *writes;
        Release *release;
        Hashmap *map; /* claim name -> Orphan */
        bool view_stands;
};

static void *orphan_free(void *p) {
        Orphan *x = p;

        machine_end_free(x->machine);
        claim_status_free(x->status);
        free(x->name);
        free(x->uid);
        free(x->key);
        free(x);
        return NULL;
}

int orphans_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, Release *release,
                Orphans **ret) {
        _cleanup_(orphans_freep) Orphans *o = NULL;
        int r;

        assert(context && queue && writes && release && ret);
        o = new0(Orphans, 1);
        if (!o)
                return -ENOMEM;
        o->context = context;
        o->env = context->env;
        o->queue = queue;
        o->writes = writes;
        o->release = release;
        o->view_stands = true;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &o->map);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(o);
        return 0;
}

Orphans *orphans_free(Orphans *o) {
        if (!o)
                return NULL;
        hashmap_free_with(o->map, orphan_free);
        free(o);
        return NULL;
}

size_t orphans_size(const Orphans *o) {
        const Orphan *x;
        size_t n = 0;

        HASHMAP_FOREACH (x, o->map)
                n += !x->has_node;
        return n;
}

void orphans_view_changed(Orphans *o, bool stands) {
        Orphan *x;

        o->view_stands = stands;
        HASHMAP_FOREACH (x, o->map) {
                x->absent_usec = loop_now(o->env->loop);
                (void) work_queue_add(o->queue, x->key);
        }
}

static void forget(Orphans *o, const char *name) {
        Orphan *x = hashmap_remove(o->map, name);

        if (x)
                orphan_free(x);
}

/* -- the claim of a Node -------------------------------------------------------------------------------- */

/* The Node this claim was made for. Several with its providerID: the one it names; NULL if it names none of
 * them. */
static const KubeNode *node_of_claim(const Orphans *o, const KubeNodeClaim *claim, bool *ret_any) {
        bool several = false;
        const KubeNode *n =
                cluster_view_node_of_provider_id(o->context->view, strempty(claim->provider_id), &several);
        const KubeNode *named =
                claim->node_name ? cluster_view_node(o->context->view, claim->node_name) : NULL;

        *ret_any = n;
        if (!several)
                return n;
        return named && streq_ptr(named->provider_id, claim->provider_id) ? named : NULL;
}

static void delete_node(Orphans *o, const KubeNodeClaim *claim, const KubeNode *n, const char *key) {
        ObjectWrite w = { .what = "delete the claim's",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key };
        _cleanup_free_ char *body = NULL;
        int r;

        r = termination_add_finalizer_patch(&n->object, &body);
        if (r < 0)
                (void) work_queue_retry(o->queue, key);
        else if (r > 0)
                (void) object_writes_patch(o->writes, &w, KUBE_PATCH_MERGE, body);
        else if (object_writes_delete(o->writes, &w, n->object.meta.uid, NULL) > 0)
                log_info(o->env->log, "NodeClaim %s is being deleted: deleting its node %s",
                         claim->object.meta.name, n->object.meta.name);
}

/* The claim is being deleted. */
static void cascade(Orphans *o, const KubeNodeClaim *claim, const KubeNode *n, const char *key) {
        EventObject object = event_object(&claim->object);

        if (!n)
                event_record(o->context->recorder, &object, EVENT_WARNING, "SeveralNodes",
                             "Several Nodes have providerID %s, and status.nodeName names none of them: delete the one that is to go",
                             claim->provider_id);
        else if (n->object.meta.deletion_usec == 0)
                delete_node(o, claim, n, key);
}

/* -- the claim whose Node, or kubelet, is absent -------------------------------------------------------- */

static void on_machine(MachineEnd *m, void *userdata) {
        Orphan *x = userdata;

        (void) work_queue_add(x->orphans->queue, x->key);
}

static int orphan_new(Orphans *o, const KubeNodeClaim *claim, bool has_node, const char *key, Orphan **ret) {
        Orphan *x = new0(Orphan, 1);
        int r;

        if (!x)
                return -ENOMEM;
        x->orphans = o;
        x->has_node = has_node;
        x->absent_usec = loop_now(o->env->loop);
        x->backoff = (Backoff){ .base_usec = USEC_PER_SEC,
                                .cap_usec = 5 * USEC_PER_MINUTE,
                                .jitter_permille = 200 };
        if (free_and_strdup(&x->name, claim->object.meta.name) < 0 ||
            free_and_strdup(&x->uid, claim->object.meta.uid) < 0 || free_and_strdup(&x->key, key) < 0)
                r = -ENOMEM;
        else
                r = hashmap_put(o->map, x->name, x);
        if (r < 0) {
                orphan_free(x);
                return r;
        }
        *ret = x;
        return 0;
}

static int make_machine(Orphan *x, const KubeNodeClaim *claim, const KubeNode *n) {
        const TerminationContext *c = x->orphans->context;
        /* The Node's removal may have begun before the Node went: it is the same one. */
        _cleanup_free_ char *op_id = strf("terminate-%s", claim->node_uid ? claim->node_uid : x->uid);
        const KubeNodePool *pool = cluster_view_pool(c->view, strempty(claim->node_pool));
        MachineFacts facts;
        MachineEndOptions o = { .guard = c->guard,
                                .machine = &facts.machine,
                                .op_id = op_id,
                                .pool = claim->node_pool,
                                .identity = &claim->identity,
                                .changed = on_machine,
                                .userdata = x };

        if (x->machine)
                return 0;
        if (!op_id)
                return -ENOMEM;
        if (!machine_facts_fill(&facts, c->cloud, n, claim, pool ? pool->provider_name : NULL))
                facts.machine.provider_id = ""; /* which no provider answers for */
        o.provider = facts.provider;
        o.born_usec = facts.born_usec;
        return machine_end_new(x->orphans->env, &o, &x->machine);
}

static bool trusts_provider_id(const Orphan *x, const KubeNodeClaim *claim) {
        const KubeNodePool *pool =
                cluster_view_pool(x->orphans->context->view, strempty(claim->node_pool));

        return pool && pool->trusts_provider_ids;
}

static const KubeNodeClaim *on_claim_now(void *userdata) {
        const Orphan *x = userdata;
        const KubeNodeClaim *claim = cluster_view_claim(x->orphans->context->view, x->name);

        return claim && streq(claim->object.meta.uid, x->uid) ? claim : NULL;
}

static void say(Orphan *x, const KubeNodeClaim *claim, const char *reason, const char *message) {
        Orphans *o = x->orphans;
        EventObject object = event_object(&claim->object);

        if (!x->status &&
            claim_status_new(o->context->client, o->context->guard, x->name, on_claim_now, x, NULL,
                             &x->status) < 0)
                return;
        claim_status_note_invalid(x->status, claim);
        claim_status_set_condition(x->status, CLAIM_NODE_ABSENT, CONDITION_TRUE, reason, message);
        event_record(o->context->recorder, &object, EVENT_WARNING, reason, "%s", message);
}

/* version: only as it is in view; NULL: however it is. True: it is sent. */
static bool delete_claim(Orphan *x, const KubeNodeClaim *claim, const char *version) {
        const ObjectMeta *m = &claim->object.meta;
        ObjectWrite w = { .what = "delete",
                          .target = { .kind = &kube_node_claim_kind, .name = m->name },
                          .state = m->uid,
                          .reconcile_key = x->key };

        return object_writes_delete(x->orphans->writes, &w, m->uid, version) > 0;
}

/* Deleted first, then our finalizer: without that a person's claim would be one that was never adopted, and stay. */
static void finish(Orphan *x, const KubeNodeClaim *claim, const char *why) {
        Orphans *o = x->orphans;
        const char *name = claim->object.meta.name;

        if (claim->object.meta.deletion_usec == 0) {
                if (delete_claim(x, claim, claim->object.meta.resource_version))
                        log_info(o->env->log, "NodeClaim %s has no Node, and %s: deleting it", name, why);
                return;
        }
        if (o->context->keeps_claim(claim, o->context->userdata)) {
                (void) work_queue_add_at(o->queue, x->key, usec_add(loop_now(o->env->loop), USEC_PER_SEC));
                return;
        }
        log_event(o->env->log, LOG_LEVEL_INFO, MESSAGE_FINALIZER_REMOVED,
                  LOG_FIELDS({ "NODECLAIM", name }, { "PROVIDER_ID", claim->provider_id }),
                  "NodeClaim %s has no Node, and %s: removing its finalizer", name, why);
        release_claim(o->release, claim, x->key);
}

static void end_machine(Orphan *x) {
        Orphans *o = x->orphans;
        usec_t at;

        if (!x->rate_taken && !token_bucket_take(o->context->rate, loop_now(o->env->loop), &at)) {
                (void) work_queue_add_at(o->queue, x->key, at);
                return;
        }
        x->rate_taken = true;
        machine_end_terminate(x->machine);
}

/* present: as the last look said; then there is no hurry. */
static void look(Orphan *x, bool present) {
        usec_t now = loop_now(x->orphans->env->loop);

        if (now >= x->next_describe_usec) {
                x->next_describe_usec =
                        usec_add(now, present ? PRESENT_AGAIN_USEC
                                              : backoff_next(&x->backoff, x->orphans->env->random));
                machine_end_describe(x->machine);
        }
        (void) work_queue_add_at(x->orphans->queue, x->key, x->next_describe_usec);
}

/* It cascades to the Node, whose removal looks at the machine again. */
static void delete_of_silent(Orphan *x, const KubeNodeClaim *claim, const KubeNode *n, const char *why) {
        if (delete_claim(x, claim, NULL))
                log_info(x->orphans->env->log, "Node %s is not Ready, and %s: deleting its NodeClaim %s",
                         n->object.meta.name, why, claim->object.meta.name);
}

/* A kubelet that is silent comes back, or its machine is gone: nothing else is of interest here. */
static void decide_of_silent(Orphan *x, const KubeNodeClaim *claim, const KubeNode *n) {
        switch (machine_end_state(x->machine)) {
        case MACHINE_GONE:
                delete_of_silent(x, claim, n, "its machine is gone");
                return;
        case MACHINE_ENDING:
                delete_of_silent(x, claim, n, "its machine cannot come back");
                return;
        case MACHINE_MISSING:
                if (machine_end_is_proved(x->machine))
                        delete_of_silent(x, claim, n, "the cloud does not find its machine any more");
                else
                        look(x, true);
                return;
        case MACHINE_PRESENT:
                backoff_reset(&x->backoff);
                look(x, true);
                return;
        case MACHINE_UNKNOWN:
                look(x, false);
                return;
        }
}

static void decide(Orphan *x, const KubeNodeClaim *claim) {
        bool deleting = claim->object.meta.deletion_usec > 0;
        const char *reason = "CloudUnknown", *problem = machine_end_problem(x->machine, &reason);

        /* It still has no Node. */
        machine_end_confirm(x->machine, usec_add(loop_now(x->orphans->env->loop), MACHINE_END_CONFIRMED_USEC));
        switch (machine_end_state(x->machine)) {
        case MACHINE_GONE:
                finish(x, claim, "its machine is gone");
                return;
        case MACHINE_ENDING:
                finish(x, claim, "its machine cannot come back");
                return;
        case MACHINE_MISSING:
                finish(x, claim, "the cloud does not find its machine any more");
                return;
        case MACHINE_PRESENT:
                if (deleting) {
                        if (problem)
                                say(x, claim, reason, problem);
                        end_machine(x);
                        return;
                }
                backoff_reset(&x->backoff);
                /* A new machine is not a node yet: it has its launchTimeout. */
                if (!x->told_present && !kube_node_claim_is_new(claim))
                        say(x, claim, "MachineWithoutNode",
                            "The machine is there, its Node is not. "
                            "If it does not come back, delete this NodeClaim: that ends the machine");
                x->told_present = true;
                look(x, true);
                return;
        case MACHINE_UNKNOWN:
                if (problem)
                        say(x, claim, reason, problem);
                look(x, false);
                return;
        }
}

/* n: one that is not Ready; NULL: there is none. */
static void reconcile_absence(Orphans *o, const KubeNodeClaim *claim, const KubeNode *n, const char *key) {
        Orphan *x = hashmap_get(o->map, claim->object.meta.name);
        usec_t now = loop_now(o->env->loop), due;

        if (x && (!streq(x->uid, claim->object.meta.uid) || x->has_node != (n != NULL))) {
                forget(o, claim->object.meta.name);
                x = NULL;
        }
        if (!x && orphan_new(o, claim, n, key, &x) < 0) {
                (void) work_queue_retry(o->queue, key);
                return;
        }
        if (!o->view_stands)
                return; /* what is absent from an old view proves nothing */
        due = usec_add(x->absent_usec, ORPHAN_ABSENCE_USEC);
        if (now < due) {
                (void) work_queue_add_at(o->queue, key, due);
                return;
        }
        if (make_machine(x, claim, n) < 0) {
                (void) work_queue_retry(o->queue, key);
                return;
        }
        machine_end_trust(x->machine, trusts_provider_id(x, claim));
        if (n)
                decide_of_silent(x, claim, n);
        else
                decide(x, claim);
}

/* -- the standalone claim that is not acted on ---------------------------------------------------------- */

/* Returns true if the machine's Node has our finalizer and is being deleted. Its removal may have deleted the claim, takes T from the claim,
 * and ends the machine; so the claim stays until the Node is gone. */
static bool node_is_being_removed(const Orphans *o, const KubeNodeClaim *claim) {
        const KubeNode *n;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes_of_provider_id(o->context->view, strempty(claim->provider_id), &it, &n);)
                if (n->object.meta.deletion_usec > 0 && object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION))
                        return true;
        return false;
}

/* Says why the claim is not adopted. A deleted claim loses the finalizer once no removal of its Node goes on. */
static void refuse(Orphans *o, const KubeNodeClaim *claim, const char *reason, const char *message, const char *key) {
        EventObject object = event_object(&claim->object);
        ObjectWrite w = { .what = "write the status of",
                          .reconcile_key = key,
                          .state = claim->object.meta.resource_version,
                          .target = { .kind = &kube_node_claim_kind, .name = claim->object.meta.name, .subresource = "status" } };
        _cleanup_free_ char *body = NULL;
        int r;

        if (claim->object.meta.deletion_usec > 0) {
                if (object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION) && !node_is_being_removed(o, claim))
                        release_claim(o->release, claim, key);
                return;
        }
        r = message ? standalone_refusal_patch(claim, reason, message, loop_wall(o->env->loop), &body) : -ENOMEM;
        if (r < 0)
                (void) work_queue_retry(o->queue, key);
        else if (r > 0 && object_writes_patch(o->writes, &w, KUBE_PATCH_MERGE, body) > 0)
                event_record(o->context->recorder, &object, EVENT_WARNING, "NotAdopted", "%s", message);
}

/* Returns true if the machine was launched for another claim, which names it too: a leader whose view lacked that claim has adopted
 * the Node by this one. */
static bool is_launched_for_another(const Orphans *o, const KubeNodeClaim *claim) {
        const KubeNode *n = cluster_view_node_of_provider_id(o->context->view, strempty(claim->provider_id), NULL);
        const KubeNodeClaim *other = n ? cluster_view_claim_of_node(o->context->view, n) : NULL;

        return other && other != claim && kube_node_claim_is_launched(other) && !claim->replaces && other->object.meta.deletion_usec == 0 &&
               claim->object.meta.deletion_usec == 0 && streq_ptr(other->provider_id, claim->provider_id);
}

void orphans_reconcile_claim(Orphans *o, const char *name, const KubeNodeClaim *claim) {
        _cleanup_free_ char *key = strf("claim/%s", name), *message = NULL;
        const char *reason;
        const KubeNode *n;
        bool any, ours;

        if (!key) {
                work_queue_note_lost(o->queue);
                return;
        }
        if (!claim) {
                forget(o, name);
                return;
        }
        reason = standalone_refusal(o->context->view, o->context->cloud, claim, &message);
        if (reason) {
                forget(o, name);
                refuse(o, claim, reason, message, key);
                return;
        }
        if (is_launched_for_another(o, claim)) {
                forget(o, name);
                release_claim(o->release, claim, key);
                return;
        }
        n = node_of_claim(o, claim, &any);
        ours = object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION);
        if (!any && (ours || hashmap_contains(o->map, name)))
                reconcile_absence(o, claim, NULL, key);
        else if (n && ours && claim->object.meta.deletion_usec == 0 && n->object.meta.deletion_usec == 0 &&
                 !kube_node_is_ready(n))
                reconcile_absence(o, claim, n, key);
        else {
                forget(o, name);
                if (any && ours && claim->object.meta.deletion_usec > 0)
                        cascade(o, claim, n, key);
        }
}

void orphans_next_wakeup(const Orphans *o, Wakeups *w) {
        const Orphan *x;

        HASHMAP_FOREACH (x, o->map) {
                const KubeNodeClaim *claim = cluster_view_claim(o->context->view, x->name);

                wakeups_unfinished(w, "orphan", x->name, x->has_node ? "its Node is not Ready" : "no Node",
                                   ORPHAN_WAKEUP_USEC);
                wakeups_key(w, o->queue, x->key);
                wakeups_await(w, !o->view_stands || (x->machine && machine_end_will_report(x->machine)));
                wakeups_await(w,
                              object_writes_are_under_way(o->writes, &kube_node_claim_kind, NULL, x->name));
                /* The NodeClaim is being deleted, and only the finalizer of another controller keeps it. */
                wakeups_await(w, claim && claim->object.meta.deletion_usec > 0 &&
                              !object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION));
                if (x->machine)
                        machine_end_next_wakeup(x->machine, w);
                if (x->status)
                        claim_status_next_wakeup(x->status, w);
        }
}
