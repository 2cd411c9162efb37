/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A NodeClaim that a person has made, without a NodePool: it adopts the Node that has its providerID, as a pool's would
 * (adoption.h), and its terminationGracePeriod is that Node's. It does so only while nothing is in doubt: no other claim
 * names this machine, one Node has it, and a provider of this coordinator can end it. Otherwise nothing is done for it,
 * and its condition vesper.sh/NotAdopted says why. A pool's claim goes before a person's; of two persons' claims
 * the one that is adopted already goes on, and if none is, none will be until one of them is deleted.
 *
 * What was adopted once is asked no more of this but whether it has a rival. Its deletion removes the node; it is
 * released by ANNOTATION_UNMANAGED on the Node, and then stays, not adopted.
 */

#include "cloud-registry.h"
#include "cluster-view.h"

/* Why this claim is not acted on: "ClaimOfPool", "ClaimsConflict", "NodeNotFound", "SeveralNodes", "OtherNode",
 * "NodeDeleted", "NodeUnmanaged", "ForeignMachine", "OtherProvider"; *ret_message: a sentence for people, free it (NULL on
 * ENOMEM). NULL: it is a pool's, or it is adopted, or may be. Pure. */
const char *standalone_refusal(const ClusterView *view, const CloudRegistry *cloud, const KubeNodeClaim *claim,
                               char **ret_message);
/* The patch of its status that says so. 1, 0: it is said already, -ENOMEM. Pure. */
int standalone_refusal_patch(const KubeNodeClaim *claim, const char *reason, const char *message, usec_t wall_now_usec,
                             char **ret_body);
