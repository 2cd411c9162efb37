/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * sim/: whole agents and coordinators in one process, on the virtual clock, against the in-process fake
 * cluster. A seed draws everything: the same seed gives the same trace.
 *
 *      sim-world         nodes, pods, budgets, instances, time; what people and clouds do
 *      sim-process       an agent or a coordinator: started, killed at any step or write, restarted,
 * rebooted, paused sim-state-store   its disk sim-faults        what goes wrong on the way of a request
 *      sim-exec          the command of provider exec, in some worlds
 *      sim-stock         the machines that this command can launch
 *      sim-queue         the interruption queue and Auto Scaling, in some worlds
 *      sim-check         what must never happen, seen from outside
 *      sim-trace         what happened
 *
 * A step is one timer in the whole world. So a request is handled alone in its step, and whatever changes in
 * the store meanwhile is its doing.
 */

#include "fake-azure-metadata.h"
#include "fake-cluster.h"
#include "fake-ec2.h"
#include "fake-imds.h"
#include "sim-faults.h"
#include "sim-trace.h"
#include "sim-workload.h"

#define SIM_API "http://api"
#define SIM_EC2 "http://ec2.sim"
#define SIM_IMDS "http://169.254.169.254"
#define SIM_POOL "pool"
#define SIM_ZONE "us-east-1a"
#define SIM_ILLNESS "KernelDeadlock" /* a condition of a Node, as a node-problem-detector writes it */

typedef struct SimProcess SimProcess;
typedef struct SimCheck SimCheck;
typedef struct SimRestore SimRestore;
typedef struct SimAccount SimAccount;
typedef struct SimOrder SimOrder;

/* A node and its machine, with what only the world knows of them. */
typedef struct SimMachine {
        char *node, *instance;
        char boot_id[33];
        unsigned n_boots, noticed_boot, told_boot;
        FakeImds *imds;
        http_handler_t metadata; /* in place of imds, with its userdata; NULL: imds */
        void *metadata_userdata;
        FakeAzureMetadata *azure; /* NULL: the machine is not in Azure */
        usec_t deadline_usec; /* wall clock: of a notice that was given; USEC_INFINITY: none ever was */
        usec_t told_usec[8];  /* all times that this notice has named, the last one included */
        size_t n_told;
        bool noticed;         /* it stands, or its shutdown is on */
        bool has_event;       /* its cloud has announced an event to it once, that ends it for no longer than a reboot */
        usec_t spot_usec;     /* deadline_usec of the cloud's alone; USEC_INFINITY: it announces nothing */
        usec_t cancelled_usec; /* when somebody cancelled its shutdown last; 0: never */
        usec_t slot_until_usec; /* wall clock: of the slot on which its agent told it to reboot, until it is back; 0: none */
        usec_t off_usec;       /* when a shutdown of it was over last; 0: never */
        usec_t stopped_usec;   /* when its cloud stopped it last; 0: never */
        usec_t restored_usec; /* when its Node, which had gone, came back with an etcd that was restored; 0: never */
        usec_t twin_usec;     /* when another Node began to say that it is this machine; 0: none ever did */
        usec_t unmanaged_usec; /* when a person said last that it is none of vesper's, or took that back; 0: never */
        usec_t forced_usec;   /* wall clock: the end that a person has set for its removal; USEC_INFINITY: nobody has */
        usec_t switched_on_usec; /* when it was, its instance having been stopped; 0: never */
        usec_t replaced_usec; /* when its cloud announced an end for which its pool replaces it, or its kubelet stopped; 0: never */
        bool ended;           /* nothing runs there any more */
        bool cordoned_by_admin;
        usec_t opens_usec;    /* within this from now on a person does so, once; 0: nobody will (sim_world_open_once_read()) */
        bool opened_by_admin; /* a person un-cordoned it, and since then nobody has reason to cordon it */
        usec_t opened_usec;   /* when that was */
        bool opening_lost; /* a person had un-cordoned it, and an etcd that was restored does not know */
        SimProcess *agent;    /* NULL: none */
        bool crashed_for_good;
        struct SimPower *power; /* its logind and PID 1; NULL: nothing is known of them */
        unsigned by_hand_boot; /* n_boots of the boot in which a person asked for its reboot last; 0: nobody has */
        Timer *boot, *end, *kubelet, *taken, *deleted;
        struct SimWorld *world;
} SimMachine;

#define SIM_RIVAL "rival-" /* begins the name of a claim that a person makes of a machine that has one */

typedef struct SimOptions {
        unsigned n_nodes;
        unsigned n_pods;    /* of one ReplicaSet, over all nodes */
        unsigned pdb_min;   /* so many of them must stay healthy; 0: no PDB */
        unsigned stop_sec;  /* a pod takes so long to stop */
        unsigned grace_sec; /* 0: 30 */
        unsigned tgp_sec;   /* terminationGracePeriod of the pool; 0: unset */
        unsigned n_agents;  /* on the first nodes */
        unsigned n_coordinators;
        SimWorkload workloads[SIM_WORKLOADS_MAX];
        unsigned n_workloads;
        unsigned tgp_zero; /* terminationGracePeriod: 0s */
        unsigned detach_sec; /* a volume needs so long; 0: 2 */
        bool no_pool;                /* the nodes are nobody's */
        unsigned n_late;             /* the last so many Nodes join later: sim_world_join() */
        unsigned n_outside;          /* so many Nodes before those are of no pool */
        unsigned queue;              /* the coordinators hear an interruption queue (sim-queue.h) */
        const char *cloud_region;    /* what the coordinators are told; NULL: the right one */
        const char *endpoint_region; /* of which the cloud's endpoint really is; NULL: of all */
        unsigned shutting_down_sec;
        unsigned leave_interrupted; /* [Interruption] Delete=never */
        unsigned max_reboots; /* [Budget] MaxConcurrentReboots=; 0: 1 */
        unsigned encoding;    /* FakeEncoding of the API server */
        unsigned watch_lag_msec; /* watches tell of things up to so late, each by another time */
        unsigned evictions_at_once, evictions_per_second; /* of a coordinator; 0: as many as of a real one */
        unsigned latency; /* SimLatency */
        unsigned terminations_per_minute; /* that a coordinator asks its cloud for, one by one; 0: as a real one */
        unsigned exec;                    /* the pool's provider is "exec", its command sim-exec's */
        unsigned standalone;              /* a person has made claims of the first so many nodes, before anybody looked */
        unsigned node_budget;             /* maxUnavailable of a NodeDisruptionBudget over all nodes; 0: there is none */
        unsigned webhooks;                /* 1: the coordinators are asked before people delete Nodes and claims */
        unsigned repair_sec; /* what is not Ready for so long is replaced, and heartbeats move; 0: as a pool has it that says nothing */
        unsigned repair_reboot_sec; /* what shows SIM_ILLNESS for so long is rebooted, and replaced after twice as long if that did not help; 0: no rule says so */
        unsigned outlook;    /* 1: the pool sets spec.disruption so that every node would go; nobody has asked for it, so none does */
        unsigned exec_permille;           /* of that command's runs that go wrong, for a part of the load */
        unsigned n_stock;          /* the last so many machines are launched by the provider's command (sim-stock.h); 0: it has no such operation */
        bool no_find;              /* that command does not know the operation find */
        unsigned healthz; /* 1: kubelets serve /healthz to their agents */
} SimOptions;

/* The request that is handled in this step. */
typedef struct SimRequest {
        char *user;
        char *subresource, *ns, *name;
} SimRequest;

struct SimWorld {
        uint64_t seed;
        SimOptions options;
        VirtualTime *time;
        Loop *loop; /* of all servers, and of the world's own doings */
        Random *random, *cluster_random;
        FakeCluster *cluster;
        FakeEc2 *ec2;
        FakeAzureEvents *azure; /* NULL: no machine is in Azure */
        Timer *heartbeats; /* of nodes whose kubelet runs; NULL: none moves */
        SimTrace *trace;
        SimCheck *check;
        SimFaults *faults;
        SimMachine *machines;
        size_t n_machines;
        SimProcess **processes; /* agents in the order of nodes, then coordinators */
        size_t n_processes, n_log;
        struct SimNotices *notices; /* what is announced, in worlds of sim-notices.h; NULL: this is none of them */
        struct SimStock *stock;     /* machines that the provider's command launches; NULL: it cannot launch */
        struct SimQueue *queue;     /* NULL: nobody hears one */
        struct SimWebhook *webhook; /* NULL: nobody is asked before a deletion */
        SimRestore *restore; /* NULL: none is planned */
        SimAccount *account; /* borrowed; NULL: nobody reads one */
        usec_t paused_usec[2]; /* since when a person has paused removals: of the pool, of all; 0: nobody has */
        bool was_restored;
        List corpses;        /* SimLife: what they sent may still arrive */
        List exec_runs;      /* of sim-exec: children that have not ended */
        unsigned n_exec_runs; /* that ever began */
        bool cloud_was_blind; /* it has shown no machine, once */
        SimRequest *request; /* NULL: none in this step */
        uint64_t n_steps;
        usec_t instant_usec; /* now, as the last step saw it, and how many steps it has seen */
        uint64_t n_in_instant;
};

SimWorld *sim_world_new(uint64_t seed, const SimOptions *options);
SimWorld *sim_world_free(SimWorld *w);
DEFINE_FREEP(SimWorld, sim_world_free);
/* Half of the worlds have an API server that speaks protobuf, a quarter one that does not, the others one
 * that speaks it now and then. */
FakeEncoding sim_world_draw_encoding(uint64_t seed);
/* Of two thirds of the worlds SIM_LATENCY_FAST, of a sixth each of the others. */
SimLatency sim_world_draw_latency(uint64_t seed);
/* Of this world's seed and the name: for everything that draws on its own. */
uint64_t sim_world_derive(const SimWorld *w, const char *name, unsigned n);

/* -- time -------------------------------------------------------------------------------------- */

/* False: nothing was due, or something happened that must not (sim_world_violation()). */
bool sim_world_step(SimWorld *w, usec_t limit_usec);
/* False: violation. */
bool sim_world_run(SimWorld *w, usec_t usec);
typedef bool (*sim_condition_t)(SimWorld *w, void *userdata);
/* Runs until it holds, at most so long; looks after each step. False: it does not, or violation. */
bool sim_world_run_until(SimWorld *w, usec_t at_most_usec, sim_condition_t condition, void *userdata);
const char *sim_world_violation(const SimWorld *w); /* NULL: none */
usec_t sim_world_now(const SimWorld *w);
usec_t sim_world_wall(const SimWorld *w);
/* Seed, violation and the end of the trace: when a test fails. */
void sim_world_report(const SimWorld *w, const char *what);

/* -- what people, clouds and kubelets do ------------------------------------------------------- */

SimProcess *sim_world_agent(SimWorld *w, size_t machine);
SimProcess *sim_world_coordinator(SimWorld *w, size_t i);
SimProcess *sim_world_leader(SimWorld *w); /* as the Lease says; NULL: nobody that runs */
/* The cloud announces the end of the machine in so many seconds ("terminate"). */
void sim_world_notice(SimWorld *w, size_t machine, unsigned in_sec);
/* ... and takes it back. */
/* Its time moves. What it named before binds those alone who have seen it: sim_world_note_said(). */
void sim_world_move_notice(SimWorld *w, size_t machine, unsigned in_sec);
/* An agent has written this time on its Node. */
void sim_world_note_said(SimWorld *w, size_t machine, usec_t deadline_usec);
void sim_world_withdraw(SimWorld *w, size_t machine);
void sim_world_delete_node(SimWorld *w, size_t machine);
/* One of SimOptions.n_late: its instance has been there from the beginning, and now its Node is. */
void sim_world_join(SimWorld *w, size_t machine);
/* The Node of a machine that the provider's command has launched, with its providerID. taint: key of a NoSchedule taint that the
 * Node has from the beginning; NULL: none. */
void sim_world_join_launched(SimWorld *w, size_t machine, const char *zone, const char *taint);
void sim_world_admin_cordon(SimWorld *w, size_t machine);
void sim_world_admin_uncordon(SimWorld *w, size_t machine);
/* When its agent reads its Node next, while it drains it, a person un-cordons it, and no watch tells of Nodes before it
 * is so much later. 0: nobody will. */
void sim_world_open_once_read(SimWorld *w, size_t machine, usec_t unheard_usec);
/* The machine restarts: its agent dies and comes back with another boot id, its pods are not ready
 * meanwhile. */
void sim_world_reboot(SimWorld *w, size_t machine, usec_t away_usec);
/* The machine is no more: its kubelet and its agent with it. In so long; by its cloud, when it was told to
 * end it. */
void sim_world_machine_ends(SimWorld *w, size_t machine, usec_t in_usec);
/* A pod bound to that node past the scheduler's rules, as one that was on its way. */
void sim_world_bind_late_pod(SimWorld *w, size_t machine, const char *name, bool tolerates);
void sim_world_set_pdb_min(SimWorld *w, unsigned min);
/* Its Node shows SIM_ILLNESS, or does not any more. */
void sim_world_set_ill(SimWorld *w, size_t machine, bool ill);

/* -- what can be seen -------------------------------------------------------------------------- */

const cJSON *sim_world_node(SimWorld *w, size_t machine); /* Of this machine; of several the one that a coordinator may act on. NULL: gone */
const cJSON *sim_world_claim(SimWorld *w, size_t machine);
bool sim_world_is_outside(const SimWorld *w, size_t machine); /* of no pool, from the beginning */
/* As a person makes it, of no pool, with the pool's terminationGracePeriod. */
void sim_world_make_claim(SimWorld *w, const SimMachine *m, const char *name);
/* As it stands on its claim. */
bool sim_world_is_unmanaged(SimWorld *w, size_t machine); /* by its Node's annotation */
char *sim_world_provider_id(const SimWorld *w, const SimMachine *m);
bool sim_world_all(SimWorld *w, sim_condition_t of_machine);
bool sim_world_all_agents(SimWorld *w, sim_condition_t of_machine);
bool sim_world_instance_alive(SimWorld *w, size_t machine);
/* Pods bound to it that a drain has to wait for. */
size_t sim_world_pods_on(SimWorld *w, size_t machine);
size_t sim_world_pods_going(SimWorld *w, size_t machine); /* of those */
/* Of those, the ones whose end is not overdue by two minutes: a kubelet that is dead lets nothing go. */
size_t sim_world_pods_alive(SimWorld *w, size_t machine);
size_t sim_world_pods_ready(SimWorld *w);
bool sim_world_unschedulable(SimWorld *w, size_t machine);
bool sim_world_condition(SimWorld *w, size_t machine, const char *type, const char *status);
const char *sim_world_annotation(SimWorld *w, size_t machine, const char *key);
size_t sim_world_events(SimWorld *w, const char *reason);
SimMachine *sim_world_machine_of(SimWorld *w, const char *node); /* NULL: none */
