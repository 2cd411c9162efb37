/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The status of one NodeClaim, told as it changes: the newest wish is what is written, one patch under way
 * at a time. What lasts is told after a second, so that phases that follow each other sooner cost one write;
 * pods left and blockers at most every 2 s, and less often while the claims of very many nodes want that.
 * Never waited for: a lost write is made good by the next. Nothing reads it back but people.
 */

#include "kube-client.h"
#include "node-drain.h"
#include "token-bucket.h"

typedef struct ClaimStatus ClaimStatus;

/* Begins with the conditions that the claim has: a merge patch replaces the whole list. progress: borrowed;
 * each write of nothing but pods left takes one of its tokens. NULL: as many as there are. */
int claim_status_new(KubeClient *c, HttpGuard guard, const KubeNodeClaim *claim, TokenBucket *progress,
                     ClaimStatus **ret);
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
/* Blockers are copied, at most 20. */
void claim_status_set_blockers(ClaimStatus *s, size_t pods_left, const DrainBlocker *b, size_t n);
/* The claim is about to go, and who would read it? What was not told yet is told only if it is still there
 * in 20 seconds. */
void claim_status_hold(ClaimStatus *s);
void claim_status_flush(ClaimStatus *s); /* what was not told yet is told at once */
