/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every field of Kubernetes' protobuf that vesper or its tests know, in one list: k8s.io/api and
 * k8s.io/apimachinery v0.34, generated.proto of meta/v1, core/v1, policy/v1 and storage/v1. Messages have the
 * names that they have there, fields their number there and their name in JSON; numbers ascend. A message
 * stands before those that contain it.
 *
 * Who includes this file defines what a row becomes (so there is no #pragma once):
 *
 *      READ(number, name, type)             a decoder of ours looks at it
 *      READ_OWN(number, name, type)         the decoder of kube_own_pod_kind does, that of kube_pod_kind not
 *      READ_SCHEDULED(number, name, type)   those of kube-scheduling.h do, which daemons that only drain have no use for
 *      READ_BESIDES(number, name, type)     both of these two do
 *      SENT(number, name, type)             no decoder does; the tests' API server writes it, as a real one
 *      UNSEEN(number, name, reason, type)   as SENT, and no real API server can be made to send it with a
 *                                           value of its own: reason says why
 *
 * kube-shapes.c makes of the READ ones what vesper reads protobuf by; the tests' API server makes its tables
 * of all of them. test-kube-fields.c holds READ to what the decoders look at, contract-fields.c holds all to
 * what a real API server sends.
 *
 * Types, as Go declares them:
 *
 *      TEXT, NUMBER, FLAG, TIME             a plain field: always on the wire, left out of JSON if empty (but
 *                                           numbers and flags without omitempty are 0 or false there)
 *      TEXT_KEPT                            a plain string without omitempty: in JSON also if empty
 *      ..._POINTER, NUMBER_OR_TEXT, RAW     a pointer: on the wire and in JSON if set
 *      TEXTS, ..._MAP                       a list of strings; a map with strings as keys
 *      MESSAGE_OF, MESSAGE_POINTER, MESSAGES(message)
 *      INLINE(message)                      an embedded struct: in JSON its members stand in the outer object;
 *                                           name is NULL
 *
 * Of a message whose rows are all SENT a decoder looks only at whether it is there.
 */
/* clang-format off */

/* -- meta/v1 ------------------------------------------------------------------------------------------- */

MESSAGE(OwnerReference)
        READ(1, "kind", TEXT_KEPT)
        READ(3, "name", TEXT_KEPT)
        READ(4, "uid", TEXT_KEPT)
        READ(5, "apiVersion", TEXT_KEPT)
        READ(6, "controller", FLAG_POINTER)
        SENT(7, "blockOwnerDeletion", FLAG_POINTER)
END(OwnerReference)

MESSAGE(ManagedFieldsEntry)
        SENT(1, "manager", TEXT)
        SENT(2, "operation", TEXT)
        SENT(3, "apiVersion", TEXT)
        SENT(4, "time", TIME_POINTER)
        SENT(6, "fieldsType", TEXT)
        SENT(7, "fieldsV1", RAW)
        SENT(8, "subresource", TEXT)
END(ManagedFieldsEntry)

MESSAGE(ObjectMeta)
        READ(1, "name", TEXT)
        SENT(2, "generateName", TEXT)
        READ(3, "namespace", TEXT)
        UNSEEN(4, "selfLink", "no API server sets it since Kubernetes 1.20", TEXT)
        READ(5, "uid", TEXT)
        READ(6, "resourceVersion", TEXT)
        READ(7, "generation", NUMBER)
        READ(8, "creationTimestamp", TIME)
        READ(9, "deletionTimestamp", TIME_POINTER)
        READ(10, "deletionGracePeriodSeconds", NUMBER_POINTER)
        READ(11, "labels", TEXT_MAP)
        READ(12, "annotations", TEXT_MAP)
        READ(13, "ownerReferences", MESSAGES(OwnerReference))
        READ(14, "finalizers", TEXTS)
        SENT(17, "managedFields", MESSAGES(ManagedFieldsEntry))
END(ObjectMeta)

MESSAGE(ListMeta)
        UNSEEN(1, "selfLink", "no API server sets it since Kubernetes 1.20", TEXT)
        READ(2, "resourceVersion", TEXT)
        READ(3, "continue", TEXT)
        SENT(4, "remainingItemCount", NUMBER_POINTER)
END(ListMeta)

MESSAGE(StatusCause)
        READ(1, "reason", TEXT)
        READ(2, "message", TEXT)
        READ(3, "field", TEXT)
END(StatusCause)

MESSAGE(StatusDetails)
        SENT(1, "name", TEXT)
        SENT(2, "group", TEXT)
        SENT(3, "kind", TEXT)
        READ(4, "causes", MESSAGES(StatusCause))
        READ(5, "retryAfterSeconds", NUMBER)
        SENT(6, "uid", TEXT)
END(StatusDetails)

MESSAGE(Status)
        UNSEEN(1, "metadata", "always empty in a Status", MESSAGE_OF(ListMeta))
        SENT(2, "status", TEXT)
        READ(3, "message", TEXT)
        READ(4, "reason", TEXT)
        READ(5, "details", MESSAGE_POINTER(StatusDetails))
        READ(6, "code", NUMBER)
END(Status)

MESSAGE(LabelSelectorRequirement)
        READ(1, "key", TEXT_KEPT)
        READ(2, "operator", TEXT_KEPT)
        READ(3, "values", TEXTS)
END(LabelSelectorRequirement)

MESSAGE(LabelSelector)
        READ(1, "matchLabels", TEXT_MAP)
        READ(2, "matchExpressions", MESSAGES(LabelSelectorRequirement))
END(LabelSelector)

MESSAGE(Condition)
        READ(1, "type", TEXT)
        READ(2, "status", TEXT)
        SENT(3, "observedGeneration", NUMBER)
        SENT(4, "lastTransitionTime", TIME)
        READ(5, "reason", TEXT)
        READ(6, "message", TEXT)
END(Condition)

/* -- Node --------------------------------------------------------------------------------------------- */

MESSAGE(Taint)
        READ(1, "key", TEXT_KEPT)
        READ(2, "value", TEXT)
        READ(3, "effect", TEXT_KEPT)
        READ(4, "timeAdded", TIME_POINTER)
END(Taint)

MESSAGE(NodeSpec)
        SENT(1, "podCIDR", TEXT)
        SENT(2, "externalID", TEXT)
        READ(3, "providerID", TEXT)
        READ(4, "unschedulable", FLAG)
        READ(5, "taints", MESSAGES(Taint))
        SENT(7, "podCIDRs", TEXTS)
END(NodeSpec)

MESSAGE(NodeCondition)
        READ(1, "type", TEXT_KEPT)
        READ(2, "status", TEXT_KEPT)
        READ(3, "lastHeartbeatTime", TIME)
        READ(4, "lastTransitionTime", TIME)
        READ(5, "reason", TEXT)
        READ(6, "message", TEXT)
END(NodeCondition)

MESSAGE(NodeAddress)
        READ(1, "type", TEXT_KEPT)
        READ(2, "address", TEXT_KEPT)
END(NodeAddress)

MESSAGE(DaemonEndpoint)
        READ(1, "Port", NUMBER)
END(DaemonEndpoint)

MESSAGE(NodeDaemonEndpoints)
        READ(1, "kubeletEndpoint", MESSAGE_OF(DaemonEndpoint))
END(NodeDaemonEndpoints)

MESSAGE(NodeSystemInfo)
        READ(1, "machineID", TEXT_KEPT)
        READ(2, "systemUUID", TEXT_KEPT)
        READ(3, "bootID", TEXT_KEPT)
        SENT(4, "kernelVersion", TEXT)
        READ_SCHEDULED(5, "osImage", TEXT_KEPT)
        SENT(6, "containerRuntimeVersion", TEXT)
        READ_SCHEDULED(7, "kubeletVersion", TEXT_KEPT)
        SENT(8, "kubeProxyVersion", TEXT)
        SENT(9, "operatingSystem", TEXT)
        SENT(10, "architecture", TEXT)
END(NodeSystemInfo)

MESSAGE(ContainerImage)
        SENT(1, "names", TEXTS)
        SENT(2, "sizeBytes", NUMBER)
END(ContainerImage)

MESSAGE(AttachedVolume)
        READ(1, "name", TEXT_KEPT)
        SENT(2, "devicePath", TEXT)
END(AttachedVolume)

MESSAGE(NodeStatus)
        SENT(1, "capacity", QUANTITY_MAP)
        READ_SCHEDULED(2, "allocatable", QUANTITY_MAP)
        SENT(3, "phase", TEXT)
        READ(4, "conditions", MESSAGES(NodeCondition))
        READ(5, "addresses", MESSAGES(NodeAddress))
        READ(6, "daemonEndpoints", MESSAGE_OF(NodeDaemonEndpoints))
        READ(7, "nodeInfo", MESSAGE_OF(NodeSystemInfo))
        SENT(8, "images", MESSAGES(ContainerImage))
        READ(9, "volumesInUse", TEXTS)
        READ(10, "volumesAttached", MESSAGES(AttachedVolume))
END(NodeStatus)

MESSAGE(Node)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ(2, "spec", MESSAGE_OF(NodeSpec))
        READ(3, "status", MESSAGE_OF(NodeStatus))
END(Node)

/* -- Pod ---------------------------------------------------------------------------------------------- */

MESSAGE(LocalObjectReference)
        SENT(1, "name", TEXT)
END(LocalObjectReference)

MESSAGE(HostPathVolumeSource)
        SENT(1, "path", TEXT)
        SENT(2, "type", TEXT_POINTER)
END(HostPathVolumeSource)

MESSAGE(EmptyDirVolumeSource)
        SENT(1, "medium", TEXT)
        SENT(2, "sizeLimit", QUANTITY_POINTER)
END(EmptyDirVolumeSource)

MESSAGE(SecretVolumeSource)
        SENT(1, "secretName", TEXT)
        SENT(3, "defaultMode", NUMBER_POINTER)
END(SecretVolumeSource)

MESSAGE(ConfigMapVolumeSource)
        SENT(1, NULL, INLINE(LocalObjectReference))
        SENT(3, "defaultMode", NUMBER_POINTER)
END(ConfigMapVolumeSource)

MESSAGE(PersistentVolumeClaimVolumeSource)
        READ_SCHEDULED(1, "claimName", TEXT)
        SENT(2, "readOnly", FLAG)
END(PersistentVolumeClaimVolumeSource)

MESSAGE(DownwardAPIVolumeSource)
        SENT(2, "defaultMode", NUMBER_POINTER)
END(DownwardAPIVolumeSource)

MESSAGE(ProjectedVolumeSource)
        SENT(2, "defaultMode", NUMBER_POINTER)
END(ProjectedVolumeSource)

MESSAGE(ImageVolumeSource)
        SENT(1, "reference", TEXT)
        SENT(2, "pullPolicy", TEXT)
END(ImageVolumeSource)

MESSAGE(GCEPersistentDiskVolumeSource)
        SENT(1, "pdName", TEXT)
END(GCEPersistentDiskVolumeSource)

MESSAGE(AWSElasticBlockStoreVolumeSource)
        SENT(1, "volumeID", TEXT)
END(AWSElasticBlockStoreVolumeSource)

MESSAGE(ISCSIVolumeSource)
        SENT(1, "targetPortal", TEXT)
        SENT(2, "iqn", TEXT)
END(ISCSIVolumeSource)

MESSAGE(RBDVolumeSource)
        SENT(1, "monitors", TEXTS)
        SENT(2, "image", TEXT)
END(RBDVolumeSource)

MESSAGE(AzureDiskVolumeSource)
        SENT(1, "diskName", TEXT)
        SENT(2, "diskURI", TEXT)
END(AzureDiskVolumeSource)

MESSAGE(PersistentVolumeClaimSpec)
        READ_SCHEDULED(1, "accessModes", TEXTS)
        READ_SCHEDULED(3, "volumeName", TEXT)
        READ_SCHEDULED(5, "storageClassName", TEXT_POINTER)
        SENT(6, "volumeMode", TEXT_POINTER)
END(PersistentVolumeClaimSpec)

MESSAGE(PersistentVolumeClaimTemplate)
        SENT(2, "spec", MESSAGE_OF(PersistentVolumeClaimSpec))
END(PersistentVolumeClaimTemplate)

MESSAGE(EphemeralVolumeSource)
        SENT(1, "volumeClaimTemplate", MESSAGE_POINTER(PersistentVolumeClaimTemplate))
END(EphemeralVolumeSource)

MESSAGE(VolumeSource)
        READ_OWN(1, "hostPath", MESSAGE_POINTER(HostPathVolumeSource))
        READ_OWN(2, "emptyDir", MESSAGE_POINTER(EmptyDirVolumeSource))
        READ_SCHEDULED(3, "gcePersistentDisk", MESSAGE_POINTER(GCEPersistentDiskVolumeSource))
        READ_SCHEDULED(4, "awsElasticBlockStore", MESSAGE_POINTER(AWSElasticBlockStoreVolumeSource))
        READ_OWN(6, "secret", MESSAGE_POINTER(SecretVolumeSource))
        READ_SCHEDULED(8, "iscsi", MESSAGE_POINTER(ISCSIVolumeSource))
        READ_SCHEDULED(10, "persistentVolumeClaim", MESSAGE_POINTER(PersistentVolumeClaimVolumeSource))
        READ_SCHEDULED(11, "rbd", MESSAGE_POINTER(RBDVolumeSource))
        READ_OWN(16, "downwardAPI", MESSAGE_POINTER(DownwardAPIVolumeSource))
        READ_OWN(19, "configMap", MESSAGE_POINTER(ConfigMapVolumeSource))
        READ_SCHEDULED(22, "azureDisk", MESSAGE_POINTER(AzureDiskVolumeSource))
        READ_OWN(26, "projected", MESSAGE_POINTER(ProjectedVolumeSource))
        READ_SCHEDULED(29, "ephemeral", MESSAGE_POINTER(EphemeralVolumeSource))
        READ_OWN(30, "image", MESSAGE_POINTER(ImageVolumeSource))
END(VolumeSource)

MESSAGE(Volume)
        READ_SCHEDULED(1, "name", TEXT)
        READ_BESIDES(2, NULL, INLINE(VolumeSource))
END(Volume)

MESSAGE(ContainerPort)
        SENT(1, "name", TEXT)
        READ_SCHEDULED(2, "hostPort", NUMBER)
        SENT(3, "containerPort", NUMBER)
        READ_SCHEDULED(4, "protocol", TEXT)
        READ_SCHEDULED(5, "hostIP", TEXT)
END(ContainerPort)

MESSAGE(EnvVar)
        SENT(1, "name", TEXT)
        SENT(2, "value", TEXT)
END(EnvVar)

MESSAGE(ResourceRequirements)
        SENT(1, "limits", QUANTITY_MAP)
        READ_SCHEDULED(2, "requests", QUANTITY_MAP)
END(ResourceRequirements)

MESSAGE(VolumeMount)
        SENT(1, "name", TEXT)
        SENT(2, "readOnly", FLAG)
        SENT(3, "mountPath", TEXT)
        SENT(4, "subPath", TEXT)
        SENT(6, "subPathExpr", TEXT)
END(VolumeMount)

MESSAGE(Container)
        SENT(1, "name", TEXT)
        SENT(2, "image", TEXT)
        SENT(3, "command", TEXTS)
        SENT(4, "args", TEXTS)
        SENT(5, "workingDir", TEXT)
        READ_SCHEDULED(6, "ports", MESSAGES(ContainerPort))
        SENT(7, "env", MESSAGES(EnvVar))
        READ_SCHEDULED(8, "resources", MESSAGE_OF(ResourceRequirements))
        SENT(9, "volumeMounts", MESSAGES(VolumeMount))
        SENT(13, "terminationMessagePath", TEXT)
        SENT(14, "imagePullPolicy", TEXT)
        SENT(16, "stdin", FLAG)
        SENT(17, "stdinOnce", FLAG)
        SENT(18, "tty", FLAG)
        SENT(20, "terminationMessagePolicy", TEXT)
        READ_SCHEDULED(24, "restartPolicy", TEXT_POINTER)
END(Container)

MESSAGE(PodSecurityContext)
        SENT(2, "runAsUser", NUMBER_POINTER)
        SENT(3, "runAsNonRoot", FLAG_POINTER)
        SENT(5, "fsGroup", NUMBER_POINTER)
        SENT(6, "runAsGroup", NUMBER_POINTER)
END(PodSecurityContext)

MESSAGE(Toleration)
        READ(1, "key", TEXT)
        READ(2, "operator", TEXT)
        READ(3, "value", TEXT)
        READ(4, "effect", TEXT)
        SENT(5, "tolerationSeconds", NUMBER_POINTER)
END(Toleration)

MESSAGE(NodeSelectorRequirement)
        READ_SCHEDULED(1, "key", TEXT_KEPT)
        READ_SCHEDULED(2, "operator", TEXT_KEPT)
        READ_SCHEDULED(3, "values", TEXTS)
END(NodeSelectorRequirement)

MESSAGE(NodeSelectorTerm)
        READ_SCHEDULED(1, "matchExpressions", MESSAGES(NodeSelectorRequirement))
        READ_SCHEDULED(2, "matchFields", MESSAGES(NodeSelectorRequirement))
END(NodeSelectorTerm)

MESSAGE(NodeSelector)
        READ_SCHEDULED(1, "nodeSelectorTerms", MESSAGES(NodeSelectorTerm))
END(NodeSelector)

MESSAGE(PreferredSchedulingTerm)
        READ_SCHEDULED(1, "weight", NUMBER)
        READ_SCHEDULED(2, "preference", MESSAGE_OF(NodeSelectorTerm))
END(PreferredSchedulingTerm)

MESSAGE(NodeAffinity)
        READ_SCHEDULED(1, "requiredDuringSchedulingIgnoredDuringExecution", MESSAGE_POINTER(NodeSelector))
        READ_SCHEDULED(2, "preferredDuringSchedulingIgnoredDuringExecution", MESSAGES(PreferredSchedulingTerm))
END(NodeAffinity)

MESSAGE(PodAffinityTerm)
        READ_SCHEDULED(1, "labelSelector", MESSAGE_POINTER(LabelSelector))
        READ_SCHEDULED(2, "namespaces", TEXTS)
        READ_SCHEDULED(3, "topologyKey", TEXT_KEPT)
        READ_SCHEDULED(4, "namespaceSelector", MESSAGE_POINTER(LabelSelector))
        READ_SCHEDULED(5, "matchLabelKeys", TEXTS)
        READ_SCHEDULED(6, "mismatchLabelKeys", TEXTS)
END(PodAffinityTerm)

MESSAGE(WeightedPodAffinityTerm)
        READ_SCHEDULED(1, "weight", NUMBER)
        READ_SCHEDULED(2, "podAffinityTerm", MESSAGE_OF(PodAffinityTerm))
END(WeightedPodAffinityTerm)

MESSAGE(PodAffinity)
        READ_SCHEDULED(1, "requiredDuringSchedulingIgnoredDuringExecution", MESSAGES(PodAffinityTerm))
        READ_SCHEDULED(2, "preferredDuringSchedulingIgnoredDuringExecution", MESSAGES(WeightedPodAffinityTerm))
END(PodAffinity)

MESSAGE(PodAntiAffinity)
        READ_SCHEDULED(1, "requiredDuringSchedulingIgnoredDuringExecution", MESSAGES(PodAffinityTerm))
        READ_SCHEDULED(2, "preferredDuringSchedulingIgnoredDuringExecution", MESSAGES(WeightedPodAffinityTerm))
END(PodAntiAffinity)

MESSAGE(Affinity)
        READ_SCHEDULED(1, "nodeAffinity", MESSAGE_POINTER(NodeAffinity))
        READ_SCHEDULED(2, "podAffinity", MESSAGE_POINTER(PodAffinity))
        READ_SCHEDULED(3, "podAntiAffinity", MESSAGE_POINTER(PodAntiAffinity))
END(Affinity)

MESSAGE(TopologySpreadConstraint)
        READ_SCHEDULED(1, "maxSkew", NUMBER)
        READ_SCHEDULED(2, "topologyKey", TEXT_KEPT)
        READ_SCHEDULED(3, "whenUnsatisfiable", TEXT_KEPT)
        READ_SCHEDULED(4, "labelSelector", MESSAGE_POINTER(LabelSelector))
        READ_SCHEDULED(5, "minDomains", NUMBER_POINTER)
        READ_SCHEDULED(6, "nodeAffinityPolicy", TEXT_POINTER)
        READ_SCHEDULED(7, "nodeTaintsPolicy", TEXT_POINTER)
        READ_SCHEDULED(8, "matchLabelKeys", TEXTS)
END(TopologySpreadConstraint)

MESSAGE(PodSchedulingGate)
        SENT(1, "name", TEXT)
END(PodSchedulingGate)

MESSAGE(PodResourceClaim)
        SENT(1, "name", TEXT)
        SENT(3, "resourceClaimName", TEXT_POINTER)
        SENT(4, "resourceClaimTemplateName", TEXT_POINTER)
END(PodResourceClaim)

MESSAGE(PodSpec)
        READ_BESIDES(1, "volumes", MESSAGES(Volume))
        READ_SCHEDULED(2, "containers", MESSAGES(Container))
        READ_OWN(3, "restartPolicy", TEXT)
        READ(4, "terminationGracePeriodSeconds", NUMBER_POINTER)
        SENT(5, "activeDeadlineSeconds", NUMBER_POINTER)
        SENT(6, "dnsPolicy", TEXT)
        READ_SCHEDULED(7, "nodeSelector", TEXT_MAP)
        SENT(8, "serviceAccountName", TEXT)
        UNSEEN(9, "serviceAccount", "always a copy of serviceAccountName", TEXT)
        READ(10, "nodeName", TEXT)
        SENT(11, "hostNetwork", FLAG)
        SENT(12, "hostPID", FLAG)
        SENT(13, "hostIPC", FLAG)
        SENT(14, "securityContext", MESSAGE_POINTER(PodSecurityContext))
        SENT(16, "hostname", TEXT)
        SENT(17, "subdomain", TEXT)
        READ_SCHEDULED(18, "affinity", MESSAGE_POINTER(Affinity))
        READ_SCHEDULED(19, "schedulerName", TEXT)
        READ_SCHEDULED(20, "initContainers", MESSAGES(Container))
        SENT(21, "automountServiceAccountToken", FLAG_POINTER)
        READ(22, "tolerations", MESSAGES(Toleration))
        READ(24, "priorityClassName", TEXT)
        READ(25, "priority", NUMBER_POINTER)
        SENT(30, "enableServiceLinks", FLAG_POINTER)
        SENT(31, "preemptionPolicy", TEXT_POINTER)
        READ_SCHEDULED(32, "overhead", QUANTITY_MAP)
        READ_SCHEDULED(33, "topologySpreadConstraints", MESSAGES(TopologySpreadConstraint))
        READ_SCHEDULED(38, "schedulingGates", MESSAGES(PodSchedulingGate))
        READ_BESIDES(39, "resourceClaims", MESSAGES(PodResourceClaim))
        READ_SCHEDULED(40, "resources", MESSAGE_POINTER(ResourceRequirements))
END(PodSpec)

MESSAGE(PodCondition)
        READ(1, "type", TEXT_KEPT)
        READ(2, "status", TEXT_KEPT)
        SENT(3, "lastProbeTime", TIME)
        SENT(4, "lastTransitionTime", TIME)
        SENT(5, "reason", TEXT)
        SENT(6, "message", TEXT)
        SENT(7, "observedGeneration", NUMBER)
END(PodCondition)

MESSAGE(ContainerStateWaiting)
        SENT(1, "reason", TEXT)
        SENT(2, "message", TEXT)
END(ContainerStateWaiting)

MESSAGE(ContainerStateRunning)
        SENT(1, "startedAt", TIME)
END(ContainerStateRunning)

MESSAGE(ContainerStateTerminated)
        SENT(1, "exitCode", NUMBER)
        SENT(2, "signal", NUMBER)
        SENT(3, "reason", TEXT)
        SENT(4, "message", TEXT)
        SENT(5, "startedAt", TIME)
        SENT(6, "finishedAt", TIME)
        SENT(7, "containerID", TEXT)
END(ContainerStateTerminated)

MESSAGE(ContainerState)
        SENT(1, "waiting", MESSAGE_POINTER(ContainerStateWaiting))
        SENT(2, "running", MESSAGE_POINTER(ContainerStateRunning))
        SENT(3, "terminated", MESSAGE_POINTER(ContainerStateTerminated))
END(ContainerState)

MESSAGE(ContainerStatus)
        SENT(1, "name", TEXT)
        SENT(2, "state", MESSAGE_OF(ContainerState))
        SENT(3, "lastState", MESSAGE_OF(ContainerState))
        SENT(4, "ready", FLAG)
        SENT(5, "restartCount", NUMBER)
        SENT(6, "image", TEXT)
        SENT(7, "imageID", TEXT)
        SENT(8, "containerID", TEXT)
        SENT(9, "started", FLAG_POINTER)
END(ContainerStatus)

MESSAGE(PodIP)
        SENT(1, "ip", TEXT)
END(PodIP)

MESSAGE(PodStatus)
        READ(1, "phase", TEXT)
        READ(2, "conditions", MESSAGES(PodCondition))
        SENT(3, "message", TEXT)
        SENT(4, "reason", TEXT)
        SENT(5, "hostIP", TEXT)
        SENT(6, "podIP", TEXT)
        READ(7, "startTime", TIME_POINTER)
        SENT(8, "containerStatuses", MESSAGES(ContainerStatus))
        SENT(9, "qosClass", TEXT)
        SENT(10, "initContainerStatuses", MESSAGES(ContainerStatus))
        READ_SCHEDULED(11, "nominatedNodeName", TEXT)
        SENT(12, "podIPs", MESSAGES(PodIP))
        SENT(14, "resize", TEXT)
        SENT(16, "hostIPs", MESSAGES(PodIP))
        SENT(17, "observedGeneration", NUMBER)
END(PodStatus)

MESSAGE(Pod)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ(2, "spec", MESSAGE_OF(PodSpec))
        READ(3, "status", MESSAGE_OF(PodStatus))
END(Pod)

/* -- PodDisruptionBudget ------------------------------------------------------------------------------ */

MESSAGE(PodDisruptionBudgetSpec)
        SENT(1, "minAvailable", NUMBER_OR_TEXT)
        READ(2, "selector", MESSAGE_POINTER(LabelSelector))
        SENT(3, "maxUnavailable", NUMBER_OR_TEXT)
        READ(4, "unhealthyPodEvictionPolicy", TEXT_POINTER)
END(PodDisruptionBudgetSpec)

MESSAGE(PodDisruptionBudgetStatus)
        READ(1, "observedGeneration", NUMBER)
        SENT(2, "disruptedPods", TIME_MAP)
        READ(3, "disruptionsAllowed", NUMBER)
        READ(4, "currentHealthy", NUMBER)
        READ(5, "desiredHealthy", NUMBER)
        READ(6, "expectedPods", NUMBER)
        READ(7, "conditions", MESSAGES(Condition))
END(PodDisruptionBudgetStatus)

MESSAGE(PodDisruptionBudget)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ(2, "spec", MESSAGE_OF(PodDisruptionBudgetSpec))
        READ(3, "status", MESSAGE_OF(PodDisruptionBudgetStatus))
END(PodDisruptionBudget)

/* -- VolumeAttachment --------------------------------------------------------------------------------- */

MESSAGE(VolumeAttachmentSource)
        READ(1, "persistentVolumeName", TEXT_POINTER)
END(VolumeAttachmentSource)

MESSAGE(VolumeAttachmentSpec)
        SENT(1, "attacher", TEXT)
        READ(2, "source", MESSAGE_OF(VolumeAttachmentSource))
        READ(3, "nodeName", TEXT_KEPT)
END(VolumeAttachmentSpec)

MESSAGE(VolumeAttachmentStatus)
        READ(1, "attached", FLAG)
        SENT(2, "attachmentMetadata", TEXT_MAP)
END(VolumeAttachmentStatus)

MESSAGE(VolumeAttachment)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ(2, "spec", MESSAGE_OF(VolumeAttachmentSpec))
        READ(3, "status", MESSAGE_OF(VolumeAttachmentStatus))
END(VolumeAttachment)

/* -- Namespace, PersistentVolume, PersistentVolumeClaim ------------------------------------------------- */

MESSAGE(Namespace)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
END(Namespace)

MESSAGE(CSIPersistentVolumeSource)
        READ_SCHEDULED(1, "driver", TEXT_KEPT)
        READ_SCHEDULED(2, "volumeHandle", TEXT_KEPT)
END(CSIPersistentVolumeSource)

MESSAGE(PersistentVolumeSource)
        READ_SCHEDULED(22, "csi", MESSAGE_POINTER(CSIPersistentVolumeSource))
END(PersistentVolumeSource)

MESSAGE(VolumeNodeAffinity)
        READ_SCHEDULED(1, "required", MESSAGE_POINTER(NodeSelector))
END(VolumeNodeAffinity)

MESSAGE(PersistentVolumeSpec)
        SENT(1, "capacity", QUANTITY_MAP)
        READ_SCHEDULED(2, NULL, INLINE(PersistentVolumeSource))
        SENT(3, "accessModes", TEXTS)
        SENT(5, "persistentVolumeReclaimPolicy", TEXT)
        READ_SCHEDULED(6, "storageClassName", TEXT)
        SENT(8, "volumeMode", TEXT_POINTER)
        READ_SCHEDULED(9, "nodeAffinity", MESSAGE_POINTER(VolumeNodeAffinity))
END(PersistentVolumeSpec)

MESSAGE(PersistentVolume)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ_SCHEDULED(2, "spec", MESSAGE_OF(PersistentVolumeSpec))
END(PersistentVolume)

MESSAGE(PersistentVolumeClaim)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ_SCHEDULED(2, "spec", MESSAGE_OF(PersistentVolumeClaimSpec))
END(PersistentVolumeClaim)

/* -- StorageClass, CSINode ------------------------------------------------------------------------------ */

MESSAGE(TopologySelectorLabelRequirement)
        READ_SCHEDULED(1, "key", TEXT_KEPT)
        READ_SCHEDULED(2, "values", TEXTS)
END(TopologySelectorLabelRequirement)

MESSAGE(TopologySelectorTerm)
        READ_SCHEDULED(1, "matchLabelExpressions", MESSAGES(TopologySelectorLabelRequirement))
END(TopologySelectorTerm)

MESSAGE(StorageClass)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ_SCHEDULED(2, "provisioner", TEXT_KEPT)
        SENT(4, "reclaimPolicy", TEXT_POINTER)
        SENT(6, "allowVolumeExpansion", FLAG_POINTER)
        READ_SCHEDULED(7, "volumeBindingMode", TEXT_POINTER)
        READ_SCHEDULED(8, "allowedTopologies", MESSAGES(TopologySelectorTerm))
END(StorageClass)

MESSAGE(VolumeNodeResources)
        READ_SCHEDULED(1, "count", NUMBER_POINTER)
END(VolumeNodeResources)

MESSAGE(CSINodeDriver)
        READ_SCHEDULED(1, "name", TEXT_KEPT)
        SENT(2, "nodeID", TEXT_KEPT)
        SENT(3, "topologyKeys", TEXTS)
        READ_SCHEDULED(4, "allocatable", MESSAGE_POINTER(VolumeNodeResources))
END(CSINodeDriver)

MESSAGE(CSINodeSpec)
        READ_SCHEDULED(1, "drivers", MESSAGES(CSINodeDriver))
END(CSINodeSpec)

MESSAGE(CSINode)
        READ(1, "metadata", MESSAGE_OF(ObjectMeta))
        READ_SCHEDULED(2, "spec", MESSAGE_OF(CSINodeSpec))
END(CSINode)
