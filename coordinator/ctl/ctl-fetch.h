/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reads the objects of a CtlSnapshot: Nodes and NodeClaims in pages, the Lease, and its namespace, all at
 * once. For named nodes, it reads each Node and the NodeClaim whose name follows from its NodePool. It lists
 * all NodeClaims only if there is none of that name.
 */

#include "ctl-status.h"
#include "kube-client.h"

/* Reads who holds the Lease, when that was renewed (wall clock; 0: never), and for how long that counts. 0 or -ENOMEM. */
int ctl_read_lease(const Json *lease, char **ret_leader, usec_t *ret_seen_usec, usec_t *ret_lease_usec);

typedef struct CtlFetch CtlFetch;

/* error: 0, or a negative errno; message: for a person, what failed and what may help. A Lease that cannot
 * be read is no error: the leader is then not known, and `message` says why. snapshot: the caller's from
 * here on. */
typedef void (*ctl_fetched_t)(int error, const char *message, CtlSnapshot *snapshot, void *userdata);

typedef struct CtlFetchOptions {
        const char *lease_ns, *lease_name;
        char *const *nodes; /* borrowed; these alone, at most n_nodes; NULL: all */
        size_t n_nodes;
        /* NodeClaims that are not installed, or that may not be read, are no error: CtlSnapshot.unknown says so. */
        bool claims_optional;
        /* NodeClaims that are not installed are no error: there are none. CtlSnapshot.no_claims says so. */
        bool claims_may_be_uninstalled;
} CtlFetchOptions;

/* options: its texts are borrowed until the fetch is over. */
int ctl_fetch_new(KubeClient *c, const CtlFetchOptions *options, ctl_fetched_t done, void *userdata, CtlFetch **ret);
CtlFetch *ctl_fetch_free(CtlFetch *f);
DEFINE_FREEP(CtlFetch, ctl_fetch_free);
