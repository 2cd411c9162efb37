/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-decide.h"

#include "marks.h"
#include "string-util.h"
#include "strv.h"

/* Times for which a message that waits is hidden, and the age at which a hook's is hidden for longer. */
#define WAIT_SEC 20u
#define WAIT_OLD_SEC 60u
#define WAIT_YOUNG_USEC (10 * USEC_PER_MINUTE)

static const char *const act_names[_QUEUE_ACT_MAX] = {
        [QUEUE_NOTHING] = "nothing", [QUEUE_TELL] = "tell", [QUEUE_KNOWN] = "known", [QUEUE_LOOK] = "look",
        [QUEUE_WRITE] = "write",     [QUEUE_BEAT] = "beat", [QUEUE_CONTINUE] = "continue",
        [QUEUE_CONFIRM] = "confirm",
        [QUEUE_ASK] = "ask",         [QUEUE_WAIT] = "wait", [QUEUE_SOON] = "soon",
        [QUEUE_FOREIGN] = "foreign", [QUEUE_LEAVE] = "leave",
};

const char *queue_act_to_string(QueueAct a) {
        return a >= 0 && a < _QUEUE_ACT_MAX ? act_names[a] : NULL;
}

/* Something is done about it. A scheduled change whose time cannot be read may be weeks away. */
static bool is_acted_upon(const EventMessage *m, const Notice *notice, const QueueRules *rules) {
        return notice && !m->closed && rules->deletes != INTERRUPTION_DELETE_NEVER && notice->certainty == NOTICE_CERTAIN &&
               (m->kind != EVENT_MESSAGE_HEALTH || notice_announced(notice) != USEC_INFINITY);
}

static bool is_hook(const EventMessage *m) {
        return m->kind == EVENT_MESSAGE_ASG_TERMINATE || m->kind == EVENT_MESSAGE_ASG_LAUNCH;
}

static usec_t message_sent_usec(const EventMessage *m) {
        return m->sent_usec > 0 ? m->sent_usec : USEC_INFINITY;
}

static bool is_older(const EventMessage *m, usec_t age_usec, const QueueRules *rules) {
        return rules->wall_usec >= usec_add(message_sent_usec(m), age_usec);
}

unsigned queue_wait_sec(const EventMessage *m, const QueueRules *rules) {
        return is_hook(m) && is_older(m, WAIT_YOUNG_USEC, rules) ? WAIT_OLD_SEC : WAIT_SEC;
}

bool queue_is_outlived(const EventMessage *m, const Notice *notice, const QueueRules *rules) {
        usec_t end;

        if (is_hook(m))
                return is_older(m, QUEUE_HOOK_MAX_USEC, rules);
        if (!notice)
                return false;
        end = notice_window_end(notice);
        return rules->wall_usec >=
               usec_add(end == USEC_INFINITY ? message_sent_usec(m) : end, ANNOUNCED_OUTLIVED_USEC);
}

/* Returns true if the message is so old that its hook may be over: ask the group. */
static bool is_doubtful_hook(const EventMessage *m, const QueueFacts *facts, const QueueRules *rules) {
        return m->kind == EVENT_MESSAGE_ASG_TERMINATE && !facts->is_held &&
               is_older(m, ANNOUNCED_OUTLIVED_USEC, rules);
}

static bool is_going_down(const char *state) {
        return streq(state, "stopping") || streq(state, "stopped") || streq(state, "shutting-down") ||
               streq(state, "terminated");
}

static QueueAct tell(const QueueFacts *facts, QueueAct act) {
        return facts->has_node ? act : QUEUE_NOTHING;
}

/* Returns true if AWS announces another time. SQS may keep no order, so the later announcement counts. */
static bool is_moved(const Announced *a, const Notice *notice) {
        return notice->said_usec >= a->notice->said_usec && notice_announced(notice) != USEC_INFINITY &&
               (notice->announced_usec != a->notice->announced_usec || notice->until_usec != a->notice->until_usec);
}

/* Returns true if AWS has moved a scheduled change after it was over, and no older message about it comes again. */
static bool is_moved_since(const EventMessage *m, const Announced *a, const Notice *notice) {
        return m->kind == EVENT_MESSAGE_HEALTH && is_moved(a, notice) && notice->said_usec > a->notice->said_usec;
}

/* Returns true if a notice that stands takes at least as much from the machine, by by_usec at the latest; a scheduled change: by changes_usec. */
static bool is_covered(const QueueFacts *facts, const Notice *notice, usec_t by_usec, usec_t changes_usec) {
        for (size_t i = 0; facts->announced && i < facts->announced->n_items; i++) {
                const Announced *a = facts->announced->items + i;

                if (a->state == ANNOUNCED_STANDS && notice_rank(a->notice) >= notice_rank(notice) &&
                    notice_announced(a->notice) <= (a->notice->kind == NOTICE_MAINTENANCE ? changes_usec : by_usec))
                        return true;
        }
        return false;
}

/* A change that is over cannot be distinguished from one that was called off. SQS keeps no order: the message that announces the change may
 * come after this one. */
static QueueAct decide_called_off(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const Announced *same,
                                  const QueueRules *rules) {
        if (same)
                return announced_is_open(same) ? QUEUE_WRITE : QUEUE_NOTHING;
        if (rules->deletes == INTERRUPTION_DELETE_NEVER || queue_is_outlived(m, notice, rules))
                return tell(facts, QUEUE_TELL);
        return QUEUE_WRITE;
}

/* Returns true if the list is full of earlier ends. The hook is answered all the same, when the node is
 * drained for those. */
static bool is_left_out(const QueueFacts *facts, const Notice *notice) {
        return facts->announced && !announced_list_has_room(facts->announced, notice);
}

/* Returns true if the group may end the machine: while the brake holds the notice, or (same NULL: the list is full) all notices, only if the
 * NodeClaim is being deleted for another reason. */
static bool may_continue(const QueueFacts *facts, const Announced *same) {
        if (!facts->is_drained || facts->is_going)
                return facts->is_drained;
        if (same)
                return same->state != ANNOUNCED_HELD;
        for (size_t i = 0; facts->announced && i < facts->announced->n_items; i++)
                if (facts->announced->items[i].state == ANNOUNCED_STANDS)
                        return true;
        return false;
}

/* Decides about a notice that may be written on the claim or Node. */
static QueueAct decide_written(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        const Announced *same = facts->announced ? announced_list_find(facts->announced, notice->id) : NULL;

        if (m->closed)
                return decide_called_off(m, notice, facts, same, rules);
        if (facts->hook_is_over)
                return same && same->state == ANNOUNCED_HELD ? QUEUE_WRITE : QUEUE_NOTHING;
        if (same && !announced_is_open(same))
                return !queue_is_outlived(m, notice, rules) && is_moved_since(m, same, notice) ? QUEUE_WRITE
                                                                                : QUEUE_NOTHING;
        if (m->kind == EVENT_MESSAGE_ASG_TERMINATE && (same || is_left_out(facts, notice)))
                return may_continue(facts, same) ? QUEUE_CONTINUE : QUEUE_BEAT;
        if (same && !is_moved(same, notice))
                return QUEUE_NOTHING;
        if (queue_is_outlived(m, notice, rules))
                return tell(facts, QUEUE_TELL);
        if (same)
                return QUEUE_WRITE;
        if (is_doubtful_hook(m, facts, rules))
                return QUEUE_CONFIRM;
        if (facts->is_going && m->kind != EVENT_MESSAGE_ASG_TERMINATE && is_covered(facts, notice, notice_announced(notice), notice_announced(notice)))
                return tell(facts, QUEUE_KNOWN);
        return QUEUE_WRITE;
}

static QueueAct decide_managed(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        if (!m->closed && !is_acted_upon(m, notice, rules))
                return tell(facts, QUEUE_TELL);
        return decide_written(m, notice, facts, rules);
}

static QueueAct decide_unmanaged(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        if (!m->closed && !is_acted_upon(m, notice, rules))
                return QUEUE_TELL;
        if (facts->announced && announced_list_find(facts->announced, notice->id)) /* also while it waits there for another claim */
                return decide_written(m, notice, facts, rules);
        if (facts->is_joining)
                return QUEUE_SOON;
        if (!rules->drains_unmanaged || !facts->is_drainable)
                return QUEUE_TELL;
        return decide_written(m, notice, facts, rules);
}

/* A message that an instance goes down is news while its node is Ready, unless the node became Ready after AWS sent it, or what is done
 * already covers it. Of a node that is not Ready the coordinator has noticed that already. */
static QueueAct decide_state(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        bool is_news = notice && facts->is_ready && facts->ready_since_usec <= m->sent_usec && !facts->is_going && is_acted_upon(m, notice, rules) &&
                       !queue_is_outlived(m, notice, rules) &&
                       !is_covered(facts, notice, USEC_INFINITY,
                                   usec_add(rules->wall_usec, rules->before_usec));
        QueueAct act = _QUEUE_ACT_INVALID;

        if (is_news)
                act = facts->is_managed ? decide_managed(m, notice, facts, rules) : decide_unmanaged(m, notice, facts, rules);
        if (act == QUEUE_WRITE || act == QUEUE_SOON)
                return act;
        return tell(facts, is_going_down(m->action) ? QUEUE_LOOK : QUEUE_TELL);
}

/* Nothing of ours, as far as can be seen. */
static QueueAct decide_unknown(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                               const QueueRules *rules) {
        if (facts->is_held)
                return QUEUE_CONTINUE;
        if (rules->is_shared)
                return QUEUE_LEAVE;
        if (queue_is_outlived(m, notice, rules) || (is_hook(m) && is_older(m, QUEUE_HOOK_ALONE_USEC, rules)))
                return QUEUE_FOREIGN;
        if (((!is_acted_upon(m, notice, rules) && !m->closed) || m->kind == EVENT_MESSAGE_STATE_CHANGE) && m->kind != EVENT_MESSAGE_ASG_LAUNCH)
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
                return decide_state(m, notice, facts, rules);
        if (is_hook(m) && queue_is_outlived(m, notice, rules))
                return tell(facts, QUEUE_TELL);
        if (m->kind == EVENT_MESSAGE_ASG_LAUNCH)
                return facts->is_ready ? QUEUE_CONTINUE : QUEUE_WAIT;
        if (!notice)
                return QUEUE_NOTHING;
        if (facts->is_managed)
                return decide_managed(m, notice, facts, rules);
        return decide_unmanaged(m, notice, facts, rules);
}

static bool is_allowed(const char *text, const char *own, char *const *others) {
        return isempty(text) || !own || streq(text, own) || strv_contains(others, text);
}

bool queue_is_from_elsewhere(const EventMessage *m, const QueueOrigin *o) {
        return !is_allowed(m->account, o->account, o->accounts) ||
               !is_allowed(m->region, o->region, o->regions);
}

bool queue_is_poison(unsigned receives, const QueueRules *rules) {
        return !rules->is_shared && receives >= QUEUE_POISON_RECEIVES;
}

const char *queue_why_reported(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        if (!notice || m->closed)
                return NULL;
        if (notice->certainty != NOTICE_CERTAIN)
                return "it is a recommendation";
        if (rules->deletes == INTERRUPTION_DELETE_NEVER)
                return "[Interruption] Delete= is never";
        if (m->kind == EVENT_MESSAGE_HEALTH && notice_announced(notice) == USEC_INFINITY)
                return "its time cannot be read";
        if (!facts->is_managed && !rules->drains_unmanaged)
                return "no NodePool manages this node, and [Queue] Unmanaged= is report";
        if (!facts->is_managed && !facts->is_drainable)
                return "a NodePool selects this node and has not adopted it, or the node is kept from vesper (" ANNOTATION_UNMANAGED ")";
        if (!queue_is_outlived(m, notice, rules))
                return NULL;
        return is_hook(m) ? "no lifecycle hook waits for more than 48 hours"
                          : "the message came more than ten minutes after that time";
}
