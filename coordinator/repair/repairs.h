/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Repairs of adopted nodes, while we lead:
 *
 *      a rule's time is up (repair-sight.h) --> our view is healthy --> the brake admits it (repair-brake.h)
 *              --> Replace: of a node that is Ready its NodeDisruptionBudgets do --> the Node is deleted
 *              --> Reboot: the claim is annotated with the boot id that is to end (ANNOTATION_REBOOTED_FOR_REPAIR)
 *                      --> the Node is annotated with it (ANNOTATION_REBOOT_FOR_REPAIR), as a request to its agent
 *
 * A reboot is the agent's: it asks for a slot, which the budgets grant (reboot/), drains and reboots. An agent that has
 * not asked within REPAIR_TAKEN_UP_USEC is away, and the repair has failed. The request is taken off the Node when the
 * repair has ended, with another boot id, and by a new leader, who counts anew.
 *
 * A node is rebooted once for what it shows. The coordinator writes the record of that on the claim, where no kubelet may write,
 * and before the request: a node that shows another boot id than its claim was rebooted. A leader whose view of the claim is old
 * cannot write there, and asks for no reboot. For a node that was rebooted, and for one whose reboot has failed under this leader,
 * rules that say Reboot are passed over, and the next one decides. The coordinator takes the record off when it has seen the
 * node well (Ready, and no rule with an action is about what it shows) for REPAIR_PROOF_USEC.
 *
 * A reboot is taken back when a person vetoes it or cordons the node, when the node is well by itself, and when no rule asks for it
 * any more: the request is taken off the Node, and the agent, which reads the Node once more before it reboots, withdraws.
 * The repair gives its place under the brake back once the node holds no slot: until then its machine may be about to reboot.
 *
 * A replaced node goes from there as any deleted one. It is deleted in the very state in which it was judged (resourceVersion), so
 * that a kubelet which has reported since has the last word. Left alone are nodes that are being deleted, interrupted, in a
 * slot to reboot, or under a person's veto (repair_is_vetoed()). A repair waits while its pool is paused (pauses.h), and while a person
 * has cordoned the node (repair_is_cordoned_by_a_person()). Before a node that is not Ready is replaced, the coordinator asks the provider
 * about its machine, and waits while that is off or the provider does not answer. A replacement is announced with an Event when two thirds
 * of the rule's time are over; where something held that, it begins a minute after the Event at the earliest.
 *
 * Nothing is repaired while our own view is not healthy, as what ails all nodes at once is more often between them and us:
 * a watch is down, or no Node's heartbeat has moved for REPAIR_HEARTBEAT_USEC (kubelets write one every five minutes at
 * least); nor until the node was seen for REPAIR_SIGHT_USEC, or as long as its rule says, since that has ended, where
 * it lasted: kubelets must have had the time to report again. What waits, and for what, stands in the condition RepairHeld of its pool.
 */

#include "pool-status.h"
#include "successors.h"
#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

#define REPAIRS_KEY "repairs/all"
#define REPAIR_HEARTBEAT_USEC (10 * USEC_PER_MINUTE)
#define REPAIR_TAKEN_UP_USEC (5 * USEC_PER_MINUTE)

typedef enum RepairOutcome {
        REPAIR_BEGUN,
        REPAIR_PROVED,
        REPAIR_FAILED,
        _REPAIR_OUTCOME_MAX,
} RepairOutcome;

/* "begun"; NULL behind the last. */
extern const char *const repair_outcome_names[_REPAIR_OUTCOME_MAX + 1];

typedef struct Repairs Repairs;

/* All borrowed. Looks at every node of the view. */
/* successors: borrowed. */
int repairs_new(const TerminationContext *context, WorkQueue *queue, PoolStatuses *pool_statuses, Successors *successors,
                Repairs **ret);
Repairs *repairs_free(Repairs *r);
DEFINE_FREEP(Repairs, repairs_free);

/* From the view: a Node came (old NULL), changed, or went (new NULL). */
void repairs_on_node(Repairs *r, const KubeNode *old, const KubeNode *new);
/* All watches stand, or not. */
void repairs_view_changed(Repairs *r, bool stands);
/* This Node, its claim or its pool may have changed, or it is gone (NULL). Marks REPAIRS_KEY where that matters. */
void repairs_see_node(Repairs *r, const char *name, const KubeNode *n);
/* REPAIRS_KEY is due. */
void repairs_reconcile(Repairs *r);

/* Returns true if a repair has deleted the Node, and is neither proved nor failed. */
bool repairs_has_deleted(const Repairs *r, const char *node_uid);
/* Nodes that are to be repaired and wait, and repairs that are not proved yet. */
void repairs_count(const Repairs *r, size_t *ret_waiting, size_t *ret_under_way);
/* Reports each unhealthy node for which a repair rule will be due, each describe of a machine, and the proof
 * of repairs. A node is evaluated within REPAIRS_WAKEUP_USEC from the time when its rule is due. The proof
 * is evaluated within REPAIRS_PROOF_WAKEUP_USEC while a repair is under way. */
#define REPAIRS_WAKEUP_USEC (35 * USEC_PER_SEC)
#define REPAIRS_PROOF_WAKEUP_USEC USEC_PER_HOUR
void repairs_next_wakeup(const Repairs *r, Wakeups *w);
