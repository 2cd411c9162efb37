/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * node-report.c: says on the Node how far its interruption is. Level-triggered: told what shall stand there,
 * it sends what is missing, one patch at a time, each with the resourceVersion of the newest Node seen; on
 * 409 it takes a newer Node and decides again at once. Writes of one drain without trouble:
 *
 *      W1  merge patch      cordon (unless a stranger has), annotation "Cordoned", LB label where absent
 *      W2  status patch     DrainInProgress=True, MaintenanceInProgress=True
 *      W3  merge patch      annotation "Draining"
 *      ..  merge patch      podsLeft, at most every 10 s
 *      W4  merge patch      annotation "Drained", podsLeft 0
 *      W5  status patch     DrainInProgress=False, Drained=True
 *
 * Before that, while an end of the machine is only planned: a status patch with MaintenancePlanned=True.
 *
 * W1 leaves inside node_report_mark() on the urgent lane. What follows waits until the control plane has
 * answered the cordon with its taint, 100 ms at most, so that it is not refused for that. A drain that is
 * faster than its reports skips some of them. Taking off: one merge patch (node_patch_undo()), then one that
 * deletes our conditions.
 *
 * An answer may bring a newer Node than the watch has. If the informer has not come to it within a minute, the report
 * reads the Node: a restored etcd may be at a version that the informer knows, so only a read shows that the answer is void.
 */

#include "agent-metrics.h"
#include "kube-client.h"
#include "node-marks.h"
#include "wakeup.h"

typedef struct NodeReport NodeReport;

typedef struct NodeReportHandler {
        /* W1 is acknowledged: also when it was found to have landed though its answer was lost, and again
         * for a Node that was made anew. sent_usec: loop_now() when it left; claimed: false where a stranger
         * had cordoned before. */
        void (*on_cordoned)(NodeReport *r, usec_t sent_usec, bool claimed, void *userdata);
        /* Our marks are off. uncordoned: the node is schedulable by that. */
        void (*on_undone)(NodeReport *r, bool uncordoned, void *userdata);
        /* A write failed (each time, `first` in a row), and: writes go through again (error NULL). */
        void (*on_api)(NodeReport *r, const ApiError *error, bool first, void *userdata);
        void *userdata;
        /* The Node was read: node_report_view() may show what no watch has brought. May be NULL. */
        void (*on_read)(NodeReport *r, void *userdata);
        /* An answer came, and node_report_is_done() is true. May be NULL. */
        void (*on_done)(NodeReport *r, void *userdata);
} NodeReportHandler;

/* What the agent wants its Node to say. `message` is static. */
typedef struct NodeWish {
        const Notice *notice; /* copied */
        InterruptionPhase phase; /* never INTERRUPTION_PHASE_NONE */
        size_t pods_left;
        DrainConditions conditions;
        const char *message; /* of the conditions */
} NodeWish;

int node_report_new(KubeClient *c, const char *node, const NodeReportHandler *h, NodeReport **ret);
NodeReport *node_report_free(NodeReport *r);
DEFINE_FREEP(NodeReport, node_report_free);

/* What the informer brings; NULL: the Node is gone. */
void node_report_see(NodeReport *r, const KubeNode *node);
/* A list of that resourceVersion shows the Node so. Where no answer is newer than the list this is how it stands, though an
 * answer had a newer Node: etcd was restored. */
void node_report_listed(NodeReport *r, const KubeNode *node, const char *version);
/* The newest Node known, from the informer or an answer; borrowed, NULL if there is none. */
const KubeNode *node_report_view(const NodeReport *r);

/* What is to be said there has been, and stood on the newest Node known; or there is none. */
bool node_report_is_cordoned(const NodeReport *r);
/* The API server has answered about the Node what was asked so lately, or there is none: a watch may have
 * been silent since then. */
bool node_report_is_fresh(const NodeReport *r, usec_t max_age_usec);
/* While marks are to stand there: reads it anew, and again until it is answered; then on_read(). */
void node_report_read(NodeReport *r);

/* Begin, or say something new. The first one sends W1 inside. -ENOMEM: nothing is changed; not for something new about
 * the same notice. */
int node_report_mark(NodeReport *r, const NodeWish *w);
/* As mark(), of marks that stand on the Node already: after a restart. */
int node_report_resume(NodeReport *r, const NodeWish *w);
/* What is planned while nothing is marked (a shutdown on the schedule, a reboot that waits for its slot): said by
 * MaintenancePlanned, taken off when it is planned no more. text: behind "vesper-agent", copied; NULL: nothing is planned.
 * -ENOMEM: nothing is changed. */
int node_report_plan(NodeReport *r, NoticeKind kind, const char *text);

/* Take everything of ours off. */
void node_report_unmark(NodeReport *r);
/* The same after a person un-cordoned: spec.unschedulable is that person's from now on. */
void node_report_overruled(NodeReport *r);
/* All that was wished stands on the Node (so far as it is known), and nothing is under way. */
bool node_report_is_done(const NodeReport *r);
/* A path came back: what waits for its retry goes now. */
void node_report_kick(NodeReport *r);
/* Reports the write or read of the Node that is due. The call is under way, or begins within
 * NODE_REPORT_WAKEUP_USEC, unless the API server asked for a longer pause. Also reports the read that checks
 * a watch that is behind. */
#define NODE_REPORT_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void node_report_next_wakeup(const NodeReport *r, Wakeups *w);
/* Returns true if on_read() will be called: the Node is to be read, or a write of the Node is under way. */
bool node_report_reads(const NodeReport *r);
