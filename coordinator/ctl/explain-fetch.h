/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Brings the objects of ExplainFacts, in four rounds of calls that are made together:
 *
 *      the Node, its pods, NodePools, NodeDisruptionBudgets, Lease and its namespace, the webhook's configuration
 *      its NodeClaim, by the name that each NodePool would give it; the PDBs of its pods' namespaces; the webhook's Service
 *      all NodeClaims, where none was found so and there should be one
 *      VolumeAttachments, where its NodeClaim waits for them
 *
 * What may not be read, or is not there, is said in ExplainFacts.unknown, and the rest goes on.
 */

#include "explain.h"
#include "kube-client.h"

typedef struct ExplainFetch ExplainFetch;

/* message NULL: facts are there, the caller's from here on. Else it says what failed, for a person: the Node could not be read,
 * or there was no memory; facts is empty. */
typedef void (*explain_fetched_t)(const char *message, ExplainFacts *facts, void *userdata);

/* Texts are borrowed until `done`, and by the facts. */
int explain_fetch_new(KubeClient *c, const char *node, const char *lease_ns, const char *lease_name, explain_fetched_t done,
                      void *userdata, ExplainFetch **ret);
ExplainFetch *explain_fetch_free(ExplainFetch *f);
DEFINE_FREEP(ExplainFetch, explain_fetch_free);
