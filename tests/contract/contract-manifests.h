/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fake-cluster.h"

/* Gives the fake what `kubectl apply` of packaging/manifests gives a real API server: the schemas of the
 * CRDs, and the rules of each ClusterRole and Role of the coordinator for the ServiceAccount of the same
 * name. Prints why it could not. */
int contract_manifests_apply(const char *folder, FakeCluster *cluster);
