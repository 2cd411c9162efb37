/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods that are left on a node, in a sentence: "default/a (BlockedByPDB web), kube-system/b (Terminating) and 3 more". Pure. */

#include "node-drain.h"
#include "string-util.h"

/* held: only those that do not go by themselves. How many there are; nothing is added where there is none. */
size_t pod_names_add(StrBuf *to, const DrainBlocker *b, size_t n, size_t at_most, bool held);

/* One of them, as slices of the text. */
typedef struct PodNamed {
        const char *ns, *name, *reason, *detail;
        size_t ns_size, name_size, reason_size, detail_size; /* of detail 0: none; of the others never */
} PodNamed;

/* Reads what pod_names_add() wrote: the pod at the beginning of *text, which is moved behind it. False: none is there. */
bool pod_names_take(const char **text, PodNamed *ret);
