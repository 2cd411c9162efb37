/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-rule.h"

#include "string-util.h"

static const char *const act_names[_HEARD_ACT_MAX] = {
        [HEARD_NOTHING] = "nothing",   [HEARD_CORDON] = "cordon",       [HEARD_DRAIN] = "drain", [HEARD_KEEP] = "keep",
        [HEARD_OVERRULE] = "overrule", [HEARD_HAND_OVER] = "hand over", [HEARD_END] = "end",     [HEARD_WAIT] = "wait",
        [HEARD_ANEW] = "anew",         [HEARD_CALL_OFF] = "call off", [HEARD_OWN] = "own",
};

const char *heard_act_to_string(HeardAct a) {
        return a >= 0 && a < _HEARD_ACT_MAX ? act_names[a] : NULL;
}

static bool is_cordoned_for_it(const HeardFacts *f) {
        return f->is_marked || f->heard->phase == INTERRUPTION_DRAINING || interruption_has_drained(f->heard);
}

/* Of a scheduled change that another notice has brought nearer: its own time, wall clock; 0: none did. What is now says so by notBefore. */
static usec_t own_time(const Notice *notice) {
        if (notice->own_announced_usec > 0)
                return notice->own_announced_usec;
        return notice->kind == NOTICE_MAINTENANCE && notice_is_now(notice) ? notice->announced_usec : 0;
}

/* When its machine has outlived what was announced; USEC_INFINITY: no time says so. */
static usec_t outlived_at(const HeardFacts *f) {
        const Notice *notice = f->heard->notice;
        bool is_other_now = notice->own_announced_usec == 0 && own_time(notice) > 0;

        if (notice_announced(notice) != USEC_INFINITY && !is_other_now)
                return usec_add(notice_window_end(notice), HEARD_OUTLIVED_USEC);
        if (notice->kind == NOTICE_SCALE_IN || (f->settled_usec == 0 && notice->said_usec == 0))
                return USEC_INFINITY;
        return usec_add(f->settled_usec > 0 ? f->settled_usec : notice->said_usec, HEARD_OUTLIVED_USEC);
}

/* Of a scheduled change: what boots a machine before it is something else. */
static bool is_to_come(const HeardFacts *f) {
        const Notice *notice = f->heard->notice;

        return notice->kind == NOTICE_MAINTENANCE && !notice_is_now(notice) && f->wall_usec < notice_announced(notice);
}

usec_t heard_due(const Notice *notice, usec_t before_usec) {
        return notice->kind != NOTICE_MAINTENANCE || notice_is_now(notice) ? 0 : usec_sub(notice_announced(notice), before_usec);
}

/* Its own time is still to come: what has passed is another's. */
static bool has_own_to_come(const HeardFacts *f) {
        return f->wall_usec < own_time(f->heard->notice);
}

/* It may be told again until it is outlived. */
static bool is_to_be_remembered(const HeardFacts *f) {
        return f->heard->notice->kind == NOTICE_MAINTENANCE && f->wall_usec < outlived_at(f);
}

/* *ret: what ends it; false: nothing does. */
static bool is_ended(const HeardFacts *f, HeardAct *ret) {
        bool is_over = interruption_is_over(f->heard);

        *ret = HEARD_END;
        if (f->is_managed ? !f->acts || f->is_kept : !f->is_wanted && (f->is_kept || !f->drains))
                return true;
        if (!f->is_of_other_boot)
                return false;
        if (is_to_come(f)) {
                *ret = HEARD_ANEW;
                return f->heard->phase != INTERRUPTION_PLANNED && !is_over;
        }
        if (has_own_to_come(f)) {
                *ret = HEARD_OWN;
                return !is_over;
        }
        if (!is_to_be_remembered(f))
                return true;
        *ret = HEARD_CALL_OFF;
        return !is_over;
}

static HeardAct decide_drain(const HeardFacts *f) {
        if (f->is_managed && f->deletes)
                return f->is_claim_told ? HEARD_KEEP : HEARD_HAND_OVER;
        if (f->is_going || (f->is_wanted && !f->is_managed) || interruption_has_drained(f->heard))
                return HEARD_KEEP;
        return f->heard->phase == INTERRUPTION_DRAINING ? HEARD_DRAIN : HEARD_CORDON;
}

HeardAct heard_decide(const HeardFacts *f, usec_t *ret_until_usec) {
        HeardAct act;
        usec_t due;

        assert(f && ret_until_usec);
        *ret_until_usec = USEC_INFINITY;
        if (!f->heard || (f->is_managed && f->is_deleted))
                return HEARD_NOTHING;
        if (is_ended(f, &act))
                return act;
        if (f->wall_usec < outlived_at(f))
                *ret_until_usec = outlived_at(f);
        else if (f->is_ready)
                return has_own_to_come(f) && !interruption_is_over(f->heard) ? HEARD_OWN : HEARD_END;
        if (f->heard->phase == INTERRUPTION_CANCELLED && (f->is_marked || f->is_on_claim))
                return is_to_be_remembered(f) ? HEARD_CALL_OFF : HEARD_END;
        if (interruption_is_over(f->heard))
                return HEARD_KEEP;
        due = heard_due(f->heard->notice, f->before_usec);
        if (f->heard->phase == INTERRUPTION_PLANNED && f->wall_usec < due) {
                *ret_until_usec = due;
                return HEARD_WAIT;
        }
        if ((is_cordoned_for_it(f) && !f->is_unschedulable) || f->is_agent_overruled)
                return HEARD_OVERRULE;
        return decide_drain(f);
}

bool heard_is_awaited(const KubeNode *n, usec_t wall_usec) {
        const Interruption *i = n->heard;

        return i && !interruption_is_over(i) && i->phase != INTERRUPTION_PLANNED && notice_announced(i->notice) != USEC_INFINITY &&
               wall_usec < usec_add(notice_window_end(i->notice), HEARD_OUTLIVED_USEC);
}
