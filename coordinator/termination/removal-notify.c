/* SPDX-License-Identifier: Apache-2.0 */
#include "removal-notify.h"

#include "string-util.h"

void removal_notify_done(RemovalNotify *r) {
        r->notice = notice_free(r->notice);
}

/* Returns the interruption that the node's agent reports, if it stands and says what it is. NULL: none. Borrowed. */
static const Interruption *interruption_of_agent(const KubeNode *n) {
        const Interruption *i = n ? kube_node_standing_interruption(n) : NULL;

        return i && notice_is_complete(i->notice) ? i : NULL;
}

const Notice *removal_notify_notice(const KubeNode *n, const KubeNodeClaim *claim) {
        const Interruption *agents = interruption_of_agent(n);

        if (agents)
                return agents->notice;
        for (size_t i = 0; claim && i < claim->announced.n_items; i++) {
                const Announced *a = claim->announced.items + i;

                if (a->state == ANNOUNCED_STANDS && notice_ends_machine(a->notice) && notice_is_complete(a->notice))
                        return a->notice;
        }
        return NULL;
}

bool removal_notify_is_agents(const KubeNode *n, NotifyPhase phase, bool own_drain) {
        const unsigned of_agents = 1u << NOTIFY_NOTICED | 1u << NOTIFY_CORDONED | 1u << NOTIFY_DRAINING | 1u << NOTIFY_BLOCKED |
                                   1u << NOTIFY_DRAINED | 1u << NOTIFY_EXPIRED;
        const Interruption *i = of_agents & (1u << phase) ? interruption_of_agent(n) : NULL;

        if (!i)
                return false;
        /* Of a node that its agent has drained, the coordinator's own drain is only the proof. */
        return !own_drain || (i->phase != INTERRUPTION_PHASE_NONE && !interruption_is_draining(i));
}

void removal_notify_tell(RemovalNotify *r, NotifyPhase phase, const char *name, const char *uid, const KubeNode *n,
                         const KubeNodeClaim *claim, bool own_drain, usec_t deadline_usec, const char *text) {
        const Notice *notice;
        const char *kind;

        if (!r->sender || (r->told & (1u << phase)))
                return;
        notice = r->settled ? NULL : removal_notify_notice(n, claim);
        if (notice && notice_copy(notice, &r->notice) < 0)
                return;
        r->settled = true;
        if (r->agents_tell && removal_notify_is_agents(n, phase, own_drain))
                return;
        r->told |= 1u << phase;
        kind = r->notice ? notice_kind_to_string(r->notice->kind) : REMOVAL_NOTIFY_DELETION;
        notify_sender_tell(r->sender,
                           &(NotifyFacts){ .phase = phase,
                                           .node = name,
                                           .node_uid = uid,
                                           .notice_id = r->notice ? r->notice->id : REMOVAL_NOTIFY_DELETION,
                                           .kind = kind,
                                           .source = r->notice ? r->notice->source : NULL,
                                           .action = r->notice ? r->notice->action : "terminate",
                                           .deadline_usec = deadline_usec == USEC_INFINITY && r->notice ? notice_announced(r->notice)
                                                                                                        : deadline_usec,
                                           .pods_left = phase == NOTIFY_DRAINED ? 0 : -1,
                                           .message = text });
}
