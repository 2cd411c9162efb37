/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * vesper-agent --drain, --reboot, --cancel-drain and --cancel-reboot: asks the agent of this machine by D-Bus (agent-face.h), as
 * vesper-drain.service and vesper-reboot.service do, and waits for what came of it.
 *
 *      ASKING --taken--> WATCHING --DrainState, RebootState--> done
 *        |                   |
 *        +--not there, or it has not seen its Node: once a second, for a minute; then it fails
 *
 * It knows nothing of before: it looks at what stands now, at each of the agent's signals and each second. So it may begin
 * late, or be started anew, and so may the agent. An agent that is away for a minute is given up; what was asked for stands.
 */

#include "env.h"

typedef struct AgentClient AgentClient;

typedef enum AgentVerb {
        AGENT_VERB_DRAIN,         /* done when the node is drained */
        AGENT_VERB_REBOOT,        /* ... when the machine goes down */
        AGENT_VERB_CANCEL_DRAIN,  /* ... when it is taken back; while the machine goes down there is nothing to undo */
        AGENT_VERB_CANCEL_REBOOT, /* the same */
        _AGENT_VERB_MAX,
} AgentVerb;

typedef struct AgentClientHandler {
        /* How far it is, for people: each time that changes. It has gone to Env's notify() as STATUS=, too. May be NULL. */
        void (*on_status)(const char *text, void *userdata);
        /* Once: 0; -ECANCELED: it does not stand any more, somebody undid it, or it was not granted; else what went wrong. Logged
         * with what to do. May free the client. */
        void (*on_done)(int result, void *userdata);
        void *userdata;
} AgentClientHandler;

/* env: loop, log, bus, and notify where somebody listens. force: in spite of do-not-evict pods. */
int agent_client_new(Env *env, AgentVerb verb, bool force, const AgentClientHandler *h, AgentClient **ret);
/* What was asked for stands. */
AgentClient *agent_client_free(AgentClient *c);
DEFINE_FREEP(AgentClient, agent_client_free);

/* On a loop and the system bus of its own, until it is done: progress on standard output where that is a terminal.
 * 0 or a negative errno, logged. */
int agent_client_run(Log *l, AgentVerb verb, bool force);
