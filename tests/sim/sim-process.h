/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A simulated process: an agent of one node, or a coordinator. It lives several lives, each with its own
 * Loop, Random, transport, Log and Env; name and /run (disk) outlive them. Killing frees the daemon without
 * shutdown actions; its transport is kept as a corpse, because what was sent may still arrive.
 */

#include "agent.h"
#include "coordinator.h"
#include "sqs-client.h"
#include "sim-state-store.h"
#include "sim-world.h"

#define SIM_CLOCK_TRUST_USEC (60 * USEC_PER_SEC)

typedef enum SimProcessKind { SIM_AGENT, SIM_COORDINATOR } SimProcessKind;

typedef struct SimLife {
        ListNode corpses;
        SimProcess *process;
        unsigned number; /* from 1 */
        char *identity;  /* coordinator: of its Lease */
        Loop *loop;
        Random *random;
        Log *log;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        StateStore *state;
        CloudRegistry cloud;
        ChildRunner *children; /* of a coordinator whose provider is a command */
        Env env;
        Agent *agent;
        Coordinator *coordinator;
        SqsClient *queue; /* NULL: it hears none */
        uint64_t n_steps, n_writes, n_requests;
        unsigned n_evictions; /* under way */
        unsigned term; /* coordinator: leaderships that it says to have lost, and with them all it knew */
        bool ready;    /* READY=1 was told */
        bool was_paused;
        usec_t paused_until_usec; /* as of the last time; 0: never */
        bool leads;               /* coordinator: it said so, and has not said that it is over */
        bool dying; /* killed when this step is over */
} SimLife;

/* When a life ends: in its n-th step, or in its n-th write to /run (each counts from 1; 0: never). */
typedef struct SimKill {
        uint64_t step, write;
        SimDiskFate fate;    /* of that write: one of SIM_DISK_DIE_* */
        usec_t restart_usec; /* so long after; USEC_INFINITY: never again */
} SimKill;

struct SimProcess {
        SimWorld *world;
        SimProcessKind kind;
        char *name;          /* in the trace: "agent-n0", "coordinator-a" */
        char *user;          /* at the API server */
        SimMachine *machine; /* of an agent */
        SimDisk *disk;
        SimLife *life; /* NULL: it does not run */
        unsigned n_lives;
        unsigned failing_writes; /* the next so many writes fail */
        int64_t clock_off_usec;   /* its wall clock is wrong by so much, in each of its lives */
        usec_t clock_ahead_usec;  /* at most, so far */
        usec_t clock_wrong_usec;  /* it was wrong last; 0: never */
        AgentConfig agent_config;
        CoordinatorConfig coordinator_config;
        Timer *restart;
        SimKill kill;
        usec_t asked_usec; /* time of the last check by sim_check_asleep() */
        usec_t cut_usec; /* until then answers to it were kept, or lost */
        uint64_t pause_step; /* in this step of its life it gets no CPU any more, for so long; 0: never */
        usec_t pause_usec;
};

/* Not started yet. machine: of an agent; index: of a coordinator. */
SimProcess *sim_process_new_agent(SimWorld *w, SimMachine *machine);
SimProcess *sim_process_new_coordinator(SimWorld *w, unsigned index);
SimProcess *sim_process_free(SimProcess *p);

void sim_process_start(SimProcess *p);
/* Not while one of its own callbacks runs. restart_usec: so long after; USEC_INFINITY: never. */
void sim_process_kill(SimProcess *p, usec_t restart_usec);
/* Counted from the start of the present life (or of the next one, if it does not run). Once. */
void sim_process_plan_kill(SimProcess *p, const SimKill *kill);
/* It gets no CPU for so long. */
void sim_process_pause(SimProcess *p, usec_t usec);
void sim_process_cut_streams(SimProcess *p);
/* ... once it has taken so many more steps: in the middle of what it does. */
void sim_process_plan_pause(SimProcess *p, uint64_t after_steps, usec_t usec);
/* For so long nothing comes from there; what the other side says is kept for it. */
void sim_process_hold(SimProcess *p, const char *origin, usec_t usec);
/* Its wall clock is set wrong by so much; 0: right. */
void sim_process_set_clock(SimProcess *p, int64_t off_usec);
/* Sets a text of the process's configuration, which counts from its next start. */
void sim_process_set_text(char **to, const char *text);
/* It is right, and has been for a minute: what was decided by another is over. */
bool sim_process_knows_time(const SimProcess *p);
/* By the world, after each step of its loop. */
void sim_process_after_step(SimProcess *p);
SimLife *sim_life_free(SimLife *l);
