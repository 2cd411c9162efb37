/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * cloud-reboot-rule.c: pure. May the cloud be told now to reboot the machine of this node? Its agent takes an announced reboot
 * early, which only a call of the cloud's ends, and that is the coordinator's (cloud-reboots.h). What must be so, all at once:
 *
 *      the request names an event, is of the boot that the Node shows, and its grant stands for CLOUD_REBOOT_REST_USEC at least
 *      the Node is a pool's, is not being deleted, and is cordoned
 *      ANNOTATION_REBOOT_TAKEN has the event: no request for it comes after this one
 *      the agent's interruption is that event's, a reboot, and Drained
 *      the grant is not marked as sent
 */

#include "reboot-slots.h"

#define CLOUD_REBOOT_REST_USEC USEC_PER_MINUTE

typedef enum CloudRebootVerdict {
        CLOUD_REBOOT_NONE,  /* nobody asks for it */
        CLOUD_REBOOT_WAITS, /* for its agent, or it will not be any more */
        CLOUD_REBOOT_SENT,  /* the grant is marked: whoever marked it, and nobody else, may tell the cloud */
        CLOUD_REBOOT_DUE,
} CloudRebootVerdict;

/* c: as this Node has it. *ret_why: static; for WAITS, else NULL. */
CloudRebootVerdict cloud_reboot_judge(const KubeNode *n, const RebootCase *c, usec_t wall_usec, const char **ret_why);
