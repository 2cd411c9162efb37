/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What journal and Events say of a pod that the coordinator's drain of its node has to do with, whatever the node is drained for. */

#include "node-drain.h"
#include "termination-context.h"

/* It is not evicted now, and why. no_deadline: a sentence that stands in the place of the deadline's, or NULL. The words after "waits
 * for", for the receiver of notifications; to be freed; NULL on ENOMEM. */
char *pod_voice_blocked(const TerminationContext *c, const EventObject *node, const KubePod *pod, const DrainBlocker *b,
                        usec_t deadline_usec, const char *no_deadline);
/* Thousands at once are not told one by one: each has its DisruptionTarget condition. deleted: for the deletion of its node, or else
 * for what was announced of the machine. */
void pod_voice_evicted(const TerminationContext *c, const KubePod *pod, const char *node, bool deleted);
/* Warns that the pod comes back onto the cordoned node, and is left to the end of the machine. */
void pod_voice_stays(const TerminationContext *c, const EventObject *node, const KubePod *pod);
/* Warns that the pod is left alone, though it may be no static pod (pod_static_doubt()). */
void pod_voice_left_alone(const TerminationContext *c, const EventObject *node, const KubePod *pod);
/* It was deleted for a deadline, its PodDisruptionBudget not asked. */
void pod_voice_deleted(const TerminationContext *c, const EventObject *node, const KubePod *pod, usec_t deadline_usec, bool is_heard);
