/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a removal writes on its Node and on the Node's claim: the cordon, the claim's deletion, and at its end the finalizers of both.
 * Who deletes one of them wants the other gone, too, so they go together: the claim is deleted with the Node, and the Node waits
 * for that, for a claim whose Node had left first would be an orphan. Nothing is waited for here: a write that was answered has the
 * node reconciled again (object-writes.h).
 *
 * What ends no pod and no machine comes after the evictions of others, unless there is a deadline: that is the rank, below.
 */

#include "claim-status.h"
#include "termination-context.h"

typedef struct RemovalWrites {
        const TerminationContext *context; /* borrowed, as node is */
        const char *node;                  /* its name */
        char *key;                         /* of the work queue */
        usec_t finishing_usec;             /* loop_now(): since when finalizers come off; set by the owner */
} RemovalWrites;

/* The borrowed fields are set already. -ENOMEM. */
int removal_writes_init(RemovalWrites *w);
void removal_writes_done(RemovalWrites *w); /* a zeroed one is fine */

/* deadline_usec: T, USEC_INFINITY: there is none. */
KubeRank removal_writes_rank(usec_t deadline_usec);

/* body: of termination_cordon_patch() or termination_hold_patch(). */
void removal_writes_cordon(RemovalWrites *w, const KubeNode *n, const char *body);
/* The API server refused the cordon, or did not answer, when it was last tried. */
bool removal_writes_cordon_fails(RemovalWrites *w, const KubeNode *n);
/* Unless it is being deleted. */
void removal_writes_delete_claim(RemovalWrites *w, const KubeNodeClaim *claim, KubeRank rank);
/* Takes the finalizers off. True: they are, and nothing is left to be said. n, claim: as in view, NULL: gone. status: of the claim,
 * NULL: there is none; a claim that somebody else keeps says how the removal ended, and for a while that is waited for. */
bool removal_writes_finish(RemovalWrites *w, const KubeNode *n, const KubeNodeClaim *claim, const ClaimStatus *status, KubeRank rank);
/* Our finalizer is not what keeps it alone. Pure. */
bool removal_writes_is_anothers(const KubeObject *o);
