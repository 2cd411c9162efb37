/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The reflex: one interruption of this node, from its notice to its end.
 *
 *      IDLE --notice--> PLANNED --acknowledged--> CORDONED --long notice--> LB_WAIT
 *                                                     |                         |
 *                                                     +------------+------------+ time
 *                                                                  v
 *                     VOLUMES <--proven empty-- DRAINING <--a pod came-- VOLUMES
 *                        |
 *                        +--let go, or not in time--> DRAINED --the machine goes down--> ENDING
 *
 *      any before ENDING --withdrawn and nothing else stands, or a person un-cordoned--> CANCELLED
 *      CANCELLED --vesper's marks are off--> IDLE
 *      ENDING --the shutdown was cancelled--> DRAINED
 *
 * A notice for which [Policy] says cordon stays CORDONED, until it is over, or another one asks for a drain.
 *
 * After a restart it begins in the state in which it was left. A drain whose time is up before the node is
 * empty stays DRAINING: what is left is named, and it goes on for as long as the machine lives. ENDING
 * undoes nothing any more.
 *
 * The first act (node-report.h W1) leaves inside reflex_begin(), before any line, Event or disk write. The
 * drain begins when it is acknowledged; nothing else delays it.
 */

#include "agent-config.h"
#include "containers.h"
#include "evictor.h"
#include "informer.h"
#include "intent-log.h"
#include "metrics.h"
#include "node-voice.h"
#include "wakeup.h"

typedef struct Reflex Reflex;

typedef enum ReflexState {
        REFLEX_IDLE,
        REFLEX_PLANNED,
        REFLEX_CORDONED,
        REFLEX_LB_WAIT,
        REFLEX_DRAINING,
        REFLEX_VOLUMES,
        REFLEX_DRAINED,
        REFLEX_ENDING,
        REFLEX_CANCELLED,
        _REFLEX_STATE_MAX,
        _REFLEX_STATE_INVALID = -EINVAL,
} ReflexState;

const char *reflex_state_to_string(ReflexState s); /* "Idle", "LBWait" */

/* What it works with; all borrowed, all outlive it. */
typedef struct ReflexContext {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        Evictor *evictor;
        IntentLog *intents;
        NodeVoice *voice;
        Metrics *metrics;
        const Informer *pods; /* of this node */
        Containers *containers;
        void (*on_state)(void *userdata); /* it changed, or something was reported; may be NULL */
        /* A person made the node schedulable again; not out of the loop. May be NULL. */
        void (*on_overruled)(void *userdata);
        /* What the node stays out of service for when what it is acted upon for is over: borrowed; NULL: nothing.
         * May be NULL. */
        const Notice *(*stands)(void *userdata);
        void *userdata;
} ReflexContext;

int reflex_new(const ReflexContext *context, Reflex **ret);
Reflex *reflex_free(Reflex *r); /* sends nothing, undoes nothing */
DEFINE_FREEP(Reflex, reflex_free);

/* In IDLE: a notice to act upon. answered_usec: loop_now() when the answer that showed it was whole.
 * -ENOMEM: it was not begun. */
int reflex_begin(Reflex *r, const Notice *n, const Plan *plan, usec_t answered_usec);
/* In IDLE: one that was begun before this start, and got as far as `phase` since since_usec (Intent). only_cordon: that is all
 * that is to be done. */
int reflex_resume(Reflex *r, const Notice *n, IntentPhase phase, usec_t since_usec, bool only_cordon);
/* In IDLE: takes off what an interruption that is over has left on the Node. released: a person
 * un-cordoned it. why: static. */
void reflex_clean(Reflex *r, bool released, const char *why);

/* Not in IDLE: the source shows it again, or another one. That takes the place of one that it outranks, that only people on
 * this machine or its shutdown have made (for it says when the machine ends, whatever they do), or for which the node is only
 * cordoned where this one is to be drained for (true: it did); else it can only bring the deadline nearer. */
bool reflex_notice(Reflex *r, const Notice *n, const Plan *plan);
/* Not in IDLE or CANCELLED: the node stays out of service, for this notice from now on; or the same one says something
 * else. -ENOMEM: nothing has changed. */
int reflex_replace(Reflex *r, const Notice *n);
/* What is left of the time stays as much; what others are told of it by the wall clock is told anew. */
void reflex_clock_was_set(Reflex *r);
/* Positively withdrawn: undone, if it is not too late, and nothing else stands. why: static. */
void reflex_cancel(Reflex *r, const char *why);
/* The machine goes down by then (boot-time clock; USEC_INFINITY: not said), whatever becomes of the notice: nothing is undone
 * any more. Said again, an earlier time holds. */
void reflex_machine_ends(Reflex *r, usec_t deadline_usec);
/* It does not, after all: what was done for that alone is undone. */
void reflex_machine_stays(Reflex *r);

/* What the informers bring. */
void reflex_see_node(Reflex *r, const KubeNode *n); /* NULL: gone */
void reflex_node_listed(Reflex *r, const KubeNode *n, const char *version); /* by a list of that resourceVersion */
void reflex_see_pod(Reflex *r, InformerEvent e, const KubePod *pod);
void reflex_pods_synced(Reflex *r);
/* Containers of pods that are on their way out have ended. */
void reflex_containers_ended(Reflex *r);
void reflex_kick(Reflex *r);
/* An end of the machine is planned that nothing is done about yet: node_report_plan(). */
int reflex_plan(Reflex *r, NoticeKind kind, const char *text);
/* Pods may be ended: what is known of the Node is fresh. Else it is read first, and then the evictor goes
 * on, unless a person has opened the node. */
bool reflex_may_end_pods(Reflex *r);

ReflexState reflex_state(const Reflex *r);
const Notice *reflex_notice_now(const Reflex *r); /* NULL: none */
bool reflex_waits_for_protected(const Reflex *r);  /* nothing is evicted while do-not-evict pods are there */
/* Since when it is only cordoned for that notice, by the first answer that showed it, or by the intent log of an agent before
 * this one (boot-time clock); USEC_INFINITY: it is not. */
usec_t reflex_only_cordoned_since(const Reflex *r);
const KubeNode *reflex_node(const Reflex *r);     /* the newest known, or NULL */
/* Returns the number of pods to evict. Until the pods are listed: the number in the Node's annotation. */
size_t reflex_pods_left(const Reflex *r);
/* Returns the number of pods that a drain would evict, whether one is under way or not. SIZE_MAX: the pods are not listed yet. */
size_t reflex_pods_on_node(const Reflex *r);
usec_t reflex_deadline(const Reflex *r); /* wall clock: when the node has to be empty; USEC_INFINITY: not said */
bool reflex_is_reported(const Reflex *r); /* the Node says all that is to be said */
/* Reports the interruption until the node is drained, the drain, and each write to the Node that is due. */
void reflex_next_wakeup(const Reflex *r, Wakeups *w);
