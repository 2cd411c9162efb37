/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * contract/: the same cases against the fake cluster (tests/fake) and against a real kube-apiserver and
 * etcd. A fake that disagrees with the real thing is a failing test, and so is an assumption of ours that
 * the real thing does not share.
 *
 * The rig hides which of the two it is: virtual time, the in-process transport and identities by name, or
 * the real clock, libcurl and kubeconfigs. No controller runs in either world: what a controller would
 * write, a case writes by hand, so that both are the same. Each program run has a cluster of its own. Each
 * case uses names of its own; where the first case of a file makes what the others stand on, its comment
 * says so.
 */

#include "cmocka-test.h"
#include "kube-client.h"
#include "kube-kinds.h"

typedef enum RigWho {
        RIG_ADMIN,       /* system:masters */
        RIG_NODE,        /* the kubelet of node RIG_NODE_NAME */
        RIG_OTHER_NODE,  /* the kubelet of another one */
        RIG_COORDINATOR, /* its ServiceAccount, with packaging/manifests/coordinator/rbac.yaml and nothing
                            else */
        RIG_STRANGER,    /* a user without any right */
        RIG_NOBODY,      /* a token that nobody has given out */
        RIG_HELD,        /* an admin with a door of its own, that rig_hold() closes */
        _RIG_WHO_MAX,
} RigWho;

#define RIG_NODE_NAME "contract-node"
#define RIG_OTHER_NODE_NAME "contract-other"

/* For what has to come: a busy machine may take long. */
#define RIG_PATIENCE_USEC (60 * USEC_PER_SEC)

typedef struct RigOptions {
        bool fake;
        const char *manifests; /* fake: packaging/manifests */
        /* Real. */
        const char *server;      /* a proxy in front of the API server that can cut connections */
        const char *held_server; /* the same for RIG_HELD alone */
        const char *control;     /* http://: POST /compact, /cut, /hold, /release (run-real.py) */
        const char *kubeconfigs[_RIG_WHO_MAX]; /* RIG_HELD has RIG_ADMIN's */
} RigOptions;

typedef struct Rig Rig;

/* Prints why and returns NULL if that world cannot be had. */
Rig *rig_new(const RigOptions *options);
Rig *rig_free(Rig *r);
DEFINE_FREEP(Rig, rig_free);

bool rig_is_fake(const Rig *r);
/* Wall clock of who asks; the fake has the same. */
usec_t rig_wall(Rig *r);
KubeClient *rig_client(Rig *r, RigWho who);
Env *rig_env(Rig *r, RigWho who);
/* The credential of a request that goes past the client. */
void rig_credential(Rig *r, RigWho who, HttpTls **ret_tls, const char **ret_authorization);
const char *rig_server(const Rig *r);

/* Where the API server reaches this webhook from now on, by HTTPS; its CA in base64, as a caBundle. Both are
 * borrowed from the rig, and the same each time. */
void rig_serve_webhook(Rig *r, http_handler_t handler, void *userdata, const char **ret_url,
                       const char **ret_ca_bundle);

/* Lets time pass; callbacks run. */
void rig_sleep(Rig *r, usec_t usec);
/* The limit of a wait that is part of the contract: itself on virtual time, where it is exact, and patience
 * on the real clock, which measures the machine as well. */
usec_t rig_limit(const Rig *r, usec_t usec);
/* Until condition(userdata); false: not within timeout_usec. */
bool rig_wait(Rig *r, bool (*condition)(void *userdata), void *userdata, usec_t timeout_usec);

/* The past is forgotten: older continue tokens and watches get 410. In the real world the API server starts
 * again for that (it would otherwise answer from memory), so that connections break, too; RIG_ADMIN's are
 * whole again when this returns. */
void rig_compact(Rig *r);
/* Every connection breaks; RIG_ADMIN's are whole again when this returns. */
void rig_cut(Rig *r);
/* RIG_HELD's connections break, and no new one is had until it is let go. */
void rig_hold(Rig *r, bool hold);

/* One subject: a file of cases. Each gets the rig as its *state. */
typedef struct ContractSuite {
        const char *name;
        const struct CMUnitTest *cases;
        size_t n_cases;
} ContractSuite;

#define CONTRACT_SUITE(suite, table) \
        const ContractSuite contract_##suite = { .name = #suite, \
                                                 .cases = (table), \
                                                 .n_cases = ELEMENTSOF(table) }

extern const ContractSuite contract_admission, contract_agent, contract_api, contract_coordinator,
        contract_delete, contract_evict, contract_fields, contract_informer, contract_lease, contract_list,
        contract_node_credential, contract_patch, contract_protobuf, contract_status, contract_watch;
