/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "fake-power.h"
#include "log.h"
#include "power.h"
#include "schedule.h"
#include "string-util.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC
#define MIN_ USEC_PER_MINUTE

TEST_CASE(test_budget) {
        static const struct {
                const char *what;
                PowerLimits limits;
                bool announced;
                usec_t max, total;
                const char *remedy; /* a part of it; NULL: enough */
        } rows[] = {
                { "a unit, as Debian has it", { 5 * S, 30 * MIN_, true }, true, 10 * MIN_, 10 * MIN_, NULL },
                { "the same, past logind", { 5 * S, 30 * MIN_, true }, false, 10 * MIN_, 10 * MIN_, NULL },
                { "longer than the job of the target",
                  { 5 * S, 30 * MIN_, true },
                  true,
                  USEC_PER_HOUR,
                  27 * MIN_ + 4500 * MS,
                  "JobTimeoutSec=" },
                { "a target that waits for ever",
                  { 5 * S, USEC_INFINITY, true },
                  true,
                  USEC_PER_HOUR,
                  USEC_PER_HOUR,
                  NULL },
                { "a job shorter than what stops after us",
                  { 0, MIN_, true },
                  false,
                  MIN_,
                  0,
                  "JobTimeoutSec=" },
                { "no unit: logind's delay alone",
                  { 5 * S, 30 * MIN_, false },
                  true,
                  10 * MIN_,
                  4500 * MS,
                  "InhibitDelayMaxSec=" },
                { "no unit, logind told to wait",
                  { 15 * MIN_, 30 * MIN_, false },
                  true,
                  10 * MIN_,
                  10 * MIN_,
                  NULL },
                { "no unit, past logind",
                  { 15 * MIN_, 30 * MIN_, false },
                  false,
                  10 * MIN_,
                  0,
                  "InhibitDelayMaxSec=" },
                { "a delay without end",
                  { USEC_INFINITY, 30 * MIN_, true },
                  true,
                  10 * MIN_,
                  10 * MIN_,
                  NULL },
                { "nobody there", { 0, 0, false }, true, S, 0, "InhibitDelayMaxSec=" },
                { "exactly what is asked for", { 5 * S, 30 * MIN_, true }, true, 27 * MIN_ + 4500 * MS, 27 * MIN_ + 4500 * MS, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                PowerBudget b = power_budget(&rows[i].limits, rows[i].announced, rows[i].max);

                print_message("%s\n", rows[i].what);
                assert_int_equal(b.total_usec, rows[i].total);
                assert_int_equal(b.too_short, !!rows[i].remedy);
                if (rows[i].remedy)
                        assert_non_null(strstr(b.remedy, rows[i].remedy));
                else
                        assert_null(b.remedy);
        }
}

/* -- a Power with its machine ------------------------------------------------------------------- */

typedef struct World {
        VirtualTime *time;
        Loop *loop;
        Log *log;
        StrBuf lines; /* warnings */
        FakePower *machine;
        Env env;
        Power *power;
        unsigned n_looks, n_limits;
        PowerState state;
        PowerLimits limits;
        bool kubelet;
} World;

static void ignore(void *userdata) {
}

static void on_state(Power *p, PowerState s, void *userdata) {
        World *w = userdata;

        w->n_looks++;
        w->state = s;
}

static void on_limits(Power *p, const PowerLimits *l, bool kubelet_inhibits, void *userdata) {
        World *w = userdata;

        w->n_limits++;
        w->limits = *l;
        w->kubelet = kubelet_inhibits;
}

static void on_log(LogLevel level, const char *id, const char *text, const LogField *fields, size_t n_fields, void *userdata) {
        World *w = userdata;

        if (level <= LOG_LEVEL_WARNING)
                strbuf_addf(&w->lines, "%s\n", text);
}

static void world_start(World *w) {
        const PowerHandler h = { on_state, on_limits, w };

        w->env.bus = fake_power_bus(w->machine, w->loop);
        w->n_looks = w->n_limits = 0;
        w->state = POWER_UNKNOWN;
        assert_return_code(power_new(&w->env, &h, &w->power), 0);
        fake_power_unit_started(w->machine);
        power_hold(w->power, true);
        power_start(w->power);
}

static void world_stop(World *w, bool restarts) {
        w->power = power_free(w->power);
        w->env.bus = bus_free(w->env.bus);
        fake_power_unit_ended(w->machine, restarts);
}

static void world_init(World *w) {
        *w = (World){ 0 };
        assert_return_code(virtual_time_new(1000 * S, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        w->machine = fake_power_new(w->loop, &(FakePowerHooks){ ignore, ignore, ignore, NULL, NULL, w });
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_DEBUG, "test", &w->log), 0);
        log_set_hook(w->log, on_log, w);
        w->env = (Env){ .loop = w->loop,
                        .log = w->log,
                        .store_fd = fake_power_store_fd,
                        .take_stored_fd = fake_power_take_fd,
                        .forget_fd = fake_power_forget_fd,
                        .notify_userdata = w->machine,
                        .stop_extendable = true };
}

static void world_done(World *w) {
        if (w->power)
                world_stop(w, false);
        fake_power_free(w->machine);
        log_free(w->log);
        strbuf_done(&w->lines);
        loop_free(w->loop);
        virtual_time_free(w->time);
}

static void run(World *w, usec_t usec) {
        usec_t until = virtual_time_now(w->time) + usec;

        while (virtual_time_step(w->time, until) > 0)
                ;
        (void) assert_awake(w->loop, power_next_wakeup, w->power);
}

TEST_CASE(test_what_it_asks) {
        World w;

        world_init(&w);
        fake_power_set_limits(w.machine, &(FakePowerLimits){ 7 * S, 20 * MIN_, 90 * S });
        fake_power_set_kubelet_inhibits(w.machine, true);
        world_start(&w);
        run(&w, S);
        assert_int_equal(w.state, POWER_STAYS);
        assert_int_equal(w.n_limits, 1);
        assert_int_equal(w.limits.inhibit_delay_usec, 7 * S);
        assert_int_equal(w.limits.job_timeout_usec, 20 * MIN_);
        assert_true(w.limits.stop_extendable);
        assert_true(w.kubelet);
        assert_true(fake_power_is_inhibited(w.machine));
        world_done(&w);
}

TEST_CASE(test_no_logind) {
        World w;

        world_init(&w);
        fake_power_set_logind(w.machine, false);
        world_start(&w);
        run(&w, S);
        assert_int_equal(w.state, POWER_STAYS); /* PID 1 says so */
        assert_int_equal(w.limits.inhibit_delay_usec, 0);
        assert_false(power_holds(w.power));
        fake_power_set_logind(w.machine, true);
        run(&w, 10 * S);
        assert_true(power_holds(w.power)); /* tried again */
        world_done(&w);
}

#define VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Answers to one of the agent's questions. */
static const struct {
        const char *what;
        FakePowerAnswer answer;
        PowerState state;
        bool unanswered, announced, free; /* free: no inhibitor is held */
        usec_t delay, job; /* 0: as the machine has them */
        bool no_kubelet;
        unsigned n_calls, n_looks; /* in 8 s, of that question; 0: 1 */
} other_answers[] = {
        { "the usual ones", { .what = NULL }, POWER_STAYS, .n_calls = 0 },
        { "no logind", { "PreparingForShutdown", .error = -EHOSTUNREACH }, POWER_STAYS },
        { "no such object", { "PreparingForShutdown", .error = -ENXIO }, POWER_STAYS },
        { "logind's unit is masked", { "PreparingForShutdown", .error = -EIO, .error_name = "org.freedesktop.systemd1.UnitMasked" },
          POWER_STAYS },
        { "logind cannot be started",
          { "PreparingForShutdown", .error = -EIO, .error_name = "org.freedesktop.DBus.Error.Spawn.ExecFailed" }, POWER_STAYS },
        { "logind is busy", { "PreparingForShutdown", .error = -EIO, .error_name = "org.freedesktop.DBus.Error.LimitsExceeded" },
          POWER_UNKNOWN, .unanswered = true, .free = true, .n_calls = 2, .n_looks = 2 },
        { "logind cannot be asked", { "PreparingForShutdown", .unsent = -ENOTCONN },
          POWER_UNKNOWN, .unanswered = true, .free = true, .n_calls = 2, .n_looks = 2 },
        { "logind says nothing", { "PreparingForShutdown" }, POWER_STAYS },
        { "logind says yes", { "PreparingForShutdown", .values = VALUES("true") }, POWER_ENDS, .announced = true, .free = true },
        { "PID 1 is not there", { "SystemState", .error = -EHOSTUNREACH },
          POWER_UNKNOWN, .unanswered = true, .free = true, .n_calls = 2, .n_looks = 2 },
        { "PID 1 cannot be asked", { "SystemState", .unsent = -ENOTCONN },
          POWER_UNKNOWN, .unanswered = true, .free = true, .n_calls = 2, .n_looks = 2 },
        { "PID 1 says nothing", { "SystemState" }, POWER_STAYS },
        { "a failed unit", { "SystemState", .values = VALUES("degraded") }, POWER_STAYS },
        { "PID 1 stops", { "SystemState", .values = VALUES("stopping") }, POWER_ENDS, .free = true },
        { "PID 1 is late", { "SystemState", .late = true },
          POWER_UNKNOWN, .unanswered = true, .free = true, .n_calls = 2, .n_looks = 1 },
        { "logind is late", { "PreparingForShutdown", .late = true },
          POWER_UNKNOWN, .unanswered = true, .free = true, .n_calls = 2, .n_looks = 1 },
        { "the delay is late", { "InhibitDelayMaxUSec", .late = true }, POWER_STAYS, .delay = 1 },
        { "the inhibitors are late", { "ListInhibitors", .late = true }, POWER_STAYS, .no_kubelet = true },
        { "no jobs", { "ListJobs", .error = -EIO, .values = VALUES("7", "reboot.target") }, POWER_STAYS },
        { "no delay", { "InhibitDelayMaxUSec", .error = -EIO }, POWER_STAYS, .delay = 1 },
        { "an empty delay", { "InhibitDelayMaxUSec" }, POWER_STAYS, .delay = 1 },
        { "no number", { "InhibitDelayMaxUSec", .values = VALUES("5s") }, POWER_STAYS, .delay = 1 },
        { "an error with a number", { "InhibitDelayMaxUSec", .error = -EIO, .values = VALUES("9000000") }, POWER_STAYS, .delay = 1 },
        { "a delay of 9 s", { "InhibitDelayMaxUSec", .values = VALUES("9000000") }, POWER_STAYS, .delay = 9 * S },
        { "the delay cannot be asked", { "InhibitDelayMaxUSec", .unsent = -ENOTCONN }, POWER_STAYS, .delay = 1 },
        { "a quick poweroff", { "JobTimeoutUSec", "poweroff", .values = VALUES("600000000") }, POWER_STAYS, .job = 10 * MIN_ },
        { "a slow reboot", { "JobTimeoutUSec", "reboot", .values = VALUES("2400000000") }, POWER_STAYS },
        { "a reboot without end", { "JobTimeoutUSec", "reboot", .values = VALUES("0") }, POWER_STAYS },
        { "jobs without end", { "JobTimeoutUSec", .values = VALUES("0") }, POWER_STAYS, .job = USEC_INFINITY, .n_calls = 2 },
        { "a limit of one job is not known", { "JobTimeoutUSec", "reboot", .error = -EIO }, POWER_STAYS },
        { "no limit is known", { "JobTimeoutUSec", .error = -EIO }, POWER_STAYS, .job = 30 * MIN_, .n_calls = 2 },
        { "no inhibitors", { "ListInhibitors" }, POWER_STAYS, .no_kubelet = true },
        { "the kubelet inhibits sleep", { "ListInhibitors", .values = VALUES("sleep", "kubelet", "", "delay", "0", "7") }, POWER_STAYS,
          .no_kubelet = true },
        { "another program", { "ListInhibitors", .values = VALUES("shutdown", "vesper-agent", "kubelet", "delay", "0", "7") },
          POWER_STAYS, .no_kubelet = true },
        { "the second inhibitor",
          { "ListInhibitors", .values = VALUES("sleep", "upsd", "", "block", "0", "1", "sleep:shutdown", "kubelet", "", "delay", "0", "7") },
          POWER_STAYS },
        { "cut in the middle", { "ListInhibitors", .values = VALUES("sleep", "upsd", "", "block", "0", "1", "shutdown", "kubelet") },
          POWER_STAYS, .no_kubelet = true },
        { "an error with inhibitors", { "ListInhibitors", .error = -EIO, .values = VALUES("shutdown", "kubelet", "", "delay", "0", "7") },
          POWER_STAYS, .no_kubelet = true },
        { "no inhibitor for the agent", { "Inhibit", .error = -EACCES, .error_name = "org.freedesktop.DBus.Error.AccessDenied" },
          POWER_STAYS, .free = true, .n_calls = 2, .n_looks = 2 },
        { "an inhibitor without a descriptor", { "Inhibit" }, POWER_STAYS, .free = true, .n_calls = 2, .n_looks = 2 },
        { "the inhibitor cannot be asked for", { "Inhibit", .unsent = -ENOTCONN },
          POWER_STAYS, .free = true, .n_calls = 2, .n_looks = 2 },
};

/* Any answer to one of the agent's questions, and what the agent makes of it. A question that got no answer is repeated after
 * 5 s. The usual answers come after 8 s, and then nothing of the other one is left. */
TEST_CASE(test_other_answers) {
        for (size_t i = 0; i < ELEMENTSOF(other_answers); i++) {
                usec_t delay = other_answers[i].delay > 0 ? other_answers[i].delay : 7 * S,
                       job = other_answers[i].job > 0 ? other_answers[i].job : 20 * MIN_;
                const char *what = other_answers[i].answer.what;
                World w;

                print_message("%s\n", other_answers[i].what);
                world_init(&w);
                fake_power_set_limits(w.machine, &(FakePowerLimits){ 7 * S, 20 * MIN_, 90 * S });
                fake_power_set_kubelet_inhibits(w.machine, true);
                fake_power_set_answer(w.machine, &other_answers[i].answer);
                world_start(&w);
                run(&w, 8 * S);
                assert_int_equal(w.state, other_answers[i].state);
                assert_int_equal(power_state(w.power), other_answers[i].state);
                assert_int_equal(power_is_unanswered(w.power), other_answers[i].unanswered);
                assert_int_equal(power_is_announced(w.power), other_answers[i].announced);
                assert_int_equal(power_holds(w.power), !other_answers[i].free);
                assert_string_equal(power_kind(w.power), "shutdown");
                assert_int_equal(w.limits.inhibit_delay_usec, delay == 1 ? 0 : delay);
                assert_int_equal(w.limits.job_timeout_usec, job);
                assert_int_equal(w.kubelet, !other_answers[i].no_kubelet);
                assert_int_equal(w.n_limits, 1);
                assert_int_equal(w.n_looks, MAX(other_answers[i].n_looks, 1u));
                if (what)
                        assert_int_equal(fake_power_n_calls(w.machine, what), streq(what, "JobTimeoutUSec") ? 2 : MAX(other_answers[i].n_calls, 1u));
                assert_int_equal(strbuf_str(&w.lines)[0] != 0, what && streq(what, "Inhibit"));

                fake_power_set_answer(w.machine, NULL);
                power_query(w.power);
                run(&w, 8 * S);
                assert_int_equal(w.state, POWER_STAYS);
                assert_false(power_is_unanswered(w.power));
                assert_true(power_holds(w.power));
                assert_int_equal(fake_power_n_calls(w.machine, "Inhibit"), streq_ptr(what, "Inhibit") ? 3 : 1);
                world_done(&w);
        }
}

/* logind loses the inhibitor, and refuses another one for a while. Each refusal is logged once, however often it is repeated. */
TEST_CASE(test_inhibitor_is_lost) {
        static const FakePowerAnswer refused = { "Inhibit", .error = -EACCES, .error_name = "org.freedesktop.DBus.Error.AccessDenied" };
        static const char line[] =
                "Failed to take a shutdown inhibitor from logind, retrying: org.freedesktop.DBus.Error.AccessDenied. "
                "Until then only the ordered stop of units leaves time to drain.\n";
        World w;

        world_init(&w);
        world_start(&w);
        run(&w, S);
        for (unsigned round = 0; round < 2; round++) {
                print_message("round %u\n", round);
                assert_true(power_holds(w.power));
                strbuf_truncate(&w.lines, 0);
                fake_power_forget_inhibitors(w.machine);
                fake_power_set_answer(w.machine, &refused);
                power_query(w.power);
                run(&w, 18 * S);
                assert_false(power_holds(w.power));
                assert_string_equal(strbuf_str(&w.lines), line);
                fake_power_set_answer(w.machine, NULL);
                run(&w, 5 * S);
                assert_true(power_holds(w.power));
                assert_true(fake_power_is_inhibited(w.machine));
        }
        assert_int_equal(fake_power_n_calls(w.machine, "Inhibit"), 1 + 2 * (4 + 1));
        world_done(&w);
}

/* The agent wants no inhibitor any more when the answer comes. */
TEST_CASE(test_inhibitor_comes_late) {
        World w;

        world_init(&w);
        world_start(&w);
        while (fake_power_n_calls(w.machine, "Inhibit") == 0)
                assert_int_equal(virtual_time_step(w.time, USEC_INFINITY), 1);
        power_hold(w.power, true); /* the question is under way */
        power_hold(w.power, false);
        assert_int_equal(fake_power_n_calls(w.machine, "Inhibit"), 1);
        run(&w, 10 * S);
        assert_false(power_holds(w.power));
        assert_false(fake_power_is_inhibited(w.machine));
        power_hold(w.power, true);
        run(&w, S);
        assert_true(power_holds(w.power));
        assert_int_equal(fake_power_n_calls(w.machine, "Inhibit"), 2);
        world_done(&w);
}

/* A query that replaces one under way has one result. */
TEST_CASE(test_two_queries) {
        World w;

        world_init(&w);
        world_start(&w);
        run(&w, S);
        power_query(w.power);
        power_query(w.power);
        run(&w, 20 * S);
        assert_int_equal(w.n_looks, 2);
        assert_int_equal(fake_power_n_calls(w.machine, "SystemState"), 3);
        world_done(&w);
}

/* The connection to the bus was lost: signals may be missing, and the limits may be others now. */
TEST_CASE(test_bus_comes_back) {
        World w;

        world_init(&w);
        fake_power_set_limits(w.machine, &(FakePowerLimits){ 7 * S, 20 * MIN_, 90 * S });
        world_start(&w);
        run(&w, S);
        fake_power_set_bus(w.machine, false);
        fake_power_set_limits(w.machine, &(FakePowerLimits){ 8 * S, 40 * MIN_, 90 * S });
        run(&w, 10 * S);
        assert_int_equal(w.n_looks, 1);
        fake_power_set_bus(w.machine, true);
        run(&w, S);
        assert_int_equal(w.n_looks, 2);
        assert_int_equal(w.n_limits, 2);
        assert_int_equal(w.limits.inhibit_delay_usec, 8 * S);
        assert_int_equal(w.limits.job_timeout_usec, 40 * MIN_);
        world_done(&w);
}

TEST_CASE(test_no_bus) {
        World w;

        world_init(&w);
        fake_power_set_bus(w.machine, false);
        world_start(&w);
        w.power = power_free(w.power);
        w.env.bus = bus_free(w.env.bus);
        w.state = POWER_UNKNOWN;
        w.n_looks = w.n_limits = 0;
        assert_return_code(power_new(&w.env, &(PowerHandler){ on_state, on_limits, &w }, &w.power), 0);
        power_hold(w.power, true);
        power_start(w.power);
        assert_int_equal(w.state, POWER_STAYS);
        assert_int_equal(w.n_looks, 1);
        assert_int_equal(w.n_limits, 1);
        assert_int_equal(w.limits.inhibit_delay_usec + w.limits.job_timeout_usec, 0);
        assert_true(w.limits.stop_extendable);
        assert_false(w.kubelet);
        run(&w, 20 * S);
        assert_false(power_holds(w.power));
        assert_int_equal(w.n_looks, 1);
        power_query(w.power);
        run(&w, S);
        assert_int_equal(w.n_looks, 2);
        assert_int_equal(w.state, POWER_STAYS);
        assert_true(power_is_unanswered(w.power));
        world_done(&w);
}

/* What it will be is known in logind's window only where logind says so. */
TEST_CASE(test_kind) {
        static const struct {
                const char *kind;
                bool tells;
                const char *expected;
        } rows[] = {
                { "reboot", true, "reboot" },     { "poweroff", true, "poweroff" },
                { "halt", true, "halt" },         { "kexec", true, "kexec" },
                { "halted", true, "shutdown" },   { "soft-reboot", true, "soft-reboot" },
                { "reboot", false, "shutdown" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World w;

                print_message("%s, %s\n", rows[i].kind, rows[i].tells ? "told" : "not told");
                world_init(&w);
                fake_power_set_limits(w.machine, &(FakePowerLimits){ 7 * S, 20 * MIN_, 90 * S });
                fake_power_set_metadata(w.machine, rows[i].tells);
                world_start(&w);
                run(&w, S);
                assert_string_equal(power_kind(w.power), "shutdown");
                assert_true(fake_power_shutdown(w.machine, rows[i].kind, true));
                run(&w, S);
                assert_int_equal(w.state, POWER_ENDS);
                assert_string_equal(power_kind(w.power), rows[i].expected);
                assert_true(fake_power_cancel(w.machine));
                run(&w, S);
                assert_string_equal(power_kind(w.power), "shutdown");
                assert_true(fake_power_shutdown(w.machine, rows[i].kind, false));
                power_query(w.power);
                run(&w, 500 * MS);
                assert_int_equal(w.state, POWER_ENDS);
                assert_string_equal(power_kind(w.power), streq(rows[i].kind, "halted") ? "shutdown" : rows[i].kind);
                world_done(&w);
        }
}

/* A bus that does not answer says nothing; that is not "stays". */
TEST_CASE(test_silent_bus) {
        World w;

        world_init(&w);
        fake_power_set_bus(w.machine, false);
        world_start(&w);
        run(&w, 30 * S);
        assert_true(w.n_looks > 1);
        assert_int_equal(w.state, POWER_UNKNOWN);
        fake_power_set_bus(w.machine, true);
        run(&w, S);
        assert_int_equal(w.state, POWER_STAYS);
        assert_true(power_holds(w.power));
        world_done(&w);
}

/* A logind that is there and does not answer in time says nothing: neither at the start, nor of a shutdown that
 * it has announced, nor that one is over. It is asked again. */
TEST_CASE(test_silent_logind) {
        World w;

        world_init(&w);
        fake_power_set_limits(w.machine, &(FakePowerLimits){ 600 * S, 20 * MIN_, 90 * S });
        fake_power_set_logind_silent(w.machine, true);
        world_start(&w);
        run(&w, 10 * S);
        assert_int_equal(w.state, POWER_UNKNOWN);
        fake_power_set_logind_silent(w.machine, false);
        run(&w, 10 * S);
        assert_int_equal(w.state, POWER_STAYS);
        assert_true(power_holds(w.power));

        print_message("announced, and asked about it\n");
        assert_true(fake_power_shutdown(w.machine, "poweroff", true));
        run(&w, S);
        assert_int_equal(w.state, POWER_ENDS);
        fake_power_set_logind_silent(w.machine, true);
        power_query(w.power);
        run(&w, 30 * S);
        assert_int_equal(w.state, POWER_ENDS);
        assert_true(power_is_announced(w.power));

        print_message("cancelled, and asked about it\n");
        assert_true(fake_power_cancel(w.machine));
        run(&w, 30 * S);
        assert_int_equal(w.state, POWER_ENDS); /* a signal is a reason to ask */
        fake_power_set_logind_silent(w.machine, false);
        run(&w, 10 * S);
        assert_int_equal(w.state, POWER_STAYS);
        world_done(&w);
}

/* A logind that is gone for good announces nothing any more: PID 1 knows. */
TEST_CASE(test_logind_goes) {
        World w;

        world_init(&w);
        fake_power_set_limits(w.machine, &(FakePowerLimits){ 600 * S, 20 * MIN_, 90 * S });
        world_start(&w);
        run(&w, S);
        assert_true(fake_power_shutdown(w.machine, "poweroff", true));
        run(&w, S);
        assert_int_equal(w.state, POWER_ENDS);
        fake_power_set_logind(w.machine, false);
        power_query(w.power);
        run(&w, S);
        assert_int_equal(w.state, POWER_STAYS);
        world_done(&w);
}

/* Through a crash and a restart no instant is without it; a stop for good lets it go. */
TEST_CASE(test_inhibitor_survives) {
        World w;

        world_init(&w);
        world_start(&w);
        run(&w, S);
        for (unsigned i = 0; i < 5; i++) {
                world_stop(&w, true);
                assert_true(fake_power_is_inhibited(w.machine));
                world_start(&w);
                assert_true(power_holds(w.power)); /* before anything was asked */
                run(&w, S);
                assert_true(fake_power_is_inhibited(w.machine));
        }
        world_stop(&w, false);
        assert_false(fake_power_is_inhibited(w.machine));
        world_done(&w);
}

/* Of another boot, or of a logind that forgot: not worth anything. */
TEST_CASE(test_dead_inhibitor) {
        World w;
        int fds[2];

        world_init(&w);
        assert_return_code(pipe(fds), 0);
        assert_return_code(fake_power_store_fd("inhibitor", fds[1], w.machine), 0);
        (void) close(fds[0]);
        (void) close(fds[1]);
        world_start(&w);
        run(&w, S);
        assert_true(fake_power_is_inhibited(w.machine));
        world_done(&w);
}

TEST_CASE(test_shutdown_announced) {
        static const char *const stopping[] = { "stopping", NULL };
        static const FakePowerAnswer stops = { "SystemState", .values = stopping };
        World w;

        world_init(&w);
        world_start(&w);
        run(&w, S);
        assert_true(fake_power_shutdown(w.machine, "reboot", true));
        run(&w, S);
        assert_int_equal(w.state, POWER_ENDS);
        assert_true(power_is_announced(w.power));
        assert_string_equal(power_kind(w.power), "shutdown"); /* logind does not say */
        fake_power_set_answer(w.machine, &stops); /* before logind has ended its window */
        power_query(w.power);
        run(&w, 100 * MS);
        assert_int_equal(w.state, POWER_ENDS);
        assert_false(power_is_announced(w.power));
        fake_power_set_answer(w.machine, NULL);
        assert_true(fake_power_cancel(w.machine));
        run(&w, S);
        assert_int_equal(w.state, POWER_STAYS);
        assert_true(fake_power_shutdown(w.machine, "reboot", true));
        run(&w, S);
        power_hold(w.power, false);
        run(&w, 100 * MS);
        assert_int_equal(fake_power_phase(w.machine), FAKE_POWER_STOPPING);
        world_done(&w);
}

TEST_CASE(test_shutdown_past_logind) {
        World w;

        world_init(&w);
        world_start(&w);
        run(&w, S);
        assert_true(fake_power_shutdown(w.machine, "reboot", false));
        run(&w, S);
        assert_int_equal(w.state, POWER_STAYS); /* nobody told us */
        power_query(w.power);
        run(&w, S);
        assert_int_equal(w.state, POWER_ENDS);
        assert_false(power_is_announced(w.power));
        assert_string_equal(power_kind(w.power), "reboot");
        world_done(&w);
}

/* Started in the window: no inhibitor any more, but it is known. Cancelled: taken then. */
TEST_CASE(test_late_start) {
        World w;

        world_init(&w);
        world_start(&w); /* holds it up */
        run(&w, S);
        fake_power_set_limits(w.machine, &(FakePowerLimits){ MIN_, 20 * MIN_, 90 * S });
        assert_true(fake_power_shutdown(w.machine, "poweroff", true));
        world_stop(&w, true);
        world_start(&w);
        run(&w, S);
        assert_int_equal(w.state, POWER_ENDS);
        assert_true(power_holds(w.power));
        power_hold(w.power, false);
        power_hold(w.power, true);
        assert_false(power_holds(w.power)); /* logind would refuse */
        assert_true(fake_power_cancel(w.machine));
        run(&w, S);
        assert_true(power_holds(w.power));
        world_done(&w);
}

/* -- logind's schedule -------------------------------------------------------------------------- */

typedef struct Scheduled {
        unsigned n;
        const char *kind;
        usec_t at_usec;
} Scheduled;

static void on_scheduled(const char *kind, usec_t at_usec, void *userdata) {
        Scheduled *s = userdata;

        s->n++;
        s->kind = kind;
        s->at_usec = at_usec;
}

/* Each answer follows the one of the row before, by half a minute. Only a change is reported, and no answer is no change. */
TEST_CASE(test_schedule) {
        const struct {
                const char *what;
                FakePowerAnswer answer;
                unsigned n; /* reports so far */
                const char *kind;
                usec_t at_usec;
        } rows[] = {
                { "nothing", { "ScheduledShutdown", .values = VALUES("", "18446744073709551615") }, 0, NULL, 0 },
                { "a reboot", { "ScheduledShutdown", .values = VALUES("reboot", "5000000") }, 1, "reboot", 5 * S },
                { "the same", { "ScheduledShutdown", .values = VALUES("reboot", "5000000") }, 1, "reboot", 5 * S },
                { "another time", { "ScheduledShutdown", .values = VALUES("reboot", "6000000") }, 2, "reboot", 6 * S },
                { "the same by kexec", { "ScheduledShutdown", .values = VALUES("kexec", "6000000") }, 2, "reboot", 6 * S },
                { "another kind", { "ScheduledShutdown", .values = VALUES("halt", "6000000") }, 3, "poweroff", 6 * S },
                { "no answer", { "ScheduledShutdown", .error = -EIO, .values = VALUES("reboot", "7000000") }, 3, "poweroff", 6 * S },
                { "an answer without values", { "ScheduledShutdown" }, 3, "poweroff", 6 * S },
                { "a late answer", { "ScheduledShutdown", .late = true }, 3, "poweroff", 6 * S },
                { "no connection", { "ScheduledShutdown", .unsent = -ENOTCONN }, 3, "poweroff", 6 * S },
                { "a rehearsal", { "ScheduledShutdown", .values = VALUES("dry-poweroff", "6000000") }, 4, NULL, 0 },
                { "a power-off", { "ScheduledShutdown", .values = VALUES("poweroff", "8000000") }, 5, "poweroff", 8 * S },
                { "no time", { "ScheduledShutdown", .values = VALUES("poweroff") }, 6, NULL, 0 },
                { "a time that is none", { "ScheduledShutdown", .values = VALUES("poweroff", "soon") }, 6, NULL, 0 },
                { "again", { "ScheduledShutdown", .values = VALUES("poweroff", "1") }, 7, "poweroff", 1 },
                { "the time 0", { "ScheduledShutdown", .values = VALUES("poweroff", "0") }, 8, NULL, 0 },
                { "a time without end", { "ScheduledShutdown", .values = VALUES("poweroff", "18446744073709551615") }, 8, NULL, 0 },
        };
        Scheduled scheduled = { 0 };
        Schedule *s;
        World w;

        world_init(&w);
        world_start(&w);
        assert_return_code(schedule_new(&w.env, on_scheduled, &scheduled, &s), 0);
        run(&w, USEC_PER_MINUTE);
        assert_int_equal(fake_power_n_calls(w.machine, "ScheduledShutdown"), 0); /* it has not been started */
        fake_power_set_answer(w.machine, &rows[0].answer);
        schedule_start(s);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                fake_power_set_answer(w.machine, &rows[i].answer);
                run(&w, 10 * S);
                assert_int_equal(fake_power_n_calls(w.machine, "ScheduledShutdown"), i + 1);
                assert_int_equal(scheduled.n, rows[i].n);
                assert_true(streq_ptr(scheduled.kind, rows[i].kind));
                assert_true(scheduled.at_usec == rows[i].at_usec);
                assert_int_equal(assert_awake(w.loop, schedule_next_wakeup, s), 1);
                run(&w, 20 * S + (rows[i].answer.late ? 2 * S : 0));
        }
        schedule_free(s);
        world_done(&w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_budget),
                cmocka_unit_test(test_what_it_asks),
                cmocka_unit_test(test_no_logind),
                cmocka_unit_test(test_other_answers),
                cmocka_unit_test(test_inhibitor_is_lost),
                cmocka_unit_test(test_inhibitor_comes_late),
                cmocka_unit_test(test_two_queries),
                cmocka_unit_test(test_bus_comes_back),
                cmocka_unit_test(test_no_bus),
                cmocka_unit_test(test_schedule),
                cmocka_unit_test(test_kind),
                cmocka_unit_test(test_silent_bus),
                cmocka_unit_test(test_silent_logind),
                cmocka_unit_test(test_logind_goes),
                cmocka_unit_test(test_inhibitor_survives),
                cmocka_unit_test(test_dead_inhibitor),
                cmocka_unit_test(test_shutdown_announced),
                cmocka_unit_test(test_shutdown_past_logind),
                cmocka_unit_test(test_late_start),
        };

        return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
