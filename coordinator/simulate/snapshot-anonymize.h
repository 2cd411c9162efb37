/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A snapshot that can be shown to others: the names of nodes, pods, namespaces, volumes, pools and owners, uids, keys and values
 * of labels, taints and their tolerations, addresses, volumes' drivers and extended resources are replaced by made-up ones, everywhere by the same, so that
 * each simulation of it ends as one of the original does. What is kept, because a meaning hangs on it:
 *
 *      keys             that Kubernetes, vesper, Karpenter and the Cluster Autoscaler give a meaning, such as
 *                       topology.kubernetes.io/zone; resources of Kubernetes' own (cpu, memory, pods, ephemeral-storage, hugepages-)
 *      values           empty ones, "true" and "false", what capacity is called (spot, on-demand); whole numbers of labels and taints that somewhere are compared by Gt or Lt
 *      annotations      such as opt-outs, with values that are flags, numbers, durations or times
 *      order            made-up names sort as the originals do, for simulations go by the order of names
 *      quantities, ports, times, phases, types and states of Kubernetes' conditions, kinds of owners that are Kubernetes' own
 *
 * Left out are reasons and messages of conditions, a pool's rules of repair, blockers, and whatever a line of the file has that
 * is not known here: nothing passes because somebody forgot it.
 */

#include "snapshot.h"

/* A snapshot of its own, of the same pool. -ENOMEM. */
int snapshot_anonymize(const Snapshot *s, Snapshot **ret);
