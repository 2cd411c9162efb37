/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Grants reboots one after the other: no more than [Budget] MaxConcurrentReboots= nodes hold a slot at once, and none
 * against the NodeDisruptionBudgets that select it: one that they refuse lets others pass, and is asked for again.
 *
 *      waits --its turn, and room--> a patch of the Node --seen in the view--> holds --> free again
 *
 * Their turns come in the order in which this leader saw the requests, which is nothing that a node can choose; who had
 * a slot and let it run out, or carried a grant that no coordinator wrote, comes behind all others until it has rebooted in
 * a slot.
 *
 * One grant is on its way at a time, and counts as held until the view shows what became of it. Before a
 * leader's first grant come what makes it sure of those of the leader before it: half a minute, in which a
 * write that had been on its way lands or never does, and then one consistent list of the nodes, since its
 * own watch may lie behind.
 */

#include "node-termination.h"
#include "object-writes.h"
#include "wakeup.h"

#define REBOOT_GRANTS_KEY "reboots/all"

typedef struct RebootGrants RebootGrants;

/* All borrowed. Looks at every node of the view. */
int reboot_grants_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                      RebootGrants **ret);
RebootGrants *reboot_grants_free(RebootGrants *g);
DEFINE_FREEP(RebootGrants, reboot_grants_free);

/* This Node came, changed or went (NULL). Marks REBOOT_GRANTS_KEY where that matters. */
void reboot_grants_see_node(RebootGrants *g, const char *name, const KubeNode *n);
/* A NodeDisruptionBudget came, changed or went: asks again for a request that was refused. */
void reboot_grants_budgets_changed(RebootGrants *g);
/* REBOOT_GRANTS_KEY is due. */
void reboot_grants_reconcile(RebootGrants *g);

/* Returns true if the request of that id holds a slot of the node, is being granted one, or waits for its
 * budgets. */
bool reboot_grants_has_slot(const RebootGrants *g, const char *node, const char *id);

/* Nodes that hold a slot now, and that wait for one. */
void reboot_grants_count(const RebootGrants *g, size_t *ret_held, size_t *ret_waiting);
/* Reports the next grant, if a node waits and a slot is free, and each slot that ends by time alone.
 * REBOOT_GRANTS_KEY is reconciled again within REBOOT_GRANTS_WAKEUP_USEC while a grant is due. */
#define REBOOT_GRANTS_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void reboot_grants_next_wakeup(const RebootGrants *g, Wakeups *w);
