/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Warnings of a deadline: people who look after a pod that T will end hear of that beforehand, in an Event on the pod,
 * once for each pod and T. The coordinator's own drain says when a pod is to be warned of (NodeDrainHandler.on_due).
 * While the node's agent drains, the evictions are the agent's but T is still ours: then the pods in view are gone
 * through here, at the same times. Too many at once wait (TerminationContext.warnings).
 */

#include "termination-context.h"

typedef struct PodWarnings PodWarnings;

/* Copies the name. is_heard: the node is drained for what the interruption queue told, and nobody removes it (heard-drain.h). */
int pod_warnings_new(const TerminationContext *context, const char *node, bool is_heard, PodWarnings **ret);
PodWarnings *pod_warnings_free(PodWarnings *w);
DEFINE_FREEP(PodWarnings, pod_warnings_free);

/* T (deadline_usec) ends this pod at at_usec; both of the wall clock. False: too many are told now, ask again. */
bool pod_warnings_tell(PodWarnings *w, const KubePod *pod, usec_t at_usec, usec_t deadline_usec);
/* The agent drains the node by these rules. Returns when to call again (loop_now()); USEC_INFINITY: when something
 * changes. */
usec_t pod_warnings_beside_agent(PodWarnings *w, const DrainRules *rules);
/* It does so no more. */
void pod_warnings_agent_ended(PodWarnings *w);
