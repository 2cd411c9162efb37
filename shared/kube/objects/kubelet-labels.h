/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Finds labels that a kubelet may set on its own Node. With such a label, any kubelet can put its Node into
 * a NodeDisruptionBudget that selects by it. Pure. The rule is that of the admission plugin NodeRestriction
 * (plugin/pkg/admission/noderestriction) and of k8s.io/kubelet/pkg/apis/well_known_labels.go.
 */

#include "selector.h"

/* Returns true if NodeRestriction refuses a kubelet that sets, changes or removes this label of its Node.
 * False for vesper.sh/nodepool, too: the coordinator sets it, and nothing keeps a kubelet from doing so. */
bool label_key_is_protected_from_kubelets(const char *key);

/* Sets *ret to the labels that s has requirements about and that a kubelet may set, the first of them if
 * there are many: "pool, zone and 3 more". NULL: there are none. The same selector always gives the same
 * text. Free *ret. 0 or -ENOMEM. */
int selector_kubelet_labels(const Selector *s, char **ret);
