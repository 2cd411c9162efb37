/* SPDX-License-Identifier: Apache-2.0 */
#include "blocked-by.h"

#include "string-util.h"

/* A pod that ends in time blocks nothing. */
#define OVERDUE_USEC USEC_PER_MINUTE

const char *const blocked_by_names[_BLOCKED_BY_MAX + 1] = {
        [BLOCKED_BY_BUDGET] = WAITING_FOR_BUDGET,
        [BLOCKED_BY_PAUSE] = REMOVAL_PAUSED,
        [BLOCKED_BY_PROTECTED] = "Protected",
        [BLOCKED_BY_PDB] = "BlockedByPDB",
        [BLOCKED_BY_PDB_NOT_OBSERVED] = "PDBNotObserved",
        [BLOCKED_BY_SEVERAL_PDBS] = "SeveralPDBs",
        [BLOCKED_BY_FLOW_CONTROL] = "FlowControl",
        [BLOCKED_BY_NAMESPACE_TERMINATING] = "NamespaceTerminating",
        [BLOCKED_BY_EVICTION_WEBHOOK] = "EvictionWebhook",
        [BLOCKED_BY_FORBIDDEN] = "Forbidden",
        [BLOCKED_BY_SERVER_BUSY] = "ServerBusy",
        [BLOCKED_BY_NO_ANSWER] = "NoAnswer",
        [BLOCKED_BY_REFUSED_FOR_GOOD] = "RefusedForGood",
        [BLOCKED_BY_DELETE_FAILED] = "DeleteFailed",
        [BLOCKED_BY_TERMINATING] = "Terminating",
        [BLOCKED_BY_VOLUMES_ATTACHED] = VOLUMES_ATTACHED,
        [BLOCKED_BY_DRAIN_UNPROVED] = "DrainUnproved",
        [BLOCKED_BY_TERMINATION_PROTECTED] = "TerminationProtected",
        [BLOCKED_BY_CLOUD_DENIED] = "CloudDenied",
        [BLOCKED_BY_CLOUD_UNAVAILABLE] = "CloudUnavailable",
        [BLOCKED_BY_CLOUD_REFUSED] = "CloudRefused",
        [BLOCKED_BY_CLOUD_UNKNOWN] = "CloudUnknown",
        [BLOCKED_BY_MACHINE_SHARED] = "MachineShared",
        [BLOCKED_BY_MACHINE_OF_ANOTHER] = "MachineOfAnother",
        [BLOCKED_BY_MACHINE_MISSING] = "MachineMissing",
        [BLOCKED_BY_IDENTITY_UNPROVED] = "IdentityUnproved",
        [BLOCKED_BY_OTHER] = "Other",
};

BlockedBy blocked_by_from_reason(const char *reason) {
        for (BlockedBy i = 0; i < BLOCKED_BY_OTHER; i++)
                if (streq(reason, blocked_by_names[i]))
                        return i;
        return BLOCKED_BY_OTHER;
}

/* What goes on by itself, or waits for another pod, which is counted. */
static bool goes_on(const char *reason) {
        static const char *const reasons[] = { "Waiting", "Evicting", "WaitingForPDB", "WaitingForOthers",
                                               "WaitingForProtected" };

        for (size_t i = 0; i < ELEMENTSOF(reasons); i++)
                if (streq(reason, reasons[i]))
                        return true;
        return false;
}

void blocked_by_pod(const DrainBlocker *b, usec_t wall_now_usec, bool by[_BLOCKED_BY_MAX]) {
        BlockedBy i;

        if (goes_on(b->reason))
                return;
        i = blocked_by_from_reason(b->reason);
        if (i != BLOCKED_BY_TERMINATING || wall_now_usec > usec_add(b->end_usec, OVERDUE_USEC))
                by[i] = true;
}
