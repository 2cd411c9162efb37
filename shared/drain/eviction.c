/* SPDX-License-Identifier: Apache-2.0 */
#include "eviction.h"

#include "string-util.h"

const char *const eviction_answer_names[_EVICTION_ANSWER_MAX + 1] = {
        [EVICTION_ACCEPTED] = "Evicted",
        [EVICTION_GONE] = "Gone",
        [EVICTION_REPLACED] = "Replaced",
        [EVICTION_BLOCKED_BY_PDB] = "BlockedByPDB",
        [EVICTION_PDB_NOT_OBSERVED] = "PDBNotObserved",
        [EVICTION_PDB_NEVER_ALLOWS] = "PDBNeverAllows",
        [EVICTION_FLOW_CONTROL] = "FlowControl",
        [EVICTION_SEVERAL_PDBS] = "SeveralPDBs",
        [EVICTION_NAMESPACE_TERMINATING] = "NamespaceTerminating",
        [EVICTION_WEBHOOK] = "EvictionWebhook",
        [EVICTION_FORBIDDEN] = "Forbidden",
        [EVICTION_SERVER_BUSY] = "ServerBusy",
        [EVICTION_NO_ANSWER] = "NoAnswer",
        [EVICTION_REFUSED_FOR_GOOD] = "RefusedForGood",
};

const char *eviction_answer_to_string(EvictionAnswer a) {
        return a >= 0 && a < _EVICTION_ANSWER_MAX ? eviction_answer_names[a] : NULL;
}

/* "The disruption budget NAME needs N healthy pods and has M currently": the word after the fixed
 * beginning. */
static char *pdb_from_message(const char *message) {
        const char *name = startswith(strempty(message), "The disruption budget ");
        size_t n;

        if (!name)
                return NULL;
        n = strcspn(name, " ");
        return n == 0 || n > 253 ? NULL : memdup_str(name, n);
}

static char *pdb_from_causes(const ApiError *e) {
        for (size_t i = 0; i < e->n_causes; i++)
                if (streq_ptr(e->causes[i].reason, "DisruptionBudget"))
                        return pdb_from_message(e->causes[i].message);
        return NULL;
}

static EvictionAnswer classify_429(const ApiError *e, char **ret_by) {
        if (!api_error_has_cause(e, "DisruptionBudget"))
                return EVICTION_FLOW_CONTROL;
        if (ret_by)
                *ret_by = pdb_from_causes(e);
        return e->retry_after_usec > 0 ? EVICTION_PDB_NOT_OBSERVED : EVICTION_BLOCKED_BY_PDB;
}

EvictionAnswer eviction_classify(const ApiError *error, char **ret_by) {
        ApiWebhook hook;

        if (ret_by)
                *ret_by = NULL;
        if (!error)
                return EVICTION_ACCEPTED;
        /* Before its status is looked at: a webhook's 409 replaced no pod, its 429 is neither a PDB's nor flow control. */
        if (error->http != 0 && api_error_is_of_webhook(error, &hook)) {
                if (ret_by)
                        *ret_by = memdup_str(hook.name, hook.name_size);
                return EVICTION_WEBHOOK;
        }

        switch (error->http) {
        case 0:
                return EVICTION_NO_ANSWER;
        case 404:
                return EVICTION_GONE;
        case 409:
                return EVICTION_REPLACED;
        case 429:
                return classify_429(error, ret_by);
        case 401:
                return EVICTION_FORBIDDEN;
        case 403:
                return api_error_has_cause(error, "NamespaceTerminating") ? EVICTION_NAMESPACE_TERMINATING
                                                                          : EVICTION_FORBIDDEN;
        case 400:
        case 405:
        case 422:
                return EVICTION_REFUSED_FOR_GOOD;
        case 500:
                return error->message && strstr(error->message, "more than one PodDisruptionBudget")
                               ? EVICTION_SEVERAL_PDBS
                               : EVICTION_SERVER_BUSY;
        default:
                return EVICTION_SERVER_BUSY;
        }
}

const char *eviction_words(const ApiError *error) {
        ApiWebhook hook;

        if (!error)
                return "";
        return error->http != 0 && api_error_is_of_webhook(error, &hook) ? hook.words : strempty(error->message);
}

bool eviction_answer_is_final(EvictionAnswer a) {
        return a == EVICTION_ACCEPTED || a == EVICTION_GONE || a == EVICTION_REPLACED;
}
