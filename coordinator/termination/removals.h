/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The Nodes that are being removed: a NodeTermination for each, from the first time that it is reconciled until it is done, what is
 * counted of them, and how closely pods are followed for their sake.
 *
 * Pods change all the time, and their watch may lie for a moment (http_transport_set_immediate()). It does not while
 * a removal waits for what its pods do (node_termination_awaits_pods()), however long that takes, nor for a
 * minute after any removal began, changed its state, or saw one of its pods come, begin to go, or leave. So
 * what a removal that is stuck waits for is seen at once: a budget and a cloud have no part in that watch;
 * and once they let go, what the pods do. What somebody else does to pods of one that waits for a budget or
 * a cloud may be seen a moment later.
 */

#include "node-termination.h"
#include "wakeup.h"

typedef struct Removals Removals;

/* The context is borrowed. */
int removals_new(const TerminationContext *context, Removals **ret);
Removals *removals_free(Removals *r); /* all terminations at once; marks stay */
DEFINE_FREEP(Removals, removals_free);

/* Of the Node of this name; NULL: none. Borrowed until it is stepped. */
NodeTermination *removals_get(const Removals *r, const char *node);
/* One of a Node with our finalizer and a deletionTimestamp, and its first step. -ENOMEM, and what node_termination_new() says. */
int removals_begin(Removals *r, const KubeNode *n);
/* The same name with another uid is another Node: the removal of the old one ends, and what is left of its claim is orphan.c's. */
void removals_end_others(Removals *r, const KubeNode *n);
/* There is one of this name: it is reconsidered, and ends if it is done. */
void removals_step(Removals *r, const char *node);

/* True: this node is being removed, and has heard of the pod. */
bool removals_on_pod(Removals *r, const char *node, const KubePod *old, const KubePod *new);
/* A removal may wait for nothing but this claim, which has gone: it is requeued. */
void removals_on_claim_gone(Removals *r, const char *claim);
/* TerminationContext.moved. */
void removals_moved(Removals *r);
/* When the node, of which there is news, is to be stepped again (loop_now()); 0: at once. While it drains, what its drain learns
 * moves it on at once, and the rest can wait for the next look. */
usec_t removals_due(const Removals *r, const char *node);

/* The gauges, for one page of metrics. */
void removals_measure(Removals *r);
void removals_unmeasure(Metrics *m); /* whoever leads next measures them */
/* Reports each removal (node-termination.h). */
void removals_next_wakeup(const Removals *r, const WorkQueue *queue, Wakeups *w);
