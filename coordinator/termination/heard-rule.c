/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-rule.h"

#include "string-util.h"

static const char *const act_names[_HEARD_ACT_MAX] = {
        [HEARD_NOTHING] = "nothing",   [HEARD_CORDON] = "cordon",       [HEARD_DRAIN] = "drain", [HEARD_KEEP] = "keep",
        [HEARD_OVERRULE] = "overrule", [HEARD_HAND_OVER] = "hand over", [HEARD_END] = "end",
};

const char *heard_act_to_string(HeardAct a) {
        return a >= 0 && a < _HEARD_ACT_MAX ? act_names[a] : NULL;
}

static bool is_cordoned_for_it(const HeardFacts *f) {
        return f->is_marked || f->heard->phase == INTERRUPTION_DRAINING || interruption_has_drained(f->heard);
}

/* When its machine has outlived what was announced; USEC_INFINITY: no time says so. */
static usec_t outlived_at(const HeardFacts *f) {
        const Notice *notice = f->heard->notice;

        if (notice_announced(notice) != USEC_INFINITY)
                return usec_add(notice_announced(notice), HEARD_OUTLIVED_USEC);
        if (notice->kind == NOTICE_SCALE_IN || f->settled_usec == 0)
                return USEC_INFINITY;
        return usec_add(f->settled_usec, HEARD_OUTLIVED_USEC);
}

static HeardAct decide_managed(const HeardFacts *f) {
        if (!f->deletes_claims)
                return HEARD_END;
        return f->is_claim_told ? HEARD_KEEP : HEARD_HAND_OVER;
}

HeardAct heard_decide(const HeardFacts *f, usec_t *ret_until_usec) {
        assert(f && ret_until_usec);
        *ret_until_usec = USEC_INFINITY;
        if (!f->heard || (f->is_managed && f->is_deleted))
                return HEARD_NOTHING;
        if (f->is_of_other_boot || (!f->is_managed && !f->is_wanted && (f->is_kept || !f->drains)))
                return HEARD_END;
        if (f->wall_usec < outlived_at(f))
                *ret_until_usec = outlived_at(f);
        else if (f->is_ready)
                return HEARD_END;
        if (interruption_is_over(f->heard))
                return HEARD_KEEP;
        if ((is_cordoned_for_it(f) && !f->is_unschedulable) || f->is_agent_overruled)
                return HEARD_OVERRULE;
        if (f->is_managed)
                return decide_managed(f);
        if (f->is_wanted || interruption_has_drained(f->heard))
                return HEARD_KEEP;
        return f->heard->phase == INTERRUPTION_DRAINING ? HEARD_DRAIN : HEARD_CORDON;
}
