/* SPDX-License-Identifier: Apache-2.0 */
#include "launch-rule.h"

static LaunchAct wait_until(usec_t usec, usec_t *ret_usec) {
        *ret_usec = usec;
        return LAUNCH_WAIT;
}

/* LAUNCH_WAIT until then, and the act from then on. */
static LaunchAct act_at(const LaunchFacts *f, LaunchAct act, usec_t usec, usec_t *ret_usec) {
        return f->now_usec >= usec ? act : wait_until(usec, ret_usec);
}

static LaunchAct look_or(const LaunchFacts *f, LaunchAct act, usec_t usec, usec_t *ret_usec) {
        if (f->can_find && f->looked_usec == 0)
                return act_at(f, LAUNCH_FIND, f->again_usec, ret_usec);
        return act_at(f, act, usec, ret_usec);
}

/* No machine is asked for any more. */
static LaunchAct act_of_deleted(const LaunchFacts *f, usec_t *ret_usec) {
        usec_t settled = f->maybe ? usec_add(f->time_usec, LAUNCH_SETTLED_USEC) : 0;

        if (!f->is_asked)
                return LAUNCH_RELEASE;
        if (f->maybe && f->lacks_provider) /* nobody can be asked where the machine is */
                return LAUNCH_WAIT;
        if (f->can_find && (f->looked_usec == 0 || f->looked_usec < settled))
                return act_at(f, LAUNCH_FIND, f->again_usec, ret_usec);
        return act_at(f, LAUNCH_RELEASE, settled, ret_usec);
}

LaunchAct launch_act(const LaunchFacts *f, usec_t *ret_usec) {
        *ret_usec = USEC_INFINITY;
        if (f->has_id)
                return LAUNCH_TAKE;
        if (f->deleting)
                return act_of_deleted(f, ret_usec);
        if (!f->is_wanted || (f->is_asked && (f->is_final || f->now_usec >= usec_add(f->since_usec, LAUNCH_ASKED_USEC))))
                return LAUNCH_GIVE_UP;
        if (!f->is_asked)
                return f->may_begin  ? act_at(f, LAUNCH_REQUEST, f->again_usec, ret_usec)
                       : f->is_stale ? LAUNCH_GIVE_UP
                                     : LAUNCH_WAIT;
        if (f->is_accepted && f->can_find) {
                usec_t named = usec_add(f->time_usec, LAUNCH_NAMED_USEC);

                if (f->now_usec < named)
                        return act_at(f, LAUNCH_FIND, MIN(f->again_usec, named), ret_usec);
        }
        return look_or(f, LAUNCH_REQUEST, f->again_usec, ret_usec);
}
