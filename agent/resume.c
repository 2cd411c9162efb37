/* SPDX-License-Identifier: Apache-2.0 */
#include "resume.h"

#include "marks.h"
#include "string-util.h"

void resumption_done(Resumption *r) {
        r->notice = notice_free(r->notice);
}

static int of_this_boot(const KubeNode *node, const IntentLog *log, const Interruption *i, Resumption *ret) {
        const Intent *known = intent_log_find(log, i->notice->id);
        IntentPhase phase = intent_phase_of_interruption(i->phase);
        int r = notice_copy(i->notice, &ret->notice);

        if (r < 0)
                return r;
        if (phase == INTENT_RELEASED && !node_has_marks(node) && node_conditions(node) == NODE_CONDITIONS_NONE) {
                ret->act = RESUME_REMEMBER;
                return 0;
        }
        if (phase == INTENT_RELEASED || (known && known->phase == INTENT_RELEASED)) {
                ret->act = RESUME_RELEASE;
                ret->why = "somebody made the node schedulable again";
                return 0;
        }
        if (node_was_uncordoned(node)) {
                ret->act = RESUME_RELEASE;
                ret->why = "somebody made the node schedulable again while the agent was not running";
                return 0;
        }
        if (known && known->phase == INTENT_OVER) {
                ret->act = RESUME_CLEAN;
                ret->why = "the time for which [Policy] cordons the node has passed";
                return 0;
        }
        ret->act = RESUME_CONTINUE;
        ret->phase = phase >= 0 && phase < INTENT_RELEASED ? phase : INTENT_CORDONED;
        if (known) {
                ret->phase = MAX(ret->phase, known->phase);
                if (known->phase != INTENT_CORDONED || ret->phase == INTENT_CORDONED) /* else it says nothing of the drain */
                        ret->since_usec = known->since_usec;
        }
        return 0;
}

int resume_decide(const KubeNode *node, const IntentLog *log, const char *boot_id, Resumption *ret) {
        const Interruption *i = node_interruption(node);
        _cleanup_free_ char *marked = NULL;
        int r;

        *ret = (Resumption){ .act = RESUME_NOTHING };
        if (!node_has_marks_to_undo(node) && !node_has_marks(node)) {
                /* They go last: whoever undid the marks did not come to it. */
                if (node_conditions(node) != NODE_CONDITIONS_NONE) {
                        ret->act = RESUME_CLEAN;
                        ret->why = "their reason is undone already";
                }
                return 0;
        }
        r = node_marks_boot_id(node, &marked);
        if (r < 0)
                return r;
        if (!boot_id_equal(marked, boot_id)) {
                ret->act = RESUME_UNDO;
                ret->why =
                        marked ? "the machine has booted since" : "it cannot be read what they are of";
                return 0;
        }

        if (i)
                return of_this_boot(node, log, i, ret);
        /* A cordon of ours without its reason: what is announced will be announced again. */
        ret->act = RESUME_CLEAN;
        ret->why = "somebody removed or changed their reason";
        return 0;
}

bool resume_is_ready(const KubeNode *node) {
        _cleanup_free_ char *marked = NULL;

        if (!kube_node_is_ready(node) || node_marks_boot_id(node, &marked) < 0)
                return false;
        /* A Ready of before the reboot stands until the kubelet has reported again. */
        return !marked || !boot_id_equal(marked, node->boot_id);
}
