/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "cmocka-test.h"
#include "fake-power.h"
#include "power.h"
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
        w->env = (Env){ .loop = w->loop,
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
        loop_free(w->loop);
        virtual_time_free(w->time);
}

static void run(World *w, usec_t usec) {
        usec_t until = virtual_time_now(w->time) + usec;

        while (virtual_time_step(w->time, until) > 0)
                ;
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

/* What it will be is known in logind's window only where logind says so. */
TEST_CASE(test_kind) {
        static const struct {
                const char *kind;
                bool tells;
                const char *expected;
        } rows[] = {
                { "reboot", true, "reboot" },
                { "poweroff", true, "poweroff" },
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
        World w;

        world_init(&w);
        world_start(&w);
        run(&w, S);
        assert_true(fake_power_shutdown(w.machine, "reboot", true));
        run(&w, S);
        assert_int_equal(w.state, POWER_ENDS);
        assert_true(power_is_announced(w.power));
        assert_string_equal(power_kind(w.power), "shutdown"); /* logind does not say */
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

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_budget),
                cmocka_unit_test(test_what_it_asks),
                cmocka_unit_test(test_no_logind),
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
