/* SPDX-License-Identifier: Apache-2.0 */
#include "node-deadline.h"

#include "interruption.h"
#include "marks.h"
#include "string-util.h"

/* So long past its grace, on a Node that is not Ready, nothing ends a pod any more. */
#define STUCK_USEC (2 * USEC_PER_MINUTE)

void node_deadline_done(NodeDeadline *d) {
        d->notice_id = mfree(d->notice_id);
}

bool node_deadline_passed(const NodeDeadline *d, usec_t wall_now_usec) {
        return d->at_usec != USEC_INFINITY && wall_now_usec >= d->at_usec;
}

const char *node_deadline_source(const NodeDeadline *d) {
        usec_t told = MIN(d->notice_usec, d->heard_usec);

        if (d->forced_usec < MIN(d->claim_usec, told))
                return "the annotation " ANNOTATION_FORCE_DEADLINE " of its NodeClaim";
        if (told >= d->claim_usec)
                return "its NodeClaim's terminationGracePeriod";
        return d->heard_usec < d->notice_usec ? "the interruption that the queue told of" : "the interruption its agent saw";
}

bool node_deadline_has_notice(const NodeDeadline *d) {
        return d->notice_id || d->is_heard;
}

DrainRules node_deadline_rules(const NodeDeadline *d, const KubeNode *n, ProtectedPolicy policy) {
        return (DrainRules){ .deadline_usec = d->at_usec,
                             /* A kubelet that reports is still at work on its pods, however long it takes. */
                             .stuck_after_usec = kube_node_is_ready(n) ? 0 : STUCK_USEC,
                             /* An interruption waits for no pod that opted out, as its agent does not. */
                             .protected_policy = node_deadline_has_notice(d) ? PROTECTED_IGNORE : policy };
}

static void see_notice(NodeDeadline *d, const KubeNode *n) {
        const Interruption *i = kube_node_standing_interruption(n);
        bool stands = i && notice_ends_machine(i->notice);

        if (n->interruption_is_unreadable)
                return;
        if (!stands || !streq_ptr(d->notice_id, i->notice->id)) {
                d->notice_usec = USEC_INFINITY;
                d->notice_id = mfree(d->notice_id);
        }
        if (!stands)
                return;
        d->notice_usec = MIN(d->notice_usec, notice_announced(i->notice));
        if (!d->notice_id)
                d->notice_id = strdup(i->notice->id);
}

/* A notice that the brake of the queue holds (queue-brake.h) gives no deadline until it is confirmed. */
static bool gives_deadline(const KubeNodeClaim *claim, const Announced *a) {
        return a->state == ANNOUNCED_STANDS || announced_is_let_go(a, claim->let_go_usec);
}

/* Takes the earliest time of the notices that stand: one that AWS calls off takes only its own time away. Far ones make no haste yet. */
static void see_heard(NodeDeadline *d, const KubeNodeClaim *claim, usec_t wall_now_usec) {
        d->is_heard = false;
        d->heard_usec = USEC_INFINITY;
        for (size_t i = 0; i < claim->announced.n_items; i++) {
                const Notice *notice = claim->announced.items[i].notice;

                if (!gives_deadline(claim, claim->announced.items + i) || !(notice_ends_machine(notice) || notice->kind == NOTICE_MAINTENANCE))
                        continue;
                /* The machine has come back from it. */
                if (!notice_ends_for_good(notice) && notice_announced(notice) <= claim->object.meta.deletion_usec)
                        continue;
                d->is_heard = d->is_heard || notice_announced(notice) == USEC_INFINITY || notice_announced(notice) <= usec_add(wall_now_usec, HEARD_SOON_USEC);
                d->heard_usec = MIN(d->heard_usec, notice_announced(notice));
        }
}

bool node_deadline_update(NodeDeadline *d, const KubeNode *n, const KubeNodeClaim *claim,
                          usec_t wall_now_usec) {
        usec_t was = d->at_usec, said;

        assert(d && n);
        if (claim && claim->object.meta.deletion_usec > 0) {
                d->claim_usec = MIN(d->claim_usec, usec_add(claim->object.meta.deletion_usec,
                                                            claim->termination_grace_usec));
                d->forced_usec = MIN(d->forced_usec, claim->force_deadline_usec);
                see_heard(d, claim, wall_now_usec);
        }
        see_notice(d, n);
        said = MIN(d->notice_usec, d->heard_usec);
        said = MIN(d->claim_usec, said);
        if (!node_deadline_passed(d, wall_now_usec))
                d->at_usec = MIN(said, d->forced_usec);
        return d->at_usec != was;
}
