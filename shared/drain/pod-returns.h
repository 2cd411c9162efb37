/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pods that come back onto a cordoned node. A cordon keeps pods away that the scheduler places. It does not keep away a pod whose
 * template names the node (spec.nodeName), or a pod that tolerates the cordon: its controller makes it again as soon as it is
 * evicted, for ever.
 *
 * This object counts, for one node and each controller, the rounds in which the pods of that controller were ended and came back. A
 * round is as many pods as there were of them at once. Pods without a controller count together with all others of their namespace.
 * In at most POD_ROUNDS_MAX rounds pods are evicted. After that they count as daemon pods: nobody evicts them, nobody waits for them,
 * and they run until the machine ends.
 *
 * The count lives in memory: after a restart it begins anew. Whoever drains a node owns one, and lends it to the DrainRules.
 */

#include "kube-kinds.h"

/* Rounds in which the pods of one controller are evicted from one node. */
#define POD_ROUNDS_MAX 3u

typedef struct PodReturns PodReturns;

int pod_returns_new(PodReturns **ret);
PodReturns *pod_returns_free(PodReturns *r);
DEFINE_FREEP(PodReturns, pod_returns_free);

/* Begins to count anew: another drain begins. */
void pod_returns_clear(PodReturns *r);
/* Takes note of the pods of the node that a drain has to end: begin, then each pod, then end. A pod that was there and is on its way out, or
 * gone, was ended, whoever did that. What comes is of the round of the moment in which that look ends. */
void pod_returns_begin(PodReturns *r);
void pod_returns_see(PodReturns *r, const KubePod *pod);
void pod_returns_end(PodReturns *r);
/* An eviction or a delete of the pod was accepted: before a look shows it, or after that. */
void pod_returns_note_ended(PodReturns *r, const KubePod *pod);
/* Returns true if the pod has come back too often: it stays. r may be NULL: nothing is known. */
bool pod_returns_stays(const PodReturns *r, const KubePod *pod);
/* Returns true once for each controller: its pod stays from now on, and people are to be warned. */
bool pod_returns_should_warn(PodReturns *r, const KubePod *pod);

/* The warning: names pod, controller and node. NULL on ENOMEM. */
char *pod_returns_format(const KubePod *pod, const char *node);
