/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who drains a node that is being removed, and by which rules. Its agent does, for as long as it gets on with that
 * (agent-drain.h); else, and whenever a deadline calls for it, a drain of our own (node-drain.h). What becomes of each pod of
 * that is told to the removal's report, and whose pods a deadline will end is warned of that, whoever drains (pod-warnings.h).
 *
 * When a node is to be drained, and what follows, is node-termination.h's.
 */

#include "agent-drain.h"
#include "node-drain.h"
#include "node-pods.h"
#include "pod-warnings.h"
#include "termination-context.h"
#include "termination-report.h"

typedef struct RemovalDrain {
        const TerminationContext *context; /* borrowed, as node and report are */
        const char *node;                  /* its name */
        TerminationReport *report;
        void (*changed)(NodeDrain *own, void *userdata); /* NodeDrainHandler.on_changed */
        void *userdata;
        DrainRules rules; /* as Node, claim and settings call for now */
        NodeDrain *own;   /* NULL: none was begun */
        bool own_holds; /* own evicts nothing */
        PodReturns *returns;
        PodWarnings *warnings;
        AgentDrain agent;
} RemovalDrain;

/* The borrowed fields, `changed` and `rules` are set already. -ENOMEM. */
int removal_drain_init(RemovalDrain *d);
void removal_drain_done(RemovalDrain *d); /* a zeroed one is fine */

/* A drain of our own that was begun goes on by these, but for its deadline: node_drain_set_deadline(). */
void removal_drain_set_rules(RemovalDrain *d, const DrainRules *rules);
/* Begins a drain of our own, unless there is one. Out of memory: the node is requeued for it. */
void removal_drain_begin(RemovalDrain *d);
/* Begins a drain that evicts no pod, and deletes each from T - g on (DrainRules.holds). removal_drain_begin() replaces it by one that evicts. */
void removal_drain_begin_holding(RemovalDrain *d);
void removal_drain_stop(RemovalDrain *d);
/* No drain of our own was begun, and none is needed yet. past_deadline: T (node-deadline.h) has passed. The node is requeued for
 * when time alone makes a difference. */
bool removal_drain_is_left_to_agent(RemovalDrain *d, const KubeNode *n, bool past_deadline);
/* A pod as the view has seen it: old NULL: it is new; new NULL: it is gone. */
void removal_drain_on_pod(RemovalDrain *d, const KubePod *old, const KubePod *new);

/* A drain of our own has pods to wait for, or answers to what it has sent. */
bool removal_drain_is_under_way(const RemovalDrain *d);

/* By the rules and the pods in view, whoever drains them; as node-pods.h has it. */
NodePodsCount removal_drain_count(const RemovalDrain *d);
usec_t removal_drain_first_due(const RemovalDrain *d);
bool removal_drain_waits_for_protected(const RemovalDrain *d);
