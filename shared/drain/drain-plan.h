/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What to do about one pod of a node that is being emptied, now: pure arithmetic over (pod, time, deadline,
 * policy).
 *
 * The deadline T (vesper(7), THE DEADLINE), g = the pod's grace:
 *   before T - g   evicted, so that its PDB is asked; with less grace than g only if g does not fit before T
 *   from T - g     deleted with what is left, max(1 s, T - now): no PDB can hold it any longer
 *   terminating    deleted again with less if it would outlive T (never just to repeat: only if at least a
 *                  second is won); but only at T - 1 s if more than T - now has passed since its
 *                  deletion began: the API server counts a shortened grace from there, and would take
 *                  it for over
 *
 * So a pod whose grace does not fit between the start of the drain and T is deleted at once; where `evict_first` is set (the agent) its PDB is asked
 * once before.
 */

#include "pod-class.h"
#include "pod-returns.h"

typedef enum ProtectedPolicy {
        PROTECTED_WAIT,   /* nothing is evicted until all protected pods are gone */
        PROTECTED_OTHERS, /* the rest is evicted meanwhile */
        /* deletion by hand is involuntary, as an interruption is: evicted like any other (vesper(7), PROTECTED PODS) */
        PROTECTED_IGNORE,
} ProtectedPolicy;

typedef struct DrainRules {
        usec_t deadline_usec; /* wall clock T; USEC_INFINITY: wait for ever */
        ProtectedPolicy protected_policy;
        /* Pods of the node that came back too often are neither evicted nor waited for. Borrowed; NULL: no pod has. */
        PodReturns *returns;
        /* A terminating pod that is still there so long after its grace has ended is not waited for any
         * more: its kubelet is dead, or cannot. 0: it is waited for for ever. */
        usec_t stuck_after_usec;
        bool evict_first; /* past T - g a pod that was never refused is evicted with clipped grace, not deleted */
        bool holds;       /* no pod is evicted, protected or not; from T - g on each is deleted */
} DrainRules;

typedef enum PodAction {
        POD_ACTION_NONE, /* not ours to move and not waited for */
        POD_ACTION_WAIT, /* terminating: it goes by itself */
        POD_ACTION_HOLD, /* stays for now: protected, or its turn has not come */
        POD_ACTION_EVICT,
        POD_ACTION_DELETE, /* deadline: no PDB is asked */
        _POD_ACTION_MAX,
} PodAction;

const char *pod_action_to_string(PodAction a);

typedef struct PodPlan {
        PodAction action;
        PodClass pod_class;
        int64_t grace_sec;        /* EVICT, DELETE: to ask for; -1: the pod's own */
        usec_t next_usec;         /* wall clock when this answer may change by time alone; USEC_INFINITY */
        const char *protected_by; /* the key, for PROTECTED pods; else NULL */
} PodPlan;

/* Facts about the other pods of the node that the plan of one pod depends on. */
typedef struct DrainContext {
        bool any_protected;    /* some pod of the node is PROTECTED */
        bool any_non_critical; /* some non-critical pod is still to be waited for */
} DrainContext;

/* `refused`: an eviction of this pod was refused before. Pure; allocates nothing. */
PodPlan drain_plan_pod(const KubePod *pod, const DrainRules *rules, const DrainContext *context,
                       bool refused, usec_t wall_now_usec);
/* Wall clock: when T ends this pod by that plan of it, if it is still there then; USEC_INFINITY: T does not, or is doing so
 * now. */
usec_t drain_plan_due(const KubePod *pod, const PodPlan *plan, const DrainRules *rules, usec_t wall_now_usec);
/* When people are warned that a pod is due then: 5 s after it was met on the node, or 5 s before it is due where that is
 * sooner; but not before the second has gone by in which it may have left. All by one clock. */
usec_t drain_plan_warn_at(usec_t met_usec, usec_t due_usec);
/* Too many were warned of: asked again so much later. */
#define DRAIN_WARN_AGAIN_USEC (3 * USEC_PER_SEC)
/* A grace comes from outside: it saturates. */
usec_t drain_grace(int64_t grace_sec);
/* Is this pod one that must be gone before the node is drained? */
bool drain_waits_for(const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec);
/* Returns true if the drain does not wait for the pod, and that only because the pod has come back too often (pod-returns.h). */
bool drain_lets_stay(const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec);
/* May whoever has seen that this pod's containers have ended take it off the API, as its kubelet is about
 * to? Only where that is all that is left to do about it: it is terminating, and nothing of it waits for the
 * kubelet or a finalizer. */
bool drain_may_finish(const KubePod *pod, usec_t wall_now_usec);
/* Folds one pod into the context. */
void drain_context_add(DrainContext *c, const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec);
