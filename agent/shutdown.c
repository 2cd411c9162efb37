/* SPDX-License-Identifier: Apache-2.0 */
#include "shutdown.h"

#include "agent-metrics.h"
#include "log-catalog.h"
#include "log.h"
#include "string-util.h"

#define PROBE_USEC (3 * USEC_PER_SEC)
#define PROBE_AGAIN_USEC (10 * USEC_PER_SEC)
/* For the last report, once the node is drained. */
#define REPORT_USEC (500 * USEC_PER_MSEC)
#define REPORT_POLL_USEC (20 * USEC_PER_MSEC)
/* A container is killed this long after its pod's time, at most. */
#define KILL_USEC (2 * USEC_PER_SEC)
/* From when on a stop is a plain one, if nobody says by then whether the machine goes down. */
#define STOP_ASKED_USEC (15 * USEC_PER_SEC)
#define EXTEND_EVERY_USEC (5 * USEC_PER_SEC)
#define EXTEND_BY_USEC (20 * USEC_PER_SEC)

/* The diagram of shutdown.h. */
#define TO(state) (1u << SHUTDOWN_##state)
static const unsigned edges[_SHUTDOWN_STATE_MAX] = {
        [SHUTDOWN_STAYS] = TO(DRAINING),
        [SHUTDOWN_DRAINING] = TO(LET_GO) | TO(STAYS),
        [SHUTDOWN_LET_GO] = TO(STAYS),
};

typedef enum ApiState { API_ASKED, API_ANSWERS, API_AWAY, API_NO_NODE } ApiState;

struct Shutdown {
        ShutdownContext c;
        ShutdownHandler handler;
        Power *power;
        PowerState told;
        PowerLimits limits;
        bool limits_known, kubelet_inhibits, refused;

        ShutdownState state;
        Notice *notice; /* of the shutdown under way */
        usec_t began_usec, deadline_usec;
        usec_t booted_usec;  /* when the machine did, by the wall clock of its beginning */
        usec_t drained_usec; /* since when; 0: not yet */
        bool pending;        /* the notice is not yet acted upon */
        bool stop_asked, stopped;
        usec_t stop_usec; /* when it was asked for */

        ApiState api;
        KubeCall *probe;
        usec_t probe_usec; /* when to ask again */
        usec_t away_usec;  /* API_AWAY: since when */
        usec_t extend_usec;
        Timer *timer;
};

PowerState shutdown_power(const Shutdown *s) {
        return power_state(s->power);
}

static usec_t now(const Shutdown *s) {
        return loop_now(s->c.env->loop);
}

static usec_t booted(const Shutdown *s) {
        return loop_to_wall(s->c.env->loop, 0);
}

/* One for all shutdowns of a boot. NULL: out of memory. */
static char *notice_id(const Shutdown *s) {
        return strf("shutdown-%s", s->c.env->boot_id);
}

static void shutdown_stop_now(Shutdown *s) {
        if (s->stopped)
                return;
        s->stopped = true;
        s->handler.on_stop(s->handler.userdata);
}

static bool shutdown_drains(const Shutdown *s) {
        return s->c.config->shutdown_drain && !s->refused;
}

static void shutdown_hold(Shutdown *s) {
        power_hold(s->power, shutdown_drains(s) && s->state != SHUTDOWN_LET_GO);
}

/* The only writer of the state. Nothing is asked or waited for but in DRAINING. */
static void shutdown_set_state(Shutdown *s, ShutdownState to) {
        assert(edges[s->state] & (1u << to));
        s->state = to;
        switch (to) {
        case SHUTDOWN_DRAINING:
                s->pending = false;
                s->began_usec = now(s);
                s->booted_usec = booted(s);
                s->deadline_usec = s->drained_usec = s->probe_usec = s->extend_usec = 0;
                s->api = API_ASKED;
                break;
        case SHUTDOWN_STAYS:
        case SHUTDOWN_LET_GO:
                containers_stop(s->c.containers);
                s->probe = kube_call_free(s->probe);
                timer_disarm(s->timer);
                break;
        case _SHUTDOWN_STATE_MAX:
                assert(false && "a shutdown without a state");
        }
}

/* -- the API server ----------------------------------------------------------------------------- */

static void on_probe(const KubeReply *reply, void *userdata) {
        Shutdown *s = userdata;
        ApiState before = s->api;

        s->probe = kube_call_free(s->probe);
        if (reply->error && reply->error->http == 0)
                s->api = API_AWAY;
        else
                s->api = reply->error && reply->error->http == 404 ? API_NO_NODE : API_ANSWERS;
        if (s->api == API_AWAY && before != API_AWAY)
                s->away_usec = reply->started_usec;
        s->probe_usec = usec_add(now(s), s->api == API_AWAY ? PROBE_USEC : PROBE_AGAIN_USEC);
        if (s->api == API_AWAY && before != API_AWAY)
                node_voice_shutdown_alone(s->c.voice, reply->error->message);
        shutdown_wake(s);
}

static void shutdown_probe_api(Shutdown *s) {
        const KubeTarget target = { .kind = &kube_node_kind, .name = s->c.config->node_name };
        const KubeCallOptions options = { .lane = HTTP_LANE_URGENT, .timeout_usec = PROBE_USEC };

        if (s->probe || now(s) < s->probe_usec)
                return;
        if (kube_get(s->c.client, &target, &options, on_probe, s, &s->probe) < 0)
                s->probe_usec = usec_add(now(s), USEC_PER_SEC);
}

/* -- is it over --------------------------------------------------------------------------------- */

/* When the grace of a pod that is terminating ends. Its deletionTimestamp says so by the server's clock, and ours
 * may have been set: it is the later time of the two, but began before the server went away. */
static usec_t grace_end(const Shutdown *s, const ObjectMeta *m) {
        usec_t latest = usec_add(s->away_usec, drain_grace(m->deletion_grace_sec)),
               by_clock = usec_sub(m->deletion_usec, MIN(s->booted_usec, booted(s)));

        return MIN(by_clock, latest);
}

/* Until when the pods that are terminating already have their time, but for those whose containers are known
 * to have ended, with nothing left to do for their kubelet; 0: there are none. */
static usec_t local_wait(const Shutdown *s) {
        usec_t until = 0;
        KubeObject *o;

        INFORMER_FOREACH (o, s->c.pods) {
                const KubePod *pod = (const KubePod *) o;
                const ObjectMeta *m = &pod->object.meta;

                if (m->deletion_usec == 0 ||
                    (!pod->needs_kubelet && containers_have_ended(s->c.containers, m->uid)))
                        continue;
                until = MAX(until, usec_add(grace_end(s, m), KILL_USEC));
        }
        return until;
}

/* Why we need not delay it any longer; NULL: we do. *ret_next: when to ask again by time alone. */
static const char *shutdown_over_reason(Shutdown *s, usec_t *ret_next) {
        ReflexState r = reflex_state(s->c.reflex);
        usec_t wait;

        *ret_next = s->deadline_usec;
        if (!s->c.config->shutdown_drain)
                return "[Shutdown] Drain=no";
        if (s->refused)
                return "the machine gives less than [Shutdown] MaxSec=, and TooShort=refuse";
        if (now(s) >= s->deadline_usec)
                return "the time is up";
        if (r == REFLEX_DRAINED || r == REFLEX_ENDING) {
                if (s->drained_usec == 0)
                        s->drained_usec = now(s);
                if (reflex_is_reported(s->c.reflex) || now(s) >= usec_add(s->drained_usec, REPORT_USEC) ||
                    s->api == API_AWAY)
                        return "the node is drained";
                *ret_next = usec_add(now(s), REPORT_POLL_USEC);
                return NULL;
        }
        s->drained_usec = 0;
        if (s->api == API_NO_NODE && !reflex_node(s->c.reflex))
                return "there is no Node of this machine";
        if (s->api == API_ANSWERS && r == REFLEX_IDLE && !s->pending)
                return "the notice of it is not acted upon";
        if (s->api != API_AWAY)
                return NULL;
        wait = local_wait(s);
        if (now(s) >= wait)
                return "the API server does not answer, and no container has time left by it";
        *ret_next = MIN(*ret_next, wait);
        return NULL;
}

static void shutdown_extend_stop(Shutdown *s) {
        _cleanup_free_ char *text = NULL;

        if (!s->stop_asked || now(s) < s->extend_usec)
                return;
        s->extend_usec = usec_add(now(s), EXTEND_EVERY_USEC);
        text = strf("EXTEND_TIMEOUT_USEC=%llu", (unsigned long long) EXTEND_BY_USEC);
        if (text && s->c.env->notify)
                s->c.env->notify(text, s->c.env->notify_userdata);
}

/* The deadline that was given out before a crash holds on. */
static void keep_earlier_deadline(Shutdown *s) {
        const Intent *known = intent_log_find(s->c.intents, s->notice->id);

        if (known)
                s->deadline_usec = s->notice->deadline_usec = MIN(s->deadline_usec, known->notice->deadline_usec);
}

static void shutdown_step(Shutdown *s) {
        const char *why;
        usec_t next;

        if (s->state != SHUTDOWN_DRAINING)
                return;
        if (s->pending) {
                s->notice->announced_usec = loop_to_wall(s->c.env->loop, s->deadline_usec);
                s->pending = !s->handler.on_notice(s->notice, s->handler.userdata);
        }
        why = shutdown_over_reason(s, &next);
        if (why) {
                shutdown_set_state(s, SHUTDOWN_LET_GO);
                node_voice_shutdown_let_go(s->c.voice, why, s->c.config->shutdown_drain, reflex_pods_on_node(s->c.reflex),
                                           usec_sub(now(s), s->began_usec));
                shutdown_hold(s);
                if (s->stop_asked)
                        shutdown_stop_now(s);
                return;
        }
        shutdown_probe_api(s);
        shutdown_extend_stop(s);
        if (!s->probe)
                next = MIN(next, s->probe_usec);
        if (s->stop_asked)
                next = MIN(next, s->extend_usec);
        timer_arm_earlier(s->timer, next);
}

static void on_timer(Timer *t, void *userdata) {
        shutdown_step(userdata);
}

void shutdown_wake(Shutdown *s) {
        if (s->state == SHUTDOWN_DRAINING)
                timer_arm_earlier(s->timer, 0);
}

/* -- its beginning and its cancelling ----------------------------------------------------------- */

static int shutdown_make_notice(Shutdown *s) {
        bool announced = power_is_announced(s->power);
        PowerBudget b = power_budget(&s->limits, announced, s->c.config->shutdown_max_usec);
        _cleanup_(notice_freep) Notice *n = new0(Notice, 1);

        if (!n)
                return -ENOMEM;
        n->id = notice_id(s);
        n->kind = NOTICE_SHUTDOWN;
        n->deadline_usec = usec_add(s->began_usec, b.total_usec);
        n->announced_usec = loop_to_wall(s->c.env->loop, n->deadline_usec);
        if (!n->id || free_and_strdup(&n->source, announced ? "logind" : "systemd") < 0 ||
            free_and_strdup(&n->action, power_kind(s->power)) < 0)
                return -ENOMEM;
        notice_free(s->notice);
        s->notice = TAKE_PTR(n);
        s->deadline_usec = s->notice->deadline_usec;
        /* Noted before anything else is, so that a crash does not lose it. */
        if (!intent_log_find(s->c.intents, s->notice->id) && shutdown_drains(s))
                intent_log_note(s->c.intents, s->notice, INTENT_CORDONED, 0);
        keep_earlier_deadline(s);
        return 0;
}

static void shutdown_begin(Shutdown *s) {
        if (s->state != SHUTDOWN_STAYS || !s->limits_known)
                return;
        shutdown_set_state(s, SHUTDOWN_DRAINING);
        if (shutdown_make_notice(s) < 0)
                log_error(s->c.env->log, "Failed to drain node %s before its shutdown: out of memory",
                          s->c.config->node_name);
        else {
                if (shutdown_drains(s))
                        containers_start(s->c.containers);
                reflex_machine_ends(s->c.reflex, shutdown_drains(s) ? s->notice->deadline_usec : USEC_INFINITY);
                node_voice_shutdown_began(s->c.voice, s->notice, usec_sub(s->deadline_usec, s->began_usec));
                s->pending = shutdown_drains(s);
        }
        shutdown_step(s);
}

static void shutdown_cancel(Shutdown *s) {
        if (s->state == SHUTDOWN_STAYS)
                return;
        shutdown_set_state(s, SHUTDOWN_STAYS);
        node_voice_shutdown_cancelled(s->c.voice);
        reflex_machine_stays(s->c.reflex);
        s->notice = notice_free(s->notice);
}

/* The machine stays: what is noted of a shutdown in this boot, as a life before this one may have, is over. */
static void shutdown_forget_noted(Shutdown *s) {
        _cleanup_free_ char *id = notice_id(s);

        if (id && intent_log_find(s->c.intents, id))
                intent_log_forget(s->c.intents, id);
}

static void on_power_state(Power *p, PowerState state, void *userdata) {
        Shutdown *s = userdata;

        switch (state) {
        case POWER_ENDS:
                shutdown_begin(s);
                break;
        case POWER_STAYS:
                shutdown_cancel(s);
                shutdown_forget_noted(s);
                shutdown_hold(s);
                break;
        case POWER_UNKNOWN:
        case _POWER_STATE_MAX:
                break;
        }
        if (s->told != state) {
                s->told = state;
                s->handler.on_power(state, s->handler.userdata);
        }
        if (!s->stop_asked || s->stopped)
                return;
        if (s->state == SHUTDOWN_DRAINING)
                shutdown_wake(s);
        else if (power_is_unanswered(p) && now(s) < usec_add(s->stop_usec, STOP_ASKED_USEC))
                shutdown_extend_stop(s); /* PID 1 has much to do while it stops a machine; it is asked again */
        else
                shutdown_stop_now(s);
}

/* What limits and configuration together come to. */
static void shutdown_judge_limits(Shutdown *s) {
        PowerBudget announced = power_budget(&s->limits, true, s->c.config->shutdown_max_usec);

        s->refused = announced.too_short && s->c.config->shutdown_too_short == SHUTDOWN_TOO_SHORT_REFUSE;
        metrics_set(s->c.metrics, AGENT_METRIC_SHUTDOWN_BUDGET, 0,
                    shutdown_drains(s) ? (double) announced.total_usec / USEC_PER_SEC : 0);
        metrics_set(s->c.metrics, AGENT_METRIC_KUBELET_INHIBITS, 0, s->kubelet_inhibits);
        if (s->c.config->shutdown_drain && s->c.env->bus)
                node_voice_shutdown_limits(s->c.voice, &s->limits, &announced, s->refused,
                                           s->kubelet_inhibits);
        shutdown_hold(s);
}

void shutdown_reconfigured(Shutdown *s) {
        if (!s->limits_known)
                return;
        shutdown_judge_limits(s);
        shutdown_wake(s);
}

static void on_limits(Power *p, const PowerLimits *l, bool kubelet_inhibits, void *userdata) {
        Shutdown *s = userdata;

        s->limits = *l;
        s->limits_known = true;
        s->kubelet_inhibits = kubelet_inhibits;
        shutdown_judge_limits(s);
        if (power_state(p) == POWER_ENDS)
                shutdown_begin(s); /* it came first */
        shutdown_wake(s);
}

void shutdown_ask_stop(Shutdown *s) {
        if (!s->stop_asked)
                s->stop_usec = now(s);
        s->stop_asked = true;
        if (s->state == SHUTDOWN_LET_GO || !s->c.env->bus) {
                shutdown_stop_now(s);
                return;
        }
        if (s->state == SHUTDOWN_DRAINING)
                shutdown_wake(s);
        else
                power_query(s->power);
}

/* -- new, free ---------------------------------------------------------------------------------- */

int shutdown_new(const ShutdownContext *context, const ShutdownHandler *h, Shutdown **ret) {
        _cleanup_(shutdown_freep) Shutdown *s = NULL;
        PowerHandler handler = { .on_state = on_power_state, .on_limits = on_limits };
        int r;

        assert(context && h && h->on_notice && h->on_power && h->on_stop && ret);
        s = new0(Shutdown, 1);
        if (!s)
                return -ENOMEM;
        s->c = *context;
        s->handler = *h;
        s->told = POWER_UNKNOWN;
        handler.userdata = s;
        r = power_new(s->c.env, &handler, &s->power);
        if (r >= 0)
                r = timer_new(s->c.env->loop, "shutdown", on_timer, s, &s->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

Shutdown *shutdown_free(Shutdown *s) {
        if (!s)
                return NULL;
        kube_call_free(s->probe);
        power_free(s->power);
        timer_free(s->timer);
        notice_free(s->notice);
        return mfree(s);
}

void shutdown_start(Shutdown *s) {
        shutdown_hold(s); /* what is in the store is taken before anything is asked */
        power_start(s->power);
}

void shutdown_next_wakeup(const Shutdown *s, Wakeups *w) {
        power_next_wakeup(s->power, w);
        if (s->state != SHUTDOWN_DRAINING)
                return;
        wakeups_unfinished(w, "shutdown", "held up", s->probe ? "asking the API server" : "",
                           usec_add(usec_sub(s->deadline_usec, now(s)), USEC_PER_SEC));
        wakeups_timer(w, s->timer);
}
