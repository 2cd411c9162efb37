/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The snapshot and simulator by which nodes are judged, kept as the cluster changes: pods one by one (microseconds each),
 * all else by making both anew. That takes some tenths of a second where there are 150,000 pods, so it is done in two parts, with a
 * pause for others, when a round begins, at most every 10 s to a minute, by their number, and only if something has changed that
 * scheduling reads: a kubelet's heartbeat has not. Pods that left, and whose successors have not come, take part as such
 * (vanished-pods.h). The first snapshot waits until it is known which pods left before the view was complete, for a minute at most.
 *
 * Between outlook_feed_begin() and outlook_feed_end() nothing moves: what watches bring waits, as it does between these parts.
 */

#include "cluster-view.h"
#include "disruption-scene.h"

typedef struct OutlookFeed OutlookFeed;

/* changed(): what is judged may be another. The view is complete. -ENOMEM. */
int outlook_feed_new(KubeClient *c, const ClusterView *view, void (*changed)(void *userdata), void *userdata, OutlookFeed **ret);
OutlookFeed *outlook_feed_free(OutlookFeed *f);
DEFINE_FREEP(OutlookFeed, outlook_feed_free);

void outlook_feed_on_pod(OutlookFeed *f, const KubePod *old, const KubePod *new);
void outlook_feed_on_node(OutlookFeed *f, const KubeNode *old, const KubeNode *new);

/* 1: *ret is the scene as of now, until the end, borrowed. 0: not yet, ask again at *ret_at_usec (loop_now()). -ENOMEM: at
 * that time it may do. */
int outlook_feed_begin(OutlookFeed *f, DisruptionScene **ret, usec_t *ret_at_usec);
/* Of a scene: it has pods in it whose successors are awaited, so that it is another soon, whatever comes. */
bool outlook_feed_awaits(const OutlookFeed *f);
void outlook_feed_end(OutlookFeed *f);

/* Do two states of one node say the same to scheduling and to whoever judges it? Pure. */
bool node_judged_same(const KubeScheduledNode *a, const KubeScheduledNode *b);
