/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * NodeClaims whose machine vesper asks for (spec.replaces), until their node takes pods:
 *
 *   Launching   launch-rule.h; the cloud names the machine: spec.providerID
 *   Launched    its Node has not come yet; a machine that vanishes meanwhile is orphan.h's
 *   Registered  its Node is there, and adopted (adoption.h)
 *
 * A claim whose machine is no node that takes pods within spec.disruption.launchTimeout of its pool is deleted; that ends the
 * machine. A claim whose machine nobody wants any more is deleted, too. successors.h says what follows.
 *
 * Every request is in the claim (status.group) before it leaves, in its place at the provider, by a patch that names the version
 * in view: two leaders never send for one claim.
 */

#include "successors.h"

typedef struct Launches Launches;

int launches_new(const TerminationContext *context, WorkQueue *queue, Successors *successors, Launches **ret);
Launches *launches_free(Launches *l);
DEFINE_FREEP(Launches, launches_free);

/* claim: NULL: it is gone. True: nobody else may act on the claim now. */
bool launches_reconcile_claim(Launches *l, const char *name, const KubeNodeClaim *claim, const char *key);
/* Claims without a machine. */
size_t launches_size(const Launches *l);
/* Reports each of them. */
#define LAUNCHES_WAKEUP_USEC (15 * USEC_PER_MINUTE)
void launches_next_wakeup(const Launches *l, Wakeups *w);
