/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A cluster of the size that hurts: many objects made from one, and a stream of changes to pods as kubelets
 * cause it.
 */

#include "fake-cluster.h"

/* {"count": N, "per": P, "among": M, "object": {...}}: N copies of the object, number 0 to N - 1. In its
 * strings %i stands for the number, %g for number / P, %m for number % M, each with six digits (P and M are 1
 * if left out). Number made; -EINVAL: no object of a kind that is served, or without a name. */
int fake_load_many(FakeCluster *c, const cJSON *many);

typedef struct FakeChurn FakeChurn;

FakeChurn *fake_churn_new(FakeCluster *c);
FakeChurn *fake_churn_free(FakeChurn *h);
DEFINE_FREEP(FakeChurn, fake_churn_free);
/* For so long, containers of pods here and there are restarted, so many a second: a write and an event each. A
 * later start replaces an earlier one. */
void fake_churn_start(FakeChurn *h, uint64_t per_second, usec_t duration_usec);
/* Changes since the last start. */
uint64_t fake_churn_done(const FakeChurn *h);
