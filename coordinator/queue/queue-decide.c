/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-decide.h"

#include "string-util.h"

static const char *const act_names[_QUEUE_ACT_MAX] = {
        [QUEUE_NOTHING] = "nothing", [QUEUE_TELL] = "tell", [QUEUE_LOOK] = "look",
        [QUEUE_WRITE] = "write",     [QUEUE_BEAT] = "beat", [QUEUE_CONTINUE] = "continue",
        [QUEUE_ASK] = "ask",         [QUEUE_WAIT] = "wait", [QUEUE_SOON] = "soon",
        [QUEUE_FOREIGN] = "foreign", [QUEUE_LEAVE] = "leave",
        [QUEUE_WRITE_NODE] = "write on node",
};

const char *queue_act_to_string(QueueAct a) {
        return a >= 0 && a < _QUEUE_ACT_MAX ? act_names[a] : NULL;
}

/* Does it end the machine in a way for which claims are deleted, and soon? */
static bool notice_counts(const EventMessage *m, const Notice *notice, const QueueRules *rules) {
        if (!notice || (rules->deletes != INTERRUPTION_DELETE_ALWAYS && !notice_ends_for_good(notice)) ||
            !notice_ends_machine(notice) || rules->deletes == INTERRUPTION_DELETE_NEVER)
                return false;
        return m->kind != EVENT_MESSAGE_HEALTH ||
               notice_announced(notice) <= usec_add(rules->wall_usec, QUEUE_SOON_USEC);
}

static bool is_going_down(const char *state) {
        return streq(state, "stopping") || streq(state, "stopped") || streq(state, "shutting-down") ||
               streq(state, "terminated");
}

/* It ends the machine, and is to be written, unless it is known. */
static QueueAct decide_counting(const EventMessage *m, const Notice *notice, const QueueFacts *facts, QueueAct write) {
        if (!facts->is_told || facts->told_usec > notice_announced(notice) || (notice_is_now(notice) && !facts->is_told_now))
                return write;
        if (m->kind != EVENT_MESSAGE_ASG_TERMINATE)
                return QUEUE_NOTHING;
        return facts->is_drained ? QUEUE_CONTINUE : QUEUE_BEAT;
}

static QueueAct decide_managed(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                               const QueueRules *rules) {
        if (!notice_counts(m, notice, rules))
                return facts->has_node ? QUEUE_TELL : QUEUE_NOTHING;
        return decide_counting(m, notice, facts, QUEUE_WRITE);
}

static QueueAct decide_unmanaged(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                                 const QueueRules *rules) {
        if (!notice_counts(m, notice, rules))
                return QUEUE_TELL;
        if (facts->is_joining)
                return QUEUE_SOON;
        if (!rules->drains_unmanaged || !facts->is_drainable ||
            rules->wall_usec >= usec_add(notice_announced(notice), QUEUE_OUTLIVED_USEC))
                return QUEUE_TELL;
        /* What has passed takes no place of what is to come. */
        if (facts->is_overruled || (facts->is_told && notice_announced(notice) <= rules->wall_usec))
                return QUEUE_NOTHING;
        return decide_counting(m, notice, facts, QUEUE_WRITE_NODE);
}

/* Nothing of ours, as far as can be seen. */
static QueueAct decide_unknown(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                               const QueueRules *rules) {
        if (facts->is_held)
                return QUEUE_CONTINUE;
        if (rules->is_shared)
                return QUEUE_LEAVE;
        if (!notice_counts(m, notice, rules) && m->kind != EVENT_MESSAGE_ASG_LAUNCH)
                return QUEUE_FOREIGN;
        switch (facts->sight) {
        case QUEUE_NOT_ASKED:
                return QUEUE_ASK;
        case QUEUE_ENDED:
                return QUEUE_FOREIGN;
        case QUEUE_NOT_SEEN:
                return facts->unknown_usec >= QUEUE_UNKNOWN_USEC ? QUEUE_FOREIGN : QUEUE_WAIT;
        case QUEUE_SEEN:
        case QUEUE_UNCLEAR:
                break;
        }
        return QUEUE_WAIT;
}

QueueAct queue_decide(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                      const QueueRules *rules) {
        assert(m && facts && rules);
        if (!facts->is_managed && !facts->has_node)
                return decide_unknown(m, notice, facts, rules);
        if (m->kind == EVENT_MESSAGE_STATE_CHANGE)
                return is_going_down(m->action) ? QUEUE_LOOK : QUEUE_NOTHING;
        if (m->kind == EVENT_MESSAGE_ASG_LAUNCH)
                return facts->is_ready ? QUEUE_CONTINUE : QUEUE_WAIT;
        if (!notice)
                return QUEUE_NOTHING;
        if (facts->is_managed)
                return decide_managed(m, notice, facts, rules);
        return decide_unmanaged(m, notice, facts, rules);
}

bool queue_is_poison(unsigned receives, const QueueRules *rules) {
        return !rules->is_shared && receives >= QUEUE_POISON_RECEIVES;
}
