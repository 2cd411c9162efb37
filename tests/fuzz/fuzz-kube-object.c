/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz-objects.h"
#include "string-util.h"

/*
 * Any JSON, read as each kind: an object, whole or with a sentence about what is wrong, or -EINVAL; every
 * interned text is given back. And good objects bent: a good one is taken whole, and reading twice reads the
 * same.
 */

static const struct {
        const KubeKind *kind;
        const char *template;
} kinds[] = {
        { &kube_node_kind, fuzz_node },
        { &kube_pod_kind, fuzz_pod },
        { &kube_pdb_kind, fuzz_pdb },
        { &kube_lease_kind, fuzz_lease },
        { &kube_volume_attachment_kind, fuzz_volume_attachment },
        { &kube_pvc_kind, fuzz_pvc },
        { &kube_node_pool_kind, fuzz_node_pool },
        { &kube_node_claim_kind, fuzz_node_claim },
        { &kube_node_budget_kind, fuzz_node_budget },
        { &kube_certificate_secret_kind, fuzz_secret },
        { &kube_webhook_configuration_kind, fuzz_webhooks },
        { &kube_scheduled_node_kind, fuzz_scheduled_node },
        { &kube_volume_kind, fuzz_volume },
        { &kube_scheduled_claim_kind, fuzz_scheduled_claim },
        { &kube_storage_class_kind, fuzz_storage_class },
        { &kube_csi_node_kind, fuzz_csi_node },
        { &kube_namespace_kind, fuzz_namespace },
};

static void check_sorted(const KeyValues *kv) {
        for (size_t i = 0; i < kv->n_items; i++) {
                assert(key_values_get(kv, kv->items[i].key) == kv->items[i].value);
                assert(i == 0 || strcmp(kv->items[i - 1].key, kv->items[i].key) < 0);
        }
}

static void check_object(const KubeObject *o) {
        _cleanup_free_ char *key = kube_object_key(o);

        assert(key && !isempty(o->meta.name));
        assert(!o->invalid || *o->invalid);
        assert(o->meta.ns || !o->kind->namespaced || o->invalid);
        check_sorted(&o->meta.labels);
        check_sorted(&o->meta.annotations);
}

static void check_budget(const KubeNodeBudget *b) {
        const NodeAmount *amounts[] = { &b->min_available, &b->max_unavailable };

        for (size_t i = 0; i < ELEMENTSOF(amounts); i++) {
                assert(amounts[i]->unit == NODE_AMOUNT_UNSET || amounts[i]->value >= 0);
                assert(amounts[i]->unit != NODE_AMOUNT_PERCENT || amounts[i]->value <= 100);
        }
        assert(b->object.invalid ||
               (b->min_available.unit == NODE_AMOUNT_UNSET) != (b->max_unavailable.unit == NODE_AMOUNT_UNSET));
        assert(!kube_node_budget_charge(b, "nobody's") || b->n_charges > 0);
}

/* What a pattern is searched for in comes from a Node. */
static void check_repair(const KubeNodePool *p) {
        for (size_t i = 0; i < p->n_repair; i++) {
                assert(p->object.invalid || !isempty(p->repair[i].condition));
                assert(p->object.invalid || !p->repair[i].reason == !p->repair[i].reason_pattern);
                if (p->repair[i].reason_pattern)
                        (void) regexec(p->repair[i].reason_pattern, "KubeletNotReady", 0, NULL, 0);
        }
}

/* A label of each kind is judged by whatever a pool requires. */
static void check_disruption(const KubeNodePool *p) {
        const PoolTemplate *t = &p->template;

        for (size_t i = 0; i < p->disruption.n_budgets; i++)
                assert(p->object.invalid || (p->disruption.budgets[i].nodes.unit != NODE_AMOUNT_UNSET &&
                                             p->disruption.budgets[i].nodes.value >= 0));
        assert(p->disruption.max_concurrent >= 0);
        for (size_t i = 0; i + 1 < t->labels.n_items; i++)
                assert(strcmp(t->labels.items[i].key, t->labels.items[i + 1].key) < 0);
        for (size_t i = 0; i < t->n_requirements && !p->object.invalid; i++)
                (void) pool_requirement_holds(t->requirements + i, &t->labels);
        for (size_t i = 0; i < p->n_offerings; i++)
                assert(p->object.invalid || (p->offerings[i].instance_type && p->offerings[i].price_micros >= 0));
        for (size_t i = 0; i < p->limits.n_items; i++) {
                int64_t amount;

                assert(p->object.invalid || quantity_parse(p->limits.items[i].value, false, QUANTITY_ROUND_DOWN, &amount) != -EINVAL);
        }
}

static void check_kinds(const KubeObject *o) {
        if (o->kind == &kube_node_kind)
                (void) kube_node_is_ready((const KubeNode *) o);
        if (o->kind == &kube_pod_kind)
                assert(((const KubePod *) o)->grace_sec >= 0);
        if (o->kind == &kube_pdb_kind)
                assert(((const KubePdb *) o)->selector || o->invalid);
        if (o->kind == &kube_node_pool_kind) {
                assert(((const KubeNodePool *) o)->selector || o->invalid);
                check_repair((const KubeNodePool *) o);
                check_disruption((const KubeNodePool *) o);
        }
        if (o->kind == &kube_node_budget_kind)
                check_budget((const KubeNodeBudget *) o);
        if (o->kind == &kube_node_claim_kind)
                (void) kube_node_claim_condition((const KubeNodeClaim *) o, "Drained");
}

/* What a kind says that it does not read makes no difference to it. */
static void check_unread(const KubeKind *kind, const char *data, size_t size, const KubeObject *o,
                         InternPool *pool) {
        const JsonOmits omits = { .list = kind->unread, .n_list = kind->n_unread };
        _cleanup_(kube_object_unrefp) KubeObject *other = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert(json_parse_without(data, size, size, &omits, &doc, NULL) >= 0);
        assert(kube_object_decode(kind, json_root(doc), pool, &other) >= 0);
        assert(streq(other->meta.name, o->meta.name) && streq_ptr(other->invalid, o->invalid));
        assert(other->meta.labels.n_items == o->meta.labels.n_items);
        if (kind == &kube_pod_kind) {
                const KubePod *a = (const KubePod *) o, *b = (const KubePod *) other;

                assert(a->node_name == b->node_name && a->ready == b->ready && a->phase == b->phase);
                assert(a->grace_sec == b->grace_sec && a->is_static == b->is_static);
                assert(a->tolerates_disrupted == b->tolerates_disrupted);
        }
        if (kind == &kube_node_kind) {
                const KubeNode *a = (const KubeNode *) o, *b = (const KubeNode *) other;

                assert(streq_ptr(a->provider_id, b->provider_id) && a->n_conditions == b->n_conditions);
                assert(kube_node_is_ready(a) == kube_node_is_ready(b));
        }
}

/* Which claims it mounts: names, or that they cannot be read, and twice the same. */
static void check_claims(const char *data, size_t size) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        PodClaim *a = NULL, *b = NULL;
        size_t n = 0, m = 0;
        int r;

        if (json_parse(data, size, size, &doc, NULL) < 0)
                return;
        r = pod_claims_decode(json_root(doc), &a, &n);
        assert(r == 0 || (r == -EINVAL && n == 0 && !a));
        assert(pod_claims_decode(json_root(doc), &b, &m) == r && n == m);
        for (size_t i = 0; i < n; i++)
                assert(!isempty(a[i].name) && streq(a[i].name, b[i].name) &&
                       a[i].ephemeral == b[i].ephemeral);
        pod_claims_free(a, n);
        pod_claims_free(b, m);
}

static void check_as_each_kind(const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        check_claims((const char *) data, size);
        assert(intern_pool_new(&pool) >= 0);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                KubeObject *o = fuzz_object(kinds[i].kind, (const char *) data, size, pool);

                if (o) {
                        check_unread(kinds[i].kind, (const char *) data, size, o, pool);
                        check_object(o);
                        check_kinds(o);
                }
                kube_object_unref(o);
                assert(intern_pool_size(pool) == 0);
        }
}

static void check_bent(Draw *d) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        size_t i = draw_below(d, ELEMENTSOF(kinds));
        bool unbent = d->size == 0;
        _cleanup_free_ char *text = draw_bent_json(d, kinds[i].template);
        KubeObject *a, *b;

        assert(intern_pool_new(&pool) >= 0);
        check_claims(text, strlen(text));
        a = fuzz_object(kinds[i].kind, text, strlen(text), pool);
        b = fuzz_object(kinds[i].kind, text, strlen(text), pool);
        assert(!a == !b);
        assert(!unbent || (a && !a->invalid));
        if (a) {
                check_object(a);
                check_kinds(a);
                assert(streq_ptr(a->invalid, b->invalid));
                assert(a->meta.labels.n_items == b->meta.labels.n_items &&
                       a->meta.n_owners == b->meta.n_owners);
        }
        kube_object_unref(a);
        kube_object_unref(b);
        assert(intern_pool_size(pool) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (draw_is_text(data, size))
                check_as_each_kind(data, size);
        else
                check_bent(&(Draw){ data, size });
        return 0;
}
