/* SPDX-License-Identifier: Apache-2.0 */
#include "early.h"

#include "early-rule.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "node-marks.h"
#include "reboot-taken.h"
#include "string-util.h"
#include "strv.h"

#define RETRY_USEC USEC_PER_SEC
#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)

/* More events than that stand at one machine in no cloud: the one that would be asked for again first makes room. */
#define LEFT_MAX 16u

/* One that came to nothing. */
typedef struct Left {
        char *id;
        usec_t again_usec; /* loop_now(): not asked for before */
} Left;

struct Early {
        EarlyContext c;
        Timer *timer;
        KubeCall *call;

        char *id; /* that a slot was asked for; NULL: none is */
        NoticeEarly way;
        bool begun;          /* the node is drained for it */
        bool taken_over;     /* ... by an agent before this one, and the cloud may have been told */
        usec_t drained_usec; /* loop_now(); 0: not yet */

        Left left[LEFT_MAX];
        size_t n_left;
        char **never;   /* that a person has taken back */
        char *resumed_id; /* what an agent before this one had the node drained for; NULL: nothing, or that is dealt with */
        char *told_id; /* that it was taken and stands all the same has been said of it */
};

static const KubeNode *node_of(const Early *e) {
        return reflex_node(e->c.reflex);
}

static const char *taken_of(const Early *e) {
        return object_meta_annotation(&node_of(e)->object.meta, ANNOTATION_REBOOT_TAKEN);
}

static void say(Early *e, LogLevel level, const char *message_id, const char *id, const char *text) {
        log_event(e->c.env->log, level, message_id, LOG_FIELDS({ "NODE", e->c.config->node_name }, { "NOTICE_ID", id }), "%s", text);
}

/* -- asking ------------------------------------------------------------------------------------- */

static Left *find_left(Early *e, const char *id) {
        for (size_t i = 0; i < e->n_left; i++)
                if (streq(e->left[i].id, id))
                        return e->left + i;
        return NULL;
}

/* Returns the time (loop_now()) from which the reboot may be asked for. USEC_INFINITY: never again. */
static usec_t next_request_usec(const Early *e, const char *id) {
        const Left *l = find_left((Early *) e, id);

        return strv_contains(e->never, id) ? USEC_INFINITY : l ? l->again_usec : 0;
}

static void drop_left(Early *e, size_t i) {
        free(e->left[i].id);
        e->left[i] = e->left[--e->n_left];
}

/* Takes the id. What does not stand any more makes room. */
static void leave(Early *e, char *id, usec_t again_usec) {
        Left *l = find_left(e, id);
        size_t first = 0;

        if (l) {
                free(id);
                l->again_usec = again_usec;
                return;
        }
        for (size_t i = e->n_left; i > 0; i--)
                if (!notices_is_standing(e->c.notices, e->left[i - 1].id))
                        drop_left(e, i - 1);
        for (size_t i = 1; i < e->n_left; i++)
                if (e->left[i].again_usec < e->left[first].again_usec)
                        first = i;
        if (e->n_left == LEFT_MAX)
                drop_left(e, first);
        e->left[e->n_left++] = (Left){ id, again_usec };
}

/* Wakes when the first of them may be asked for again. */
static void await_left(Early *e) {
        for (size_t i = 0; i < e->n_left; i++)
                if (e->left[i].again_usec != USEC_INFINITY && loop_now(e->c.env->loop) < e->left[i].again_usec)
                        timer_arm_earlier(e->timer, e->left[i].again_usec);
}

static EarlyFacts facts_of(const Early *e, const Notice *n) {
        return (EarlyFacts){
                .wanted = notices_takes_early(e->c.notices) && !e->c.config->dry_run,
                .acknowledge = e->c.config->acknowledge,
                .has_bus = e->c.env->bus,
                .is_due = notices_is_due(e->c.notices, n->id),
                .is_refused = loop_now(e->c.env->loop) < next_request_usec(e, n->id),
                .node = node_of(e),
        };
}

static bool may_be_taken(const Notice *n, void *userdata) {
        Early *e = userdata;
        EarlyFacts f = facts_of(e, n);

        if (f.wanted && early_was_taken(n, f.node) && !streq_ptr(e->told_id, n->id) && free_and_strdup(&e->told_id, n->id) >= 0)
                say(e, LOG_LEVEL_NOTICE, MESSAGE_EARLY_REBOOT_LEFT, n->id,
                    "A reboot of this node that was announced was taken early once, and is announced all the same: it is left to its time.");
        return !early_why_left(n, &f);
}

bool early_may_take(const Early *e, const Notice *n) {
        EarlyFacts f;

        if (!node_of(e))
                return false;
        f = facts_of(e, n);
        f.is_refused = next_request_usec(e, n->id) == USEC_INFINITY;
        return !early_why_left(n, &f);
}

static void ask_for_slot(Early *e) {
        const Notice *n = notices_find_early(e->c.notices, may_be_taken, e);
        int r;

        await_left(e);
        if (!n || reboot_state(e->c.reboot) != REBOOT_NONE)
                return;
        e->way = n->early;
        r = free_and_strdup(&e->id, n->id);
        if (r >= 0)
                r = reboot_request_early(e->c.reboot, n->id, n->early == NOTICE_EARLY_CLOUD);
        if (r >= 0)
                return;
        e->id = mfree(e->id);
        if (r != -EBUSY) /* one that is on logind's schedule goes first */
                log_debug_errno(e->c.env->log, r, "Failed to ask for a slot to take a reboot early: %m");
}

/* -- it comes to nothing ------------------------------------------------------------------------ */

static void request_is_over(Early *e) {
        bool cancelled = reboot_event_was_cancelled(e->c.reboot), for_good = e->begun || cancelled;
        _cleanup_free_ char *id = TAKE_PTR(e->id);

        e->call = kube_call_free(e->call);
        e->begun = e->taken_over = false;
        e->drained_usec = 0;
        if (cancelled)
                (void) strv_extend(&e->never, id);
        if (notices_is_standing(e->c.notices, id))
                say(e, LOG_LEVEL_WARNING, MESSAGE_EARLY_REBOOT_LEFT, id,
                    for_good ? "The announced reboot of this node is not taken early: it is left to its time."
                             : "The announced reboot of this node is not taken early now: it is asked for again in six hours, if it is still announced.");
        leave(e, TAKE_PTR(id), for_good ? USEC_INFINITY : usec_add(loop_now(e->c.env->loop), EARLY_AGAIN_USEC));
        (void) notices_set_early(e->c.notices, NULL, "its reboot is not taken early any more, and its time has not come");
}

/* An agent before this one had the node drained for it, in this boot. Once: what its own rule drains the node for later, or does by
 * now, is nobody's to undo. */
static void undo_predecessor(Early *e) {
        const Notice *now = reflex_notice_now(e->c.reflex);
        _cleanup_free_ char *id = NULL;

        if (!e->resumed_id)
                return;
        if (now && streq(now->id, e->resumed_id) && !notices_is_standing(e->c.notices, now->id))
                return; /* its source has not said yet, or not any more: that cancels it */
        id = TAKE_PTR(e->resumed_id);
        if (now && streq(now->id, id) && now->kind == NOTICE_MAINTENANCE && reboot_taken_has(taken_of(e), id) &&
            !notices_is_due(e->c.notices, id))
                reflex_cancel(e->c.reflex, "the agent was started anew while the reboot was taken early, and its time has not come");
}

/* 1: the cloud may reboot the machine at any moment; 0; -ENOMEM. */
static int take_over(Early *e, const KubeNode *node, const Notice *n, IntentPhase phase) {
        bool acknowledged = streq_ptr(n->source, "azure") && phase == INTENT_DRAINED && e->c.config->acknowledge != ACKNOWLEDGE_NO;
        int r;

        if (n->kind != NOTICE_MAINTENANCE || !reboot_taken_has(object_meta_annotation(&node->object.meta, ANNOTATION_REBOOT_TAKEN), n->id))
                return 0;
        r = free_and_strdup(&e->id, n->id);
        if (r >= 0)
                r = reboot_take_over(e->c.reboot, node, n->id, acknowledged, EARLY_GONE_USEC);
        if (r <= 0) {
                e->id = mfree(e->id);
                return r;
        }
        e->way = acknowledged ? NOTICE_EARLY_ACK : NOTICE_EARLY_CLOUD;
        e->begun = e->taken_over = true;
        notices_hold_early(e->c.notices, true);
        return notices_set_early(e->c.notices, n->id, NULL) < 0 ? -ENOMEM : 1;
}

void early_resumed(Early *e, const KubeNode *node, const Notice *n, IntentPhase phase) {
        int r = take_over(e, node, n, phase);

        if (r > 0)
                return;
        if (r < 0 || free_and_strdup(&e->resumed_id, n->id) < 0)
                log_warning(e->c.env->log, "Out of memory: a drain for a reboot that was taken early is not undone. If the node stays cordoned before its time, make it schedulable.");
}

/* NULL: it goes on. */
static const char *why_not_any_more(Early *e) {
        const KubeNode *n = node_of(e);

        if (!notices_is_standing(e->c.notices, e->id))
                return "the reboot is not announced any more";
        if (n->object.meta.deletion_usec > 0)
                return "the Node is being deleted";
        if (e->begun)
                return NULL;
        if (!notices_takes_early(e->c.notices))
                return "[Policy] Reboot= does not say early any more";
        return notices_is_due(e->c.notices, e->id) ? "its time has come" : NULL;
}

/* -- granted ------------------------------------------------------------------------------------ */

static void on_marked(const KubeReply *reply, void *userdata) {
        Early *e = userdata;

        if (reply->error)
                log_debug(e->c.env->log, "Failed to note on the Node which reboot is taken early, retrying: %s", reply->error->message);
        e->call = kube_call_free(e->call);
        timer_arm_earlier(e->timer, usec_add(loop_now(e->c.env->loop), RETRY_USEC)); /* the informer brings it */
}

static bool is_not_announced(const char *id, void *userdata) {
        Early *e = userdata;

        return !notices_is_standing(e->c.notices, id);
}

static void write_mark(Early *e) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = e->c.config->node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = CALL_TIMEOUT_USEC };
        _cleanup_free_ char *text = NULL, *body = NULL;
        int r;

        if (e->call)
                return;
        r = reboot_taken_add(taken_of(e), e->id, is_not_announced, e, &text);
        if (r == -ENOSPC || r == -EINVAL) {
                reboot_withdraw(e->c.reboot, "the annotation " ANNOTATION_REBOOT_TAKEN " of this Node has no room for one more event: take off those that are over");
                return;
        }
        body = text ? node_patch_annotation(node_of(e), ANNOTATION_REBOOT_TAKEN, text) : NULL;
        if (!body || kube_patch(e->c.client, &target, KUBE_PATCH_MERGE, body, &options, on_marked, e, &e->call) < 0)
                timer_arm_earlier(e->timer, usec_add(loop_now(e->c.env->loop), RETRY_USEC));
}

static bool is_drained(const Early *e) {
        return reflex_state(e->c.reflex) == REFLEX_DRAINED && reflex_is_reported(e->c.reflex);
}

/* The node is empty for it: whose turn it is. */
static void take_next_step(Early *e) {
        usec_t now = loop_now(e->c.env->loop);

        if (e->drained_usec == 0) {
                e->drained_usec = now;
                say(e, LOG_LEVEL_NOTICE, MESSAGE_EARLY_REBOOT_DRAINED, e->id,
                    e->way == NOTICE_EARLY_CLOUD ? "This node is drained for a reboot that was announced: the coordinator has the cloud reboot its machine now."
                    : e->way == NOTICE_EARLY_ACK ? "This node is drained for a reboot that was announced: the cloud is told that it may begin now."
                                                 : "This node is drained for a reboot that was announced: its machine is rebooted now.");
                if (e->way == NOTICE_EARLY_MACHINE) {
                        reboot_go_on(e->c.reboot);
                        return;
                }
        }
        if (now >= usec_add(e->drained_usec, EARLY_GONE_USEC))
                reboot_withdraw(e->c.reboot, "the cloud has not rebooted this machine within ten minutes after its node was drained. The Events of this Node say what the coordinator has done about it");
        else
                timer_arm_earlier(e->timer, usec_add(e->drained_usec, EARLY_GONE_USEC));
}

static void go_on_granted(Early *e) {
        const Notice *now = reflex_notice_now(e->c.reflex);

        if (!reboot_taken_has(taken_of(e), e->id)) {
                write_mark(e);
                return;
        }
        if (!e->begun) {
                if (reflex_state(e->c.reflex) == REFLEX_CANCELLED) /* it comes again when the marks are off */
                        return;
                if (notices_set_early(e->c.notices, e->id, NULL) < 0) {
                        timer_arm_earlier(e->timer, usec_add(loop_now(e->c.env->loop), RETRY_USEC));
                        return;
                }
                e->begun = true;
                now = reflex_notice_now(e->c.reflex);
        }
        if (!now || !streq(now->id, e->id) || reflex_state(e->c.reflex) == REFLEX_CANCELLED)
                reboot_withdraw(e->c.reboot, now && !streq(now->id, e->id) ? "the node is out of service for something else"
                                                                           : "somebody made the node schedulable again");
        else if (is_drained(e))
                take_next_step(e);
}

/* -- what there is ------------------------------------------------------------------------------ */

static void go_on_asked(Early *e) {
        const char *why = why_not_any_more(e);
        bool told = e->begun && (e->taken_over || reboot_cloud_is_told(e->c.reboot));

        /* The call is on its way to the cloud, and cannot be taken back: no pod may come in between. */
        notices_hold_early(e->c.notices, told);
        if (why && !told)
                reboot_withdraw(e->c.reboot, why);
        else if (reboot_state(e->c.reboot) == REBOOT_TAKEN)
                go_on_granted(e);
}

static void on_timer(Timer *t, void *userdata) {
        Early *e = userdata;

        if (!node_of(e) || e->c.machine_ends(e->c.userdata) || reboot_state(e->c.reboot) == REBOOT_REBOOTING)
                return;
        if (e->id && streq_ptr(reboot_event(e->c.reboot), e->id))
                go_on_asked(e);
        if (e->id && !streq_ptr(reboot_event(e->c.reboot), e->id))
                request_is_over(e);
        if (e->id)
                return;
        undo_predecessor(e);
        ask_for_slot(e);
}

void early_wake(Early *e) {
        timer_arm_earlier(e->timer, 0);
}

int early_new(const EarlyContext *context, Early **ret) {
        _cleanup_(early_freep) Early *e = NULL;
        int r;

        assert(context && context->machine_ends && ret);
        e = new0(Early, 1);
        if (!e)
                return -ENOMEM;
        e->c = *context;
        r = timer_new(e->c.env->loop, "early", on_timer, e, &e->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(e);
        return 0;
}

Early *early_free(Early *e) {
        if (!e)
                return NULL;
        kube_call_free(e->call);
        timer_free(e->timer);
        free(e->id);
        free(e->resumed_id);
        while (e->n_left > 0)
                drop_left(e, e->n_left - 1);
        free(e->told_id);
        strv_free(e->never);
        return mfree(e);
}

/* -- tests -------------------------------------------------------------------------------------- */

static void report_granted(const Early *e, Wakeups *w) {
        if (!reboot_taken_has(taken_of(e), e->id)) {
                wakeups_unfinished(w, "early reboot", e->id, "to be noted on the Node", EARLY_WAKEUP_USEC);
                wakeups_timer(w, e->timer);
                wakeups_await(w, e->call);
        } else if (e->begun && is_drained(e)) {
                wakeups_unfinished(w, "early reboot", e->id, "drained", EARLY_GONE_USEC);
                wakeups_timer(w, e->timer);
        }
}

void early_next_wakeup(const Early *e, Wakeups *w) {
        usec_t again = USEC_INFINITY;

        if (!node_of(e) || e->c.machine_ends(e->c.userdata) || reboot_state(e->c.reboot) == REBOOT_REBOOTING)
                return;
        if (e->id && !streq_ptr(reboot_event(e->c.reboot), e->id)) {
                wakeups_unfinished(w, "early reboot", e->id, "its request is over", EARLY_WAKEUP_USEC);
                wakeups_timer(w, e->timer);
        } else if (e->id && reboot_state(e->c.reboot) == REBOOT_TAKEN)
                report_granted(e, w);
        for (size_t i = 0; !e->id && i < e->n_left; i++)
                if (e->left[i].again_usec > w->now_usec)
                        again = MIN(again, e->left[i].again_usec);
        if (again == USEC_INFINITY)
                return;
        wakeups_unfinished(w, "early reboots", "left", "", usec_sub(again, w->now_usec));
        wakeups_timer(w, e->timer);
}
