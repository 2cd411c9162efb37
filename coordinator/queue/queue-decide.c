/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-decide.h"

#include "string-util.h"

static const char *const act_names[_QUEUE_ACT_MAX] = {
        [QUEUE_NOTHING] = "nothing", [QUEUE_TELL] = "tell", [QUEUE_LOOK] = "look",
        [QUEUE_WRITE] = "write",     [QUEUE_BEAT] = "beat", [QUEUE_CONTINUE] = "continue",
        [QUEUE_ASK] = "ask",         [QUEUE_WAIT] = "wait", [QUEUE_SOON] = "soon",
        [QUEUE_FOREIGN] = "foreign", [QUEUE_LEAVE] = "leave",
        [QUEUE_WRITE_NODE] = "write on node", [QUEUE_KNOWN] = "known",
        [QUEUE_MAKE_ROOM] = "make room", [QUEUE_SWAP] = "swap", [QUEUE_TAKE_BACK] = "take back", [QUEUE_CANCEL_NODE] = "cancel on node",
};

const char *queue_act_to_string(QueueAct a) {
        return a >= 0 && a < _QUEUE_ACT_MAX ? act_names[a] : NULL;
}

/* Something is done about it. A scheduled change whose time cannot be read may be weeks away. */
static bool is_acted_upon(const EventMessage *m, const Notice *notice, const QueueRules *rules) {
        return notice && !m->closed && rules->deletes != INTERRUPTION_DELETE_NEVER && notice->certainty == NOTICE_CERTAIN &&
               (m->kind != EVENT_MESSAGE_HEALTH || notice_announced(notice) != USEC_INFINITY);
}

/* A scheduled change for which nothing is to be done yet. */
static bool is_far(const EventMessage *m, const Notice *notice, const QueueRules *rules) {
        return m->kind == EVENT_MESSAGE_HEALTH && notice_announced(notice) > usec_add(rules->wall_usec, rules->before_usec);
}

/* The machine has outlived it. A hook waits for its answer however long ago it was sent. */
static bool is_old(const EventMessage *m, const Notice *notice, const QueueRules *rules) {
        usec_t end = notice_window_end(notice);

        if (end == USEC_INFINITY && m->kind != EVENT_MESSAGE_ASG_TERMINATE && m->sent_usec > 0)
                end = m->sent_usec;
        return rules->wall_usec >= usec_add(end, QUEUE_OUTLIVED_USEC);
}

static bool is_going_down(const char *state) {
        return streq(state, "stopping") || streq(state, "stopped") || streq(state, "shutting-down") ||
               streq(state, "terminated");
}

static QueueAct tell(const QueueFacts *facts, QueueAct act) {
        return facts->has_node ? act : QUEUE_NOTHING;
}

/* It ends the machine, and is to be written, unless it is known. */
static QueueAct decide_counting(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueTold *told, QueueAct write) {
        if (!told->is_told || told->usec > notice_announced(notice) || (notice_is_now(notice) && !told->is_now))
                return write;
        if (m->kind == EVENT_MESSAGE_ASG_TERMINATE)
                return facts->is_drained ? QUEUE_CONTINUE : QUEUE_BEAT;
        return told->is_same ? QUEUE_NOTHING : tell(facts, QUEUE_KNOWN);
}

static QueueAct decide_deleting(const EventMessage *m, const Notice *notice, const QueueFacts *facts) {
        QueueTold told = facts->told;

        told.is_told = (told.is_told && told.deletes) || facts->is_going;
        told.is_now = told.is_now || facts->is_going;
        if (!facts->told.is_told)
                told.usec = USEC_INFINITY;
        return decide_counting(m, notice, facts, &told, QUEUE_WRITE);
}

/* The message says another time of what stands there, and nothing was done for it yet. */
static bool is_moved(const QueueTold *told, const Notice *notice) {
        return told->is_same && !told->is_over && !told->is_begun && notice_announced(notice) != USEC_INFINITY &&
               notice->said_usec >= told->said_usec && told->own_usec != notice_announced(notice);
}

/* When its turn is, among those that are kept. */
static usec_t turn_of(const QueueTold *t) {
        return t->is_now ? 0 : t->usec;
}

/* Another one is planned on the Node, and comes after this one. */
static bool comes_before_planned(const QueueFacts *facts, usec_t at) {
        return facts->on_node.is_told && !facts->on_node.is_begun && !facts->told.is_on_node && at < turn_of(&facts->on_node);
}

/* A scheduled change for which the claim is deleted. Whatever stands on the claim stays, on the Node if need be: this one may be called off. */
static QueueAct decide_end_to_come(const Notice *notice, const QueueFacts *facts) {
        const QueueTold *told = &facts->told;
        bool has_room = facts->has_node && !facts->on_node.is_told;

        if (told->is_same)
                return is_moved(told, notice) ? QUEUE_WRITE : QUEUE_NOTHING;
        if (facts->on_node.is_same)
                return is_moved(&facts->on_node, notice) ? QUEUE_WRITE_NODE : QUEUE_NOTHING;
        if (!told->is_told)
                return QUEUE_WRITE;
        if (told->deletes && told->usec <= notice_announced(notice))
                return has_room ? QUEUE_WRITE_NODE : tell(facts, QUEUE_KNOWN);
        return has_room && !told->is_on_node ? QUEUE_MAKE_ROOM : QUEUE_WRITE;
}

/* Another time was announced for a change that is kept already. Of two changes the earlier one stands on the Node. */
static QueueAct decide_moved(const QueueFacts *facts, usec_t at) {
        const QueueTold *told = &facts->told;

        if (told->is_same)
                return comes_before_planned(facts, at) ? QUEUE_SWAP : QUEUE_WRITE;
        return told->is_told && !told->deletes && at > turn_of(told) ? QUEUE_MAKE_ROOM : QUEUE_WRITE_NODE;
}

/* The claim tells of another notice. */
static QueueAct decide_second(const QueueFacts *facts, usec_t at) {
        const QueueTold *told = &facts->told;

        if (told->is_on_node && told->is_begun)
                return at > 0 && (told->usec == USEC_INFINITY || at > usec_add(told->usec, QUEUE_OUTLIVED_USEC)) ? QUEUE_WRITE : QUEUE_KNOWN;
        if (told->is_on_node)
                return at < turn_of(told) ? QUEUE_WRITE_NODE : QUEUE_WRITE;
        if (!facts->has_node)
                return QUEUE_KNOWN;
        if (!facts->on_node.is_told)
                return told->deletes || at < turn_of(told) ? QUEUE_WRITE_NODE : QUEUE_MAKE_ROOM;
        if (comes_before_planned(facts, at))
                return QUEUE_WRITE_NODE;
        return !told->deletes && at > 0 && at < turn_of(told) ? QUEUE_WRITE : QUEUE_KNOWN; /* drained already, if it is now */
}

/* The node comes back from what this notice announces. */
static QueueAct decide_kept(const Notice *notice, const QueueFacts *facts) {
        usec_t at = notice_is_now(notice) ? 0 : notice_announced(notice);
        QueueAct act;

        if (facts->told.is_same || facts->on_node.is_same)
                return is_moved(facts->told.is_same ? &facts->told : &facts->on_node, notice) ? decide_moved(facts, at) : QUEUE_NOTHING;
        if (!facts->told.is_told)
                return comes_before_planned(facts, at) ? QUEUE_SWAP : QUEUE_WRITE;
        act = decide_second(facts, at);
        return act == QUEUE_KNOWN ? tell(facts, act) : act;
}

/* A message that says that its change is over is not told from one that calls it off. */
static QueueAct decide_called_off(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        const QueueTold *told = facts->on_node.is_same ? &facts->on_node : &facts->told;
        bool is_free = !told->is_told && !told->is_begun && !told->is_over && (facts->is_managed || (rules->drains_unmanaged && facts->is_drainable));

        if (facts->is_going)
                return tell(facts, QUEUE_TELL);
        /* SQS keeps no order: the message that announces the change may come after the one that calls it off. */
        if (!told->is_same && is_free && !is_old(m, notice, rules) && rules->deletes != INTERRUPTION_DELETE_NEVER)
                return facts->is_managed ? QUEUE_TAKE_BACK : QUEUE_CANCEL_NODE;
        if (!told->is_same || told->usec != told->own_usec)
                return tell(facts, QUEUE_TELL);
        if (told->is_over)
                return QUEUE_NOTHING;
        return told == &facts->told && facts->is_managed ? QUEUE_TAKE_BACK : QUEUE_CANCEL_NODE;
}

static QueueAct decide_managed(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                               const QueueRules *rules) {
        bool deletes;

        if (m->closed)
                return decide_called_off(m, notice, facts, rules);
        if (!is_acted_upon(m, notice, rules) || is_old(m, notice, rules))
                return tell(facts, QUEUE_TELL);
        /* The change was called off, or is over, and an older message about it comes again. */
        if ((facts->told.is_same && facts->told.is_over) || (facts->on_node.is_same && facts->on_node.is_over))
                return QUEUE_NOTHING;
        deletes = interruption_delete_counts(rules->deletes, notice);
        if (deletes && (m->kind != EVENT_MESSAGE_HEALTH || facts->is_going))
                return decide_deleting(m, notice, facts);
        if (facts->is_going)
                return tell(facts, QUEUE_KNOWN);
        return deletes ? decide_end_to_come(notice, facts) : decide_kept(notice, facts);
}

static QueueAct decide_unmanaged(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                                 const QueueRules *rules) {
        if (m->closed)
                return decide_called_off(m, notice, facts, rules);
        if (!is_acted_upon(m, notice, rules))
                return QUEUE_TELL;
        if (facts->is_joining)
                return QUEUE_SOON;
        if (!rules->drains_unmanaged || !facts->is_drainable || is_old(m, notice, rules))
                return QUEUE_TELL;
        /* What has passed takes no place of what is to come. */
        if (facts->is_overruled || (facts->told.is_told && notice_announced(notice) <= rules->wall_usec))
                return QUEUE_NOTHING;
        if (is_moved(&facts->told, notice))
                return QUEUE_WRITE_NODE;
        if (is_far(m, notice, rules)) {
                /* Closed for something that has passed, and is not outlived yet: it opens, or goes, before anything is planned for later. */
                if (facts->told.is_begun && !facts->told.is_told && !facts->told.is_over)
                        return QUEUE_WAIT;
                /* The machine ends now, for good, before this change comes. */
                if (facts->told.is_told && facts->told.is_for_good && facts->told.usec == USEC_INFINITY)
                        return facts->told.is_same ? QUEUE_NOTHING : QUEUE_KNOWN;
        }
        return decide_counting(m, notice, facts, &facts->told, QUEUE_WRITE_NODE);
}

/* A message that an instance goes down is news while its node is Ready, unless the node became Ready after AWS sent it. Of a node that is
 * not Ready the coordinator has noticed that already. */
static QueueAct decide_state(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules) {
        bool is_news = notice && facts->is_ready && facts->ready_since_usec <= m->sent_usec && !facts->is_going &&
                       is_acted_upon(m, notice, rules) && !is_old(m, notice, rules);
        QueueAct act = _QUEUE_ACT_INVALID;

        if (is_news)
                act = facts->is_managed ? decide_managed(m, notice, facts, rules) : decide_unmanaged(m, notice, facts, rules);
        if (act == QUEUE_WRITE || act == QUEUE_WRITE_NODE || act == QUEUE_SOON || act == QUEUE_SWAP || act == QUEUE_MAKE_ROOM)
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
