/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resources that the fake serves, and how kube-apiserver's strategies treat each. */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

typedef enum FakeResourceId {
        FAKE_NODES,
        FAKE_PODS,
        FAKE_NAMESPACES,
        FAKE_EVENTS,
        FAKE_PVS,
        FAKE_PVCS,
        FAKE_PDBS,
        FAKE_REPLICASETS,
        FAKE_DEPLOYMENTS,
        FAKE_DAEMONSETS,
        FAKE_STATEFULSETS,
        FAKE_LEASES,
        FAKE_VOLUMEATTACHMENTS,
        FAKE_NODEPOOLS,
        FAKE_NODECLAIMS,
        FAKE_NDBS,
        FAKE_SECRETS,
        FAKE_WEBHOOKS, /* ValidatingWebhookConfiguration */
        FAKE_STORAGECLASSES,
        FAKE_CSINODES,
        _FAKE_RESOURCE_MAX,
        _FAKE_RESOURCE_INVALID = -EINVAL,
} FakeResourceId;

typedef struct FakeResource {
        FakeResourceId id;
        const char *group; /* "" for core */
        const char *version;
        const char *plural;
        const char *kind;
        bool namespaced;
        bool custom; /* a CRD: no strategic merge patch, `kind` required in bodies, kind and apiVersion in
                        list items */
        bool has_status;     /* subresource; writes to the object leave the status alone */
        bool has_generation; /* metadata.generation: 1 at creation, counts changes of the spec */
        bool unconditional;  /* PUT without resourceVersion is fine */
        bool create_on_put;
        bool delete_returns_object; /* else a Status */
} FakeResource;

const FakeResource *fake_resource(FakeResourceId id);
/* By the parts of a path; NULL if there is none. */
const FakeResource *fake_resource_find(const char *group, const char *version, const char *plural);
/* By the apiVersion and kind of an object. */
const FakeResource *fake_resource_of_kind(const char *api_version, const char *kind);
/* "v1", "policy/v1" */
const char *fake_resource_api_version(const FakeResource *r);
/* "pods", "poddisruptionbudgets.policy": how messages name it. */
const char *fake_resource_qualified(const FakeResource *r);
/* "Pod", "PodDisruptionBudget.policy" */
const char *fake_resource_qualified_kind(const FakeResource *r);
