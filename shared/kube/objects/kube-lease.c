/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-kinds.h"

const KubeKind kube_lease_kind = {
        .group = "coordination.k8s.io",
        .version = "v1",
        .plural = "leases",
        .kind = "Lease",
        .namespaced = true,
        .size = sizeof(KubeObject),
};
