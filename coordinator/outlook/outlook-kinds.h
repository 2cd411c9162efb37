/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Watches of the kinds that only scheduling reads: PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes, and
 * Namespaces, of which selectors ask the labels. Each is known, or it is not: a cluster may not let the coordinator read
 * them, and then pods that need them are judged unmovable. That is said once, with the permission that is missing.
 */

#include "kube-client.h"
#include "snapshot.h"

typedef struct OutlookKinds OutlookKinds;

/* changed(): something that a snapshot would hold is another. All borrowed. -ENOMEM. */
int outlook_kinds_new(KubeClient *c, void (*changed)(void *userdata), void *userdata, OutlookKinds **ret);
OutlookKinds *outlook_kinds_free(OutlookKinds *k);
DEFINE_FREEP(OutlookKinds, outlook_kinds_free);

/* Is it settled of each kind whether it is known? False: a list is under way, or a watch was lost a moment ago: at
 * *ret_at_usec (loop_now()) it is, if not before. */
bool outlook_kinds_settled(const OutlookKinds *k, usec_t *ret_at_usec);
/* All objects of the kinds that are known, once that is settled; of the others it is logged, once, why they are not. -ENOMEM. */
int outlook_kinds_put(OutlookKinds *k, Snapshot *s);
