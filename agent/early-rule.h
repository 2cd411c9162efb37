/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * early-rule.c: pure. Which announced reboot is taken before its time, and which event may be acknowledged.
 *
 * A reboot is taken early only where that ends what was announced (Notice.early):
 *
 *      EC2, system-reboot      a reboot by EC2's API moves the instance to another host. That call is the coordinator's, for
 *                              nodes of a NodePool. (The event of an instance-reboot stays open, whoever reboots.)
 *      Azure, Reboot           its acknowledgement, where it names this VM alone and [Metadata] Acknowledge= allows it
 *      [File], [Command]       the machine's own reboot: who announced it looks for that
 *
 * and once for each event: one that has been taken stands in ANNOTATION_REBOOT_TAKEN, and if it goes on all the same it is left
 * to its time.
 *
 * An acknowledgement begins an event for all machines that it names. It is sent only for what names this machine alone, or
 * while the Node carries ANNOTATION_ACK_OK of that event, which the coordinator puts there when all its machines are drained; and only
 * after the node has been drained for that event, as a read of the Node just now shows.
 */

#include "agent-config.h"
#include "kube-kinds.h"

typedef struct EarlyFacts {
        bool wanted;    /* [Policy] Reboot=early, and no dry run */
        int acknowledge; /* an Acknowledge */
        bool has_bus;   /* logind can be told */
        bool is_due;    /* its own rule has it acted upon by now */
        bool is_refused; /* it was asked for and came to nothing, and is not asked for again yet */
        const KubeNode *node;
} EarlyFacts;

/* NULL: it may be taken; else why it is left to its time (static, for people). */
const char *early_why_left(const Notice *n, const EarlyFacts *facts);
/* It has been taken, and goes on. */
bool early_was_taken(const Notice *n, const KubeNode *node);

/* NULL: this event, as its source shows it now, may be acknowledged once the node is drained for it; else why not (static).
 * node: as far as it is known. */
const char *acknowledge_why_not(const Notice *n, int acknowledge, const KubeNode *node);
/* NULL: so this node is drained for it, as that read of the Node says; else why not. */
const char *acknowledge_why_not_drained(const Notice *n, const KubeNode *node, const char *boot_id);
