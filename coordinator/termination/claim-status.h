/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The status of one NodeClaim while its node is being removed, told as it changes (late-status.h). While the node is in
 * service adoption.c writes it.
 */

#include "kube-client.h"
#include "kube-kinds.h"
#include "node-drain.h"
#include "token-bucket.h"
#include "wakeup.h"

/* What condition Invalid is to say of this claim; false: nothing, for it is understood, and always was. The
 * message is borrowed; the transition is left 0. */
bool claim_invalid_condition(const KubeNodeClaim *claim, Condition *ret);

/* Pods that status.blockers names at most. */
#define CLAIM_BLOCKERS_MAX 20u

typedef struct ClaimStatus ClaimStatus;

/* The claim as it is in view, borrowed; NULL: it is gone. */
typedef const KubeNodeClaim *(*claim_now_t)(void *userdata);

/* claim: its name. progress: borrowed; LateStatusOptions. */
int claim_status_new(KubeClient *c, HttpGuard guard, const char *claim, claim_now_t claim_now, void *userdata,
                     TokenBucket *progress, ClaimStatus **ret);
ClaimStatus *claim_status_free(ClaimStatus *s);
DEFINE_FREEP(ClaimStatus, claim_status_free);

/* Texts are copied; short of memory the old ones stay. phase: static. */
void claim_status_set_node(ClaimStatus *s, const char *node, const char *uid);
void claim_status_set_phase(ClaimStatus *s, const char *phase);
void claim_status_set_deadline(ClaimStatus *s, usec_t wall_usec);       /* USEC_INFINITY: none */
void claim_status_set_cloud_error(ClaimStatus *s, const char *message); /* NULL: none */
/* type: static (marks.h). transition is now. Setting what is set changes nothing. */
void claim_status_set_condition(ClaimStatus *s, const char *type, ConditionStatus status, const char *reason,
                                const char *message);
/* Call when the claim in view may be another: late_status_see(). */
void claim_status_see(ClaimStatus *s);
/* Condition Invalid, as the claim is now. */
void claim_status_note_invalid(ClaimStatus *s, const KubeNodeClaim *claim);
/* Not by a pod: what it waits for before its drain (WAITING_FOR_BUDGET, REMOVAL_PAUSED) or behind it (VOLUMES_ATTACHED), since
 * wall_usec, or since it was first told; reason NULL: nothing any more. */
void claim_status_set_held(ClaimStatus *s, const char *reason, const char *message, usec_t wall_usec);
/* Blockers are copied, at most 20. */
void claim_status_set_blockers(ClaimStatus *s, size_t pods_left, const DrainBlocker *b, size_t n);
/* The claim is about to go, and who would read it? What was not told yet is told only if it is still there
 * in 20 seconds. */
void claim_status_hold(ClaimStatus *s);
void claim_status_flush(ClaimStatus *s); /* what was not told yet is told at once */
bool claim_status_is_told(const ClaimStatus *s);
void claim_status_next_wakeup(const ClaimStatus *s, Wakeups *w); /* see late-status.h */
