/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What kube-scheduler reads of objects: kinds that begin as those of kube-kinds.h do and know more. For whoever asks where
 * pods would go; daemons that only drain read the smaller ones.
 */

#include "kube-kinds.h"

/*
 * Of a pod, all that decides which nodes may take it and that its siblings have in common, as one text of JSON in one
 * order. It is interned: pods of one owner share it, and two pods are the same to the scheduler, but for their
 * labels and volumes, iff the pointers are. Members, each left out if empty:
 *
 *      ns                            of the pod
 *      priority                      spec.priority
 *      scheduler                     spec.schedulerName, unless it is "default-scheduler"
 *      containers, init              arrays, of those containers that ask for something: {requests: spec...resources.requests,
 *                                    ports: those with a hostPort ({hostPort, hostIP, protocol}),
 *                                    always: true (init only: restartPolicy is Always, a sidecar)}. An init container
 *                                    that asks for nothing is left out; the order is kept
 *      podRequests                   spec.resources.requests
 *      overhead, nodeSelector, affinity, tolerations, topologySpreadConstraints    as in spec (tolerations without
 *                                    tolerationSeconds), with the members that kube-field-list.h knows
 *      unmodelled                    array of words, of what no simulation here understands: "resourceClaims",
 *                                    "schedulingGates" (of a pod that has no node), "podGroup" (a gang: label
 *                                    scheduling.x-k8s.io/pod-group or pod-group.scheduling.sigs.k8s.io, spec.workloadRef,
 *                                    spec.schedulingGroup), "disk" (a volume of kind gcePersistentDisk, awsElasticBlockStore,
 *                                    azureDisk, iscsi or rbd inside the pod)
 *
 * If the text exceeds DECODE_COPY_BYTES_MAX, the pod is object.invalid and the text lacks nodeSelector,
 * affinity, tolerations, topologySpreadConstraints and unmodelled; required anti-affinity becomes one term
 * without a key. If the other members alone exceed it, only ns of them is left.
 */
typedef struct KubeScheduledPod {
        KubePod pod;
        const char *scheduling; /* interned */
        PodClaim *claims;       /* PersistentVolumeClaims that it mounts */
        size_t n_claims;
        bool is_resizing;       /* in place: condition PodResizePending or PodResizeInProgress is True. It may hold more than
                                 * spec asks for, and how much is about to change */
        const char *nominated_node; /* interned: status.nominatedNodeName, the node that kube-scheduler has promised to a pod that is
                                 * not bound yet; NULL: none. Of a bound pod it says nothing */
        int64_t deletion_cost;  /* annotation controller.kubernetes.io/pod-deletion-cost; 0 if absent or unreadable */
} KubeScheduledPod;

extern const KubeKind kube_scheduled_pod_kind;

typedef struct KubeScheduledNode {
        KubeNode node;
        KeyValues allocatable; /* status.allocatable: resource and its quantity as text, sorted by resource */
        bool is_initialized;   /* Ready, and no startup taint: neither node.cloudprovider.kubernetes.io/uninitialized nor
                                * node.kubernetes.io/not-ready, .../unreachable, .../network-unavailable */
        const char *kubelet_version, *os_image; /* status.nodeInfo; interned; NULL: absent */
} KubeScheduledNode;

extern const KubeKind kube_scheduled_node_kind;

/* A PersistentVolume. */
typedef struct KubeVolume {
        KubeObject object;
        const char *storage_class;      /* interned; NULL: none */
        char *node_affinity;            /* spec.nodeAffinity.required as JSON; NULL: none */
        char *csi_driver, *csi_handle;  /* NULL: it is not a CSI volume */
} KubeVolume;

extern const KubeKind kube_volume_kind;

/* A PersistentVolumeClaim, with what scheduling reads besides the volume it is bound to. */
typedef struct KubeScheduledClaim {
        KubePersistentVolumeClaim claim;
        const char *storage_class; /* interned; NULL: none */
        bool one_pod_only;         /* accessModes has ReadWriteOncePod */
} KubeScheduledClaim;

extern const KubeKind kube_scheduled_claim_kind;

typedef struct KubeStorageClass {
        KubeObject object;
        const char *provisioner;  /* interned */
        bool waits_for_consumer;  /* volumeBindingMode is WaitForFirstConsumer */
        char *allowed_topologies; /* as JSON; NULL: none */
} KubeStorageClass;

extern const KubeKind kube_storage_class_kind;

typedef struct CsiDriverLimit {
        const char *driver; /* interned */
        int64_t volumes;    /* that may be attached to the node; -1: no limit is told */
} CsiDriverLimit;

/* A CSINode; it has the Node's name. */
typedef struct KubeCsiNode {
        KubeObject object;
        CsiDriverLimit *drivers;
        size_t n_drivers;
} KubeCsiNode;

extern const KubeKind kube_csi_node_kind;

/* A quantity of Kubernetes ("1500m", "2Gi", "1e3") in thousandths or in whole units: rounded up where somebody asks for
 * it, down where somebody has it. -EINVAL; -ERANGE past int64_t, or below zero. */
typedef enum QuantityRounding { QUANTITY_ROUND_UP, QUANTITY_ROUND_DOWN } QuantityRounding;
int quantity_parse(const char *s, bool in_thousandths, QuantityRounding rounding, int64_t *ret);
