/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * capacity/: new machines in the place of those that go.
 *
 *      successors.c    which NodeClaim gets a successor, and the NodeClaim of that
 *      launches.c      a NodeClaim without a machine: asked for at the cloud until there is one, or none
 *      launch-rule.c   its next step (pure)
 *
 * A NodeClaim whose machine goes, and that its pool replaces (spec.disruption.onInterruption), names its successor in
 * status.successor first; then that NodeClaim is made, and then status.successor says so. The name is a hash of what goes and
 * of the attempt: whoever makes the claim twice makes one. A successor whose machine was launched, and that is deleted before
 * its node takes pods, names the next attempt likewise, SUCCESSOR_ATTEMPTS_MAX in all. A person who wants none deletes the
 * claim before the cloud has named its machine.
 */

#include "termination-context.h"
#include "work-queue.h"

#define SUCCESSOR_ATTEMPTS_MAX 3

typedef struct Successors Successors;

int successors_new(const TerminationContext *context, WorkQueue *queue, Successors **ret);
Successors *successors_free(Successors *s);
DEFINE_FREEP(Successors, successors_free);

/* The name of the claim that takes its place, as attempt; NULL on ENOMEM. */
char *successor_claim_name(const char *replaced, int64_t attempt);
/* NULL on ENOMEM. */
char *successor_claim_body(const KubeNodePool *pool, const char *name, const char *replaced, int64_t attempt);

/* Asks for a successor of the claim, if the claim is to have one. */
void successors_see_claim(Successors *s, const KubeNodeClaim *claim, const char *key);
/* Asks for a successor of a claim whose node is about to be deleted to be repaired. Returns true if the claim
 * names its successor, or gets none: the node may be deleted. The successor is made once the claim is being
 * deleted. */
bool successors_wish(Successors *s, const KubeNodeClaim *claim, const char *key);
/* Returns true if the claim must keep its finalizer: its successor is not made yet, and nothing but the claim
 * says that it is to be. */
bool successors_keep(const Successors *s, const KubeNodeClaim *claim);
/* Returns true once the end of a new claim that is being deleted need not wait any longer: the claim of the
 * next attempt was made, or none is to be made, or none could be made for a minute. */
bool successors_next_stands(const Successors *s, const KubeNodeClaim *claim);
/* Returns the claim that this one follows, if that names it in status.successor: vesper has made it then. A
 * person may make claims, and cannot write that. NULL: none names it. Borrowed. */
const KubeNodeClaim *successor_named_by(const ClusterView *view, const KubeNodeClaim *claim);

/* Reports each claim whose successor is not made yet. */
void successors_next_wakeup(const Successors *s, Wakeups *w);
