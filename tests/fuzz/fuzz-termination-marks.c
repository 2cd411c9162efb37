/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "adoption.h"
#include "fuzz-objects.h"
#include "interruption.h"
#include "marks.h"
#include "string-util.h"
#include "termination-marks.h"

/*
 * What the coordinator writes on any Node, and makes of any pool: a patch that has landed is not wanted
 * again, taints, finalizers and cordons of others stay, and the claim that it makes is one that it reads.
 */

static size_t n_foreign_taints(const KubeNode *n) {
        size_t k = 0;

        for (size_t i = 0; i < n->n_taints; i++)
                k += !streq_ptr(n->taints[i].key, TAINT_DISRUPTED) &&
                     !(streq_ptr(n->taints[i].key, TAINT_UNSCHEDULABLE) &&
                       streq_ptr(n->taints[i].effect, "NoSchedule"));
        return k;
}

static size_t n_foreign_finalizers(const KubeObject *o) {
        size_t k = 0;

        for (char **f = o->meta.finalizers; f && *f; f++)
                k += !streq(*f, FINALIZER_TERMINATION);
        return k;
}

typedef int (*make_patch_t)(const KubeNode *n, usec_t deadline_usec, char **ret_body);

static int make_cordon(const KubeNode *n, usec_t deadline_usec, char **ret_body) {
        return termination_cordon_patch(n, "deleted", deadline_usec, ret_body);
}

static int make_hold(const KubeNode *n, usec_t deadline_usec, char **ret_body) {
        return termination_hold_patch(n, "deleted", deadline_usec, ret_body);
}

static int make_release(const KubeNode *n, usec_t deadline_usec, char **ret_body) {
        return termination_release_patch(n, NULL, ret_body);
}

static int make_finalizer(const KubeNode *n, usec_t deadline_usec, char **ret_body) {
        return termination_add_finalizer_patch(&n->object, ret_body);
}

static int make_no_finalizer(const KubeNode *n, usec_t deadline_usec, char **ret_body) {
        return termination_finalizer_patch(&n->object, ret_body);
}

static void check_patch(const KubeNode *n, const char *text, make_patch_t make, usec_t deadline) {
        _cleanup_free_ char *body = NULL, *again = NULL, *next = NULL;
        KubeObject *o;
        int r;

        r = make(n, deadline, &body);
        assert(r == 0 || r == 1);
        assert((r == 1) == (body != NULL));
        if (r == 0)
                return;
        o = fuzz_patched(&n->object, text, body, &next);
        /* A Node with something unreadable in a list that is written back whole is held, not mended: see the
         * callers. */
        if (o && !n->object.invalid) {
                const KubeNode *after = (const KubeNode *) o;

                assert(!o->invalid);
                assert(make(after, deadline, &again) == 0);
                assert(n_foreign_taints(after) == n_foreign_taints(n));
                assert(n_foreign_finalizers(o) == n_foreign_finalizers(&n->object));
                if (make == make_cordon || make == make_hold)
                        assert(after->unschedulable &&
                               kube_node_has_taint(after, TAINT_DISRUPTED, "NoSchedule"));
                if (make == make_cordon || make == make_hold)
                        assert(kube_node_has_taint(n, TAINT_DISRUPTED, "NoSchedule") ||
                               kube_node_has_taint(after, TAINT_UNSCHEDULABLE, "NoSchedule"));
                else /* who put it there takes it off */
                        assert(kube_node_has_taint(after, TAINT_UNSCHEDULABLE, "NoSchedule") ==
                               kube_node_has_taint(n, TAINT_UNSCHEDULABLE, "NoSchedule"));
                if (make == make_release && n->object.meta.deletion_usec > 0)
                        assert(after->unschedulable == n->unschedulable);
                if (make == make_release &&
                    object_meta_annotation(&n->object.meta, ANNOTATION_CORDONED_BY_AGENT))
                        assert(after->unschedulable == n->unschedulable);
        }
        kube_object_unref(o);
}

static void check_agents_word(const KubeNode *n) {
        const Interruption *i = kube_node_interruption(n), *stands = kube_node_standing_interruption(n);

        assert(!i || !n->interruption_is_unreadable);
        assert(!i || !interruption_is_draining(i) || stands == i);
}

static void check_claim(const KubeNodePool *pool, const KubeNode *n) {
        _cleanup_free_ char *body = NULL, *same = NULL;
        const KubeNodeClaim *c;
        KubeObject *o;

        if (isempty(n->provider_id) || isempty(n->object.meta.uid) || pool->object.invalid)
                return;
        body = adoption_claim_body(pool, n);
        same = adoption_claim_body(pool, n);
        assert(body && same && streq(body, same));
        o = fuzz_object(&kube_node_claim_kind, body, strlen(body), n->object.pool);
        assert(o && !o->invalid);
        c = (const KubeNodeClaim *) o;
        assert(dns1123_subdomain_is_valid(o->meta.name));
        assert(object_meta_has_finalizer(&o->meta, FINALIZER_TERMINATION));
        assert(streq(c->provider_id, n->provider_id) && streq(c->node_pool, pool->object.meta.name));
        assert(c->termination_grace_usec == pool->termination_grace_usec);
        assert(c->expire_after_usec == pool->disruption.expire_after_usec);
        kube_object_unref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const make_patch_t makers[] = { make_cordon, make_hold, make_release, make_finalizer,
                                               make_no_finalizer };
        _cleanup_(intern_pool_freep) InternPool *interned = NULL;
        Draw d = { data, size };
        usec_t deadline = draw_usec(&d, FUZZ_NOW);
        KubeObject *node, *pool;
        char *text;

        assert(intern_pool_new(&interned) >= 0);
        text = draw_bent_json(&d, fuzz_node);
        node = fuzz_object(&kube_node_kind, text, strlen(text), interned);
        pool = fuzz_draw_object(&d, &kube_node_pool_kind, fuzz_node_pool, interned);
        if (node) {
                for (size_t i = 0; i < ELEMENTSOF(makers); i++)
                        check_patch((const KubeNode *) node, text, makers[i], deadline);
                check_agents_word((const KubeNode *) node);
        }
        if (node && pool)
                check_claim((const KubeNodePool *) pool, (const KubeNode *) node);
        kube_object_unref(node);
        kube_object_unref(pool);
        assert(intern_pool_size(interned) == 0);
        free(text);
        return 0;
}
