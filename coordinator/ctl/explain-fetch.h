/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Fetches the objects of ExplainFacts, in rounds. The calls of one round are made together:
 *
 *      0. the NodeClaim, if it was asked for by its own name, which names the Node
 *      1. the Node, its pods, NodePools, NodeDisruptionBudgets, the coordinator's Lease and its namespace,
 *         the webhook's configuration
 *      2. the Node's NodeClaim, by the name that each NodePool would give it; the PDBs of its pods'
 *         namespaces; the webhook's Service
 *      3. all NodeClaims, if round 2 has not found the NodeClaim and there should be one
 *      4. VolumeAttachments, if the NodeClaim waits for them; all NodeClaims, if it has a successor or is one
 *      5. the successor's Node
 *
 * ExplainFacts.unknown names each object that is missing or must not be read. The fetch goes on without it.
 * If there is no Node of a name, and a NodeClaim has it, all begins anew with that NodeClaim.
 */

#include "explain.h"
#include "kube-client.h"

typedef struct ExplainFetch ExplainFetch;

/* message NULL: facts are there, the caller's from here on. Else it says what failed, for a person: the Node could not be read,
 * or there was no memory; facts is empty. */
typedef void (*explain_fetched_t)(const char *message, ExplainFacts *facts, void *userdata);

/* Texts are borrowed until `done`, and by the facts. */
/* name: "NODE", "node/NODE" or "nodeclaim/NODECLAIM". */
int explain_fetch_new(KubeClient *c, const char *name, const char *lease_ns, const char *lease_name, explain_fetched_t done,
                      void *userdata, ExplainFetch **ret);
ExplainFetch *explain_fetch_free(ExplainFetch *f);
DEFINE_FREEP(ExplainFetch, explain_fetch_free);
