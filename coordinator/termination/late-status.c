/* SPDX-License-Identifier: Apache-2.0 */
#include "late-status.h"

#include "backoff.h"
#include "log.h"
#include "parse-util.h"
#include "status-patch.h"
#include "string-util.h"

/* What does not last so long is not worth a write; what does is in the API within a second, call and all. */
#define SETTLE_USEC (800 * USEC_PER_MSEC)
#define PROGRESS_USEC (2 * USEC_PER_SEC)
/* Beyond what finalizers wait for while others evict. */
#define HOLD_USEC (20 * USEC_PER_SEC)
#define RETRY_BASE_USEC USEC_PER_SEC
#define RETRY_CAP_USEC (30 * USEC_PER_SEC)

typedef struct LateCondition {
        const char *type;
        char *reason, *message;
        ConditionStatus status;
        usec_t transition_usec;
        uint64_t changed; /* number of the change */
        /* The object has the condition from an earlier coordinator. Each write of other conditions repeats
         * it, so that it keeps its observedGeneration. Each late_status_set_condition() compares it with the
         * object. */
        bool is_found;
} LateCondition;

/* Changes are numbered: what was taken, what is under way and what is new are three numbers. */
struct LateStatus {
        LateStatusOptions o;
        Env *env;
        char *name;
        LateCondition conditions[LATE_STATUS_CONDITIONS_MAX];
        size_t n_conditions;
        uint64_t changed, changed_beyond_progress; /* the last one; the last that was more than progress */
        uint64_t sent, told;                       /* up to this one: in the call under way; taken */
        bool over;                                 /* the object is gone */
        bool warned;                               /* that it was refused as invalid, since one was taken */
        usec_t due_usec, not_before_usec;          /* loop_now(): of what is new; of any write */
        usec_t written_usec;                       /* loop_now(): the last one left */
        uint64_t seen_version;                     /* resourceVersion of the object as late_status_see() found it last; 0: never */
        Timer *timer;
        KubeCall *call;
        Backoff backoff;
};

static void on_timer(Timer *t, void *userdata);

int late_status_new(const LateStatusOptions *o, LateStatus **ret) {
        _cleanup_(late_status_freep) LateStatus *s = NULL;
        int r;

        assert(o && o->client && o->kind && o->name && o->object_now && ret);
        s = new0(LateStatus, 1);
        if (!s)
                return -ENOMEM;
        s->o = *o;
        s->env = kube_client_env(o->client);
        s->backoff = (Backoff){ .base_usec = RETRY_BASE_USEC,
                                .cap_usec = RETRY_CAP_USEC,
                                .jitter_permille = 200 };
        r = free_and_strdup(&s->name, o->name);
        if (r < 0)
                return r;
        r = timer_new(s->env->loop, "late-status", on_timer, s, &s->timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

LateStatus *late_status_free(LateStatus *s) {
        if (!s)
                return NULL;
        kube_call_free(s->call);
        timer_free(s->timer);
        for (size_t i = 0; i < s->n_conditions; i++) {
                free(s->conditions[i].reason);
                free(s->conditions[i].message);
        }
        free(s->name);
        return mfree(s);
}

/* -- changes -------------------------------------------------------------------------------------------- */

void late_status_changed(LateStatus *s, bool progress) {
        bool waits = s->changed > (s->call ? s->sent : s->told);
        usec_t at = usec_add(loop_now(s->env->loop), SETTLE_USEC);

        if (progress && s->written_usec > 0)
                at = MAX(at, usec_add(s->written_usec, PROGRESS_USEC));
        at = MAX(at, s->not_before_usec);
        s->due_usec = waits ? MIN(s->due_usec, at) : at;
        s->changed++;
        if (!progress)
                s->changed_beyond_progress = s->changed;
        if (!s->call && !s->over)
                timer_arm_earlier(s->timer, s->due_usec);
}

void late_status_see(LateStatus *s) {
        const KubeObject *o = s->o.object_now(s->o.userdata);
        uint64_t version;

        if (!o || parse_uint64(strempty(o->meta.resource_version), &version) < 0)
                return;
        if (version < s->seen_version && s->changed > 0) {
                late_status_changed(s, false);
                for (size_t i = 0; i < s->n_conditions; i++)
                        s->conditions[i].changed = s->changed;
        }
        s->seen_version = version;
}

static LateCondition *find_condition(const LateStatus *s, const char *type) {
        for (size_t i = 0; i < s->n_conditions; i++)
                if (streq(s->conditions[i].type, type))
                        return (LateCondition *) s->conditions + i;
        return NULL;
}

static Condition condition_of(const LateCondition *c) {
        return (Condition){ .type = c->type,
                            .reason = c->reason,
                            .message = c->message,
                            .status = c->status,
                            .last_transition_usec = c->transition_usec };
}

bool late_status_condition(const LateStatus *s, const char *type, Condition *ret) {
        const LateCondition *found = find_condition(s, type), *set = found && !found->is_found ? found : NULL;
        const KubeObject *o = set ? NULL : s->o.object_now(s->o.userdata);
        const Condition *said = NULL;
        size_t n;

        if (o) {
                said = kube_object_conditions(o, &n);
                said = condition_find(said, n, type);
        }
        if (set || said)
                *ret = set ? condition_of(set) : *said;
        return set || said;
}

void late_status_set_condition(LateStatus *s, const char *type, ConditionStatus status, const char *reason,
                               const char *message) {
        LateCondition *c = find_condition(s, type);
        Condition wanted = { .type = type, .status = status, .reason = reason, .message = message };
        const KubeObject *o = c && !c->is_found ? NULL : s->o.object_now(s->o.userdata);
        bool is_found = o && condition_is_said(o, &wanted);

        if (c && !c->is_found ? c->status == status && streq_ptr(c->reason, reason) && streq_ptr(c->message, message)
                              : c && is_found)
                return;
        if (!c) {
                assert(s->n_conditions < LATE_STATUS_CONDITIONS_MAX);
                c = s->conditions + s->n_conditions++;
                *c = (LateCondition){ .type = type };
        }
        if (c->status != status || c->transition_usec == 0)
                c->transition_usec = loop_wall(s->env->loop);
        c->status = status;
        c->is_found = is_found;
        (void) free_and_strdup(&c->reason, reason);
        (void) free_and_strdup(&c->message, message);
        if (is_found)
                return;
        late_status_changed(s, false);
        c->changed = s->changed;
}

/* -- the patch ------------------------------------------------------------------------------------------ */

static void on_written(const KubeReply *reply, void *userdata) {
        LateStatus *s = userdata;
        unsigned http = reply->error ? reply->error->http : 0;

        /* A 404 alone does not prove that the object is gone: an API server that has just started answers
         * 404 for custom resources until it has read their definitions. A 422 to a patch with a uid means
         * that another object has the name now. */
        s->over = (http == 404 && !s->o.object_now(s->o.userdata)) || (http == 422 && status_patch_type(s->o.kind) == KUBE_PATCH_STRATEGIC);
        if (http == 422 && !s->over && !s->warned) {
                s->warned = true;
                log_warning(s->env->log,
                            "Failed to write the status of %s %s, which the API server refuses as invalid, retrying: %s",
                            s->o.kind->kind, s->name, strempty(reply->error->message));
        } else if (reply->error)
                log_debug(s->env->log, "Failed to write the status of %s %s, %s: %s", s->o.kind->kind, s->name,
                          s->over ? "it is gone" : "retrying", strempty(reply->error->message));
        s->call = kube_call_free(s->call);
        if (s->over)
                return;
        if (reply->error)
                s->due_usec = s->not_before_usec =
                        usec_add(loop_now(s->env->loop), backoff_next(&s->backoff, s->env->random));
        else {
                s->told = s->sent;
                s->warned = false;
                backoff_reset(&s->backoff);
        }
        if (s->changed > s->told)
                timer_arm(s->timer, s->due_usec);
}

/* Of a Node only what is new: of the rest its agent may have said something else since. */
static char *newest_body(LateStatus *s) {
        const KubeObject *o = s->o.object_now(s->o.userdata);
        bool only_new = status_patch_type(s->o.kind) == KUBE_PATCH_STRATEGIC;
        JsonWriter *w = !o ? NULL : s->o.of_version ? status_patch_open_of_version(o) : status_patch_open(o);
        Condition ours[LATE_STATUS_CONDITIONS_MAX];
        size_t n = 0;
        char *body;

        if (!w)
                return NULL;
        if (s->o.add_fields)
                s->o.add_fields(w, s->o.userdata);
        for (size_t i = 0; i < s->n_conditions; i++)
                if (!only_new || s->conditions[i].changed > s->told)
                        ours[n++] = condition_of(s->conditions + i);
        status_patch_add_conditions(w, o, ours, n, loop_wall(s->env->loop), NULL);
        body = status_patch_close(w);
        if (body) {
                s->sent = s->changed;
                s->written_usec = loop_now(s->env->loop);
        }
        return body;
}

static char *on_rate_allows(void *userdata) {
        return newest_body(userdata);
}

/* Of very many objects each tells its progress in turn; *ret_at: when this one may. */
static bool has_turn(LateStatus *s, usec_t *ret_at) {
        return s->changed_beyond_progress > s->told || !s->o.progress ||
               token_bucket_take(s->o.progress, loop_now(s->env->loop), ret_at);
}

static void on_timer(Timer *t, void *userdata) {
        LateStatus *s = userdata;
        KubeTarget target = { .kind = s->o.kind, .name = s->name, .subresource = "status" };
        KubeCallOptions o = { .lane = HTTP_LANE_BULK,
                              .guard = s->o.guard,
                              .rank = KUBE_RANK_TELLS,
                              .body_now = on_rate_allows,
                              .object_unread = true };
        _cleanup_free_ char *body = NULL;
        usec_t at;

        if (s->call || s->over || s->changed == s->told)
                return;
        if (!has_turn(s, &at)) {
                timer_arm(s->timer, at);
                return;
        }
        body = newest_body(s);
        if (!body || kube_patch(s->o.client, &target, status_patch_type(s->o.kind), body, &o, on_written, s, &s->call) < 0)
                timer_arm_in(s->timer, USEC_PER_SEC);
}

/* -- the end -------------------------------------------------------------------------------------------- */

void late_status_hold(LateStatus *s) {
        s->call = kube_call_free(s->call);
        s->due_usec = s->not_before_usec = usec_add(loop_now(s->env->loop), HOLD_USEC);
        if (!s->over && s->changed > s->told)
                timer_arm(s->timer, s->due_usec);
}

void late_status_flush(LateStatus *s) {
        s->due_usec = s->not_before_usec = 0;
        s->changed_beyond_progress = s->changed;
        if (!s->over && !s->call && s->changed > s->told)
                timer_arm_in(s->timer, 0);
}

bool late_status_is_told(const LateStatus *s) {
        return s->over || s->changed == s->told;
}

void late_status_end(LateStatus *s) {
        s->over = true;
        s->call = kube_call_free(s->call);
        timer_disarm(s->timer);
}

void late_status_next_wakeup(const LateStatus *s, Wakeups *w) {
        if (late_status_is_told(s))
                return;
        wakeups_unfinished(w, "status of", s->name, s->o.kind->kind, LATE_STATUS_WAKEUP_USEC);
        wakeups_timer(w, s->timer);
        wakeups_await(w, s->call);
}
