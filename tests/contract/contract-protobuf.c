/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says in protobuf is what it says in JSON: the same objects, read both ways, are the same. */
#include "contract-ask.h"
#include "kube-protobuf.h"
#include "strv.h"

#define NS "protobuf"
#define OBJECTS_MAX 4096 /* whatever other cases have left is read, too */

typedef struct Objects {
        const KubeKind *kind;
        InternPool *pool;
        bool in_protobuf;
        KubeObject *list[OBJECTS_MAX];
        size_t n;
        JsonDoc *rest;
        bool done;
} Objects;

static void objects_done(Objects *o) {
        for (size_t i = 0; i < o->n; i++)
                kube_object_unref(o->list[i]);
        json_doc_free(o->rest);
}

static int on_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Objects *o = userdata;

        assert_true(o->n < OBJECTS_MAX);
        assert_return_code(o->in_protobuf ? json_from_protobuf(item, size, size, o->kind->shape, &doc, NULL)
                                          : json_parse(item, size, size, &doc, NULL),
                           0);
        assert_return_code(kube_object_decode(o->kind, json_root(doc), o->pool, &o->list[o->n++]), 0);
        return 0;
}

static void on_list(const KubeReply *reply, void *userdata) {
        Objects *o = userdata;
        int r;

        o->done = true;
        if (reply->error)
                return;
        o->in_protobuf = reply->protobuf;
        r = reply->protobuf ? kube_protobuf_split_items(reply->body, reply->body_size, reply->body_size,
                                                        o->kind, on_item, o, &o->rest, NULL)
                            : json_split_items(reply->body, reply->body_size, reply->body_size, on_item, o,
                                               &o->rest, NULL);
        assert_return_code(r, 0);
}

static bool list_is_done(void *userdata) {
        return ((Objects *) userdata)->done;
}

static void read_list(Rig *r, KubeTarget t, const KubeListOptions *l, Objects *ret) {
        _cleanup_(kube_call_freep) KubeCall *call = NULL;

        *ret = (Objects){ .kind = t.kind, .pool = kube_client_pool(rig_client(r, RIG_ADMIN)) };
        assert_return_code(kube_list(rig_client(r, RIG_ADMIN), &t, l, NULL, on_list, ret, &call), 0);
        assert_true(rig_wait(r, list_is_done, ret, RIG_PATIENCE_USEC));
        assert_non_null(ret->rest);
        assert_int_equal(ret->in_protobuf, l->protobuf);
}

/* version: of the same state, however often it is asked for. */
static void read_objects(Rig *r, const KubeKind *kind, bool protobuf, const char *version, Objects *ret) {
        KubeListOptions l = { .protobuf = protobuf,
                              .resource_version = version,
                              .resource_version_match = version ? "Exact" : NULL };

        read_list(r, (KubeTarget){ .kind = kind }, &l, ret);
}

/* -- the same? ------------------------------------------------------------------------------------ */

static void assert_same_text(const char *a, const char *b) {
        assert_string_equal(a ?: "(none)", b ?: "(none)");
}

static void assert_same_names(char *const *a, char *const *b) {
        assert_int_equal(strv_length(a), strv_length(b));
        for (size_t i = 0; i < strv_length(a); i++)
                assert_string_equal(a[i], b[i]);
}

static void assert_same_nodes(const KubeNode *a, const KubeNode *b) {
        assert_same_text(a->provider_id, b->provider_id);
        assert_int_equal(a->unschedulable, b->unschedulable);
        assert_int_equal(a->n_taints, b->n_taints);
        for (size_t i = 0; i < a->n_taints; i++) {
                assert_same_text(a->taints[i].key, b->taints[i].key);
                assert_same_text(a->taints[i].value, b->taints[i].value);
                assert_same_text(a->taints[i].effect, b->taints[i].effect);
                assert_int_equal(a->taints[i].time_added_usec, b->taints[i].time_added_usec);
        }
        assert_int_equal(a->n_conditions, b->n_conditions);
        for (size_t i = 0; i < a->n_conditions; i++) {
                assert_same_text(a->conditions[i].type, b->conditions[i].type);
                assert_same_text(a->conditions[i].reason, b->conditions[i].reason);
                assert_same_text(a->conditions[i].message, b->conditions[i].message);
                assert_int_equal(a->conditions[i].status, b->conditions[i].status);
                assert_int_equal(a->conditions[i].last_transition_usec,
                                 b->conditions[i].last_transition_usec);
        }
        assert_same_names(a->volumes_in_use, b->volumes_in_use);
        assert_same_names(a->volumes_attached, b->volumes_attached);
        assert_same_text(a->boot_id, b->boot_id);
        assert_same_text(a->machine_id, b->machine_id);
        assert_same_text(a->system_uuid, b->system_uuid);
        assert_same_text(kube_node_machine_id(a), kube_node_machine_id(b));
        assert_int_equal(a->n_addresses, b->n_addresses);
        for (size_t i = 0; i < a->n_addresses; i++) {
                assert_same_text(a->addresses[i].type, b->addresses[i].type);
                assert_same_text(a->addresses[i].address, b->addresses[i].address);
        }
}

static void assert_same_pdbs(const KubePdb *a, const KubePdb *b, const Objects *pods) {
        assert_int_equal(!a->selector, !b->selector);
        if (a->selector)
                assert_int_equal(selector_is_empty(a->selector), selector_is_empty(b->selector));
        for (size_t i = 0; i < pods->n; i++)
                assert_int_equal(kube_pdb_matches(a, (const KubePod *) pods->list[i]),
                                 kube_pdb_matches(b, (const KubePod *) pods->list[i]));
        assert_int_equal(a->disruptions_allowed, b->disruptions_allowed);
        assert_int_equal(a->current_healthy, b->current_healthy);
        assert_int_equal(a->desired_healthy, b->desired_healthy);
        assert_int_equal(a->expected_pods, b->expected_pods);
        assert_int_equal(a->observed_generation, b->observed_generation);
        assert_int_equal(a->always_allow_unhealthy, b->always_allow_unhealthy);
}

static void assert_same_csi_nodes(const KubeCsiNode *a, const KubeCsiNode *b) {
        assert_int_equal(a->n_drivers, b->n_drivers);
        for (size_t i = 0; i < a->n_drivers; i++) {
                assert_same_text(a->drivers[i].driver, b->drivers[i].driver);
                assert_int_equal(a->drivers[i].volumes, b->drivers[i].volumes);
        }
}

/* Of storage. */
static void assert_same_stored(const KubeObject *a, const KubeObject *b) {
        if (a->kind == &kube_volume_kind) {
                const KubeVolume *x = (const KubeVolume *) a, *y = (const KubeVolume *) b;

                assert_same_text(x->storage_class, y->storage_class);
                assert_same_text(x->node_affinity, y->node_affinity);
                assert_same_text(x->csi_driver, y->csi_driver);
                assert_same_text(x->csi_handle, y->csi_handle);
        } else if (a->kind == &kube_scheduled_claim_kind) {
                const KubeScheduledClaim *x = (const KubeScheduledClaim *) a, *y = (const KubeScheduledClaim *) b;

                assert_same_text(x->claim.volume_name, y->claim.volume_name);
                assert_same_text(x->storage_class, y->storage_class);
                assert_int_equal(x->one_pod_only, y->one_pod_only);
        } else if (a->kind == &kube_storage_class_kind) {
                const KubeStorageClass *x = (const KubeStorageClass *) a, *y = (const KubeStorageClass *) b;

                assert_same_text(x->provisioner, y->provisioner);
                assert_int_equal(x->waits_for_consumer, y->waits_for_consumer);
                assert_same_text(x->allowed_topologies, y->allowed_topologies);
        } else if (a->kind == &kube_csi_node_kind)
                assert_same_csi_nodes((const KubeCsiNode *) a, (const KubeCsiNode *) b);
        else
                assert_ptr_equal(a->kind, &kube_namespace_kind);
}

static void assert_same_object(const KubeObject *a, const KubeObject *b, const Objects *pods) {
        assert_true(kube_object_says_same(a, b));
        assert_same_text(a->meta.resource_version, b->meta.resource_version);
        assert_null(a->invalid);
        if (a->kind == &kube_node_kind)
                assert_same_nodes((const KubeNode *) a, (const KubeNode *) b);
        else if (a->kind == &kube_scheduled_node_kind) {
                const KubeScheduledNode *x = (const KubeScheduledNode *) a, *y = (const KubeScheduledNode *) b;

                assert_same_nodes(&x->node, &y->node);
                assert_true(key_values_are_same(&x->allocatable, &y->allocatable));
                assert_int_equal(x->is_initialized, y->is_initialized);
        } else if (a->kind == &kube_pod_kind || a->kind == &kube_own_pod_kind || a->kind == &kube_scheduled_pod_kind)
                assert_true(kube_pod_says_same((const KubePod *) a, (const KubePod *) b));
        else if (a->kind == &kube_pdb_kind)
                assert_same_pdbs((const KubePdb *) a, (const KubePdb *) b, pods);
        else if (a->kind != &kube_volume_attachment_kind)
                assert_same_stored(a, b);
        else {
                const KubeVolumeAttachment *x = (const KubeVolumeAttachment *) a,
                                           *y = (const KubeVolumeAttachment *) b;

                assert_same_text(x->node_name, y->node_name);
                assert_same_text(x->pv_name, y->pv_name);
                assert_int_equal(x->attached, y->attached);
        }
}

/* Some that are there, as JSON and as protobuf. */
static void assert_same_lists(Rig *r, const KubeKind *kind, size_t n_at_least) {
        _cleanup_(objects_done) Objects json = { 0 }, protobuf = { 0 }, pods = { 0 };
        const char *version;

        print_message("%s\n", kind->plural);
        read_objects(r, &kube_pod_kind, false, NULL, &pods);
        read_objects(r, kind, false, NULL, &json);
        version = json_string_or_null(json_path(json_root(json.rest), "metadata", "resourceVersion", NULL));
        read_objects(r, kind, true, version, &protobuf);
        assert_same_text(version, json_string_or_null(json_path(json_root(protobuf.rest), "metadata",
                                                                "resourceVersion", NULL)));
        assert_true(json.n >= n_at_least);
        assert_int_equal(json.n, protobuf.n);
        for (size_t i = 0; i < json.n; i++)
                assert_same_object(json.list[i], protobuf.list[i], &pods);
}

/* -- what is there -------------------------------------------------------------------------------- */

static void make_pod(Rig *r, const char *name, const char *meta, const char *spec) {
        _cleanup_answer_ Answer a = rig_create(
                r, RIG_ADMIN, POD(NS, NULL),
                "{'metadata': {'name': '%s'%s%s}, 'spec': {'containers': [{'name': 'main', 'image': "
                "'app'}], 'automountServiceAccountToken': false%s%s}}",
                name, *meta ? ", " : "", meta, *spec ? ", " : "", spec);

        assert_answer(a, 201, NULL);
}

static void make_scheduled_pod(Rig *r) {
        _cleanup_answer_ Answer a = rig_create(
                r, RIG_ADMIN, POD(NS, NULL),
                "{'metadata': {'name': 'scheduled', 'labels': {'tier': '', 'app': 'web'}, 'annotations': "
                "{'controller.kubernetes.io/pod-deletion-cost': '7'}}, 'spec': {'automountServiceAccountToken': "
                "false, 'schedulerName': 'mine', 'priorityClassName': 'system-node-critical', "
                "'nodeSelector': {'zone': '', 'disk': 'ssd'}, "
                "'initContainers': [{'name': 'plain', 'image': 'i'}, {'name': 'side', 'image': 'i', "
                "'restartPolicy': 'Always', 'resources': {'requests': {'cpu': '50m'}}}], "
                "'containers': [{'name': 'main', 'image': 'app', 'resources': {'requests': {'memory': '1.5Gi', "
                "'cpu': '0.5', 'example.com/fpga': '2'}, 'limits': {'example.com/fpga': '2'}}, 'ports': "
                "[{'containerPort': 80}, {'containerPort': 81, 'hostPort': 8081, 'hostIP': '10.0.0.7'}]}], "
                "'affinity': {'podAntiAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': "
                "[{'labelSelector': {'matchExpressions': [{'key': 'app', 'operator': 'In', 'values': ['web', '']}]}, "
                "'topologyKey': 'host', 'namespaceSelector': {}}]}, 'nodeAffinity': "
                "{'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 3, 'preference': "
                "{'matchExpressions': [{'key': 'gen', 'operator': 'Gt', 'values': ['3']}]}}]}}, "
                "'topologySpreadConstraints': [{'maxSkew': 1, 'topologyKey': 'zone', 'whenUnsatisfiable': "
                "'ScheduleAnyway', 'labelSelector': {}}], "
                "'volumes': [{'name': 'a', 'persistentVolumeClaim': {'claimName': 'data'}}, {'name': 'b', "
                "'ephemeral': {'volumeClaimTemplate': {'spec': {'accessModes': ['ReadWriteOnce'], 'resources': "
                "{'requests': {'storage': '1Gi'}}}}}}, {'name': 'c', 'rbd': {'monitors': ['10.0.0.8'], "
                "'image': 'x'}}]}}");

        assert_answer(a, 201, NULL);
        make_pod(r, "gated", "", "'schedulingGates': [{'name': 'example.com/gate'}]");
}

static void make_pods(Rig *r) {
        _cleanup_answer_ Answer a = { 0 }, b = { 0 };

        make_scheduled_pod(r);
        make_pod(r, "plain", "", "");
        make_pod(r, "rich",
                 "'labels': {'app': 'web', 'empty': '', 'a.b/c': 'x_Y.z'}, 'finalizers': "
                 "['test.vesper.sh/keep'], "
                 "'annotations': {'vesper.sh/do-not-evict': 'no', 'karpenter.sh/do-not-evict': 'a\\u0000b', "
                 "'cluster-autoscaler.kubernetes.io/safe-to-evict': "
                 "'', 'other': 'one'}, 'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', "
                 "'name': "
                 "'web', 'uid': '11111111-2222-3333-4444-555555555555', 'controller': true}, {'apiVersion': "
                 "'v1', "
                 "'kind': 'X', 'name': 'x', 'uid': 'u'}]",
                 "'nodeName': '" RIG_NODE_NAME
                 "', 'terminationGracePeriodSeconds': 5, 'restartPolicy': 'Always', "
                 "'tolerations': [{'key': 'vesper.sh/disrupted', 'operator': 'Equal', 'effect': "
                 "'NoSchedule'}, "
                 "{'key': 'node.kubernetes.io/unschedulable', 'operator': 'Exists'}], "
                 "'volumes': [{'name': 'a', 'emptyDir': {}}, {'name': 'b', 'configMap': {'name': 'x'}}, "
                 "{'name': 'c', 'secret': {'secretName': 'x'}}, {'name': 'd', 'hostPath': {'path': '/x'}}, "
                 "{'name': 'e', 'projected': {'sources': []}}, {'name': 'f', 'downwardAPI': {}}]");
        make_pod(r, "claims", "'labels': {'app': 'db'}",
                 "'volumes': [{'name': 'a', 'emptyDir': {}}, {'name': 'b', 'persistentVolumeClaim': "
                 "{'claimName': "
                 "'x'}}], 'terminationGracePeriodSeconds': 0");
        make_pod(r, "job", "", "'restartPolicy': 'Never', 'tolerations': [{'operator': 'Exists'}]");
        make_pod(r, "devices", "",
                 "'resourceClaims': [{'name': 'gpu', 'resourceClaimName': 'gpu'}], 'nodeName': "
                 "'" RIG_NODE_NAME "'");
        a = rig_merge(r, RIG_ADMIN, POD_STATUS(NS, "rich"),
                      "{'status': {'phase': 'Running', 'startTime': '2026-11-21T05:03:00Z', 'conditions': "
                      "[{'type': "
                      "'Ready', 'status': 'True'}]}}");
        assert_answer(a, 200, NULL);
        /* It stays, and is on its way. */
        b = rig_delete(r, RIG_ADMIN, POD(NS, "rich"), NULL);
        assert_answer(b, 200, NULL);
}

static void make_nodes(Rig *r) {
        _cleanup_answer_ Answer a = { 0 }, b = { 0 };

        rig_make_node(r, "protobuf-plain");
        a = rig_create(
                r, RIG_ADMIN, NODE(NULL),
                "{'metadata': {'name': 'protobuf-rich', 'labels': {'pool': 'a'}, 'annotations': "
                "{'vesper.sh/interruption': '{}', 'karpenter.sh/x': 'y', 'other': 'z'}, 'finalizers': "
                "['vesper.sh/a', 'vesper.sh/b']}, 'spec': {'providerID': 'aws:///eu-west-1a/i-1', "
                "'unschedulable': true, 'taints': [{'key': 'gpu', 'value': 'yes', 'effect': 'NoExecute', "
                "'timeAdded': '2026-11-21T05:03:00Z'}, {'key': 'x', 'effect': 'PreferNoSchedule'}]}}");
        assert_answer(a, 201, NULL);
        b = rig_merge(
                r, RIG_ADMIN, NODE_STATUS("protobuf-rich"),
                "{'status': {'allocatable': {'memory': '15Gi', 'cpu': '3920m', 'pods': '110'}, "
                "'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady', "
                "'message': 'long', 'lastTransitionTime': '2026-11-21T05:03:00Z', 'lastHeartbeatTime': "
                "'2026-11-21T05:03:01Z'}, {'type': 'DrainInProgress', 'status': 'False', 'message': "
                "'m\xc3\xa9'}, "
                "{'type': 'Drained', 'status': 'Unknown'}], 'volumesInUse': ['kubernetes.io/csi/ebs^vol-1', "
                "'b'], "
                "'volumesAttached': [{'name': 'kubernetes.io/csi/ebs^vol-1', 'devicePath': ''}], "
                "'addresses': [{'type': 'InternalIP', 'address': '10.0.0.7'}, {'type': 'Hostname', 'address': "
                "'rich'}], 'nodeInfo': "
                "{'bootID': 'b-1', 'architecture': '', 'containerRuntimeVersion': '', 'kernelVersion': '', "
                "'kubeProxyVersion': '', 'kubeletVersion': '', 'machineID': 'm-1', 'operatingSystem': '', "
                "'osImage': "
                "'', 'systemUUID': 's-1'}}}");
        assert_answer(b, 200, NULL);
}

static void make_pdbs(Rig *r) {
        static const struct {
                const char *name, *spec;
        } rows[] = {
                { "number", "'minAvailable': 1, 'selector': {'matchLabels': {'app': 'web', 'empty': ''}}" },
                { "percent",
                  "'maxUnavailable': '50%', 'unhealthyPodEvictionPolicy': 'AlwaysAllow', 'selector': "
                  "{'matchExpressions': [{'key': 'app', 'operator': 'In', 'values': ['db', '']}, {'key': "
                  "'zone', "
                  "'operator': 'DoesNotExist'}]}" },
                { "everything", "'maxUnavailable': 0, 'selector': {}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_create(r, RIG_ADMIN, PDB(NS, NULL), "{'metadata': {'name': '%s'}, 'spec': {%s}}",
                                   rows[i].name, rows[i].spec);

                assert_answer(a, 201, NULL);
        }
        rig_set_pdb_status(r, NS, "number", 1, 2, 3, 1);
}

static void make_attachments(Rig *r) {
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, ATTACHMENT(NULL),
                           "{'metadata': {'name': 'protobuf-a'}, 'spec': {'attacher': 'csi.example', "
                           "'nodeName': 'n1', 'source': {'persistentVolumeName': 'pv-1'}}}");
        _cleanup_answer_ Answer b =
                rig_create(r, RIG_ADMIN, ATTACHMENT(NULL),
                           "{'metadata': {'name': 'protobuf-b'}, 'spec': {'attacher': 'csi.example', "
                           "'nodeName': 'n2', 'source': {'persistentVolumeName': 'pv-2'}}}");
        _cleanup_answer_ Answer c = { 0 };
        KubeTarget status = ATTACHMENT("protobuf-a");

        assert_answer(a, 201, NULL);
        assert_answer(b, 201, NULL);
        status.subresource = "status";
        c = rig_merge(r, RIG_ADMIN, status, "{'status': {'attached': true}}");
        assert_true(c.status == 200 || rig_is_fake(r));
}

static void make_storage(Rig *r) {
        _cleanup_answer_ Answer volume = rig_create(
                r, RIG_ADMIN, PV(NULL),
                "{'metadata': {'name': 'protobuf-pv'}, 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                "['ReadWriteOnce'], 'storageClassName': 'protobuf', 'csi': {'driver': 'csi.example', "
                "'volumeHandle': 'vol-2'}, 'nodeAffinity': {'required': {'nodeSelectorTerms': "
                "[{'matchExpressions': [{'key': 'zone', 'operator': 'In', 'values': ['a', 'b']}]}, "
                "{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n1']}]}]}}}}");
        _cleanup_answer_ Answer plain = rig_create(
                r, RIG_ADMIN, PV(NULL),
                "{'metadata': {'name': 'protobuf-host'}, 'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': "
                "['ReadWriteOnce'], 'hostPath': {'path': '/data'}}}");
        _cleanup_answer_ Answer claim = rig_create(
                r, RIG_ADMIN, PVC(NS, NULL),
                "{'metadata': {'name': 'data'}, 'spec': {'accessModes': ['ReadWriteOncePod'], 'storageClassName': "
                "'', 'volumeName': 'protobuf-pv', 'resources': {'requests': {'storage': '1Gi'}}}}");
        _cleanup_answer_ Answer class = rig_create(
                r, RIG_ADMIN, STORAGE_CLASS(NULL),
                "{'metadata': {'name': 'protobuf'}, 'provisioner': 'csi.example', 'volumeBindingMode': "
                "'WaitForFirstConsumer', 'reclaimPolicy': 'Delete', 'allowedTopologies': "
                "[{'matchLabelExpressions': [{'key': 'zone', 'values': ['b', 'a']}]}]}");
        _cleanup_answer_ Answer node = rig_create(
                r, RIG_ADMIN, CSI_NODE(NULL),
                "{'metadata': {'name': 'protobuf-rich'}, 'spec': {'drivers': [{'name': 'csi.example', 'nodeID': "
                "'i-1', 'topologyKeys': ['zone'], 'allocatable': {'count': 25}}, {'name': 'other.example', "
                "'nodeID': 'i-1', 'topologyKeys': []}]}}");

        assert_answer(volume, 201, NULL);
        assert_answer(plain, 201, NULL);
        assert_answer(claim, 201, NULL);
        assert_answer(class, 201, NULL);
        assert_answer(node, 201, NULL);
}

TEST_CASE(same_in_both) {
        Rig *r = *state;

        rig_make_namespace(r, NS);
        make_pods(r);
        make_nodes(r);
        make_pdbs(r);
        make_attachments(r);
        make_storage(r);
        assert_same_lists(r, &kube_pod_kind, 7);
        assert_same_lists(r, &kube_own_pod_kind, 7);
        assert_same_lists(r, &kube_scheduled_pod_kind, 7);
        assert_same_lists(r, &kube_scheduled_node_kind, 2);
        assert_same_lists(r, &kube_volume_kind, 2);
        assert_same_lists(r, &kube_scheduled_claim_kind, 1);
        assert_same_lists(r, &kube_storage_class_kind, 1);
        assert_same_lists(r, &kube_csi_node_kind, 1);
        assert_same_lists(r, &kube_namespace_kind, 1);
        assert_same_lists(r, &kube_node_kind, 2);
        assert_same_lists(r, &kube_pdb_kind, 3);
        assert_same_lists(r, &kube_volume_attachment_kind, 2);
}

/* The same objects in the same order, however they are cut into pages. */
TEST_CASE(pages_in_protobuf) {
        Rig *r = *state;
        _cleanup_(objects_done) Objects all = { 0 };
        _cleanup_free_ char *token = NULL;
        size_t n = 0;

        rig_make_namespace(r, NS "-pages");
        rig_make_pods(r, NS "-pages", "paged", 7, RIG_NODE_NAME);
        read_list(r, POD(NS "-pages", NULL), &(KubeListOptions){ 0 }, &all);
        assert_int_equal(all.n, 7);
        do {
                _cleanup_(objects_done) Objects page = { 0 };
                const Json *meta;

                read_list(r, POD(NS "-pages", NULL),
                          &(KubeListOptions){ .protobuf = true, .limit = 3, .continue_token = token },
                          &page);
                assert_in_range(page.n, 1, 3);
                for (size_t i = 0; i < page.n; i++)
                        assert_same_object(all.list[n++], page.list[i], &all);
                meta = json_get(json_root(page.rest), "metadata");
                assert_non_null(json_string_or_null(json_get(meta, "resourceVersion")));
                assert_return_code(free_and_strdup(&token, json_string_or_null(json_get(meta, "continue"))),
                                   0);
        } while (token && n < all.n);
        assert_null(token);
        assert_int_equal(n, all.n);
}

/* Each type of event, and the end. The last bookmark comes two seconds before that, if there is news by
 * then: a busy machine has the time for it. */
TEST_CASE(watch_in_protobuf) {
        Rig *r = *state;
        _cleanup_watch_ RigWatch *w = NULL;
        _cleanup_answer_ Answer now = rig_list(r, RIG_ADMIN, NODE(NULL), NULL), changed = { 0 },
                                gone = { 0 };

        assert_answer(now, 200, NULL);
        w = rig_watch(r, RIG_ADMIN, NODE(NULL),
                      &(KubeWatchOptions){ .resource_version = answer_version(&now),
                                           .without_unread = true,
                                           .protobuf = true,
                                           .timeout_sec = 10 });
        rig_make_node(r, "protobuf-watched");
        assert_watch(w, "ADDED protobuf-watched"); /* it stands: what follows is news to it */
        changed = rig_merge(r, RIG_ADMIN, NODE("protobuf-watched"), "{'spec': {'unschedulable': true}}");
        assert_answer(changed, 200, NULL);
        gone = rig_delete(r, RIG_ADMIN, NODE("protobuf-watched"), NULL);
        assert_answer(gone, 200, NULL);
        assert_watch(w, "MODIFIED protobuf-watched, DELETED protobuf-watched");
        assert_false(w->out_of_order);
        assert_true(rig_watch_wait_bookmark(w, RIG_PATIENCE_USEC));
        assert_true(w->bookmark >= w->version);
        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->error, 0);
        assert_true(w->protobuf);
}

TEST_CASE(forgotten_in_protobuf) {
        Rig *r = *state;
        _cleanup_watch_ RigWatch *w = NULL;
        _cleanup_answer_ Answer now = rig_list(r, RIG_ADMIN, NODE(NULL), NULL);

        assert_answer(now, 200, NULL);
        rig_make_node(r, "protobuf-forgotten");
        rig_compact(r);
        w = rig_watch(r, RIG_ADMIN, NODE(NULL),
                      &(KubeWatchOptions){ .resource_version = answer_version(&now),
                                           .without_unread = true,
                                           .protobuf = true });
        assert_watch(w, "ERROR 410");
        assert_string_equal(w->error_reason, "Expired");
        assert_true(rig_watch_wait_end(w));
        assert_true(w->protobuf);
}

typedef struct Refusal {
        bool done;
        unsigned http;
        char *reason, *message;
} Refusal;

static void on_refused(const KubeReply *reply, void *userdata) {
        Refusal *f = userdata;

        f->done = true;
        if (!reply->error)
                return;
        f->http = reply->error->http;
        f->reason = strdup(strempty(reply->error->reason));
        f->message = strdup(strempty(reply->error->message));
}

static bool is_refused(void *userdata) {
        return ((Refusal *) userdata)->done;
}

/* A Status is protobuf as well, and says the same. */
TEST_CASE(refused_in_protobuf) {
        Rig *r = *state;
        _cleanup_(kube_call_freep) KubeCall *call = NULL;
        Refusal f = { 0 };
        KubeTarget t = NODE(NULL);

        assert_return_code(kube_list(rig_client(r, RIG_STRANGER), &t, &(KubeListOptions){ .protobuf = true },
                                     NULL, on_refused, &f, &call),
                           0);
        assert_true(rig_wait(r, is_refused, &f, RIG_PATIENCE_USEC));
        assert_int_equal(f.http, 403);
        assert_string_equal(f.reason, "Forbidden");
        assert_non_null(strstr(f.message, "nodes is forbidden"));
        free(f.reason);
        free(f.message);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(same_in_both),        cmocka_unit_test(pages_in_protobuf),
        cmocka_unit_test(watch_in_protobuf),   cmocka_unit_test(forgotten_in_protobuf),
        cmocka_unit_test(refused_in_protobuf),
};

CONTRACT_SUITE(protobuf, cases);
