/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How what the interruption queue told is written: on a NodeClaim, or on a Node that no NodePool wants, where [Queue] Unmanaged=drain
 * (ANNOTATION_ANNOUNCED). Pure.
 */

#include "kube-kinds.h"

/* Returns a merge patch of the whole list, which takes effect only on the object as it was read. NULL: out of memory. */
char *queue_told_list_body(const KubeObject *o, const AnnouncedList *l);
/* Returns a merge patch that takes effect only on the object as it was read. NULL: out of memory.
 * l: what stands there. state: as queue_brake_decide() returns it, or CALLED_OFF: AWS says that the notice is over. n: its Node, whose boot is
 * noted beside; NULL: none. */
char *queue_told_body(const KubeObject *o, const AnnouncedList *l, const Notice *notice, AnnouncedState state, const KubeNode *n);
