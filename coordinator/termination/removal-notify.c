/* SPDX-License-Identifier: Apache-2.0 */
#include "removal-notify.h"

#include "string-util.h"

void removal_notify_done(RemovalNotify *r) {
        r->notice = notice_free(r->notice);
}

/* Its agent's, as far as that has not been taken back. */
static int interruption_of_agent(const KubeNode *n, Interruption *ret) {
        int r;

        r = interruption_of_node(n, ret);
        if (r < 0)
                return r == -ENOMEM ? r : -ENODATA;
        return interruption_is_over(ret) || !notice_is_complete(ret->notice) ? -ENODATA : 0;
}

int removal_notify_notice(const KubeNode *n, const KubeNodeClaim *claim, Notice **ret) {
        _cleanup_(interruption_done) Interruption agents = { 0 }, heard = { 0 };
        int r;

        r = n ? interruption_of_agent(n, &agents) : -ENODATA;
        if (r >= 0)
                *ret = TAKE_PTR(agents.notice);
        if (r != -ENODATA || !claim)
                return r;
        r = interruption_of_claim(claim, &heard);
        if (r < 0 || !notice_is_complete(heard.notice))
                return r == -ENOMEM ? r : -ENODATA;
        *ret = TAKE_PTR(heard.notice);
        return 0;
}

bool removal_notify_is_agents(const KubeNode *n, NotifyPhase phase, bool own_drain) {
        const unsigned of_agents = 1u << NOTIFY_NOTICED | 1u << NOTIFY_CORDONED | 1u << NOTIFY_DRAINING | 1u << NOTIFY_BLOCKED |
                                   1u << NOTIFY_DRAINED | 1u << NOTIFY_EXPIRED;
        _cleanup_(interruption_done) Interruption i = { 0 };

        if (!n || !(of_agents & (1u << phase)) || interruption_of_agent(n, &i) < 0)
                return false;
        /* Of a node that its agent has drained, the coordinator's own drain is only the proof. */
        return !own_drain || (!isempty(i.phase) && !interruption_is_draining(&i));
}

void removal_notify_tell(RemovalNotify *r, NotifyPhase phase, const char *name, const char *uid, const KubeNode *n,
                         const KubeNodeClaim *claim, bool own_drain, usec_t deadline_usec, const char *text) {
        const char *kind;

        if (!r->sender || (r->told & (1u << phase)))
                return;
        if (!r->settled && removal_notify_notice(n, claim, &r->notice) == -ENOMEM)
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
