/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all providers do alike: requests wait for their turn in order, within a cloud's rates and a number of places;
 * describes that wait together leave as one batch; what is refused is told from the loop. A provider gives the few
 * functions of CloudEngineOps: what stands before a request, how one is sent, and what its answer means.
 *
 *   describe    NEW --> WAITING --pump: token, place--> SENT --answer--> DONE
 *   terminate   NEW --> WAITING --pump: keys, token, place--> TURN --its owner confirms--> SENT --answer--> DONE
 *                          ^                                   |
 *                          +--its owner lets it go on-- PARKED <--10 s
 *
 *   reboot      as a terminate, in the same line and within the same rate
 *   list        as a describe, in the same line; its machine has the providerID ""
 *
 *      NEW, WAITING, TURN, SENT --refused, lease lost, no memory--> REFUSED --pump--> DONE
 *
 * A turn takes no token, its terminate does: the bucket holds one for each turn, and none is lost where a turn is given
 * back. A place is taken by each turn and each batch.
 *
 * What is parked has lost its turn and not its seniority: it goes to the head of the line when its owner has found out what
 * it was asked. So an owner whose proof takes longer than a turn is held still ends his machine: what he has found out is
 * asked for again as soon as there is a turn, which without a line is at once.
 *
 * The pump runs from one timer. Owners are called back only from the pump, from cloud_engine_give_turns() and from
 * cloud_request_finish(), and asked to confirm from cloud_call_go_on() and at the wire, too; a callback may free any request and start others, so who calls them reads its list anew.
 */

#include "cloud.h"
#include "list.h"
#include "token-bucket.h"

typedef struct CloudEngine CloudEngine;
typedef struct CloudRequest CloudRequest;
typedef struct CloudBatch CloudBatch;

typedef enum CloudRequestState {
        CLOUD_REQUEST_NEW,
        CLOUD_REQUEST_WAITING,
        CLOUD_REQUEST_TURN,    /* its turn has come, and its owner finds out whether it may leave */
        CLOUD_REQUEST_PARKED,  /* the same, and it took so long that the turn was given back */
        CLOUD_REQUEST_SENT,    /* it is in a batch */
        CLOUD_REQUEST_REFUSED, /* its owner is told by the pump */
        CLOUD_REQUEST_DONE,
        _CLOUD_REQUEST_STATE_MAX,
} CloudRequestState;

typedef struct CloudEngineOps {
        size_t batch_bytes;         /* of the provider's struct, which begins with a CloudBatch; it is zeroed */
        unsigned describes_at_once; /* different machines in one batch; 1: each request has its own, as lists need it */
        /* Can this provider never ask for that machine? True: why, for a person (NULL: out of memory). Called when the
         * request is made, and before it leaves. */
        bool (*refuses)(const CloudRequest *r, char **ret_message);
        /* True: requests may leave. False: what is missing is being fetched (a region), and cloud_engine_refuse_waiting() or
         * cloud_engine_pump() follows. NULL: nothing is ever missing. */
        bool (*is_ready)(CloudEngine *e);
        /* Fetches what a terminate needs (keys); cloud_engine_give_turns() or cloud_engine_refuse_waiting() follows.
         * Called again meanwhile. NULL: nothing is needed. */
        void (*prepare_turns)(CloudEngine *e);
        /* Sends what is in the batch: one terminate, one reboot (where the provider reboots), or describes. When the answer comes, from the loop: sets
         * b->answering, finishes each request, frees the batch. It may refuse requests itself. < 0: all are refused. */
        int (*send)(CloudBatch *b);
        void (*batch_done)(CloudBatch *b); /* what the provider keeps in it; what is under way is dropped */
} CloudEngineOps;

struct CloudEngine {
        CloudProvider provider;
        const CloudEngineOps *ops;
        Env *env;
        TokenBucket describe_rate, terminate_rate; /* per_minute 0: none */
        unsigned places_max, turns_max;            /* 0: as many as come */
        uint64_t n_made;
        size_t n_requests;
        List describes, terminates; /* WAITING, in their order */
        List turns;                 /* TURN, the oldest turn first */
        List refused, batches;
        Timer *pump;
};

struct CloudRequest {
        CloudCall call;
        CloudRequestState state;
        bool terminate;    /* or reboot: it waits for a turn */
        CloudOperation sends; /* of those: which of the two */
        uint64_t number; /* of the order in which they were made */
        ListNode node;
        List *list;        /* that it is in; NULL: none */
        CloudBatch *batch; /* SENT */
        CloudMachine *machine;
        char *shown_id; /* machine->provider_id, fit for a log */
        CloudTermination termination; /* owns its texts; of a describe nothing but done and userdata */
        HttpGuard guard;              /* of a terminate: asks all that have a say, in the moment in which it leaves */
        usec_t turn_usec;             /* TURN: since when */
        bool unconfirmed;             /* the guard said no because its owner did not confirm */
        CloudOutcome refusal;
        char *refusal_message;
};

struct CloudBatch {
        CloudEngine *engine;
        ListNode batches;
        List requests;
        bool terminate; /* or reboot */
        bool reboot;
        bool answering; /* it is freed by who answers, not with its last request */
};

CloudEngine *cloud_request_engine(const CloudRequest *r);

/* `e` is zeroed but for its rates and limits. -ENOMEM. */
int cloud_engine_init(CloudEngine *e, Env *env, const CloudProviderOps *provider_ops, const CloudEngineOps *ops);
void cloud_engine_done(CloudEngine *e); /* all requests are freed before; one that was not initialized is fine */

/* From the loop, soon: what may leave, leaves. */
void cloud_engine_pump(CloudEngine *e);
/* To all that may have one now. */
void cloud_engine_give_turns(CloudEngine *e);
/* All that wait to describe, or for a turn (terminate). */
void cloud_engine_refuse_waiting(CloudEngine *e, bool terminate, CloudOutcome outcome, const char *message);

/* Told by the pump. Takes the message; NULL was out of memory. */
void cloud_request_refuse(CloudRequest *r, CloudOutcome outcome, char *message);
/* Tells its owner. The request may be freed in here. */
void cloud_request_finish(CloudRequest *r, CloudResult result);
/* The first that was not finished yet; NULL: none. */
CloudRequest *cloud_batch_first(const CloudBatch *b);
CloudBatch *cloud_batch_free(CloudBatch *b);

/* For a message just made. */
const char *cloud_message_or_no_memory(const char *message);
