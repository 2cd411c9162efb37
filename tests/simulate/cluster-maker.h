/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Made-up clusters for tests and benchmarks of the simulation: nodes in three zones, pods of many owners, of which a part
 * spreads over zones or hosts, keeps apart, or is pinned; each pod runs where the simulation itself would have put it, the
 * freest node first. The same numbers give the same cluster.
 */

#include "simulate.h"

typedef struct ClusterShape {
        uint64_t seed;
        uint32_t n_nodes, n_pods, n_owners;
        unsigned fill_percent; /* of the nodes' CPU that all pods together ask for */
        bool plain;            /* no pod has a rule beyond its requests */
        bool no_spread;        /* ... or no topologySpreadConstraints */
        bool honors_taints;    /* these count only nodes whose taints the pod tolerates (nodeTaintsPolicy) */
        unsigned n_offerings;  /* of each pool: the nodes' own, and smaller ones that cost less; 0: three */
} ClusterShape;

typedef struct MadeCluster {
        InternPool *pool;
        Snapshot *snapshot;
        uint32_t n_bound; /* pods that found a node */
} MadeCluster;

int cluster_make(const ClusterShape *shape, MadeCluster *ret);
void cluster_done(MadeCluster *c);
/* One more pod of an owner (0 .. n_owners - 1), of that number; it is the snapshot's. */
KubeObject *cluster_add_pod(MadeCluster *c, const ClusterShape *shape, uint32_t number, const char *node);
/* One more node, of the class that its number says, with so much CPU; spec: members of its spec ("\"unschedulable\":true"), or "". */
void cluster_add_node(MadeCluster *c, uint32_t number, unsigned millicpu, const char *spec);
/* A NodePool for each zone, with every method on, offerings and those budgets (JSON; NULL: the default), and a PodDisruptionBudget for every
 * tenth owner; some of the nodes are expired then, some are not as their pool says. Sets the snapshot's time. */
void cluster_add_pools(MadeCluster *c, const ClusterShape *shape, const char *budgets);
uint64_t cluster_draw(uint64_t *state);
/* Decodes a text and puts it in; asserts that both work. */
KubeObject *cluster_put(Snapshot *s, SnapshotKind kind, const char *json);
/* Does the same with each object of a text in which commas part objects, by their apiVersion and kind. */
void cluster_put_several(Snapshot *s, const char *objects);
