/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-protobuf-fields.h"

#define TEXT FAKE_FIELD_TEXT, FAKE_FIELD_PLAIN
#define TEXT_POINTER FAKE_FIELD_TEXT, FAKE_FIELD_POINTER
#define TEXTS FAKE_FIELD_TEXT, FAKE_FIELD_LIST
#define TEXT_MAP FAKE_FIELD_TEXT, FAKE_FIELD_MAP
#define NUMBER FAKE_FIELD_NUMBER, FAKE_FIELD_PLAIN
#define NUMBER_POINTER FAKE_FIELD_NUMBER, FAKE_FIELD_POINTER
#define FLAG FAKE_FIELD_FLAG, FAKE_FIELD_PLAIN
#define FLAG_POINTER FAKE_FIELD_FLAG, FAKE_FIELD_POINTER
#define TIME FAKE_FIELD_TIME, FAKE_FIELD_PLAIN
#define TIME_POINTER FAKE_FIELD_TIME, FAKE_FIELD_POINTER
#define QUANTITY_POINTER FAKE_FIELD_QUANTITY, FAKE_FIELD_POINTER
#define QUANTITY_MAP FAKE_FIELD_QUANTITY, FAKE_FIELD_MAP
#define NUMBER_OR_TEXT FAKE_FIELD_NUMBER_OR_TEXT, FAKE_FIELD_POINTER
#define RAW FAKE_FIELD_RAW, FAKE_FIELD_POINTER
#define MESSAGE FAKE_FIELD_MESSAGE, FAKE_FIELD_PLAIN
#define MESSAGE_POINTER FAKE_FIELD_MESSAGE, FAKE_FIELD_POINTER
#define MESSAGES FAKE_FIELD_MESSAGE, FAKE_FIELD_LIST
#define INLINE NULL, FAKE_FIELD_INLINE, FAKE_FIELD_PLAIN
#define END \
        { 0 }

/* -- metav1 -------------------------------------------------------------------------------------------- */

static const FakeField owner[] = {
        { 1, "kind", TEXT },
        { 3, "name", TEXT },
        { 4, "uid", TEXT },
        { 5, "apiVersion", TEXT },
        { 6, "controller", FLAG_POINTER },
        { 7, "blockOwnerDeletion", FLAG_POINTER },
        END,
};

static const FakeField managed[] = {
        { 1, "manager", TEXT },     { 2, "operation", TEXT },
        { 3, "apiVersion", TEXT },  { 4, "time", TIME_POINTER },
        { 6, "fieldsType", TEXT },  { 7, "fieldsV1", RAW },
        { 8, "subresource", TEXT }, END,
};

const FakeField fake_fields_meta[] = {
        { 1, "name", TEXT },
        { 2, "generateName", TEXT },
        { 3, "namespace", TEXT },
        { 4, "selfLink", TEXT },
        { 5, "uid", TEXT },
        { 6, "resourceVersion", TEXT },
        { 7, "generation", NUMBER },
        { 8, "creationTimestamp", TIME },
        { 9, "deletionTimestamp", TIME_POINTER },
        { 10, "deletionGracePeriodSeconds", NUMBER_POINTER },
        { 11, "labels", TEXT_MAP },
        { 12, "annotations", TEXT_MAP },
        { 13, "ownerReferences", MESSAGES, owner },
        { 14, "finalizers", TEXTS },
        { 17, "managedFields", MESSAGES, managed },
        END,
};

const FakeField fake_fields_list_meta[] = {
        { 1, "selfLink", TEXT },
        { 2, "resourceVersion", TEXT },
        { 3, "continue", TEXT },
        { 4, "remainingItemCount", NUMBER_POINTER },
        END,
};

static const FakeField cause[] = {
        { 1, "reason", TEXT },
        { 2, "message", TEXT },
        { 3, "field", TEXT },
        END,
};

static const FakeField details[] = {
        { 1, "name", TEXT },
        { 2, "group", TEXT },
        { 3, "kind", TEXT },
        { 4, "causes", MESSAGES, cause },
        { 5, "retryAfterSeconds", NUMBER },
        { 6, "uid", TEXT },
        END,
};

const FakeField fake_fields_status[] = {
        { 1, "metadata", MESSAGE, fake_fields_list_meta },
        { 2, "status", TEXT },
        { 3, "message", TEXT },
        { 4, "reason", TEXT },
        { 5, "details", MESSAGE_POINTER, details },
        { 6, "code", NUMBER },
        END,
};

static const FakeField requirement[] = {
        { 1, "key", TEXT },
        { 2, "operator", TEXT },
        { 3, "values", TEXTS },
        END,
};

static const FakeField selector[] = {
        { 1, "matchLabels", TEXT_MAP },
        { 2, "matchExpressions", MESSAGES, requirement },
        END,
};

static const FakeField meta_condition[] = {
        { 1, "type", TEXT },
        { 2, "status", TEXT },
        { 3, "observedGeneration", NUMBER },
        { 4, "lastTransitionTime", TIME },
        { 5, "reason", TEXT },
        { 6, "message", TEXT },
        END,
};

/* -- Node ---------------------------------------------------------------------------------------------- */

static const FakeField taint[] = {
        { 1, "key", TEXT },
        { 2, "value", TEXT },
        { 3, "effect", TEXT },
        { 4, "timeAdded", TIME_POINTER },
        END,
};

static const FakeField node_spec[] = {
        { 1, "podCIDR", TEXT },
        { 2, "externalID", TEXT },
        { 3, "providerID", TEXT },
        { 4, "unschedulable", FLAG },
        { 5, "taints", MESSAGES, taint },
        { 7, "podCIDRs", TEXTS },
        END,
};

static const FakeField node_condition[] = {
        { 1, "type", TEXT },
        { 2, "status", TEXT },
        { 3, "lastHeartbeatTime", TIME },
        { 4, "lastTransitionTime", TIME },
        { 5, "reason", TEXT },
        { 6, "message", TEXT },
        END,
};

static const FakeField address[] = {
        { 1, "type", TEXT },
        { 2, "address", TEXT },
        END,
};

static const FakeField endpoint[] = { { 1, "Port", NUMBER }, END };
static const FakeField endpoints[] = { { 1, "kubeletEndpoint", MESSAGE, endpoint }, END };

static const FakeField node_info[] = {
        { 1, "machineID", TEXT },
        { 2, "systemUUID", TEXT },
        { 3, "bootID", TEXT },
        { 4, "kernelVersion", TEXT },
        { 5, "osImage", TEXT },
        { 6, "containerRuntimeVersion", TEXT },
        { 7, "kubeletVersion", TEXT },
        { 8, "kubeProxyVersion", TEXT },
        { 9, "operatingSystem", TEXT },
        { 10, "architecture", TEXT },
        END,
};

static const FakeField image[] = {
        { 1, "names", TEXTS },
        { 2, "sizeBytes", NUMBER },
        END,
};

static const FakeField attached[] = {
        { 1, "name", TEXT },
        { 2, "devicePath", TEXT },
        END,
};

static const FakeField node_status[] = {
        { 1, "capacity", QUANTITY_MAP },
        { 2, "allocatable", QUANTITY_MAP },
        { 3, "phase", TEXT },
        { 4, "conditions", MESSAGES, node_condition },
        { 5, "addresses", MESSAGES, address },
        { 6, "daemonEndpoints", MESSAGE, endpoints },
        { 7, "nodeInfo", MESSAGE, node_info },
        { 8, "images", MESSAGES, image },
        { 9, "volumesInUse", TEXTS },
        { 10, "volumesAttached", MESSAGES, attached },
        END,
};

static const FakeField node[] = {
        { 1, "metadata", MESSAGE, fake_fields_meta },
        { 2, "spec", MESSAGE, node_spec },
        { 3, "status", MESSAGE, node_status },
        END,
};

/* -- Pod ----------------------------------------------------------------------------------------------- */

static const FakeField reference[] = { { 1, "name", TEXT }, END };

static const FakeField host_path[] = {
        { 1, "path", TEXT },
        { 2, "type", TEXT_POINTER },
        END,
};

static const FakeField empty_dir[] = {
        { 1, "medium", TEXT },
        { 2, "sizeLimit", QUANTITY_POINTER },
        END,
};

static const FakeField secret[] = {
        { 1, "secretName", TEXT },
        { 3, "defaultMode", NUMBER_POINTER },
        END,
};

static const FakeField config_map[] = {
        { 1, INLINE, reference },
        { 3, "defaultMode", NUMBER_POINTER },
        END,
};

static const FakeField volume_claim[] = {
        { 1, "claimName", TEXT },
        { 2, "readOnly", FLAG },
        END,
};

/* Of downwardAPI and projected, without what they bring. */
static const FakeField files[] = { { 2, "defaultMode", NUMBER_POINTER }, END };

static const FakeField oci_image[] = {
        { 1, "reference", TEXT },
        { 2, "pullPolicy", TEXT },
        END,
};

static const FakeField volume_source[] = {
        { 1, "hostPath", MESSAGE_POINTER, host_path },
        { 2, "emptyDir", MESSAGE_POINTER, empty_dir },
        { 6, "secret", MESSAGE_POINTER, secret },
        { 10, "persistentVolumeClaim", MESSAGE_POINTER, volume_claim },
        { 16, "downwardAPI", MESSAGE_POINTER, files },
        { 19, "configMap", MESSAGE_POINTER, config_map },
        { 26, "projected", MESSAGE_POINTER, files },
        { 30, "image", MESSAGE_POINTER, oci_image },
        END,
};

static const FakeField volume[] = {
        { 1, "name", TEXT },
        { 2, INLINE, volume_source },
        END,
};

static const FakeField port[] = {
        { 1, "name", TEXT },     { 2, "hostPort", NUMBER }, { 3, "containerPort", NUMBER },
        { 4, "protocol", TEXT }, { 5, "hostIP", TEXT },     END,
};

static const FakeField env[] = {
        { 1, "name", TEXT },
        { 2, "value", TEXT },
        END,
};

static const FakeField resources[] = {
        { 1, "limits", QUANTITY_MAP },
        { 2, "requests", QUANTITY_MAP },
        END,
};

static const FakeField mount[] = {
        { 1, "name", TEXT },    { 2, "readOnly", FLAG },    { 3, "mountPath", TEXT },
        { 4, "subPath", TEXT }, { 6, "subPathExpr", TEXT }, END,
};

static const FakeField container[] = {
        { 1, "name", TEXT },
        { 2, "image", TEXT },
        { 3, "command", TEXTS },
        { 4, "args", TEXTS },
        { 5, "workingDir", TEXT },
        { 6, "ports", MESSAGES, port },
        { 7, "env", MESSAGES, env },
        { 8, "resources", MESSAGE, resources },
        { 9, "volumeMounts", MESSAGES, mount },
        { 13, "terminationMessagePath", TEXT },
        { 14, "imagePullPolicy", TEXT },
        { 16, "stdin", FLAG },
        { 17, "stdinOnce", FLAG },
        { 18, "tty", FLAG },
        { 20, "terminationMessagePolicy", TEXT },
        END,
};

static const FakeField pod_security[] = {
        { 2, "runAsUser", NUMBER_POINTER },
        { 3, "runAsNonRoot", FLAG_POINTER },
        { 5, "fsGroup", NUMBER_POINTER },
        { 6, "runAsGroup", NUMBER_POINTER },
        END,
};

static const FakeField toleration[] = {
        { 1, "key", TEXT },
        { 2, "operator", TEXT },
        { 3, "value", TEXT },
        { 4, "effect", TEXT },
        { 5, "tolerationSeconds", NUMBER_POINTER },
        END,
};

static const FakeField resource_claim[] = {
        { 1, "name", TEXT },
        { 3, "resourceClaimName", TEXT_POINTER },
        { 4, "resourceClaimTemplateName", TEXT_POINTER },
        END,
};

static const FakeField pod_spec[] = {
        { 1, "volumes", MESSAGES, volume },
        { 2, "containers", MESSAGES, container },
        { 3, "restartPolicy", TEXT },
        { 4, "terminationGracePeriodSeconds", NUMBER_POINTER },
        { 5, "activeDeadlineSeconds", NUMBER_POINTER },
        { 6, "dnsPolicy", TEXT },
        { 7, "nodeSelector", TEXT_MAP },
        { 8, "serviceAccountName", TEXT },
        { 9, "serviceAccount", TEXT },
        { 10, "nodeName", TEXT },
        { 11, "hostNetwork", FLAG },
        { 12, "hostPID", FLAG },
        { 13, "hostIPC", FLAG },
        { 14, "securityContext", MESSAGE_POINTER, pod_security },
        { 16, "hostname", TEXT },
        { 17, "subdomain", TEXT },
        { 19, "schedulerName", TEXT },
        { 20, "initContainers", MESSAGES, container },
        { 21, "automountServiceAccountToken", FLAG_POINTER },
        { 22, "tolerations", MESSAGES, toleration },
        { 24, "priorityClassName", TEXT },
        { 25, "priority", NUMBER_POINTER },
        { 30, "enableServiceLinks", FLAG_POINTER },
        { 31, "preemptionPolicy", TEXT_POINTER },
        { 39, "resourceClaims", MESSAGES, resource_claim },
        END,
};

static const FakeField pod_condition[] = {
        { 1, "type", TEXT },
        { 2, "status", TEXT },
        { 3, "lastProbeTime", TIME },
        { 4, "lastTransitionTime", TIME },
        { 5, "reason", TEXT },
        { 6, "message", TEXT },
        { 7, "observedGeneration", NUMBER },
        END,
};

static const FakeField waiting[] = {
        { 1, "reason", TEXT },
        { 2, "message", TEXT },
        END,
};

static const FakeField running[] = { { 1, "startedAt", TIME }, END };

static const FakeField terminated[] = {
        { 1, "exitCode", NUMBER },  { 2, "signal", NUMBER },
        { 3, "reason", TEXT },      { 4, "message", TEXT },
        { 5, "startedAt", TIME },   { 6, "finishedAt", TIME },
        { 7, "containerID", TEXT }, END,
};

static const FakeField container_state[] = {
        { 1, "waiting", MESSAGE_POINTER, waiting },
        { 2, "running", MESSAGE_POINTER, running },
        { 3, "terminated", MESSAGE_POINTER, terminated },
        END,
};

static const FakeField container_status[] = {
        { 1, "name", TEXT },
        { 2, "state", MESSAGE, container_state },
        { 3, "lastState", MESSAGE, container_state },
        { 4, "ready", FLAG },
        { 5, "restartCount", NUMBER },
        { 6, "image", TEXT },
        { 7, "imageID", TEXT },
        { 8, "containerID", TEXT },
        { 9, "started", FLAG_POINTER },
        END,
};

static const FakeField ip[] = { { 1, "ip", TEXT }, END };

static const FakeField pod_status[] = {
        { 1, "phase", TEXT },
        { 2, "conditions", MESSAGES, pod_condition },
        { 3, "message", TEXT },
        { 4, "reason", TEXT },
        { 5, "hostIP", TEXT },
        { 6, "podIP", TEXT },
        { 7, "startTime", TIME_POINTER },
        { 8, "containerStatuses", MESSAGES, container_status },
        { 9, "qosClass", TEXT },
        { 10, "initContainerStatuses", MESSAGES, container_status },
        { 11, "nominatedNodeName", TEXT },
        { 12, "podIPs", MESSAGES, ip },
        { 14, "resize", TEXT },
        { 16, "hostIPs", MESSAGES, ip },
        { 17, "observedGeneration", NUMBER },
        END,
};

static const FakeField pod[] = {
        { 1, "metadata", MESSAGE, fake_fields_meta },
        { 2, "spec", MESSAGE, pod_spec },
        { 3, "status", MESSAGE, pod_status },
        END,
};

/* -- PodDisruptionBudget ------------------------------------------------------------------------------- */

static const FakeField pdb_spec[] = {
        { 1, "minAvailable", NUMBER_OR_TEXT },
        { 2, "selector", MESSAGE_POINTER, selector },
        { 3, "maxUnavailable", NUMBER_OR_TEXT },
        { 4, "unhealthyPodEvictionPolicy", TEXT_POINTER },
        END,
};

static const FakeField pdb_status[] = {
        { 1, "observedGeneration", NUMBER },
        { 2, "disruptedPods", FAKE_FIELD_TIME, FAKE_FIELD_MAP },
        { 3, "disruptionsAllowed", NUMBER },
        { 4, "currentHealthy", NUMBER },
        { 5, "desiredHealthy", NUMBER },
        { 6, "expectedPods", NUMBER },
        { 7, "conditions", MESSAGES, meta_condition },
        END,
};

static const FakeField pdb[] = {
        { 1, "metadata", MESSAGE, fake_fields_meta },
        { 2, "spec", MESSAGE, pdb_spec },
        { 3, "status", MESSAGE, pdb_status },
        END,
};

/* -- VolumeAttachment ---------------------------------------------------------------------------------- */

static const FakeField attachment_source[] = { { 1, "persistentVolumeName", TEXT_POINTER }, END };

static const FakeField attachment_spec[] = {
        { 1, "attacher", TEXT },
        { 2, "source", MESSAGE, attachment_source },
        { 3, "nodeName", TEXT },
        END,
};

static const FakeField attachment_status[] = {
        { 1, "attached", FLAG },
        { 2, "attachmentMetadata", TEXT_MAP },
        END,
};

static const FakeField attachment[] = {
        { 1, "metadata", MESSAGE, fake_fields_meta },
        { 2, "spec", MESSAGE, attachment_spec },
        { 3, "status", MESSAGE, attachment_status },
        END,
};

const FakeField *fake_fields_of(FakeResourceId id) {
        static const FakeField *const tables[_FAKE_RESOURCE_MAX] = {
                [FAKE_NODES] = node,
                [FAKE_PODS] = pod,
                [FAKE_PDBS] = pdb,
                [FAKE_VOLUMEATTACHMENTS] = attachment,
        };

        return tables[id];
}
