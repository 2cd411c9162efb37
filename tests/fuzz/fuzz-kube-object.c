/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "kube-kinds.h"
#include "string-util.h"

/*
 * Any JSON, read as each kind: an object, whole or with a sentence about what is wrong, or -EINVAL; every
 * interned text is given back.
 */

static const KubeKind *const kinds[] = {
        &kube_node_kind,
        &kube_pod_kind,
        &kube_pdb_kind,
        &kube_lease_kind,
        &kube_volume_attachment_kind,
        &kube_node_pool_kind,
        &kube_node_claim_kind,
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

static void check_kinds(const KubeObject *o) {
        if (o->kind == &kube_node_kind)
                (void) kube_node_is_ready((const KubeNode *) o);
        if (o->kind == &kube_pod_kind)
                assert(((const KubePod *) o)->grace_sec >= 0);
        if (o->kind == &kube_pdb_kind)
                assert(((const KubePdb *) o)->selector || o->invalid);
        if (o->kind == &kube_node_pool_kind)
                assert(((const KubeNodePool *) o)->selector || o->invalid);
        if (o->kind == &kube_node_claim_kind)
                (void) kube_node_claim_condition((const KubeNodeClaim *) o, "Drained");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        if (json_parse((const char *) data, size, size, &doc, NULL) < 0)
                return 0;
        assert(intern_pool_new(&pool) >= 0);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                KubeObject *o = NULL;
                int r = kube_object_decode(kinds[i], json_root(doc), pool, &o);

                assert((r == 0) == (o != NULL));
                assert(r == 0 || r == -EINVAL);
                if (o) {
                        check_object(o);
                        check_kinds(o);
                }
                kube_object_unref(o);
                assert(intern_pool_size(pool) == 0);
        }
        return 0;
}
