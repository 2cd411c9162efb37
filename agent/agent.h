/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesper-agent: sees the end of its own node coming, and moves the node's work away in time, alone if it
 * must.
 *
 *      notice/ --Notice--> policy.c --plan--> reflex.c --evictions--> API server <---+
 *                                                |---> intent-log.c                  |
 *                                                +---> node/: marks, conditions, Events
 *
 * agent.c ties them together, and shutdown.c with logind and PID 1: the sources of notices (notices.h), one informer of the own Node, one of
 * the own pods, and one reflex at a time, whose deadline a second notice can only bring nearer. Everything it touches comes in by the Env.
 */

#include "agent-config.h"
#include "env.h"
#include "http-message.h"
#include "kube-client.h"
#include "wakeup.h"

typedef struct Agent Agent;

/* auth and client are made by the caller (main, or a simulation) and outlive the agent; so does config. */
int agent_new(Env *env, const AgentConfig *config, KubeClient *client, Agent **ret);
/* Stops without shutdown actions: nothing is un-done, nothing is sent ("kill" of a simulation; a plain stop
 * of the unit). */
Agent *agent_free(Agent *a);
DEFINE_FREEP(Agent, agent_free);
/* Starts the source and the informers. MESSAGE_READY follows when the own Node has been seen. */
int agent_start(Agent *a);

/* Reloadable values of config have changed. */
void agent_reconfigured(Agent *a);
/* Files that config names are to be read again. */
void agent_read_files(Agent *a);

/* Asked to end (SIGTERM). fn is called when the process is to end: soon, unless the machine shuts down; then when its
 * node is drained, or its time is up (shutdown.h). Without a D-Bus: inside. */
typedef void (*agent_stopped_t)(void *userdata);
void agent_ask_stop(Agent *a, agent_stopped_t fn, void *userdata);
/* What a process that ends now leaves behind, for its last line: static, without a full stop. */
const char *agent_left(const Agent *a);

/* Answers requests on [Metrics] Listen=: /metrics (Prometheus text) and /healthz. An http_handler_t. */
void agent_handle_metrics(HttpExchange *x, void *agent);

/* For tests and STATUS=: the present phase ("Idle", "Draining", ...) and the pods still to go. */
const char *agent_phase(const Agent *a);
size_t agent_pods_left(const Agent *a);
/* Reports all unfinished work of this process (wakeup.h). */
void agent_next_wakeup(const Agent *a, Wakeups *w);
