/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cloud/: one provider per file behind CloudProvider: cloud-ec2.c, cloud-exec.c; what they do alike is cloud-engine.c. What
 * ends a machine and what tells whether it is there. Calls base, loop, log, json, http-client; called by termination/. Never touches the Kubernetes API.
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
 * A machine is ended by one call, for what speaks for its end must not grow old in here: cloud_terminate() waits for
 * whatever stands before a request (the region, keys, the cloud's rate, room for one more child). When its turn has come
 * its owner is asked to confirm, and only then the request leaves, at once.
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
        CLOUD_DENIED,     /* credentials or permissions; slow retry */
        CLOUD_INVALID,    /* this providerID is none of this provider's, or the request can never work */
        _CLOUD_OUTCOME_MAX,
} CloudOutcome;

extern const char *const cloud_outcome_names[_CLOUD_OUTCOME_MAX + 1]; /* NULL behind the last */
const char *cloud_outcome_to_string(CloudOutcome o);

typedef enum CloudOperation {
        CLOUD_DESCRIBE,
        CLOUD_TURN,
        CLOUD_TERMINATE,
        CLOUD_REBOOT,
        CLOUD_LIST,
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
        bool undecided;               /* of reboot, not CLOUD_OK: it may have been carried out all the same */
        const CloudInstance *instances; /* of list: all that the provider calls its own; none unless CLOUD_OK */
        size_t n_instances;
} CloudResult;

/* Result and all in it are borrowed for the callback. */
typedef void (*cloud_done_t)(const CloudResult *result, void *userdata);

typedef struct CloudProvider CloudProvider;
typedef struct CloudCall CloudCall;

/* What a terminate needs, or a reboot. Texts are copied. */
typedef struct CloudTermination {
        const char *op_id; /* stable over retries of one termination, so that a call that lands twice does its work once */
        const char *pool;  /* NULL: not known */
        /* Nothing leaves (and no child is started) once may_send says no: CLOUD_RETRY, message "lease lost". */
        HttpGuard guard;
        /* May the machine be ended, as things are now? Asked when the turn has come, when the request is about to leave, and
         * each time it leaves again (refused keys, a wrong clock). Pure: no call may be touched in here. No at the wire:
         * CLOUD_RETRY. NULL: always. */
        bool (*confirm)(void *userdata);
        /* The turn has come, and confirm said no: find out, then cloud_call_go_on(). A turn keeps others from theirs, so it
         * is given back after CLOUD_TURN_USEC; the call stays, costs nothing, and goes before all others when its owner
         * lets it go on. The call may be freed in here. Needed with confirm. */
        void (*awaits)(void *userdata);
        cloud_done_t done;
        void *userdata;
} CloudTermination;

#define CLOUD_TURN_USEC (10 * USEC_PER_SEC)

typedef struct CloudProviderOps {
        const char *name; /* "ec2" */
        /* Is this providerID in this provider's form? Pure. */
        bool (*owns)(const CloudProvider *p, const char *provider_id);
        /* describe proves whose machine it is, by name. */
        bool proves_identity;
        /* A machine may be named by its Node's name alone (MACHINE_ID_BY_NAME of marks.h). */
        bool takes_names;
        /* It can reboot a machine: cloud_reboot(). */
        bool reboots;
        /* It can say which instances are its own: cloud_list(). */
        bool lists;
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
        CloudOperation operation; /* of a terminate or reboot: TURN until it is sent */
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

/* Slots: dropping one cancels, no callback comes after; `done` comes once, from the loop. The slot may be freed in `done`. */
int cloud_describe(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret);
/* All instances that are the provider's own, the whole list or none of it. CLOUD_INVALID with code CLOUD_UNSUPPORTED: it never
 * will. -EOPNOTSUPP: neither will this provider. */
#define CLOUD_UNSUPPORTED "unsupported"
int cloud_list(CloudProvider *p, cloud_done_t done, void *userdata, CloudCall **ret);
/* One after the other within the cloud's rate, first come, first served. */
int cloud_terminate(CloudProvider *p, const CloudMachine *machine, const CloudTermination *t, CloudCall **ret);
/* The machine is rebooted where it is, or moved with it: by turns, confirmed and sent as a terminate is. CLOUD_OK: the cloud has taken
 * it. Not idempotent: who asks twice reboots twice. -EOPNOTSUPP: not by this provider. */
int cloud_reboot(CloudProvider *p, const CloudMachine *machine, const CloudTermination *t, CloudCall **ret);
/* Of a terminate or reboot: what its confirm says is another than before. Whether the request leaves now, or when there is a turn
 * again, its owner is told by nothing but `awaits` and `done`. No callback comes inside. */
void cloud_call_go_on(CloudCall *c);
/* Of a terminate or reboot: the request may have left; what is freed now may have its effect. */
bool cloud_call_is_sent(const CloudCall *c);
CloudCall *cloud_call_free(CloudCall *c);
DEFINE_FREEP(CloudCall, cloud_call_free);
