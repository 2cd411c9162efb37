/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Leader election on a coordination.k8s.io/v1 Lease, to the letter of client-go's rules (reference: client-go
 * tools/leaderelection): observedRecord with its raw bytes, observedTime by the local boot-time clock, remote timestamps used
 * only as change detectors. Lease 15 s, renew deadline 10 s, retry 2 s. Unknown spec fields are kept on PUT.
 *
 *      STANDBY --try ok--> LEADING --deadline passed, or 409 and another holder--> STANDBY
 *
 * leader_guard() answers whether a guarded call may still be *sent*: only while loop_now() is before the end of the lease as
 * this process knows it (renew request's start + lease duration), which is stricter than "on_stopped was called". Stricter than
 * client-go, too: a read that shows the Lease deleted, cleared or held by another ends the leading at once, and the try then
 * goes on as any candidate's.
 */

#include "kube-client.h"
#include "wakeup.h"

typedef struct LeaderElector LeaderElector;

typedef struct LeaderConfig {
        const char *ns, *name;   /* of the Lease */
        const char *identity;    /* of this process alone: two of one identity both lead. A restarted process
                                    must have a new one */
        /* 0: 15 s, 10 s, 2 s; lease (in whole seconds) > deadline > 1.2 * retry, else -EINVAL. */
        usec_t lease_usec, renew_deadline_usec, retry_usec;
} LeaderConfig;

/* None of them may free the elector; each may release it. */
typedef struct LeaderHandler {
        void (*on_started)(void *userdata);                  /* we lead */
        void (*on_stopped)(const char *why, void *userdata); /* we do not lead any more: stop guarded work at once */
        void (*on_observed)(const char *holder, void *userdata); /* another holder was seen; may be NULL */
        void *userdata;
} LeaderHandler;

int leader_elector_new(KubeClient *c, const LeaderConfig *config, const LeaderHandler *h, LeaderElector **ret);
LeaderElector *leader_elector_free(LeaderElector *e); /* does not release */
DEFINE_FREEP(LeaderElector, leader_elector_free);
void leader_elector_start(LeaderElector *e); /* once */
bool leader_elector_is_leader(const LeaderElector *e);
HttpGuard leader_elector_guard(LeaderElector *e);
/* Only after guarded work ended: gives the Lease up (holder "", duration 1) so that the next one need not wait; `done` is
 * called from the loop in any case within 2 s, and may free the elector. The guard says no at once; on_stopped is not called;
 * the elector stands for election no more. Not while a release is under way. */
void leader_elector_step_down(LeaderElector *e, void (*done)(void *userdata), void *userdata);
const char *leader_elector_holder(const LeaderElector *e); /* last seen; "" if none */
/* Reports the Lease. A read or write is under way, or the timer of the next try is due within
 * LEADER_WAKEUP_USEC. While this process leads, or gives the Lease up, the timer of the latest end is
 * reported, too. */
#define LEADER_WAKEUP_USEC (30 * USEC_PER_SEC)
void leader_elector_next_wakeup(const LeaderElector *e, Wakeups *w);
