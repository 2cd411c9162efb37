/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's own credential may do and what not: Node authorizer and NodeRestriction. The agent lives on
 * this. */
#include "contract-ask.h"
#include "marks.h"

#define NS "credential"

/* The two nodes, and a pod on each; once for all cases. */
TEST_CASE(two_nodes_and_their_pods) {
        Rig *r = *state;
        _cleanup_free_ char *mine = NULL, *other = NULL;

        rig_make_namespace(r, NS);
        rig_make_node(r, RIG_NODE_NAME);
        rig_make_node(r, RIG_OTHER_NODE_NAME);
        mine = rig_make_pod(r, NS, "mine", RIG_NODE_NAME, "x");
        other = rig_make_pod(r, NS, "theirs", RIG_OTHER_NODE_NAME, "x");
}

typedef struct PatchRow {
        const char *what;
        const char *node, *subresource;
        KubePatchType type;
        const char *body;
        unsigned status;
} PatchRow;

/* In this order: each builds on those before. */
static const PatchRow patches[] = {
        { "cordons, annotates and labels itself, in one", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'annotations': {'" ANNOTATION_CORDONED_BY_AGENT "': '{}', '" ANNOTATION_INTERRUPTION
          "': '{}'}, 'labels': {'" LABEL_EXCLUDE_FROM_LB "': '" LABEL_EXCLUDE_FROM_LB_VALUE
          "'}}, 'spec': {'unschedulable': true}}",
          200 },
        { "by a JSON patch that it was not cordoned, which it is", RIG_NODE_NAME, NULL, KUBE_PATCH_JSON,
          "[{'op': 'test', 'path': '/spec/unschedulable', 'value': null}, {'op': 'add', 'path': "
          "'/spec/unschedulable', "
          "'value': true}]",
          422 },
        { "takes all of it off again", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'annotations': {'" ANNOTATION_CORDONED_BY_AGENT "': null, '" ANNOTATION_INTERRUPTION
          "': null}, 'labels': {'" LABEL_EXCLUDE_FROM_LB "': null}}, 'spec': {'unschedulable': null}}",
          200 },
        { "by a JSON patch that it was not cordoned", RIG_NODE_NAME, NULL, KUBE_PATCH_JSON,
          "[{'op': 'test', 'path': '/spec/unschedulable', 'value': null}, {'op': 'add', 'path': "
          "'/spec/unschedulable', "
          "'value': true}]",
          200 },
        { "un-cordons itself", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE, "{'spec': {'unschedulable': null}}",
          200 },
        { "a label of a domain of ours", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'labels': {'vesper.sh/draining': 'yes'}}}", 200 },
        { "a label of Kubernetes' own", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'labels': {'new.k8s.io/x': 'y'}}}", 403 },
        { "a restricted label", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'labels': {'node-restriction.kubernetes.io/x': 'y'}}}", 403 },
        { "a taint", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'spec': {'taints': [{'key': '" TAINT_DISRUPTED "', 'effect': 'NoSchedule'}]}}", 403 },
        { "no taints any more", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE, "{'spec': {'taints': null}}", 403 },
        { "a stale version", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'resourceVersion': '1'}, 'spec': {'unschedulable': true}}", 409 },
        { "a stale version, status", RIG_NODE_NAME, "status", KUBE_PATCH_STRATEGIC,
          "{'metadata': {'resourceVersion': '1'}, 'status': {'conditions': [{'type': 'Drained', 'status': "
          "'True'}]}}",
          409 },
        { "a condition of any type", RIG_NODE_NAME, "status", KUBE_PATCH_STRATEGIC,
          "{'status': {'conditions': [{'type': 'Drained', 'status': 'True', 'reason': 'VesperAgent'}]}}",
          200 },
        { "and off again", RIG_NODE_NAME, "status", KUBE_PATCH_STRATEGIC,
          "{'status': {'conditions': [{'type': 'Drained', '$patch': 'delete'}]}}", 200 },
        { "finalizers on itself", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE,
          "{'metadata': {'finalizers': ['" FINALIZER_TERMINATION "']}}", 200 },
        { "and off again", RIG_NODE_NAME, NULL, KUBE_PATCH_MERGE, "{'metadata': {'finalizers': null}}",
          200 },
        { "another node", RIG_OTHER_NODE_NAME, NULL, KUBE_PATCH_MERGE, "{'spec': {'unschedulable': true}}",
          403 },
        { "another node's status", RIG_OTHER_NODE_NAME, "status", KUBE_PATCH_STRATEGIC,
          "{'status': {'conditions': [{'type': 'Drained', 'status': 'True'}]}}", 403 },
        { "a node that is not there", "credential-nobody", NULL, KUBE_PATCH_MERGE,
          "{'spec': {'unschedulable': true}}", 404 },
};

static const char *reason_of(unsigned status) {
        switch (status) {
        case 403:
                return "Forbidden";
        case 404:
                return "NotFound";
        case 409:
                return "Conflict";
        default:
                return "Invalid";
        }
}

TEST_CASE(patches_of_its_node) {
        Rig *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(patches); i++) {
                const PatchRow *p = patches + i;
                KubeTarget t = { .kind = &kube_node_kind, .name = p->node, .subresource = p->subresource };
                _cleanup_answer_ Answer a = rig_patch(r, RIG_NODE, t, p->type, "%s", p->body);

                print_message("  %s\n", p->what);
                assert_answer(a, p->status, reason_of(p->status));
        }
}

/* As decided on the newest state: by the version that its own watch would have given. */
TEST_CASE(conditional_patch_of_itself) {
        Rig *r = *state;
        _cleanup_answer_ Answer seen = rig_get(r, RIG_NODE, NODE(RIG_NODE_NAME)), patched = { 0 },
                                status = { 0 };

        assert_answer(seen, 200, NULL);
        patched = rig_merge(r, RIG_NODE, NODE(RIG_NODE_NAME),
                            "{'metadata': {'resourceVersion': '%s', 'annotations': {'a': 'b'}}}",
                            answer_version(&seen));
        assert_answer(patched, 200, NULL);
        status = rig_patch(r, RIG_NODE, NODE_STATUS(RIG_NODE_NAME), KUBE_PATCH_STRATEGIC,
                           "{'metadata': {'resourceVersion': '%s'}, 'status': {'conditions': [{'type': "
                           "'DrainInProgress', "
                           "'status': 'True'}]}}",
                           answer_version(&patched));
        assert_answer(status, 200, NULL);
}

TEST_CASE(reads_its_node_and_no_other) {
        Rig *r = *state;
        _cleanup_answer_ Answer own = rig_get(r, RIG_NODE, NODE(RIG_NODE_NAME));
        _cleanup_answer_ Answer other = rig_get(r, RIG_NODE, NODE(RIG_OTHER_NODE_NAME));
        _cleanup_answer_ Answer all = rig_list(r, RIG_NODE, NODE(NULL), NULL);
        _cleanup_answer_ Answer one =
                rig_list(r, RIG_NODE, NODE(NULL),
                         &(KubeListOptions){ .field_selector = "metadata.name=" RIG_NODE_NAME });
        _cleanup_answer_ Answer another =
                rig_list(r, RIG_NODE, NODE(NULL),
                         &(KubeListOptions){ .field_selector = "metadata.name=" RIG_OTHER_NODE_NAME });
        _cleanup_answer_ Answer gone = rig_delete(r, RIG_NODE, NODE(RIG_NODE_NAME), NULL);

        assert_answer(own, 200, NULL);
        assert_answer(other, 403, "Forbidden");
        assert_answer(all, 403, "Forbidden");
        assert_answer(one, 200, NULL);
        assert_int_equal(json_size(json_get(one.json, "items")), 1);
        assert_answer(another, 403, "Forbidden");
        assert_answer(gone, 403, "Forbidden");
}

TEST_CASE(watches_its_node_and_pods) {
        Rig *r = *state;
        _cleanup_answer_ Answer nodes =
                rig_list(r, RIG_NODE, NODE(NULL),
                         &(KubeListOptions){ .field_selector = "metadata.name=" RIG_NODE_NAME });
        _cleanup_watch_ RigWatch *node = NULL, *pods = NULL, *all = NULL;
        _cleanup_answer_ Answer touched = { 0 };
        KubeWatchOptions o = { .resource_version = answer_version(&nodes),
                               .field_selector = "metadata.name=" RIG_NODE_NAME };

        node = rig_watch(r, RIG_NODE, NODE(NULL), &o);
        o.field_selector = "spec.nodeName=" RIG_NODE_NAME;
        pods = rig_watch(r, RIG_NODE, POD(NULL, NULL), &o);
        o.field_selector = NULL;
        all = rig_watch(r, RIG_NODE, POD(NULL, NULL), &o);
        touched = rig_merge(r, RIG_ADMIN, NODE(RIG_NODE_NAME),
                            "{'metadata': {'annotations': {'touched': 'yes'}}}");
        assert_answer(touched, 200, NULL);
        rig_set_pod_status(r, NS, "mine", "Running", false);
        rig_set_pod_status(r, NS, "theirs", "Running", false);
        rig_set_pod_status(r, NS, "mine", "Running", true);
        assert_watch(node, "MODIFIED " RIG_NODE_NAME);
        assert_watch(pods, "MODIFIED mine, MODIFIED mine");
        assert_true(rig_watch_wait_end(all));
        assert_int_equal(all->status, 403);
}

TEST_CASE(reads_its_pods_and_no_others) {
        Rig *r = *state;
        _cleanup_answer_ Answer own =
                rig_list(r, RIG_NODE, POD(NULL, NULL),
                         &(KubeListOptions){ .field_selector = "spec.nodeName=" RIG_NODE_NAME });
        _cleanup_answer_ Answer others =
                rig_list(r, RIG_NODE, POD(NULL, NULL),
                         &(KubeListOptions){ .field_selector = "spec.nodeName=" RIG_OTHER_NODE_NAME });
        _cleanup_answer_ Answer all = rig_list(r, RIG_NODE, POD(NULL, NULL), NULL);
        _cleanup_answer_ Answer ns = rig_list(r, RIG_NODE, POD(NS, NULL), NULL);
        _cleanup_answer_ Answer mine = rig_get(r, RIG_NODE, POD(NS, "mine"));
        _cleanup_answer_ Answer theirs = rig_get(r, RIG_NODE, POD(NS, "theirs"));
        _cleanup_answer_ Answer none = rig_get(r, RIG_NODE, POD(NS, "nobody"));

        assert_answer(own, 200, NULL);
        assert_non_null(strstr(own.body, "\"mine\""));
        assert_null(strstr(own.body, "\"theirs\""));
        assert_answer(others, 403, "Forbidden");
        assert_answer(all, 403, "Forbidden");
        assert_answer(ns, 403, "Forbidden");
        assert_answer(mine, 200, NULL);
        assert_answer(theirs, 403, "Forbidden");
        assert_answer(none, 403, "Forbidden");
}

TEST_CASE(evicts_its_pods_and_no_others) {
        Rig *r = *state;
        _cleanup_free_ char *own = rig_make_pod(r, NS, "evicted", RIG_NODE_NAME, "x");
        _cleanup_free_ char *other = rig_make_pod(r, NS, "spared", RIG_OTHER_NODE_NAME, "x");
        _cleanup_answer_ Answer theirs = rig_evict(r, RIG_NODE, NS, "spared", other, -1);
        _cleanup_answer_ Answer mine = rig_evict(r, RIG_NODE, NS, "evicted", own, 3), pod = { 0 };
        _cleanup_answer_ Answer gone = rig_evict(r, RIG_NODE, NS, "nobody", own, -1);

        assert_answer(theirs, 403, "Forbidden");
        assert_answer(mine, 201, NULL);
        pod = rig_get(r, RIG_NODE, POD(NS, "evicted"));
        assert_int_equal(answer_int(&pod, "metadata", "deletionGracePeriodSeconds", NULL), 3);
        assert_answer(gone, 404, "NotFound");
}

TEST_CASE(deletes_its_pods_and_no_others) {
        Rig *r = *state;
        _cleanup_free_ char *own = rig_make_pod(r, NS, "deleted", RIG_NODE_NAME, "x");
        _cleanup_answer_ Answer mine = rig_delete(r, RIG_NODE, POD(NS, "deleted"),
                                                  &(KubeDeleteOptions){ .uid = own, .grace_sec = 1 });
        _cleanup_answer_ Answer theirs = rig_delete(r, RIG_NODE, POD(NS, "theirs"), NULL);
        _cleanup_answer_ Answer patched =
                rig_merge(r, RIG_NODE, POD(NS, "mine"), "{'metadata': {'labels': {'a': 'b'}}}");

        assert_answer(mine, 200, NULL);
        assert_answer(theirs, 403, "Forbidden");
        assert_answer(patched, 403, "Forbidden");
}

/* A PDB refuses a node's eviction as anyone's; that is how it learns of it. */
TEST_CASE(is_refused_by_a_budget) {
        Rig *r = *state;
        _cleanup_free_ char *uid = rig_make_pod(r, NS, "guarded", RIG_NODE_NAME, "guarded");
        _cleanup_answer_ Answer a = { 0 };

        rig_make_pdb(r, NS, "guard", "guarded", "");
        rig_set_pdb_status(r, NS, "guard", 1, 0, 1, 1);
        a = rig_evict(r, RIG_NODE, NS, "guarded", uid, -1);
        assert_answer(a, 429, "TooManyRequests");
        assert_true(api_error_has_cause(&a.error, "DisruptionBudget"));
        assert_non_null(strstr(a.error.causes[0].message, "guard"));
}

TEST_CASE(writes_core_events) {
        Rig *r = *state;
        _cleanup_answer_ Answer in_default = { 0 }, elsewhere = { 0 }, counted = { 0 }, listed = { 0 };

        in_default = rig_create(
                r, RIG_NODE, EVENT("default", NULL),
                "{'metadata': {'name': 'credential.1'}, 'involvedObject': {'kind': 'Node', 'name': "
                "'" RIG_NODE_NAME
                "'}, 'reason': 'SpotNotice', 'message': 'm', 'type': 'Warning', 'count': 1, "
                "'firstTimestamp': '2026-01-01T00:00:00Z', 'lastTimestamp': '2026-01-01T00:00:00Z'}");
        assert_answer(in_default, 201, NULL);
        elsewhere = rig_create(
                r, RIG_NODE, EVENT(NS, NULL),
                "{'metadata': {'name': 'credential.2'}, 'involvedObject': {'kind': 'Pod', 'namespace': '" NS
                "', 'name': 'mine'}, 'reason': 'Evicted', 'message': 'm', 'type': 'Normal'}");
        assert_answer(elsewhere, 201, NULL);
        counted = rig_merge(r, RIG_NODE, EVENT("default", "credential.1"), "{'count': 2}");
        assert_answer(counted, 200, NULL);
        listed = rig_list(r, RIG_NODE, EVENT("default", NULL), NULL);
        assert_answer(listed, 403, "Forbidden");
}

TEST_CASE(what_is_none_of_its_business) {
        static const KubeKind events_of_another_group = {
                .group = "events.k8s.io",
                .version = "v1",
                .plural = "events",
                .kind = "Event",
                .namespaced = true,
        };
        Rig *r = *state;
        const KubeTarget lists[] = { PDB(NULL, NULL),
                                     PDB(NS, NULL),
                                     LEASE("kube-system", NULL),
                                     LEASE("kube-node-lease", NULL),
                                     ATTACHMENT(NULL),
                                     CLAIM(NULL),
                                     POOL(NULL),
                                     NDB(NULL),
                                     NAMESPACE(NULL) };
        _cleanup_answer_ Answer lease = { 0 }, claim = { 0 }, event = { 0 }, pdb = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                _cleanup_answer_ Answer a = rig_list(r, RIG_NODE, lists[i], NULL);

                print_message("  %s\n", lists[i].kind->plural);
                assert_answer(a, 403, "Forbidden");
        }
        lease = rig_create(r, RIG_NODE, LEASE("kube-system", NULL), "{'metadata': {'name': 'credential'}}");
        assert_answer(lease, 403, "Forbidden");
        claim = rig_merge(r, RIG_NODE, CLAIM("nobody"), "{'metadata': {'labels': {'a': 'b'}}}");
        assert_answer(claim, 403, "Forbidden");
        pdb = rig_get(r, RIG_NODE, PDB(NS, "guard"));
        assert_answer(pdb, 403, "Forbidden");
        event = rig_create(
                r, RIG_NODE, ((KubeTarget){ .kind = &events_of_another_group, .ns = "default" }),
                "{'metadata': {'name': 'credential.3'}, 'eventTime': '2026-01-01T00:00:00.000000Z'}");
        assert_answer(event, 403, "Forbidden");
}

/* Its own node Lease alone. */
TEST_CASE(its_own_lease) {
        Rig *r = *state;
        _cleanup_answer_ Answer own =
                rig_create(r, RIG_NODE, LEASE("kube-node-lease", NULL),
                           "{'metadata': {'name': '" RIG_NODE_NAME "'}, 'spec': {'holderIdentity': 'a'}}");
        _cleanup_answer_ Answer others = rig_create(r, RIG_NODE, LEASE("kube-node-lease", NULL),
                                                    "{'metadata': {'name': '" RIG_OTHER_NODE_NAME "'}}");
        _cleanup_answer_ Answer read = rig_get(r, RIG_OTHER_NODE, LEASE("kube-node-lease", RIG_NODE_NAME));

        assert_answer(own, 201, NULL);
        assert_answer(others, 403, "Forbidden");
        assert_answer(read, 403, "Forbidden");
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(two_nodes_and_their_pods),      cmocka_unit_test(patches_of_its_node),
        cmocka_unit_test(conditional_patch_of_itself),   cmocka_unit_test(reads_its_node_and_no_other),
        cmocka_unit_test(watches_its_node_and_pods),     cmocka_unit_test(reads_its_pods_and_no_others),
        cmocka_unit_test(evicts_its_pods_and_no_others), cmocka_unit_test(deletes_its_pods_and_no_others),
        cmocka_unit_test(is_refused_by_a_budget),        cmocka_unit_test(writes_core_events),
        cmocka_unit_test(what_is_none_of_its_business),  cmocka_unit_test(its_own_lease),
};
CONTRACT_SUITE(node_credential, cases);
