/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods that are left on a node, in a sentence: "default/a (BlockedByPDB web), kube-system/b (Terminating) and 3 more". Pure. */

#include "node-drain.h"
#include "string-util.h"

/* held: only those that do not go by themselves. How many there are; nothing is added where there is none. */
size_t pod_names_add(StrBuf *to, const DrainBlocker *b, size_t n, size_t at_most, bool held);
