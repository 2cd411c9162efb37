/* SPDX-License-Identifier: Apache-2.0 */
#include "node-deadline.h"

#include "string-util.h"
#include "termination-marks.h"

/* So long past its grace, on a Node that is not Ready, nothing ends a pod any more. */
#define STUCK_USEC (2 * USEC_PER_MINUTE)

void node_deadline_done(NodeDeadline *d) {
        d->notice_id = mfree(d->notice_id);
}

bool node_deadline_passed(const NodeDeadline *d, usec_t wall_now_usec) {
        return d->at_usec != USEC_INFINITY && wall_now_usec >= d->at_usec;
}

bool node_deadline_is_notice(const NodeDeadline *d) {
        return d->notice_usec < d->claim_usec;
}

bool node_deadline_has_notice(const NodeDeadline *d) {
        return d->notice_id;
}

DrainRules node_deadline_rules(const NodeDeadline *d, const KubeNode *n, ProtectedPolicy policy) {
        return (DrainRules){ .started_usec = n->object.meta.deletion_usec,
                             .deadline_usec = d->at_usec,
                             /* A kubelet that reports is still at work on its pods, however long it takes. */
                             .stuck_after_usec = kube_node_is_ready(n) ? 0 : STUCK_USEC,
                             /* An interruption waits for no pod that opted out, as its agent does not. */
                             .protected_policy = node_deadline_has_notice(d) ? PROTECTED_IGNORE : policy };
}

static void see_notice(NodeDeadline *d, const KubeNode *n) {
        InterruptionMark mark;
        bool stands;
        int r;

        r = interruption_mark_parse(n, &mark);
        if (r < 0 && r != -ENODATA)
                return;
        stands = r >= 0 && mark.ends_machine && !interruption_mark_is_over(&mark);
        if (!stands || !streq_ptr(d->notice_id, mark.id)) {
                d->notice_usec = USEC_INFINITY;
                d->notice_id = mfree(d->notice_id);
        }
        if (stands) {
                d->notice_usec = MIN(d->notice_usec, mark.deadline_usec);
                if (!d->notice_id)
                        d->notice_id = TAKE_PTR(mark.id);
        }
        interruption_mark_done(&mark);
}

bool node_deadline_update(NodeDeadline *d, const KubeNode *n, const KubeNodeClaim *claim,
                          usec_t wall_now_usec) {
        usec_t was = d->at_usec;

        assert(d && n);
        if (claim && claim->object.meta.deletion_usec > 0 && claim->termination_grace_usec != USEC_INFINITY)
                d->claim_usec = MIN(d->claim_usec, usec_add(claim->object.meta.deletion_usec,
                                                            claim->termination_grace_usec));
        see_notice(d, n);
        if (!node_deadline_passed(d, wall_now_usec))
                d->at_usec = MIN(d->claim_usec, d->notice_usec);
        return d->at_usec != was;
}
