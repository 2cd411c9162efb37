/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption-due.h"

#include "heard-rule.h"
#include "interruption.h"

/* T is to be the notice's time: a shorter terminationGracePeriod must not begin so early that it takes from what the notice
 * leaves. before_usec: so far ahead of it at most. */
static usec_t due_by_notice(const Notice *notice, const KubeNodeClaim *claim, usec_t before_usec) {
        usec_t end = notice_announced(notice), ahead = MIN(claim->termination_grace_usec, before_usec);

        return end == USEC_INFINITY || ahead == USEC_INFINITY ? 0 : usec_sub(end, ahead);
}

/* A scale-in makes the group smaller on purpose, and after a capacity block there is no such machine to be had. */
static bool notice_replaces(const Notice *n) {
        return n->kind == NOTICE_SPOT || (n->kind == NOTICE_MAINTENANCE && notice_ends_machine(n));
}

static void note(InterruptionDue *due, const Notice *notice, usec_t at_usec) {
        due->at_usec = MIN(due->at_usec, at_usec);
        due->replaces = due->replaces || notice_replaces(notice);
}

InterruptionDue interruption_due(const CoordinatorConfig *config, const KubeNode *n, const KubeNodeClaim *claim) {
        InterruptionDelete deletes = (InterruptionDelete) config->interruption_delete;
        const Interruption *seen = kube_node_interruption(n);
        InterruptionDue due = { .at_usec = USEC_INFINITY };

        if (seen && !interruption_is_over(seen) && interruption_delete_counts(deletes, seen->notice))
                note(&due, seen->notice, due_by_notice(seen->notice, claim, USEC_INFINITY)); /* its agent has waited as [Policy] says */
        for (size_t i = 0; i < claim->announced.n_items; i++) {
                const Announced *told = claim->announced.items + i;
                usec_t before = told->notice->kind == NOTICE_MAINTENANCE ? config->interruption_before_usec : USEC_INFINITY;

                /* A person who has opened the node again, in spite of its agent, has answered the queue's notice of the same
                 * end as well. */
                if (told->state == ANNOUNCED_STANDS && interruption_delete_counts(deletes, told->notice) &&
                    !heard_is_agent_overruled(seen, told->notice))
                        note(&due, told->notice, due_by_notice(told->notice, claim, before));
        }
        return due;
}
