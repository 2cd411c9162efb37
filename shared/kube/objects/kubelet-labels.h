/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which labels of its own Node a kubelet cannot set: a NodeDisruptionBudget that selects by any other can be
 * joined by the kubelet of a node that nobody meant. Pure. The rule is that of the admission plugin
 * NodeRestriction (plugin/pkg/admission/noderestriction) and of
 * k8s.io/kubelet/pkg/apis/well_known_labels.go.
 */

#include "selector.h"

/* Returns true if NodeRestriction refuses a kubelet that sets, changes or removes this label of its Node.
 * False for vesper.sh/nodepool, too: the coordinator sets it, and nothing keeps a kubelet from doing so. */
bool label_key_is_protected_from_kubelets(const char *key);

/* Names the labels that s has requirements about and that a kubelet may set, some of them if there are
 * many: "pool, zone and 3 more". *ret NULL: there are none. The same selector always gives the same text.
 * Free it. 0 or -ENOMEM. */
int selector_kubelet_labels(const Selector *s, char **ret);
