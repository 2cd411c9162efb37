/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * interruption.c: a Notice, and how far the drain for it is: the JSON of the annotations vesper.sh/interruption and
 * vesper.sh/heard (marks.h). This file has the only parser and the only writer of that JSON.
 *
 *      annotation, object    writer         content
 *      interruption, Node    agent          the notice and the progress of its drain; the agent resumes by it after a restart
 *      heard, Node           coordinator    the progress of the coordinator's drain for what its interruption queue announced (announced.h)
 *
 * The kubelet's credential can write anything into a Node: the JSON is bounded, and nothing in it is trusted.
 * The decoders of KubeNode and KubeNodeClaim (kube-kinds.h) parse the annotations once; other code reads the result.
 */

#include "notice.h"

/* [Interruption] Delete= of the coordinator: of which notices it takes that a claim is deleted. */
typedef enum InterruptionDelete {
        INTERRUPTION_DELETE_NEVER,
        INTERRUPTION_DELETE_TERMINATE, /* after which the machine is no more */
        INTERRUPTION_DELETE_ALWAYS,    /* also stop and hibernate, and every scheduled change that the queue tells of */
} InterruptionDelete;

/* Returns true if a claim is deleted for this notice, sooner or later. */
bool interruption_delete_counts(InterruptionDelete d, const Notice *n);

typedef enum InterruptionPhase {
        INTERRUPTION_PHASE_NONE, /* absent or empty */
        INTERRUPTION_PLANNED,
        INTERRUPTION_CORDONED,
        INTERRUPTION_DRAINING,
        INTERRUPTION_VOLUMES,
        INTERRUPTION_DRAINED,
        INTERRUPTION_ENDING,
        INTERRUPTION_CANCELLED, /* the notice was withdrawn */
        INTERRUPTION_RELEASED,  /* a person un-cordoned the node: vesper does not act on this notice again */
        INTERRUPTION_LATER,     /* a phase of a later version of vesper: the drain counts as under way */
        _INTERRUPTION_PHASE_MAX,
} InterruptionPhase;

/* "Cordoned"; "" for NONE and LATER. */
const char *interruption_phase_to_string(InterruptionPhase p);
/* NULL and "": NONE; an unknown text: LATER. */
InterruptionPhase interruption_phase_from_string(const char *s);

/* A pod that a drain waits for and that does not go by itself. */
typedef struct InterruptionBlocker {
        char *pod;    /* "namespace/name" */
        char *reason; /* "BlockedByPDB" */
        char *detail; /* the name of the PodDisruptionBudget, the key of the opt-out; "": none */
} InterruptionBlocker;

#define INTERRUPTION_BLOCKERS_MAX 3u

typedef struct Interruption {
        Notice *notice; /* never NULL */
        InterruptionPhase phase;
        int64_t pods_left; /* -1: absent */
        char *boot_id;     /* the boot in which it was written; "": absent */
        /* The first pods that hold the coordinator's drain. Entries that the coordinator would not write are left out. */
        InterruptionBlocker blockers[INTERRUPTION_BLOCKERS_MAX];
        size_t n_blockers;
} Interruption;

/* Fills *ret, which nothing was in. A detail that is no name or key is left out. -EBADMSG: pod or reason are none; -ENOMEM. */
int interruption_blocker_fill(InterruptionBlocker *ret, const char *pod, const char *reason, const char *detail);
void interruption_blocker_done(InterruptionBlocker *b);

/* 0; -EBADMSG: unreadable; -ENOMEM. On failure *ret is NULL. */
int interruption_parse(const char *text, Interruption **ret);
Interruption *interruption_free(Interruption *i);
DEFINE_FREEP(Interruption, interruption_free);

/* Returns NULL on ENOMEM. Phase RELEASED has no pods_left: nothing moves them any more. */
char *interruption_format(const Notice *n, InterruptionPhase phase, size_t pods_left, const char *boot_id);
/* The same with the pods that hold the drain, INTERRUPTION_BLOCKERS_MAX at most. */
char *interruption_format_held(const Notice *n, InterruptionPhase phase, size_t pods_left, const char *boot_id, const InterruptionBlocker *b,
                               size_t n_blockers);

/* Returns true if everything is there that an agent of this version writes. */
bool interruption_is_complete(const Interruption *i);
/* Returns true if the notice was withdrawn, or a person released the node: vesper does nothing more for it. */
bool interruption_is_over(const Interruption *i);
bool interruption_is_overruled(const Interruption *i); /* phase RELEASED */
/* Returns true if the agent reports a current notice of the cloud that is at least as severe (notice_rank()) as n. agents: NULL: nothing is reported. A
 * drain by hand, a shutdown and a recommendation confirm nothing. The agent writes what it reports when it begins to drain, so its time does not matter. */
bool interruption_confirms(const Interruption *agents, const Notice *n);
/* Returns true while the drain has begun and is neither done nor over. */
bool interruption_is_draining(const Interruption *i);
/* Returns true once the drain has ended: no pod was left, or its time was over. */
bool interruption_has_drained(const Interruption *i);
