/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent-client.h"
#include "agent-face.h"
#include "agent-rig.h"
#include "cmocka-test.h"
#include "strv.h"

/* vesper-agent --drain and its like, in a process of its own beside a whole agent, on one bus. */

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC
#define GRANTED "vesper.sh/shutdown-granted"

typedef struct Asker {
        Env env;
        AgentClient *client;
        unsigned n_done;
        int result;
        StrBuf lines, statuses; /* what was logged; what was told people */
        char status[256];       /* as the service manager has it */
} Asker;

static void run(AgentRig *r, usec_t usec) {
        usec_t until = virtual_time_now(r->world.time) + usec;

        while (agent_rig_run(r, until - virtual_time_now(r->world.time)))
                ;
}

static AgentRig *running_rig(unsigned n_pods) {
        AgentRig *r = agent_rig_new();

        fake_power_set_limits(r->power, &(FakePowerLimits){ 600 * S, 30 * USEC_PER_MINUTE, 90 * S });
        agent_rig_add_pods(r, "web", n_pods);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_true(r->ready);
        return r;
}

static void on_line(LogLevel level, const char *message_id, const char *text, const LogField *fields, size_t n_fields,
                    void *userdata) {
        Asker *a = userdata;

        strbuf_addf(&a->lines, "%s\n", text);
}

static void on_notify(const char *text, void *userdata) {
        Asker *a = userdata;

        assert_non_null(startswith(text, "STATUS="));
        (void) snprintf(a->status, sizeof(a->status), "%s", text + strlen("STATUS="));
}

static void on_status(const char *text, void *userdata) {
        Asker *a = userdata;

        strbuf_addf(&a->statuses, "%s\n", text);
}

static void on_done(int result, void *userdata) {
        Asker *a = userdata;

        a->n_done++;
        a->result = result;
}

static Asker *ask(AgentRig *r, AgentVerb verb, bool force) {
        Asker *a = new0(Asker, 1);
        const AgentClientHandler h = { on_status, on_done, a };

        assert_non_null(a);
        assert_return_code(loop_new_virtual(r->world.time, &a->env.loop), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "client", &a->env.log), 0);
        log_set_hook(a->env.log, on_line, a);
        a->env.bus = fake_power_bus(r->power, a->env.loop);
        a->env.notify = on_notify;
        a->env.notify_userdata = a;
        assert_return_code(agent_client_new(&a->env, verb, force, &h, &a->client), 0);
        return a;
}

static Asker *asker_free(Asker *a) {
        if (!a)
                return NULL;
        agent_client_free(a->client);
        bus_free(a->env.bus);
        log_free(a->env.log);
        loop_free(a->env.loop);
        strbuf_done(&a->lines);
        strbuf_done(&a->statuses);
        return mfree(a);
}
DEFINE_FREEP(Asker, asker_free);

static void assert_waits(const Asker *a) {
        if (a->n_done > 0)
                fail_msg("it has ended with %d: %s", a->result, strbuf_str(&a->lines));
}

static void assert_ended(const Asker *a, int result, const char *said) {
        assert_int_equal(a->n_done, 1);
        assert_int_equal(a->result, result);
        if (said && !strstr(strbuf_str(&a->lines), said))
                fail_msg("'%s' was not said, but: %s", said, strbuf_str(&a->lines));
        if (!said)
                assert_string_equal(strbuf_str(&a->lines), "");
}

static void uncordon(AgentRig *r) {
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
}

static void grant(AgentRig *r, int in_sec) {
        const char *text = agent_rig_annotation(r, "vesper.sh/shutdown-request");
        cJSON *request = text ? cJSON_Parse(text) : NULL;
        char until[RFC3339_MAX];

        assert_non_null(request);
        rfc3339_format(loop_wall(r->world.loop) + (usec_t) in_sec * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'" GRANTED "':'{\\\"id\\\":\\\"%s\\\",\\\"until\\\":\\\"%s\\\"}'}}}",
                   fj_string(request, "id", NULL), until);
        cJSON_Delete(request);
}

static void protect(AgentRig *r, const char *pod, const char *value) {
        fake_merge(r->cluster, FAKE_PODS, "default", pod, "{'metadata':{'annotations':{'vesper.sh/do-not-evict':%s}}}",
                   value);
}

/* -- a drain ------------------------------------------------------------------------------------ */

TEST_CASE(test_drain) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
        _cleanup_(asker_freep) Asker *a = ask(r, AGENT_VERB_DRAIN, false), *late = NULL, *cancel = NULL;

        run(r, 20 * S);
        assert_waits(a);
        assert_string_equal(a->status, "Draining: 3 pods left");
        run(r, 20 * S);
        assert_ended(a, 0, NULL);
        assert_string_equal(a->status, "Drained: 0 pods left");
        assert_non_null(strstr(strbuf_str(&a->statuses), "Draining: 3 pods left\n"));
        assert_int_equal(agent_rig_n_pods(r), 0);
        assert_non_null(strstr(strbuf_str(&r->patches), "pods away: somebody on this machine asked for it"));
        assert_null(strstr(strbuf_str(&r->patches), "the machine is about to end"));

        print_message("asked again of a node that is drained\n");
        late = ask(r, AGENT_VERB_DRAIN, false);
        run(r, 100 * MS);
        assert_ended(late, 0, NULL);

        print_message("taken back\n");
        cancel = ask(r, AGENT_VERB_CANCEL_DRAIN, false);
        run(r, S);
        assert_ended(cancel, 0, NULL);
        assert_false(agent_rig_unschedulable(r));
}

/* Somebody makes an end of it: before the first look (the bus is slow), or later. */
TEST_CASE(test_drain_ends_otherwise) {
        static const struct {
                const char *what;
                bool before_first_look, by_verb;
                const char *said;
        } rows[] = {
                { "un-cordoned before the first look", true, false, "somebody made the node schedulable again" },
                { "taken back before the first look", true, true, "has taken it back" },
                { "un-cordoned", false, false, "somebody made the node schedulable again" },
                { "taken back", false, true, "has taken it back" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                _cleanup_(asker_freep) Asker *a = NULL;

                print_message("%s\n", rows[i].what);
                a = ask(r, AGENT_VERB_DRAIN, false);
                run(r, rows[i].before_first_look ? 1500 : 10 * S); /* us: it is taken, no look is answered */
                assert_int_equal(strbuf_str(&a->statuses)[0] != 0, !rows[i].before_first_look);
                if (rows[i].before_first_look)
                        fake_power_set_bus(r->power, false);
                run(r, S);
                assert_true(agent_rig_unschedulable(r));
                if (rows[i].by_verb)
                        assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), 0);
                else
                        uncordon(r);
                run(r, 2 * S);
                fake_power_set_bus(r->power, true);
                run(r, 8 * S);
                assert_ended(a, -ECANCELED, rows[i].said);
                assert_false(agent_rig_unschedulable(r));
        }
}

/* The agent crashes, is away for a while, or for good. */
TEST_CASE(test_agent_away) {
        static const struct {
                const char *what;
                AgentVerb verb;
                usec_t before, away; /* before: it runs so long; 0: not at all */
                int result;
                const char *said, *lost;
        } rows[] = {
                { "drained all the same", AGENT_VERB_DRAIN, 5 * S, 20 * S, 0, NULL },
                { "drained, asked before it runs", AGENT_VERB_DRAIN, 0, 20 * S, 0, NULL },
                { "crashed before it had marked the node", AGENT_VERB_DRAIN, 1500 * MS, S, -ECANCELED,
                  "the agent was restarted", "/nodes/" RIG_NODE },
                { "for good", AGENT_VERB_DRAIN, 5 * S, 100 * S, -ETIMEDOUT, "has to be started again" },
                { "never there", AGENT_VERB_DRAIN, 0, 100 * S, -ETIMEDOUT, "ServiceUnknown. See systemctl" },
                { "a request for a reboot ends with it", AGENT_VERB_REBOOT, 5 * S, 20 * S, -ECANCELED,
                  "the agent was restarted" },
                { "taken back once it is there", AGENT_VERB_CANCEL_DRAIN, 0, 20 * S, 0, NULL },
                { "a reboot, for good", AGENT_VERB_REBOOT, 5 * S, 100 * S, -ETIMEDOUT, "The request ends with a restart of the agent" },
                { "never taken back", AGENT_VERB_CANCEL_REBOOT, 0, 100 * S, -ETIMEDOUT,
                  "When the agent runs again: vesper-agent --cancel-reboot" },
                { "a drain, never taken back", AGENT_VERB_CANCEL_DRAIN, 0, 100 * S, -ETIMEDOUT,
                  "The drain stands. When the agent runs again: vesper-agent --cancel-drain" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                _cleanup_(asker_freep) Asker *a = NULL;

                print_message("%s\n", rows[i].what);
                if (rows[i].before == 0)
                        agent_rig_kill(r);
                r->lost = rows[i].lost;
                a = ask(r, rows[i].verb, false);
                run(r, rows[i].before);
                if (r->agent)
                        agent_rig_kill(r);
                r->lost = NULL;
                run(r, MIN(rows[i].away, 50 * S));
                assert_waits(a);
                if (rows[i].away > S)
                        assert_non_null(strstr(a->status, "Waiting for the agent of this machine: "));
                run(r, rows[i].away - MIN(rows[i].away, 50 * S));
                agent_rig_start(r);
                run(r, 60 * S);
                assert_ended(a, rows[i].result, rows[i].said);
        }
}

/* The agent runs, and has not seen its Node: that is said, and waited for, not for ever. */
TEST_CASE(test_node_unseen) {
        for (unsigned in_time = 0; in_time <= 1; in_time++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
                _cleanup_(asker_freep) Asker *a = NULL;

                fake_api_away_until(fake_cluster_api(r->cluster),
                                    virtual_time_now(r->world.time) + (in_time ? 30 : 100) * S);
                agent_rig_start(r);
                a = ask(r, AGENT_VERB_DRAIN, false);
                run(r, 20 * S);
                assert_waits(a);
                assert_non_null(strstr(a->status, "the agent has not seen its Node yet"));
                run(r, 100 * S);
                if (in_time)
                        assert_ended(a, 0, NULL);
                else
                        assert_ended(a, -ETIMEDOUT, "cannot take its node out of service: the agent has not seen");
        }
}

/* The agent crashes while its API server is away: what stands is not known until it is back. */
TEST_CASE(test_unknown_after_restart) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
        _cleanup_(asker_freep) Asker *a = ask(r, AGENT_VERB_DRAIN, false);

        run(r, 5 * S);
        agent_rig_kill(r);
        fake_api_away_until(fake_cluster_api(r->cluster), virtual_time_now(r->world.time) + 200 * S);
        agent_rig_start(r);
        run(r, 150 * S);
        assert_waits(a);
        assert_string_equal(a->status, "The agent has not seen its Node yet");
        run(r, 120 * S);
        assert_ended(a, 0, NULL);
}

/* What opted out is waited for, and named; --force does not wait, also where it was asked for without. */
TEST_CASE(test_drain_protected) {
        for (unsigned forced = 0; forced <= 1; forced++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                _cleanup_(asker_freep) Asker *a = NULL, *force = NULL;

                print_message("forced: %u\n", forced);
                protect(r, "web-1", "'true'");
                a = ask(r, AGENT_VERB_DRAIN, false);
                run(r, 3600 * S);
                assert_waits(a);
                assert_string_equal(a->status, "Draining: 3 pods left, waits for pod default/web-1, which "
                                               "vesper.sh/do-not-evict protects (--force does not wait)");
                if (forced)
                        force = ask(r, AGENT_VERB_DRAIN, true);
                else
                        protect(r, "web-1", "null");
                run(r, 10 * S);
                assert_ended(a, 0, NULL);
                if (forced)
                        assert_ended(force, 0, NULL);
                assert_int_equal(agent_rig_n_pods(r), 0);
        }
}

/* -- a reboot ----------------------------------------------------------------------------------- */

/* Whatever the node is drained for, a reboot has its own end. */
TEST_CASE(test_reboot) {
        enum { GRANT, WITHDRAW, PATIENCE, LOGIND };
        static const struct {
                const char *what;
                int end, result;
                const char *said;
        } rows[] = {
                { "granted", GRANT, 0, NULL },
                { "taken back", WITHDRAW, -ECANCELED, "whoever asked for it has taken it back" },
                { "nobody grants it", PATIENCE, -ECANCELED, "nobody granted it within RebootPatienceSec=" },
                { "logind refuses", LOGIND, -ECANCELED, "logind refused" },
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                bool drained = i % 2;
                _cleanup_(asker_freep) Asker *drain = NULL, *a = NULL;

                print_message("%s, drained before: %d\n", rows[i / 2].what, drained);
                if (drained) {
                        drain = ask(r, AGENT_VERB_DRAIN, false);
                        run(r, 60 * S);
                        assert_ended(drain, 0, NULL);
                }
                a = ask(r, AGENT_VERB_REBOOT, false);
                run(r, 10 * S);
                assert_waits(a);
                assert_string_equal(a->status, "Reboot: Requested, waits for the coordinator's grant");
                if (rows[i / 2].end == LOGIND)
                        fake_power_set_logind(r->power, false);
                if (rows[i / 2].end == GRANT || rows[i / 2].end == LOGIND)
                        grant(r, 300);
                if (rows[i / 2].end == WITHDRAW)
                        assert_int_equal(fake_power_call_unit(r->power, "CancelReboot"), 0);
                run(r, rows[i / 2].end == PATIENCE ? 3600 * S : 60 * S);
                assert_ended(a, rows[i / 2].result, rows[i / 2].said);
                assert_int_equal(fake_power_phase(r->power) == FAKE_POWER_OFF, rows[i / 2].end == GRANT);
                assert_int_equal(agent_rig_unschedulable(r), drained || rows[i / 2].end == GRANT);
        }
}

/* The agent crashes when the machine has been told: it goes down, and that is what the answer says. */
TEST_CASE(test_reboot_and_crash) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
        _cleanup_(asker_freep) Asker *a = ask(r, AGENT_VERB_REBOOT, false);

        run(r, 10 * S);
        grant(r, 300);
        run(r, S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_DELAY);
        assert_string_equal(a->status, "Reboot: Rebooting");
        agent_rig_kill(r);
        run(r, 1500 * MS);
        agent_rig_start(r);
        run(r, 60 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_ended(a, 0, NULL);
}

/* Nothing is undone while the machine goes down, not even where the agent does not know of it. */
TEST_CASE(test_cancel_while_stopping) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);
        _cleanup_(asker_freep) Asker *drain = NULL, *cancel = NULL;

        drain = ask(r, AGENT_VERB_DRAIN, false);
        run(r, 60 * S);
        assert_ended(drain, 0, NULL);
        fake_power_set_logind_silent(r->power, true); /* so the agent learns of it two seconds later */
        assert_true(fake_power_shutdown(r->power, "poweroff", false));
        cancel = ask(r, AGENT_VERB_CANCEL_DRAIN, false);
        run(r, S);
        assert_ended(cancel, 0, NULL);
        assert_true(agent_rig_unschedulable(r));
        assert_non_null(agent_rig_annotation(r, "vesper.sh/interruption"));
}

/* -- who answers something else ----------------------------------------------------------------- */

static int refusal; /* what the object below says */
static const char *state_told;

static char *get_other(const char *property, void *userdata) {
        return strdup(strempty(state_told));
}

static int call_other(const char *method, const char **reterr_message, void *userdata) {
        *reterr_message = "not for you";
        return refusal;
}

static const BusProperty other_properties[] = { { "State", 's' } };
static const char *const drain_only[] = { "Drain", NULL }, *const no_method[] = { "Cancel", NULL };

/* Another version, or not root: said at once. */
TEST_CASE(test_refused) {
        static const struct {
                const char *what;
                const char *const *methods;
                int refusal, result;
                const char *said;
        } rows[] = {
                { "not root", drain_only, -EACCES, -EACCES, "not for you. Only root may ask" },
                { "no bus there", drain_only, -EOPNOTSUPP, -EOPNOTSUPP, "not for you." },
                { "no such method", no_method, 0, -EBADR, "another version than this program" },
                { "no such property", drain_only, 0, -EBADR, "another version than this program" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const BusObject object = { .name = AGENT_BUS_NAME,
                                           .path = AGENT_BUS_PATH,
                                           .interface = AGENT_BUS_INTERFACE,
                                           .properties = other_properties,
                                           .n_properties = ELEMENTSOF(other_properties),
                                           .methods = rows[i].methods,
                                           .signal = "StateChanged",
                                           .get = get_other,
                                           .call = call_other };
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
                _cleanup_(asker_freep) Asker *a = NULL;
                Loop *loop = NULL;
                BusSlot *slot = NULL;
                Bus *bus;

                print_message("%s\n", rows[i].what);
                refusal = rows[i].refusal;
                assert_return_code(loop_new_virtual(r->world.time, &loop), 0);
                bus = fake_power_bus(r->power, loop);
                assert_return_code(bus->ops->publish(bus, &object, NULL, &slot), 0);
                a = ask(r, AGENT_VERB_DRAIN, false);
                run(r, S);
                assert_ended(a, rows[i].result, rows[i].said);
                bus_slot_free(slot);
                bus_free(bus);
                loop_free(loop);
        }
}

/* Its own loop and bus: there is none here. */
TEST_CASE(test_no_bus) {
        Asker a = { 0 };

        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "client", &a.env.log), 0);
        log_set_hook(a.env.log, on_line, &a);
        assert_int_equal(agent_client_run(a.env.log, AGENT_VERB_DRAIN, false), -ENOENT);
        assert_non_null(strstr(strbuf_str(&a.lines), "there is no system bus"));
        log_free(a.env.log);
        strbuf_done(&a.lines);
}

/* -- on a real bus ------------------------------------------------------------------------------ */

static const char *last_method = "nothing";

/* Drained when it was asked for without force; else it tells what was asked for last. */
static char *get_real(const char *property, void *userdata) {
        if (streq(property, "PodsLeft"))
                return strdup("7");
        if (streq(property, "DrainState"))
                return strdup(streq(last_method, "Drain") ? "Drained" : "None");
        return strdup(streq(property, "RebootState") ? "None" : last_method);
}

static int call_real(const char *method, const char **reterr_message, void *userdata) {
        static const char *const known[] = { "Drain", "ForceDrain", "RequestReboot", "ForceReboot" };

        if (streq(method, "CancelReboot")) {
                *reterr_message = "not now";
                return -EOPNOTSUPP;
        }
        for (size_t i = 0; i < ELEMENTSOF(known); i++)
                if (streq(method, known[i]))
                        last_method = known[i];
        return 0;
}

static const BusProperty real_properties[] = { { "DrainState", 's' },
                                               { "PodsLeft", 't' },
                                               { "DrainReason", 's' },
                                               { "RebootState", 's' },
                                               { "RebootReason", 's' } };
static const char *const real_methods[] = { "Drain",       "ForceDrain",  "RequestReboot", "ForceReboot",
                                            "CancelDrain", "CancelReboot", NULL };

/* In a process of its own, until it is killed. */
static int be_an_agent(void) {
        static const BusObject object = { .name = AGENT_BUS_NAME,
                                          .path = AGENT_BUS_PATH,
                                          .interface = AGENT_BUS_INTERFACE,
                                          .properties = real_properties,
                                          .n_properties = ELEMENTSOF(real_properties),
                                          .methods = real_methods,
                                          .signal = "StateChanged",
                                          .get = get_real,
                                          .call = call_real };
        BusSlot *slot = NULL;
        Loop *loop = NULL;
        Bus *bus = NULL;

        if (loop_new(&loop) < 0 || bus_new_system(loop, &bus) < 0 ||
            bus->ops->publish(bus, &object, NULL, &slot) < 0)
                return 1;
        return loop_run(loop) < 0;
}

/* Its address into *ret, which is empty where there is no dbus-daemon. */
static pid_t start_daemon(char *ret, size_t size) {
        int fds[2];
        size_t n = 0;
        pid_t pid;

        assert_return_code(pipe(fds), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                char argument[32];

                (void) snprintf(argument, sizeof(argument), "--print-address=%d", fds[1]);
                (void) close(fds[0]);
                (void) execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--nopidfile",
                              "--address=unix:tmpdir=/tmp", argument, NULL);
                _exit(127);
        }
        (void) close(fds[1]);
        while (n + 1 < size && read(fds[0], ret + n, 1) == 1 && ret[n] != '\n')
                n++;
        ret[n] = 0;
        (void) close(fds[0]);
        return pid;
}

static void end(pid_t pid) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}

TEST_CASE(test_real_bus) {
        static const struct {
                AgentVerb verb;
                bool force;
                int result;
                const char *said;
        } rows[] = {
                { AGENT_VERB_DRAIN, false, 0, NULL },
                { AGENT_VERB_DRAIN, true, -ECANCELED, "The node is not drained: ForceDrain." },
                { AGENT_VERB_REBOOT, false, -ECANCELED, "This machine does not reboot: RequestReboot." },
                { AGENT_VERB_REBOOT, true, -ECANCELED, "This machine does not reboot: ForceReboot." },
                { AGENT_VERB_CANCEL_DRAIN, false, 0, NULL },
                { AGENT_VERB_CANCEL_REBOOT, false, -EOPNOTSUPP, "take the request for a reboot back: not now." },
        };
        char address[200];
        pid_t daemon = start_daemon(address, sizeof(address)), agent;

        if (isempty(address)) {
                end(daemon);
                skip();
        }
        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", address, 1), 0);
        agent = fork();
        assert_true(agent >= 0);
        if (agent == 0)
                _exit(be_an_agent());
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Asker a = { 0 };

                assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "client", &a.env.log), 0);
                log_set_hook(a.env.log, on_line, &a);
                a.result = agent_client_run(a.env.log, rows[i].verb, rows[i].force);
                a.n_done = 1;
                assert_ended(&a, rows[i].result, rows[i].said);
                log_free(a.env.log);
                strbuf_done(&a.lines);
        }
        end(agent);
        end(daemon);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_drain),
                cmocka_unit_test(test_drain_ends_otherwise),
                cmocka_unit_test(test_agent_away),
                cmocka_unit_test(test_node_unseen),
                cmocka_unit_test(test_unknown_after_restart),
                cmocka_unit_test(test_drain_protected),
                cmocka_unit_test(test_reboot),
                cmocka_unit_test(test_reboot_and_crash),
                cmocka_unit_test(test_cancel_while_stopping),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_no_bus),
                cmocka_unit_test(test_real_bus),
        };

        return cmocka_run_group_tests_name("agent-client", tests, NULL, NULL);
}
