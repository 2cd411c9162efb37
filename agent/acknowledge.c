/* SPDX-License-Identifier: Apache-2.0 */
#include "acknowledge.h"

#include "early-rule.h"
#include "log-catalog.h"
#include "log.h"
#include "string-util.h"

#define CALL_TIMEOUT_USEC (5 * USEC_PER_SEC)

struct Acknowledger {
        AcknowledgeContext c;
        Timer *timer;
        KubeCall *call; /* the read of the Node */
        char *id;       /* what is being acknowledged; NULL: nothing is */
        char *told_id;   /* the last that the cloud has taken */
        char *failed_id; /* that it was not taken has been said of it */
        usec_t again_usec;
        Backoff backoff;
};

static void end_attempt(Acknowledger *a, bool failed) {
        a->id = mfree(a->id);
        if (!failed)
                return;
        a->again_usec = usec_add(loop_now(a->c.env->loop), backoff_next(&a->backoff, a->c.env->random));
        timer_arm_earlier(a->timer, a->again_usec);
}

/* NULL: nothing is to be acknowledged now. As its source shows it: what an agent before this one wrote may lack what it names. */
static const Notice *find_drained(const Acknowledger *a) {
        const Notice *now = reflex_notice_now(a->c.reflex);

        if (a->c.config->dry_run || !now || !reflex_node(a->c.reflex) || reflex_state(a->c.reflex) != REFLEX_DRAINED ||
            !reflex_is_reported(a->c.reflex))
                return NULL;
        return notices_standing(a->c.notices, now->id);
}

static void on_acknowledged(const char *why, void *userdata) {
        Acknowledger *a = userdata;

        if (why) {
                if (!streq_ptr(a->failed_id, a->id)) {
                        (void) free_and_strdup(&a->failed_id, a->id);
                        log_warning(a->c.env->log,
                                    "Azure did not take the acknowledgement of event %s, for which this node is drained (%s): it is told again until its time has come.",
                                    a->id, why);
                }
                end_attempt(a, true);
                return;
        }
        log_event(a->c.env->log, LOG_LEVEL_NOTICE, MESSAGE_EVENT_ACKNOWLEDGED,
                  LOG_FIELDS({ "NODE", a->c.config->node_name }, { "NOTICE_ID", a->id }),
                  "This node is drained for event %s: Azure was told that it may begin now.", a->id);
        backoff_reset(&a->backoff);
        free(a->told_id);
        a->told_id = TAKE_PTR(a->id);
        end_attempt(a, false);
}

static void send_acknowledgement(Acknowledger *a, const Notice *n) {
        int r = notices_acknowledge(a->c.notices, n->id, on_acknowledged, a);

        if (r >= 0)
                return;
        log_debug_errno(a->c.env->log, r, "Failed to acknowledge event %s, retrying: %m", n->id);
        end_attempt(a, true);
}

static void on_node(const KubeReply *reply, void *userdata) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        Acknowledger *a = userdata;
        const KubeNode *node;
        const Notice *n;
        const char *why = NULL;
        int r = 0;

        if (!reply->error)
                r = kube_object_decode(&kube_node_kind, reply->object, kube_client_pool(a->c.client), &o);
        if (reply->error || r < 0)
                why = "the Node could not be read";
        a->call = kube_call_free(a->call);
        node = (const KubeNode *) o;
        n = find_drained(a);
        if (!why && (!n || !streq(n->id, a->id)))
                why = "the node is not drained for it any more";
        if (!why)
                why = acknowledge_why_not(n, a->c.config->acknowledge, node);
        if (!why)
                why = acknowledge_why_not_drained(n, node, a->c.env->boot_id);
        if (!why) {
                send_acknowledgement(a, n);
                return;
        }
        log_debug(a->c.env->log, "Event %s is not acknowledged yet: %s", a->id, why);
        end_attempt(a, true);
}

static void on_timer(Timer *t, void *userdata) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = ((Acknowledger *) userdata)->c.config->node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = CALL_TIMEOUT_USEC };
        Acknowledger *a = userdata;
        const Notice *n = find_drained(a);

        if (!n || a->id || streq_ptr(a->told_id, n->id) || acknowledge_why_not(n, a->c.config->acknowledge, reflex_node(a->c.reflex)))
                return;
        if (loop_now(a->c.env->loop) < a->again_usec) {
                timer_arm_earlier(a->timer, a->again_usec);
                return;
        }
        if (free_and_strdup(&a->id, n->id) < 0 ||
            kube_get(a->c.client, &target, &options, on_node, a, &a->call) < 0)
                end_attempt(a, true);
}

void acknowledger_wake(Acknowledger *a) {
        timer_arm_earlier(a->timer, 0);
}

int acknowledger_new(const AcknowledgeContext *context, Acknowledger **ret) {
        _cleanup_(acknowledger_freep) Acknowledger *a = NULL;
        int r;

        assert(context && ret);
        a = new0(Acknowledger, 1);
        if (!a)
                return -ENOMEM;
        a->c = *context;
        a->backoff = (Backoff){ .base_usec = USEC_PER_SEC, .cap_usec = USEC_PER_MINUTE, .jitter_permille = 200 };
        r = timer_new(a->c.env->loop, "acknowledge", on_timer, a, &a->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(a);
        return 0;
}

Acknowledger *acknowledger_free(Acknowledger *a) {
        if (!a)
                return NULL;
        kube_call_free(a->call);
        timer_free(a->timer);
        free(a->id);
        free(a->told_id);
        free(a->failed_id);
        return mfree(a);
}

void acknowledger_next_wakeup(const Acknowledger *a, Wakeups *w) {
        const Notice *n = find_drained(a);
        bool is_due = n && !streq_ptr(a->told_id, n->id) &&
                !acknowledge_why_not(n, a->c.config->acknowledge, reflex_node(a->c.reflex));

        if (!is_due && !a->id)
                return;
        wakeups_unfinished(w, "acknowledgement of", a->id ? a->id : n->id, a->id ? "under way" : "due",
                           ACKNOWLEDGE_WAKEUP_USEC);
        if (!a->id)
                wakeups_timer(w, a->timer);
        wakeups_await(w, a->id && (a->call || notices_acknowledges(a->c.notices)));
}
