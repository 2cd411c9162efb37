/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-client.h"

#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent-face.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define LOOK_USEC USEC_PER_SEC
#define ANSWER_USEC (5 * USEC_PER_SEC)
/* An agent that is restarted is back by then. */
#define ABSENT_USEC USEC_PER_MINUTE

#define AGENT_OBJECT AGENT_BUS_NAME, AGENT_BUS_PATH
#define PROPERTIES "org.freedesktop.DBus.Properties"

/* What is said to the agent, where it says what came of it, and how people call that. */
typedef struct AgentRequest {
        const char *method, *forced; /* forced NULL: the same */
        const char *state, *reason;  /* properties; NULL: done when it is taken */
        const char *unable, *undone; /* sentences without their ends: it cannot do so; what it had begun came to nothing */
        const char *left; /* behind what is not done as the agent is away: how things stand, and what to do */
} AgentRequest;

static const AgentRequest requests[_AGENT_VERB_MAX] = {
        [AGENT_VERB_DRAIN] = { "Drain", "ForceDrain", "DrainState", "DrainReason", "The agent of this machine cannot take its node out of service",
                               "The node is not drained",
                               " The drain stands, and goes on when the agent runs again. "
                               "But if vesper-drain.service has asked for it, that takes it back now, and has to be started again." },
        [AGENT_VERB_REBOOT] = { "RequestReboot", "ForceReboot", "RebootState", "RebootReason", "The agent of this machine cannot reboot it",
                                "This machine does not reboot",
                                " The request ends with a restart of the agent; else vesper-agent --cancel-reboot takes it back." },
        [AGENT_VERB_CANCEL_DRAIN] = { "CancelDrain", .unable = "The agent of this machine cannot end the drain of its node",
                                      .left = " The drain stands. When the agent runs again: vesper-agent --cancel-drain" },
        [AGENT_VERB_CANCEL_REBOOT] = { "CancelReboot", .unable = "The agent of this machine cannot take the request for a reboot back",
                                       .left = " When the agent runs again: vesper-agent --cancel-reboot" },
};

struct AgentClient {
        Env *env;
        AgentClientHandler handler;
        const AgentRequest *request;
        AgentVerb verb;
        bool force, looked, taken; /* looked: at the machine */
        BusSlot *question, *changed, *properties; /* one question at a time */
        Timer *timer;
        usec_t absent_usec; /* loop_now(): since when the agent has not answered; 0: it does */
        char *trouble, *status;
};

/* -- telling ------------------------------------------------------------------------------------ */

/* The last act of every caller. */
static void agent_client_finish(AgentClient *c, int result) {
        c->changed = bus_slot_free(c->changed);
        c->properties = bus_slot_free(c->properties);
        timer_disarm(c->timer);
        c->handler.on_done(result, c->handler.userdata);
}

/* Takes the text. */
static void agent_client_set_status(AgentClient *c, char *text) {
        _cleanup_free_ char *status = text, *line = NULL;

        if (!status || streq_ptr(status, c->status))
                return;
        line = strf("STATUS=%s", status);
        if (line && c->env->notify)
                c->env->notify(line, c->env->notify_userdata);
        if (c->handler.on_status)
                c->handler.on_status(status, c->handler.userdata);
        free(c->status);
        c->status = TAKE_PTR(status);
}

/* -- questions ---------------------------------------------------------------------------------- */

static void agent_client_put(AgentClient *c, const BusCall *call, bus_reply_t on_reply) {
        int r;

        r = c->env->bus->ops->call(c->env->bus, call, on_reply, c, &c->question);
        if (r < 0)
                on_reply(&(BusReply){ .error = r, .error_name = "", .fd = -EBADF }, c);
}

static void agent_client_ask_machine(AgentClient *c, bus_reply_t on_reply) {
        static const char *const args[] = { "org.freedesktop.systemd1.Manager", "SystemState" };
        static const BusCall call = { "org.freedesktop.systemd1", "/org/freedesktop/systemd1", PROPERTIES, "Get", "ss",
                                      args, ANSWER_USEC };

        agent_client_put(c, &call, on_reply);
}

static bool says_stopping(const BusReply *reply) {
        return reply->error == 0 && reply->values && streq(reply->values[0], "stopping");
}

/* -- an agent that does not answer -------------------------------------------------------------- */

/* Where the machine goes down its agent ends before us: nothing is left to be waited for. */
static void on_machine(const BusReply *reply, void *userdata) {
        AgentClient *c = userdata;

        c->question = bus_slot_free(c->question);
        if (says_stopping(reply)) {
                agent_client_finish(c, 0);
                return;
        }
        if (loop_now(c->env->loop) < usec_add(c->absent_usec, ABSENT_USEC)) {
                agent_client_set_status(c, strf("Waiting for the agent of this machine: %s", strempty(c->trouble)));
                timer_arm_in(c->timer, LOOK_USEC);
                return;
        }
        log_error(c->env->log, "%s: %s. See systemctl status vesper-agent.%s",
                  c->request->unable, strempty(c->trouble),
                  c->taken || !c->request->state ? c->request->left : "");
        agent_client_finish(c, -ETIMEDOUT);
}

/* Asking again does not help. */
static const char *refusal_remedy(int error) {
        switch (error) {
        case -EACCES:
        case -EPERM:
                return " Only root may ask for that.";
        case -EBADR: /* sd-bus' for UnknownMethod and UnknownInterface */
                return " It is of another version than this program: systemctl restart vesper-agent.";
        case -EOPNOTSUPP:
                return "";
        default:
                return NULL;
        }
}

static void on_failure(AgentClient *c, const BusReply *reply) {
        const char *remedy = refusal_remedy(reply->error);
        const char *why = !isempty(reply->error_message) ? reply->error_message
                          : !isempty(reply->error_name)  ? reply->error_name
                                                         : strerror(-reply->error);

        if (remedy) {
                log_error(c->env->log, "%s: %s.%s", c->request->unable, why, remedy);
                agent_client_finish(c, reply->error);
                return;
        }
        (void) free_and_strdup(&c->trouble, why);
        if (c->absent_usec == 0)
                c->absent_usec = loop_now(c->env->loop);
        agent_client_ask_machine(c, on_machine);
}

/* -- what came of it ---------------------------------------------------------------------------- */

/* Keys and values by turns; NULL: not among them. */
static const char *find_value(char *const *values, const char *key) {
        for (size_t i = 0, n = strv_length(values); i + 1 < n; i += 2)
                if (streq(values[i], key))
                        return values[i + 1];
        return NULL;
}

static char *describe(const AgentClient *c, char *const *values, const char *state, const char *reason) {
        const char *waits = isempty(reason) ? "" : ", waits for ",
                   *hint = strstr(reason, "protects") ? " (--force does not wait)" : "";

        if (streq(state, "Unknown"))
                return strdup("The agent has not seen its Node yet");
        if (c->verb == AGENT_VERB_REBOOT)
                return strf("Reboot: %s%s%s%s", state, waits, reason, hint);
        return strf("%s: %s pods left%s%s%s", state, strempty(find_value(values, "PodsLeft")), waits, reason, hint);
}

static void agent_client_judge(AgentClient *c, char *const *values, const char *state) {
        const char *reason = strempty(find_value(values, c->request->reason));

        if (streq(state, "None")) {
                log_error(c->env->log, "%s: %s. See journalctl -u vesper-agent.", c->request->undone,
                          !isempty(reason) ? reason
                                           : "the agent was restarted, which ended the request");
                agent_client_finish(c, -ECANCELED);
                return;
        }
        agent_client_set_status(c, describe(c, values, state, reason));
        if (streq(state, "Drained"))
                agent_client_finish(c, 0);
        else
                timer_arm_in(c->timer, LOOK_USEC);
}

static void on_properties(const BusReply *reply, void *userdata) {
        AgentClient *c = userdata;
        const char *state = reply->error == 0 ? find_value(reply->values, c->request->state) : NULL;

        c->question = bus_slot_free(c->question);
        if (!state) {
                on_failure(c, reply->error < 0 ? reply : &(BusReply){ .error = -EBADR, .error_name = "no such property" });
                return;
        }
        c->absent_usec = 0;
        agent_client_judge(c, reply->values, state);
}

static void agent_client_read_state(AgentClient *c) {
        static const char *const args[] = { AGENT_BUS_INTERFACE };
        static const BusCall call = { AGENT_OBJECT, PROPERTIES, "GetAll", "s", args, ANSWER_USEC };

        agent_client_put(c, &call, on_properties);
}

static void on_taken(const BusReply *reply, void *userdata) {
        AgentClient *c = userdata;

        c->question = bus_slot_free(c->question);
        if (reply->error < 0) {
                on_failure(c, reply);
                return;
        }
        c->taken = true;
        c->absent_usec = 0;
        if (c->request->state)
                agent_client_read_state(c);
        else
                agent_client_finish(c, 0);
}

static void agent_client_ask(AgentClient *c) {
        static const char *const args[] = { NULL };
        const BusCall call = { AGENT_OBJECT,
                               AGENT_BUS_INTERFACE,
                               c->force && c->request->forced ? c->request->forced : c->request->method,
                               "",
                               args,
                               ANSWER_USEC };

        agent_client_put(c, &call, on_taken);
}

/* A unit is stopped before the agent, which nobody may have told yet that the machine goes down: its marks are to stay. */
static void on_first_state(const BusReply *reply, void *userdata) {
        AgentClient *c = userdata;

        c->question = bus_slot_free(c->question);
        c->looked = true;
        if (says_stopping(reply))
                agent_client_finish(c, 0);
        else
                agent_client_ask(c);
}

static void on_timer(Timer *t, void *userdata) {
        AgentClient *c = userdata;

        if (c->question)
                return;
        if (c->taken)
                agent_client_read_state(c);
        else if (!c->request->state && !c->looked)
                agent_client_ask_machine(c, on_first_state);
        else
                agent_client_ask(c);
}

static void on_changed(int error, const char *value, void *userdata) {
        AgentClient *c = userdata;

        if (c->taken && c->absent_usec == 0)
                timer_arm_earlier(c->timer, 0);
}

/* -- new, free ---------------------------------------------------------------------------------- */

int agent_client_new(Env *env, AgentVerb verb, bool force, const AgentClientHandler *h, AgentClient **ret) {
        _cleanup_(agent_client_freep) AgentClient *c = NULL;
        int r;

        assert(env && env->bus && env->log && verb < _AGENT_VERB_MAX && h && h->on_done && ret);
        c = new0(AgentClient, 1);
        if (!c)
                return -ENOMEM;
        c->env = env;
        c->handler = *h;
        c->request = &requests[verb];
        c->verb = verb;
        c->force = force;
        r = timer_new(env->loop, "agent-client", on_timer, c, &c->timer);
        if (r >= 0)
                r = env->bus->ops->match_signal(env->bus, AGENT_OBJECT, AGENT_BUS_INTERFACE, "StateChanged", on_changed,
                                                c, &c->changed);
        if (r >= 0)
                r = env->bus->ops->match_signal(env->bus, AGENT_OBJECT, PROPERTIES, "PropertiesChanged", on_changed, c,
                                                &c->properties);
        if (r < 0)
                return r;
        timer_arm_in(c->timer, 0);
        *ret = TAKE_PTR(c);
        return 0;
}

AgentClient *agent_client_free(AgentClient *c) {
        if (!c)
                return NULL;
        bus_slot_free(c->question);
        bus_slot_free(c->changed);
        bus_slot_free(c->properties);
        timer_free(c->timer);
        free(c->trouble);
        free(c->status);
        return mfree(c);
}

/* -- a process that does nothing else ----------------------------------------------------------- */

static void on_run_status(const char *text, void *userdata) {
        if (isatty(STDOUT_FILENO))
                puts(text);
}

static void on_run_done(int result, void *userdata) {
        loop_exit(userdata, result);
}

static void notify_manager(const char *text, void *userdata) {
        (void) sd_notify(0, text);
}

static int run(Env *env, AgentVerb verb, bool force) {
        const AgentClientHandler h = { .on_status = on_run_status, .on_done = on_run_done, .userdata = env->loop };
        _cleanup_(agent_client_freep) AgentClient *c = NULL;
        int r;

        r = agent_client_new(env, verb, force, &h, &c);
        return r < 0 ? log_error_errno(env->log, r, "Failed to ask the agent: %m") : loop_run(env->loop);
}

int agent_client_run(Log *l, AgentVerb verb, bool force) {
        Env env = { .log = l, .notify = notify_manager };
        int r;

        r = loop_new(&env.loop);
        if (r < 0)
                return log_error_errno(l, r, "Failed to set up the event loop: %m");
        r = bus_new_system(env.loop, &env.bus);
        if (r < 0)
                log_error_errno(l, r, "Failed to reach the agent, as there is no system bus: %m");
        else
                r = run(&env, verb, force);
        bus_free(env.bus);
        loop_free(env.loop);
        return r;
}
