/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which volumes of a drained node are mounted by pods that stay there until the machine ends (DaemonSet and
 * static pods; those on a dead kubelet): they never detach, and the end of the machine does not wait for
 * them.
 *
 * Asked for when volumes are still attached to a drained node, and not before: the view keeps no pod's
 * volumes. One list of the node's pods says which stay and which PersistentVolumeClaims they mount, by name
 * or for an ephemeral volume as POD-VOLUME; one GET of each says its PersistentVolume, which a
 * VolumeAttachment names. What cannot be read is not known to stay, and so is waited for: a claim that is
 * forbidden, gone or not bound; an inline volume, which has no PersistentVolume. Trouble that may pass is
 * asked about again, for as long as this object lives.
 */

#include "drain-plan.h"
#include "kube-client.h"

typedef struct StayingVolumes StayingVolumes;

/* changed: more is known than before. Client borrowed, rules copied. */
int staying_volumes_new(KubeClient *c, KubeRank rank, const char *node, const DrainRules *rules,
                        void (*changed)(void *userdata), void *userdata, StayingVolumes **ret);
StayingVolumes *staying_volumes_free(StayingVolumes *s);
DEFINE_FREEP(StayingVolumes, staying_volumes_free);

/* Is a pod that stays known to mount this PersistentVolume? NULL: an inline volume. */
bool staying_volumes_has(const StayingVolumes *s, const char *pv);
