/* SPDX-License-Identifier: Apache-2.0 */
#include "claim-status.h"

#include "backoff.h"
#include "log.h"
#include "string-util.h"

#define CONDITIONS_MAX 16u
#define BLOCKERS_MAX 20u
/* What does not last so long is not worth a write. */
#define SETTLE_USEC USEC_PER_SEC
#define PROGRESS_USEC (2 * USEC_PER_SEC)
/* Beyond what finalizers wait for while others evict. */
#define HOLD_USEC (20 * USEC_PER_SEC)

typedef struct StatusCondition {
        char *type, *reason, *message;
        ConditionStatus status;
        usec_t transition_usec;
} StatusCondition;

typedef struct StatusBlocker {
        char *pod, *reason, *detail, *pdb, *message;
        usec_t since_usec;
} StatusBlocker;

struct ClaimStatus {
        KubeClient *client;
        Env *env;
        HttpGuard guard;
        char *claim, *node, *node_uid, *cloud_error;
        const char *phase;
        usec_t deadline_usec;
        StatusCondition conditions[CONDITIONS_MAX];
        size_t n_conditions;
        StatusBlocker blockers[BLOCKERS_MAX];
        size_t n_blockers, pods_left;
        bool pods_known, dirty;
        bool only_progress;      /* what is dirty is of the pods left alone */
        bool call_only_progress; /* and so is what is under way */
        usec_t written_usec,
                due_usec; /* loop_now(): the last write, and when what is dirty may be written */
        usec_t held_until_usec;
        TokenBucket *progress;
        Timer *timer;
        KubeCall *call;
        Backoff backoff;
};

static void on_timer(Timer *t, void *userdata);

static int seed_conditions(ClaimStatus *s, const KubeNodeClaim *claim) {
        for (size_t i = 0; i < claim->n_conditions && s->n_conditions < CONDITIONS_MAX; i++) {
                const Condition *from = claim->conditions + i;
                StatusCondition *to = s->conditions + s->n_conditions++;

                to->status = from->status;
                to->transition_usec = from->last_transition_usec;
                if (free_and_strdup(&to->type, from->type) < 0 ||
                    free_and_strdup(&to->reason, from->reason) < 0 ||
                    free_and_strdup(&to->message, from->message) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int claim_status_new(KubeClient *c, HttpGuard guard, const KubeNodeClaim *claim, TokenBucket *progress,
                     ClaimStatus **ret) {
        _cleanup_(claim_status_freep) ClaimStatus *s = NULL;
        int r;

        assert(c && claim && ret);
        s = new0(ClaimStatus, 1);
        if (!s)
                return -ENOMEM;
        s->client = c;
        s->env = kube_client_env(c);
        s->guard = guard;
        s->progress = progress;
        s->deadline_usec = USEC_INFINITY;
        s->backoff = (Backoff){ .base_usec = USEC_PER_SEC,
                                .cap_usec = 30 * USEC_PER_SEC,
                                .jitter_permille = 200 };
        r = free_and_strdup(&s->claim, claim->object.meta.name);
        if (r < 0)
                return r;
        r = seed_conditions(s, claim);
        if (r < 0)
                return r;
        r = timer_new(s->env->loop, "claim-status", on_timer, s, &s->timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

static void blocker_done(StatusBlocker *b) {
        free(b->pod);
        free(b->reason);
        free(b->detail);
        free(b->pdb);
        free(b->message);
        *b = (StatusBlocker){};
}

ClaimStatus *claim_status_free(ClaimStatus *s) {
        if (!s)
                return NULL;
        kube_call_free(s->call);
        timer_free(s->timer);
        for (size_t i = 0; i < s->n_conditions; i++) {
                free(s->conditions[i].type);
                free(s->conditions[i].reason);
                free(s->conditions[i].message);
        }
        for (size_t i = 0; i < s->n_blockers; i++)
                blocker_done(s->blockers + i);
        free(s->claim);
        free(s->node);
        free(s->node_uid);
        free(s->cloud_error);
        free(s);
        return NULL;
}

static void mark_dirty(ClaimStatus *s, bool progress) {
        usec_t at = usec_add(loop_now(s->env->loop), SETTLE_USEC);

        if (progress && s->written_usec > 0)
                at = MAX(at, usec_add(s->written_usec, PROGRESS_USEC));
        at = MAX(at, s->held_until_usec);
        s->due_usec = s->dirty ? MIN(s->due_usec, at) : at;
        s->only_progress = progress && (s->only_progress || !s->dirty);
        s->dirty = true;
        if (!s->call)
                timer_arm_earlier(s->timer, s->due_usec);
}

/* -- the patch ------------------------------------------------------------------------------------------ */

static void add_time(JsonWriter *w, const char *key, usec_t wall_usec) {
        char text[RFC3339_MAX];

        rfc3339_format(wall_usec, text);
        json_add_string(w, key, text);
}

static void add_conditions(JsonWriter *w, const ClaimStatus *s) {
        json_open_array(w, "conditions");
        for (size_t i = 0; i < s->n_conditions; i++) {
                const StatusCondition *c = s->conditions + i;

                json_open_object(w, NULL);
                json_add_string(w, "type", c->type);
                json_add_string(w, "status", condition_status_to_string(c->status));
                json_add_string(w, "reason", c->reason);
                json_add_string(w, "message", c->message);
                add_time(w, "lastTransitionTime", c->transition_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static void add_blockers(JsonWriter *w, const ClaimStatus *s) {
        json_open_array(w, "blockers");
        for (size_t i = 0; i < s->n_blockers; i++) {
                const StatusBlocker *b = s->blockers + i;

                json_open_object(w, NULL);
                json_add_string(w, "pod", b->pod);
                json_add_string(w, "reason", b->reason);
                json_add_string(w, "pdb", b->pdb);
                json_add_string(w, "message", isempty(b->message) ? NULL : b->message);
                add_time(w, "since", b->since_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static char *status_body(const ClaimStatus *s) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "status");
        json_add_string(w, "nodeName", s->node);
        json_add_string(w, "nodeUID", s->node_uid);
        json_add_string(w, "phase", s->phase);
        if (s->deadline_usec != USEC_INFINITY)
                add_time(w, "deadline", s->deadline_usec);
        else
                json_add_null(w, "deadline");
        if (s->cloud_error)
                json_add_string(w, "lastCloudError", s->cloud_error);
        else
                json_add_null(w, "lastCloudError");
        if (s->pods_known) {
                json_add_int64(w, "podsLeft", (int64_t) s->pods_left);
                add_blockers(w, s);
        }
        add_conditions(w, s);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static void note_sent(ClaimStatus *s) {
        s->call_only_progress = s->call_only_progress && (!s->dirty || s->only_progress);
        s->dirty = false;
        s->written_usec = loop_now(s->env->loop);
}

/* What was under way is to be told along with what is new. */
static void note_unsent(ClaimStatus *s) {
        s->only_progress = s->call_only_progress && (!s->dirty || s->only_progress);
        s->dirty = true;
}

static void on_written(const KubeReply *reply, void *userdata) {
        ClaimStatus *s = userdata;
        bool gone = reply->error && reply->error->http == 404;
        bool failed = reply->error && !gone;

        if (failed)
                log_debug(s->env->log, "Failed to write the status of NodeClaim %s, trying again: %s",
                          s->claim, reply->error->message);
        s->call = kube_call_free(s->call);
        if (failed) {
                note_unsent(s);
                s->due_usec = usec_add(loop_now(s->env->loop), backoff_next(&s->backoff, s->env->random));
                timer_arm(s->timer, s->due_usec);
                return;
        }
        backoff_reset(&s->backoff);
        if (s->dirty && !gone)
                timer_arm_earlier(s->timer, s->due_usec);
}

static char *on_turn(void *userdata) {
        ClaimStatus *s = userdata;
        char *body = status_body(s);

        if (body)
                note_sent(s);
        return body;
}

static void tell(ClaimStatus *s) {
        KubeTarget target = { .kind = &kube_node_claim_kind, .name = s->claim, .subresource = "status" };
        KubeCallOptions o = { .lane = HTTP_LANE_BULK,
                              .guard = s->guard,
                              .rank = KUBE_RANK_TELLS,
                              .body_now = on_turn,
                              .object_unread = true };
        _cleanup_free_ char *body = NULL;
        usec_t at;

        if (s->only_progress && s->progress &&
            !token_bucket_take(s->progress, loop_now(s->env->loop), &at)) {
                timer_arm(s->timer, at);
                return;
        }
        body = status_body(s);
        if (!body ||
            kube_patch(s->client, &target, KUBE_PATCH_MERGE, body, &o, on_written, s, &s->call) < 0) {
                timer_arm_in(s->timer, USEC_PER_SEC);
                return;
        }
        s->call_only_progress = true;
        note_sent(s);
}

static void on_timer(Timer *t, void *userdata) {
        ClaimStatus *s = userdata;

        if (s->dirty && !s->call)
                tell(s);
}

void claim_status_hold(ClaimStatus *s) {
        if (s->call)
                note_unsent(s);
        s->call = kube_call_free(s->call);
        s->held_until_usec = s->due_usec = usec_add(loop_now(s->env->loop), HOLD_USEC);
        timer_arm(s->timer, s->dirty ? s->due_usec : USEC_INFINITY);
}

void claim_status_flush(ClaimStatus *s) {
        s->due_usec = 0;
        s->only_progress = s->call_only_progress = false;
        if (s->dirty && !s->call)
                timer_arm_in(s->timer, 0);
}

/* -- wishes --------------------------------------------------------------------------------------------- */

void claim_status_set_node(ClaimStatus *s, const char *node, const char *uid) {
        if (streq_ptr(s->node, node) && streq_ptr(s->node_uid, uid))
                return;
        (void) free_and_strdup(&s->node, node);
        (void) free_and_strdup(&s->node_uid, uid);
        mark_dirty(s, false);
}

void claim_status_set_phase(ClaimStatus *s, const char *phase) {
        if (streq_ptr(s->phase, phase))
                return;
        s->phase = phase;
        mark_dirty(s, false);
}

void claim_status_set_deadline(ClaimStatus *s, usec_t wall_usec) {
        if (s->deadline_usec == wall_usec)
                return;
        s->deadline_usec = wall_usec;
        mark_dirty(s, false);
}

void claim_status_set_cloud_error(ClaimStatus *s, const char *message) {
        if (streq_ptr(s->cloud_error, message))
                return;
        (void) free_and_strdup(&s->cloud_error, message);
        mark_dirty(s, false);
}

static StatusCondition *find_condition(ClaimStatus *s, const char *type) {
        for (size_t i = 0; i < s->n_conditions; i++)
                if (streq(s->conditions[i].type, type))
                        return s->conditions + i;
        return NULL;
}

void claim_status_set_condition(ClaimStatus *s, const char *type, ConditionStatus status, const char *reason,
                                const char *message) {
        StatusCondition *c = find_condition(s, type);

        if (!c) {
                if (s->n_conditions == CONDITIONS_MAX)
                        return;
                c = s->conditions + s->n_conditions;
                if (free_and_strdup(&c->type, type) < 0)
                        return;
                s->n_conditions++;
        } else if (c->status == status && streq_ptr(c->reason, reason) && streq_ptr(c->message, message))
                return;
        if (c->status != status || c->transition_usec == 0)
                c->transition_usec = loop_wall(s->env->loop);
        c->status = status;
        (void) free_and_strdup(&c->reason, reason);
        (void) free_and_strdup(&c->message, message);
        mark_dirty(s, false);
}

static bool same_blocker(const StatusBlocker *a, const DrainBlocker *b, const char *pod) {
        return streq_ptr(a->pod, pod) && streq_ptr(a->reason, b->reason) &&
               streq(strempty(a->detail), b->detail);
}

/* A PDB's name stands where the API has a place for it; any other detail (the key that protects a pod) in
 * the message. */
static void set_blocker(StatusBlocker *to, const DrainBlocker *b) {
        bool pdb = strstr(b->reason, "PDB") && !isempty(b->detail);

        to->since_usec = b->since_usec;
        (void) free_and_strdup(&to->reason, b->reason);
        (void) free_and_strdup(&to->detail, b->detail);
        to->pdb = pdb ? strf("%s/%s", b->ns, b->detail) : NULL;
        to->message = strdup(isempty(b->message) && !pdb ? b->detail : b->message);
}

void claim_status_set_blockers(ClaimStatus *s, size_t pods_left, const DrainBlocker *b, size_t n) {
        bool changed = !s->pods_known || s->pods_left != pods_left;
        size_t i;

        s->pods_known = true;
        s->pods_left = pods_left;
        for (i = 0; i < n && i < BLOCKERS_MAX; i++) {
                _cleanup_free_ char *pod = strf("%s/%s", b[i].ns, b[i].name);
                StatusBlocker *to = s->blockers + i;

                if (!pod)
                        break;
                if (i < s->n_blockers && same_blocker(to, b + i, pod))
                        continue;
                blocker_done(to);
                to->pod = TAKE_PTR(pod);
                set_blocker(to, b + i);
                changed = true;
        }
        for (size_t j = i; j < s->n_blockers; j++)
                blocker_done(s->blockers + j);
        changed = changed || s->n_blockers != i;
        s->n_blockers = i;
        if (changed)
                mark_dirty(s, pods_left > 0);
}
