/* SPDX-License-Identifier: Apache-2.0 */
#include "power.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "log-catalog.h"
#include "log.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define ANSWER_USEC (2 * USEC_PER_SEC)
#define RETRY_USEC (5 * USEC_PER_SEC)
#define STORE_NAME "inhibitor"
/* The unit's own default (poweroff.target(7)), where PID 1 does not say. */
#define JOB_TIMEOUT_USEC (30 * USEC_PER_MINUTE)
/* Kept of it for kubelet, runtime and everything else that stops after us. */
#define REST_USEC (3 * USEC_PER_MINUTE)
/* Kept of logind's delay, so that it is us who let go. */
#define MARGIN_USEC (500 * USEC_PER_MSEC)

#define LOGIND "org.freedesktop.login1", "/org/freedesktop/login1"
#define LOGIND_MANAGER "org.freedesktop.login1.Manager"
#define PID1 "org.freedesktop.systemd1"
#define PID1_MANAGER "org.freedesktop.systemd1.Manager"
#define PROPERTIES "org.freedesktop.DBus.Properties"

/* What is asked. */
typedef enum PowerQuestion {
        ASK_PREPARING, /* these two are a look */
        ASK_SYSTEM,
        ASK_JOBS,
        ASK_DELAY, /* these are the limits */
        ASK_POWEROFF_JOB,
        ASK_REBOOT_JOB,
        ASK_INHIBITORS,
        ASK_INHIBIT,
        _ASK_MAX,
} PowerQuestion;

#define GET_JOB_TIMEOUT(unit) \
        { \
                PID1, "/org/freedesktop/systemd1/unit/" unit, PROPERTIES, "Get", "ss", \
                        (const char *const[]){ "org.freedesktop.systemd1.Unit", "JobTimeoutUSec" }, \
                        ANSWER_USEC \
        }

static const BusCall calls[_ASK_MAX] = {
        [ASK_PREPARING] = { LOGIND, PROPERTIES, "Get", "ss",
                            (const char *const[]){ LOGIND_MANAGER, "PreparingForShutdown" }, ANSWER_USEC },
        [ASK_SYSTEM] = { PID1, "/org/freedesktop/systemd1", PROPERTIES, "Get", "ss",
                         (const char *const[]){ PID1_MANAGER, "SystemState" }, ANSWER_USEC },
        [ASK_JOBS] = { PID1, "/org/freedesktop/systemd1", PID1_MANAGER, "ListJobs", "", NULL, ANSWER_USEC },
        [ASK_DELAY] = { LOGIND, PROPERTIES, "Get", "ss",
                        (const char *const[]){ LOGIND_MANAGER, "InhibitDelayMaxUSec" }, ANSWER_USEC },
        [ASK_POWEROFF_JOB] = GET_JOB_TIMEOUT("poweroff_2etarget"),
        [ASK_REBOOT_JOB] = GET_JOB_TIMEOUT("reboot_2etarget"),
        [ASK_INHIBITORS] = { LOGIND, LOGIND_MANAGER, "ListInhibitors", "", NULL, ANSWER_USEC },
        [ASK_INHIBIT] = { LOGIND, LOGIND_MANAGER, "Inhibit", "ssss",
                          (const char *const[]){ "shutdown", "vesper-agent",
                                                 "Moves this node's pods away before it goes down",
                                                 "delay" },
                          ANSWER_USEC },
};

typedef struct PowerAsk {
        Power *power;
        PowerQuestion which;
        BusSlot *slot;
        bool open, absent; /* absent: there is nobody to answer */
        int error;
} PowerAsk;

struct Power {
        Env *env;
        PowerHandler handler;
        PowerAsk asks[_ASK_MAX];
        BusSlot *signal, *metadata; /* of logind */
        Timer *settle, *retry;

        PowerState state;
        bool preparing, stopping;
        bool unanswered; /* the last look */
        const char *kind;
        PowerLimits limits;
        bool kubelet_inhibits;

        bool hold;
        int fd; /* of the inhibitor */
        bool refusal_said;
};

/* -- arithmetic --------------------------------------------------------------------------------- */

PowerBudget power_budget(const PowerLimits *l, bool announced, usec_t max_usec) {
        usec_t delay = announced ? usec_sub(l->inhibit_delay_usec, MARGIN_USEC) : 0;
        usec_t stop = l->stop_extendable ? usec_sub(l->job_timeout_usec, REST_USEC) : 0;
        usec_t given = usec_add(delay, stop);
        PowerBudget b = { .total_usec = MIN(given, max_usec), .too_short = given < max_usec };

        if (b.too_short && l->stop_extendable)
                b.remedy = "Lower [Shutdown] MaxSec=, or raise JobTimeoutSec= of poweroff.target and reboot.target by drop-ins.";
        else if (b.too_short)
                b.remedy =
                        "Run the agent as its systemd unit, whose stop may be extended; or raise InhibitDelayMaxSec= in a drop-in of /etc/systemd/logind.conf.d and send SIGHUP to systemd-logind; or lower [Shutdown] MaxSec=.";
        return b;
}

PowerState power_state(const Power *p) {
        return p->state;
}

bool power_is_unanswered(const Power *p) {
        return p->unanswered;
}

bool power_is_announced(const Power *p) {
        return p->preparing && !p->stopping;
}

const char *power_kind(const Power *p) {
        return p->kind;
}

bool power_holds(const Power *p) {
        return p->fd >= 0;
}

/* -- the inhibitor ------------------------------------------------------------------------------ */

/* logind holds the other end: an error on ours says that it does not any more. */
static bool fd_is_dead(int fd) {
        struct pollfd pfd = { .fd = fd };

        return poll(&pfd, 1, 0) < 0 || (pfd.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static void forget_stored(Power *p) {
        if (p->env->forget_fd)
                p->env->forget_fd(STORE_NAME, p->env->notify_userdata);
}

static void let_go(Power *p) {
        if (p->fd < 0)
                return;
        forget_stored(p);
        (void) close(TAKE_FD(p->fd));
}

static void take_stored(Power *p) {
        int fd;

        if (!p->env->take_stored_fd)
                return;
        fd = p->env->take_stored_fd(STORE_NAME, p->env->notify_userdata);
        if (fd < 0)
                return;
        p->fd = fd;
        if (fd_is_dead(fd)) /* pump_inhibitor() drops it */
                log_notice(p->env->log, "The shutdown inhibitor of before this start is not held any more: taking a new one.");
        else
                log_debug(p->env->log, "Shutdowns have been inhibited since before this start");
}

static void store(Power *p) {
        int r;

        if (!p->env->store_fd)
                return;
        r = p->env->store_fd(STORE_NAME, p->fd, p->env->notify_userdata);
        if (r < 0)
                log_warning_errno(p->env->log, r,
                                  "Failed to put the shutdown inhibitor into the service manager's store, continuing: %m. "
                                  "A crash of the agent would let a shutdown through.");
}

static void ask(Power *p, PowerQuestion q);

static void pump_inhibitor(Power *p) {
        if (!p->hold) {
                let_go(p);
                return;
        }
        if (p->fd >= 0 && fd_is_dead(p->fd))
                let_go(p);
        /* While a shutdown is on its way logind refuses new ones. */
        if (p->fd < 0 && p->env->bus && p->state == POWER_STAYS && !p->asks[ASK_INHIBIT].open)
                ask(p, ASK_INHIBIT);
}

static void on_inhibit(Power *p, const BusReply *reply) {
        int fd = -EBADF;

        if (reply->error == 0)
                fd = reply->fd >= 0 ? fcntl(reply->fd, F_DUPFD_CLOEXEC, 3) : -1;
        if (fd < 0) {
                if (!p->refusal_said)
                        log_event(p->env->log, LOG_LEVEL_WARNING, MESSAGE_SHUTDOWN_NOT_INHIBITED, NULL, 0,
                                  "Failed to take a shutdown inhibitor from logind, retrying: %s. "
                                  "Until then only the ordered stop of units leaves time to drain.",
                                  isempty(reply->error_name)
                                          ? strerrorname_np(reply->error < 0 ? -reply->error : errno)
                                          : reply->error_name);
                p->refusal_said = true;
                timer_arm_earlier(p->retry, usec_add(loop_now(p->env->loop), RETRY_USEC));
                return;
        }
        p->refusal_said = false;
        p->fd = fd;
        if (p->hold) {
                store(p);
                log_debug(p->env->log, "Shutdowns are inhibited");
        } else
                let_go(p);
}

void power_hold(Power *p, bool hold) {
        p->hold = hold;
        if (hold && p->fd < 0)
                take_stored(p);
        pump_inhibitor(p);
}

/* -- looks -------------------------------------------------------------------------------------- */

static void set_state(Power *p, PowerState s) {
        p->state = s;
        p->unanswered = false;
        if (s != POWER_ENDS)
                p->kind = "shutdown";
        pump_inhibitor(p);
        p->handler.on_state(p, s, p->handler.userdata);
}

/* Not answered: asked again soon. What it said before stands, and so does what a signal has said since. */
static bool power_ask_failed(Power *p, const PowerAsk *a, const char *who) {
        if (a->error == 0 || a->absent)
                return false;
        log_debug_errno(p->env->log, a->error,
                        "%s does not say whether this machine shuts down, asking again: %m", who);
        timer_arm_earlier(p->retry, usec_add(loop_now(p->env->loop), RETRY_USEC));
        return true;
}

/* Without logind it is PID 1 alone who knows. One that is there, and does not answer, may know of a shutdown. */
static void power_query_is_over(Power *p) {
        const PowerAsk *preparing = &p->asks[ASK_PREPARING], *system = &p->asks[ASK_SYSTEM];
        bool unknown;

        if (preparing->open || system->open)
                return;
        unknown = power_ask_failed(p, preparing, "logind");
        unknown = power_ask_failed(p, system, "PID 1") || unknown;
        if (p->preparing || p->stopping)
                set_state(p, POWER_ENDS);
        else if (unknown) {
                p->unanswered = true;
                p->handler.on_state(p, p->state, p->handler.userdata);
        } else
                set_state(p, POWER_STAYS);
}

static const char *const kinds[] = { "poweroff", "reboot", "halt", "kexec", "soft-reboot" };

static void on_jobs(Power *p, const BusReply *reply) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++) {
                _cleanup_free_ char *target = strf("%s.target", kinds[i]);

                if (target && strv_contains(reply->values, target))
                        p->kind = kinds[i];
        }
}

/* -- limits ------------------------------------------------------------------------------------- */

static usec_t read_usec(const BusReply *reply, usec_t otherwise) {
        uint64_t v;

        return reply->error == 0 && reply->values && parse_uint64(reply->values[0], &v) >= 0 ? v : otherwise;
}

static void limits_are_known(Power *p) {
        for (PowerQuestion q = ASK_DELAY; q <= ASK_INHIBITORS; q++)
                if (p->asks[q].open)
                        return;
        p->handler.on_limits(p, &p->limits, p->kubelet_inhibits, p->handler.userdata);
}

/* a(ssssuu): what, who, why, mode, uid, pid. */
static bool kubelet_is_among(char *const *values) {
        size_t n = strv_length(values);

        for (size_t i = 0; i + 6 <= n; i += 6)
                if (strstr(values[i], "shutdown") && streq(values[i + 1], "kubelet"))
                        return true;
        return false;
}

/* -- asking ------------------------------------------------------------------------------------- */

/* Nobody has that name, and nobody could be started to have it (NoSuchUnit, UnitMasked, Spawn.ExecFailed). */
static bool is_absent(const BusReply *reply) {
        return reply->error == -EHOSTUNREACH || reply->error == -ENXIO ||
               startswith(reply->error_name, "org.freedesktop.systemd1.") ||
               startswith(reply->error_name, "org.freedesktop.DBus.Error.Spawn.");
}

static void take_answer(Power *p, PowerQuestion q, const BusReply *reply) {
        switch (q) {
        case ASK_PREPARING:
                if (reply->error == 0)
                        p->preparing = reply->values && streq(reply->values[0], "true");
                else if (p->asks[q].absent)
                        p->preparing = false;
                break;
        case ASK_SYSTEM:
                if (reply->error == 0)
                        p->stopping = reply->values && streq(reply->values[0], "stopping");
                break;
        case ASK_JOBS:
                on_jobs(p, reply);
                break;
        case ASK_DELAY:
                p->limits.inhibit_delay_usec = read_usec(reply, 0);
                break;
        case ASK_POWEROFF_JOB:
        case ASK_REBOOT_JOB: {
                usec_t timeout = read_usec(reply, JOB_TIMEOUT_USEC);

                p->limits.job_timeout_usec =
                        MIN(p->limits.job_timeout_usec, timeout > 0 ? timeout : USEC_INFINITY);
                break;
        }
        case ASK_INHIBITORS:
                p->kubelet_inhibits = reply->error == 0 && kubelet_is_among(reply->values);
                break;
        case ASK_INHIBIT:
                on_inhibit(p, reply);
                break;
        case _ASK_MAX:
                assert(false && "an answer to no question");
        }
}

static void close_ask(PowerAsk *a, const BusReply *reply) {
        Power *p = a->power;
        PowerQuestion q = a->which;

        a->slot = bus_slot_free(a->slot);
        a->open = false;
        a->error = reply->error;
        a->absent = q == ASK_PREPARING && is_absent(reply);
        take_answer(p, q, reply);
        if (q <= ASK_SYSTEM)
                power_query_is_over(p);
        else if (q >= ASK_DELAY && q <= ASK_INHIBITORS)
                limits_are_known(p);
}

static void on_reply(const BusReply *reply, void *userdata) {
        close_ask(userdata, reply);
}

/* What could not even be asked is answered a moment later. */
static void on_settle(Timer *t, void *userdata) {
        Power *p = userdata;

        for (PowerQuestion q = 0; q < _ASK_MAX; q++)
                if (p->asks[q].open && !p->asks[q].slot)
                        close_ask(&p->asks[q],
                                  &(BusReply){ .error = p->asks[q].error, .error_name = "", .fd = -EBADF });
}

static void ask(Power *p, PowerQuestion q) {
        PowerAsk *a = &p->asks[q];
        int r;

        a->slot = bus_slot_free(a->slot);
        a->open = true;
        r = p->env->bus ? p->env->bus->ops->call(p->env->bus, &calls[q], on_reply, a, &a->slot) : -ENOTCONN;
        if (r < 0) {
                a->error = r;
                timer_arm_in(p->settle, 0);
        }
}

void power_query(Power *p) {
        ask(p, ASK_JOBS); /* first: so the kind is known by then */
        ask(p, ASK_PREPARING);
        ask(p, ASK_SYSTEM);
}

static void ask_limits(Power *p) {
        p->limits.job_timeout_usec = USEC_INFINITY;
        for (PowerQuestion q = ASK_DELAY; q <= ASK_INHIBITORS; q++)
                ask(p, q);
}

static void on_retry(Timer *t, void *userdata) {
        Power *p = userdata;

        power_query(p);
}

static void on_prepare(int error, const char *value, void *userdata) {
        Power *p = userdata;

        if (error == -ESTALE) {
                power_query(p);
                ask_limits(p);
        } else if (error < 0)
                log_warning_errno(p->env->log, error,
                                  "Failed to subscribe to shutdown signals of logind, continuing without them: %m");
        else if (streq(value, "true")) {
                p->preparing = true;
                set_state(p, POWER_ENDS);
        } else
                power_query(p); /* PID 1 may be at it all the same */
}

/* PrepareForShutdownWithMetadata(b, a{sv}), since systemd 255, just before the other: "true type reboot". */
static void on_metadata(int error, const char *value, void *userdata) {
        const char *type = error == 0 && startswith(value, "true ") ? strstr(value, " type ") : NULL;
        Power *p = userdata;

        for (size_t i = 0; type && i < ELEMENTSOF(kinds); i++) {
                const char *rest = startswith(type + strlen(" type "), kinds[i]);

                if (rest && (*rest == 0 || *rest == ' '))
                        p->kind = kinds[i];
        }
}

/* -- new, free ---------------------------------------------------------------------------------- */

int power_new(Env *env, const PowerHandler *h, Power **ret) {
        _cleanup_(power_freep) Power *p = NULL;
        int r;

        assert(env && h && h->on_state && h->on_limits && ret);
        p = new0(Power, 1);
        if (!p)
                return -ENOMEM;
        p->env = env;
        p->handler = *h;
        p->fd = -EBADF;
        p->kind = "shutdown";
        p->limits.stop_extendable = env->stop_extendable;
        for (PowerQuestion q = 0; q < _ASK_MAX; q++)
                p->asks[q] = (PowerAsk){ .power = p, .which = q };
        r = timer_new(env->loop, "power-settle", on_settle, p, &p->settle);
        if (r >= 0)
                r = timer_new(env->loop, "power-retry", on_retry, p, &p->retry);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

Power *power_free(Power *p) {
        if (!p)
                return NULL;
        for (PowerQuestion q = 0; q < _ASK_MAX; q++)
                bus_slot_free(p->asks[q].slot);
        bus_slot_free(p->signal);
        bus_slot_free(p->metadata);
        timer_free(p->settle);
        timer_free(p->retry);
        if (p->fd >= 0)
                (void) close(p->fd);
        return mfree(p);
}

void power_start(Power *p) {
        int r;

        if (!p->env->bus) {
                p->state = POWER_STAYS;
                p->handler.on_state(p, p->state, p->handler.userdata);
                p->handler.on_limits(p, &p->limits, false, p->handler.userdata);
                return;
        }
        /* Which kind it will be is only nice to know. */
        (void) p->env->bus->ops->match_signal(p->env->bus, LOGIND, LOGIND_MANAGER,
                                              "PrepareForShutdownWithMetadata", on_metadata, p,
                                              &p->metadata);
        r = p->env->bus->ops->match_signal(p->env->bus, LOGIND, LOGIND_MANAGER, "PrepareForShutdown",
                                           on_prepare, p, &p->signal);
        if (r < 0)
                log_warning_errno(p->env->log, r,
                                  "Failed to subscribe to shutdown signals of logind, continuing without them: %m");
        power_query(p);
        ask_limits(p);
}

void power_next_wakeup(const Power *p, Wakeups *w) {
        for (PowerQuestion q = 0; q < _ASK_MAX; q++) {
                if (!p->asks[q].open)
                        continue;
                wakeups_unfinished(w, "call of", calls[q].member, "asked", 0);
                wakeups_await(w, p->asks[q].slot);
                wakeups_timer(w, p->settle);
        }
        if (p->unanswered && !p->asks[ASK_PREPARING].open && !p->asks[ASK_SYSTEM].open) {
                wakeups_unfinished(w, "question whether", "the machine stays", "not answered", RETRY_USEC);
                wakeups_timer(w, p->retry);
        }
        if (p->hold && p->fd < 0 && p->env->bus && p->state == POWER_STAYS && !p->asks[ASK_INHIBIT].open) {
                wakeups_unfinished(w, "inhibitor of", "logind", "refused", RETRY_USEC);
                wakeups_timer(w, p->retry);
        }
}
