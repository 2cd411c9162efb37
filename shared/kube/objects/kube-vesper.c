/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "marks.h"
#include "string-util.h"

static bool vesper_annotation_wanted(const char *key) {
        return startswith(key, VESPER_GROUP "/");
}

/* -- Namespace ------------------------------------------------------------------------------------------------------ */

const KubeKind kube_namespace_kind = {
        .group = "",
        .version = "v1",
        .plural = "namespaces",
        .kind = "Namespace",
        .size = sizeof(KubeObject),
        .annotation_wanted = vesper_annotation_wanted,
        .shape = &kube_shape_namespace,
};

/* -- NodePool ------------------------------------------------------------------------------------------------------- */

static void decode_deletion_policy(Decoder *d, const Json *v, DeletionPolicy *ret) {
        _cleanup_free_ char *s = NULL;

        decode_string(d, v, "spec.deletionPolicy", &s);
        if (!s || streq(s, "Release"))
                *ret = DELETION_POLICY_RELEASE;
        else if (streq(s, "Delete"))
                *ret = DELETION_POLICY_DELETE;
        else
                decoder_invalid(d, "spec.deletionPolicy is neither Release nor Delete");
}

static void decode_provider(Decoder *d, const Json *provider, KubeNodePool *p) {
        _cleanup_free_ char *identity = NULL;

        decode_string(d, json_get(provider, "name"), "spec.provider.name", &p->provider_name);
        decode_string(d, json_get(provider, "group"), "spec.provider.group", &p->provider_group);
        decode_string(d, json_get(provider, "identity"), "spec.provider.identity", &identity);
        p->trusts_provider_ids = identity && streq(identity, "ProviderID");
        if (identity && !p->trusts_provider_ids)
                decoder_invalid(d, "spec.provider.identity is not ProviderID");
}

static int node_pool_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec");
        KubeNodePool *p = (KubeNodePool *) o;

        p->termination_grace_usec = USEC_INFINITY;
        decode_selector(&d, json_get(spec, "selector"), "spec.selector", &p->selector);
        decode_duration(&d, json_path(spec, "template", "terminationGracePeriod", NULL),
                        "spec.template.terminationGracePeriod", false, &p->termination_grace_usec);
        decode_pool_template(&d, json_get(spec, "template"), &p->template);
        decode_pool_disruption(&d, json_get(spec, "disruption"), &p->disruption);
        decode_pool_offerings(&d, json_get(spec, "offerings"), &p->offerings, &p->n_offerings);
        decode_pool_limits(&d, json_get(spec, "limits"), &p->limits);
        decode_int64(&d, json_get(spec, "weight"), "spec.weight", &p->weight);
        decode_provider(&d, json_get(spec, "provider"), p);
        decode_deletion_policy(&d, json_get(spec, "deletionPolicy"), &p->deletion_policy);
        decode_repair(&d, json_get(spec, "repair"), &p->repair, &p->n_repair);
        decode_conditions(&d, json_path(json, "status", "conditions", NULL), &p->conditions, &p->n_conditions);
        return decoder_finish(&d);
}

static void node_pool_done(KubeObject *o, InternPool *pool) {
        KubeNodePool *p = (KubeNodePool *) o;

        selector_free(p->selector);
        pool_template_done(&p->template, pool);
        pool_disruption_done(&p->disruption);
        pool_offerings_free(p->offerings, p->n_offerings, pool);
        key_values_done(&p->limits, pool);
        free(p->provider_name);
        free(p->provider_group);
        repair_rules_free(p->repair, p->n_repair);
        conditions_free(p->conditions, p->n_conditions, pool);
}

const KubeKind kube_node_pool_kind = {
        .group = VESPER_GROUP,
        .version = VESPER_VERSION_API,
        .plural = "nodepools",
        .kind = "NodePool",
        .size = sizeof(KubeNodePool),
        .decode = node_pool_decode,
        .done = node_pool_done,
        .annotation_wanted = vesper_annotation_wanted,
};

/* -- NodeClaim ------------------------------------------------------------------------------------------------------ */

static void decode_blockers(Decoder *d, const Json *v, KubeNodeClaim *c) {
        const Json *list = decode_array(d, v, "status.blockers");

        c->blockers = decode_room(d, list, "status.blockers", DECODE_LIST_MAX, sizeof(ClaimBlocker));
        JSON_FOREACH(i, c->blockers ? list : NULL) {
                ClaimBlocker *b = c->blockers + c->n_blockers++;

                decode_string(d, json_get(i, "pod"), "status.blockers.pod", &b->pod);
                decode_string(d, json_get(i, "reason"), "status.blockers.reason", &b->reason);
                decode_string(d, json_get(i, "pdb"), "status.blockers.pdb", &b->pdb);
                decode_string(d, json_get(i, "message"), "status.blockers.message", &b->message);
                decode_time(d, json_get(i, "since"), "status.blockers.since", &b->since_usec);
        }
}

#define REPLACES_MAX 100u /* maxItems in the CRD */

static void decode_request(Decoder *d, const Json *v, ClaimRequest *ret) {
        decode_string(d, json_get(v, "token"), "status.group.token", &ret->token);
        decode_string(d, json_get(v, "like"), "status.group.like", &ret->like);
        decode_string(d, json_get(v, "zone"), "status.group.zone", &ret->zone);
        decode_string(d, json_get(v, "capacityType"), "status.group.capacityType", &ret->capacity_type);
        decode_time(d, json_get(v, "since"), "status.group.since", &ret->since_usec);
        decode_time(d, json_get(v, "time"), "status.group.time", &ret->time_usec);
        decode_string(d, json_get(v, "answer"), "status.group.answer", &ret->answer);
        decode_string(d, json_get(v, "message"), "status.group.message", &ret->message);
        decode_bool(d, json_get(v, "unresolved"), "status.group.unresolved", &ret->unresolved);
}

/* The words of cloud_answer_names that decide nothing. */
bool claim_request_is_open(const ClaimRequest *r) {
        return r->token && (r->unresolved || !r->answer || streq(r->answer, "unknown") || streq(r->answer, "accepted"));
}

static void request_done(ClaimRequest *r) {
        free(r->token);
        free(r->like);
        free(r->zone);
        free(r->capacity_type);
        free(r->answer);
        free(r->message);
}

static void decode_identity(Decoder *d, const Json *v, ClaimIdentity *ret) {
        decode_string(d, json_get(v, "instanceID"), "status.identity.instanceID", &ret->instance_id);
        decode_string(d, json_get(v, "region"), "status.identity.region", &ret->region);
        decode_string(d, json_get(v, "method"), "status.identity.method", &ret->method);
}

static void decode_claim_status(Decoder *d, const Json *status, KubeNodeClaim *c) {
        decode_identity(d, json_get(status, "identity"), &c->identity);
        decode_string(d, json_get(status, "nodeName"), "status.nodeName", &c->node_name);
        decode_string(d, json_get(status, "nodeUID"), "status.nodeUID", &c->node_uid);
        decode_string(d, json_get(status, "phase"), "status.phase", &c->phase);
        decode_time(d, json_get(status, "deadline"), "status.deadline", &c->deadline_usec);
        decode_string(d, json_get(status, "lastCloudError"), "status.lastCloudError", &c->last_cloud_error);
        decode_int64(d, json_get(status, "podsLeft"), "status.podsLeft", &c->pods_left);
        decode_blockers(d, json_get(status, "blockers"), c);
        decode_request(d, json_get(status, "group"), &c->request);
        decode_string(d, json_path(status, "successor", "claim", NULL), "status.successor.claim", &c->successor);
        decode_bool(d, json_path(status, "successor", "made", NULL), "status.successor.made", &c->successor_is_made);
        decode_conditions(d, json_get(status, "conditions"), &c->conditions, &c->n_conditions);
}

/* A deadline that cannot be read shortens nothing, and makes the object invalid. */
static void decode_force_deadline(Decoder *d, KubeNodeClaim *c) {
        const char *text = object_meta_annotation(&c->object.meta, ANNOTATION_FORCE_DEADLINE);

        c->force_deadline_usec = USEC_INFINITY;
        if (text && rfc3339_parse(text, &c->force_deadline_usec) < 0) {
                c->force_deadline_usec = USEC_INFINITY;
                decoder_invalid(d, "annotation " ANNOTATION_FORCE_DEADLINE
                                   " is not a time like 2027-01-15T08:00:00Z: nothing is forced");
        }
}

static int node_claim_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec");
        KubeNodeClaim *c = (KubeNodeClaim *) o;

        c->termination_grace_usec = c->expire_after_usec = USEC_INFINITY;
        c->pods_left = -1;
        c->attempt = 1;
        decode_string(&d, json_get(spec, "nodePool"), "spec.nodePool", &c->node_pool);
        decode_string(&d, json_get(spec, "providerID"), "spec.providerID", &c->provider_id);
        decode_names(&d, json_get(spec, "replaces"), "spec.replaces", NULL, REPLACES_MAX, &c->replaces);
        decode_int64(&d, json_get(spec, "attempt"), "spec.attempt", &c->attempt);
        decode_string(&d, json_get(spec, "nodeName"), "spec.nodeName", &c->made_for);
        decode_string(&d, json_get(spec, "systemUUID"), "spec.systemUUID", &c->system_uuid);
        decode_string(&d, json_get(spec, "machineID"), "spec.machineID", &c->machine_id);
        decode_duration(&d, json_get(spec, "terminationGracePeriod"), "spec.terminationGracePeriod", false,
                        &c->termination_grace_usec);
        decode_duration(&d, json_get(spec, "expireAfter"), "spec.expireAfter", true, &c->expire_after_usec);
        decode_force_deadline(&d, c);
        decode_announced(&d, &c->announced, &c->let_go_usec);
        decode_claim_status(&d, json_get(json, "status"), c);
        return decoder_finish(&d);
}

static void node_claim_done(KubeObject *o, InternPool *pool) {
        KubeNodeClaim *c = (KubeNodeClaim *) o;

        free(c->node_pool);
        free(c->provider_id);
        free(c->replaces);
        request_done(&c->request);
        free(c->successor);
        free(c->made_for);
        free(c->system_uuid);
        free(c->machine_id);
        free(c->identity.instance_id);
        free(c->identity.region);
        free(c->identity.method);
        free(c->node_name);
        free(c->node_uid);
        free(c->phase);
        free(c->last_cloud_error);
        for (size_t i = 0; i < c->n_blockers; i++) {
                free(c->blockers[i].pod);
                free(c->blockers[i].reason);
                free(c->blockers[i].pdb);
                free(c->blockers[i].message);
        }
        free(c->blockers);
        announced_list_done(&c->announced);
        conditions_free(c->conditions, c->n_conditions, pool);
}

static const JsonOmit claim_unread[] = { { "metadata", "managedFields" } };

const KubeKind kube_node_claim_kind = {
        .group = VESPER_GROUP,
        .version = VESPER_VERSION_API,
        .plural = "nodeclaims",
        .kind = "NodeClaim",
        .size = sizeof(KubeNodeClaim),
        .decode = node_claim_decode,
        .done = node_claim_done,
        .annotation_wanted = vesper_annotation_wanted,
        .unread = claim_unread,
        .n_unread = ELEMENTSOF(claim_unread),
};

const Condition *kube_node_pool_condition(const KubeNodePool *p, const char *type) {
        assert(p);
        return condition_find(p->conditions, p->n_conditions, type);
}

bool kube_node_claim_is_standalone(const KubeNodeClaim *c) {
        assert(c);
        return isempty(c->node_pool);
}

bool kube_node_claim_is_adopted(const KubeNodeClaim *c) {
        assert(c);
        return object_meta_has_finalizer(&c->object.meta, FINALIZER_TERMINATION) && !isempty(c->node_uid);
}

bool kube_node_claim_is_launched(const KubeNodeClaim *c) {
        return c->replaces && c->request.token;
}

bool kube_node_claim_is_new(const KubeNodeClaim *c) {
        const Condition *k = kube_node_claim_condition(c, CLAIM_INITIALIZED);

        return c->replaces && !(k && k->status == CONDITION_TRUE);
}

const Condition *kube_node_claim_condition(const KubeNodeClaim *c, const char *type) {
        assert(c);
        return condition_find(c->conditions, c->n_conditions, type);
}
