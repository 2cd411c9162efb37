/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * termination/: adoption of a pool's nodes, the end of one node, release, orphans. Calls cluster/, cloud/,
 * shared/drain; is driven by the coordinator's work queue.
 *
 * What all of them share while one leader leads. Borrowed by each.
 */

#include "budget-ledger.h"
#include "cloud-registry.h"
#include "cluster-view.h"
#include "coordinator-config.h"
#include "event-recorder.h"
#include "evictor.h"
#include "metrics.h"
#include "notify-sender.h"
#include "object-writes.h"

typedef struct TerminationContext {
        Env *env;
        const CoordinatorConfig *config;
        KubeClient *client;
        ClusterView *view;
        Evictor *evictor;
        ObjectWrites *writes;
        const CloudRegistry *cloud;
        BudgetLedger *ledger;
        struct VoluntaryDeletes *deletes;
        struct Pauses *pauses;
        EventRecorder *recorder;
        NotifySender *notify; /* NULL: nobody is told */
        Metrics *metrics;
        HttpGuard guard; /* the leader's */
        /* Please reconcile this node again at that time (loop_now()). */
        void (*requeue)(const char *node, usec_t at_usec, void *userdata);
        /* A pod of a node that is being removed begins to go, as the answer to us says: its changes are
         * awaited from now on. No step inside. */
        void (*moved)(void *userdata);
        /* What the removal of this node knows of pods that come back (pod-returns.h); NULL: it is not being removed. Borrowed. */
        PodReturns *(*returns_of)(const char *node, void *userdata);
        /* Returns true if this leader deleted the Node to repair it. */
        bool (*is_repaired)(const char *node_uid, void *userdata);
        /* Returns true if a claim that is being deleted has to keep its finalizer for what is still to be made by it. */
        bool (*keeps_claim)(const KubeNodeClaim *claim, void *userdata);
        void *userdata;
        struct TokenBucket *rate;       /* node terminations: [Provider] TerminationsPerMinute= */
        struct TokenBucket *progress;   /* writes of pods left, over all claims and nodes */
        struct TokenBucket *eviction_events;      /* Events about pods that went as they should */
        struct TokenBucket *warnings;   /* Events about pods that a deadline will end */
        struct TokenBucket *drained_events; /* Events of their own about nodes that are drained */
} TerminationContext;
