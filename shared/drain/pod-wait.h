/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Why a pod is still on a node that is being drained, and what a person can do about it: one table for the drain, for Events, the
 * status of a NodeClaim, metrics and vesperctl. Pure.
 */

#include "eviction.h"

typedef enum PodWait {
        POD_WAIT_TURN, /* no request was sent yet */
        POD_WAIT_EVICTING,
        POD_WAIT_PDB_TURN,         /* other pods of its PDB come first */
        POD_WAIT_OTHERS,           /* critical: other pods of the node come first */
        POD_WAIT_PROTECTED_OTHERS, /* [Drain] Protected=wait: a pod that opted out comes first */
        POD_WAIT_COMES_BACK,       /* it came back too often: the drain does not wait for it (pod-returns.h) */
        POD_WAIT_TERMINATING,
        POD_WAIT_FLOW_CONTROL,
        POD_WAIT_SERVER_BUSY,
        POD_WAIT_NO_ANSWER,
        POD_WAIT_PDB_NOT_OBSERVED, /* kube-controller-manager has not counted its PDB yet */
        POD_WAIT_NAMESPACE,        /* its namespace is being deleted, and takes the pod along */
        POD_WAIT_PROTECTED,        /* it opted out */
        POD_WAIT_PDB,
        POD_WAIT_PDB_NEVER,          /* its PDB allows no eviction as it stands: evictor.h */
        POD_WAIT_PDB_SYNC_FAILED,    /* kube-controller-manager cannot count its PDB */
        POD_WAIT_SEVERAL_PDBS,
        POD_WAIT_WEBHOOK,            /* an admission webhook answers for it */
        POD_WAIT_WITHOUT_EFFECT,     /* its eviction was accepted, and the pod does not go */
        POD_WAIT_FORBIDDEN,
        POD_WAIT_REFUSED_FOR_GOOD,
        POD_WAIT_DELETE_FAILED,
        _POD_WAIT_MAX,
        _POD_WAIT_INVALID = -EINVAL,
} PodWait;

/* The names that tables of other rooms repeat: reasons of Events, of NodeClaim status.blockers, and labels of metrics. */
#define POD_WAIT_NAME_COMES_BACK "PodComesBack"
#define POD_WAIT_NAME_TERMINATING "Terminating"
#define POD_WAIT_NAME_FLOW_CONTROL "FlowControl"
#define POD_WAIT_NAME_SERVER_BUSY "ServerBusy"
#define POD_WAIT_NAME_NO_ANSWER "NoAnswer"
#define POD_WAIT_NAME_PDB_NOT_OBSERVED "PDBNotObserved"
#define POD_WAIT_NAME_NAMESPACE "NamespaceTerminating"
#define POD_WAIT_NAME_PROTECTED "Protected"
#define POD_WAIT_NAME_PDB "BlockedByPDB"
#define POD_WAIT_NAME_PDB_NEVER "PDBNeverAllows"
#define POD_WAIT_NAME_PDB_SYNC_FAILED "PDBSyncFailed"
#define POD_WAIT_NAME_SEVERAL_PDBS "SeveralPDBs"
#define POD_WAIT_NAME_WEBHOOK "EvictionWebhook"
#define POD_WAIT_NAME_WITHOUT_EFFECT "EvictionWithoutEffect"
#define POD_WAIT_NAME_FORBIDDEN "Forbidden"
#define POD_WAIT_NAME_REFUSED_FOR_GOOD "RefusedForGood"
#define POD_WAIT_NAME_DELETE_FAILED "DeleteFailed"

const char *pod_wait_to_string(PodWait w);
/* _POD_WAIT_INVALID: none of them; a later version may know others. */
PodWait pod_wait_from_string(const char *s);
/* EVICTION_ACCEPTED, EVICTION_GONE and EVICTION_REPLACED: the pod terminates. */
PodWait pod_wait_of_answer(EvictionAnswer a);

/* Returns true if nothing outside of vesper holds the node by this pod: the drain itself, or another pod, comes first, or the drain does
 * not wait for the pod. */
bool pod_wait_is_turn(PodWait w);
/* Returns true if the wait ends without a person. False for _POD_WAIT_INVALID. */
bool pod_wait_passes(PodWait w);
/* Lower: a person has to look at it sooner. */
unsigned pod_wait_rank(PodWait w);
/* What a person can do about it, in whole sentences, static; NULL: nothing, it passes by itself. */
const char *pod_wait_remedy(PodWait w);
/* Returns true if the detail of such a wait is the name of a PodDisruptionBudget. */
bool pod_wait_is_of_pdb(PodWait w);
