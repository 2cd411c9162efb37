/* SPDX-License-Identifier: Apache-2.0 */
#include "by-hand.h"

#include "log.h"
#include "pod-class.h"
#include "string-util.h"

#define RETRY_USEC USEC_PER_SEC

static const char uncordoned[] = "somebody made the node schedulable again";
static const char taken_back[] = "whoever asked for it has taken it back";

struct ByHand {
        ByHandContext c;
        bool started;
        NoticeByHand drain;      /* what is asked for */
        Notice *for_drain, *for_reboot; /* one id: the node is taken out of service once for both */
        const char *drain_ended; /* static: why the last one did; NULL: none has in this life */
        Timer *timer;
};

/* -- what is needed ----------------------------------------------------------------------------- */

static bool is_ours(const ByHand *h, const Notice *n) {
        return n && streq(n->id, h->for_drain->id);
}

/* Until the machine's shutdown is announced, what held the reboot's pods stays. */
static bool by_hand_reboot_needs_node(const ByHand *h) {
        switch (reboot_state(h->c.reboot)) {
        case REBOOT_HELD:
                return true;
        case REBOOT_TAKEN: /* until the node is drained for the event's own notice */
        case REBOOT_REBOOTING:
                return is_ours(h, reflex_notice_now(h->c.reflex));
        case REBOOT_NONE:
        case REBOOT_ASKED:
        case REBOOT_GRANTED:
        case _REBOOT_STATE_MAX:
                break;
        }
        return false;
}

const Notice *by_hand_stands(const ByHand *h) {
        if (h->drain != BY_HAND_NONE)
                return h->for_drain;
        return by_hand_reboot_needs_node(h) ? h->for_reboot : NULL;
}

/* Beside a notice of somebody else's. */
static int by_hand_note_beside(ByHand *h, const Notice *now) {
        _cleanup_(notice_freep) Notice *copy = NULL;
        int r;

        r = notice_copy(now, &copy);
        if (r < 0)
                return r;
        copy->by_hand = h->drain;
        return reflex_replace(h->c.reflex, copy);
}

/* Returns true if the reflex has to act otherwise for what people have asked for. */
static bool by_hand_differs(const ByHand *h) {
        const Notice *wanted = by_hand_stands(h), *now = reflex_notice_now(h->c.reflex);

        if (!h->started)
                return false;
        switch (reflex_state(h->c.reflex)) {
        case REFLEX_CANCELLED: /* the agent calls by_hand_wake() when the marks are off */
                return false;
        case REFLEX_IDLE:
                return wanted;
        case REFLEX_PLANNED:
        case REFLEX_CORDONED:
        case REFLEX_LB_WAIT:
        case REFLEX_DRAINING:
        case REFLEX_VOLUMES:
        case REFLEX_DRAINED:
        case REFLEX_ENDING:
                break;
        case _REFLEX_STATE_MAX:
        case _REFLEX_STATE_INVALID:
                assert(false && "a reflex in no state");
        }
        if (!is_ours(h, now))
                return now->by_hand != h->drain;
        return !wanted || now->by_hand != wanted->by_hand || !streq(now->action, wanted->action);
}

/* Makes of what is acted upon what is asked for. Not within a step of the reflex. */
static int by_hand_settle(ByHand *h) {
        const Notice *wanted = by_hand_stands(h), *now = reflex_notice_now(h->c.reflex);

        if (!by_hand_differs(h))
                return 0;
        if (reflex_state(h->c.reflex) == REFLEX_IDLE) {
                /* A person may have un-cordoned the node during an earlier request. This request is a new one. */
                intent_log_forget(h->c.intents, wanted->id);
                return h->c.on_begin(wanted, h->c.userdata);
        }
        if (!is_ours(h, now))
                return by_hand_note_beside(h, now);
        if (wanted)
                return reflex_replace(h->c.reflex, wanted);
        reflex_cancel(h->c.reflex, taken_back);
        return 0;
}

static void on_timer(Timer *t, void *userdata) {
        ByHand *h = userdata;

        if (by_hand_settle(h) < 0)
                timer_arm_in(t, RETRY_USEC);
}

void by_hand_wake(ByHand *h) {
        timer_arm_earlier(h->timer, 0);
}

void by_hand_overruled(ByHand *h) {
        if (h->drain != BY_HAND_NONE)
                h->drain_ended = uncordoned;
        h->drain = BY_HAND_NONE;
        if (reboot_state(h->c.reboot) == REBOOT_HELD)
                reboot_withdraw(h->c.reboot, uncordoned);
}

/* -- verbs -------------------------------------------------------------------------------------- */

static int by_hand_check_started(const ByHand *h, const char **reterr_message) {
        if (h->started)
                return 0;
        *reterr_message = "the agent has not seen its Node yet: the API server does not answer, or the kubelet has not registered it";
        return -EAGAIN;
}

static int by_hand_check_can_begin(const ByHand *h, const char **reterr_message) {
        int r;

        r = by_hand_check_started(h, reterr_message);
        if (r < 0 || !h->c.dry_run)
                return r;
        *reterr_message = "this agent does nothing but say what it would do ([Agent] DryRun=yes in agent.conf)";
        return -EOPNOTSUPP;
}

int by_hand_drain(ByHand *h, bool force, const char **reterr_message) {
        NoticeByHand before = h->drain;
        int r;

        r = by_hand_check_can_begin(h, reterr_message);
        if (r < 0)
                return r;
        h->drain = MAX(before, force ? BY_HAND_FORCE : BY_HAND_DRAIN);
        h->for_drain->by_hand = h->drain;
        r = by_hand_settle(h);
        if (r < 0) {
                *reterr_message = "out of memory";
                h->drain = h->for_drain->by_hand = before;
        }
        return r;
}

int by_hand_cancel_drain(ByHand *h, const char **reterr_message) {
        int r;

        r = by_hand_check_started(h, reterr_message);
        if (r < 0)
                return r;
        if (h->drain != BY_HAND_NONE)
                h->drain_ended = taken_back;
        h->drain = BY_HAND_NONE;
        if (by_hand_settle(h) < 0)
                timer_arm_in(h->timer, RETRY_USEC);
        return 0;
}

int by_hand_reboot(ByHand *h, bool force, const char **reterr_message) {
        int r;

        r = by_hand_check_can_begin(h, reterr_message);
        if (r < 0)
                return r;
        if (h->c.machine_ends(h->c.userdata))
                return 0; /* it does already, and waits for nobody */
        r = reboot_request(h->c.reboot, force);
        if (r == -EOPNOTSUPP)
                *reterr_message = "the agent runs without a system bus to reach logind by";
        return r;
}

/* Of a machine that goes down the slot is in use. */
int by_hand_cancel_reboot(ByHand *h, const char **reterr_message) {
        int r;

        r = by_hand_check_started(h, reterr_message);
        if (r < 0)
                return r;
        if (!h->c.machine_ends(h->c.userdata))
                reboot_cancel(h->c.reboot, taken_back);
        return 0;
}

/* -- what became of it -------------------------------------------------------------------------- */

bool by_hand_find_protected(const ByHand *h, char **ret_what) {
        KubeObject *o;

        *ret_what = NULL;
        if (!informer_synced(h->c.pods)) {
                *ret_what = strdup("the list of the node's pods");
                return true;
        }
        INFORMER_FOREACH (o, h->c.pods) {
                const KubePod *pod = (const KubePod *) o;
                const char *key;

                if (pod_classify(pod, loop_wall(h->c.env->loop), &key, NULL) != POD_CLASS_PROTECTED)
                        continue;
                *ret_what = strf("pod %s/%s, which %s protects", strempty(pod->object.meta.ns),
                                 pod->object.meta.name, key);
                return true;
        }
        return false;
}

const char *by_hand_drain_state(const ByHand *h) {
        ReflexState s = reflex_state(h->c.reflex);

        if (!h->started)
                return "Unknown";
        if (h->drain == BY_HAND_NONE)
                return "None";
        return s == REFLEX_DRAINED || s == REFLEX_ENDING ? "Drained" : "Draining";
}

const char *by_hand_reboot_state(const ByHand *h) {
        if (h->c.machine_ends(h->c.userdata))
                return "Rebooting";
        if (!h->started)
                return "Unknown";
        if (!reboot_is_by_hand(h->c.reboot))
                return "None";
        switch (reboot_state(h->c.reboot)) {
        case REBOOT_ASKED:
                return "Requested";
        case REBOOT_TAKEN:
                return "Requested";
        case REBOOT_HELD:
                return "Held";
        case REBOOT_REBOOTING:
                return "Rebooting";
        case REBOOT_NONE:
        case REBOOT_GRANTED: /* of a schedule */
        case _REBOOT_STATE_MAX:
                break;
        }
        return "None";
}

static char *by_hand_waits_for(const ByHand *h) {
        char *what;

        return by_hand_find_protected(h, &what) ? what : strdup("");
}

char *by_hand_drain_reason(const ByHand *h) {
        if (h->drain == BY_HAND_NONE)
                return strdup(strempty(h->drain_ended));
        return reflex_waits_for_protected(h->c.reflex) ? by_hand_waits_for(h) : strdup("");
}

char *by_hand_reboot_reason(const ByHand *h) {
        switch (reboot_state(h->c.reboot)) {
        case REBOOT_NONE:
                return strdup(strempty(reboot_why_ended(h->c.reboot)));
        case REBOOT_ASKED:
                return strdup("the coordinator's grant");
        case REBOOT_HELD:
                return by_hand_waits_for(h);
        case REBOOT_GRANTED:
        case REBOOT_TAKEN:
        case REBOOT_REBOOTING:
        case _REBOOT_STATE_MAX:
                break;
        }
        return strdup("");
}

/* -- new, free ---------------------------------------------------------------------------------- */

void by_hand_start(ByHand *h, NoticeByHand drain) {
        h->started = true;
        h->drain = h->for_drain->by_hand = drain;
        by_hand_wake(h);
}

/* A notice without an end: evicted, never deleted past a budget. */
static int make_manual(const Env *env, const char *action, Notice **ret) {
        _cleanup_(notice_freep) Notice *n = new0(Notice, 1);

        if (!n)
                return -ENOMEM;
        n->id = strf("manual-%s", env->boot_id);
        n->kind = NOTICE_MANUAL;
        n->deadline_usec = USEC_INFINITY;
        if (!n->id || free_and_strdup(&n->source, "D-Bus") < 0 || free_and_strdup(&n->action, action) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(n);
        return 0;
}

int by_hand_new(const ByHandContext *context, ByHand **ret) {
        _cleanup_(by_hand_freep) ByHand *h = NULL;
        int r;

        assert(context && context->on_begin && context->machine_ends && ret);
        h = new0(ByHand, 1);
        if (!h)
                return -ENOMEM;
        h->c = *context;
        r = make_manual(h->c.env, "drain", &h->for_drain);
        if (r >= 0)
                r = make_manual(h->c.env, "reboot", &h->for_reboot);
        if (r >= 0)
                r = timer_new(h->c.env->loop, "by-hand", on_timer, h, &h->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(h);
        return 0;
}

ByHand *by_hand_free(ByHand *h) {
        if (!h)
                return NULL;
        timer_free(h->timer);
        notice_free(h->for_drain);
        notice_free(h->for_reboot);
        return mfree(h);
}

void by_hand_next_wakeup(const ByHand *h, Wakeups *w) {
        if (!by_hand_differs(h))
                return;
        wakeups_unfinished(w, "request of", "a person", by_hand_drain_state(h), RETRY_USEC);
        wakeups_timer(w, h->timer);
}
