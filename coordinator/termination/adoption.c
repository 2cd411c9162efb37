/* SPDX-License-Identifier: Apache-2.0 */
#include "adoption.h"

#include "claim-body.h"
#include "claim-name.h"
#include "claim-status.h"
#include "coordinator-metrics.h"
#include "hashmap.h"
#include "identity-proofs.h"
#include "interruption-due.h"
#include "log-catalog.h"
#include "log.h"
#include "machine-facts.h"
#include "marks.h"
#include "pauses.h"
#include "standalone.h"
#include "status-patch.h"
#include "string-util.h"
#include "termination-marks.h"
#include "voluntary-deletes.h"

/* So long a Node may be without a providerID before that is said. */
#define PROVIDER_ID_USEC (2 * USEC_PER_MINUTE)
/* The API server's clock, and ours. */
#define CLOCKS_APART_USEC USEC_PER_MINUTE
#define LAUNCH_LOOK_AGAIN_USEC USEC_PER_SEC
/* A machine whose launch is not known comes within that, or counts as any other. */
#define LAUNCH_UNKNOWN_USEC (15 * USEC_PER_MINUTE)
#define MACHINE_NAME_MAX_BYTES 128u /* of a UUID or machine id, in the CRD */
#define PROVIDER_ID_MAX_BYTES 2048u /* of a claim's providerID, in the CRD */
/* Maximum number of Nodes that adoption_next_wakeup() reports on: tests with thousands of Nodes would be
 * slow. */
#define REPORTED_NODES_MAX 200u

struct Adoption {
        const TerminationContext *context;
        WorkQueue *queue;
        ObjectWrites *writes;
        Release *release;
        IdentityProofs *proofs;
        Hashmap *unadopted; /* name of a node that a pool selects and none adopts -> why, static */
};

int adoption_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, Release *release,
                 Adoption **ret) {
        _cleanup_(adoption_freep) Adoption *a = NULL;
        int r;

        assert(context && queue && writes && release && ret);
        a = new0(Adoption, 1);
        if (!a)
                return -ENOMEM;
        a->context = context;
        a->queue = queue;
        a->writes = writes;
        a->release = release;
        r = hashmap_new(0, &a->unadopted);
        if (r >= 0)
                r = identity_proofs_new(context, queue, &a->proofs);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(a);
        return 0;
}

Adoption *adoption_free(Adoption *a) {
        if (!a)
                return NULL;
        identity_proofs_free(a->proofs);
        hashmap_free(a->unadopted);
        free(a);
        return NULL;
}

/* -- the claim ------------------------------------------------------------------------------------------ */

/* Left out where it is none: the CRD would refuse the whole claim. */
static void add_machine_name(JsonWriter *w, const char *key, const char *value) {
        if (value && strlen(value) <= MACHINE_NAME_MAX_BYTES)
                json_add_string(w, key, value);
}

char *adoption_claim_body(const KubeNodePool *pool, const KubeNode *n) {
        const char *id = kube_node_machine_id(n);
        _cleanup_free_ char *name = claim_name(pool->object.meta.name, id, n->object.meta.uid);
        JsonWriter *w = name ? claim_body_open(pool, name) : NULL;

        if (!w)
                return NULL;
        json_add_string(w, "providerID", id);
        json_add_string(w, "nodeName", n->object.meta.name);
        add_machine_name(w, "systemUUID", n->system_uuid);
        add_machine_name(w, "machineID", n->machine_id);
        return claim_body_close(w, pool);
}

/* True: the claim is there as far as the API server is concerned. */
static void make_claim(Adoption *a, const KubeNodePool *pool, const KubeNode *n, const char *key) {
        _cleanup_free_ char *name = claim_name(pool->object.meta.name, kube_node_machine_id(n),
                                                        n->object.meta.uid);
        _cleanup_free_ char *body = adoption_claim_body(pool, n);
        ObjectWrite w = { .what = "create",
                          .target = { .kind = &kube_node_claim_kind, .name = name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key,
                          .also_fine = "AlreadyExists" };

        if (!name || !body)
                (void) work_queue_retry(a->queue, key);
        else
                (void) object_writes_create(a->writes, &w, body);
}

/* -- the finalizers ------------------------------------------------------------------------------------- */

static void on_node_adopted(const char *name, const ApiError *error, void *userdata) {
        Adoption *a = userdata;

        if (error)
                return;
        metrics_add(a->context->metrics, METRIC_ADOPTIONS, 0, 1);
        log_event(a->context->env->log, LOG_LEVEL_INFO, MESSAGE_NODE_ADOPTED, LOG_FIELDS({ "NODE", name }),
                  "Node %s is managed from now on: deleting it drains it and ends its machine", name);
}

/* made: what came of making the body. 1: a patch is on its way, or could not be sent; 0: all of it is there. */
static int put(Adoption *a, const KubeObject *o, int made, const char *body, const char *key,
               object_written_t written) {
        ObjectWrite w = { .what = "put the finalizer on",
                          .target = { .kind = o->kind, .name = o->meta.name },
                          .state = o->meta.resource_version,
                          .reconcile_key = key,
                          .written = written,
                          .userdata = a };

        if (made < 0)
                (void) work_queue_retry(a->queue, key);
        else if (made > 0)
                (void) object_writes_patch(a->writes, &w, KUBE_PATCH_MERGE, body);
        return made != 0;
}

static int put_finalizer(Adoption *a, const KubeNodeClaim *claim, const char *key) {
        _cleanup_free_ char *body = NULL;
        int r = termination_add_finalizer_patch(&claim->object, &body);

        return put(a, &claim->object, r, body, key, NULL);
}

/* The finalizer and the label. */
static int put_marks(Adoption *a, const KubeNode *n, const KubeNodeClaim *claim, const char *key) {
        bool adopted = object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
        _cleanup_free_ char *body = NULL;
        int r = termination_adopt_patch(n, strempty(claim->node_pool), &body);

        return put(a, &n->object, r, body, key, adopted ? NULL : on_node_adopted);
}

/* -- the claim's status --------------------------------------------------------------------------------- */

static const struct {
        const char *type, *reason, *message;
        bool wants_ready;
} adopted_conditions[] = {
        { CLAIM_LAUNCHED, "Adopted", "The machine was there when its node was adopted", false },
        { CLAIM_REGISTERED, "Adopted", "The Node is there", false },
        { CLAIM_INITIALIZED, "NodeReady", "The Node was seen Ready", true },
};

/* vesper has asked for the machine: nothing that its Node begins with keeps pods away any more. */
static bool startup_is_over(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n) {
        const KubeNodePool *pool = cluster_view_pool(v, strempty(c->node_pool));

        for (size_t i = 0; i < n->n_taints; i++) {
                const Taint *t = n->taints + i;

                if (startswith(t->key, TAINT_READINESS_PREFIX))
                        return false;
                for (size_t k = 0; pool && k < pool->template.n_startup_taints; k++)
                        if (streq(pool->template.startup_taints[k].key, t->key) &&
                            streq_ptr(pool->template.startup_taints[k].effect, t->effect))
                                return false;
        }
        return true;
}

bool adoption_is_initialized(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n) {
        return kube_node_is_ready(n) && (!c->replaces || startup_is_over(v, c, n));
}

static bool condition_is_true(const KubeNodeClaim *c, const char *type) {
        const Condition *k = kube_node_claim_condition(c, type);

        return k && k->status == CONDITION_TRUE;
}

/* What this proof calls for; false: nothing. Its texts are borrowed. */
static bool identity_condition(const KubeNodeClaim *c, const IdentityProof *proof, Condition *ret) {
        const char *method = proof->state == IDENTITY_PROOF_PROVED ? proof->method
                             : proof->state == IDENTITY_PROOF_NONE ? c->identity.method
                                                                   : NULL;

        *ret = (Condition){ .type = CLAIM_IDENTITY_PROVED };
        if (method) {
                ret->status = CONDITION_TRUE;
                ret->reason = method;
                ret->message = "The instance belongs to this Node, as was proved";
        } else if (proof->state == IDENTITY_PROOF_UNPROVED) {
                ret->status = CONDITION_FALSE;
                ret->reason = proof->reason;
                ret->message = proof->message;
        }
        return ret->reason;
}

static bool identity_is_right(const KubeNodeClaim *c, const IdentityProof *proof) {
        Condition wanted;

        if (!identity_condition(c, proof, &wanted))
                return true;
        if (proof->state == IDENTITY_PROOF_PROVED &&
            (!streq_ptr(c->identity.instance_id, proof->instance_id) ||
             !streq_ptr(c->identity.region, proof->region) || !streq_ptr(c->identity.method, proof->method)))
                return false;
        return condition_is_said(&c->object, &wanted);
}

/* What a standalone claim says that was refused before; false: nothing. */
static bool no_longer_refused(const KubeNodeClaim *c, Condition *ret) {
        *ret = (Condition){ .type = CLAIM_NOT_ADOPTED, .status = CONDITION_FALSE, .reason = "Adopted" };
        return kube_node_claim_condition(c, CLAIM_NOT_ADOPTED);
}

/* While it is in service. */
static const char *phase_of(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n) {
        return kube_node_claim_is_new(c) && !adoption_is_initialized(v, c, n) ? "Registered" : "Adopted";
}

/* Initialized stays true once a Ready was seen. */
static bool status_is_right(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n, const IdentityProof *proof) {
        Condition invalid, refused;

        if (!streq_ptr(c->phase, phase_of(v, c, n)) || !streq_ptr(c->node_name, n->object.meta.name) ||
            kube_node_claim_condition(c, CLAIM_NODE_ABSENT) || !identity_is_right(c, proof) ||
            (claim_invalid_condition(c, &invalid) && !condition_is_said(&c->object, &invalid)) ||
            (no_longer_refused(c, &refused) && !condition_is_said(&c->object, &refused)))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(adopted_conditions); i++)
                if (!condition_is_true(c, adopted_conditions[i].type) &&
                    (!adopted_conditions[i].wants_ready || adoption_is_initialized(v, c, n)))
                        return false;
        return true;
}

/* What is kept of a pool that believes providerIDs no longer goes. */
static void add_identity(JsonWriter *w, const KubeNodeClaim *c, const IdentityProof *proof) {
        if (proof->state == IDENTITY_PROOF_PROVED) {
                json_open_object(w, "identity");
                json_add_string(w, "instanceID", proof->instance_id);
                json_add_string(w, "region", proof->region);
                json_add_string(w, "method", proof->method);
                json_close_object(w);
        } else if (proof->state == IDENTITY_PROOF_UNPROVED && c->identity.method)
                json_add_null(w, "identity");
}

/* The Node is there. */
static char *status_body(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n, const IdentityProof *proof,
                         usec_t now_usec) {
        Condition ours[ELEMENTSOF(adopted_conditions) + 3];
        JsonWriter *w = status_patch_open(&c->object);
        size_t n_ours = 0;

        if (!w)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(adopted_conditions); i++) {
                bool met = condition_is_true(c, adopted_conditions[i].type) ||
                           !adopted_conditions[i].wants_ready || adoption_is_initialized(v, c, n);

                if (c->replaces && streq(adopted_conditions[i].type, CLAIM_LAUNCHED))
                        continue; /* launches.c has said it */
                ours[n_ours++] = (Condition){
                        .type = adopted_conditions[i].type,
                        .status = met ? CONDITION_TRUE : CONDITION_FALSE,
                        .reason = met ? adopted_conditions[i].reason : "NodeNotReady",
                        .message = met ? adopted_conditions[i].message : "The Node has not been Ready yet",
                };
        }
        n_ours += identity_condition(c, proof, ours + n_ours);
        n_ours += claim_invalid_condition(c, ours + n_ours);
        n_ours += no_longer_refused(c, ours + n_ours);
        for (size_t i = 0; i < n_ours; i++)
                ours[i].last_transition_usec = now_usec;
        json_add_string(w, "phase", phase_of(v, c, n));
        json_add_string(w, "nodeName", n->object.meta.name);
        json_add_string(w, "nodeUID", n->object.meta.uid);
        add_identity(w, c, proof);
        status_patch_add_conditions(w, &c->object, ours, n_ours, 0, (const char *const[]){ CLAIM_NODE_ABSENT, NULL });
        return status_patch_close(w);
}

static void say_unproved(Adoption *a, const KubeNodeClaim *c, const KubeNode *n, const IdentityProof *proof) {
        EventObject node = event_object(&n->object), claim = event_object(&c->object);

        log_event(a->context->env->log, LOG_LEVEL_WARNING, MESSAGE_IDENTITY_UNPROVED,
                  LOG_FIELDS({ "NODE", n->object.meta.name }, { "REASON", proof->reason }), "Node %s: %s",
                  n->object.meta.name, proof->message);
        event_record(a->context->recorder, &node, EVENT_WARNING, "IdentityUnproved", "%s", proof->message);
        event_record(a->context->recorder, &claim, EVENT_WARNING, "IdentityUnproved", "%s", proof->message);
}

/* On the Node, and on the Node in whose place it came while that is there. */
static void say_successor_ready(Adoption *a, const KubeNodeClaim *c, const KubeNode *n) {
        const KubeNodeClaim *old = cluster_view_claim(a->context->view, c->replaces[0]);
        const KubeNode *old_node =
                old && old->node_name ? cluster_view_node(a->context->view, old->node_name) : NULL;
        const char *kind = old_node ? "node" : "NodeClaim";
        const char *name = old_node ? old_node->object.meta.name : c->replaces[0];
        EventObject node = event_object(&n->object);

        log_event(a->context->env->log, LOG_LEVEL_NOTICE, MESSAGE_SUCCESSOR_READY,
                  LOG_FIELDS({ "NODE", n->object.meta.name }, { "NODECLAIM", c->object.meta.name }),
                  "Node %s is Ready and takes pods in place of %s %s", n->object.meta.name, kind, name);
        event_record(a->context->recorder, &node, EVENT_NORMAL, "SuccessorReady",
                     "The node takes pods in place of %s %s", kind, name);
        if (old_node) {
                EventObject replaced = event_object(&old_node->object);

                event_record(a->context->recorder, &replaced, EVENT_NORMAL, "SuccessorReady",
                             "Node %s (NodeClaim %s) takes pods in place of this one", n->object.meta.name,
                             c->object.meta.name);
        }
}

/* Identity and adoption are told together where the first answer is a matter of moments. */
static void write_status(Adoption *a, const KubeNodeClaim *c, const KubeNode *n, const IdentityProof *proof,
                         const char *key) {
        ObjectWrite w = { .what = "write the status of",
                          .reconcile_key = key,
                          .state = c->object.meta.resource_version,
                          .target = { .kind = &kube_node_claim_kind,
                                      .name = c->object.meta.name,
                                      .subresource = "status" } };
        _cleanup_free_ char *body = NULL;

        if (proof->soon || status_is_right(a->context->view, c, n, proof))
                return;
        body = status_body(a->context->view, c, n, proof, loop_wall(a->context->env->loop));
        if (!body)
                (void) work_queue_retry(a->queue, key);
        else if (object_writes_patch(a->writes, &w, KUBE_PATCH_MERGE, body) > 0) {
                if (proof->state == IDENTITY_PROOF_UNPROVED && !identity_is_right(c, proof))
                        say_unproved(a, c, n, proof);
                if (kube_node_claim_is_new(c) && adoption_is_initialized(a->context->view, c, n))
                        say_successor_ready(a, c, n);
        }
}

/* -- one node ------------------------------------------------------------------------------------------- */

static void say(Adoption *a, const KubeNode *n, const char *reason, const char *message) {
        EventObject o = event_object(&n->object);

        event_record(a->context->recorder, &o, EVENT_WARNING, reason, "%s", message);
}

/* The label asks for the node's deletion. */
static void delete_if_terminable(Adoption *a, const KubeNode *n, const KubeNodePool *pool, const char *key) {
        ObjectWrite w = { .what = "delete the terminable",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = key };

        if (streq_ptr(object_meta_label(&n->object.meta, LABEL_LIFECYCLE_PHASE), "terminable") &&
            voluntary_delete_is_admitted(a->context->deletes, n, pool, "it is labelled " LABEL_LIFECYCLE_PHASE "=terminable", key) &&
            object_writes_delete(a->writes, &w, n->object.meta.uid, n->object.meta.resource_version) > 0)
                log_info(a->context->env->log,
                         "Node %s is labelled " LABEL_LIFECYCLE_PHASE "=terminable, deleting it",
                         n->object.meta.name);
}

/* What is interrupted is drained and ended ahead of its time, so that it is replaced at once. Its
 * agent drains; T is the notice's (node-deadline.h). */
static void delete_if_interrupted(Adoption *a, const KubeNode *n, const KubeNodeClaim *claim,
                                  const char *key) {
        const ObjectMeta *m = &claim->object.meta;
        Loop *loop = a->context->env->loop;
        ObjectWrite w = { .what = "delete the interrupted",
                          .target = { .kind = &kube_node_claim_kind, .name = m->name },
                          .state = m->uid,
                          .reconcile_key = key };
        usec_t due = interruption_due(a->context->config, n, claim).at_usec;

        if (due == USEC_INFINITY)
                return;
        if (loop_wall(loop) < due) {
                (void) work_queue_add_at(a->queue, key, loop_from_wall(loop, due));
                return;
        }
        if (object_writes_delete(a->writes, &w, m->uid, NULL) > 0)
                log_info(a->context->env->log,
                         "A notice announces the end of the machine of node %s: deleting its NodeClaim %s",
                         n->object.meta.name, m->name);
}

/* What makes an adopted node: claim, finalizers, status; each where it is missing. */
static void keep(Adoption *a, const KubeNode *n, const KubeNodeClaim *claim, const char *key) {
        const KubeNodePool *pool = cluster_view_pool(a->context->view, strempty(claim->node_pool));
        IdentityProof proof = identity_proofs_ask(a->proofs, n, claim, pool, key);

        if (put_finalizer(a, claim, key) != 0 || put_marks(a, n, claim, key) != 0)
                return;
        write_status(a, claim, n, &proof, key);
        delete_if_terminable(a, n, pool, key);
        delete_if_interrupted(a, n, claim, key);
}

/* Its providerID is still to come, or none comes and there is no other name for its machine. */
static bool lacks_provider_id(const CloudProvider *p, const KubeNode *n) {
        return !n->provider_id &&
               (!p->ops->takes_names || kube_node_has_taint(n, TAINT_UNINITIALIZED, NULL));
}

/* A Node without a providerID belongs to no provider yet: its pool may say to which. */
static const CloudProvider *provider_of_node(const CloudRegistry *cloud, const KubeNodePool *pool, const KubeNode *n) {
        const CloudProvider *named = !n->provider_id && pool->provider_name
                                             ? cloud_registry_named(cloud, pool->provider_name)
                                             : NULL;

        return named ? named : cloud_registry_chosen(cloud, kube_node_machine_id(n), pool->provider_name);
}

static char *other_provider_message(const CloudRegistry *cloud, const CloudProvider *p, const KubeNodePool *pool,
                                    const KubeNode *n) {
        _cleanup_free_ char *names = cloud_registry_names(cloud);
        bool has = cloud_registry_named(cloud, pool->provider_name);

        return strf("Node %s: NodePool %s wants provider '%s', and %s '%s': not adopted", n->object.meta.name,
                    pool->object.meta.name, pool->provider_name,
                    has ? "its machine belongs to" : "this coordinator has", has ? p->ops->name : strempty(names));
}

/* NULL: it can; else why not, as in adoption_refusal(). */
static const char *provider_can_end_it(const CloudRegistry *cloud, const KubeNodePool *pool, const KubeNode *n,
                                       char **ret_message) {
        const CloudProvider *p = provider_of_node(cloud, pool, n);
        _cleanup_free_ char *shown = str_sanitize(strempty(n->provider_id), MACHINE_ID_SHOWN_MAX);
        const char *name = n->object.meta.name;

        if (pool->provider_name && !streq(pool->provider_name, p->ops->name)) {
                *ret_message = other_provider_message(cloud, p, pool, n);
                return "OtherProvider";
        }
        if (!pool->provider_name && cloud->n_providers > 1 && !p->ops->proves_identity) {
                *ret_message = strf("Node %s: its machine would be provider '%s's, which takes a kubelet's word for it, and with several "
                                    "providers it serves only pools that name it: not adopted. If it is right, set "
                                    "spec.provider.name: %s on NodePool %s",
                                    name, p->ops->name, p->ops->name, pool->object.meta.name);
                return "OtherProvider";
        }
        if (lacks_provider_id(p, n)) {
                *ret_message =
                        p->ops->takes_names
                                ? strf("Node %s has no spec.providerID, and still the taint " TAINT_UNINITIALIZED
                                       ": not adopted before its cloud controller manager has come by",
                                       name)
                                : strf("Node %s has no spec.providerID, and provider '%s' finds no machine without one: not adopted. "
                                       "A cloud controller manager sets it, or the kubelet's --provider-id",
                                       name, p->ops->name);
                return "NoProviderID";
        }
        if (strlen(kube_node_machine_id(n)) > PROVIDER_ID_MAX_BYTES) {
                *ret_message = strf("Node %s: its spec.providerID has %zu bytes, and a NodeClaim has room for %u: not adopted",
                                    name, strlen(kube_node_machine_id(n)), PROVIDER_ID_MAX_BYTES);
                return "ProviderIDTooLong";
        }
        if (!p->ops->owns(p, kube_node_machine_id(n)) || machine_named_for_another(n)) {
                *ret_message =
                        strf("Node %s: provider '%s' cannot end a machine with providerID '%s': not adopted",
                             name, p->ops->name, strempty(shown));
                return "ForeignMachine";
        }
        return NULL;
}

/* Two Nodes say that they are the same machine: the one that came first, or has the claim, is it. Its name;
 * NULL: no other is. */
static const char *machine_is_anothers(const ClusterView *v, const KubeNode *n) {
        bool several = false;
        const char *id = kube_node_machine_id(n);
        const KubeNode *first = cluster_view_node_of_provider_id(v, id, &several);
        const KubeNodeClaim *claim;
        const char *other = several && first != n ? first->object.meta.name : NULL;

        if (!several)
                return NULL;
        for (HashmapIterator it = {}; cluster_view_iterate_claims(v, &it, &claim);)
                if (streq_ptr(claim->provider_id, id))
                        other = claim->node_name ? claim->node_name : claim->object.meta.name;
        return other;
}

const char *adoption_refusal(const ClusterView *view, const CloudRegistry *cloud,
                             const KubeNodePool *pool, const KubeNode *n, usec_t wall_now_usec,
                             char **ret_message) {
        _cleanup_free_ char *shown = NULL;
        const char *reason, *other;

        *ret_message = NULL;
        reason = provider_can_end_it(cloud, pool, n, ret_message);
        if (reason) {
                /* A cloud controller manager may still bring it. */
                if (wall_now_usec < usec_add(n->object.meta.creation_usec, PROVIDER_ID_USEC) &&
                    !n->provider_id)
                        *ret_message = mfree(*ret_message);
                return reason;
        }
        other = machine_is_anothers(view, n);
        if (!other)
                return NULL;
        shown = str_sanitize(kube_node_machine_id(n), MACHINE_ID_SHOWN_MAX);
        *ret_message = strf("Node %s: its providerID %s is that of %s, too: not adopted",
                            n->object.meta.name, strempty(shown), other);
        return "SharedMachine";
}

static void mark_pools(Adoption *a) {
        const KubeNodePool *pool;

        for (HashmapIterator it = {}; cluster_view_iterate_pools(a->context->view, &it, &pool);) {
                _cleanup_free_ char *key = strf("pool/%s", pool->object.meta.name);

                if (key)
                        (void) work_queue_add(a->queue, key);
                else
                        work_queue_note_lost(a->queue);
        }
}

/* The pools say so, too, each in its condition. reason: static; said once. */
static void note_unadopted(Adoption *a, const KubeNode *n, const char *event, const char *reason,
                           const char *message) {
        void *old;

        if (streq_ptr(hashmap_get(a->unadopted, n->object.meta.name), reason))
                return;
        if (message && hashmap_replace(a->unadopted, n->object.meta.name, (void *) reason, &old) >= 0) {
                say(a, n, event, message);
                mark_pools(a);
        }
}

static void forget_unadopted(Adoption *a, const char *node) {
        if (hashmap_remove(a->unadopted, node))
                mark_pools(a);
}

void adoption_forget_node(Adoption *a, const char *node) {
        identity_proofs_forget(a->proofs, node);
        forget_unadopted(a, node);
}

/* Before this Node came, the cloud was asked for a machine for that pool, which it may have launched and has not named. The
 * Node may be that machine's. */
static bool may_be_launched(const Adoption *a, const KubeNodePool *pool, const KubeNode *n) {
        const KubeNodeClaim *claim;

        for (HashmapIterator it = {}; cluster_view_iterate_claims(a->context->view, &it, &claim);)
                if (!claim->provider_id && claim_request_is_open(&claim->request) && streq_ptr(claim->node_pool, pool->object.meta.name) &&
                    claim->request.since_usec <= usec_add(n->object.meta.creation_usec, CLOCKS_APART_USEC) &&
                    loop_wall(a->context->env->loop) < usec_add(claim->request.time_usec, LAUNCH_UNKNOWN_USEC))
                        return true;
        return false;
}

static void adopt(Adoption *a, const KubeNodePool *pool, const KubeNode *n, const char *key) {
        Loop *loop = a->context->env->loop;
        _cleanup_free_ char *message = NULL;
        const char *reason =
                adoption_refusal(a->context->view, a->context->cloud, pool, n, loop_wall(loop), &message);

        if (!reason && may_be_launched(a, pool, n))
                (void) work_queue_add_at(a->queue, key, usec_add(loop_now(loop), LAUNCH_LOOK_AGAIN_USEC));
        else if (!reason) {
                forget_unadopted(a, n->object.meta.name);
                make_claim(a, pool, n, key);
                (void) identity_proofs_ask(a->proofs, n, NULL, pool, key); /* meanwhile */
        } else if (message)
                note_unadopted(a, n, "NotAdopted", reason, message);
        else
                (void) work_queue_add_at(
                        a->queue, key,
                        MAX(loop_from_wall(loop, usec_add(n->object.meta.creation_usec, PROVIDER_ID_USEC)),
                            usec_add(loop_now(loop), USEC_PER_SEC)));
}

static bool pool_is_unclear(const KubeNodePool *pool) {
        return pool->object.meta.deletion_usec == 0 &&
               (pool->object.invalid || selector_is_empty(pool->selector));
}

/* No pool selects it, but the one it belongs to has a say: it cannot be understood now, or its deletion
 * removes its nodes. Without a claim it may belong to any. A person's annotation overrules all of them. */
static bool pool_holds_on(const Adoption *a, const KubeNode *n, const KubeNodeClaim *claim) {
        const KubeNodePool *pool;

        if (kube_node_is_unmanaged(n))
                return false;
        if (n->object.meta.labels.is_cut) /* nobody knows that its pool does not select it any more */
                return true;
        for (HashmapIterator it = {}; cluster_view_iterate_pools(a->context->view, &it, &pool);) {
                if (claim && !streq_ptr(claim->node_pool, pool->object.meta.name))
                        continue;
                if (pool_is_unclear(pool) || (claim && pool->object.meta.deletion_usec > 0 &&
                                              pool->deletion_policy == DELETION_POLICY_DELETE))
                        return true;
        }
        return false;
}

static void note_conflict(Adoption *a, const KubeNode *n, const KubeNodePool *pool,
                          const KubeNodePool *other) {
        _cleanup_free_ char *message = strf(
                "NodePools %s and %s both select this node: neither adopts it. Make their selectors differ",
                pool->object.meta.name, other->object.meta.name);

        note_unadopted(a, n, "PoolsConflict", "PoolsConflict", message);
}

/* The claim by which this Node was adopted, or is to be; NULL: none, or a standalone one that is not acted on. */
static const KubeNodeClaim *claim_that_counts(const Adoption *a, const KubeNode *n) {
        const KubeNodeClaim *claim = cluster_view_claim_of_node(a->context->view, n);
        _cleanup_free_ char *message = NULL;

        return claim && !standalone_refusal(a->context->view, a->context->cloud, claim, &message) ? claim : NULL;
}

typedef enum AdoptionAct { ADOPTION_NOTHING, ADOPTION_ADOPT, ADOPTION_KEEP, ADOPTION_RELEASE } AdoptionAct;

/* Returns what a reconcile does with the Node. pool: the NodePool of POOL_MATCH_ONE. */
static AdoptionAct adoption_act(const Adoption *a, const KubeNode *n, const KubeNodeClaim *claim,
                                PoolMatch match, const KubeNodePool *pool) {
        if (claim && claim->object.meta.deletion_usec > 0)
                return ADOPTION_NOTHING; /* the Node's turn comes: orphan.h */
        if (claim && kube_node_claim_is_standalone(claim)) /* pools have no say */
                return kube_node_is_unmanaged(n) ? ADOPTION_RELEASE : ADOPTION_KEEP;
        switch (match) {
        case POOL_MATCH_NONE:
                if (!release_is_called_for(n, claim))
                        return ADOPTION_NOTHING;
                if (!pool_holds_on(a, n, claim))
                        return ADOPTION_RELEASE;
                return claim ? ADOPTION_KEEP : ADOPTION_NOTHING;
        case POOL_MATCH_ONE:
                if (claim) /* a Node that changed pools is released, then adopted anew */
                        return streq_ptr(claim->node_pool, pool->object.meta.name) ? ADOPTION_KEEP
                                                                                   : ADOPTION_RELEASE;
                /* The pool needs its own finalizer first, so that nobody misses its deletion. The pool's
                 * change marks the Node. */
                return object_meta_has_finalizer(&pool->object.meta, FINALIZER_TERMINATION)
                               ? ADOPTION_ADOPT
                               : ADOPTION_NOTHING;
        case POOL_MATCH_SEVERAL:
                /* A pool keeps the Nodes that it had before. */
                return claim ? ADOPTION_KEEP : ADOPTION_NOTHING;
        }
        assert(false && "a match without a value");
}

void adoption_reconcile_node(Adoption *a, const KubeNode *n) {
        const KubeNodePool *pool = NULL, *other = NULL;
        const KubeNodeClaim *claim = claim_that_counts(a, n);
        PoolMatch match = cluster_view_pool_of_node(a->context->view, n, &pool, &other);
        _cleanup_free_ char *key = strf("node/%s", n->object.meta.name);

        assert(n->object.meta.deletion_usec == 0);
        if (!key) {
                work_queue_note_lost(a->queue);
                return;
        }
        if (match == POOL_MATCH_SEVERAL && !(claim && kube_node_claim_is_standalone(claim)))
                note_conflict(a, n, pool, other);
        else if (match == POOL_MATCH_NONE && !claim)
                adoption_forget_node(a, n->object.meta.name);
        else if (match == POOL_MATCH_NONE || claim)
                forget_unadopted(a, n->object.meta.name);
        switch (adoption_act(a, n, claim, match, pool)) {
        case ADOPTION_NOTHING:
                break;
        case ADOPTION_ADOPT:
                adopt(a, pool, n, key);
                break;
        case ADOPTION_KEEP:
                keep(a, n, claim, key);
                break;
        case ADOPTION_RELEASE:
                release_node(a->release, n, claim);
                break;
        }
}

/* -- tests ---------------------------------------------------------------------------------------------- */

/* Returns what a Node that a pool adopts or keeps still lacks; NULL: nothing, or the reconcile has reported why
 * it cannot go on. */
static const char *adoption_lacks(const Adoption *a, const KubeNode *n, const KubeNodeClaim *claim,
                                  const KubeNodePool *pool) {
        usec_t wall = loop_wall(a->context->env->loop);
        _cleanup_free_ char *message = NULL;

        if (!claim && may_be_launched(a, pool, n))
                return NULL;
        if (!claim) {
                (void) adoption_refusal(a->context->view, a->context->cloud, pool, n, wall, &message);
                return message ? NULL : "NodeClaim";
        }
        if (!object_meta_has_finalizer(&claim->object.meta, FINALIZER_TERMINATION) ||
            !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION))
                return "finalizer";
        if (!streq_ptr(claim->phase, phase_of(a->context->view, claim, n)) || !streq_ptr(claim->node_name, n->object.meta.name))
                return "status";
        if (streq_ptr(object_meta_label(&n->object.meta, LABEL_LIFECYCLE_PHASE), "terminable"))
                return "deletion";
        return NULL;
}

/* Returns true if heard-drain.c alone reconciles the Node: the queue has announced something, and nobody
 * manages the Node. */
static bool is_heard_alone(const KubeNode *n, const KubeNodeClaim *claim, PoolMatch match) {
        return !claim && match == POOL_MATCH_NONE && (n->heard || n->announced.n_items > 0) &&
               !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
}

static void report_node(const Adoption *a, const KubeNode *n, Wakeups *w) {
        const KubeNodePool *pool = NULL;
        const KubeNodeClaim *claim = claim_that_counts(a, n);
        PoolMatch match = cluster_view_pool_of_node(a->context->view, n, &pool, NULL);
        AdoptionAct act = adoption_act(a, n, claim, match, pool);
        const char *name = n->object.meta.name, *lacks = NULL;
        usec_t due = act == ADOPTION_KEEP ? interruption_due(a->context->config, n, claim).at_usec : USEC_INFINITY,
               wall = loop_wall(a->context->env->loop);
        const char *pool_name = pool ? pool->object.meta.name : claim ? claim->node_pool : NULL;
        _cleanup_free_ char *key = strf("node/%s", name), *pool_key = strf("pool/%s", strempty(pool_name)), *to_create = NULL;

        if (act == ADOPTION_RELEASE)
                lacks = release_is_unfinished(a->release, n, claim) ? "release" : NULL;
        else if (act != ADOPTION_NOTHING)
                lacks = adoption_lacks(a, n, claim, pool);
        if (!key || !pool_key || is_heard_alone(n, claim, match) || (!lacks && due == USEC_INFINITY))
                return;
        if (act == ADOPTION_ADOPT)
                to_create = claim_name(pool->object.meta.name, kube_node_machine_id(n), n->object.meta.uid);
        wakeups_unfinished(w, "adoption of node", name, lacks ?: "deletion for a notice",
                           usec_add(OBJECT_WRITES_WAKEUP_USEC, lacks ? 0 : usec_sub(due, wall)));
        wakeups_key(w, a->queue, key);
        wakeups_key(w, a->queue, pool_key); /* which marks the nodes of a pool that has changed */
        wakeups_await(w, object_writes_are_under_way(a->writes, &kube_node_kind, NULL, name));
        wakeups_await(w, object_writes_are_under_way(a->writes, &kube_node_claim_kind, NULL,
                                                     claim ? claim->object.meta.name : strempty(to_create)));
        /* The answer of the ledger and the end of a pause mark the key. */
        wakeups_await(w, voluntary_delete_is_asked(a->context->deletes, name) ||
                      pauses_is_paused(a->context->pauses, pool));
}

void adoption_next_wakeup(const Adoption *a, Wakeups *w) {
        bool is_small = cluster_view_n_nodes(a->context->view) <= REPORTED_NODES_MAX;
        const KubeNode *n;

        for (HashmapIterator it = {}; is_small && cluster_view_iterate_nodes(a->context->view, &it, &n);)
                if (n->object.meta.deletion_usec == 0)
                        report_node(a, n, w);
        identity_proofs_next_wakeup(a->proofs, w);
}
