/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings the objects of a CtlSnapshot: Nodes and NodeClaims in pages, and the Lease, all three at once. */

#include "ctl-status.h"
#include "kube-client.h"

typedef struct CtlFetch CtlFetch;

/* error: 0, or a negative errno; message: for a person, what failed and what may help. A Lease that cannot
 * be read is no error: the leader is then not known, and `message` says why. snapshot: the caller's from
 * here on. */
typedef void (*ctl_fetched_t)(int error, const char *message, CtlSnapshot *snapshot, void *userdata);

int ctl_fetch_new(KubeClient *c, const char *lease_ns, const char *lease_name, ctl_fetched_t done,
                  void *userdata, CtlFetch **ret);
CtlFetch *ctl_fetch_free(CtlFetch *f);
DEFINE_FREEP(CtlFetch, ctl_fetch_free);
