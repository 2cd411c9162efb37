/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tests of whole agents stand on: one agent, its machine (metadata, disk, boot, bus, links) and a fake
 * cluster, on one virtual time. The agent can die and start again, the machine can be started anew.
 */

#include "agent.h"
#include "fake-client.h"
#include "fake-imds.h"
#include "fake-machine.h"
#include "fake-power.h"
#include "log.h"

#define RIG_NODE "n1"
#define RIG_USER "CN=system:node:" RIG_NODE ",O=system:nodes"
#define RIG_INSTANCE "i-0123456789abcdef0"

typedef enum RigDeath { RIG_DEATH_NONE, RIG_DEATH_BEFORE, RIG_DEATH_AFTER } RigDeath;

typedef struct AgentRig {
        FakeWorld world;
        FakeCluster *cluster;
        FakeImds *imds;
        http_handler_t metadata; /* in place of imds, with its userdata; NULL: imds. Before the start */
        void *metadata_userdata;
        AgentConfig config;
        char boot_id[33];
        unsigned boots;

        /* /run: one record */
        StateStore store;
        char *record;
        size_t n_writes;
        size_t die_at_write; /* counted over all lives; 0: never */
        RigDeath death;
        int disk_error; /* of each write; 0: fine */
        bool disk_unreadable; /* they fail */

        FakePower *power; /* logind and PID 1 */
        Bus *bus;         /* of the process */
        bool stopped;     /* it has ended by itself, asked to */
        const char *left; /* what it said then */
        bool no_bus;      /* it is started without one */
        FakeRunningPods running_pods;
        bool serves_running_pods; /* the kubelet does, from the agent's start on */
        unsigned kubelet_port;    /* port of its server; 0: 10250 */
        FakeNetlink netlink;

        /* the process; NULL while it does not run */
        Loop *loop;
        Random *random;
        Log *log;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        Env env;
        Agent *agent;
        bool dead; /* as good as: nothing that it does has an effect any more */
        unsigned lives;
        usec_t request_delay_usec; /* of each request of the agent */
        /* Delay of the answer to each PATCH of the agent: the watch is faster. */
        usec_t patch_reply_delay_usec;
        bool no_route;             /* nor is there a way to the API server */
        const char *lost;          /* requests whose URL contains it never arrive; NULL: all do */

        StrBuf lines;   /* what was logged, "LEVEL MESSAGE\n" */
        StrBuf events;  /* the same as "MESSAGE_ID MESSAGE\n", the id "-" where there is none */
        StrBuf patches; /* bodies that were sent, "PATH BODY\n" */
        char cordon_delay[32];
        char status[256]; /* last STATUS= that the service manager got */
        StrBuf statuses;  /* every STATUS= so far, a line each */
        bool ready;
} AgentRig;

/* Nodes n1 (the agent's) and n2; the agent does not run yet. */
AgentRig *agent_rig_new(void);
AgentRig *agent_rig_free(AgentRig *r);
DEFINE_FREEP(AgentRig, agent_rig_free);

void agent_rig_start(AgentRig *r);
/* The same, where starting may fail: 0, or how it did; then it does not run. */
int agent_rig_try_start(AgentRig *r);
void agent_rig_kill(AgentRig *r);
/* SIGTERM. */
void agent_rig_stop(AgentRig *r);
/* Another boot; the Node gets its id, as the kubelet would report it. */
void agent_rig_reboot(AgentRig *r);
/* Lets time pass. True: the agent died at the write that was chosen, and has been buried. */
bool agent_rig_run(AgentRig *r, usec_t usec);

/* n pods of that app on n1. */
void agent_rig_add_pods(AgentRig *r, const char *app, unsigned n);
/* Those on n1 that are there, terminating or not. */
size_t agent_rig_n_pods(AgentRig *r);
/* A spot notice that leaves so much time. */
void agent_rig_notice(AgentRig *r, usec_t lead_usec);

const cJSON *agent_rig_node(AgentRig *r);
/* An annotation, or NULL. */
const char *agent_rig_annotation(AgentRig *r, const char *key);
/* Of vesper.sh/interruption; free it. NULL: no annotation. */
char *agent_rig_phase(AgentRig *r);
bool agent_rig_unschedulable(AgentRig *r);
/* "True", "False", "Unknown"; NULL: absent. */
const char *agent_rig_condition(AgentRig *r, const char *type);

/* What the agent has written but for evictions, deletes and Events: "PATCH /api/v1/nodes/n1 200; ..."; free
 * it. */
char *agent_rig_writes(AgentRig *r);
/* Is there an Event with that reason on an object of that kind? */
bool agent_rig_has_event(AgentRig *r, const char *kind, const char *reason);
bool agent_rig_said(AgentRig *r, const char *part);
/* Returns the sum of the metric's values. family: its name, or name{label="value"}. */
double agent_rig_metric(AgentRig *r, const char *family);
