/* SPDX-License-Identifier: Apache-2.0 */
/*
 *      IDLE --start--> STANDBY ------try ok------> LEADING
 *                       |  ^                       |  |
 *                       |  +---renew deadline, or--+  |
 *                       |      proof of its loss      |
 *                       +-----------release-----------+----> RELEASING --given up, lost, or 2 s--> RELEASED
 *
 * One try, as tools/leaderelection does it (at most one call is under way):
 *
 *      held by us as last seen, not run out --> PUT --ok--> done
 *                         |                      |
 *                         +----------> GET <---error
 *                          404: POST    |  record changed: note it, and the time on our clock
 *                                       |  held by another and not run out: failed
 *                                       +--> PUT
 *
 * Three clocks must not be mixed up. observed_usec is when this process saw the record change; only it tells
 * whether another's lease has run out. valid_until_usec counts from the start of our last successful write,
 * so it is never later than what the others count from; only it answers the guard. stop_usec is when a
 * leader that cannot renew must have stopped.
 */
#include "leader-elector.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kube-kinds.h"
#include "lease-record.h"
#include "log.h"
#include "string-util.h"

#define LEASE_DEFAULT_USEC (15 * USEC_PER_SEC)
#define RENEW_DEADLINE_DEFAULT_USEC (10 * USEC_PER_SEC)
#define RETRY_DEFAULT_USEC (2 * USEC_PER_SEC)
#define RELEASE_LIMIT_USEC (2 * USEC_PER_SEC)
#define RELEASE_RETRY_USEC (200 * USEC_PER_MSEC)
#define TELL_USEC (5 * USEC_PER_MINUTE)

typedef enum LeaderState {
        LEADER_IDLE,
        LEADER_STANDBY,
        LEADER_LEADING,
        LEADER_RELEASING,
        LEADER_RELEASED,
        _LEADER_STATE_MAX,
} LeaderState;

struct LeaderElector {
        KubeClient *client;
        Loop *loop;
        Random *random;
        Log *log;
        char *ns, *name, *identity;
        usec_t lease_usec, renew_deadline_usec, retry_usec, request_timeout_usec;
        LeaderHandler handler;
        LeaderState state;

        bool has_record;
        LeaseRecord record; /* the last one seen; meaningful if has_record */
        usec_t observed_usec;
        bool get_first; /* a write may have landed unanswered: look before writing again */

        KubeCall *call;
        usec_t try_usec; /* when the try under way began */
        usec_t put_usec; /* when its write was handed to the client */
        usec_t valid_until_usec, stop_usec;
        usec_t tell_usec; /* when a request that fails is worth a warning; 0: the last one did not fail */
        bool told;
        Timer *retry_timer;
        Timer *limit_timer; /* LEADING: stop_usec; RELEASING: the end of patience */

        void (*step_down_done)(void *userdata);
        void *step_down_userdata;
};

static const char *const state_table[_LEADER_STATE_MAX] = {
        [LEADER_IDLE] = "idle",           [LEADER_STANDBY] = "standby",   [LEADER_LEADING] = "leading",
        [LEADER_RELEASING] = "releasing", [LEADER_RELEASED] = "released",
};

static const unsigned edges[_LEADER_STATE_MAX] = {
        [LEADER_IDLE] = 1u << LEADER_STANDBY | 1u << LEADER_RELEASING,
        [LEADER_STANDBY] = 1u << LEADER_LEADING | 1u << LEADER_RELEASING,
        [LEADER_LEADING] = 1u << LEADER_STANDBY | 1u << LEADER_RELEASING,
        [LEADER_RELEASING] = 1u << LEADER_RELEASED,
        [LEADER_RELEASED] = 1u << LEADER_RELEASING,
};

static void leader_try(LeaderElector *e);
static void leader_step_down_get(LeaderElector *e);

/* The only writer of the state. */
static void leader_set_state(LeaderElector *e, LeaderState to, const char *why) {
        assert(edges[e->state] & (1u << to));
        log_debug(e->log, "Lease '%s/%s': %s -> %s: %s", e->ns, e->name, state_table[e->state],
                  state_table[to], why);
        e->state = to;
}

static KubeTarget leader_target(const LeaderElector *e, bool named) {
        return (KubeTarget){ .kind = &kube_lease_kind, .ns = e->ns, .name = named ? e->name : NULL };
}

static KubeCallOptions leader_call_options(const LeaderElector *e) {
        return (KubeCallOptions){ .lane = HTTP_LANE_URGENT, .timeout_usec = e->request_timeout_usec };
}

static bool is_mine(const LeaderElector *e) {
        return e->has_record && streq(e->record.holder, e->identity);
}

static void cancel_call(LeaderElector *e) {
        e->get_first |= e->call != NULL;
        e->call = kube_call_free(e->call);
}

/* -- requests that fail ----------------------------------------------------------------------------------
 */

/* One failure is the weather; what lasts (no permission, no such namespace, no API server) a person must
 * hear of. */
static void note_failure(LeaderElector *e, const ApiError *error) {
        usec_t now = loop_now(e->loop);

        if (error->http == 409) /* somebody was faster */
                return;
        if (e->tell_usec == 0)
                e->tell_usec = usec_add(now, e->renew_deadline_usec);
        if (now < e->tell_usec)
                return;
        if (error->http == 401 || error->http == 403)
                log_warning(e->log,
                            "Lease '%s/%s' cannot be read or written, so that '%s' does not lead: %s. Its credential wants get, create and update of leases in that namespace. Retrying every few seconds",
                            e->ns, e->name, e->identity, error->message);
        else
                log_warning(e->log,
                            "Lease '%s/%s' cannot be read or written, so that '%s' does not lead: %s. Retrying every few seconds",
                            e->ns, e->name, e->identity, error->message);
        e->told = true;
        e->tell_usec = usec_add(now, TELL_USEC);
}

static void note_success(LeaderElector *e) {
        if (e->told)
                log_info(e->log, "Lease '%s/%s' can be read and written again", e->ns, e->name);
        e->told = false;
        e->tell_usec = 0;
}

/* -- what was seen -------------------------------------------------------------------------------------- */

static int leader_note(LeaderElector *e, const Json *lease, bool ours) {
        LeaseRecord record;
        bool other;
        int r;

        r = lease_record_parse(lease, &record);
        if (r < 0)
                return log_debug_errno(e->log, r, "Lease '%s/%s' cannot be understood: %m", e->ns, e->name);

        /* The object is kept in any case: its resourceVersion moves without the spec, too. */
        if (ours || !e->has_record || !streq(record.spec, e->record.spec))
                e->observed_usec = loop_now(e->loop);
        other = !isempty(record.holder) && !streq(record.holder, e->identity) &&
                (!e->has_record || !streq(record.holder, e->record.holder));

        lease_record_done(&e->record);
        e->record = record;
        e->has_record = true;
        e->get_first = false;
        if (other && e->handler.on_observed)
                e->handler.on_observed(e->record.holder, e->handler.userdata);
        return 0;
}

/* -- ends of a try -------------------------------------------------------------------------------------- */

static void arm_acquire(LeaderElector *e) {
        /* wait.JitterUntil(retry, 1.2): retry times [1, 2.2]. */
        timer_arm_in(e->retry_timer, e->retry_usec + random_below(e->random, e->retry_usec * 12 / 10 + 1));
}

static void leader_stop(LeaderElector *e, const char *why) {
        assert(e->state == LEADER_LEADING);
        timer_disarm(e->limit_timer);
        leader_set_state(e, LEADER_STANDBY, why);
        arm_acquire(e);
        e->handler.on_stopped(why, e->handler.userdata);
}

static void leader_try_failed(LeaderElector *e, const char *why) {
        log_debug(e->log, "Lease '%s/%s' was not taken: %s", e->ns, e->name, why);
        if (e->state == LEADER_STANDBY)
                arm_acquire(e);
        else if (loop_now(e->loop) >= e->stop_usec)
                leader_stop(e, "renew deadline passed");
        else
                timer_arm(e->retry_timer, usec_add(e->try_usec, e->retry_usec));
}

static void leader_try_won(LeaderElector *e) {
        usec_t now = loop_now(e->loop), valid_until = usec_add(e->put_usec, e->lease_usec);

        if (now >= valid_until) {
                /* The answer of a write that has run out meanwhile is worth nothing, but the next one is
                 * quick. */
                if (e->state == LEADER_LEADING)
                        leader_stop(e, "lease ended before its renewal was answered");
                if (e->state == LEADER_STANDBY)
                        timer_arm(e->retry_timer, now);
                return;
        }

        e->valid_until_usec = valid_until;
        /* The next round begins after one retry period and has the renew deadline; the end of the lease cuts
         * it short. */
        e->stop_usec = MIN(now + e->retry_usec + e->renew_deadline_usec, valid_until);
        timer_arm(e->limit_timer, e->stop_usec);
        timer_arm_in(e->retry_timer, e->retry_usec);
        if (e->state == LEADER_STANDBY) {
                leader_set_state(e, LEADER_LEADING, "lease acquired");
                e->handler.on_started(e->handler.userdata);
        }
}

/* -- the steps of a try --------------------------------------------------------------------------------- */

static void on_written(const KubeReply *reply, void *userdata) {
        LeaderElector *e = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(e->call);

        if (reply->error) {
                e->get_first |= reply->error->maybe_sent;
                note_failure(e, reply->error);
                leader_try_failed(e, reply->error->message);
        } else if (leader_note(e, reply->object, true) < 0) {
                e->get_first = true;
                leader_try_failed(e, "the answer to our write cannot be understood");
        } else {
                note_success(e);
                leader_try_won(e);
        }
}

static char *leader_body(LeaderElector *e, bool create) {
        bool mine = !create && is_mine(e);
        LeaseClaim claim = {
                .holder = e->identity,
                .duration_sec = (int64_t) (e->lease_usec / USEC_PER_SEC),
                .transitions = create ? 0 : e->record.transitions + (mine ? 0 : 1),
                .now_wall_usec = loop_wall(e->loop),
                .keep_acquired = mine,
        };

        return create ? lease_body_create(e->ns, e->name, &claim) : lease_body_update(&e->record, &claim);
}

static int leader_write(LeaderElector *e, bool create, kube_done_t done) {
        KubeTarget target = leader_target(e, !create);
        KubeCallOptions options = leader_call_options(e);
        _cleanup_free_ char *body = leader_body(e, create);

        assert(!e->call);
        if (!body)
                return -ENOMEM;

        e->put_usec = loop_now(e->loop);
        return create ? kube_create(e->client, &target, body, &options, done, e, &e->call)
                      : kube_update(e->client, &target, body, &options, done, e, &e->call);
}

static int leader_get(LeaderElector *e, kube_done_t done) {
        KubeTarget target = leader_target(e, true);
        KubeCallOptions options = leader_call_options(e);

        assert(!e->call);
        return kube_get(e->client, &target, &options, done, e, &e->call);
}

/* What a read says about a lease that we thought ours: with any proof that it is not, work stops before the
 * try goes on. */
static void check_lost(LeaderElector *e) {
        _cleanup_free_ char *why = NULL;

        if (e->state != LEADER_LEADING || is_mine(e))
                return;
        if (!e->has_record)
                why = strdup("the lease was deleted");
        else if (isempty(e->record.holder))
                why = strdup("the lease was cleared by somebody else");
        else
                why = strf("the lease was taken by '%s'", e->record.holder);
        leader_stop(e, why ?: "the lease is not ours any more");
}

static void on_absent(LeaderElector *e) {
        lease_record_done(&e->record);
        e->has_record = false;
        check_lost(e);
        if (e->state != LEADER_STANDBY)
                return;
        timer_disarm(e->retry_timer);
        if (leader_write(e, true, on_written) < 0)
                leader_try_failed(e, "out of memory");
}

static void on_read(const KubeReply *reply, void *userdata) {
        LeaderElector *e = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(e->call);

        if (reply->error && reply->error->http == 404) {
                on_absent(e);
                return;
        }
        if (reply->error) {
                note_failure(e, reply->error);
                leader_try_failed(e, reply->error->message);
                return;
        }
        if (leader_note(e, reply->object, false) < 0) {
                leader_try_failed(e, "the answer cannot be understood");
                return;
        }

        check_lost(e);
        if (e->state != LEADER_STANDBY && e->state != LEADER_LEADING)
                return; /* a handler gave up */
        timer_disarm(e->retry_timer);
        if (!isempty(e->record.holder) && !is_mine(e) &&
            usec_add(e->observed_usec, e->record.duration_usec) > e->try_usec) {
                note_success(e);
                leader_try_failed(e, "held by another, and not run out");
        } else if (leader_write(e, false, on_written) < 0)
                leader_try_failed(e, "out of memory");
}

static void on_renewed(const KubeReply *reply, void *userdata) {
        LeaderElector *e = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = NULL;

        if (!reply->error) {
                on_written(reply, e);
                return;
        }

        call = TAKE_PTR(e->call);
        e->get_first |= reply->error->maybe_sent;
        log_debug(e->log, "Failed to renew lease '%s/%s', reading it: %s", e->ns, e->name,
                  reply->error->message);
        if (leader_get(e, on_read) < 0)
                leader_try_failed(e, "out of memory");
}

static void leader_try(LeaderElector *e) {
        int r;

        assert(e->state == LEADER_STANDBY || e->state == LEADER_LEADING);
        e->try_usec = loop_now(e->loop);
        if (!e->get_first && is_mine(e) && usec_add(e->observed_usec, e->record.duration_usec) > e->try_usec)
                r = leader_write(e, false, on_renewed);
        else
                r = leader_get(e, on_read);
        if (r < 0)
                leader_try_failed(e, "out of memory");
}

/* -- release -------------------------------------------------------------------------------------------- */

/* The done callback may free the elector: last act of every caller. */
static void leader_stepped_down(LeaderElector *e, const char *why) {
        void (*done)(void *userdata) = e->step_down_done;
        void *userdata = e->step_down_userdata;

        cancel_call(e);
        timer_disarm(e->retry_timer);
        timer_disarm(e->limit_timer);
        leader_set_state(e, LEADER_RELEASED, why);
        if (done)
                done(userdata);
}

static void on_stepped_down(const KubeReply *reply, void *userdata) {
        LeaderElector *e = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(e->call);

        if (!reply->error) {
                (void) leader_note(e, reply->object, true);
                leader_stepped_down(e, "given up");
        } else if (reply->error->http == 409)
                leader_step_down_get(e);
        else
                timer_arm_in(e->retry_timer, RELEASE_RETRY_USEC);
}

static int leader_step_down_put(LeaderElector *e) {
        KubeTarget target = leader_target(e, true);
        KubeCallOptions options = leader_call_options(e);
        LeaseClaim claim = {
                .holder = "",
                .duration_sec = 1,
                .transitions = e->record.transitions,
                .now_wall_usec = loop_wall(e->loop),
        };
        _cleanup_free_ char *body = lease_body_update(&e->record, &claim);

        if (!body)
                return -ENOMEM;
        return kube_update(e->client, &target, body, &options, on_stepped_down, e, &e->call);
}

static void on_step_down_read(const KubeReply *reply, void *userdata) {
        LeaderElector *e = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(e->call);

        if (reply->error && reply->error->http == 404)
                leader_stepped_down(e, "there is no lease");
        else if (reply->error || leader_note(e, reply->object, false) < 0)
                timer_arm_in(e->retry_timer, RELEASE_RETRY_USEC);
        else if (!is_mine(e))
                leader_stepped_down(e, "not ours to give up");
        else if (leader_step_down_put(e) < 0)
                leader_stepped_down(e, "out of memory");
}

static void leader_step_down_get(LeaderElector *e) {
        if (leader_get(e, on_step_down_read) < 0)
                timer_arm_in(e->retry_timer, RELEASE_RETRY_USEC);
}

void leader_elector_step_down(LeaderElector *e, void (*done)(void *userdata), void *userdata) {
        bool idle;

        assert(e && e->state != LEADER_RELEASING);
        idle = e->state == LEADER_IDLE || e->state == LEADER_RELEASED;
        e->step_down_done = done;
        e->step_down_userdata = userdata;

        /* A renewal still under way cannot undo this: what it carries is an older resourceVersion than the
         * release. */
        cancel_call(e);
        leader_set_state(e, LEADER_RELEASING, "asked to");
        timer_disarm(e->retry_timer);
        timer_arm_in(e->limit_timer, idle ? 0 : RELEASE_LIMIT_USEC);
        if (!idle)
                leader_step_down_get(e);
}

/* -- timers --------------------------------------------------------------------------------------------- */

static void on_retry(Timer *t, void *userdata) {
        LeaderElector *e = userdata;

        assert(!e->call);
        if (e->state == LEADER_RELEASING)
                leader_step_down_get(e);
        else
                leader_try(e);
}

static void on_limit(Timer *t, void *userdata) {
        LeaderElector *e = userdata;

        if (e->state == LEADER_RELEASING) {
                leader_stepped_down(e, "time is up");
                return;
        }
        cancel_call(e);
        leader_stop(e, loop_now(e->loop) >= e->valid_until_usec ? "lease ended" : "renew deadline passed");
}

/* -- new, free, questions ------------------------------------------------------------------------------- */

static int leader_configure(LeaderElector *e, const LeaderConfig *config) {
        usec_t lease_usec = config->lease_usec ?: LEASE_DEFAULT_USEC;

        /* The Lease holds whole seconds: what others will wait is what we may count on. */
        e->lease_usec = lease_usec - lease_usec % USEC_PER_SEC;
        e->renew_deadline_usec = config->renew_deadline_usec ?: RENEW_DEADLINE_DEFAULT_USEC;
        e->retry_usec = config->retry_usec ?: RETRY_DEFAULT_USEC;
        if (isempty(config->ns) || isempty(config->name) || isempty(config->identity))
                return -EINVAL;
        if (e->lease_usec / USEC_PER_SEC > INT32_MAX || e->lease_usec <= e->renew_deadline_usec ||
            e->renew_deadline_usec <= e->retry_usec * 12 / 10)
                return -EINVAL;

        e->request_timeout_usec = MAX(USEC_PER_SEC, e->renew_deadline_usec / 2);
        e->ns = strdup(config->ns);
        e->name = strdup(config->name);
        e->identity = strdup(config->identity);
        return e->ns && e->name && e->identity ? 0 : -ENOMEM;
}

int leader_elector_new(KubeClient *c, const LeaderConfig *config, const LeaderHandler *h,
                       LeaderElector **ret) {
        _cleanup_(leader_elector_freep) LeaderElector *e = NULL;
        Env *env = kube_client_env(c);
        int r;

        assert(config && h && h->on_started && h->on_stopped && ret);
        e = new0(LeaderElector, 1);
        if (!e)
                return -ENOMEM;

        e->client = c;
        e->loop = env->loop;
        e->random = env->random;
        e->log = env->log;
        e->handler = *h;
        r = leader_configure(e, config);
        if (r < 0)
                return r;
        r = timer_new(e->loop, "leader-retry", on_retry, e, &e->retry_timer);
        if (r < 0)
                return r;
        r = timer_new(e->loop, "leader-limit", on_limit, e, &e->limit_timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(e);
        return 0;
}

LeaderElector *leader_elector_free(LeaderElector *e) {
        if (!e)
                return NULL;
        kube_call_free(e->call);
        timer_free(e->retry_timer);
        timer_free(e->limit_timer);
        lease_record_done(&e->record);
        free(e->ns);
        free(e->name);
        free(e->identity);
        return mfree(e);
}

void leader_elector_start(LeaderElector *e) {
        assert(e && e->state == LEADER_IDLE);
        leader_set_state(e, LEADER_STANDBY, "started");
        leader_try(e);
}

bool leader_elector_is_leader(const LeaderElector *e) {
        return e->state == LEADER_LEADING && loop_now(e->loop) < e->valid_until_usec;
}

static bool may_send(void *userdata) {
        return leader_elector_is_leader(userdata);
}

HttpGuard leader_elector_guard(LeaderElector *e) {
        return (HttpGuard){ .may_send = may_send, .userdata = e };
}

const char *leader_elector_holder(const LeaderElector *e) {
        return e->has_record ? e->record.holder : "";
}

void leader_elector_next_wakeup(const LeaderElector *e, Wakeups *w) {
        if (e->state == LEADER_IDLE || e->state == LEADER_RELEASED)
                return;
        wakeups_unfinished(w, "lease", e->name, state_table[e->state], LEADER_WAKEUP_USEC);
        wakeups_timer(w, e->retry_timer);
        wakeups_await(w, e->call);
        if (e->state == LEADER_STANDBY)
                return;
        wakeups_unfinished(w, "end of lease", e->name, state_table[e->state], LEADER_WAKEUP_USEC);
        wakeups_timer(w, e->limit_timer);
}
