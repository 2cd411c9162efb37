/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What one answer to one eviction means: by code AND cause (reference:
 * pkg/registry/core/pod/storage/eviction.go). Pure. */

#include "api-error.h"

typedef enum EvictionAnswer {
        EVICTION_ACCEPTED,              /* 2xx: the delete was accepted; the pod may still be terminating */
        EVICTION_GONE,                  /* 404 */
        EVICTION_REPLACED,              /* 409: another pod has this name now */
        EVICTION_BLOCKED_BY_PDB,        /* 429 with cause DisruptionBudget; the PDB is named */
        EVICTION_PDB_NOT_OBSERVED,      /* the same with Retry-After: its controller has not looked yet */
        EVICTION_PDB_NEVER_ALLOWS,      /* one of the last two, to the request of every five minutes for a pod whose PDB never allows (evictor.h) */
        EVICTION_FLOW_CONTROL,          /* 429 without that cause: the API server protects itself */
        EVICTION_SEVERAL_PDBS,          /* 500: more than one PDB matches; permanent until somebody edits */
        EVICTION_NAMESPACE_TERMINATING, /* 403 with that cause: it goes with its namespace */
        EVICTION_WEBHOOK,               /* any status: an admission webhook refused it, or could not be called; it is named */
        EVICTION_FORBIDDEN,             /* 401, other 403: credential, RBAC */
        EVICTION_SERVER_BUSY,           /* 500, 503, 504 and others: try again */
        /* transport: it may have taken effect; asking again is harmless (uid) */
        EVICTION_NO_ANSWER,
        EVICTION_REFUSED_FOR_GOOD, /* 400, 405, 422: our request is wrong for this server */
        _EVICTION_ANSWER_MAX,
        _EVICTION_ANSWER_INVALID = -EINVAL,
} EvictionAnswer;

/* "Evicted", "BlockedByPDB": PascalCase, as reasons are written; in logs, Events and metrics. NULL behind the last. */
extern const char *const eviction_answer_names[_EVICTION_ANSWER_MAX + 1];
const char *eviction_answer_to_string(EvictionAnswer a);

/* error NULL: success. *ret_by (if wanted): who refused it, by the name that the server wrote: for the two PDB answers the PDB, for
 * WEBHOOK the webhook, else NULL; free it. -ENOMEM is answered as no name. */
EvictionAnswer eviction_classify(const ApiError *error, char **ret_by);
/* What to tell people of it, borrowed from the error: a webhook's own words, else the server's; "" for NULL. */
const char *eviction_words(const ApiError *error);
/* The pod need not be asked about again. */
bool eviction_answer_is_final(EvictionAnswer a);
