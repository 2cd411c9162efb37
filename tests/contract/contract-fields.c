/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is kube-field-list.h right? What a server says of an object in protobuf is compared with what it says in
 * JSON, field by field of that list: the value under its number is the value under its name. A wrong number,
 * name or type shows only where a field has a value of its own, that no other field of the message has. So
 * each listed field must have been seen with one, or the list says why a real API server cannot be made to
 * send it.
 */
#include <stdio.h>

#include "contract-ask.h"
#include "fake-json.h"
#include "fake-protobuf-fields.h"
#include "kube-protobuf.h"

#define NS "fields"
#define PODS "/api/v1/namespaces/" NS "/pods"
#define FIELDS_MAX 512u /* of all messages together */
#define PATH_SIZE 256u

typedef struct FieldSet {
        const FakeField *list[FIELDS_MAX];
        size_t n;
} FieldSet;

typedef struct Check {
        bool fake;
        FieldSet seen;
} Check;

static bool field_set_has(const FieldSet *s, const FakeField *f) {
        for (size_t i = 0; i < s->n; i++)
                if (s->list[i] == f)
                        return true;
        return false;
}

static void field_set_add(FieldSet *s, const FakeField *f) {
        if (field_set_has(s, f))
                return;
        assert_true(s->n < FIELDS_MAX);
        s->list[s->n++] = f;
}

/* The fake notes who wrote an object only in protobuf. */
static bool is_left_out(const Check *c, const FakeField *f) {
        return c->fake && streq_ptr(f->name, "managedFields");
}

static void join(char *ret, const char *path, const char *name) {
        snprintf(ret, PATH_SIZE, "%.200s%s%.50s", path, *path ? "." : "", name);
}

/* -- one value ------------------------------------------------------------------------------------------ */

/* The last field of that number; number 0 if there is none. */
static ProtobufValue find_value(const ProtobufValue *message, uint32_t number) {
        ProtobufCursor c = { .p = message->data, .end = message->data + message->size };
        ProtobufValue v, found = { 0 };
        int r;

        while ((r = protobuf_next(&c, &v)) > 0)
                if (v.number == number)
                        found = v;
        assert_int_equal(r, 0);
        return found;
}

static bool is_text(const ProtobufValue *value, const cJSON *v) {
        const char *text = cJSON_IsString(v) ? v->valuestring : "";

        return value->wire == PROTOBUF_BYTES && value->size == strlen(text) &&
               (value->size == 0 || memcmp(value->data, text, value->size) == 0);
}

static bool is_number(const ProtobufValue *value, const cJSON *v) {
        return value->wire == PROTOBUF_VARINT &&
               (int64_t) value->varint == (cJSON_IsNumber(v) ? (int64_t) v->valuedouble : 0);
}

static bool is_time(const ProtobufValue *value, const cJSON *v) {
        usec_t at = 0;

        if (value->wire != PROTOBUF_BYTES || !cJSON_IsString(v))
                return value->wire == PROTOBUF_BYTES && value->size == 0;
        return rfc3339_parse(v->valuestring, &at) >= 0 && find_value(value, 1).varint == at / USEC_PER_SEC;
}

static bool is_number_or_text(const ProtobufValue *value, const cJSON *v) {
        ProtobufValue type = find_value(value, 1), number = find_value(value, 2),
                      text = find_value(value, 3);

        return type.varint == (cJSON_IsString(v) ? 1u : 0u) && is_number(&number, v) && is_text(&text, v);
}

static bool is_raw(const ProtobufValue *value, const cJSON *v) {
        ProtobufValue bytes = find_value(value, 1);
        _cleanup_cjson_ cJSON *json =
                cJSON_ParseWithLength((const char *) bytes.data, bytes.number ? bytes.size : 0);

        return json && fj_equal(json, v);
}

static void compare_message(Check *c, const FakeField *fields, const ProtobufValue *message, const cJSON *o,
                            const char *path);

/* v: a member, or an element or value of it; NULL: absent. */
static void compare_value(Check *c, const FakeField *f, const ProtobufValue *value, const cJSON *v,
                          const char *path) {
        ProtobufValue inner;
        bool same = false;

        switch (f->type) {
        case FAKE_FIELD_TEXT:
                same = is_text(value, v);
                break;
        case FAKE_FIELD_NUMBER:
                same = is_number(value, v);
                break;
        case FAKE_FIELD_FLAG:
                same = value->wire == PROTOBUF_VARINT && (value->varint != 0) == (bool) cJSON_IsTrue(v);
                break;
        case FAKE_FIELD_MESSAGE:
        case FAKE_FIELD_INLINE:
                same = value->wire == PROTOBUF_BYTES;
                if (same)
                        compare_message(c, f->of, value, v, path);
                break;
        case FAKE_FIELD_TIME:
                same = is_time(value, v);
                break;
        case FAKE_FIELD_QUANTITY:
                inner = find_value(value, 1);
                same = is_text(&inner, v);
                break;
        case FAKE_FIELD_NUMBER_OR_TEXT:
                same = is_number_or_text(value, v);
                break;
        case FAKE_FIELD_RAW:
                same = is_raw(value, v);
                break;
        }
        if (!same) {
                _cleanup_free_ char *text = v ? fj_print(v) : NULL;

                fail_msg("%s, field %u: protobuf does not say %s", path, f->number, strempty(text));
        }
}

/* -- one field ------------------------------------------------------------------------------------------ */

static const cJSON *find_member(const cJSON *o, const FakeField *f) {
        const cJSON *v = f->name ? fj_member(o, f->name) : NULL;

        return cJSON_IsNull(v) ? NULL : v;
}

static bool is_empty(const FakeField *f, const cJSON *v) {
        if (cJSON_IsString(v))
                return !*v->valuestring;
        if (cJSON_IsNumber(v))
                return v->valuedouble == 0;
        if (cJSON_IsBool(v))
                return cJSON_IsFalse(v) && f->use != FAKE_FIELD_POINTER;
        return !v || cJSON_GetArraySize(v) == 0;
}

/* Would this object show that the field is mistaken for another of its message? */
static bool has_own_value(const FakeField *fields, const FakeField *f, const cJSON *o) {
        const cJSON *v = find_member(o, f);

        if (is_empty(f, v))
                return false;
        for (const FakeField *other = fields; other->number != 0; other++)
                if (other != f && !other->unseen && fj_equal(find_member(o, other), v))
                        return false;
        return true;
}

static void compare_entry(Check *c, const FakeField *f, const ProtobufValue *entry, const cJSON *map,
                          const char *path) {
        ProtobufValue key = find_value(entry, 1), value = find_value(entry, 2);
        _cleanup_free_ char *name = MUST(strndup((const char *) key.data, key.size));
        const cJSON *v = fj_member(map, name);

        if (!v)
                fail_msg("%s: JSON has no '%s'", path, name);
        compare_value(c, f, &value, v, path);
}

static void compare_field(Check *c, const FakeField *f, const ProtobufValue *message, const cJSON *o,
                          const char *path) {
        const cJSON *v = f->type == FAKE_FIELD_INLINE ? o : find_member(o, f),
                    *element = v ? v->child : NULL;
        ProtobufCursor at = { .p = message->data, .end = message->data + message->size };
        bool is_many = f->use == FAKE_FIELD_LIST || f->use == FAKE_FIELD_MAP;
        int n = 0, expected = is_many ? cJSON_GetArraySize(v) : f->use == FAKE_FIELD_PLAIN || v;
        ProtobufValue value;
        int r;

        while ((r = protobuf_next(&at, &value)) > 0) {
                if (value.number != f->number || ++n > expected)
                        continue;
                if (f->use == FAKE_FIELD_MAP)
                        compare_entry(c, f, &value, v, path);
                else
                        compare_value(c, f, &value, is_many ? element : v, path);
                element = element ? element->next : NULL;
        }
        assert_int_equal(r, 0);
        if (n != expected)
                fail_msg("%s, field %u: %d times in protobuf, %d times in JSON", path, f->number, n,
                         expected);
}

static void compare_message(Check *c, const FakeField *fields, const ProtobufValue *message, const cJSON *o,
                            const char *path) {
        for (const FakeField *f = fields; f->number != 0; f++) {
                char below[PATH_SIZE];

                if (is_left_out(c, f))
                        continue;
                join(below, path, strempty(f->name));
                compare_field(c, f, message, o, f->name ? below : path);
                if (f->type == FAKE_FIELD_INLINE || has_own_value(fields, f, o))
                        field_set_add(&c->seen, f);
        }
}

/* -- what the server says ------------------------------------------------------------------------------- */

/* What an envelope holds. */
static ProtobufValue message_of(const Answer *a) {
        ProtobufValue unknown, raw;

        assert_true(kube_body_is_protobuf(a->body, a->body_size));
        unknown = (ProtobufValue){ .data = (const unsigned char *) a->body + 4, .size = a->body_size - 4 };
        raw = find_value(&unknown, 2);
        assert_int_equal(raw.number, 2);
        return raw;
}

static Answer ask_in_protobuf(Rig *r, RigWho who, HttpMethod method, const char *path, const char *body) {
        return rig_http_accept(r, who, method, path, "application/vnd.kubernetes.protobuf",
                               body ? "application/json" : NULL, body);
}

/* Of the same state, in both. more: what the query has besides, "" for nothing. */
static void compare_list(Check *c, Rig *r, const FakeField *kind, const char *path, const char *more) {
        const FakeField list[] = {
                { 1, "metadata", NULL, FAKE_FIELD_MESSAGE, FAKE_FIELD_PLAIN, fake_fields_list_meta },
                { 2, "items", NULL, FAKE_FIELD_MESSAGE, FAKE_FIELD_LIST, kind },
                { 0 },
        };
        _cleanup_free_ char *first = MUST(strf("%s?limit=1", path)), *query = NULL;
        _cleanup_answer_ Answer now = rig_http(r, RIG_ADMIN, HTTP_GET, first, NULL, NULL), json = { 0 },
                                protobuf = { 0 };
        _cleanup_cjson_ cJSON *o = NULL;
        ProtobufValue message;

        print_message("%s%s\n", path, more);
        assert_answer(now, 200, NULL);
        query = MUST(strf("%s?resourceVersion=%s&resourceVersionMatch=Exact%s", path, answer_version(&now),
                          more));
        json = rig_http(r, RIG_ADMIN, HTTP_GET, query, NULL, NULL);
        assert_answer(json, 200, NULL);
        protobuf = ask_in_protobuf(r, RIG_ADMIN, HTTP_GET, query, NULL);
        assert_answer(protobuf, 200, NULL);
        o = MUST(cJSON_Parse(json.body));
        message = message_of(&protobuf);
        compare_message(c, list, &message, o, "");
}

static void compare_status(Check *c, const Answer *protobuf, const char *json) {
        _cleanup_cjson_ cJSON *o = MUST(cJSON_Parse(json));
        ProtobufValue message = message_of(protobuf);

        compare_message(c, fake_fields_status, &message, o, "Status");
}

/* What is refused is refused the same way again. */
static void compare_refusal(Check *c, Rig *r, HttpMethod method, const char *path, const char *body,
                            unsigned status) {
        _cleanup_answer_ Answer json = rig_http(r, RIG_ADMIN, method, path, body ? "application/json" : NULL,
                                                body),
                                protobuf = ask_in_protobuf(r, RIG_ADMIN, method, path, body);

        assert_int_equal(json.status, status);
        assert_int_equal(protobuf.status, status);
        compare_status(c, &protobuf, json.body);
}

/* A Status of a success names what it was about. */
static void compare_success(Check *c, Rig *r) {
        _cleanup_answer_ Answer node = { 0 }, gone = { 0 };
        _cleanup_free_ char *json = NULL;

        rig_make_node(r, "fields-gone");
        node = rig_get(r, RIG_ADMIN, NODE("fields-gone"));
        assert_answer(node, 200, NULL);
        json = MUST(strf("{\"metadata\":{},\"status\":\"Success\",\"details\":{\"name\":\"fields-gone\","
                         "\"kind\":\"nodes\",\"uid\":\"%s\"}}",
                         answer_uid(&node)));
        gone = ask_in_protobuf(r, RIG_ADMIN, HTTP_DELETE, "/api/v1/nodes/fields-gone", NULL);
        assert_int_equal(gone.status, 200);
        compare_status(c, &gone, json);
}

/* -- objects in which each field has a value of its own in turn ----------------------------------------- */

#define POD_REST "'automountServiceAccountToken': false, 'containers': [{'name': 'c', 'image': 'i'}]"

static const char pod_spec[] =
        "'activeDeadlineSeconds': 600, 'automountServiceAccountToken': false, 'dnsPolicy': 'Default', "
        "'enableServiceLinks': true, "
        "'hostname': 'host', 'subdomain': 'sub', 'nodeName': 'some-node', 'nodeSelector': {'disk': 'ssd'}, "
        "'priorityClassName': 'system-node-critical', 'restartPolicy': 'OnFailure', 'schedulerName': 'mine', "
        "'serviceAccountName': 'default', 'terminationGracePeriodSeconds': 5, "
        "'runtimeClassName': 'fields', 'overhead': {'cpu': '5m'}, 'resources': {'requests': {'cpu': '3'}}, "
        "'initContainers': [{'name': 'first', 'image': 'i0', 'imagePullPolicy': 'Never', "
        "'restartPolicy': 'Always'}], "
        "'affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': "
        "[{'matchExpressions': [{'key': 'gen', 'operator': 'Gt', 'values': ['3']}], "
        "'matchFields': [{'key': 'metadata.name', 'operator': 'NotIn', 'values': ['n9']}]}]}, "
        "'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 10, 'preference': "
        "{'matchExpressions': [{'key': 'zone', 'operator': 'Exists'}]}}]}, "
        "'podAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': [{'labelSelector': {'matchLabels': "
        "{'app': 'db'}}, 'namespaces': ['data'], 'topologyKey': 'zone', 'namespaceSelector': "
        "{'matchLabels': {'team': 'b'}}, 'matchLabelKeys': ['shard'], 'mismatchLabelKeys': ['tenant']}], "
        "'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 11, 'podAffinityTerm': "
        "{'topologyKey': 'rack'}}]}, "
        "'podAntiAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': [{'topologyKey': 'host'}], "
        "'preferredDuringSchedulingIgnoredDuringExecution': [{'weight': 12, 'podAffinityTerm': "
        "{'topologyKey': 'row'}}]}}, "
        "'topologySpreadConstraints': [{'maxSkew': 2, 'topologyKey': 'zone', 'whenUnsatisfiable': "
        "'DoNotSchedule', 'labelSelector': {'matchLabels': {'app': 'full'}}, 'minDomains': 3, "
        "'nodeAffinityPolicy': 'Ignore', 'nodeTaintsPolicy': 'Honor', 'matchLabelKeys': ['hash']}], "
        "'resourceClaims': [{'name': 'gpu', 'resourceClaimName': 'one'}, "
        "{'name': 'nic', 'resourceClaimTemplateName': 'many'}], "
        "'securityContext': {'runAsUser': 1001, 'runAsGroup': 1002, 'fsGroup': 1003, 'runAsNonRoot': true}, "
        "'tolerations': [{'key': 'k', 'operator': 'Equal', 'value': 'v', 'effect': 'NoExecute', "
        "'tolerationSeconds': 7}], "
        "'volumes': [{'name': 'a', 'hostPath': {'path': '/x', 'type': 'Directory'}}, "
        "{'name': 'b', 'emptyDir': {'medium': 'Memory', 'sizeLimit': '1Mi'}}, "
        "{'name': 'c', 'secret': {'secretName': 's', 'defaultMode': 256}}, "
        "{'name': 'd', 'persistentVolumeClaim': {'claimName': 'data', 'readOnly': true}}, "
        "{'name': 'e', 'downwardAPI': {'defaultMode': 288}}, "
        "{'name': 'f', 'configMap': {'name': 'm', 'defaultMode': 292}}, "
        "{'name': 'g', 'projected': {'sources': [], 'defaultMode': 416}}, "
        "{'name': 'h', 'image': {'reference': 'registry/i:1', 'pullPolicy': 'Never'}}, "
        "{'name': 'i', 'gcePersistentDisk': {'pdName': 'gce'}}, "
        "{'name': 'j', 'awsElasticBlockStore': {'volumeID': 'ebs'}}, "
        "{'name': 'k', 'iscsi': {'targetPortal': '10.0.0.9', 'iqn': 'iqn.2026-01.sh.vesper:x', 'lun': 0}}, "
        "{'name': 'l', 'rbd': {'monitors': ['10.0.0.8'], 'image': 'ceph'}}, "
        "{'name': 'm', 'azureDisk': {'diskName': 'azure', 'diskURI': "
        "'https://disk.blob.core.windows.net/vhds/disk.vhd'}}, "
        "{'name': 'n', 'ephemeral': {'volumeClaimTemplate': {'spec': {'accessModes': ['ReadWriteOnce'], "
        "'volumeName': 'pv-9', 'storageClassName': 'fast', 'volumeMode': 'Block', "
        "'resources': {'requests': {'storage': '1Gi'}}}}}}], "
        "'containers': [{'name': 'one', 'image': 'i1', 'command': ['run'], 'args': ['fast'], "
        "'workingDir': '/w', 'imagePullPolicy': 'Never', 'terminationMessagePath': '/t', "
        "'terminationMessagePolicy': 'FallbackToLogsOnError', 'stdin': true, "
        "'env': [{'name': 'E', 'value': 'e'}], "
        "'ports': [{'name': 'web', 'hostPort': 8080, 'containerPort': 80, 'protocol': 'UDP', "
        "'hostIP': '10.1.1.1'}], "
        "'resources': {'limits': {'cpu': '2'}, 'requests': {'cpu': '1'}}, "
        "'volumeMounts': [{'name': 'a', 'readOnly': true, 'mountPath': '/a', 'subPath': 's'}, "
        "{'name': 'b', 'mountPath': '/b', 'subPathExpr': '$(E)'}]}, "
        "{'name': 'two', 'image': 'i2', 'stdinOnce': true}, {'name': 'three', 'image': 'i3', 'tty': true}]";

static const char pod_status[] =
        "'phase': 'Running', 'reason': 'Because', 'message': 'It runs', 'hostIP': '10.0.0.1', "
        "'podIP': '10.0.0.2', 'podIPs': [{'ip': '10.0.0.2'}], 'hostIPs': [{'ip': '10.0.0.1'}], "
        "'nominatedNodeName': 'other-node', 'startTime': '2026-11-21T05:01:00Z', 'observedGeneration': 1, "
        "'resize': 'Deferred', "
        "'conditions': [{'type': 'Ready', 'status': 'True', 'lastProbeTime': '2026-11-21T05:02:00Z', "
        "'lastTransitionTime': '2026-11-21T05:03:00Z', 'reason': 'R', 'message': 'M', "
        "'observedGeneration': 1}], "
        "'initContainerStatuses': [{'name': 'first', 'image': 'i0', 'imageID': 'id0', 'ready': true, "
        "'restartCount': 0, 'state': {'terminated': {'exitCode': 0}}}], "
        "'containerStatuses': [{'name': 'one', 'image': 'i1', 'imageID': 'id1', 'containerID': 'cri://1', "
        "'ready': true, 'started': false, 'restartCount': 3, "
        "'state': {'running': {'startedAt': '2026-11-21T05:04:00Z'}}, "
        "'lastState': {'terminated': {'exitCode': 3, 'signal': 9, 'reason': 'Error', 'message': 'Oh', "
        "'startedAt': '2026-11-21T05:05:00Z', 'finishedAt': '2026-11-21T05:06:00Z', "
        "'containerID': 'cri://0'}}}, "
        "{'name': 'two', 'image': 'i2', 'imageID': 'id2', 'ready': false, 'started': true, "
        "'restartCount': 0, 'state': {'waiting': {'reason': 'CrashLoopBackOff', 'message': 'Wait'}}}]";

static const char node_status[] =
        "'phase': 'Running', 'capacity': {'cpu': '4'}, 'allocatable': {'cpu': '3'}, "
        "'addresses': [{'type': 'InternalIP', 'address': '10.0.0.7'}], "
        "'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'R', 'message': 'M', "
        "'lastHeartbeatTime': '2026-11-21T05:01:00Z', 'lastTransitionTime': '2026-11-21T05:02:00Z'}], "
        "'daemonEndpoints': {'kubeletEndpoint': {'Port': 10250}}, "
        "'images': [{'names': ['i'], 'sizeBytes': 17}], "
        "'nodeInfo': {'machineID': 'm', 'systemUUID': 's', 'bootID': 'b', 'kernelVersion': 'k', "
        "'osImage': 'o', 'containerRuntimeVersion': 'c', 'kubeletVersion': 'v', 'kubeProxyVersion': 'p', "
        "'operatingSystem': 'linux', 'architecture': 'amd64'}, "
        "'volumesInUse': ['in-use'], 'volumesAttached': [{'name': 'attached', 'devicePath': '/dev/x'}]";

static void create(Rig *r, KubeTarget t, const char *meta, const char *spec) {
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, t, "{'metadata': {%s}, 'spec': {%s}}", meta, spec);

        assert_answer(a, 201, NULL);
}

static void set_status(Rig *r, KubeTarget t, const char *status) {
        _cleanup_answer_ Answer a = { 0 };

        t.subresource = "status";
        a = rig_merge(r, RIG_ADMIN, t, "{'status': {%s}}", status);
        assert_answer(a, 200, NULL);
}

/* An overhead is what a RuntimeClass says, or refused. The fake knows none, and believes the pod. */
static void make_runtime_class(Rig *r) {
        _cleanup_answer_ Answer a = { 0 };

        if (rig_is_fake(r))
                return;
        a = rig_http(r, RIG_ADMIN, HTTP_POST, "/apis/node.k8s.io/v1/runtimeclasses", "application/json",
                     "{\"metadata\":{\"name\":\"fields\"},\"handler\":\"x\",\"overhead\":{\"podFixed\":{\"cpu\":\"5m\"}}}");
        assert_answer(a, 201, NULL);
}

static void make_pods(Rig *r) {
        _cleanup_answer_ Answer a = { 0 };

        make_runtime_class(r);

        create(r, POD(NS, NULL),
               "'name': 'full', 'generateName': 'fu-', 'labels': {'app': 'full'}, "
               "'annotations': {'note': 'n'}, 'finalizers': ['test.vesper.sh/keep'], "
               "'ownerReferences': [{'apiVersion': 'apps/v1', 'kind': 'ReplicaSet', 'name': 'web', "
               "'uid': '11111111-2222-3333-4444-555555555555', 'controller': true}, "
               "{'apiVersion': 'v1', 'kind': 'X', 'name': 'x', 'uid': 'u', 'blockOwnerDeletion': true}]",
               pod_spec);
        create(r, POD(NS, NULL), "'name': 'network'",
               "'enableServiceLinks': false, 'hostNetwork': true, " POD_REST);
        create(r, POD(NS, NULL), "'name': 'pid'", "'enableServiceLinks': false, 'hostPID': true, " POD_REST);
        create(r, POD(NS, NULL), "'name': 'ipc'", "'enableServiceLinks': false, 'hostIPC': true, " POD_REST);
        create(r, POD(NS, NULL), "'name': 'gated'",
               "'enableServiceLinks': false, 'schedulingGates': [{'name': 'example.com/gate'}], " POD_REST);
        set_status(r, POD(NS, "full"), pod_status);
        a = rig_delete(r, RIG_ADMIN, POD(NS, "full"), NULL); /* the finalizer keeps it */
        assert_answer(a, 200, NULL);
}

static void make_others(Rig *r) {
        create(r, NODE(NULL), "'name': 'fields-full', 'labels': {'test': 'fields'}",
               "'podCIDR': '10.9.0.0/24', 'podCIDRs': ['10.9.0.0/24'], 'externalID': 'x', "
               "'providerID': 'aws:///a/i-9', 'unschedulable': true, 'taints': [{'key': 'gpu', "
               "'value': 'yes', 'effect': 'NoExecute', 'timeAdded': '2026-11-21T05:03:00Z'}]");
        set_status(r, NODE("fields-full"), node_status);
        create(r, PDB(NS, NULL), "'name': 'least'",
               "'minAvailable': 2, 'unhealthyPodEvictionPolicy': 'AlwaysAllow', 'selector': "
               "{'matchLabels': {'app': 'full'}, 'matchExpressions': [{'key': 'zone', 'operator': 'NotIn', "
               "'values': ['a']}]}");
        create(r, PDB(NS, NULL), "'name': 'most'",
               "'maxUnavailable': '50%', 'selector': {'matchLabels': {'app': 'other'}}");
        set_status(r, PDB(NS, "least"),
                   "'observedGeneration': 6, 'disruptedPods': {'p': '2026-11-21T05:04:00Z'}, "
                   "'disruptionsAllowed': 2, 'currentHealthy': 3, 'desiredHealthy': 4, 'expectedPods': 5, "
                   "'conditions': [{'type': 'DisruptionAllowed', 'status': 'True', 'observedGeneration': 9, "
                   "'lastTransitionTime': '2026-11-21T05:05:00Z', 'reason': 'R', 'message': 'M'}]");
        create(r, ATTACHMENT(NULL), "'name': 'fields', 'labels': {'test': 'fields'}",
               "'attacher': 'csi.example', 'nodeName': 'n1', 'source': {'persistentVolumeName': 'pv-1'}");
        set_status(r, ATTACHMENT("fields"), "'attached': true, 'attachmentMetadata': {'a': 'b'}");
}

static void make_storage(Rig *r) {
        _cleanup_answer_ Answer a = { 0 };

        create(r, PV(NULL), "'name': 'fields', 'labels': {'test': 'fields'}",
               "'capacity': {'storage': '1Gi'}, 'accessModes': ['ReadOnlyMany'], 'storageClassName': 'slow', "
               "'persistentVolumeReclaimPolicy': 'Retain', 'volumeMode': 'Block', "
               "'csi': {'driver': 'csi.example', 'volumeHandle': 'vol-1'}, "
               "'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'zone', "
               "'operator': 'In', 'values': ['a']}]}]}}");
        create(r, PVC(NS, NULL), "'name': 'data'",
               "'accessModes': ['ReadWriteOncePod'], 'volumeName': 'fields', 'storageClassName': 'slow', "
               "'volumeMode': 'Block', 'resources': {'requests': {'storage': '1Gi'}}");
        create(r, CSI_NODE(NULL), "'name': 'fields-full', 'labels': {'test': 'fields'}",
               "'drivers': [{'name': 'csi.example', 'nodeID': 'i-9', 'topologyKeys': ['zone'], "
               "'allocatable': {'count': 25}}]");
        a = rig_create(r, RIG_ADMIN, STORAGE_CLASS(NULL),
                       "{'metadata': {'name': 'fields', 'labels': {'test': 'fields'}}, 'provisioner': "
                       "'csi.example', 'reclaimPolicy': 'Retain', 'allowVolumeExpansion': true, "
                       "'volumeBindingMode': 'WaitForFirstConsumer', 'allowedTopologies': "
                       "[{'matchLabelExpressions': [{'key': 'zone', 'values': ['a']}]}]}");
        assert_answer(a, 201, NULL);
}

static void compare_statuses(Check *c, Rig *r) {
        static const char eviction[] = "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":"
                                       "{\"name\":\"waits\",\"namespace\":\"" NS "\"}}";

        /* Its budget has not been looked at by a controller yet: try again in ten seconds. */
        create(r, POD(NS, NULL), "'name': 'waits', 'labels': {'app': 'other'}", POD_REST);
        set_status(r, POD(NS, "waits"),
                   "'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': 'True'}]");
        compare_refusal(c, r, HTTP_POST, PODS "/waits/eviction", eviction, 429);
        compare_refusal(c, r, HTTP_GET, "/apis/policy/v1/namespaces/" NS "/poddisruptionbudgets/none", NULL,
                        404);
        compare_refusal(c, r, HTTP_POST, "/api/v1/nodes",
                        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"Not A Name\"}}",
                        422);
        compare_success(c, r);
}

/* -- all of them? --------------------------------------------------------------------------------------- */

/* Each field once, under the first path that leads to it. */
static void count_unseen(const Check *c, const FakeField *fields, const char *path, FieldSet *visited,
                         unsigned *n) {
        for (const FakeField *f = fields; f->number != 0; f++) {
                char below[PATH_SIZE];

                if (field_set_has(visited, f) || is_left_out(c, f))
                        continue;
                field_set_add(visited, f);
                join(below, path, strempty(f->name));
                if (f->unseen)
                        print_message("excepted: %s: %s\n", below, f->unseen);
                else if (!field_set_has(&c->seen, f)) {
                        print_error("never seen with a value of its own: %s\n", below);
                        (*n)++;
                }
                if (f->of && !f->unseen)
                        count_unseen(c, f->of, f->name ? below : path, visited, n);
        }
}

TEST_CASE(listed_fields_are_sent) {
        static const struct {
                const char *name, *path, *more;
                FakeResourceId id;
        } kinds[] = {
                { "Node", "/api/v1/nodes", "&labelSelector=test%3Dfields", FAKE_NODES },
                { "Pod", PODS, "", FAKE_PODS },
                { "PodDisruptionBudget", "/apis/policy/v1/namespaces/" NS "/poddisruptionbudgets", "",
                  FAKE_PDBS },
                { "VolumeAttachment", "/apis/storage.k8s.io/v1/volumeattachments",
                  "&labelSelector=test%3Dfields", FAKE_VOLUMEATTACHMENTS },
                { "Namespace", "/api/v1/namespaces", "", FAKE_NAMESPACES },
                { "PersistentVolume", "/api/v1/persistentvolumes", "&labelSelector=test%3Dfields", FAKE_PVS },
                { "PersistentVolumeClaim", "/api/v1/namespaces/" NS "/persistentvolumeclaims", "", FAKE_PVCS },
                { "StorageClass", "/apis/storage.k8s.io/v1/storageclasses", "&labelSelector=test%3Dfields",
                  FAKE_STORAGECLASSES },
                { "CSINode", "/apis/storage.k8s.io/v1/csinodes", "&labelSelector=test%3Dfields",
                  FAKE_CSINODES },
        };
        Rig *r = *state;
        Check c = { .fake = rig_is_fake(r) };
        FieldSet visited = { 0 };
        unsigned n = 0;

        rig_make_namespace(r, NS);
        make_pods(r);
        make_others(r);
        make_storage(r);
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                compare_list(&c, r, fake_fields_of(kinds[i].id), kinds[i].path, kinds[i].more);
        compare_list(&c, r, fake_fields_of(FAKE_PODS), PODS, "&limit=1"); /* there is more */
        compare_statuses(&c, r);

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                count_unseen(&c, fake_fields_of(kinds[i].id), kinds[i].name, &visited, &n);
        count_unseen(&c, fake_fields_list_meta, "ListMeta", &visited, &n);
        count_unseen(&c, fake_fields_status, "Status", &visited, &n);
        print_message("%zu fields\n", visited.n);
        assert_int_equal(n, 0);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(listed_fields_are_sent),
};

CONTRACT_SUITE(fields, cases);
