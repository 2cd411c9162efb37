/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all drains of one command share: the evictor, and the PodDisruptionBudgets of the cluster, by whose
 * status it is gated. Where they may not be listed the evictor goes on without: it then probes, one pod of a
 * budget at a time.
 */

#include "evictor.h"

typedef struct CtlEvictions CtlEvictions;

typedef struct CtlEvictionsHandler {
        /* Once, from the loop: the budgets are known, or will not be. why_not: NULL, or for people. */
        void (*on_ready)(const char *why_not, void *userdata);
        /* Other pods than before are held by a budget: drains look at theirs again. */
        void (*on_budgets_changed)(void *userdata);
        void *userdata;
} CtlEvictionsHandler;

int ctl_evictions_new(KubeClient *c, const CtlEvictionsHandler *h, CtlEvictions **ret);
CtlEvictions *ctl_evictions_free(CtlEvictions *e); /* all drains must be freed before */
DEFINE_FREEP(CtlEvictions, ctl_evictions_free);

bool ctl_evictions_are_ready(const CtlEvictions *e);
Evictor *ctl_evictions_evictor(const CtlEvictions *e);
/* The one budget that the API server would ask about this pod, borrowed; NULL: none, several, or nobody
 * knows. */
const KubePdb *ctl_evictions_pdb_of(const CtlEvictions *e, const KubePod *pod);
