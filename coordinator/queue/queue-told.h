/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How what the interruption queue told is written: on a NodeClaim, or on a Node that no NodePool wants, where [Queue] Unmanaged=drain
 * (ANNOTATION_ANNOUNCED). Pure.
 */

#include "kube-kinds.h"

/* Returns a merge patch that takes effect only on the object as it was read. NULL: out of memory.
 * l: what stands there. n: its Node, whose boot is noted beside; NULL: none. called_off: AWS says that the notice is over. */
char *queue_told_body(const KubeObject *o, const AnnouncedList *l, const Notice *notice, bool called_off, const KubeNode *n);
