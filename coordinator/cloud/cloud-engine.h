/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Code that all providers share: reservations wait in order, within a cloud's rates and a number of places; describes that wait
 * together leave as one batch; what is refused is told from the loop. A provider gives the few functions of CloudEngineOps: what
 * stands before a request, how one is sent, and what its answer means.
 *
 *   NEW --> WAITING --pump: keys, token, place--> YOURS --its owner sends--> SENT --answer--> DONE
 *              ^                                    |
 *              +--its owner sends-- LOST <----10 s--+
 *
 *      NEW, WAITING, YOURS, SENT --refused, lease lost, no memory--> REFUSED --pump--> DONE
 *
 * There are two queues, each in order: looks (describe, list, find, group) and changes. A request without
 * CloudReservation.prove passes YOURS at once.
 *
 * Each machine has at most one request with a place, or on its way, that ends the machine or removes it from its
 * group. Others wait in their order until that one is answered.
 *
 * A place takes no token, the request does: the bucket holds one for each place, and none is lost where a place is given back.
 *
 * A LOST request goes to the head of the queue when its owner sends it. So an owner who needs longer than a place is held still
 * ends his machine: if nobody else waits there is a place at once. Otherwise he is asked again when his check has lapsed, so that
 * the next place finds a check that holds, or one that is less than 10 s away.
 *
 * The pump runs from one timer. Owners are called back only from the pump, from cloud_engine_give_places() and from
 * cloud_request_finish(); a callback may free any request and start others, so who calls them reads its list anew.
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
        CLOUD_REQUEST_YOURS,   /* it has its place, and its owner proves that it may leave */
        CLOUD_REQUEST_LOST,    /* the same, and it took so long that the place was taken away */
        CLOUD_REQUEST_SENT,    /* it is in a batch */
        CLOUD_REQUEST_REFUSED, /* its owner is told by the pump */
        CLOUD_REQUEST_DONE,
        _CLOUD_REQUEST_STATE_MAX,
} CloudRequestState;

typedef struct CloudEngineOps {
        size_t batch_bytes;         /* of the provider's struct, which begins with a CloudBatch; it is zeroed */
        unsigned describes_at_once; /* different machines in one batch; 1: each request has its own */
        /* Can this provider never ask for that machine? True: why, for a person (NULL: out of memory). Called when the
         * request is made, and before it leaves. */
        bool (*refuses)(const CloudRequest *r, char **ret_message);
        /* True: requests may leave. False: what is missing is being fetched (a region), and cloud_engine_refuse_waiting() or
         * cloud_engine_pump() follows. NULL: nothing is ever missing. */
        bool (*is_ready)(CloudEngine *e);
        /* Fetches what a change needs (keys); cloud_engine_give_places() or cloud_engine_refuse_waiting() follows. Called again
         * meanwhile. NULL: nothing is needed. */
        void (*prepare)(CloudEngine *e);
        /* Sends what is in the batch: one request, or describes. When the answer comes, from the loop: sets b->answering, finishes
         * each request, frees the batch. It may refuse requests itself. < 0: all are refused. */
        int (*send)(CloudBatch *b);
        void (*batch_done)(CloudBatch *b); /* what the provider keeps in it; what is under way is dropped */
} CloudEngineOps;

struct CloudEngine {
        CloudProvider provider;
        const CloudEngineOps *ops;
        Env *env;
        TokenBucket look_rate, change_rate; /* per_minute 0: none */
        unsigned places_max, places_of_changes_max; /* 0: as many as come */
        uint64_t n_made;
        size_t n_requests;
        List looks, changes; /* WAITING, in their order; of changes those that have lost their place first */
        List yours;          /* YOURS, the oldest first */
        List refused, batches;
        Timer *pump;
};

struct CloudRequest {
        CloudCall call;
        CloudRequestState state;
        uint64_t number; /* of the order in which they were made */
        ListNode node;
        List *list;        /* that it is in; NULL: none */
        CloudBatch *batch; /* SENT */
        CloudMachine *machine;
        char *shown_id;               /* machine->provider_id, fit for a log */
        CloudReservation reservation; /* owns its texts; `machine` is not used */
        HttpGuard guard;              /* asks all that have a say, in the moment in which it leaves */
        usec_t yours_usec;            /* YOURS: since when */
        usec_t until_usec;            /* it may leave until then, by what its owner has proved; 0: he has not */
        bool unproved;                /* the guard said no because what he had proved has lapsed */
        bool was_yours;               /* WAITING: again */
        bool has_left;                /* for the metrics: what is refused before that is a place that was not given */
        CloudOutcome refusal;
        char *refusal_message;
};

struct CloudBatch {
        CloudEngine *engine;
        ListNode batches;
        List requests;
        CloudOperation operation;
        bool answering; /* it is freed by who answers, not with its last request */
};

bool cloud_operation_changes(CloudOperation o);
/* Returns true if a request of this operation names a machine. */
bool cloud_operation_has_machine(CloudOperation o);
CloudEngine *cloud_request_engine(const CloudRequest *r);

/* `e` is zeroed but for its rates and limits. -ENOMEM. */
int cloud_engine_init(CloudEngine *e, Env *env, const CloudProviderOps *provider_ops, const CloudEngineOps *ops);
void cloud_engine_done(CloudEngine *e); /* all requests are freed before; one that was not initialized is fine */

/* From the loop, soon: what may leave, leaves. */
void cloud_engine_pump(CloudEngine *e);
/* To all changes that may have one now. */
void cloud_engine_give_places(CloudEngine *e);
/* All looks that wait, or all changes. */
void cloud_engine_refuse_waiting(CloudEngine *e, bool changes, CloudOutcome outcome, const char *message);

/* Told by the pump. Takes the message; NULL was out of memory. */
void cloud_request_refuse(CloudRequest *r, CloudOutcome outcome, char *message);
/* Tells its owner. The request may be freed in here. */
void cloud_request_finish(CloudRequest *r, CloudResult result);
/* The first that was not finished yet; NULL: none. */
CloudRequest *cloud_batch_first(const CloudBatch *b);
CloudBatch *cloud_batch_free(CloudBatch *b);

/* For a message just made. */
const char *cloud_message_or_no_memory(const char *message);
