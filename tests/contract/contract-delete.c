/* SPDX-License-Identifier: Apache-2.0 */
/* Deletes: preconditions, finalizers, the grace of pods. */
#include "contract-ask.h"
#include "marks.h"
#include "termination-marks.h"

static const char *deletion_of(const Answer *a) {
        return answer_string(a, "metadata", "deletionTimestamp", NULL);
}

static usec_t deletion_usec(const Answer *a) {
        usec_t t;

        assert_non_null(deletion_of(a));
        assert_return_code(rfc3339_parse(deletion_of(a), &t), 0);
        return t;
}

static void assert_gone(Rig *r, KubeTarget t) {
        _cleanup_answer_ Answer a = rig_get(r, RIG_ADMIN, t);

        assert_answer(a, 404, "NotFound");
}

TEST_CASE(delete_node_at_once) {
        Rig *r = *state;
        _cleanup_answer_ Answer gone = { 0 }, again = { 0 };

        rig_make_node(r, "delete-now");
        gone = rig_delete(r, RIG_COORDINATOR, NODE("delete-now"), NULL);
        assert_answer(gone, 200, NULL);
        assert_gone(r, NODE("delete-now"));
        again = rig_delete(r, RIG_COORDINATOR, NODE("delete-now"), NULL);
        assert_answer(again, 404, "NotFound");
}

/* A name is not an identity: uid and version are. */
TEST_CASE(delete_with_preconditions) {
        Rig *r = *state;
        _cleanup_answer_ Answer wrong_uid = { 0 }, stale = { 0 }, right = { 0 };
        _cleanup_node_ KubeNode *n = NULL;

        rig_make_node(r, "delete-if");
        n = rig_node(r, "delete-if");
        wrong_uid = rig_delete(
                r, RIG_COORDINATOR, NODE("delete-if"),
                &(KubeDeleteOptions){ .uid = "4f0cfdc4-0000-4000-8000-000000000000", .grace_sec = -1 });
        assert_answer(wrong_uid, 409, "Conflict");
        stale = rig_delete(r, RIG_COORDINATOR, NODE("delete-if"),
                           &(KubeDeleteOptions){ .resource_version = "1", .grace_sec = -1 });
        assert_answer(stale, 409, "Conflict");
        right = rig_delete(r, RIG_COORDINATOR, NODE("delete-if"),
                           &(KubeDeleteOptions){ .uid = n->object.meta.uid,
                                                 .resource_version = n->object.meta.resource_version,
                                                 .grace_sec = -1 });
        assert_answer(right, 200, NULL);
        assert_gone(r, NODE("delete-if"));
}

TEST_CASE(dry_run_deletes_nothing) {
        Rig *r = *state;
        _cleanup_answer_ Answer dry = { 0 };
        _cleanup_node_ KubeNode *n = NULL;

        rig_make_node(r, "delete-dry");
        dry = rig_delete(r, RIG_ADMIN, NODE("delete-dry"),
                         &(KubeDeleteOptions){ .dry_run = true, .grace_sec = -1 });
        assert_answer(dry, 200, NULL);
        n = rig_node(r, "delete-dry");
        assert_int_equal(n->object.meta.deletion_usec, 0);
}

/* -- finalizers ----------------------------------------------------------------------------------- */

/* The whole life of the coordinator's finalizer on a Node, as the kind's watchers see it. */
TEST_CASE(finalizer_holds_a_node) {
        Rig *r = *state;
        _cleanup_answer_ Answer list = { 0 }, held = { 0 }, asked = { 0 }, asked_again = { 0 }, more = { 0 };
        _cleanup_answer_ Answer marked = { 0 }, freed = { 0 };
        _cleanup_node_ KubeNode *n = NULL;
        _cleanup_watch_ RigWatch *w = NULL;
        _cleanup_free_ char *body = NULL;

        list = rig_list(r, RIG_ADMIN, NODE(NULL), NULL);
        rig_make_node(r, "delete-held");
        held = rig_merge(r, RIG_COORDINATOR, NODE("delete-held"),
                         "{'metadata': {'finalizers': ['a.example/b', '" FINALIZER_TERMINATION "']}}");
        assert_answer(held, 200, NULL);

        asked = rig_delete(r, RIG_ADMIN, NODE("delete-held"), NULL);
        assert_answer(asked, 200, NULL);
        asked_again = rig_delete(r, RIG_ADMIN, NODE("delete-held"), NULL);
        assert_answer(asked_again, 200, NULL);
        n = rig_node(r, "delete-held");
        assert_int_not_equal(n->object.meta.deletion_usec, 0);

        more = rig_merge(r, RIG_COORDINATOR, NODE("delete-held"),
                         "{'metadata': {'finalizers': ['a.example/b', '" FINALIZER_TERMINATION
                         "', 'c.example/d']}}");
        assert_answer(more, 422, "Invalid");
        assert_true(api_error_has_cause(&more.error, "FieldValueForbidden"));
        marked = rig_merge(r, RIG_COORDINATOR, NODE("delete-held"),
                           "{'metadata': {'finalizers': ['" FINALIZER_TERMINATION
                           "']}, 'spec': {'unschedulable': true}}");
        assert_answer(marked, 200, NULL);

        kube_node_freep(&n);
        n = rig_node(r, "delete-held");
        assert_true(n->unschedulable);
        assert_int_equal(termination_finalizer_patch(&n->object, &body), 1);
        freed = rig_patch_raw(r, RIG_COORDINATOR, NODE("delete-held"), KUBE_PATCH_MERGE, body);
        assert_answer(freed, 200, NULL);
        assert_gone(r, NODE("delete-held"));

        w = rig_watch(r, RIG_ADMIN, NODE(NULL),
                      &(KubeWatchOptions){ .resource_version = answer_version(&list) });
        assert_watch(w,
                     "ADDED delete-held, MODIFIED delete-held, MODIFIED delete-held, MODIFIED delete-held, "
                     "DELETED delete-held");
}

/* The second delete does not move the time of the first. */
TEST_CASE(finalizer_holds_a_claim) {
        Rig *r = *state;
        _cleanup_answer_ Answer held = { 0 }, asked = { 0 }, first = { 0 }, again = { 0 }, second = { 0 },
                                freed = { 0 };
        _cleanup_answer_ Answer made = { 0 };

        rig_make_claim(r, "delete-claim");
        held = rig_merge(r, RIG_COORDINATOR, CLAIM("delete-claim"),
                         "{'metadata': {'finalizers': ['" FINALIZER_TERMINATION "']}}");
        assert_answer(held, 200, NULL);
        asked = rig_delete(r, RIG_COORDINATOR, CLAIM("delete-claim"),
                           &(KubeDeleteOptions){ .uid = answer_uid(&held), .grace_sec = -1 });
        assert_answer(asked, 200, NULL);
        first = rig_get(r, RIG_ADMIN, CLAIM("delete-claim"));
        assert_int_equal(answer_int(&first, "metadata", "deletionGracePeriodSeconds", NULL), 0);
        assert_int_equal(answer_int(&first, "metadata", "generation", NULL), 2);
        rig_sleep(r, 1100 * USEC_PER_MSEC);
        again = rig_delete(r, RIG_COORDINATOR, CLAIM("delete-claim"), NULL);
        assert_answer(again, 200, NULL);
        second = rig_get(r, RIG_ADMIN, CLAIM("delete-claim"));
        assert_string_equal(deletion_of(&second), deletion_of(&first));

        made = rig_create(r, RIG_COORDINATOR, CLAIM(NULL),
                          "{'apiVersion': 'vesper.sh/v1alpha1', 'kind': 'NodeClaim', 'metadata': {'name': "
                          "'delete-claim'}, "
                          "'spec': {'nodePool': 'general', 'providerID': 'x'}}");
        assert_answer(made, 409, "AlreadyExists");
        assert_non_null(strstr(made.error.message, "object is being deleted"));
        assert_int_equal(api_error_to_errno(&made.error), -EEXIST);

        freed = rig_merge(r, RIG_COORDINATOR, CLAIM("delete-claim"), "{'metadata': {'finalizers': null}}");
        assert_answer(freed, 200, NULL);
        assert_gone(r, CLAIM("delete-claim"));
}

/* A finalizer taken off too late or twice does no harm. */
TEST_CASE(finalizer_of_the_gone) {
        Rig *r = *state;
        _cleanup_answer_ Answer a = rig_merge(r, RIG_COORDINATOR, NODE("delete-nobody"),
                                              "{'metadata': {'resourceVersion': '1', 'finalizers': []}}");

        assert_answer(a, 404, "NotFound");
}

/* -- pods ----------------------------------------------------------------------------------------- */

static Answer delete_pod(Rig *r, const char *name, int64_t grace_sec) {
        return rig_delete(r, RIG_COORDINATOR, POD("delete-pods", name),
                          &(KubeDeleteOptions){ .grace_sec = grace_sec });
}

/* Whether the pod's time ends `grace_sec` after its delete was sent and before that was answered, give or
 * take a second, which is what the time is told in. */
static void assert_ends_in(Rig *r, const Answer *pod, const Answer *deleted, int64_t grace_sec) {
        Loop *loop = rig_env(r, RIG_ADMIN)->loop;
        usec_t wall = loop_wall(loop) - loop_now(loop), grace_usec = (usec_t) grace_sec * USEC_PER_SEC;

        assert_in_range(deletion_usec(pod), wall + deleted->started_usec + grace_usec - USEC_PER_SEC,
                        wall + deleted->finished_usec + grace_usec + USEC_PER_SEC);
        assert_int_equal(answer_int(pod, "metadata", "deletionGracePeriodSeconds", NULL), grace_sec);
}

/* The grace can be shortened, never lengthened; 0 ends it. Makes the namespace of the cases about pods. */
TEST_CASE(pods_go_gracefully) {
        Rig *r = *state;
        _cleanup_free_ char *uid = NULL;
        _cleanup_answer_ Answer first = { 0 }, longer = { 0 }, same = { 0 }, shorter = { 0 }, last = { 0 };
        _cleanup_answer_ Answer was = { 0 }, still = { 0 }, then = { 0 };

        rig_make_namespace(r, "delete-pods");
        uid = rig_make_pod(r, "delete-pods", "grace", RIG_NODE_NAME, "x");
        first = delete_pod(r, "grace", -1);
        assert_answer(first, 200, NULL);
        was = rig_get(r, RIG_ADMIN, POD("delete-pods", "grace"));
        assert_ends_in(r, &was, &first, 30);
        assert_string_equal(deletion_of(&first), deletion_of(&was));

        longer = delete_pod(r, "grace", 60);
        assert_answer(longer, 200, NULL);
        same = delete_pod(r, "grace", -1);
        assert_answer(same, 200, NULL);
        still = rig_get(r, RIG_ADMIN, POD("delete-pods", "grace"));
        assert_string_equal(deletion_of(&still), deletion_of(&was));
        assert_string_equal(answer_version(&still), answer_version(&was));

        shorter = delete_pod(r, "grace", 5);
        assert_answer(shorter, 200, NULL);
        then = rig_get(r, RIG_ADMIN, POD("delete-pods", "grace"));
        assert_int_equal(answer_int(&then, "metadata", "deletionGracePeriodSeconds", NULL), 5);
        assert_int_equal(deletion_usec(&was) - deletion_usec(&then), 25 * USEC_PER_SEC);

        last = delete_pod(r, "grace", 0);
        assert_answer(last, 200, NULL);
        assert_gone(r, POD("delete-pods", "grace"));
}

/* An already terminating pod that would outlive the deadline: less, counted from the first delete. */
TEST_CASE(grace_of_the_pod_itself) {
        Rig *r = *state;
        _cleanup_free_ _unused_ char *uid = rig_make_pending_pod(r, "delete-pods", "own", RIG_NODE_NAME, "x",
                                                                 "'terminationGracePeriodSeconds': 7");
        _cleanup_answer_ Answer a = { 0 }, was = { 0 };

        rig_set_pod_status(r, "delete-pods", "own", "Running", true);
        a = delete_pod(r, "own", -1);
        assert_answer(a, 200, NULL);
        was = rig_get(r, RIG_ADMIN, POD("delete-pods", "own"));
        assert_ends_in(r, &was, &a, 7);
}

/* A longer grace than the pod's own is accepted, when it comes first. */
TEST_CASE(grace_of_the_caller) {
        Rig *r = *state;
        _cleanup_free_ _unused_ char *uid = rig_make_pod(r, "delete-pods", "callers", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer a = delete_pod(r, "callers", 100), was = { 0 };

        assert_answer(a, 200, NULL);
        was = rig_get(r, RIG_ADMIN, POD("delete-pods", "callers"));
        assert_ends_in(r, &was, &a, 100);
}

/* Nobody has to stop them: they go at once. */
TEST_CASE(pods_without_a_life) {
        Rig *r = *state;
        _cleanup_free_ _unused_ char *unbound =
                rig_make_pending_pod(r, "delete-pods", "unbound", NULL, "x", "");
        _cleanup_free_ _unused_ char *over = rig_make_pod(r, "delete-pods", "over", RIG_NODE_NAME, "x");
        _cleanup_free_ _unused_ char *pending =
                rig_make_pending_pod(r, "delete-pods", "pending", RIG_NODE_NAME, "x", "");
        _cleanup_answer_ Answer a = { 0 }, b = { 0 }, c = { 0 }, still = { 0 };

        a = delete_pod(r, "unbound", -1);
        assert_answer(a, 200, NULL);
        assert_gone(r, POD("delete-pods", "unbound"));
        rig_set_pod_status(r, "delete-pods", "over", "Succeeded", false);
        b = delete_pod(r, "over", -1);
        assert_answer(b, 200, NULL);
        assert_gone(r, POD("delete-pods", "over"));
        /* Bound to a node, though, a pod has its grace from the start. */
        c = delete_pod(r, "pending", -1);
        assert_answer(c, 200, NULL);
        still = rig_get(r, RIG_ADMIN, POD("delete-pods", "pending"));
        assert_answer(still, 200, NULL);
        assert_ends_in(r, &still, &c, 30);
}

/* Gone and made again under the same name: the old uid does not reach it. */
TEST_CASE(pods_are_not_their_names) {
        Rig *r = *state;
        _cleanup_free_ char *old = rig_make_pod(r, "delete-pods", "again", RIG_NODE_NAME, "x"), *new = NULL;
        _cleanup_answer_ Answer gone = delete_pod(r, "again", 0), wrong = { 0 }, there = { 0 };

        assert_answer(gone, 200, NULL);
        new = rig_make_pod(r, "delete-pods", "again", RIG_NODE_NAME, "x");
        assert_string_not_equal(old, new);
        wrong = rig_delete(r, RIG_COORDINATOR, POD("delete-pods", "again"),
                           &(KubeDeleteOptions){ .uid = old, .grace_sec = 1 });
        assert_answer(wrong, 409, "Conflict");
        there = rig_get(r, RIG_ADMIN, POD("delete-pods", "again"));
        assert_answer(there, 200, NULL);
        assert_null(deletion_of(&there));
}

/* Who decided on what a pod was is told that it has changed: that it is going already, above all. And
 * whoever looks again may take less of it. */
TEST_CASE(pods_that_have_changed) {
        Rig *r = *state;
        _cleanup_free_ char *uid = rig_make_pod(r, "delete-pods", "changed", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer was = rig_get(r, RIG_ADMIN, POD("delete-pods", "changed")), first = { 0 };
        _cleanup_answer_ Answer stale = { 0 }, found = { 0 }, right = { 0 };

        first = delete_pod(r, "changed", -1);
        assert_answer(first, 200, NULL);
        stale = rig_delete(r, RIG_COORDINATOR, POD("delete-pods", "changed"),
                           &(KubeDeleteOptions){
                                   .uid = uid, .resource_version = answer_version(&was), .grace_sec = 5 });
        assert_answer(stale, 409, "Conflict");
        found = rig_get(r, RIG_ADMIN, POD("delete-pods", "changed"));
        assert_ends_in(r, &found, &first, 30);
        right = rig_delete(r, RIG_COORDINATOR, POD("delete-pods", "changed"),
                           &(KubeDeleteOptions){ .uid = uid,
                                                 .resource_version = answer_version(&found),
                                                 .grace_sec = 20 });
        assert_answer(right, 200, NULL);
        assert_ends_in(r, &right, &first, 20);
}

/* A finalizer holds a pod after its grace, too. */
TEST_CASE(finalizer_holds_a_pod) {
        Rig *r = *state;
        _cleanup_free_ _unused_ char *uid = rig_make_pod(r, "delete-pods", "held", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer held = { 0 }, asked = { 0 }, still = { 0 }, freed = { 0 };

        held = rig_merge(r, RIG_ADMIN, POD("delete-pods", "held"),
                         "{'metadata': {'finalizers': ['a.example/b']}}");
        assert_answer(held, 200, NULL);
        asked = delete_pod(r, "held", 0);
        assert_answer(asked, 200, NULL);
        still = rig_get(r, RIG_ADMIN, POD("delete-pods", "held"));
        assert_answer(still, 200, NULL);
        assert_int_equal(answer_int(&still, "metadata", "deletionGracePeriodSeconds", NULL), 0);
        freed = rig_merge(r, RIG_ADMIN, POD("delete-pods", "held"), "{'metadata': {'finalizers': null}}");
        assert_answer(freed, 200, NULL);
        assert_gone(r, POD("delete-pods", "held"));
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(delete_node_at_once),      cmocka_unit_test(delete_with_preconditions),
        cmocka_unit_test(dry_run_deletes_nothing),  cmocka_unit_test(finalizer_holds_a_node),
        cmocka_unit_test(finalizer_holds_a_claim),  cmocka_unit_test(finalizer_of_the_gone),
        cmocka_unit_test(pods_go_gracefully),       cmocka_unit_test(grace_of_the_pod_itself),
        cmocka_unit_test(grace_of_the_caller),      cmocka_unit_test(pods_without_a_life),
        cmocka_unit_test(pods_are_not_their_names), cmocka_unit_test(pods_that_have_changed),
        cmocka_unit_test(finalizer_holds_a_pod),
};
CONTRACT_SUITE(delete, cases);
