/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between node-drain.c, which walks the pods of the node, looks at them again and proves that none is left,
 * and drain-pod.c, which does to one of them what its plan says.
 */

#include "backoff.h"
#include "list.h"
#include "node-drain.h"

/* A look: one consistent list, for all pods that wait for it. */
typedef enum LookState { LOOK_NONE, LOOK_WANTED, LOOK_UNDER_WAY } LookState;

/* One pod of the node that must go. */
typedef struct DrainPod {
        NodeDrain *drain;
        KubePod *pod;        /* as it is in view; a reference */
        KubePod *fresh;      /* as a look found it, newer than the view; NULL once the view moves on */
        unsigned generation; /* of the wake that saw it last */
        bool has_left;       /* it is in `left` of its drain, and no more in `pods` */
        ListNode left_node;
        Eviction *eviction;
        bool evicted;          /* accepted: */
        usec_t accepted_usec;  /* when, loop_now(); or the delete of deleted_version */
        usec_t held_told_usec; /* loop_now(): when it was said that its PDB allows nothing; 0: not yet */
        bool refused;          /* an eviction was refused at least once */
        bool ended;            /* its containers have: it is taken off the API, and nobody hears of that */
        usec_t vanished_usec;  /* an eviction said that it is gone, loop_now(); 0: none did */
        EvictorAdmission *admission; /* for a delete: asked for, given, or held by delete_call */
        bool wants_admission;        /* as of its last plan */
        bool is_marked;      /* the condition DisruptionTarget was asked for */
        KubeCall *mark_call;
        KubeCall *delete_call;
        char *sent_version;    /* resourceVersion that our delete was decided on */
        char *deleted_version; /* the same of one that was accepted */
        LookState look;
        bool list_overtaken;      /* the view has moved on since the one under way was asked for */
        usec_t listed_usec;       /* loop_now(): when the last one that showed it was asked for; 0: none did */
        bool sent_blindly;        /* without that version as precondition */
        unsigned n_conflicts;     /* deletes in a row that found another pod than they were decided on */
        usec_t delete_retry_usec; /* loop_now() */
        Backoff delete_backoff;
        PodWait wait;
        char *detail, *message;
        usec_t since_usec;
        usec_t met_usec; /* loop_now(): when the drain met it */
} DrainPod;

struct NodeDrain {
        KubeClient *client;
        Env *env;
        Evictor *evictor;
        NodeDrainHandler handler;
        char *node;
        DrainRules rules;
        unsigned clock_jumps; /* loop_server_clock_jumps(), as of what is armed */
        HttpGuard guard;
        NodeDrainState state;
        Hashmap *pods; /* uid -> DrainPod, those in view that are waited for */
        Hashmap *left_alone; /* uids of the pods that DRAIN_POD_LEFT_ALONE was reported of; no values */
        List left;     /* of DrainPods that are gone before their eviction was answered, until it is, or the node is proved empty */
        unsigned generation;
        usec_t acted_usec; /* loop_now() of the last look at all pods; 0: none yet */
        size_t n_gone;     /* of `pods`, since then */
        usec_t admitted_until_usec; /* loop_now(): so long deletes wait for their place; 0: T has not passed */
        bool any_held;     /* of `pods`, then */
        Timer *timer;
        DrainBlocker *blockers;
        size_t blockers_allocated;
        uint64_t staying; /* fingerprint of the pods in view that have come back too often */
        bool changed;
        unsigned page_size; /* of both lists below; 0: all pods in one answer */
        KubeCall *proof;
        size_t proof_left;  /* pods on the pages so far that the drain waits for */
        bool proof_spoilt; /* a pod came into view since the list went out */
        usec_t proof_retry_usec;
        usec_t unproven_usec; /* loop_now(): since when a proof is tried in vain; 0: it is not */
        /* loop_now(): when a list was asked for: the last; the one that proved, and when its answer came */
        usec_t asked_usec, proven_usec, proof_came_usec;
        Backoff proof_backoff;
        KubeCall *look;
        usec_t list_asked_usec, list_retry_usec; /* loop_now(): when it was asked for */
        Backoff list_backoff;
};

/* -- of the drain: node-drain.c ------------------------------------------------------------------------- */

/* An answer to our own question, of which there is one at a time. */
void node_drain_act_at_once(NodeDrain *d);

/* -- of one of its pods: drain-pod.c -------------------------------------------------------------------- */

void *drain_pod_free(void *p); /* what is under way is dropped, what is not yet sent withdrawn */
/* The newest that is known of it, borrowed. */
const KubePod *drain_pod_known(const DrainPod *dp);
void drain_pod_forget_fresh(DrainPod *dp);
DrainBlocker drain_pod_blocker(const DrainPod *dp);
void drain_pod_tell(DrainPod *dp, DrainPodEvent e, const EvictionReport *report);
/* It has left the node, and its eviction has not been answered: it stays until then. */
bool drain_pod_awaits_answer(const DrainPod *dp);
/* It has left the node, and nothing more is heard of it: said, and freed. */
void drain_pod_tell_gone(DrainPod *dp);
/* Who was evicted or deleted by whom is said all the same where the answer is still to come. */
void drain_pod_tell_unanswered(DrainPod *dp);
/* What is said of it: a delete decided on sent_version, taken from it, was accepted. */
void drain_pod_note_deleted(DrainPod *dp);
bool drain_pod_is_awaited(const DrainPod *dp); /* of node_drain_awaits_pods() */
void drain_pod_act(DrainPod *dp, const PodPlan *p, usec_t wall_now);
void drain_pod_next_wakeup(const DrainPod *dp, Wakeups *w);
