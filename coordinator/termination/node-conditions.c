/* SPDX-License-Identifier: Apache-2.0 */
#include "node-conditions.h"

#include "backoff.h"
#include "log.h"
#include "string-util.h"
#include "termination-marks.h"

#define CONDITIONS_MAX 4u
#define SETTLE_USEC USEC_PER_SEC
/* Beyond what finalizers wait for while others evict. */
#define HOLD_USEC (20 * USEC_PER_SEC)
#define RETRY_BASE_USEC (500 * USEC_PER_MSEC)
#define RETRY_CAP_USEC (30 * USEC_PER_SEC)

typedef struct Entry {
        const char *type;
        char *reason, *message;
        ConditionStatus status;
        usec_t transition_usec;
        bool unsent; /* not accepted yet, and not under way */
        bool sent;   /* under way */
} Entry;

struct NodeConditions {
        KubeClient *client;
        Env *env;
        HttpGuard guard;
        char *node, *uid;
        Entry entries[CONDITIONS_MAX];
        size_t n_entries;
        Timer *timer;
        KubeCall *call;
        Backoff backoff;
        bool over;       /* the Node is gone */
        usec_t due_usec; /* loop_now(): when what is unsent may be sent */
};

static void on_timer(Timer *t, void *userdata);

int node_conditions_new(KubeClient *c, HttpGuard guard, const char *node, const char *uid,
                        NodeConditions **ret) {
        _cleanup_(node_conditions_freep) NodeConditions *s = NULL;
        int r;

        assert(c && node && uid && ret);
        s = new0(NodeConditions, 1);
        if (!s)
                return -ENOMEM;
        s->client = c;
        s->env = kube_client_env(c);
        s->guard = guard;
        s->backoff = (Backoff){ .base_usec = RETRY_BASE_USEC,
                                .cap_usec = RETRY_CAP_USEC,
                                .jitter_permille = 200 };
        if (free_and_strdup(&s->node, node) < 0 || free_and_strdup(&s->uid, uid) < 0)
                return -ENOMEM;
        r = timer_new(s->env->loop, "node-conditions", on_timer, s, &s->timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

NodeConditions *node_conditions_free(NodeConditions *s) {
        if (!s)
                return NULL;
        kube_call_free(s->call);
        timer_free(s->timer);
        for (size_t i = 0; i < s->n_entries; i++) {
                free(s->entries[i].reason);
                free(s->entries[i].message);
        }
        free(s->node);
        free(s->uid);
        return mfree(s);
}

static bool has_unsent(const NodeConditions *s) {
        for (size_t i = 0; i < s->n_entries; i++)
                if (s->entries[i].unsent)
                        return true;
        return false;
}

static void on_written(const KubeReply *reply, void *userdata) {
        NodeConditions *s = userdata;
        unsigned http = reply->error ? reply->error->http : 0;
        bool failed = reply->error, gone = http == 404 || http == 422;

        if (failed)
                log_debug(s->env->log, "Failed to write conditions of node %s, %s: %s", s->node,
                          gone ? "it is gone" : "trying again", reply->error->message);
        s->call = kube_call_free(s->call);
        s->over = gone;
        for (size_t i = 0; i < s->n_entries; i++) {
                s->entries[i].unsent |= s->entries[i].sent && failed;
                s->entries[i].sent = false;
        }
        if (!failed)
                backoff_reset(&s->backoff);
        if (!has_unsent(s) || s->over)
                return;
        if (failed)
                timer_arm_in(s->timer, backoff_next(&s->backoff, s->env->random));
        else
                timer_arm(s->timer, s->due_usec);
}

/* What was not accepted yet, NULL on ENOMEM or where there is nothing. */
static char *newest_body(const NodeConditions *s) {
        NodeConditionMark marks[CONDITIONS_MAX];
        size_t n = 0;

        for (size_t i = 0; i < s->n_entries; i++) {
                const Entry *e = s->entries + i;

                if (e->unsent || e->sent)
                        marks[n++] = (NodeConditionMark){ e->type, e->status, e->reason, e->message,
                                                          e->transition_usec };
        }
        return n > 0 ? termination_conditions_patch(s->uid, marks, n) : NULL;
}

static void note_sent(NodeConditions *s) {
        for (size_t i = 0; i < s->n_entries; i++) {
                s->entries[i].sent |= s->entries[i].unsent;
                s->entries[i].unsent = false;
        }
}

static char *on_turn(void *userdata) {
        NodeConditions *s = userdata;
        char *body = newest_body(s);

        if (body)
                note_sent(s);
        return body;
}

static void on_timer(Timer *t, void *userdata) {
        NodeConditions *s = userdata;
        KubeTarget target = { .kind = &kube_node_kind, .name = s->node, .subresource = "status" };
        KubeCallOptions o = { .lane = HTTP_LANE_BULK,
                              .guard = s->guard,
                              .rank = KUBE_RANK_TELLS,
                              .body_now = on_turn,
                              .object_unread = true };
        _cleanup_free_ char *body = NULL;

        if (s->call || !has_unsent(s))
                return;
        body = newest_body(s);
        if (!body ||
            kube_patch(s->client, &target, KUBE_PATCH_STRATEGIC, body, &o, on_written, s, &s->call) < 0)
                timer_arm_in(s->timer, USEC_PER_SEC);
        else
                note_sent(s);
}

void node_conditions_hold(NodeConditions *s) {
        s->call = kube_call_free(s->call);
        for (size_t i = 0; i < s->n_entries; i++) {
                s->entries[i].unsent |= s->entries[i].sent;
                s->entries[i].sent = false;
        }
        if (!s->over)
                timer_arm_in(s->timer, HOLD_USEC);
}

void node_conditions_end(NodeConditions *s) {
        s->over = true;
        s->call = kube_call_free(s->call);
        timer_disarm(s->timer);
}

void node_conditions_flush(NodeConditions *s) {
        s->due_usec = 0;
        if (!s->call && !s->over)
                timer_arm_in(s->timer, 0);
}

void node_conditions_set(NodeConditions *s, const char *type, ConditionStatus status, const char *reason,
                         const char *message) {
        Entry *e = NULL;

        for (size_t i = 0; i < s->n_entries; i++)
                if (streq(s->entries[i].type, type))
                        e = s->entries + i;
        if (e && e->status == status && streq_ptr(e->reason, reason) && streq_ptr(e->message, message))
                return;
        if (!e) {
                assert(s->n_entries < CONDITIONS_MAX);
                e = s->entries + s->n_entries++;
                *e = (Entry){ .type = type };
        }
        if (e->status != status || e->transition_usec == 0)
                e->transition_usec = loop_wall(s->env->loop);
        e->status = status;
        (void) free_and_strdup(&e->reason, reason);
        (void) free_and_strdup(&e->message, message);
        e->unsent = true;
        if (s->over || timer_is_armed(s->timer))
                return;
        s->due_usec = usec_add(loop_now(s->env->loop), SETTLE_USEC); /* with what else it brings */
        if (!s->call)
                timer_arm(s->timer, s->due_usec);
}
