/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pods that were evicted or deleted, by anyone, and whose controllers have not made their successors yet. Until then nothing in the
 * API says that such a pod will need a place again, and a second removal could count on the room that the first one's pods will
 * take. Pure: what the pod watch brings in, with the time; pods out.
 *
 * A pod leaves when it begins to terminate, for then its controller makes the next one; one of a StatefulSet when it is gone. Of
 * the pods that its controller makes afterwards each one takes the place of one that left, the oldest first. Where the watch
 * was interrupted and a new list tells both, in whichever order, the API server's times say which came first, in whole seconds.
 *
 * All ReplicaSets of a Deployment are one controller here, for in a rolling update the pods of the new one take the places of the old one's: told
 * by the ReplicaSet's name, which is the Deployment's and the label pod-template-hash of its pods. These come first, where the update may surge, and
 * the old ones go once they are ready: they are remembered for VANISHED_USEC. Of its own ReplicaSet a pod has no successor that was made before.
 *
 * Not remembered are pods that come to an end by themselves (Succeeded, Failed), and those without a controller, static or of a
 * DaemonSet, which nobody makes elsewhere. A controller answers within seconds. One that scales down answers never: after
 * VANISHED_USEC nothing is awaited any more.
 */

#include "kube-kinds.h"

#define VANISHED_USEC USEC_PER_MINUTE
/* A successor may be seen this long before the pod that it replaces is seen to leave; one of a Deployment's other ReplicaSet for VANISHED_USEC. */
#define VANISHED_EARLY_USEC (10 * USEC_PER_SEC)
/* As many are remembered, and as many that came early: the oldest is forgotten. */
#define VANISHED_MAX 1000u

typedef struct VanishedPods VanishedPods;

int vanished_pods_new(VanishedPods **ret);
VanishedPods *vanished_pods_free(VanishedPods *v);
DEFINE_FREEP(VanishedPods, vanished_pods_free);

/* A pod came (old NULL), changed, or went (new NULL). Without memory for it, it is forgotten as one too many is. */
void vanished_pods_see(VanishedPods *v, const KubePod *old, const KubePod *new, usec_t now_usec);
/* Pods may have come and gone unseen until now: before the first list, or between a watch and the list that followed it. */
void vanished_pods_note_gap(VanishedPods *v, usec_t now_usec);
/* What is over is forgotten. */
void vanished_pods_expire(VanishedPods *v, usec_t now_usec);
/* Those whose successors are awaited, the oldest first; each as it was last. *it: begins as 0. Nothing may be seen meanwhile. */
bool vanished_pods_iterate(const VanishedPods *v, const ListNode **it, const KubePod **ret);
size_t vanished_pods_size(const VanishedPods *v);
/* One was forgotten whose time is not over, or may have left unseen. */
bool vanished_pods_are_incomplete(const VanishedPods *v);
/* Until then, if nothing else is forgotten; 0: they are complete. */
usec_t vanished_pods_incomplete_until(const VanishedPods *v);
