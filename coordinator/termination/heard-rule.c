/* SPDX-License-Identifier: Apache-2.0 */
#include "heard-rule.h"

#include "string-util.h"

/* A person who opens the Node cannot have known a notice that AWS sent less than this before. */
#define SAID_BEFORE_USEC (30 * USEC_PER_SEC)

static const char *const act_names[_HEARD_ACT_MAX] = {
        [HEARD_NOTHING] = "nothing", [HEARD_WAIT] = "wait",   [HEARD_REWRITE] = "rewrite", [HEARD_CORDON] = "cordon",
        [HEARD_DRAIN] = "drain",     [HEARD_KEEP] = "keep",   [HEARD_END] = "end",
};

const char *heard_act_to_string(HeardAct a) {
        return a >= 0 && a < _HEARD_ACT_MAX ? act_names[a] : NULL;
}

usec_t heard_due(const Notice *notice, usec_t before_usec) {
        return notice->kind != NOTICE_MAINTENANCE || notice_announced(notice) == USEC_INFINITY ? 0 : usec_sub(notice_announced(notice), before_usec);
}

bool heard_is_agent_overruled(const Interruption *agents, const Notice *notice) {
        usec_t a, b;

        if (!agents || !interruption_is_overruled(agents) || agents->notice->kind != notice->kind)
                return false;
        a = notice_announced(agents->notice);
        b = notice_announced(notice);
        return a == b || (a < usec_add(b, ANNOUNCED_OUTLIVED_USEC) && b < usec_add(a, ANNOUNCED_OUTLIVED_USEC));
}

/* -- one notice ----------------------------------------------------------------------------------------- */

static bool is_due(const HeardFacts *f, const Announced *a) {
        return f->wall_usec >= heard_due(a->notice, f->before_usec);
}

/* Returns true if the claim is deleted for this notice, or will be, once a pool that wants the node has adopted it. */
static bool deletes_claim(const HeardFacts *f, const Announced *a) {
        return a->state != ANNOUNCED_HELD && (f->is_managed || f->is_wanted) && interruption_delete_counts(f->deletes, a->notice);
}

/* Maximum time for which a held notice keeps the Node that nobody confirms. Spot notices and state changes come minutes before the end, and no hook
 * waits for more than two days. A sender may have written any time into the notice. */
static usec_t held_until(const Announced *a) {
        if (a->state != ANNOUNCED_HELD || a->notice->kind == NOTICE_MAINTENANCE)
                return USEC_INFINITY;
        return usec_add(a->notice->received_usec, a->notice->kind == NOTICE_SCALE_IN ? 2 * USEC_PER_DAY : USEC_PER_HOUR);
}

/* When its machine has outlived it; USEC_INFINITY: no time says so. */
static usec_t outlived_at(const HeardFacts *f, const Announced *a) {
        usec_t end = notice_window_end(a->notice);

        if (end == USEC_INFINITY && a->notice->kind != NOTICE_SCALE_IN && (f->settled_usec > 0 || a->notice->said_usec > 0))
                end = MAX(f->settled_usec, a->notice->said_usec);
        return usec_add(MIN(end, held_until(a)), ANNOUNCED_OUTLIVED_USEC);
}

/* A Node of no pool, and such are not drained, or a person keeps this one from vesper. */
static bool is_nobodys(const HeardFacts *f) {
        return !f->is_managed && !f->is_wanted && (f->is_kept || !f->drains_unmanaged);
}

/* Nothing is drained here, whatever was announced. */
static bool is_left_alone(const HeardFacts *f) {
        return f->is_managed ? f->is_kept || f->deletes == INTERRUPTION_DELETE_NEVER : is_nobodys(f);
}

typedef enum Fate { STAYS, RENEWED, LET_GO, DONE, OVERRULED, FORGOTTEN } Fate;

/* The machine has booted since the notice came. No boot takes an end for good back. */
static Fate fate_of_booted(const HeardFacts *f, const Announced *a) {
        usec_t at = notice_announced(a->notice) != USEC_INFINITY ? notice_announced(a->notice) : a->notice->said_usec;

        if (notice_ends_for_good(a->notice) || f->wall_usec < at)
                return RENEWED;
        if (f->other_boot_usec < at) {
                if (!f->is_ready)
                        return STAYS; /* since when it is Ready will tell */
                if (f->ready_since_usec < at)
                        return RENEWED;
        }
        return outlived_at(f, a) != USEC_INFINITY && f->wall_usec < outlived_at(f, a) ? DONE : FORGOTTEN;
}

/* A person who has opened the Node has answered what its drain was for, and what was said before. */
static bool is_overruled_by_opening(const HeardFacts *f, const Announced *a) {
        return f->drain && !f->is_unschedulable && is_due(f, a) && !deletes_claim(f, a) &&
               (streq(f->drain->notice->id, a->notice->id) || usec_add(a->notice->said_usec, SAID_BEFORE_USEC) <= f->wall_usec);
}

bool heard_is_let_go(const HeardFacts *f, const Announced *a) {
        return announced_is_let_go(a, f->let_go_usec) || (a->state == ANNOUNCED_HELD && interruption_confirms(f->agents, a->notice));
}

static Fate fate_of_open(const HeardFacts *f, const Announced *a) {
        bool acts = f->deletes != INTERRUPTION_DELETE_NEVER;

        if (isempty(a->boot_id) && !isempty(f->boot_id))
                return RENEWED;
        if (boot_id_differs(a->boot_id, f->boot_id))
                return fate_of_booted(f, a);
        if (f->wall_usec >= outlived_at(f, a) && f->is_ready && !(deletes_claim(f, a) && acts))
                return FORGOTTEN;
        if (heard_is_agent_overruled(f->agents, a->notice) || is_overruled_by_opening(f, a))
                return OVERRULED;
        return heard_is_let_go(f, a) ? LET_GO : STAYS;
}

static Fate fate_of(const HeardFacts *f, const Announced *a) {
        if (is_nobodys(f))
                return FORGOTTEN;
        if (announced_is_open(a))
                return fate_of_open(f, a);
        return f->wall_usec >= outlived_at(f, a) || (boot_id_differs(a->boot_id, f->boot_id) && outlived_at(f, a) == USEC_INFINITY) ? FORGOTTEN : STAYS;
}

/* -- all of them ---------------------------------------------------------------------------------------- */

int heard_rewrite(const HeardFacts *f, AnnouncedList *ret) {
        int r = 0;

        *ret = (AnnouncedList){};
        for (size_t i = 0; i < f->announced->n_items && r >= 0; i++) {
                const Announced *a = f->announced->items + i;

                switch (fate_of(f, a)) {
                case STAYS:
                        r = announced_list_put(ret, a->notice, a->state, a->boot_id);
                        break;
                case RENEWED:
                        r = announced_list_put(ret, a->notice, a->state, f->boot_id);
                        break;
                case LET_GO:
                        r = announced_list_put(ret, a->notice, ANNOUNCED_STANDS, a->boot_id);
                        break;
                case DONE:
                        r = announced_list_put(ret, a->notice, ANNOUNCED_DONE, a->boot_id);
                        break;
                case OVERRULED:
                        r = announced_list_put(ret, a->notice, ANNOUNCED_OVERRULED, a->boot_id);
                        break;
                case FORGOTTEN:
                        break;
                }
        }
        if (r < 0)
                announced_list_done(ret);
        return r;
}

static bool is_drained_for(const HeardFacts *f, const Announced *a) {
        return announced_is_open(a) && !deletes_claim(f, a) && is_due(f, a) && !is_left_alone(f);
}

const Announced *heard_drained_for(const HeardFacts *f, usec_t *ret_deadline_usec) {
        usec_t to_come = USEC_INFINITY, passed = 0, at;
        const Announced *first = NULL, *held = NULL;
        bool is_any_to_come = false;

        for (size_t i = 0; i < f->announced->n_items; i++) {
                const Announced *a = f->announced->items + i;

                if (!is_drained_for(f, a))
                        continue;
                if (a->state == ANNOUNCED_HELD) {
                        held = held ?: a;
                        continue;
                }
                at = notice_announced(a->notice) > f->wall_usec ? notice_announced(a->notice) : notice_window_end(a->notice);
                if (at > f->wall_usec)
                        to_come = MIN(to_come, at);
                is_any_to_come = is_any_to_come || at > f->wall_usec;
                passed = MAX(passed, at);
                first = first ?: a;
        }
        *ret_deadline_usec = first && !is_any_to_come ? passed : to_come;
        return first ?: held;
}

/* The claim is being deleted, or is about to be. */
static bool is_claim_deleted_or_due(const HeardFacts *f) {
        if (f->is_going)
                return true;
        for (size_t i = 0; i < f->announced->n_items && !is_left_alone(f); i++)
                if (f->announced->items[i].state == ANNOUNCED_STANDS && deletes_claim(f, f->announced->items + i) && is_due(f, f->announced->items + i))
                        return true;
        return false;
}

static usec_t after(const HeardFacts *f, usec_t at) {
        return at > f->wall_usec ? at : USEC_INFINITY;
}

/* When time alone may change what is to be done. */
static usec_t next_look(const HeardFacts *f) {
        usec_t next = USEC_INFINITY;

        for (size_t i = 0; i < f->announced->n_items; i++) {
                const Announced *a = f->announced->items + i;

                next = MIN(next, after(f, outlived_at(f, a)));
                if (!announced_is_open(a))
                        continue;
                next = MIN(next, after(f, heard_due(a->notice, f->before_usec)));
                next = MIN(next, after(f, notice_announced(a->notice))); /* in which boot it is then, and until when it is drained */
                next = MIN(next, after(f, notice_window_end(a->notice)));
        }
        return next;
}

static bool is_rewritten(const HeardFacts *f) {
        for (size_t i = 0; i < f->announced->n_items; i++)
                if (fate_of(f, f->announced->items + i) != STAYS)
                        return true;
        return false;
}

static HeardAct decide_drain(const HeardFacts *f, usec_t deadline_usec) {
        bool in_this_boot = f->drain && !boot_id_differs(f->drain->boot_id, f->boot_id);

        if (f->is_going || (f->is_between && (!f->drain || !f->is_unschedulable)))
                return HEARD_KEEP;
        if (!in_this_boot || !f->is_unschedulable)
                return HEARD_CORDON;
        if (f->drain->phase == INTERRUPTION_ENDING && deadline_usec > f->wall_usec)
                return HEARD_DRAIN; /* that was the time of another one */
        /* A kubelet can write anything there: a drain for what nobody announced proves nothing. */
        return interruption_has_drained(f->drain) && announced_list_find(f->announced, f->drain->notice->id) ? HEARD_KEEP : HEARD_DRAIN;
}

HeardAct heard_decide(const HeardFacts *f, usec_t *ret_until_usec) {
        usec_t deadline;

        assert(f && f->announced && ret_until_usec);
        *ret_until_usec = USEC_INFINITY;
        if (f->is_managed && f->is_deleted)
                return HEARD_NOTHING;
        if (!f->is_going && !f->is_between && is_rewritten(f))
                return HEARD_REWRITE;
        *ret_until_usec = next_look(f);
        if (heard_drained_for(f, &deadline))
                return decide_drain(f, deadline);
        if (!f->drain)
                return announced_list_open(f->announced) && !is_left_alone(f) ? HEARD_WAIT : HEARD_NOTHING;
        return f->is_between || is_claim_deleted_or_due(f) ? HEARD_KEEP : HEARD_END;
}

HeardEnd heard_end(const HeardFacts *f) {
        const Announced *a = announced_list_find(f->announced, f->drain->notice->id);

        if (is_left_alone(f))
                return HEARD_END_EXEMPT;
        if (!a)
                return boot_id_differs(f->boot_id, f->drain->boot_id) ? HEARD_END_BOOTED : HEARD_END_OUTLIVED;
        switch (a->state) {
        case ANNOUNCED_DONE:
                return HEARD_END_BOOTED;
        case ANNOUNCED_CALLED_OFF:
                return HEARD_END_CALLED_OFF;
        case ANNOUNCED_OVERRULED:
                return HEARD_END_OVERRULED;
        case ANNOUNCED_STANDS:
        case ANNOUNCED_HELD:
        case _ANNOUNCED_STATE_MAX:
                break;
        }
        return HEARD_END_MOVED;
}

bool heard_is_overruled(const HeardFacts *f) {
        for (size_t i = 0; i < f->announced->n_items; i++)
                if (f->announced->items[i].state == ANNOUNCED_OVERRULED)
                        return true;
        return false;
}

bool heard_is_awaited(const KubeNode *n, usec_t wall_usec) {
        const Interruption *i = n->heard;

        return i && !interruption_is_over(i) && notice_announced(i->notice) != USEC_INFINITY &&
               wall_usec < usec_add(notice_window_end(i->notice), ANNOUNCED_OUTLIVED_USEC);
}
