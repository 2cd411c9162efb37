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
 * A machine is ended in two steps, for what speaks for its end must not grow old in here: cloud_turn() waits for
 * whatever stands before a request (the region, keys, the cloud's rate, room for one more child); when its turn has
 * come, and its owner has looked once more, cloud_terminate() sends it at once.
 */

#include "env.h"
#include "http-transport.h"

typedef enum InstanceState {
        INSTANCE_UNKNOWN,     /* no answer that may be acted on; see CloudResult.message */
        INSTANCE_PRESENT,     /* running, pending, stopping or stopped: it exists and may come back */
        INSTANCE_TERMINATING, /* on its way out, cannot come back (EC2 shutting-down) */
        INSTANCE_GONE,        /* ended, as the cloud says in so many words (EC2 terminated) */
        INSTANCE_NOT_FOUND,   /* the cloud does not know it, and the scope is proved */
        _INSTANCE_STATE_MAX,
        _INSTANCE_STATE_INVALID = -EINVAL,
} InstanceState;

/* "unknown", "present", "terminating", "gone", "not-found" */
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
        const CloudInstance *instances; /* list */
        size_t n_instances;
} CloudResult;

/* Result and all in it are borrowed for the callback. */
typedef void (*cloud_done_t)(const CloudResult *result, void *userdata);

typedef struct CloudProvider CloudProvider;
typedef struct CloudCall CloudCall;

typedef struct CloudProviderOps {
        const char *name; /* "ec2" */
        /* Is this providerID in this provider's form? Pure. */
        bool (*owns)(const CloudProvider *p, const char *provider_id);
        /* describe proves whose machine it is, by name, and shows siblings to prove the scope. */
        bool proves_identity;
        /* A machine may be named by its Node's name alone (MACHINE_ID_BY_NAME of marks.h). */
        bool takes_names;
        int (*describe)(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret);
        int (*turn)(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret);
        int (*terminate)(CloudCall *turn, const char *op_id, const char *pool, const HttpGuard *guard, cloud_done_t done,
                         void *userdata);
        void (*call_free)(CloudCall *c);
        void (*free)(CloudProvider *p);
} CloudProviderOps;

struct CloudProvider {
        const CloudProviderOps *ops;
        uint64_t answers[_CLOUD_OPERATION_MAX][_CLOUD_OUTCOME_MAX]; /* since it was made */
};
struct CloudCall {
        CloudProvider *provider;
        CloudOperation operation; /* set by who starts it, below */
};

/* How a provider answers: counted, then told. The call may be freed inside. */
void cloud_call_answer(CloudCall *c, const CloudResult *result, cloud_done_t done, void *userdata);

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

/* Slots: dropping one cancels, no callback comes after; `done` comes once, from the loop. The slot may be freed in `done`. */
int cloud_describe(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret);
/* Waits for the turn to terminate this machine; first come, first served. CLOUD_OK: it has come, and the slot holds it until
 * it is used or freed; freed it has cost nothing. A turn that is held keeps others from theirs: not for long. Every other
 * outcome: no turn, for that reason. */
int cloud_turn(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret);
/* In a turn that has come, also in its `done`: the request leaves now, and the slot is this call's from here on, with this
 * `done`. op_id: stable over retries of one termination, so that a call that lands twice does its work once. Guarded:
 * nothing leaves (and no child is started) once guard->may_send says no: CLOUD_RETRY, message "lease lost". < 0: free the
 * slot. */
int cloud_terminate(CloudCall *turn, const char *op_id, const char *pool, const HttpGuard *guard, cloud_done_t done,
                    void *userdata);
CloudCall *cloud_call_free(CloudCall *c);
DEFINE_FREEP(CloudCall, cloud_call_free);
