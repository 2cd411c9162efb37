/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cordon of `vesperctl drain`, and how `vesperctl undrain` takes it off: pure functions of the Node.
 * Every body is a merge patch that carries the resourceVersion it was decided on (409: read again, decide
 * again). vesper(7), MARKS ON A NODE.
 */

#include "kube-kinds.h"
#include "string-util.h"

/* Whose cordon keeps pods off the Node. Ours comes first: others may have joined it. */
typedef enum CordonOwner {
        CORDON_OF_NOBODY, /* it is schedulable, whatever marks are left on it */
        CORDON_OF_VESPERCTL,
        CORDON_OF_AGENT,
        CORDON_OF_COORDINATOR,
        CORDON_OF_STRANGER, /* kubectl cordon, an autoscaler: nobody of vesper */
        _CORDON_OWNER_MAX,
} CordonOwner;

CordonOwner cordon_owner(const KubeNode *n);
/* Cordons and says so in our annotation; joins a cordon of the agent or coordinator. 1: *ret_body is to be
 * sent (free it); 0: it is ours already, or a stranger's, which is never claimed; -ENOMEM. */
int ctl_cordon_patch(const KubeNode *n, char **ret_body);

typedef enum UncordonPlan {
        UNCORDON_OPENS,       /* our cordon, or the coordinator's for its queue, and nobody else's; or `anyway` */
        UNCORDON_LEAVES,      /* our mark goes, the cordon is the agent's or coordinator's, too */
        UNCORDON_UNMARKS,     /* somebody has opened the node: our mark is left over */
        /* nothing is to be sent: */
        UNCORDON_IS_OPEN,
        UNCORDON_IS_DELETED,  /* the Node is being deleted: it stays as it is */
        UNCORDON_IS_FOREIGN,  /* the cordon is not ours */
        _UNCORDON_PLAN_MAX,
} UncordonPlan;

/* anyway: whoever cordoned it (--yes). */
UncordonPlan ctl_uncordon_plan(const KubeNode *n, bool anyway);
/* The body for one of the first three; NULL on ENOMEM. */
char *ctl_uncordon_patch(const KubeNode *n, UncordonPlan plan);

/* Who else drains the node or removes it already, as a sentence: "vesper-agent drains node 'x' already
 * (...)"; false and nothing added: nobody of vesper does. */
bool ctl_add_who_drains(StrBuf *b, const KubeNode *n);
/* "node 'x' was cordoned by vesper-agent, not by vesperctl drain", for a cordon that is not ours. */
void ctl_add_whose_cordon(StrBuf *b, const KubeNode *n);
