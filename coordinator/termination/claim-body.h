/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A new NodeClaim of a pool, as it is created. */

#include "json.h"
#include "kube-kinds.h"

/* {... "spec": { "nodePool": ...: the caller adds the rest of the spec, and closes. NULL on ENOMEM. */
JsonWriter *claim_body_open(const KubeNodePool *pool, const char *name);
/* Adds what a new claim takes over from its pool. Frees w. NULL on ENOMEM. */
char *claim_body_close(JsonWriter *w, const KubeNodePool *pool);
