/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a leader has and a standby has not: the terminations under way, adoption, release, orphans, grants of
 * reboots, repairs, what would become of nodes, the evictor, and the one work queue whose keys are node/NAME, pool/NAME,
 * claim/NAME, reboots/all, repairs/all, outlook/all, instances/all.
 * Made when the Lease is ours and the view is complete; freeing it drops every call, every wish for an
 * eviction and every termination at once, and leaves the marks to the next leader.
 */

#include "cluster-view.h"
#include "coordinator-config.h"
#include "node-termination.h"
#include "token-bucket.h"
#include "wakeup.h"

typedef struct Leading Leading;

/* How fast it goes: of the process, not of one leadership, as a lease that is lost and won again gives
 * nobody a new burst. */
typedef struct LeadingPace {
        TokenBucket terminations;
        TokenBucket progress, eviction_events, warnings, drained_events; /* of TerminationContext */
        TokenBucket outlook_writes, outlook_events;
} LeadingPace;

void leading_pace_init(LeadingPace *p, const CoordinatorConfig *config); /* all full */

typedef struct LeadingOptions {
        Env *env;
        const CoordinatorConfig *config;
        KubeClient *client;
        ClusterView *view;
        const CloudRegistry *cloud;
        struct SqsClient *queue; /* NULL: none */
        BudgetLedger *ledger;
        EventRecorder *recorder;
        struct NotifySender *notify; /* NULL: nobody is told */
        Metrics *metrics;
        HttpGuard guard;
        LeadingPace *pace;
} LeadingOptions;

/* All borrowed. Everything in view is marked dirty. */
int leading_new(const LeadingOptions *o, Leading **ret);
Leading *leading_free(Leading *l);
DEFINE_FREEP(Leading, leading_free);

/* From the view. */
void leading_node_dirty(Leading *l, const char *node);
void leading_pool_dirty(Leading *l, const char *pool);
void leading_claim_dirty(Leading *l, const char *claim);
void leading_on_pod(Leading *l, const char *node, const KubePod *old, const KubePod *new);
void leading_on_any_pod(Leading *l, const KubePod *old, const KubePod *new);
void leading_on_pdb(Leading *l, const KubePdb *old, const KubePdb *new);
void leading_on_pause(Leading *l); /* cluster_view_is_paused() may be another */
void leading_on_budget(Leading *l, const KubeNodeBudget *old, const KubeNodeBudget *new);
void leading_on_node(Leading *l, const KubeNode *old, const KubeNode *new);
void leading_view_health(Leading *l, bool stands);

/* Values of config have changed: everything is looked at again. */
void leading_reconfigured(Leading *l);

/* Brings the gauges up to date, for one scrape. */
void leading_measure(Leading *l);
/* Reports all that a leader has not finished: each of its parts has one line there. */
void leading_next_wakeup(const Leading *l, Wakeups *w);
