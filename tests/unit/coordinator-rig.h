/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What tests of coordinator/ stand on: the fake cluster on virtual time, up to two coordinators with loops
 * of their own, who may do at the API server what rbac.yaml lets them do and no more, and a cloud that obeys
 * the test: a toy whose every answer can be set, or EC2's provider against the fake of EC2.
 */

#include "cloud.h"
#include "coordinator.h"
#include "fake-client.h"
#include "fake-ec2.h"
#include "sqs-client.h"
#include "string-util.h"

#define MSEC USEC_PER_MSEC
#define POOL "pool"
#define ZONE "us-east-1a"
#define RIG_QUEUE_ORIGIN "https://sqs.us-east-1.amazonaws.com"
#define RIG_QUEUE RIG_QUEUE_ORIGIN "/123456789012/q"

/* -- the toy cloud -------------------------------------------------------------------------------------- */

typedef struct ToyMachine {
        char *provider_id;
        char *node;           /* whose it is, as the cloud has it; NULL: it does not know */
        InstanceState state;  /* what describe says */
        CloudOutcome outcome; /* of terminate; CLOUD_OK: it begins to terminate */
        InstanceState after;  /* what a terminate that is obeyed leads to; default: terminating */
        unsigned n_described, n_terminated; /* calls, obeyed or not */
        char *op_id;                        /* of the last terminate */
        unsigned n_successors;              /* machines that were launched like this one */
} ToyMachine;

/* Answer to a launch, and what the toy cloud does about it. */
typedef enum ToyLaunchAnswer {
        TOY_NAMED,        /* accepted, with the machine */
        TOY_ACCEPTED,     /* accepted without a name: find names the machine */
        TOY_LOST,         /* accepted without a name, and no machine comes */
        TOY_UNKNOWN_DONE, /* no answer, and the machine comes */
        TOY_UNKNOWN,      /* no answer, and no machine comes */
        TOY_LATER,
        TOY_NO_CAPACITY,
        TOY_REFUSED,
        TOY_UNSUPPORTED,
        _TOY_LAUNCH_ANSWER_MAX,
} ToyLaunchAnswer;

/* A provider named exec, in front of the toy cloud. */
typedef enum ToyOther {
        TOY_ALONE,
        TOY_OTHER_OWNS,     /* every providerID is its own, and no operation launch is there */
        TOY_OTHER_LAUNCHES, /* no providerID is its own, and operation launch is there */
        _TOY_OTHER_MAX,
} ToyOther;

/* The launch of one op id. */
typedef struct ToyLaunch {
        ToyMachine *machine; /* borrowed; NULL: none came */
        usec_t seen_usec;    /* virtual time from which find sees the machine */
} ToyLaunch;

typedef struct ToyCloud {
        Hashmap *machines; /* by providerID */
        CloudOutcome describe_outcome;
        usec_t latency_usec;
        usec_t turn_usec; /* until a turn to terminate comes */
        CloudOutcome turn_outcome;
        unsigned n_turns; /* how often it was asked for turns */
        bool silent;              /* no answer ever */
        bool lists;               /* set before the start, with is_exec */
        CloudResult list;         /* what it answers then */
        unsigned n_listed;
        bool is_exec;             /* set before the start: as provider exec, which proves nothing and takes names */
        /* Set before the start: launch and find are there. Machines in the place of node n0's are of nodes
         * n0-1, n0-2, ... (rig_join()). */
        bool launches;
        ToyOther other;           /* with launches, set before the start */
        unsigned n_other;         /* requests of operations launch and find to the other provider */
        bool no_find;             /* with launches, set before the start: find is not there */
        Hashmap *launched;        /* by op id */
        ToyLaunchAnswer launch_answers[8]; /* answers to the next launches; after them TOY_NAMED */
        size_t n_launch_answers;
        usec_t seen_after_usec;   /* how long find does not see a machine that was launched */
        const char *misnamed;     /* providerID that launch and find name; NULL: the right one */
        CloudOutcome find_outcome; /* CLOUD_INVALID: unsupported */
        unsigned n_launches, n_launched, n_finds; /* requests, machines, requests */
        char *launch_text;        /* of the last launch: "GROUP|LIKE|ZONE|CAPACITY-TYPE" */
} ToyCloud;

/* -- the rig -------------------------------------------------------------------------------------------- */

typedef struct CoordinatorRig CoordinatorRig;

typedef struct RigCoordinator {
        CoordinatorRig *rig;
        char name, *identity;
        Loop *loop;
        Random *random;
        Log *log;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        Env env;
        CloudRegistry cloud;
        CloudProvider *provider; /* the first of them */
        SqsClient *queue;        /* NULL: none */
        Coordinator *coordinator;
        StrBuf said; /* what it logged */
        StrBuf told; /* the service manager, each with a line's end */
} RigCoordinator;

struct CoordinatorRig {
        FakeWorld w;
        FakeCluster *cluster; /* of w */
        FakeApi *api;
        ToyCloud toy;
        FakeEc2 *ec2; /* made on first use */
        bool use_ec2; /* with toy.is_exec: EC2's provider first, and then the toy */
        const char *ec2_region; /* what coordinators are told; NULL: us-east-1 */
        http_handler_t queue_handler; /* what the coordinators' interruption queue RIG_QUEUE is at; NULL: they have none. Before the start */
        void *queue;
        HttpInprocHooks hooks;  /* of every coordinator's transport; set before the start */
        char *settings[8];      /* "Section.Key=VALUE", before the start */
        CoordinatorConfig config;
        RigCoordinator *coordinators[2];
        unsigned n_started;
        struct RigNotes *notes; /* notes of the round that is played (rig-rounds.h); NULL: none is */
};

CoordinatorRig *coordinator_rig_new(void);
CoordinatorRig *coordinator_rig_free(CoordinatorRig *r);
DEFINE_FREEP(CoordinatorRig, coordinator_rig_free);

/* The i-th coordinator starts, with a new identity ("a-1", or by Lease.Identity= of the settings); not
 * running before. */
void rig_start(CoordinatorRig *r, size_t i);
/* The same in two steps, where starting may fail: the process, then its coordinator; 0, or how it did, and
 * the process is gone again. */
void rig_make(CoordinatorRig *r, size_t i);
int rig_try_start(CoordinatorRig *r, size_t i);
/* Frees it without shutdown actions. */
void rig_kill(CoordinatorRig *r, size_t i);
void rig_stop(CoordinatorRig *r, size_t i);    /* cleanly */
RigCoordinator *rig_leader(CoordinatorRig *r); /* NULL: none */
/* Fails if a coordinator then has unfinished work that nothing wakes (wakeup.h). */
void rig_run(CoordinatorRig *r, usec_t usec);

/* The instance id of the machine of that node; free it. */
char *rig_instance(const char *node);
/* A machine of the toy's alone, present; of this node, as it knows. */
ToyMachine *rig_add_machine(CoordinatorRig *r, const char *provider_id, const char *node);
/* A node of POOL and its machine, present. */
void rig_add_node(CoordinatorRig *r, const char *name);
ToyMachine *rig_machine(CoordinatorRig *r, const char *node);
/* The Node of a machine that the toy has launched joins POOL, Ready. */
void rig_join(CoordinatorRig *r, const char *name);
/* One pool (POOL), nodes n0.., started and all adopted, and no describe counted yet. tgp NULL: unset. */
void rig_begin(CoordinatorRig *r, unsigned n_nodes, const char *tgp);
void rig_delete_node(CoordinatorRig *r, const char *name);
const cJSON *rig_node(CoordinatorRig *r, const char *name);  /* NULL: gone */
const cJSON *rig_claim(CoordinatorRig *r, const char *node); /* of the machine of that node; NULL: none */
bool rig_is_adopted(CoordinatorRig *r, const char *node);
size_t rig_turns_held(const CoordinatorRig *r); /* by all coordinators, of the toy cloud */
/* Runs until the node and its claim are gone, at most so long. */
bool rig_wait_gone(CoordinatorRig *r, const char *node, usec_t at_most_usec);
/* An Event with this reason about this object. */
bool rig_has_event(CoordinatorRig *r, const char *name, const char *reason);
/* True if that Event's message contains the text. */
bool rig_event_says(CoordinatorRig *r, const char *name, const char *reason, const char *text);
/* Number of times that such Events were recorded: the sum of their counts. */
int64_t rig_n_events(CoordinatorRig *r, const char *name, const char *reason);
/* Returns the sum of the values of the coordinator's metric. family: its name, or name{label="value"}. */
double rig_metric(const RigCoordinator *c, const char *family);
const char *rig_condition(const cJSON *object, const char *type); /* its status, or NULL */
const char *rig_condition_reason(const cJSON *object, const char *type);
bool rig_has_finalizer(const cJSON *object);
uint64_t rig_evictions(CoordinatorRig *r, unsigned status); /* 0: all */
