/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-resource.h"

#include "string-util.h"

#define CORE "", "v1"
#define APPS "apps", "v1"
#define VESPER "vesper.sh", "v1alpha1"

static const FakeResource table[_FAKE_RESOURCE_MAX] = {
        [FAKE_NODES] = { FAKE_NODES, CORE, "nodes", "Node", .has_status = true, .unconditional = true },
        [FAKE_PODS] = { FAKE_PODS, CORE, "pods", "Pod", .namespaced = true, .has_status = true,
                        .has_generation = true, .unconditional = true, .delete_returns_object = true },
        [FAKE_NAMESPACES] = { FAKE_NAMESPACES, CORE, "namespaces", "Namespace", .has_status = true,
                              .unconditional = true, .delete_returns_object = true },
        [FAKE_EVENTS] = { FAKE_EVENTS, CORE, "events", "Event", .namespaced = true, .unconditional = true,
                          .create_on_put = true },
        [FAKE_PVS] = { FAKE_PVS, CORE, "persistentvolumes", "PersistentVolume", .has_status = true,
                       .unconditional = true, .delete_returns_object = true },
        [FAKE_PVCS] = { FAKE_PVCS, CORE, "persistentvolumeclaims", "PersistentVolumeClaim",
                        .namespaced = true, .has_status = true, .unconditional = true,
                        .delete_returns_object = true },
        [FAKE_PDBS] = { FAKE_PDBS, "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget",
                        .namespaced = true, .has_status = true, .has_generation = true },
        [FAKE_REPLICASETS] = { FAKE_REPLICASETS, APPS, "replicasets", "ReplicaSet", .namespaced = true,
                               .has_status = true, .has_generation = true, .unconditional = true },
        [FAKE_DEPLOYMENTS] = { FAKE_DEPLOYMENTS, APPS, "deployments", "Deployment", .namespaced = true,
                               .has_status = true, .has_generation = true, .unconditional = true },
        [FAKE_DAEMONSETS] = { FAKE_DAEMONSETS, APPS, "daemonsets", "DaemonSet", .namespaced = true,
                              .has_status = true, .has_generation = true, .unconditional = true },
        [FAKE_STATEFULSETS] = { FAKE_STATEFULSETS, APPS, "statefulsets", "StatefulSet", .namespaced = true,
                                .has_status = true, .has_generation = true, .unconditional = true },
        [FAKE_LEASES] = { FAKE_LEASES, "coordination.k8s.io", "v1", "leases", "Lease", .namespaced = true,
                          .create_on_put = true },
        [FAKE_VOLUMEATTACHMENTS] = { FAKE_VOLUMEATTACHMENTS, "storage.k8s.io", "v1", "volumeattachments",
                                     "VolumeAttachment", .has_status = true, .delete_returns_object = true },
        [FAKE_NODEPOOLS] = { FAKE_NODEPOOLS, VESPER, "nodepools", "NodePool", .custom = true,
                             .has_status = true, .has_generation = true },
        [FAKE_NODECLAIMS] = { FAKE_NODECLAIMS, VESPER, "nodeclaims", "NodeClaim", .custom = true,
                              .has_status = true, .has_generation = true },
        [FAKE_NDBS] = { FAKE_NDBS, VESPER, "nodedisruptionbudgets", "NodeDisruptionBudget", .custom = true,
                        .has_status = true, .has_generation = true },
        [FAKE_SECRETS] = { FAKE_SECRETS, CORE, "secrets", "Secret", .namespaced = true, .unconditional = true },
        [FAKE_WEBHOOKS] = { FAKE_WEBHOOKS, "admissionregistration.k8s.io", "v1",
                            "validatingwebhookconfigurations", "ValidatingWebhookConfiguration",
                            .has_generation = true },
        [FAKE_STORAGECLASSES] = { FAKE_STORAGECLASSES, "storage.k8s.io", "v1", "storageclasses", "StorageClass",
                                  .unconditional = true, .delete_returns_object = true },
        [FAKE_CSINODES] = { FAKE_CSINODES, "storage.k8s.io", "v1", "csinodes", "CSINode",
                            .delete_returns_object = true },
};

static const char *const api_versions[_FAKE_RESOURCE_MAX] = {
        [FAKE_NODES] = "v1",
        [FAKE_PODS] = "v1",
        [FAKE_NAMESPACES] = "v1",
        [FAKE_EVENTS] = "v1",
        [FAKE_PVS] = "v1",
        [FAKE_PVCS] = "v1",
        [FAKE_PDBS] = "policy/v1",
        [FAKE_REPLICASETS] = "apps/v1",
        [FAKE_DEPLOYMENTS] = "apps/v1",
        [FAKE_DAEMONSETS] = "apps/v1",
        [FAKE_STATEFULSETS] = "apps/v1",
        [FAKE_LEASES] = "coordination.k8s.io/v1",
        [FAKE_VOLUMEATTACHMENTS] = "storage.k8s.io/v1",
        [FAKE_NODEPOOLS] = "vesper.sh/v1alpha1",
        [FAKE_NODECLAIMS] = "vesper.sh/v1alpha1",
        [FAKE_NDBS] = "vesper.sh/v1alpha1",
        [FAKE_SECRETS] = "v1",
        [FAKE_WEBHOOKS] = "admissionregistration.k8s.io/v1",
        [FAKE_STORAGECLASSES] = "storage.k8s.io/v1",
        [FAKE_CSINODES] = "storage.k8s.io/v1",
};

static const char *const qualified[_FAKE_RESOURCE_MAX][2] = {
        [FAKE_NODES] = { "nodes", "Node" },
        [FAKE_PODS] = { "pods", "Pod" },
        [FAKE_NAMESPACES] = { "namespaces", "Namespace" },
        [FAKE_EVENTS] = { "events", "Event" },
        [FAKE_PVS] = { "persistentvolumes", "PersistentVolume" },
        [FAKE_PVCS] = { "persistentvolumeclaims", "PersistentVolumeClaim" },
        [FAKE_PDBS] = { "poddisruptionbudgets.policy", "PodDisruptionBudget.policy" },
        [FAKE_REPLICASETS] = { "replicasets.apps", "ReplicaSet.apps" },
        [FAKE_DEPLOYMENTS] = { "deployments.apps", "Deployment.apps" },
        [FAKE_DAEMONSETS] = { "daemonsets.apps", "DaemonSet.apps" },
        [FAKE_STATEFULSETS] = { "statefulsets.apps", "StatefulSet.apps" },
        [FAKE_LEASES] = { "leases.coordination.k8s.io", "Lease.coordination.k8s.io" },
        [FAKE_VOLUMEATTACHMENTS] = { "volumeattachments.storage.k8s.io", "VolumeAttachment.storage.k8s.io" },
        [FAKE_NODEPOOLS] = { "nodepools.vesper.sh", "NodePool.vesper.sh" },
        [FAKE_NODECLAIMS] = { "nodeclaims.vesper.sh", "NodeClaim.vesper.sh" },
        [FAKE_NDBS] = { "nodedisruptionbudgets.vesper.sh", "NodeDisruptionBudget.vesper.sh" },
        [FAKE_SECRETS] = { "secrets", "Secret" },
        [FAKE_WEBHOOKS] = { "validatingwebhookconfigurations.admissionregistration.k8s.io",
                            "ValidatingWebhookConfiguration.admissionregistration.k8s.io" },
        [FAKE_STORAGECLASSES] = { "storageclasses.storage.k8s.io", "StorageClass.storage.k8s.io" },
        [FAKE_CSINODES] = { "csinodes.storage.k8s.io", "CSINode.storage.k8s.io" },
};

const FakeResource *fake_resource(FakeResourceId id) {
        assert(id >= 0 && id < _FAKE_RESOURCE_MAX);
        return &table[id];
}

const FakeResource *fake_resource_find(const char *group, const char *version, const char *plural) {
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (streq(table[i].group, group) && streq(table[i].version, version) &&
                    streq(table[i].plural, plural))
                        return &table[i];
        return NULL;
}

const FakeResource *fake_resource_of_kind(const char *api_version, const char *kind) {
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (streq_ptr(api_versions[i], api_version) && streq_ptr(table[i].kind, kind))
                        return &table[i];
        return NULL;
}

const char *fake_resource_api_version(const FakeResource *r) {
        return api_versions[r->id];
}

const char *fake_resource_qualified(const FakeResource *r) {
        return qualified[r->id][0];
}

const char *fake_resource_qualified_kind(const FakeResource *r) {
        return qualified[r->id][1];
}
