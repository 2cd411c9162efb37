/* SPDX-License-Identifier: Apache-2.0 */
#include "reflex-rule.h"

#include "string-util.h"

/* Looks at one notice count what is left to within a second or two, which is no news to people. */
#define NEARER_USEC (5 * USEC_PER_SEC)
/* Who gives a notice tells the second: two times by that clock differ by up to one, which is nothing to write for. */
#define DATE_USEC USEC_PER_SEC

bool reflex_rule_gives_way(const Notice *acted, bool only_cordon, const Notice *other, const Plan *plan) {
        if (acted->kind == NOTICE_MANUAL || acted->kind == NOTICE_SHUTDOWN)
                return true;
        return plan->act == PLAN_DRAIN && (only_cordon || notice_outranks(other, acted));
}

bool reflex_rule_wants_empty(const Notice *before, const Notice *now) {
        return now->by_hand != BY_HAND_NONE || !streq(before->id, now->id);
}

int reflex_rule_take(Notice *acted, const Notice *seen, ReflexNews *ret) {
        usec_t before = acted->deadline_usec, announced = acted->announced_usec, not_before = acted->not_before_usec;
        bool is_same = streq(acted->id, seen->id);
        bool same_action = streq_ptr(acted->action, seen->action);
        bool same_names = !is_same || notice_names_same(acted, seen);
        bool changed = false;
        int k;

        *ret = (ReflexNews){ 0 };
        if (!is_same)
                changed = notice_take_nearer(acted, seen);
        else {
                k = notice_merge(acted, seen, &changed);
                if (k < 0)
                        return k;
        }
        if (!changed)
                return 0;
        *ret = (ReflexNews){ .is_changed = true,
                             .is_deadline_changed = acted->deadline_usec != before,
                             .is_nearer = usec_add(acted->deadline_usec, NEARER_USEC) < before,
                             .is_for_others = !same_action || !same_names || acted->announced_usec != announced ||
                                              acted->not_before_usec != not_before ||
                                              usec_add(acted->deadline_usec, DATE_USEC) < before };
        return 0;
}
