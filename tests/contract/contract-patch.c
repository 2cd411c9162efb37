/* SPDX-License-Identifier: Apache-2.0 */
/* The patches that vesper sends, made by the functions that make them, and the rules of patching that they
 * rely on. */
#include "contract-ask.h"
#include "marks.h"
#include "status-patch.h"
#include "termination-marks.h"

#define WHEN_USEC (UINT64_C(1790000000) * USEC_PER_SEC)

/* Sends a patch that one of the functions of termination-marks.h wrote; it is freed. */
static Answer send_made(Rig *r, const char *node, int made, char *body) {
        _cleanup_free_ char *owned = body;

        assert_int_equal(made, 1);
        return rig_patch_raw(r, RIG_COORDINATOR, NODE(node), KUBE_PATCH_MERGE, owned);
}

static Answer send_cordon(Rig *r, const KubeNode *n) {
        char *body = NULL;
        int made = termination_cordon_patch(n, "deleted", WHEN_USEC, &body);

        return send_made(r, n->object.meta.name, made, body);
}

/* Cordon, taint, label, deadline: all in one, and others' taints keep what they had. */
TEST_CASE(coordinator_cordons) {
        Rig *r = *state;
        _cleanup_answer_ Answer tainted = { 0 }, cordoned = { 0 };
        _cleanup_node_ KubeNode *before = NULL, *after = NULL;
        _cleanup_free_ char *again = NULL;

        rig_make_node(r, "patch-cordon");
        tainted = rig_merge(r, RIG_ADMIN, NODE("patch-cordon"),
                            "{'spec': {'taints': [{'key': 'a.example/b', 'value': 'c', 'effect': "
                            "'NoExecute', 'timeAdded': "
                            "'2026-01-01T00:00:00Z'}]}}");
        assert_answer(tainted, 200, NULL);

        before = rig_node(r, "patch-cordon");
        cordoned = send_cordon(r, before);
        assert_answer(cordoned, 200, NULL);
        after = rig_node(r, "patch-cordon");
        assert_true(after->unschedulable);
        assert_true(kube_node_has_taint(after, TAINT_DISRUPTED, "NoSchedule"));
        assert_string_equal(after->taints[0].key, "a.example/b");
        assert_string_equal(after->taints[0].value, "c");
        assert_int_equal(after->taints[0].time_added_usec, before->taints[0].time_added_usec);
        assert_int_not_equal(after->taints[0].time_added_usec, 0);
        assert_string_equal(object_meta_label(&after->object.meta, LABEL_EXCLUDE_FROM_LB),
                            LABEL_EXCLUDE_FROM_LB_VALUE);
        assert_string_equal(object_meta_annotation(&after->object.meta, ANNOTATION_DEADLINE),
                            "2026-09-21T14:13:20Z");
        assert_non_null(object_meta_annotation(&after->object.meta, ANNOTATION_CORDONED_BY_COORDINATOR));
        /* All of it is there: nothing is to be sent. */
        assert_int_equal(termination_cordon_patch(after, "deleted", WHEN_USEC, &again), 0);
}

/* Decided on an old state: 409, and nothing has happened. */
TEST_CASE(stale_cordon_is_refused) {
        Rig *r = *state;
        _cleanup_answer_ Answer other = { 0 }, stale = { 0 };
        _cleanup_node_ KubeNode *before = NULL, *after = NULL;

        rig_make_node(r, "patch-stale");
        before = rig_node(r, "patch-stale");
        other = rig_merge(r, RIG_ADMIN, NODE("patch-stale"),
                          "{'metadata': {'labels': {'another': 'writer'}}}");
        assert_answer(other, 200, NULL);
        stale = send_cordon(r, before);
        assert_answer(stale, 409, "Conflict");
        assert_int_equal(api_error_to_errno(&stale.error), -EBUSY);
        after = rig_node(r, "patch-stale");
        assert_false(after->unschedulable);
        assert_false(kube_node_has_taint(after, TAINT_DISRUPTED, NULL));
        assert_string_equal(after->object.meta.resource_version, answer_version(&other));
}

/* Two who decided on the same state: one wins. */
TEST_CASE(one_of_two_patches_wins) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, second = { 0 };
        _cleanup_node_ KubeNode *seen = NULL;

        rig_make_node(r, "patch-two");
        seen = rig_node(r, "patch-two");
        first = send_cordon(r, seen);
        second = send_cordon(r, seen);
        assert_answer(first, 200, NULL);
        assert_answer(second, 409, "Conflict");
}

/* The pool lets its node go: every mark of ours comes off in one patch, and nothing else. */
TEST_CASE(coordinator_releases) {
        Rig *r = *state;
        _cleanup_answer_ Answer adopted = { 0 }, cordoned = { 0 }, released = { 0 };
        _cleanup_node_ KubeNode *fresh = NULL, *held = NULL, *dirty = NULL, *after = NULL;
        char *body = NULL;
        int made;

        rig_make_node(r, "patch-release");
        fresh = rig_node(r, "patch-release");
        made = termination_add_finalizer_patch(&fresh->object, &body);
        adopted = send_made(r, "patch-release", made, body);
        assert_answer(adopted, 200, NULL);
        held = rig_node(r, "patch-release");
        assert_true(object_meta_has_finalizer(&held->object.meta, FINALIZER_TERMINATION));
        cordoned = send_cordon(r, held);
        assert_answer(cordoned, 200, NULL);

        dirty = rig_node(r, "patch-release");
        made = termination_release_patch(dirty, NULL, &body);
        released = send_made(r, "patch-release", made, body);
        assert_answer(released, 200, NULL);
        after = rig_node(r, "patch-release");
        assert_false(after->unschedulable);
        assert_false(kube_node_has_taint(after, TAINT_DISRUPTED, NULL));
        assert_int_equal(after->n_taints, fresh->n_taints);
        assert_false(object_meta_has_finalizer(&after->object.meta, FINALIZER_TERMINATION));
        assert_null(object_meta_label(&after->object.meta, LABEL_EXCLUDE_FROM_LB));
        assert_null(object_meta_annotation(&after->object.meta, ANNOTATION_DEADLINE));
        assert_null(object_meta_annotation(&after->object.meta, ANNOTATION_CORDONED_BY_COORDINATOR));
        assert_null(json_path(released.json, "metadata", "annotations", NULL));
        assert_null(json_path(released.json, "spec", "unschedulable", NULL));
}

/* Others' finalizers stay where they were. */
TEST_CASE(finalizers_of_others_stay) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, added = { 0 }, removed = { 0 };
        _cleanup_node_ KubeNode *seen = NULL, *held = NULL, *after = NULL;
        char *body = NULL;
        int made;

        rig_make_node(r, "patch-others");
        first = rig_merge(r, RIG_ADMIN, NODE("patch-others"),
                          "{'metadata': {'finalizers': ['a.example/b']}}");
        assert_answer(first, 200, NULL);
        seen = rig_node(r, "patch-others");
        made = termination_add_finalizer_patch(&seen->object, &body);
        added = send_made(r, "patch-others", made, body);
        assert_answer(added, 200, NULL);
        held = rig_node(r, "patch-others");
        assert_true(object_meta_has_finalizer(&held->object.meta, "a.example/b"));
        made = termination_finalizer_patch(&held->object, &body);
        removed = send_made(r, "patch-others", made, body);
        assert_answer(removed, 200, NULL);
        after = rig_node(r, "patch-others");
        assert_true(object_meta_has_finalizer(&after->object.meta, "a.example/b"));
        assert_false(object_meta_has_finalizer(&after->object.meta, FINALIZER_TERMINATION));
}

/* -- the status ----------------------------------------------------------------------------------- */

static char *condition_patch(const KubeObject *o, const Condition *c) {
        JsonWriter *w = status_patch_open(o);

        assert_non_null(w);
        status_patch_add_conditions(w, o, c, 1, c->last_transition_usec, NULL);
        return status_patch_close(w);
}

static Answer send_condition(Rig *r, const char *node, const char *type, ConditionStatus status,
                             const char *message) {
        const Condition mark = { type, "TerminatingNode", message, status, WHEN_USEC };
        _cleanup_node_ KubeNode *n = rig_node(r, node);
        _cleanup_free_ char *body = condition_patch(&n->object, &mark);

        assert_non_null(body);
        return rig_patch_raw(r, RIG_COORDINATOR, NODE_STATUS(node), KUBE_PATCH_STRATEGIC, body);
}

/* A condition beside the kubelet's, written twice, then taken away. */
TEST_CASE(a_condition_beside_others) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, second = { 0 }, off = { 0 };
        _cleanup_node_ KubeNode *n = NULL, *later = NULL, *after = NULL;
        const Condition *c;

        rig_make_node(r, "patch-condition");
        first = send_condition(r, "patch-condition", CONDITION_TERMINATION_BLOCKED, CONDITION_TRUE, "one");
        assert_answer(first, 200, NULL);
        n = rig_node(r, "patch-condition");
        assert_int_equal(n->n_conditions, 2);
        assert_true(kube_node_is_ready(n));
        c = kube_node_condition(n, CONDITION_TERMINATION_BLOCKED);
        assert_non_null(c);
        assert_int_equal(c->status, CONDITION_TRUE);
        assert_string_equal(c->reason, "TerminatingNode");
        assert_int_equal(c->last_transition_usec, WHEN_USEC);

        second = send_condition(r, "patch-condition", CONDITION_TERMINATION_BLOCKED, CONDITION_FALSE, "two");
        assert_answer(second, 200, NULL);
        later = rig_node(r, "patch-condition");
        assert_int_equal(later->n_conditions, 2);
        assert_int_equal(kube_node_condition(later, CONDITION_TERMINATION_BLOCKED)->status, CONDITION_FALSE);

        off = rig_patch(r, RIG_COORDINATOR, NODE_STATUS("patch-condition"), KUBE_PATCH_STRATEGIC,
                        "{'status': {'conditions': [{'type': '%s', '$patch': 'delete'}]}}",
                        CONDITION_TERMINATION_BLOCKED);
        assert_answer(off, 200, NULL);
        after = rig_node(r, "patch-condition");
        assert_int_equal(after->n_conditions, 1);
        assert_true(kube_node_is_ready(after));
}

/* A Node made anew under the name takes nothing that was meant for the other. */
TEST_CASE(a_condition_for_another) {
        static const Condition mark = { CONDITION_DRAINED, "R", "m", CONDITION_TRUE, WHEN_USEC };
        static const KubeNode another = { .object = { .kind = &kube_node_kind, .meta.uid = (char *) "another" } };
        _cleanup_free_ char *body = condition_patch(&another.object, &mark);
        Rig *r = *state;
        _cleanup_answer_ Answer a = { 0 };
        _cleanup_node_ KubeNode *n = NULL;

        rig_make_node(r, "patch-another");
        a = rig_patch_raw(r, RIG_COORDINATOR, NODE_STATUS("patch-another"), KUBE_PATCH_STRATEGIC, body);
        assert_answer(a, 422, "Invalid");
        n = rig_node(r, "patch-another");
        assert_null(kube_node_condition(n, CONDITION_DRAINED));
}

/* The kubelet sends its own conditions by a strategic patch: ours survive it. */
TEST_CASE(conditions_survive_the_kubelet) {
        Rig *r = *state;
        _cleanup_answer_ Answer ours = { 0 }, theirs = { 0 };
        _cleanup_node_ KubeNode *n = NULL;

        rig_make_node(r, "patch-survive");
        ours = send_condition(r, "patch-survive", CONDITION_DRAIN_IN_PROGRESS, CONDITION_TRUE, "draining");
        assert_answer(ours, 200, NULL);
        theirs = rig_patch(r, RIG_ADMIN, NODE_STATUS("patch-survive"), KUBE_PATCH_STRATEGIC,
                           "{'status': {'$setElementOrder/conditions': [{'type': 'Ready'}], 'conditions': "
                           "[{'type': 'Ready', "
                           "'status': 'False', 'lastHeartbeatTime': '2026-02-01T00:00:00Z'}]}}");
        assert_answer(theirs, 200, NULL);
        n = rig_node(r, "patch-survive");
        assert_false(kube_node_is_ready(n));
        assert_non_null(kube_node_condition(n, CONDITION_DRAIN_IN_PROGRESS));
}

/* The status by the object, or the object by the status: neither is possible, and neither is an error. */
TEST_CASE(status_and_object_are_apart) {
        Rig *r = *state;
        _cleanup_answer_ Answer by_object = { 0 }, by_status = { 0 };
        _cleanup_node_ KubeNode *n = NULL;

        rig_make_node(r, "patch-apart");
        by_object = rig_merge(r, RIG_ADMIN, NODE("patch-apart"),
                              "{'spec': {'unschedulable': true}, 'status': {'conditions': []}}");
        assert_answer(by_object, 200, NULL);
        by_status = rig_merge(r, RIG_ADMIN, NODE_STATUS("patch-apart"),
                              "{'spec': {'unschedulable': null}, 'status': {'volumesInUse': ['v']}}");
        assert_answer(by_status, 200, NULL);
        n = rig_node(r, "patch-apart");
        assert_true(n->unschedulable);
        assert_true(kube_node_is_ready(n));
        assert_string_equal(n->volumes_in_use[0], "v");
}

/* Each kind of patch, object and status: a stale version is refused everywhere. */
TEST_CASE(stale_versions_are_refused) {
        static const struct {
                const char *subresource;
                KubePatchType type;
                const char *more;
        } rows[] = {
                { NULL, KUBE_PATCH_MERGE, "'spec': {'unschedulable': true}" },
                { NULL, KUBE_PATCH_STRATEGIC, "'spec': {'unschedulable': true}" },
                { "status", KUBE_PATCH_MERGE, "'status': {'volumesInUse': ['v']}" },
                { "status", KUBE_PATCH_STRATEGIC,
                  "'status': {'conditions': [{'type': 'X', 'status': 'True'}]}" },
        };
        Rig *r = *state;
        KubeTarget t = NODE("patch-version");
        _cleanup_node_ KubeNode *old = NULL;
        _cleanup_answer_ Answer other = { 0 };

        rig_make_node(r, "patch-version");
        old = rig_node(r, "patch-version");
        other = rig_merge(r, RIG_ADMIN, t, "{'metadata': {'labels': {'another': 'writer'}}}");
        assert_answer(other, 200, NULL);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_node_ KubeNode *now = rig_node(r, "patch-version");
                _cleanup_answer_ Answer stale = { 0 }, fresh = { 0 };

                t.subresource = rows[i].subresource;
                stale = rig_patch(r, RIG_ADMIN, t, rows[i].type,
                                  "{'metadata': {'resourceVersion': '%s'}, %s}",
                                  old->object.meta.resource_version, rows[i].more);
                assert_answer(stale, 409, "Conflict");
                fresh = rig_patch(r, RIG_ADMIN, t, rows[i].type,
                                  "{'metadata': {'resourceVersion': '%s'}, %s}",
                                  now->object.meta.resource_version, rows[i].more);
                assert_answer(fresh, 200, NULL);
        }
}

/* -- the rules ------------------------------------------------------------------------------------ */

#define TEST_AND_CORDON \
        "[{'op': 'test', 'path': '/spec/unschedulable', 'value': null}, " \
        "{'op': 'add', 'path': '/spec/unschedulable', 'value': true}]"

TEST_CASE(json_patch_tests_first) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, again = { 0 }, missing = { 0 }, remove = { 0 };

        rig_make_node(r, "patch-json");
        first = rig_patch(r, RIG_ADMIN, NODE("patch-json"), KUBE_PATCH_JSON, TEST_AND_CORDON);
        assert_answer(first, 200, NULL);
        again = rig_patch(r, RIG_ADMIN, NODE("patch-json"), KUBE_PATCH_JSON, TEST_AND_CORDON);
        assert_answer(again, 422, "Invalid");
        assert_int_equal(api_error_to_errno(&again.error), -EINVAL);
        missing = rig_patch(r, RIG_ADMIN, NODE("patch-json"), KUBE_PATCH_JSON,
                            "[{'op': 'remove', 'path': '/metadata/annotations/none'}]");
        assert_answer(missing, 422, "Invalid");
        remove = rig_patch(
                r, RIG_ADMIN, NODE("patch-json"), KUBE_PATCH_JSON,
                "[{'op': 'remove', 'path': '/spec/unschedulable'}, "
                "{'op': 'replace', 'path': '/metadata/labels/kubernetes.io~1hostname', 'value': 'other'}]");
        assert_answer(remove, 200, NULL);
        assert_string_equal(answer_string(&remove, "metadata", "labels", "kubernetes.io/hostname", NULL),
                            "other");
}

TEST_CASE(null_takes_away) {
        Rig *r = *state;
        _cleanup_answer_ Answer put = { 0 }, off = { 0 }, same = { 0 };

        rig_make_node(r, "patch-null");
        put = rig_merge(
                r, RIG_ADMIN, NODE("patch-null"),
                "{'metadata': {'annotations': {'a': '1', 'b': '2'}}, 'spec': {'unschedulable': true}}");
        assert_answer(put, 200, NULL);
        off = rig_merge(r, RIG_ADMIN, NODE("patch-null"),
                        "{'metadata': {'annotations': {'a': null, 'never': null}}, 'spec': "
                        "{'unschedulable': false}}");
        assert_answer(off, 200, NULL);
        assert_null(answer_string(&off, "metadata", "annotations", "a", NULL));
        assert_string_equal(answer_string(&off, "metadata", "annotations", "b", NULL), "2");
        assert_null(json_path(off.json, "spec", "unschedulable", NULL));
        /* The same once more is no write: the version stays. */
        same = rig_merge(r, RIG_ADMIN, NODE("patch-null"),
                         "{'metadata': {'annotations': {'a': null, 'b': '2'}}}");
        assert_answer(same, 200, NULL);
        assert_string_equal(answer_version(&same), answer_version(&off));
}

TEST_CASE(what_no_patch_may_change) {
        static const struct {
                const char *body;
                unsigned status;
                const char *reason;
        } rows[] = {
                { "{'metadata': {'uid': 'another'}}", 422, "Invalid" },
                { "{'metadata': {'name': 'another'}}", 400, "BadRequest" },
                { "{'metadata': {'labels': {'a': 'no label value!'}}}", 422, "Invalid" },
                { "{'metadata': {'labels': {'a': 5}}}", 422, "Invalid" },
                { "{'metadata': {'annotations': {'bad key!': 'x'}}}", 422, "Invalid" },
                { "{'metadata': {'finalizers': ['unqualified']}}", 422, "Invalid" },
                { "{'spec': {'providerID': 'another'}}", 422, "Invalid" },
                { "{'spec': {'taints': [{'key': 'a', 'effect': 'Sometimes'}]}}", 422, "Invalid" },
                { "{'spec': {'taints': [{'key': 'a', 'effect': 'NoSchedule'}, {'key': 'a', 'effect': "
                  "'NoSchedule'}]}}",
                  422, "Invalid" },
                { "{'metadata': {'resourceVersion': '1'}}", 409, "Conflict" },
                { "{'metadata': {'deletionTimestamp': '2026-01-01T00:00:00Z'}}", 422, "Invalid" },
                { "{'spec': {'noSuchField': 1}}", 200, NULL },
                { "[]", 400, "BadRequest" },
                { "nonsense", 400, "BadRequest" },
        };
        Rig *r = *state;

        rig_make_node(r, "patch-never");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a = rig_merge(r, RIG_ADMIN, NODE("patch-never"), "%s", rows[i].body);

                print_message("  %s\n", rows[i].body);
                assert_answer(a, rows[i].status, rows[i].reason);
        }
}

TEST_CASE(patch_of_nothing) {
        Rig *r = *state;
        _cleanup_answer_ Answer gone = { 0 }, custom = { 0 };

        gone = rig_merge(r, RIG_ADMIN, NODE("patch-nobody"), "{'spec': {'unschedulable': true}}");
        assert_answer(gone, 404, "NotFound");
        assert_int_equal(api_error_to_errno(&gone.error), -ENOENT);
        rig_make_claim(r, "patch-claim");
        custom = rig_patch(r, RIG_ADMIN, CLAIM("patch-claim"), KUBE_PATCH_STRATEGIC, "{'metadata': {}}");
        assert_answer(custom, 415, "UnsupportedMediaType");
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(coordinator_cordons),
        cmocka_unit_test(stale_cordon_is_refused),
        cmocka_unit_test(one_of_two_patches_wins),
        cmocka_unit_test(coordinator_releases),
        cmocka_unit_test(finalizers_of_others_stay),
        cmocka_unit_test(a_condition_beside_others),
        cmocka_unit_test(a_condition_for_another),
        cmocka_unit_test(conditions_survive_the_kubelet),
        cmocka_unit_test(status_and_object_are_apart),
        cmocka_unit_test(stale_versions_are_refused),
        cmocka_unit_test(json_patch_tests_first),
        cmocka_unit_test(null_takes_away),
        cmocka_unit_test(what_no_patch_may_change),
        cmocka_unit_test(patch_of_nothing),
};
CONTRACT_SUITE(patch, cases);
