/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cloud/: one provider per file behind CloudProvider: cloud-ec2.c, cloud-exec.c; the code that they share is
 * cloud-engine.c. Describes, launches and ends machines. Calls base, loop, log, json, http-client; called by termination/. Never touches the Kubernetes API.
 *
 * Whether a machine is there. GONE is what the cloud itself calls ended (EC2: terminated). NOT FOUND is less: the cloud
 * does not know the machine. It is answered only if the provider has proved its scope: the credentials' account and region
 * are those of the providerID, or the same credentials see another instance of ours. Without that proof the answer is
 * UNKNOWN: a wrong region must never look like an empty one. Unknown never removes a finalizer; what else it takes for a
 * machine to count as gone, machine-end.h says.
 *
 * Whose machine it is. spec.providerID is what a kubelet has written about itself; the Node's name is the one thing that
 * it cannot forge. A provider that proves identities (CloudProviderOps.proves_identity) says with each describe whether
 * the cloud's own record of the instance leads to that name. One that does not hands over all that is known of the Node
 * and leaves the proof to whoever ends the machine (cloud-exec.h).
 *
 * Every operation is a reservation. It waits for everything that a request needs (the region, keys, the cloud's rate, room for
 * one more child). A question leaves as soon as it has its place. A request that changes something needs a fresh check: when it
 * has its place, its owner checks that it may leave as things are now. He then sends it, or gives the place back.
 */

#include "env.h"
#include "http-transport.h"

typedef enum InstanceState {
        INSTANCE_UNKNOWN,     /* no answer that may be acted on; see CloudResult.message */
        INSTANCE_PRESENT,     /* running, pending or stopping: it exists, and may run programs */
        INSTANCE_OFF,         /* it exists and may come back, and runs nothing now (EC2 stopped) */
        INSTANCE_TERMINATING, /* on its way out, cannot come back (EC2 shutting-down) */
        INSTANCE_GONE,        /* ended, as the cloud says in so many words (EC2 terminated) */
        INSTANCE_NOT_FOUND,   /* the cloud does not know it, and the scope is proved */
        _INSTANCE_STATE_MAX,
        _INSTANCE_STATE_INVALID = -EINVAL,
} InstanceState;

/* "unknown", "present", "off", "terminating", "gone", "not-found" */
const char *instance_state_to_string(InstanceState s);
InstanceState instance_state_from_string(const char *s);

typedef enum CloudOutcome {
        /* describe: `state` says what; terminate: accepted, or there was nothing left to end; `state` may say more */
        CLOUD_OK,
        CLOUD_RETRY,      /* passing: throttled, 5xx, no connection; retry_after_usec if the cloud said how long */
        CLOUD_PROTECTED,  /* terminate: termination protection; a person must lift it; slow retry */
        CLOUD_NO_CAPACITY, /* launch: the cloud has no such machine to give now */
        CLOUD_AT_MINIMUM, /* leave without refill, end with shrink: the group would become smaller than its minimum */
        CLOUD_DENIED,     /* credentials or permissions; slow retry */
        CLOUD_INVALID,    /* this providerID is none of this provider's, or the request can never work */
        _CLOUD_OUTCOME_MAX,
} CloudOutcome;

extern const char *const cloud_outcome_names[_CLOUD_OUTCOME_MAX + 1]; /* NULL behind the last */
const char *cloud_outcome_to_string(CloudOutcome o);

typedef enum CloudOperation {
        CLOUD_DESCRIBE,
        CLOUD_TURN, /* of the metrics: the place of one that changes something */
        CLOUD_TERMINATE,
        CLOUD_REBOOT,
        CLOUD_LIST,
        CLOUD_LAUNCH,
        CLOUD_FIND,
        CLOUD_LEAVE,
        CLOUD_END,
        CLOUD_GROUP,
        _CLOUD_OPERATION_MAX
} CloudOperation;

extern const char *const cloud_operation_names[_CLOUD_OPERATION_MAX + 1];

/* What Node and NodeClaim know of a machine. Borrowed for the call. */
typedef struct CloudAddress {
        const char *type, *address; /* "InternalIP", "10.0.0.7" */
} CloudAddress;

typedef struct CloudMachine {
        const char *provider_id;
        const char *node;                     /* the Node's name; NULL: not known */
        const char *system_uuid, *machine_id; /* as they were at adoption; NULL: not known */
        const CloudAddress *addresses;        /* as the Node tells now; none when it has gone */
        size_t n_addresses;
} CloudMachine;

/* A copy that owns its texts, or NULL on ENOMEM. */
CloudMachine *cloud_machine_copy(const CloudMachine *m);
CloudMachine *cloud_machine_free(CloudMachine *m);
DEFINE_FREEP(CloudMachine, cloud_machine_free);

/* Which instance a describe was about. Borrowed. */
typedef struct CloudIdentity {
        const char *instance_id, *region; /* NULL: the provider has no such thing */
        const char *method; /* static: how it was proved to be this Node's, "PrivateDNSName"; NULL: it was not */
} CloudIdentity;

/* Result of an operation that changes something. */
typedef enum CloudAnswer {
        CLOUD_ANSWER_ACCEPTED,    /* it is done, or will be */
        CLOUD_ANSWER_UNKNOWN,     /* it may have been done: look first; the identical request does not do it twice, but for reboot */
        CLOUD_ANSWER_LATER,       /* it was not done; the same again after a while */
        CLOUD_ANSWER_NO_CAPACITY, /* it was not done; the same again after a while, or elsewhere */
        CLOUD_ANSWER_AT_MINIMUM,  /* it was not done, and will not be while the group is as it is */
        CLOUD_ANSWER_REFUSED,     /* it was not done; a person must change something first */
        _CLOUD_ANSWER_MAX,
} CloudAnswer;

/* "accepted", "unknown", "later", "noCapacity", "atMinimum", "refused" */
extern const char *const cloud_answer_names[_CLOUD_ANSWER_MAX + 1];

/* The group of a machine. Borrowed. */
typedef struct CloudGroup {
        const char *name;     /* NULL: the machine is in no group */
        int64_t size;         /* that people, or others, want it to have */
        int64_t min, max;     /* -1: it has none */
        const char *template; /* version of what a new member would be; NULL: not told */
} CloudGroup;

/* What a launch asks for. Texts, NULL: not said. */
typedef struct CloudLaunch {
        const char *group, *zone, *capacity_type;
        const char *like; /* providerID of a machine that it is to be like */
} CloudLaunch;

typedef struct CloudInstance {
        const char *provider_id;
        InstanceState state;
} CloudInstance;

typedef struct CloudResult {
        CloudOutcome outcome;
        InstanceState state;          /* of the one instance asked about */
        const char *code;             /* the cloud's own error code, or NULL */
        const char *message;          /* one sanitized sentence for a person; "" when all is well */
        CloudIdentity identity;       /* of describe */
        const char *unproved;         /* if it was not proved: sanitized, what was compared, what would prove it; or NULL */
        usec_t retry_after_usec;      /* 0: not said */
        bool undecided;               /* of what changes something, not CLOUD_OK: it may have been carried out all the same */
        const char *provider_id;      /* of launch and find: the machine; NULL: not known yet (launch), there is none (find) */
        CloudGroup group;             /* of group */
        const CloudInstance *instances; /* of list: all that the provider calls its own; none unless CLOUD_OK */
        size_t n_instances;
        size_t n_unreadable;          /* of list: objects whose providerID or state could not be read. Those without a
                                       * providerID are left out: absence from such a list proves nothing */
} CloudResult;

/* Result and all in it are borrowed for the callback. */
typedef void (*cloud_done_t)(const CloudResult *result, void *userdata);

CloudAnswer cloud_result_answer(const CloudResult *r);

typedef struct CloudProvider CloudProvider;
typedef struct CloudCall CloudCall;

/* Texts are copied. */
typedef struct CloudReservation {
        CloudOperation operation;
        const CloudMachine *machine; /* list, launch, find: not used */
        const char *op_id; /* of what changes something: stable over retries, so that a call that lands twice does its work once;
                            * of find: that of the launch */
        const char *pool;  /* NULL: not known */
        CloudLaunch launch; /* of launch */
        bool refill;        /* of leave: the group launches another; else it becomes smaller */
        bool shrink;        /* of end: the group becomes smaller by this machine; else it launches another */
        /* Nothing leaves (and no child is started) once may_send says no: CLOUD_RETRY, message "lease lost". */
        HttpGuard guard;
        /* Called when the request has its place. The owner checks, then calls cloud_call_send() or cloud_call_free(), in here or
         * later. A place keeps others from theirs: after CLOUD_PLACE_USEC it is taken away. The call stays, costs nothing, and
         * has the next place as soon as it is sent. Called again if the check has lapsed (cloud_call_send()) before there was a
         * place. NULL: the request is sent as soon as it has its place. Always NULL for questions (describe, list, find, group). */
        void (*prove)(void *userdata);
        cloud_done_t done;
        void *userdata;
} CloudReservation;

#define CLOUD_PLACE_USEC (10 * USEC_PER_SEC)

typedef struct CloudProviderOps {
        const char *name; /* "ec2" */
        /* Is this providerID in this provider's form? Pure. */
        bool (*owns)(const CloudProvider *p, const char *provider_id);
        /* describe proves whose machine it is, by name. */
        bool proves_identity;
        /* A machine may be named by its Node's name alone (MACHINE_ID_BY_NAME of marks.h). */
        bool takes_names;
        unsigned operations; /* 1 << CloudOperation: those that it has besides describe and terminate */
        void (*free)(CloudProvider *p);
} CloudProviderOps;

/* The providerID of another machine that this provider should be able to see: that of a Node in service, each n another
 * one; NULL: there are no more than n. Borrowed for the moment. */
typedef const char *(*cloud_witness_t)(const CloudProvider *p, size_t n, void *userdata);

struct CloudProvider {
        const CloudProviderOps *ops;
        cloud_witness_t witness; /* NULL: nobody names one */
        void *witness_userdata;
        size_t n_witnesses; /* so many were asked for: the cloud may not show the first of them */
        uint64_t answers[_CLOUD_OPERATION_MAX][_CLOUD_OUTCOME_MAX]; /* since it was made */
};
struct CloudCall {
        CloudProvider *provider;
        CloudOperation operation;
        bool asked; /* its owner proves: CloudReservation.prove */
};

typedef struct CloudConfig {
        const char *name;     /* one of cloud_provider_names */
        const char *endpoint; /* NULL: the provider's own; AWS_ENDPOINT_URL_EC2, AWS_ENDPOINT_URL come before the default */
        const char *region;   /* NULL: AWS_REGION, AWS_DEFAULT_REGION, instance metadata */
        const char *command;  /* exec: absolute path */
        const char *(*getenv)(const char *name, void *userdata); /* NULL: nothing is set */
        void *getenv_userdata;
        /* ec2: no settings; 0 is what cloud-ec2.h says. Simulated clusters have fewer machines than real ones. */
        unsigned terminations_at_once, terminations_per_minute;
} CloudConfig;

/* NULL-terminated: the choices of [Provider] Name=. */
extern const char *const cloud_provider_names[];
/* Its index there. */
size_t cloud_provider_index(const CloudProvider *p);

/* -EINVAL with *reterr_message (static or owned by nobody: print it at once) for a configuration that cannot work. */
int cloud_provider_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message);
CloudProvider *cloud_provider_free(CloudProvider *p);
DEFINE_FREEP(CloudProvider, cloud_provider_free);

/* From whom the provider learns of machines that prove its scope; NULL: from nobody any more. */
void cloud_provider_set_witness(CloudProvider *p, cloud_witness_t witness, void *userdata);
/* For providers: the next one, after the last the first; NULL: there is none. */
const char *cloud_provider_next_witness(CloudProvider *p);

/* Slots: dropping one cancels, no callback comes after; `done` comes once, from the loop. The slot may be freed in `done`.
 * -EOPNOTSUPP: this provider has no such operation; -ENOMEM.
 *
 *   describe    of several machines in one request, where the cloud takes that
 *   list        all instances that are the provider's own; an object that cannot be read is skipped and counted.
 *               An error is no empty list. CLOUD_INVALID with code CLOUD_UNSUPPORTED: it never will
 *   terminate   one after the other within the cloud's rate, first come, first served
 *   reboot      in the same line: the machine is rebooted where it is, or moved with it. CLOUD_OK: the cloud has taken it. Not
 *               idempotent: who asks twice reboots twice
 *   launch      one machine more, like that of the reservation. CLOUD_OK: it comes, or is there; provider_id where that is known
 *               already. Without it: find
 *   find        the machine that the launch of this op id has made, in every zone. CLOUD_OK without provider_id: there is none (yet),
 *               and the provider has looked everywhere
 *   leave       the machine goes out of its group, alive. CLOUD_OK: it has, or was in none
 *   end         as terminate, with what becomes of the group's size; of a machine that already goes nothing becomes smaller
 *   group       the group of the machine, as the cloud has it now
 *
 * A provider reads the limits of a group afresh for each call. */
#define CLOUD_UNSUPPORTED "unsupported"
int cloud_reserve(CloudProvider *p, const CloudReservation *reservation, CloudCall **ret);
bool cloud_provider_has(const CloudProvider *p, CloudOperation o);
static inline int cloud_describe(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret) {
        return cloud_reserve(p,
                             &(CloudReservation){ .operation = CLOUD_DESCRIBE, .machine = machine, .done = done, .userdata = userdata },
                             ret);
}
/* A reservation whose owner has proved that it may leave: now, or if the place was taken away, with the next one. On its way it
 * may still have to wait for a connection or for new keys: nothing leaves, nor leaves again, after until_usec (loop_now()), but
 * CLOUD_RETRY is told. USEC_INFINITY: whatever happens meanwhile. No callback comes inside. */
void cloud_call_send(CloudCall *c, usec_t until_usec);
/* What was proved does not hold any more: nothing leaves from here on. False: it may have left. True: its owner is asked again
 * when there is a place. */
bool cloud_call_hold(CloudCall *c);
CloudCall *cloud_call_free(CloudCall *c);
DEFINE_FREEP(CloudCall, cloud_call_free);
