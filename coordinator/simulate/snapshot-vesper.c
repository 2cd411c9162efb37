/* SPDX-License-Identifier: Apache-2.0 */
/* vesper's own kinds in a snapshot's file: what kube-vesper.c and kube-budget.c read. */
#include <inttypes.h>

#include "snapshot-object.h"

/* Infinity is what a duration is when it is left out. */
static void write_duration(JsonWriter *w, const char *key, usec_t usec) {
        if (usec != USEC_INFINITY)
                json_addf(w, key, "%" PRIu64 "s", usec / USEC_PER_SEC);
}

static void write_pool(JsonWriter *w, const KubeNodePool *p) {
        json_open_object(w, "spec");
        selector_write(p->selector, w, "selector");
        pool_template_write(&p->template, p->termination_grace_usec, w, "template");
        pool_disruption_write(&p->disruption, w, "disruption");
        pool_offerings_write(p->offerings, p->n_offerings, w, "offerings");
        pool_limits_write(&p->limits, w, "limits");
        if (p->weight != 0)
                json_add_int64(w, "weight", p->weight);
        json_open_object(w, "provider");
        json_add_string(w, "name", p->provider_name);
        json_add_string(w, "group", p->provider_group);
        json_add_string(w, "identity", p->trusts_provider_ids ? "ProviderID" : NULL);
        json_close_object(w);
        json_add_string(w, "deletionPolicy", p->deletion_policy == DELETION_POLICY_DELETE ? "Delete" : "Release");
        repair_rules_write(p->repair, p->n_repair, w, "repair");
        json_close_object(w);
}

static void write_claim_spec(JsonWriter *w, const KubeNodeClaim *c) {
        json_open_object(w, "spec");
        json_add_string(w, "nodePool", c->node_pool);
        json_add_string(w, "providerID", c->provider_id);
        if (c->replaces)
                json_open_array(w, "replaces");
        for (size_t i = 0; c->replaces && c->replaces[i]; i++)
                json_add_string(w, NULL, c->replaces[i]);
        if (c->replaces)
                json_close_array(w);
        if (c->attempt != 1)
                json_add_int64(w, "attempt", c->attempt);
        json_add_string(w, "nodeName", c->made_for);
        write_duration(w, "terminationGracePeriod", c->termination_grace_usec);
        write_duration(w, "expireAfter", c->expire_after_usec);
        json_close_object(w);
}

static void write_claim_request(JsonWriter *w, const ClaimRequest *r) {
        if (!r->token && !r->like)
                return;
        json_open_object(w, "group");
        json_add_string(w, "token", r->token);
        json_add_string(w, "like", r->like);
        json_add_string(w, "zone", r->zone);
        json_add_string(w, "capacityType", r->capacity_type);
        json_add_time(w, "since", r->since_usec);
        json_add_time(w, "time", r->time_usec);
        json_add_string(w, "answer", r->answer);
        json_add_string(w, "message", r->message);
        if (r->unresolved)
                json_add_bool(w, "unresolved", true);
        json_close_object(w);
}

static void write_claim_status(JsonWriter *w, const KubeNodeClaim *c) {
        json_open_object(w, "status");
        json_add_string(w, "nodeName", c->node_name);
        json_add_string(w, "nodeUID", c->node_uid);
        json_add_string(w, "phase", c->phase);
        json_add_time(w, "deadline", c->deadline_usec);
        if (c->pods_left >= 0)
                json_add_int64(w, "podsLeft", c->pods_left);
        write_claim_request(w, &c->request);
        if (c->successor) {
                json_open_object(w, "successor");
                json_add_string(w, "claim", c->successor);
                json_add_bool(w, "made", c->successor_is_made);
                json_close_object(w);
        }
        snapshot_write_conditions(w, &c->object);
        json_close_object(w);
}

static void write_amount(JsonWriter *w, const char *key, const NodeAmount *a) {
        if (a->unit == NODE_AMOUNT_NODES)
                json_add_int64(w, key, a->value);
        else if (a->unit == NODE_AMOUNT_PERCENT)
                json_addf(w, key, "%" PRId64 "%%", a->value);
}

static void write_charges(JsonWriter *w, const KubeNodeBudget *b) {
        if (b->n_charges == 0)
                return;
        json_open_array(w, "disruptedNodes");
        for (size_t i = 0; i < b->n_charges; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "name", b->charges[i].name);
                json_add_string(w, "uid", b->charges[i].uid);
                json_add_string(w, "kind", kube_charge_kind_names[b->charges[i].kind]);
                json_add_string(w, "holder", b->charges[i].holder);
                json_add_string(w, "heldBefore", b->charges[i].held_before);
                json_add_time(w, "time", b->charges[i].time_usec);
                json_add_time(w, "until", b->charges[i].until_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_budget(JsonWriter *w, const KubeNodeBudget *b) {
        json_open_object(w, "spec");
        selector_write(b->selector, w, "selector");
        write_amount(w, "minAvailable", &b->min_available);
        write_amount(w, "maxUnavailable", &b->max_unavailable);
        json_close_object(w);
        json_open_object(w, "status");
        json_add_int64(w, "expectedNodes", b->expected_nodes);
        json_add_int64(w, "currentAvailable", b->current_available);
        json_add_int64(w, "desiredAvailable", b->desired_available);
        json_add_int64(w, "disruptionsAllowed", b->disruptions_allowed);
        if (b->observed_generation != -1)
                json_add_int64(w, "observedGeneration", b->observed_generation);
        write_charges(w, b);
        snapshot_write_conditions(w, &b->object);
        json_close_object(w);
}

bool snapshot_vesper_write(JsonWriter *w, const KubeObject *o) {
        if (o->kind == &kube_node_pool_kind) {
                write_pool(w, (const KubeNodePool *) o);
                json_open_object(w, "status");
                snapshot_write_conditions(w, o);
                json_close_object(w);
        } else if (o->kind == &kube_node_claim_kind) {
                write_claim_spec(w, (const KubeNodeClaim *) o);
                write_claim_status(w, (const KubeNodeClaim *) o);
        } else if (o->kind == &kube_node_budget_kind)
                write_budget(w, (const KubeNodeBudget *) o);
        else
                return false;
        return true;
}
