/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * node-voice.c: what the agent says to people: journal lines with their fields and message ids, Events on
 * the Node and its pods, the STATUS= of the unit, and messages to the receiver of [Notify]. Nothing waits for any of it.
 */

#include "event-recorder.h"
#include "kube-kinds.h"
#include "node-drain.h"
#include "notify-sender.h"
#include "policy.h"
#include "power.h"

typedef struct NodeVoice NodeVoice;

int node_voice_new(KubeClient *c, const char *node, NodeVoice **ret);
NodeVoice *node_voice_free(NodeVoice *v);
DEFINE_FREEP(NodeVoice, node_voice_free);

/* Borrowed; NULL, as at first: there is none. */
void node_voice_set_sender(NodeVoice *v, NotifySender *s);
/* Whose Events: the uid of the Node as it is now. */
void node_voice_set_node(NodeVoice *v, const KubeNode *n);
/* The interruption that the next lines are about; borrowed until it is replaced. NULL: none. */
void node_voice_set_notice(NodeVoice *v, const Notice *n);
void node_voice_set_phase(NodeVoice *v, const char *phase); /* static; field PHASE= and STATUS= */
void node_voice_set_status(NodeVoice *v, size_t pods_left);

/* What goes on between agent and API server. */
void node_voice_ready(NodeVoice *v);
void node_voice_api_lost(NodeVoice *v, const ApiError *e);
void node_voice_api_back(NodeVoice *v);
void node_voice_kubelet_unhealthy(NodeVoice *v, const char *why, usec_t for_usec);
void node_voice_kubelet_healthy(NodeVoice *v, usec_t after_usec);
void node_voice_no_route(NodeVoice *v);
void node_voice_route_back(NodeVoice *v, usec_t after_usec);
void node_voice_source_failing(NodeVoice *v, const char *source, const char *why, unsigned looks);
/* name: what its metadata calls its machine. */
void node_voice_foreign_metadata(NodeVoice *v, const char *source, const char *name, const char *provider_id);
/* ... which is this machine, by its firmware. */
void node_voice_foreign_provider_id(NodeVoice *v, const char *name, const char *provider_id);
void node_voice_source_back(NodeVoice *v, const char *source);

/* The notice. */
void node_voice_notice_seen(NodeVoice *v, const Plan *plan);
void node_voice_notice_only(NodeVoice *v, const Notice *n, const char *why);
/* Reports a notice that the agent acts upon later, as [Policy] says. begin_usec: wall clock. may_be_early: the
 * agent asks for a slot to take the announced reboot before that time. */
void node_voice_notice_planned(NodeVoice *v, const Notice *n, usec_t begin_usec, bool may_be_early);
void node_voice_clock_was_set(NodeVoice *v, usec_t deadline_usec);
/* The notice in force is another one now, and the node was being taken out of service before. */
void node_voice_notice_took_over(NodeVoice *v);
/* The one before is over, and something else stands that the node is kept out of service for. */
void node_voice_falls_back(NodeVoice *v, const char *why);
void node_voice_notice_nearer(NodeVoice *v, usec_t deadline_usec);
void node_voice_resumed(NodeVoice *v);
/* why it is not acted upon again. */
void node_voice_notice_ignored(NodeVoice *v, const Notice *n, const char *why);

/* The drain. delay_usec: from the metadata's answer to the patch that left; USEC_INFINITY: not measured. */
void node_voice_cordoned(NodeVoice *v, usec_t delay_usec, bool claimed);
void node_voice_draining(NodeVoice *v, size_t n_pods, usec_t deadline_usec);
void node_voice_pod_evicted(NodeVoice *v, const KubePod *pod);
/* deadline_usec: USEC_INFINITY: none that would end it. */
void node_voice_pod_blocked(NodeVoice *v, const KubePod *pod, const DrainBlocker *b, usec_t deadline_usec);
/* Warns that the pod comes back onto the cordoned node, and is left to the end of the machine. */
void node_voice_pod_stays(NodeVoice *v, const KubePod *pod);
/* Warns that the drain leaves the pod alone, though it may be no static pod (pod_static_doubt()). */
void node_voice_pod_left_alone(NodeVoice *v, const KubePod *pod);
void node_voice_pod_deleted(NodeVoice *v, const KubePod *pod, usec_t deadline_usec);
void node_voice_volumes(NodeVoice *v, char *const *names);
void node_voice_volumes_given_up(NodeVoice *v, char *const *names);
void node_voice_drained(NodeVoice *v, usec_t took_usec);
void node_voice_expired(NodeVoice *v, const DrainBlocker *blockers, size_t n);

/* The end of it. */
void node_voice_cancelled(NodeVoice *v, const char *why);
void node_voice_overruled(NodeVoice *v);
void node_voice_left_over(NodeVoice *v, const char *why);
void node_voice_undone(NodeVoice *v, bool uncordoned);
void node_voice_ending(NodeVoice *v);

/* The machine's own shutdown. */
void node_voice_shutdown_limits(NodeVoice *v, const PowerLimits *l, const PowerBudget *b, bool refused,
                                bool kubelet_inhibits);
void node_voice_shutdown_began(NodeVoice *v, const Notice *n, usec_t budget_usec);
void node_voice_shutdown_alone(NodeVoice *v, const char *why);
/* drains: true if the agent drains at shutdown; pods left then are a warning. pods_left: SIZE_MAX if the number
 * is not known. */
void node_voice_shutdown_let_go(NodeVoice *v, const char *why, bool drains, size_t pods_left,
                                usec_t after_usec);
void node_voice_shutdown_cancelled(NodeVoice *v);
