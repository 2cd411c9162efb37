/* SPDX-License-Identifier: Apache-2.0 */
#include "blocked-by.h"

#include "string-util.h"

/* A pod that ends in time blocks nothing. */
#define OVERDUE_USEC USEC_PER_MINUTE

const char *const blocked_by_names[_BLOCKED_BY_MAX + 1] = {
        [BLOCKED_BY_BUDGET] = WAITING_FOR_BUDGET,
        [BLOCKED_BY_PAUSE] = REMOVAL_PAUSED,
        [BLOCKED_BY_PROTECTED] = POD_WAIT_NAME_PROTECTED,
        [BLOCKED_BY_PDB] = POD_WAIT_NAME_PDB,
        [BLOCKED_BY_PDB_NEVER] = POD_WAIT_NAME_PDB_NEVER,
        [BLOCKED_BY_PDB_SYNC_FAILED] = POD_WAIT_NAME_PDB_SYNC_FAILED,
        [BLOCKED_BY_PDB_NOT_OBSERVED] = POD_WAIT_NAME_PDB_NOT_OBSERVED,
        [BLOCKED_BY_SEVERAL_PDBS] = POD_WAIT_NAME_SEVERAL_PDBS,
        [BLOCKED_BY_FLOW_CONTROL] = POD_WAIT_NAME_FLOW_CONTROL,
        [BLOCKED_BY_NAMESPACE_TERMINATING] = POD_WAIT_NAME_NAMESPACE,
        [BLOCKED_BY_EVICTION_WEBHOOK] = POD_WAIT_NAME_WEBHOOK,
        [BLOCKED_BY_WITHOUT_EFFECT] = POD_WAIT_NAME_WITHOUT_EFFECT,
        [BLOCKED_BY_FORBIDDEN] = POD_WAIT_NAME_FORBIDDEN,
        [BLOCKED_BY_SERVER_BUSY] = POD_WAIT_NAME_SERVER_BUSY,
        [BLOCKED_BY_NO_ANSWER] = POD_WAIT_NAME_NO_ANSWER,
        [BLOCKED_BY_REFUSED_FOR_GOOD] = POD_WAIT_NAME_REFUSED_FOR_GOOD,
        [BLOCKED_BY_DELETE_FAILED] = POD_WAIT_NAME_DELETE_FAILED,
        [BLOCKED_BY_TERMINATING] = POD_WAIT_NAME_TERMINATING,
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

void blocked_by_pod(const DrainBlocker *b, usec_t wall_now_usec, bool by[_BLOCKED_BY_MAX]) {
        BlockedBy i;

        if (pod_wait_is_turn(b->wait))
                return;
        i = blocked_by_from_reason(pod_wait_to_string(b->wait));
        if (i != BLOCKED_BY_TERMINATING || wall_now_usec > usec_add(b->end_usec, OVERDUE_USEC))
                by[i] = true;
}
