/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Adoption: a Node that exactly one pool selects, and whose machine our provider can end, becomes ours.
 *
 *      claim (finalizer on it) --> finalizer on the Node --> claim's status          each put back where it
 *      got lost
 *
 * The claim comes first: a Node with our finalizer and no claim would have nothing that may be trusted. A
 * Node that several pools select is adopted by none; it says so in an Event, the pools in a condition
 * (pool-status.h). A Node that no pool selects any more is let go (release.h). A pool that cannot be
 * understood changes nothing about the nodes it has.
 *
 * A Node that a person has made a claim for, without a pool, is adopted by that claim, whatever pools select it
 * (standalone.h).
 *
 * One that asks for its end gets it: by the label LABEL_LIFECYCLE_PHASE, or by an agent, or the interruption queue, that tells
 * of an interruption ([Interruption] Delete=), whose claim is deleted then; with a terminationGracePeriod shorter than the notice
 * leaves, so much later that it ends with the notice.
 *
 * Whose instance it is, is proved meanwhile and kept in the claim's status (identity-proofs.h). One that cannot be proved
 * is adopted all the same, for a deletion that does not wait for us would empty nothing and leave the machine behind:
 * it is drained as any other, but its machine is not ended by us (machine-end.h); the claim's condition
 * vesper.sh/IdentityProved and Events say which proof is missing. So it is with the claims of older versions: they
 * are proved at the first look while the instance runs.
 */

#include "termination-context.h"
#include "object-writes.h"
#include "release.h"
#include "wakeup.h"

typedef struct Adoption Adoption;

/* All borrowed. */
int adoption_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, Release *release,
                 Adoption **ret);
Adoption *adoption_free(Adoption *a);
DEFINE_FREEP(Adoption, adoption_free);

/* Level-triggered; for a Node that is not being deleted. */
void adoption_reconcile_node(Adoption *a, const KubeNode *n);
/* The Node is gone, or being deleted: what was remembered of it is forgotten. */
void adoption_forget_node(Adoption *a, const char *node);

/* Why this pool, the only one that selects this Node, cannot adopt it: "NoProviderID", "OtherProvider",
 * "ProviderIDTooLong", "ForeignMachine", "SharedMachine"; NULL: it can. *ret_message: a sentence for people, free it; NULL: not
 * yet worth one, for it may pass (or ENOMEM). Pure. */
const char *adoption_refusal(const ClusterView *view, const CloudRegistry *cloud,
                             const KubeNodePool *pool, const KubeNode *n, usec_t wall_now_usec,
                             char **ret_message);
/* The claim that this pool makes for this Node, as JSON. NULL on ENOMEM. Pure. */
/* The Node is Ready. Of a machine that vesper asked for its startup taints and readiness.k8s.io taints are gone, too. */
bool adoption_is_initialized(const ClusterView *v, const KubeNodeClaim *c, const KubeNode *n);
char *adoption_claim_body(const KubeNodePool *pool, const KubeNode *n);
void adoption_next_wakeup(const Adoption *a, Wakeups *w); /* reports the identity proofs, too */
