/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has the cloud reboot the machines of nodes whose agents take an announced reboot early, and have drained them for it
 * (cloud-reboot-rule.h says when one is due).
 *
 *      due --a describe proves whose machine it is, and that it runs--> a turn at the provider (cloud.h)
 *          --one consistent read of the Node: still due--> its grant is marked as sent --the mark is written--> told, at once
 *
 * Once for each request, and a request is made once for each event: the mark is written, on the very state of the Node that was
 * read, before the cloud is told. What the cloud refused is told again by the same leader while the rest still holds. Where
 * nobody knows whether the cloud took it, nobody tells it again; nor does another leader, who finds the mark. Then the
 * agent undoes its drain after ten minutes, and the event is left to its time.
 *
 * A kubelet may write request and grant of its own Node, as often as it likes. So a leader remembers of each node for which
 * events it has had the machine rebooted, and does that once for each; and of two requests of one node the second is
 * told CLOUD_REBOOT_PACE_USEC after the first at the earliest. That memory is not another leader's.
 */

#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

#define CLOUD_REBOOT_PACE_USEC (10 * USEC_PER_MINUTE)

typedef struct CloudReboots CloudReboots;

int cloud_reboots_new(const TerminationContext *context, WorkQueue *queue, CloudReboots **ret);
CloudReboots *cloud_reboots_free(CloudReboots *c);
DEFINE_FREEP(CloudReboots, cloud_reboots_free);

/* This Node came, changed, went (NULL), or is due again. key: of the work queue, for it. */
void cloud_reboots_see_node(CloudReboots *c, const char *name, const KubeNode *n, const char *key);
/* Reports each request that the cloud has not taken. It is tried again within CLOUD_REBOOT_WAKEUP_USEC,
 * unless the cloud asked for a longer pause. */
#define CLOUD_REBOOT_WAKEUP_USEC (11 * USEC_PER_MINUTE)
void cloud_reboots_next_wakeup(const CloudReboots *c, Wakeups *w);
