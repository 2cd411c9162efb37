/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's writes on its own Node, made by the functions that make them, with the node's own credential;
 * and how they meet the coordinator's. */
#include "contract-ask.h"
#include "marks.h"
#include "node-marks.h"
#include "termination-marks.h"

#define BOOT "0123456789abcdef0123456789abcdef"
#define WHEN_USEC (UINT64_C(1790000000) * USEC_PER_SEC)

/* The node as it was before any case: of this name there is only one credential. */
static void begin(Rig *r) {
        _cleanup_answer_ Answer freed =
                rig_merge(r, RIG_ADMIN, NODE(RIG_NODE_NAME), "{'metadata': {'finalizers': null}}");
        _cleanup_answer_ Answer gone = rig_delete(r, RIG_ADMIN, NODE(RIG_NODE_NAME), NULL);

        assert_true(freed.status == 200 || freed.status == 404);
        assert_true(gone.status == 200 || gone.status == 404);
        rig_make_node(r, RIG_NODE_NAME);
}

static char *interruption(InterruptionPhase phase, size_t pods_left) {
        char id[] = "i-1/terminate", source[] = "ec2", action[] = "terminate";
        Notice n = {
                .id = id, .kind = NOTICE_SPOT, .source = source, .action = action, .deadline_usec = WHEN_USEC
        };
        char *text = interruption_format(&n, phase, pods_left, BOOT);

        assert_non_null(text);
        return text;
}

/* body is taken. */
static Answer send_patch(Rig *r, const char *subresource, char *body) {
        _cleanup_free_ char *owned = body;
        KubeTarget t = { .kind = &kube_node_kind, .name = RIG_NODE_NAME, .subresource = subresource };

        assert_non_null(body);
        return rig_patch_raw(r, RIG_NODE, t, subresource ? KUBE_PATCH_STRATEGIC : KUBE_PATCH_MERGE, owned);
}

static void mark(Rig *r, unsigned status, const char *reason, bool expect_claimed) {
        _cleanup_node_ KubeNode *n = rig_node(r, RIG_NODE_NAME);
        _cleanup_free_ char *text = interruption(INTERRUPTION_CORDONED, 3);
        bool claimed;
        _cleanup_answer_ Answer a = send_patch(r, NULL, node_patch_mark(n, text, BOOT, "spot", &claimed));

        assert_answer(a, status, reason);
        assert_int_equal(claimed, expect_claimed);
}

static void undo(Rig *r, bool expect_uncordons) {
        _cleanup_node_ KubeNode *n = rig_node(r, RIG_NODE_NAME);
        _cleanup_answer_ Answer a = { 0 };
        bool uncordons;
        char *body;

        assert_int_equal(node_patch_undo(n, &body, &uncordons), 1);
        a = send_patch(r, NULL, body);
        assert_answer(a, 200, NULL);
        assert_int_equal(uncordons, expect_uncordons);
}

static void report(Rig *r, DrainConditions conditions) {
        _cleanup_node_ KubeNode *n = rig_node(r, RIG_NODE_NAME), *after = NULL;
        _cleanup_answer_ Answer a =
                send_patch(r, "status", node_patch_conditions(n, conditions, NOTICE_SPOT, "vesper-agent: spot notice", WHEN_USEC));

        assert_answer(a, 200, NULL);
        after = rig_node(r, RIG_NODE_NAME);
        assert_int_equal(node_conditions(after), conditions);
        assert_true(kube_node_is_ready(after));
}

/* W1 to W5 of one interruption, and everything off again. */
TEST_CASE(an_interruption_is_told) {
        Rig *r = *state;
        _cleanup_node_ KubeNode *marked = NULL, *draining = NULL, *after = NULL;
        _cleanup_free_ char *text = interruption(INTERRUPTION_DRAINING, 1);
        _cleanup_answer_ Answer told = { 0 };

        begin(r);
        mark(r, 200, NULL, true);
        marked = rig_node(r, RIG_NODE_NAME);
        assert_true(marked->unschedulable);
        assert_true(node_has_marks(marked));
        assert_false(node_is_cordoned_by_stranger(marked));
        assert_string_equal(object_meta_label(&marked->object.meta, LABEL_EXCLUDE_FROM_LB),
                            LABEL_EXCLUDE_FROM_LB_VALUE);

        report(r, NODE_CONDITIONS_DRAINING);
        draining = rig_node(r, RIG_NODE_NAME);
        told = send_patch(r, NULL, node_patch_interruption(draining, text));
        assert_answer(told, 200, NULL);
        report(r, NODE_CONDITIONS_DRAINED);

        kube_node_freep(&draining);
        draining = rig_node(r, RIG_NODE_NAME);
        assert_non_null(draining->interruption);
        assert_int_equal(draining->interruption->phase, INTERRUPTION_DRAINING);
        assert_int_equal(draining->interruption->pods_left, 1);
        assert_true(boot_id_equal(draining->interruption->boot_id, BOOT));

        undo(r, true);
        report(r, NODE_CONDITIONS_NONE);
        after = rig_node(r, RIG_NODE_NAME);
        assert_false(after->unschedulable);
        assert_false(node_has_marks(after));
        assert_null(object_meta_label(&after->object.meta, LABEL_EXCLUDE_FROM_LB));
}

/* Decided on an old state: refused, both the marks and the conditions. */
TEST_CASE(a_stale_agent_is_refused) {
        Rig *r = *state;
        _cleanup_node_ KubeNode *old = NULL, *after = NULL;
        _cleanup_free_ char *text = interruption(INTERRUPTION_CORDONED, 3);
        _cleanup_answer_ Answer other = { 0 }, marks = { 0 }, conditions = { 0 };
        bool claimed;

        begin(r);
        old = rig_node(r, RIG_NODE_NAME);
        other = rig_merge(r, RIG_ADMIN, NODE(RIG_NODE_NAME),
                          "{'metadata': {'labels': {'another': 'writer'}}}");
        assert_answer(other, 200, NULL);
        marks = send_patch(r, NULL, node_patch_mark(old, text, BOOT, "spot", &claimed));
        assert_answer(marks, 409, "Conflict");
        conditions = send_patch(r, "status",
                                node_patch_conditions(old, NODE_CONDITIONS_DRAINING, NOTICE_SPOT, "vesper-agent: m", WHEN_USEC));
        assert_answer(conditions, 409, "Conflict");
        after = rig_node(r, RIG_NODE_NAME);
        assert_false(node_has_marks(after));
        assert_int_equal(node_conditions(after), NODE_CONDITIONS_NONE);
}

/* The control plane answers a cordon with its taint: that must not be in the way of an undo. */
TEST_CASE(taints_of_others_survive_the_agent) {
        Rig *r = *state;
        _cleanup_node_ KubeNode *after = NULL;
        _cleanup_answer_ Answer tainted = { 0 };

        begin(r);
        mark(r, 200, NULL, true);
        tainted = rig_merge(r, RIG_ADMIN, NODE(RIG_NODE_NAME),
                            "{'spec': {'taints': [{'key': '" TAINT_UNSCHEDULABLE
                            "', 'effect': 'NoSchedule', 'timeAdded': "
                            "'2026-01-01T00:00:00Z'}]}}");
        assert_answer(tainted, 200, NULL);
        undo(r, true);
        after = rig_node(r, RIG_NODE_NAME);
        assert_true(kube_node_has_taint(after, TAINT_UNSCHEDULABLE, "NoSchedule"));
        assert_int_not_equal(after->taints[0].time_added_usec, 0);
}

/* A person has cordoned before: the notice is told, the cordon stays a person's. */
TEST_CASE(a_strangers_cordon_is_kept) {
        Rig *r = *state;
        _cleanup_node_ KubeNode *marked = NULL, *after = NULL;
        _cleanup_answer_ Answer person = { 0 };

        begin(r);
        person = rig_merge(r, RIG_ADMIN, NODE(RIG_NODE_NAME), "{'spec': {'unschedulable': true}}");
        assert_answer(person, 200, NULL);
        mark(r, 200, NULL, false);
        marked = rig_node(r, RIG_NODE_NAME);
        assert_true(node_is_cordoned_by_stranger(marked));
        undo(r, false);
        after = rig_node(r, RIG_NODE_NAME);
        assert_true(after->unschedulable);
        assert_false(node_has_marks(after));
}

/* A person un-cordons: the mark goes, the notice stays as Released, and the next start can tell. */
TEST_CASE(a_persons_word_stands) {
        Rig *r = *state;
        _cleanup_node_ KubeNode *open = NULL, *after = NULL;
        _cleanup_answer_ Answer person = { 0 }, released = { 0 };
        char *body = NULL;

        begin(r);
        mark(r, 200, NULL, true);
        person = rig_merge(r, RIG_ADMIN, NODE(RIG_NODE_NAME), "{'spec': {'unschedulable': null}}");
        assert_answer(person, 200, NULL);
        open = rig_node(r, RIG_NODE_NAME);
        assert_true(node_was_uncordoned(open));
        assert_int_equal(node_patch_overruled(open, &body), 1);
        released = send_patch(r, NULL, body);
        assert_answer(released, 200, NULL);

        after = rig_node(r, RIG_NODE_NAME);
        assert_true(node_is_overruled(after, "i-1/terminate", BOOT));
        assert_false(node_has_marks(after));
        assert_false(after->unschedulable);
        assert_null(object_meta_label(&after->object.meta, LABEL_EXCLUDE_FROM_LB));
        assert_int_equal(node_patch_overruled(after, &body), 0);
        undo(r, false);
}

static void coordinator_cordons(Rig *r) {
        _cleanup_node_ KubeNode *n = rig_node(r, RIG_NODE_NAME);
        _cleanup_free_ char *body = NULL;
        _cleanup_answer_ Answer a = { 0 };

        assert_int_equal(termination_cordon_patch(n, "deleted", USEC_INFINITY, &body), 1);
        a = rig_patch_raw(r, RIG_COORDINATOR, NODE(RIG_NODE_NAME), KUBE_PATCH_MERGE, body);
        assert_answer(a, 200, NULL);
}

static void coordinator_releases(Rig *r) {
        _cleanup_node_ KubeNode *n = rig_node(r, RIG_NODE_NAME);
        _cleanup_free_ char *body = NULL;
        _cleanup_answer_ Answer a = { 0 };

        assert_int_equal(termination_release_patch(n, NULL, &body), 1);
        a = rig_patch_raw(r, RIG_COORDINATOR, NODE(RIG_NODE_NAME), KUBE_PATCH_MERGE, body);
        assert_answer(a, 200, NULL);
}

/* Both have cordoned; whoever goes last opens the node, in either order. */
TEST_CASE(the_last_mark_uncordons) {
        Rig *r = *state;
        _cleanup_node_ KubeNode *half = NULL, *open = NULL;

        for (unsigned i = 0; i < 2; i++) {
                begin(r);
                mark(r, 200, NULL, true);
                coordinator_cordons(r);
                if (i == 0)
                        coordinator_releases(r);
                else
                        undo(r, false);
                half = rig_node(r, RIG_NODE_NAME);
                assert_true(half->unschedulable);
                assert_string_equal(object_meta_label(&half->object.meta, LABEL_EXCLUDE_FROM_LB),
                                    LABEL_EXCLUDE_FROM_LB_VALUE);
                if (i == 0)
                        undo(r, true);
                else
                        coordinator_releases(r);
                open = rig_node(r, RIG_NODE_NAME);
                assert_false(open->unschedulable);
                assert_false(node_has_marks(open));
                assert_null(object_meta_label(&open->object.meta, LABEL_EXCLUDE_FROM_LB));
                kube_node_freep(&half);
                kube_node_freep(&open);
                half = open = NULL;
        }
}

/* On a node that is being deleted marks are still made, and the cordon stays. */
TEST_CASE(marks_of_a_node_that_ends) {
        Rig *r = *state;
        _cleanup_answer_ Answer held = { 0 }, gone = { 0 };
        _cleanup_node_ KubeNode *after = NULL;

        begin(r);
        held = rig_merge(r, RIG_COORDINATOR, NODE(RIG_NODE_NAME),
                         "{'metadata': {'finalizers': ['" FINALIZER_TERMINATION "']}}");
        assert_answer(held, 200, NULL);
        gone = rig_delete(r, RIG_ADMIN, NODE(RIG_NODE_NAME), NULL);
        assert_answer(gone, 200, NULL);
        mark(r, 200, NULL, true);
        report(r, NODE_CONDITIONS_DRAINED);
        undo(r, false);
        after = rig_node(r, RIG_NODE_NAME);
        assert_true(after->unschedulable);
        begin(r);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(an_interruption_is_told),
        cmocka_unit_test(a_stale_agent_is_refused),
        cmocka_unit_test(taints_of_others_survive_the_agent),
        cmocka_unit_test(a_strangers_cordon_is_kept),
        cmocka_unit_test(a_persons_word_stands),
        cmocka_unit_test(the_last_mark_uncordons),
        cmocka_unit_test(marks_of_a_node_that_ends),
};
CONTRACT_SUITE(agent, cases);
