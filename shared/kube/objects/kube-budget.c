/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "marks.h"
#include "parse-util.h"
#include "string-util.h"

#define ALLOWED_MAX ((int64_t) INT32_MAX)

/* "0%" to "100%", as the CRD has it. */
static bool percent_parse(const char *s, int64_t *ret) {
        size_t digits = strspn(s, "0123456789");
        char text[4];
        uint64_t n;

        if (digits == 0 || digits > 3 || !streq(s + digits, "%"))
                return false;
        memcpy(text, s, digits);
        text[digits] = 0;
        if (parse_uint64(text, &n) < 0 || n > 100)
                return false;
        *ret = (int64_t) n;
        return true;
}

void decode_amount(Decoder *d, const Json *v, const char *path, NodeAmount *ret) {
        _cleanup_free_ char *clean = NULL;
        const char *s;

        if (json_int64(v, &ret->value) >= 0) {
                ret->unit = ret->value >= 0 ? NODE_AMOUNT_NODES : NODE_AMOUNT_UNSET;
                if (ret->value < 0)
                        decoder_invalid(d, "%s is negative", path);
                return;
        }
        if (json_string(v, &s) < 0) {
                if (v && !json_is_null(v))
                        decoder_invalid(d, "%s is neither a number of nodes nor a percentage", path);
                return;
        }
        if (percent_parse(s, &ret->value)) {
                ret->unit = NODE_AMOUNT_PERCENT;
                return;
        }
        clean = str_sanitize(s, 64);
        if (clean)
                decoder_invalid(d, "%s: '%s' is neither a number of nodes nor a percentage from 0%% to 100%%", path, clean);
        else
                d->failed = true;
}

const char *const kube_charge_kind_names[_NODE_CHARGE_KIND_MAX + 1] = {
        [NODE_CHARGE_DELETE] = "DELETE",
        [NODE_CHARGE_REBOOT] = "reboot",
        [NODE_CHARGE_OPERATION] = "operation",
        [NODE_CHARGE_SUCCESSOR] = "successor",
};

/* Reads kind, holder and heldBefore. A charge without a known kind and a holder was written by an earlier
 * version, whose holders no later version can verify. Such a charge is a DELETE of an unknown holder. */
static void decode_charge_holder(Decoder *d, const Json *item, NodeCharge *c) {
        _cleanup_free_ char *kind = NULL;

        decode_string(d, json_get(item, "kind"), "status.disruptedNodes.kind", &kind);
        while (c->kind < _NODE_CHARGE_KIND_MAX && !streq_ptr(kube_charge_kind_names[c->kind], kind))
                c->kind++;
        if (c->kind < _NODE_CHARGE_KIND_MAX)
                decode_string(d, json_get(item, "holder"), "status.disruptedNodes.holder", &c->holder);
        if (isempty(c->holder)) {
                c->kind = NODE_CHARGE_DELETE;
                c->holder = mfree(c->holder);
        } else
                decode_string(d, json_get(item, "heldBefore"), "status.disruptedNodes.heldBefore",
                              &c->held_before);
}

static void decode_charges(Decoder *d, const Json *v, KubeNodeBudget *b) {
        const Json *list = decode_array(d, v, "status.disruptedNodes");

        b->charges = decode_room(d, list, "status.disruptedNodes", NODE_CHARGES_MAX, sizeof(NodeCharge));
        JSON_FOREACH(i, b->charges ? list : NULL) {
                NodeCharge *c = b->charges + b->n_charges++;

                decode_string(d, json_get(i, "name"), "status.disruptedNodes.name", &c->name);
                decode_string(d, json_get(i, "uid"), "status.disruptedNodes.uid", &c->uid);
                decode_charge_holder(d, i, c);
                decode_time(d, json_get(i, "time"), "status.disruptedNodes.time", &c->time_usec);
                decode_time(d, json_get(i, "until"), "status.disruptedNodes.until", &c->until_usec);
        }
}

static void decode_budget_status(Decoder *d, const Json *status, KubeNodeBudget *b) {
        decode_int64(d, json_get(status, "expectedNodes"), "status.expectedNodes", &b->expected_nodes);
        decode_int64(d, json_get(status, "currentAvailable"), "status.currentAvailable", &b->current_available);
        decode_int64(d, json_get(status, "desiredAvailable"), "status.desiredAvailable", &b->desired_available);
        decode_int64(d, json_get(status, "disruptionsAllowed"), "status.disruptionsAllowed", &b->disruptions_allowed);
        b->disruptions_allowed = MAX(MIN(b->disruptions_allowed, ALLOWED_MAX), INT64_C(0)); /* it is counted on with */
        decode_int64(d, json_get(status, "observedGeneration"), "status.observedGeneration", &b->observed_generation);
        decode_charges(d, json_get(status, "disruptedNodes"), b);
        decode_conditions(d, json_get(status, "conditions"), &b->conditions, &b->n_conditions);
}

static int node_budget_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec");
        KubeNodeBudget *b = (KubeNodeBudget *) o;

        b->observed_generation = -1;
        decode_selector(&d, json_get(spec, "selector"), "spec.selector", &b->selector);
        decode_amount(&d, json_get(spec, "minAvailable"), "spec.minAvailable", &b->min_available);
        decode_amount(&d, json_get(spec, "maxUnavailable"), "spec.maxUnavailable", &b->max_unavailable);
        if ((b->min_available.unit == NODE_AMOUNT_UNSET) == (b->max_unavailable.unit == NODE_AMOUNT_UNSET))
                decoder_invalid(&d, "spec has %s minAvailable %s maxUnavailable: exactly one must be set",
                                b->min_available.unit == NODE_AMOUNT_UNSET ? "neither" : "both",
                                b->min_available.unit == NODE_AMOUNT_UNSET ? "nor" : "and");
        decode_budget_status(&d, json_get(json, "status"), b);
        return decoder_finish(&d);
}

static void node_budget_done(KubeObject *o, InternPool *pool) {
        KubeNodeBudget *b = (KubeNodeBudget *) o;

        selector_free(b->selector);
        for (size_t i = 0; i < b->n_charges; i++) {
                free(b->charges[i].name);
                free(b->charges[i].uid);
                free(b->charges[i].holder);
                free(b->charges[i].held_before);
        }
        free(b->charges);
        conditions_free(b->conditions, b->n_conditions, pool);
}

const KubeKind kube_node_budget_kind = {
        .group = VESPER_GROUP,
        .version = VESPER_VERSION_API,
        .plural = "nodedisruptionbudgets",
        .kind = "NodeDisruptionBudget",
        .size = sizeof(KubeNodeBudget),
        .decode = node_budget_decode,
        .done = node_budget_done,
};

bool kube_node_budget_matches(const KubeNodeBudget *b, const KubeNode *n) {
        assert(b && n);
        return !selector_is_empty(b->selector) && selector_matches(b->selector, &n->object.meta.labels);
}

const NodeCharge *kube_node_budget_charge(const KubeNodeBudget *b, const char *node_uid) {
        assert(b && node_uid);
        for (size_t i = 0; i < b->n_charges; i++)
                if (streq_ptr(b->charges[i].uid, node_uid))
                        return b->charges + i;
        return NULL;
}
