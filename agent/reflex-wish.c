/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex-wish.h"

#include "string-util.h"

IntentPhase reflex_phase(ReflexState state) {
        return state >= REFLEX_DRAINED    ? INTENT_DRAINED
               : state >= REFLEX_DRAINING ? INTENT_DRAINING
                                          : INTENT_CORDONED;
}

/* Returns the message of the condition at each step of a drain. */
typedef enum Step { STEP_PLANNED, STEP_DRAINING, STEP_DRAINED, _STEP_MAX } Step;

static const char *condition_message(const Notice *n, Step step) {
#define BECAUSE(why) \
        { "vesper-agent is about to move this node's pods away: " why, "vesper-agent moves this node's pods away: " why, \
          "vesper-agent has moved this node's pods away: " why }
        static const char *const ends[_STEP_MAX] = BECAUSE("the machine is about to end");
        static const char *const reboots[_STEP_MAX] = BECAUSE("this machine is about to reboot");
        static const char *const is_maintained[_STEP_MAX] = BECAUSE("maintenance of this machine is about to begin");
        static const char *const shuts_down[_STEP_MAX] = BECAUSE("this machine shuts down");
        static const char *const by_hand[_STEP_MAX] = BECAUSE("somebody on this machine asked for it");
#undef BECAUSE

        if (n->kind == NOTICE_SHUTDOWN)
                return shuts_down[step];
        if (n->kind == NOTICE_MANUAL)
                return by_hand[step];
        if (n->kind != NOTICE_MAINTENANCE || notice_ends_machine(n))
                return ends[step];
        return streq_ptr(n->action, "reboot") ? reboots[step] : is_maintained[step];
}

NodeWish reflex_wish(ReflexState state, const Notice *notice, bool only_cordon, size_t pods_left) {
        NodeWish w = { .notice = notice,
                       .phase = intent_phase_to_interruption(reflex_phase(state)),
                       .pods_left = pods_left };

        if (state >= REFLEX_DRAINED) {
                w.conditions = NODE_CONDITIONS_DRAINED;
                w.message = condition_message(notice, STEP_DRAINED);
        } else if (state >= REFLEX_DRAINING) {
                w.conditions = NODE_CONDITIONS_DRAINING;
                w.message = condition_message(notice, STEP_DRAINING);
        } else if (only_cordon && state == REFLEX_CORDONED) {
                w.conditions = NODE_CONDITIONS_PLANNED;
                w.message = "vesper-agent keeps new pods off this node, and leaves those that are there, as its configuration says for this kind of notice";
        } else if (state == REFLEX_LB_WAIT) {
                w.conditions = NODE_CONDITIONS_PLANNED;
                w.message = condition_message(notice, STEP_PLANNED);
        }
        return w;
}
