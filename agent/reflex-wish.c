/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex-wish.h"

IntentPhase reflex_phase(ReflexState state) {
        return state >= REFLEX_DRAINED    ? INTENT_DRAINED
               : state >= REFLEX_DRAINING ? INTENT_DRAINING
                                          : INTENT_CORDONED;
}

/* Of the condition that says so, by why it is. */
static const char *condition_message(NoticeKind kind, bool drained) {
#define MOVED(why) { "vesper-agent moves this node's pods away: " why, "vesper-agent has moved this node's pods away: " why }
        static const char *const by_cloud[2] = MOVED("the machine is about to end");
        static const char *const by_shutdown[2] = MOVED("this machine shuts down");
        static const char *const by_hand[2] = MOVED("somebody on this machine asked for it");
#undef MOVED

        return kind == NOTICE_SHUTDOWN ? by_shutdown[drained]
               : kind == NOTICE_MANUAL ? by_hand[drained]
                                       : by_cloud[drained];
}

/* The node is cordoned, and its pods stay until load balancers have let go. */
static const char *planned_message(NoticeKind kind) {
        return kind == NOTICE_MANUAL ? "vesper-agent is about to move this node's pods away: somebody on this machine asked for it"
                                     : "vesper-agent is about to move this node's pods away: the machine is about to end";
}

NodeWish reflex_wish(ReflexState state, const Notice *notice, bool only_cordon, size_t pods_left) {
        NodeWish w = { .notice = notice,
                       .phase = intent_phase_to_interruption(reflex_phase(state)),
                       .pods_left = pods_left };

        if (state >= REFLEX_DRAINED) {
                w.conditions = NODE_CONDITIONS_DRAINED;
                w.message = condition_message(notice->kind, true);
        } else if (state >= REFLEX_DRAINING) {
                w.conditions = NODE_CONDITIONS_DRAINING;
                w.message = condition_message(notice->kind, false);
        } else if (only_cordon && state == REFLEX_CORDONED) {
                w.conditions = NODE_CONDITIONS_PLANNED;
                w.message = "vesper-agent keeps new pods off this node, and leaves those that are there, as its configuration says for this kind of notice";
        } else if (state == REFLEX_LB_WAIT) {
                w.conditions = NODE_CONDITIONS_PLANNED;
                w.message = planned_message(notice->kind);
        }
        return w;
}
