/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In how many rounds PodDisruptionBudgets let the pods of some nodes go, and how long that takes: a budget that allows two
 * lets five pods go in three waves, the later ones when successors of the earlier are Ready.
 */

#include "disruption-scene.h"

/* So long a successor is taken to need until it is Ready. */
#define SUCCESSOR_USEC (30 * USEC_PER_SEC)

typedef struct DrainEstimate {
        size_t n_waves;             /* 0: no pod moves */
        size_t n_pods;              /* in all of them */
        const DisruptionPdb *pdb;   /* narrowest: one that allows none now, else the one of most waves; NULL: all let all pods go at once */
        bool is_endless;            /* one allows none now, as things stand */
        usec_t usec;                /* at most about so long: waves, each with the longest grace period; USEC_INFINITY: too long to tell */
} DrainEstimate;

/* 0 or -ENOMEM. */
int drain_estimate(const DisruptionScene *s, const uint32_t *nodes, size_t n, DrainEstimate *ret);
/* Does it keep this pod, which it selects, from being evicted without asking? */
bool pdb_is_asked(const DisruptionPdb *pdb, const KubePod *pod);
