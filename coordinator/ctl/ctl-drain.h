/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The drain of one node with a person's credential, in any cluster: reads the Node and whether its pods may
 * be listed, cordons it (conditionally: 409, read again, decide again), then drains it as the coordinator
 * does (node-drain.h), until a consistent list proves it empty. Nothing is undone when it ends, however it
 * ends: the node stays cordoned. Prints nothing.
 *
 * While it drains the Node is watched: whoever makes it schedulable has the last word (CTL_DRAIN_OPENED),
 * and our mark, should he have left it, is taken off.
 *
 * A deletion by the deadline needs `delete` of pods, evictions `create` of pods/eviction; which permission
 * is missing is said by CTL_DRAIN_FAILED, or by the pod that waits for it.
 */

#include "ctl-evictions.h"
#include "ctl-progress.h"

typedef struct CtlDrain CtlDrain;

typedef struct CtlDrainOptions {
        ProtectedPolicy protected_policy;
        usec_t deadline_usec; /* from ctl_drain_new() to T; USEC_INFINITY: none. By T + 30 s at the latest it is over */
        usec_t timeout_usec;  /* from now; USEC_INFINITY: none */
} CtlDrainOptions;

typedef struct CtlDrainHandler {
        /* State, pods left, or why they are: drain_progress of it is another. May not free the drain. */
        void (*on_changed)(CtlDrain *d, void *userdata);
        /* A sentence for people, once: who else drains it, whose cordon it is. */
        void (*on_note)(CtlDrain *d, const char *text, void *userdata);
        void *userdata;
} CtlDrainHandler;

/* All is borrowed but the name and the options. */
int ctl_drain_new(KubeClient *c, CtlEvictions *evictions, const char *node, const CtlDrainOptions *o,
                  const CtlDrainHandler *h, CtlDrain **ret);
/* Stops it at once: what is not yet sent stays unsent. */
CtlDrain *ctl_drain_free(CtlDrain *d);
DEFINE_FREEP(CtlDrain, ctl_drain_free);

/* The budgets are known now, or others. */
void ctl_drain_see_budgets(CtlDrain *d);
/* Borrowed until the next callback. */
DrainProgress ctl_drain_progress(const CtlDrain *d);
