/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is a node as its pool says (spec.template)? Labels, taints and the annotations that are kept of a Node are compared as
 * they stand; requirements with the Node's labels, of which many values fit; terminationGracePeriod with what its claim was
 * made with. How a pool behaves (spec.disruption, weight) is no drift. Start-up taints are none either: they go.
 */

#include "disruption-scene.h"

/* Why it has drifted: "label a is 1, and spec.template says 2". Free it. *ret is NULL: it has not. 0 or -ENOMEM. */
int node_drift(const KubeScheduledNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool, char **ret);
