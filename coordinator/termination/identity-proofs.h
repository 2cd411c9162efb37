/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whose instance a Node's providerID names: proved once, at adoption and while the instance runs, and kept in its
 * claim's status (written by adoption.c). Asks the provider with one describe per Node, begun while the claim is made,
 * so that both are told in one write; and again, with backoff, while nothing is proved. A claim that has its identity
 * costs nothing.
 *
 *      no identity yet -> PENDING --the cloud's record leads to the Node's name, or its pool trusts providerIDs--> PROVED
 *                           |  ^                                                                             (kept: NONE)
 *                           v  | after a while
 *                         UNPROVED
 */

#include "termination-context.h"
#include "wakeup.h"

typedef enum IdentityProofState {
        IDENTITY_PROOF_NONE,    /* nothing is to be proved, or it is kept already */
        IDENTITY_PROOF_PENDING, /* no answer yet that says anything */
        IDENTITY_PROOF_PROVED,
        IDENTITY_PROOF_UNPROVED,
} IdentityProofState;

/* Borrowed until the next call. */
typedef struct IdentityProof {
        IdentityProofState state;
        bool soon;                                 /* PENDING: the first answer is a matter of moments: worth waiting for */
        const char *instance_id, *region, *method; /* PROVED */
        const char *reason, *message;              /* UNPROVED: "NotProved", "CloudDenied", ... */
} IdentityProof;

typedef struct IdentityProofs IdentityProofs;

/* All borrowed. */
int identity_proofs_new(const TerminationContext *context, WorkQueue *queue, IdentityProofs **ret);
IdentityProofs *identity_proofs_free(IdentityProofs *p);
DEFINE_FREEP(IdentityProofs, identity_proofs_free);

/* Level-triggered, for a Node of that pool; claim NULL: it is being made. `key` is dirty again when there is more to
 * say. */
IdentityProof identity_proofs_ask(IdentityProofs *p, const KubeNode *n, const KubeNodeClaim *claim,
                                  const KubeNodePool *pool, const char *key);
/* The Node is gone, or not ours any more. */
void identity_proofs_forget(IdentityProofs *p, const char *node);
/* Reports each proof that a reconcile needs. A describe is under way, or the next one begins within
 * IDENTITY_PROOF_WAKEUP_USEC. */
#define IDENTITY_PROOF_WAKEUP_USEC (15 * USEC_PER_MINUTE)
void identity_proofs_next_wakeup(const IdentityProofs *p, Wakeups *w);
