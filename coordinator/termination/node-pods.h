/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the end of a node asks about all the pods that are bound to it, as they are in view: how many hold
 * it, when the first is due, whether they go. Of the rules each uses what decides which pods are waited for.
 * Pure but for the view, which is read; all times are of the wall clock.
 */

#include "cluster-view.h"
#include "drain-plan.h"

typedef struct NodePodsCount {
        size_t waited;    /* for */
        size_t protected; /* ... of these, have opted out of drains */
} NodePodsCount;

NodePodsCount node_pods_count(const ClusterView *view, const char *node, const DrainRules *rules,
                              usec_t wall_now_usec);
/* When the first of the pods that stand is to be deleted: the rules' deadline minus its grace;
 * USEC_INFINITY: there is no deadline. */
usec_t node_pods_first_due(const ClusterView *view, const char *node, const DrainRules *rules,
                           usec_t wall_now_usec);
/* The same of those pods alone whose grace is shorter than shorter_than_usec: others cannot have theirs anyway. */
usec_t node_pods_first_due_of(const ClusterView *view, const char *node, const DrainRules *rules, usec_t shorter_than_usec,
                              usec_t wall_now_usec);
/* Another number once one of those that are waited for begins to go, has gone, or has come; the same
 * whatever else becomes of them. */
uint64_t node_pods_fingerprint(const ClusterView *view, const char *node, const DrainRules *rules,
                               usec_t wall_now_usec);
