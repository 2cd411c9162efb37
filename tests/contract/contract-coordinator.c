/* SPDX-License-Identifier: Apache-2.0 */
/* What packaging/manifests/coordinator/rbac.yaml lets the coordinator do: each verb that it names, and no
 * more. */
#include "contract-ask.h"
#include "event-recorder.h"

#define NS "coordinator"
#define VESPER "'apiVersion': 'vesper.sh/v1alpha1', 'kind': "

/* Once for all cases. */
TEST_CASE(what_it_works_on) {
        Rig *r = *state;
        _cleanup_free_ char *a = NULL, *b = NULL;
        _cleanup_answer_ Answer pool = { 0 }, attachment = { 0 };

        rig_make_namespace(r, NS);
        rig_make_node(r, "coordinator-node");
        a = rig_make_pod(r, NS, "evicted", "coordinator-node", "x");
        b = rig_make_pod(r, NS, "deleted", "coordinator-node", "x");
        rig_make_pdb(r, NS, "budget", "other", "");
        pool = rig_create(r, RIG_ADMIN, POOL(NULL),
                          "{" VESPER
                          "'NodePool', 'metadata': {'name': 'coordinator-pool'}, 'spec': {'selector': "
                          "{'matchLabels': {'a': 'b'}}}}");
        assert_answer(pool, 201, NULL);
        attachment = rig_create(r, RIG_ADMIN, ATTACHMENT(NULL),
                                "{'metadata': {'name': 'coordinator-volume'}, 'spec': {'attacher': "
                                "'csi.example', 'nodeName': "
                                "'coordinator-node', 'source': {'persistentVolumeName': 'pv'}}}");
        assert_answer(attachment, 201, NULL);
}

TEST_CASE(it_reads) {
        Rig *r = *state;
        const struct {
                KubeTarget one;
                const char *body_has;
        } rows[] = {
                { NODE("coordinator-node"), "providerID" },
                { POD(NS, "evicted"), "containers" },
                { PDB(NS, "budget"), "maxUnavailable" },
                { ATTACHMENT("coordinator-volume"), "csi.example" },
                { POOL("coordinator-pool"), "matchLabels" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeTarget all = { .kind = rows[i].one.kind };
                _cleanup_answer_ Answer one = rig_get(r, RIG_COORDINATOR, rows[i].one); /* not needed */
                _cleanup_answer_ Answer list = rig_list(r, RIG_COORDINATOR, all, NULL);
                _cleanup_watch_ RigWatch *w = NULL;

                print_message("  %s\n", all.kind->plural);
                assert_answer(one, 403, "Forbidden");
                assert_answer(list, 200, NULL);
                assert_non_null(strstr(list.body, rows[i].body_has));
                w = rig_watch(
                        r, RIG_COORDINATOR, all,
                        &(KubeWatchOptions){ .resource_version = answer_version(&list), .timeout_sec = 1 });
                assert_true(rig_watch_wait_end(w));
                assert_int_equal(w->status, 200);
        }
}

/* Its own by a field selector, as a right that names one object asks for; and all of them, for their labels. */
TEST_CASE(it_sees_its_namespace) {
        Rig *r = *state;
        const KubeListOptions own = { .field_selector = "metadata.name=vesper-system" };
        _cleanup_answer_ Answer list = rig_list(r, RIG_COORDINATOR, NAMESPACE(NULL), &own);
        _cleanup_answer_ Answer all = rig_list(r, RIG_COORDINATOR, NAMESPACE(NULL), NULL);
        _cleanup_watch_ RigWatch *w = NULL;

        assert_answer(list, 200, NULL);
        assert_non_null(strstr(list.body, "\"vesper-system\""));
        assert_null(strstr(list.body, "\"kube-public\""));
        assert_answer(all, 200, NULL);
        assert_non_null(strstr(all.body, "\"vesper-system\""));
        w = rig_watch(r, RIG_COORDINATOR, NAMESPACE(NULL),
                      &(KubeWatchOptions){ .field_selector = own.field_selector,
                                           .resource_version = answer_version(&list),
                                           .timeout_sec = 1 });
        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->status, 200);
}

/* Single ones, by name: what a VolumeAttachment and a pod's claim have in common. All of them: where a pod could go. */
TEST_CASE(it_reads_claims_of_volumes) {
        Rig *r = *state;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_answer_ Answer made = { 0 }, one = { 0 }, none = { 0 }, list = { 0 };

        made = rig_create(r, RIG_ADMIN, PVC(NS, NULL),
                          "{'metadata': {'name': 'data'}, 'spec': {'volumeName': 'pv', 'accessModes': "
                          "['ReadWriteOnce'], 'storageClassName': '', 'resources': {'requests': {'storage': "
                          "'1Gi'}}}}");
        assert_answer(made, 201, NULL);
        one = rig_get(r, RIG_COORDINATOR, PVC(NS, "data"));
        assert_answer(one, 200, NULL);
        assert_return_code(kube_object_decode(&kube_pvc_kind, one.json,
                                              kube_client_pool(rig_client(r, RIG_COORDINATOR)), &o),
                           0);
        assert_string_equal(CONTAINER_OF(o, KubePersistentVolumeClaim, object)->volume_name, "pv");
        none = rig_get(r, RIG_COORDINATOR, PVC(NS, "nothing"));
        assert_answer(none, 404, "NotFound");
        list = rig_list(r, RIG_COORDINATOR, PVC(NS, NULL), NULL);
        assert_answer(list, 200, NULL);
        assert_non_null(strstr(list.body, "\"data\""));
}

TEST_CASE(it_writes_nodes_and_pods) {
        Rig *r = *state;
        _cleanup_answer_ Answer pod = rig_get(r, RIG_ADMIN, POD(NS, "evicted"));
        _cleanup_answer_ Answer node =
                rig_merge(r, RIG_COORDINATOR, NODE("coordinator-node"),
                          "{'metadata': {'finalizers': ['vesper.sh/termination']}, 'spec': "
                          "{'taints': [{'key': 'vesper.sh/disrupted', 'effect': 'NoSchedule'}], "
                          "'unschedulable': true}}");
        _cleanup_answer_ Answer status =
                rig_patch(r, RIG_COORDINATOR, NODE_STATUS("coordinator-node"), KUBE_PATCH_STRATEGIC,
                          "{'status': {'conditions': [{'type': 'Drained', 'status': 'False'}]}}");
        _cleanup_answer_ Answer evicted = rig_evict(r, RIG_COORDINATOR, NS, "evicted", answer_uid(&pod), -1);
        _cleanup_answer_ Answer deleted =
                rig_delete(r, RIG_COORDINATOR, POD(NS, "deleted"), &(KubeDeleteOptions){ .grace_sec = 1 });
        _cleanup_answer_ Answer freed = { 0 }, gone = { 0 };

        assert_answer(node, 200, NULL);
        assert_answer(status, 200, NULL);
        assert_answer(evicted, 201, NULL);
        assert_answer(deleted, 200, NULL);
        freed = rig_merge(r, RIG_COORDINATOR, NODE("coordinator-node"),
                          "{'metadata': {'finalizers': null}}");
        assert_answer(freed, 200, NULL);
        gone = rig_delete(r, RIG_COORDINATOR, NODE("coordinator-node"),
                          &(KubeDeleteOptions){ .uid = answer_uid(&freed), .grace_sec = -1 });
        assert_answer(gone, 200, NULL);
}

TEST_CASE(it_writes_claims_and_pools) {
        Rig *r = *state;
        _cleanup_answer_ Answer made =
                rig_create(r, RIG_COORDINATOR, CLAIM(NULL),
                           "{" VESPER "'NodeClaim', 'metadata': {'name': 'coordinator-claim', "
                           "'finalizers': ['vesper.sh/termination']}, 'spec': {'nodePool': 'a', "
                           "'providerID': 'b'}}");
        _cleanup_answer_ Answer status = rig_merge(r, RIG_COORDINATOR, CLAIM_STATUS("coordinator-claim"),
                                                   "{'status': {'phase': 'Adopted'}}");
        _cleanup_answer_ Answer gone = rig_delete(r, RIG_COORDINATOR, CLAIM("coordinator-claim"), NULL);
        _cleanup_answer_ Answer freed = rig_merge(r, RIG_COORDINATOR, CLAIM("coordinator-claim"),
                                                  "{'metadata': {'finalizers': null}}");
        _cleanup_answer_ Answer list = rig_list(r, RIG_COORDINATOR, CLAIM(NULL), NULL);
        _cleanup_answer_ Answer pool = rig_merge(r, RIG_COORDINATOR, POOL("coordinator-pool"),
                                                 "{'metadata': {'finalizers': ['vesper.sh/termination']}}");
        _cleanup_answer_ Answer pool_status =
                rig_merge(r, RIG_COORDINATOR, POOL_STATUS("coordinator-pool"), "{'status': {'nodes': 3}}");

        assert_answer(made, 201, NULL);
        assert_answer(status, 200, NULL);
        assert_answer(gone, 200, NULL);
        assert_answer(freed, 200, NULL);
        assert_answer(list, 200, NULL);
        assert_answer(pool, 200, NULL);
        assert_answer(pool_status, 200, NULL);
}

/* As event-recorder.c writes them: of a Node in "default", of a pod in its namespace; repeats counted. */
TEST_CASE(it_writes_events) {
        Rig *r = *state;
        _cleanup_answer_ Answer node =
                rig_create(r, RIG_COORDINATOR, EVENT("default", NULL),
                           "{'metadata': {'name': 'coordinator.1'}, 'involvedObject': {'kind': 'Node', "
                           "'name': 'n'}, 'reason': 'Drained', 'message': 'm', 'type': 'Normal', "
                           "'count': 1}");
        _cleanup_answer_ Answer pod =
                rig_create(r, RIG_COORDINATOR, EVENT(NS, NULL),
                           "{'metadata': {'name': 'coordinator.2'}, 'involvedObject': {'kind': 'Pod', "
                           "'namespace': '" NS "', 'name': 'p'}, 'reason': 'Evicted', 'message': 'm'}");
        _cleanup_answer_ Answer again =
                rig_merge(r, RIG_COORDINATOR, EVENT("default", "coordinator.1"), "{'count': 2}");
        _cleanup_answer_ Answer astray =
                rig_create(r, RIG_COORDINATOR, EVENT("kube-public", NULL),
                           "{'metadata': {'name': 'coordinator.3'}, 'involvedObject': {'kind': "
                           "'Pod', 'namespace': '" NS "', 'name': 'p'}}");

        assert_answer(node, 201, NULL);
        assert_answer(pod, 201, NULL);
        assert_answer(again, 200, NULL);
        assert_answer(astray, 422, "Invalid");
}

static bool all_told(void *recorder) {
        return event_recorder_pending(recorder) == 0;
}

/* The recorder's own Events are taken; of a repeat within the minute there is one. */
TEST_CASE(its_recorder_is_heard) {
        Rig *r = *state;
        _cleanup_(event_recorder_freep) EventRecorder *e = NULL;
        static const EventObject objects[] = {
                { .api_version = "v1", .kind = "Node", .name = "recorded", .uid = "u1" },
                { .api_version = "v1", .kind = "Pod", .ns = NS, .name = "recorded", .uid = "u2" },
                { .group = "vesper.sh",
                  .api_version = "v1alpha1",
                  .kind = "NodeClaim",
                  .name = "recorded",
                  .uid = "u3" },
        };

        assert_return_code(
                event_recorder_new(rig_client(r, RIG_COORDINATOR), "vesper-coordinator", "host", &e), 0);
        for (size_t i = 0; i < ELEMENTSOF(objects); i++)
                for (unsigned k = 0; k < 2; k++)
                        event_record(e, objects + i, EVENT_WARNING, "DrainBlocked", "Waits for %s",
                                     "nobody");
        assert_true(rig_wait(r, all_told, e, RIG_PATIENCE_USEC));
        for (size_t i = 0; i < ELEMENTSOF(objects); i++) {
                _cleanup_free_ char *selector =
                        strf("involvedObject.name=recorded,involvedObject.kind=%s", objects[i].kind);
                _cleanup_answer_ Answer a = rig_list(r, RIG_ADMIN, EVENT(objects[i].ns ?: "default", NULL),
                                                     &(KubeListOptions){ .field_selector = selector });
                const Json *event = json_first(json_get(a.json, "items"));

                print_message("  %s\n", objects[i].kind);
                assert_answer(a, 200, NULL);
                assert_int_equal(json_size(json_get(a.json, "items")), 1);
                assert_string_equal(json_string_or_null(json_get(event, "reason")), "DrainBlocked");
                assert_string_equal(json_string_or_null(json_get(event, "message")), "Waits for nobody");
                assert_string_equal(json_string_or_null(json_get(event, "type")), "Warning");
                assert_string_equal(json_string_or_null(json_path(event, "source", "component", NULL)),
                                    "vesper-coordinator");
        }
}

/* The Lease of its name in its namespace, to get and update; deleting it is nobody's business. */
TEST_CASE(it_has_one_lease) {
        Rig *r = *state;
        _cleanup_answer_ Answer cleared =
                rig_delete(r, RIG_ADMIN, LEASE("vesper-system", "vesper-coordinator"), NULL);
        _cleanup_answer_ Answer none =
                rig_get(r, RIG_COORDINATOR, LEASE("vesper-system", "vesper-coordinator"));
        _cleanup_answer_ Answer made =
                rig_create(r, RIG_COORDINATOR, LEASE("vesper-system", NULL),
                           "{'metadata': {'name': 'vesper-coordinator'}, 'spec': {'holderIdentity': "
                           "'a'}}");
        _cleanup_answer_ Answer read =
                rig_get(r, RIG_COORDINATOR, LEASE("vesper-system", "vesper-coordinator"));
        _cleanup_answer_ Answer put = { 0 }, other = { 0 }, elsewhere = { 0 }, gone = { 0 }, list = { 0 };

        assert_true(cleared.status == 200 || cleared.status == 404);
        assert_answer(none, 404, "NotFound");
        assert_answer(made, 201, NULL);
        assert_answer(read, 200, NULL);
        put = rig_update_raw(r, RIG_COORDINATOR, LEASE("vesper-system", "vesper-coordinator"), read.body);
        assert_answer(put, 200, NULL);
        other = rig_get(r, RIG_COORDINATOR, LEASE("vesper-system", "another"));
        assert_answer(other, 403, "Forbidden");
        elsewhere = rig_get(r, RIG_COORDINATOR, LEASE("kube-system", "vesper-coordinator"));
        assert_answer(elsewhere, 403, "Forbidden");
        gone = rig_delete(r, RIG_COORDINATOR, LEASE("vesper-system", "vesper-coordinator"), NULL);
        assert_answer(gone, 403, "Forbidden");
        list = rig_list(r, RIG_COORDINATOR, LEASE("vesper-system", NULL), NULL);
        assert_answer(list, 403, "Forbidden");
}

TEST_CASE(it_may_do_no_more) {
        Rig *r = *state;
        Answer answers[] = {
                rig_create(r, RIG_COORDINATOR, NODE(NULL), "{'metadata': {'name': 'coordinator-new'}}"),
                rig_update(r, RIG_COORDINATOR, NODE("coordinator-node"),
                           "{'metadata': {'name': 'coordinator-node'}}"),
                rig_update(r, RIG_COORDINATOR, NODE_STATUS("coordinator-node"),
                           "{'metadata': {'name': 'coordinator-node'}}"),
                rig_merge(r, RIG_COORDINATOR, POD(NS, "evicted"), "{'metadata': {'labels': {'a': 'b'}}}"),
                rig_update(r, RIG_COORDINATOR, POD_STATUS(NS, "evicted"), "{'metadata': {'name': 'evicted'}, 'status': {'phase': 'Failed'}}"),
                rig_create(r, RIG_COORDINATOR, POD(NS, NULL), "{'metadata': {'name': 'p'}}"),
                rig_merge(r, RIG_COORDINATOR, PDB(NS, "budget"), "{'spec': {'maxUnavailable': 5}}"),
                rig_merge(r, RIG_COORDINATOR, PDB_STATUS(NS, "budget"),
                          "{'status': {'disruptionsAllowed': 5}}"),
                rig_delete(r, RIG_COORDINATOR, PDB(NS, "budget"), NULL),
                rig_list(r, RIG_COORDINATOR, EVENT(NULL, NULL), NULL),
                rig_delete(r, RIG_COORDINATOR, ATTACHMENT("coordinator-volume"), NULL),
                rig_delete(r, RIG_COORDINATOR, POOL("coordinator-pool"), NULL),
                rig_create(r, RIG_COORDINATOR, POOL(NULL), "{}"),
                rig_update(r, RIG_COORDINATOR, CLAIM("coordinator-claim"),
                           "{'metadata': {'name': 'coordinator-claim'}}"),
                rig_create(r, RIG_COORDINATOR, NDB(NULL), "{}"),
                rig_merge(r, RIG_COORDINATOR, NDB("coordinator-budget"), "{'spec': {'maxUnavailable': 5}}"),
                rig_delete(r, RIG_COORDINATOR, PVC(NS, "data"), NULL),
                rig_merge(r, RIG_COORDINATOR, PVC(NS, "data"), "{'metadata': {'labels': {'a': 'b'}}}"),
                rig_delete(r, RIG_COORDINATOR, NAMESPACE(NS), NULL),
        };

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                check_answer(answers + i, 403, "Forbidden", __FILE__, __LINE__);
                assert_int_equal(api_error_to_errno(&answers[i].error), -EACCES);
                answer_done(answers + i);
        }
}

/* Without rights nothing is had; the refusal says who asked for what. */
TEST_CASE(a_stranger_may_do_nothing) {
        Rig *r = *state;
        _cleanup_answer_ Answer list = rig_list(r, RIG_STRANGER, NODE(NULL), NULL);
        _cleanup_answer_ Answer patch = rig_merge(r, RIG_STRANGER, NODE("coordinator-node"), "{'spec': {}}");

        assert_answer(list, 403, "Forbidden");
        assert_string_equal(list.error.message, "nodes is forbidden: User \"stranger\" cannot list resource "
                                                "\"nodes\" in API group \"\" at the "
                                                "cluster scope");
        assert_answer(patch, 403, "Forbidden");
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(what_it_works_on),           cmocka_unit_test(it_reads),
        cmocka_unit_test(it_sees_its_namespace),
        cmocka_unit_test(it_reads_claims_of_volumes), cmocka_unit_test(it_writes_nodes_and_pods),
        cmocka_unit_test(it_writes_claims_and_pools), cmocka_unit_test(it_writes_events),
        cmocka_unit_test(its_recorder_is_heard),      cmocka_unit_test(it_has_one_lease),
        cmocka_unit_test(it_may_do_no_more),          cmocka_unit_test(a_stranger_may_do_nothing),
};
CONTRACT_SUITE(coordinator, cases);
