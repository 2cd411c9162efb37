/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "fuzz-objects.h"
#include "marks.h"
#include "node-marks.h"
#include "policy.h"
#include "string-util.h"

/*
 * The agent's marks on any Node: what it puts on is read back as its own and is put on once, undoing takes
 * off all that undoing is for, a cordon of somebody else stays. Notices in any order: merging loses no
 * deadline.
 */

#define YEAR_10000 (UINT64_C(253402300800) * USEC_PER_SEC)
#define BOOT_ID "0123456789abcdef0123456789abcdef"

static Notice *draw_notice(Draw *d) {
        static const char *const actions[] = { "terminate", "stop", "hibernate", "reboot", NULL };
        Notice *n = new0(Notice, 1);
        const char *action = draw_of(d, actions);

        assert(n);
        n->id = strf("i-%u-%s", draw_byte(d), strempty(action));
        n->source = strdup("ec2");
        n->action = action ? strdup(action) : NULL;
        assert(n->id && n->source);
        n->kind = (NoticeKind) draw_below(d, _NOTICE_KIND_MAX);
        n->not_before_usec = draw_usec(d, FUZZ_NOW) % YEAR_10000;
        n->deadline_usec = draw_usec(d, FUZZ_NOW);
        if (n->deadline_usec != USEC_INFINITY) /* never said, or a time that was read */
                n->deadline_usec %= YEAR_10000;
        n->certainty = draw_bool(d) ? NOTICE_ADVISORY : NOTICE_CERTAIN;
        n->by_hand = (NoticeByHand) draw_below(d, _BY_HAND_MAX);
        return n;
}

/* -- merging ------------------------------------------------------------------------------------ */

static void check_policy(const Notice *n, usec_t now, usec_t claim_deadline) {
        const PolicySettings settings = { .lb_wait_usec = 30 * USEC_PER_SEC };
        Plan p = policy_decide(n, &settings, now, 0);
        usec_t deadline = policy_drain_deadline(n, claim_deadline, 0);

        assert(!isempty(p.why));
        /* All rules are "now". */
        assert((p.act == PLAN_DRAIN) == (n->certainty == NOTICE_CERTAIN || n->kind == NOTICE_REBALANCE));
        assert(p.act == PLAN_DRAIN || p.act == PLAN_REPORT);
        assert(p.lb_wait_usec == 0 || (p.act == PLAN_DRAIN && usec_sub(n->deadline_usec, now) > p.lb_wait_usec));
        assert(deadline == USEC_INFINITY || deadline <= n->deadline_usec);
        assert(claim_deadline == 0 || deadline <= claim_deadline);
        /* The nearer, never the later for it. */
        assert(policy_drain_deadline(n, 0, 0) >= deadline);
}

static void check_merge(Draw *d) {
        _cleanup_(notice_freep) Notice *n = draw_notice(d), *forward = NULL, *backward = NULL;
        size_t n_seen = draw_below(d, 5);
        Notice *seen[5] = { NULL };
        usec_t earliest = n->deadline_usec;
        bool changed;

        assert(notice_copy(n, &forward) >= 0);
        assert(notice_copy(n, &backward) >= 0);
        for (size_t i = 0; i < n_seen; i++) {
                seen[i] = draw_notice(d);
                assert(free_and_strdup(&seen[i]->id, n->id) >= 0);
                earliest = MIN(earliest, seen[i]->deadline_usec);
        }
        for (size_t i = 0; i < n_seen; i++) {
                usec_t before = forward->deadline_usec;

                assert(notice_merge(forward, seen[i], &changed) >= 0);
                assert(forward->deadline_usec <= before);
                assert(streq_ptr(forward->action, seen[i]->action));
                /* The same again changes nothing. */
                assert(notice_merge(forward, seen[i], &changed) >= 0);
                assert(!changed);
        }
        for (size_t i = n_seen; i > 0; i--)
                assert(notice_merge(backward, seen[i - 1], &changed) >= 0);
        assert(forward->deadline_usec == earliest && backward->deadline_usec == earliest);
        assert(forward->kind == n->kind && streq(forward->id, n->id));
        {
                usec_t first = draw_usec(d, FUZZ_NOW);

                check_policy(forward, first, draw_usec(d, FUZZ_NOW));
        }
        for (size_t i = 0; i < n_seen; i++)
                notice_free(seen[i]);
}

/* -- marks -------------------------------------------------------------------------------------- */

static void check_marked(const KubeNode *before, const char *text, const Notice *n) {
        _cleanup_free_ char *mark = interruption_format(n, INTERRUPTION_CORDONED, 3, BOOT_ID), *patch = NULL,
                            *next = NULL;
        bool claimed;
        KubeObject *o;

        patch = node_patch_mark(before, mark, BOOT_ID, "why", &claimed);
        assert(mark && patch);
        assert(claimed == !node_is_cordoned_by_stranger(before));
        o = fuzz_patched(&before->object, text, patch, &next);
        if (o) {
                const KubeNode *after = (const KubeNode *) o;

                assert(node_has_marks(after) && node_has_marks_to_undo(after));
                assert(after->unschedulable);
                assert(node_is_cordoned_by_stranger(after) == !claimed);
                assert(!node_was_uncordoned(after));
                /* What a stranger may not say is not marked with either: ids and sources of notice.h are
                 * bounded. */
                assert(node_is_marked_with(after, n->id, BOOT_ID));
                assert(object_meta_label(&after->object.meta, LABEL_EXCLUDE_FROM_LB));
        }
        kube_object_unref(o);
}

static void check_undone(const KubeNode *before, const char *text) {
        _cleanup_free_ char *patch = NULL, *next = NULL;
        bool uncordons = false;
        KubeObject *o;
        int r;

        r = node_patch_undo(before, &patch, &uncordons);
        assert(r == 0 || r == 1);
        assert((r == 1) == (patch != NULL));
        assert(!node_has_marks_to_undo(before) || r == 1);
        if (r == 0)
                return;
        o = fuzz_patched(&before->object, text, patch, &next);
        if (o) {
                const KubeNode *after = (const KubeNode *) o;
                _cleanup_free_ char *again = NULL;

                assert(!node_has_marks_to_undo(after));
                assert(before->object.meta.deletion_usec > 0 || !node_has_marks(after));
                assert(!uncordons || (!after->unschedulable && before->unschedulable));
                assert(uncordons || after->unschedulable == before->unschedulable);
                assert(node_conditions(after) == node_conditions(before));
                assert(node_patch_undo(after, &again, &uncordons) == 0);
        }
        kube_object_unref(o);
}

static void check_released(const KubeNode *before, const char *text) {
        _cleanup_free_ char *patch = NULL, *next = NULL;
        KubeObject *o;
        int r;

        r = node_patch_overruled(before, &patch);
        assert(r == 0 || r == 1);
        if (r == 0)
                return;
        o = fuzz_patched(&before->object, text, patch, &next);
        if (o)
                assert(((const KubeNode *) o)->unschedulable == before->unschedulable);
        kube_object_unref(o);
}

static void check_conditions(const KubeNode *n, NoticeKind kind) {
        for (DrainConditions c = NODE_CONDITIONS_NONE; c < _NODE_CONDITIONS_MAX; c++) {
                _cleanup_free_ char *body = node_patch_conditions(n, c, kind, "a message", FUZZ_NOW);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

                assert(body);
                assert(json_parse(body, strlen(body), strlen(body), &doc, NULL) >= 0);
        }
}

static void check_node(Draw *d) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(notice_freep) Notice *n = draw_notice(d);
        _cleanup_free_ char *text = draw_bent_json(d, fuzz_node), *boot_id = NULL;
        KubeObject *o;

        assert(intern_pool_new(&pool) >= 0);
        o = fuzz_object(&kube_node_kind, text, strlen(text), pool);
        if (o) {
                const KubeNode *node = (const KubeNode *) o;

                assert(node_marks_boot_id(node, &boot_id) >= 0);
                (void) node_claim_deadline(node);
                check_marked(node, text, n);
                check_undone(node, text);
                check_released(node, text);
                check_conditions(node, n->kind);
        }
        kube_object_unref(o);
        assert(intern_pool_size(pool) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };

        if (draw_bool(&d))
                check_merge(&d);
        else
                check_node(&d);
        return 0;
}
