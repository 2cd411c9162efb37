/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <net/if.h>
#include <netinet/in.h>

#include <systemd/sd-bus.h>

#include "alloc-util.h"
#include "bus.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "netlink.h"
#include "string-util.h"
#include "strv.h"

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC
/* Ends what hangs: nothing here is measured by it. */
#define LIMIT (100 * S)

#define SERVICE "sh.vesper.Test"
#define PATH "/sh/vesper/test"
#define INTERFACE "sh.vesper.Test"

typedef struct World {
        Loop *loop;
        Bus *bus;
        Timer *limit;
        unsigned n_heard;
        int error;
        char value[100];
        BusSlot *free_when_heard;
} World;

static void on_limit(Timer *t, void *userdata) {
        World *w = userdata;

        loop_exit(w->loop, -ETIMEDOUT);
}

static void on_value(int error, const char *value, void *userdata) {
        World *w = userdata;

        w->n_heard++;
        w->error = error;
        (void) snprintf(w->value, sizeof(w->value), "%s", value);
        w->free_when_heard = bus_slot_free(w->free_when_heard);
        loop_exit(w->loop, 0);
}

static void world_init(World *w, usec_t limit_usec) {
        *w = (World){ 0 };
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(timer_new(w->loop, "limit", on_limit, w, &w->limit), 0);
        timer_arm_in(w->limit, limit_usec);
}

static void world_done(World *w) {
        bus_free(w->bus);
        timer_free(w->limit);
        loop_free(w->loop);
}

/* -- a bus of our own: dbus-daemon, and a service with properties in a process of its own ------ */

typedef struct Broker {
        pid_t daemon;
        pid_t service;
        char address[200];
        bool there;
} Broker;

static pid_t start_daemon(char *address, size_t size) {
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
        while (n + 1 < size && read(fds[0], address + n, 1) == 1 && address[n] != '\n')
                n++;
        address[n] = 0;
        (void) close(fds[0]);
        return pid;
}

static int get_property(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *reterr) {
        if (streq(property, "Text"))
                return sd_bus_message_append(reply, "s", "stopping");
        if (streq(property, "Flag"))
                return sd_bus_message_append(reply, "b", 1);
        if (streq(property, "Large"))
                return sd_bus_message_append(reply, "t", UINT64_MAX);
        if (streq(property, "Negative"))
                return sd_bus_message_append(reply, "i", -5);
        return sd_bus_message_append(reply, "as", 1, "list");
}

static int on_emit(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        sd_bus *bus = sd_bus_message_get_bus(m);

        (void) sd_bus_emit_signal(bus, PATH, INTERFACE, "Other", "b", 0);
        (void) sd_bus_emit_signal(bus, PATH, INTERFACE, "Prepare", "b", 1);
        (void) sd_bus_emit_signal(bus, PATH, INTERFACE, "Metadata", "ba{sv}", 1, 1, "type", "s", "reboot");
        return sd_bus_reply_method_return(m, "");
}

/* All that a reply may be made of: (ss)s, a variant, a descriptor. */
static int on_lend(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        const char *who;
        uint32_t number;
        int flag, signed_number, fds[2], r;
        uint64_t large;

        r = sd_bus_message_read(m, "sbiut", &who, &flag, &signed_number, &number, &large);
        if (r < 0)
                return r;
        if (pipe(fds) < 0)
                return -errno;
        if (write(fds[1], who, strlen(who)) < 0)
                return -errno;
        (void) close(fds[1]);
        r = sd_bus_reply_method_return(m, "a(sb)viuth", 2, "kubelet", flag, "other", 0, "s", "wrapped",
                                       signed_number, number, large, fds[0]);
        (void) close(fds[0]);
        return r;
}

static int on_refuse(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        return sd_bus_error_set(reterr, "sh.vesper.Test.InProgress", "not now");
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_PROPERTY("Text", "s", get_property, 0, 0),
        SD_BUS_PROPERTY("Flag", "b", get_property, 0, 0),
        SD_BUS_PROPERTY("Large", "t", get_property, 0, 0),
        SD_BUS_PROPERTY("Negative", "i", get_property, 0, 0),
        SD_BUS_PROPERTY("List", "as", get_property, 0, 0),
        SD_BUS_METHOD("Emit", "", "", on_emit, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Lend", "sbiut", "a(sb)viuth", on_lend, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Refuse", "", "", on_refuse, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_VTABLE_END,
};

static int serve(int ready_fd) {
        sd_bus *bus = NULL;

        if (sd_bus_open_system(&bus) < 0 ||
            sd_bus_add_object_vtable(bus, NULL, PATH, INTERFACE, vtable, NULL) < 0 ||
            sd_bus_request_name(bus, SERVICE, 0) < 0)
                return 1;
        if (write(ready_fd, "x", 1) != 1)
                return 1;
        for (;;) {
                int r = sd_bus_process(bus, NULL);

                if (r < 0)
                        return 0;
                if (r == 0 && sd_bus_wait(bus, UINT64_MAX) < 0)
                        return 0;
        }
}

static int broker_start(void **state) {
        static Broker broker;
        int fds[2];
        char c;

        *state = &broker;
        broker.daemon = start_daemon(broker.address, sizeof(broker.address));
        if (isempty(broker.address))
                return 0; /* there is no dbus-daemon here */
        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", broker.address, 1), 0);
        assert_return_code(pipe(fds), 0);
        broker.service = fork();
        assert_true(broker.service >= 0);
        if (broker.service == 0)
                _exit(serve(fds[1]));
        (void) close(fds[1]);
        broker.there = read(fds[0], &c, 1) == 1;
        (void) close(fds[0]);
        return 0;
}

static int broker_stop(void **state) {
        Broker *b = *state;

        if (b->service > 0) {
                (void) kill(b->service, SIGKILL);
                (void) waitpid(b->service, NULL, 0);
        }
        (void) kill(b->daemon, SIGTERM);
        (void) waitpid(b->daemon, NULL, 0);
        return 0;
}

TEST_CASE(test_property) {
        static const struct {
                const char *service, *property;
                int error; /* 1: any */
                const char *value;
        } rows[] = {
                { SERVICE, "Text", 0, "stopping" },
                { SERVICE, "Flag", 0, "true" },
                { SERVICE, "Large", 0, "18446744073709551615" },
                { SERVICE, "Negative", 0, "-5" },
                { SERVICE, "List", -EBADMSG, "" },
                { SERVICE, "Absent", 1, "" },
                { "sh.vesper.Nobody", "Text", 1, "" },
        };
        const Broker *b = *state;

        if (!b->there)
                skip();
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                BusSlot *slot = NULL;
                World w;

                print_message("%s of %s\n", rows[i].property, rows[i].service);
                world_init(&w, LIMIT);
                assert_return_code(bus_new_system(w.loop, &w.bus), 0);
                assert_return_code(w.bus->ops->get_property(w.bus, rows[i].service, PATH, INTERFACE,
                                                            rows[i].property, on_value, &w, &slot),
                                   0);
                assert_int_equal(w.n_heard, 0);
                if (i % 2 == 0)
                        w.free_when_heard = TAKE_PTR(slot); /* inside the callback */
                assert_int_equal(loop_run(w.loop), 0);
                assert_int_equal(w.n_heard, 1);
                if (rows[i].error > 0)
                        assert_true(w.error < 0);
                else
                        assert_int_equal(w.error, rows[i].error);
                assert_string_equal(w.value, rows[i].value);
                bus_slot_free(slot);
                world_done(&w);
        }
}

static void on_ignored(int error, const char *value, void *userdata) {
        fail_msg("a dropped slot was called");
}

TEST_CASE(test_dropped_slot_is_silent) {
        const Broker *b = *state;
        BusSlot *slot = NULL;
        World w;

        if (!b->there)
                skip();
        world_init(&w, 300 * MS);
        assert_return_code(bus_new_system(w.loop, &w.bus), 0);
        assert_return_code(
                w.bus->ops->get_property(w.bus, SERVICE, PATH, INTERFACE, "Text", on_ignored, &w, &slot), 0);
        assert_null(bus_slot_free(slot));
        assert_int_equal(loop_run(w.loop), -ETIMEDOUT);
        world_done(&w);
}

/* Re-sends the signal until it is received: dbus-daemon may not have the match yet. */
static void on_emit_now(Timer *t, void *userdata) {
        sd_bus *bus = NULL;

        timer_arm_in(t, 100 * MS);

        assert_return_code(sd_bus_open_system(&bus), 0);
        assert_return_code(sd_bus_call_method(bus, SERVICE, PATH, INTERFACE, "Emit", NULL, NULL, ""), 0);
        sd_bus_flush_close_unref(bus);
}

TEST_CASE(test_signal) {
        static const struct {
                const char *signal, *expected;
        } rows[] = { { "Prepare", "true" }, { "Metadata", "true type reboot" } };
        const Broker *b = *state;

        if (!b->there)
                skip();
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                BusSlot *slot = NULL;
                Timer *emit = NULL;
                World w;

                print_message("%s\n", rows[i].signal);
                world_init(&w, LIMIT);
                assert_return_code(bus_new_system(w.loop, &w.bus), 0);
                assert_return_code(w.bus->ops->match_signal(w.bus, SERVICE, PATH, INTERFACE, rows[i].signal,
                                                            on_value, &w, &slot),
                                   0);
                assert_return_code(timer_new(w.loop, "emit", on_emit_now, &w, &emit), 0);
                timer_arm_in(emit, 20 * MS);
                assert_int_equal(loop_run(w.loop), 0);
                assert_int_equal(w.n_heard, 1);
                assert_int_equal(w.error, 0);
                assert_string_equal(w.value, rows[i].expected);
                bus_slot_free(slot);
                timer_free(emit);
                world_done(&w);
        }
}

typedef struct Answer {
        Loop *loop;
        int error;
        char *name, *message, *values;
        char lent[20];
} Answer;

static void on_answer(const BusReply *reply, void *userdata) {
        Answer *a = userdata;

        a->error = reply->error;
        a->name = strdup(reply->error_name);
        a->message = strdup(strempty(reply->error_message));
        a->values = strv_join(reply->values, " ");
        if (reply->fd >= 0)
                assert_true(read(reply->fd, a->lent, sizeof(a->lent) - 1) >= 0);
        loop_exit(a->loop, 0);
}

/* Arguments of each type go, whatever is wrapped comes flat, and a descriptor with it. */
TEST_CASE(test_call) {
        static const struct {
                const char *member, *types, *args[5];
                int error;
                const char *name, *values, *lent, *message; /* message: NULL: any */
        } rows[] = {
                { "Lend",
                  "sbiut",
                  { "me", "true", "-7", "7", "18446744073709551615" },
                  0,
                  "",
                  "kubelet true other false wrapped -7 7 18446744073709551615",
                  "me" },
                { "Refuse", "", { NULL }, -EIO, "sh.vesper.Test.InProgress", NULL, "", "not now" },
                { "Absent", "s", { "x" }, -EBADR, "org.freedesktop.DBus.Error.UnknownMethod", NULL, "" },
        };
        const Broker *b = *state;

        if (!b->there)
                skip();
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                BusCall call = {
                        SERVICE, PATH, INTERFACE, rows[i].member, rows[i].types, rows[i].args, 5 * S
                };
                BusSlot *slot = NULL;
                Answer a = { 0 };
                World w;

                print_message("%s\n", rows[i].member);
                world_init(&w, LIMIT);
                a.loop = w.loop;
                assert_return_code(bus_new_system(w.loop, &w.bus), 0);
                assert_return_code(w.bus->ops->call(w.bus, &call, on_answer, &a, &slot), 0);
                assert_int_equal(loop_run(w.loop), 0);
                assert_int_equal(a.error, rows[i].error);
                if (rows[i].message)
                        assert_string_equal(a.message, rows[i].message);
                assert_string_equal(a.name, rows[i].name);
                if (rows[i].values)
                        assert_string_equal(a.values, rows[i].values);
                assert_string_equal(a.lent, rows[i].lent);
                bus_slot_free(slot);
                free(a.name);
                free(a.message);
                free(a.values);
                world_done(&w);
        }
}

/* What is none of its type never leaves. */
TEST_CASE(test_bad_arguments) {
        static const struct {
                const char *types, *arg;
        } rows[] = { { "b", "maybe" }, { "i", "2147483648" }, { "u", "-1" }, { "t", "x" }, { "h", "3" } };
        const Broker *b = *state;
        World w;

        if (!b->there)
                skip();
        world_init(&w, LIMIT);
        assert_return_code(bus_new_system(w.loop, &w.bus), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                BusCall call = { SERVICE, PATH, INTERFACE, "Lend", rows[i].types, &rows[i].arg, S };
                BusSlot *slot = NULL;

                assert_true(w.bus->ops->call(w.bus, &call, on_answer, NULL, &slot) < 0);
                assert_null(slot);
        }
        world_done(&w);
}

/* -- an object of our own ----------------------------------------------------------------------- */

typedef struct Owner {
        World w;
        BusSlot *object;
        unsigned n_drains;
        pid_t caller;
        Timer *look;
        int status;
} Owner;

static char *owner_get(const char *property, void *userdata) {
        return strdup(streq(property, "Left") ? "18446744073709551615" : "Idle");
}

static int owner_call(const char *method, const char **reterr_message, void *userdata) {
        Owner *o = userdata;

        if (streq(method, "Refuse")) {
                *reterr_message = "not now";
                return -EBUSY;
        }
        o->n_drains++;
        o->w.bus->ops->emit(o->object, "Draining");
        return 0;
}

static const BusProperty owner_properties[] = { { "State", 's' }, { "Left", 't' } };
static const char *const owner_methods[] = { "Drain", "Refuse", NULL };
static const BusObject owner_object = { .name = "sh.vesper.Own",
                                        .path = "/own",
                                        .interface = "sh.vesper.Own",
                                        .properties = owner_properties,
                                        .n_properties = ELEMENTSOF(owner_properties),
                                        .methods = owner_methods,
                                        .signal = "Changed",
                                        .get = owner_get,
                                        .call = owner_call };
#define OWN "sh.vesper.Own", "/own", "sh.vesper.Own"

static int on_caller_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        const char *text;

        if (sd_bus_message_read(m, "s", &text) >= 0 && streq(text, "Draining"))
                (*(unsigned *) userdata)++;
        return 0;
}

/* In a process of its own: which step failed, or 0. */
static int call_owner(void) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        unsigned n_signals = 0, tries = 0;
        char *state = NULL;
        uint64_t left = 0;
        sd_bus *bus = NULL;

        if (sd_bus_open_system(&bus) < 0 || sd_bus_match_signal(bus, NULL, NULL, "/own", "sh.vesper.Own",
                                                                "Changed", on_caller_signal, &n_signals) < 0)
                return 1;
        while (sd_bus_get_property_string(bus, OWN, "State", NULL, &state) < 0) {
                if (tries++ > 1000)
                        return 2;
                (void) usleep(100 * 1000);
        }
        if (!streq(state, "Idle"))
                return 3;
        if (sd_bus_get_property_trivial(bus, OWN, "Left", NULL, 't', &left) < 0 || left != UINT64_MAX)
                return 4;
        if (sd_bus_call_method(bus, OWN, "Refuse", &error, NULL, "") >= 0 ||
            !streq_ptr(error.message, "not now"))
                return 5;
        if (sd_bus_call_method(bus, OWN, "Drain", NULL, NULL, "") < 0)
                return 6;
        for (tries = 0; n_signals == 0 && tries < 1000; tries++) {
                while (sd_bus_process(bus, NULL) > 0)
                        ;
                (void) sd_bus_wait(bus, 100 * MS);
        }
        return n_signals == 1 ? 0 : 7;
}

static void on_caller_look(Timer *t, void *userdata) {
        Owner *o = userdata;

        if (waitpid(o->caller, &o->status, WNOHANG) == o->caller)
                loop_exit(o->w.loop, 0);
        else
                timer_arm_in(t, 50 * MS);
}

TEST_CASE(test_own_object) {
        const Broker *b = *state;
        Owner o = { 0 };

        if (!b->there)
                skip();
        world_init(&o.w, LIMIT);
        assert_return_code(bus_new_system(o.w.loop, &o.w.bus), 0);
        assert_return_code(o.w.bus->ops->publish(o.w.bus, &owner_object, &o, &o.object), 0);
        assert_return_code(timer_new(o.w.loop, "look", on_caller_look, &o, &o.look), 0);
        o.caller = fork();
        assert_true(o.caller >= 0);
        if (o.caller == 0)
                _exit(call_owner());
        timer_arm_in(o.look, 50 * MS);
        assert_int_equal(loop_run(o.w.loop), 0);
        assert_true(WIFEXITED(o.status));
        assert_int_equal(WEXITSTATUS(o.status), 0);
        assert_int_equal(o.n_drains, 1);
        bus_slot_free(o.object);
        timer_free(o.look);
        world_done(&o.w);
}

/* -- a bus that goes away ----------------------------------------------------------------------- */

typedef struct Outage {
        World w;
        char folder[40], address[80];
        pid_t daemon;
        unsigned n_stale, n_signals;
        int error; /* of the question that was open */
        BusSlot *match, *question;
        Timer *restart;
} Outage;

static void outage_start_daemon(Outage *o) {
        char ready;
        int fds[2];

        assert_return_code(pipe(fds), 0);
        o->daemon = fork();
        assert_true(o->daemon >= 0);
        if (o->daemon == 0) {
                char address[100], argument[32];

                (void) snprintf(address, sizeof(address), "--address=%s", o->address);
                (void) snprintf(argument, sizeof(argument), "--print-address=%d", fds[1]);
                (void) close(fds[0]);
                (void) execlp("dbus-daemon", "dbus-daemon", "--session", "--nofork", "--nopidfile", address,
                              argument, NULL);
                _exit(127);
        }
        (void) close(fds[1]);
        assert_int_equal(read(fds[0], &ready, 1), 1);
        (void) close(fds[0]);
}

static void outage_stop_daemon(Outage *o) {
        char path[100];

        (void) kill(o->daemon, SIGKILL);
        (void) waitpid(o->daemon, NULL, 0);
        (void) snprintf(path, sizeof(path), "%s/bus", o->folder);
        (void) unlink(path);
}

static void outage_emit(Outage *o) {
        sd_bus *bus = NULL;

        assert_return_code(sd_bus_open_system(&bus), 0);
        assert_return_code(sd_bus_request_name(bus, SERVICE, 0), 0);
        assert_return_code(sd_bus_emit_signal(bus, PATH, INTERFACE, "Prepare", "b", 1), 0);
        sd_bus_flush_close_unref(bus);
}

static void on_outage_signal(int error, const char *value, void *userdata) {
        Outage *o = userdata;

        if (error == -ESTALE) {
                o->n_stale++;
                timer_arm_in(o->restart, 20 * MS);
                return;
        }
        assert_int_equal(error, 0);
        assert_string_equal(value, "true");
        o->n_signals++;
        loop_exit(o->w.loop, 0);
}

static void on_outage_answer(const BusReply *reply, void *userdata) {
        Outage *o = userdata;

        o->error = reply->error;
}

/* Down, up again after a while, then the signal. */
static void on_outage_step(Timer *t, void *userdata) {
        Outage *o = userdata;

        if (o->n_stale > 0) {
                outage_emit(o);
                timer_arm_in(t, 100 * MS); /* the new match may have come too late for this one */
        } else if (o->daemon > 0) {
                outage_stop_daemon(o);
                o->daemon = 0;
                timer_arm_in(t, 1500 * MS);
        } else
                outage_start_daemon(o);
}

TEST_CASE(test_bus_comes_back) {
        static const char *const args[] = { NULL };
        const BusCall ask = { "org.freedesktop.DBus",
                              "/org/freedesktop/DBus",
                              "org.freedesktop.DBus.Peer",
                              "Ping",
                              "",
                              args,
                              USEC_INFINITY };
        const Broker *b = *state;
        Outage o = { .folder = "/tmp/test-bus-XXXXXX" };

        if (!b->there)
                skip();
        assert_non_null(mkdtemp(o.folder));
        (void) snprintf(o.address, sizeof(o.address), "unix:path=%s/bus", o.folder);
        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", o.address, 1), 0);
        outage_start_daemon(&o);
        world_init(&o.w, LIMIT);
        assert_return_code(bus_new_system(o.w.loop, &o.w.bus), 0);
        assert_return_code(o.w.bus->ops->match_signal(o.w.bus, SERVICE, PATH, INTERFACE, "Prepare",
                                                      on_outage_signal, &o, &o.match),
                           0);
        assert_return_code(timer_new(o.w.loop, "step", on_outage_step, &o, &o.restart), 0);
        timer_arm_in(o.restart, 300 * MS);
        assert_return_code(kill(o.daemon, SIGSTOP), 0); /* so that no answer comes before the end */
        assert_return_code(o.w.bus->ops->call(o.w.bus, &ask, on_outage_answer, &o, &o.question), 0);
        assert_int_equal(loop_run(o.w.loop), 0);
        assert_true(o.error < 0); /* what was asked has ended */
        assert_int_equal(o.n_stale, 1);
        assert_int_equal(o.n_signals, 1);
        bus_slot_free(o.question);
        bus_slot_free(o.match);
        timer_free(o.restart);
        world_done(&o.w);
        outage_stop_daemon(&o);
        (void) rmdir(o.folder);
        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", b->address, 1), 0);
}

TEST_CASE(test_no_bus) {
        const Broker *b = *state;
        World w;

        world_init(&w, S);
        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent/bus", 1), 0);
        assert_int_equal(bus_new_system(w.loop, &w.bus), -ENOENT);
        assert_null(w.bus);
        assert_return_code(setenv("DBUS_SYSTEM_BUS_ADDRESS", b->address, 1), 0);
        world_done(&w);
}

/* -- netlink, in a network of its own ---------------------------------------------------------- */

static void on_changed(void *userdata) {
        unsigned *n = userdata;

        (*n)++;
}

static void set_loopback(bool up) {
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0 };

        assert_return_code(ioctl(fd, SIOCSIFFLAGS, &ifr), errno);
}

typedef struct Burst {
        Loop *loop;
        unsigned n_ticks;
        usec_t ticked_usec, pause_usec; /* the longest between two ticks */
} Burst;

/* A tick each 5 ms for half a second: the first four change the network. */
static void on_tick(Timer *t, void *userdata) {
        Burst *b = userdata;

        if (b->n_ticks > 0)
                b->pause_usec = MAX(b->pause_usec, loop_now(b->loop) - b->ticked_usec);
        b->ticked_usec = loop_now(b->loop);
        if (b->n_ticks < 4)
                set_loopback(b->n_ticks % 2 == 0);
        if (++b->n_ticks == 100)
                loop_exit(b->loop, 0);
        else
                timer_arm_in(t, 5 * MS);
}

/* Exit status of a child that was off the CPU for more than 50 ms; its count says nothing. */
#define PAUSED 99

/* Returns how often on_changed() was called for four changes within 20 ms; PAUSED if the child lost the CPU;
 * -errno without a network namespace. */
static int hear_changes(bool subscribed) {
        unsigned n_heard = 0;
        Burst burst = { 0 };
        Netlink *n = NULL;
        Timer *tick = NULL;
        World w;

        if (unshare(CLONE_NEWNET) < 0)
                return -errno;
        world_init(&w, LIMIT);
        burst.loop = w.loop;
        if (netlink_new(w.loop, &n) < 0 || timer_new(w.loop, "tick", on_tick, &burst, &tick) < 0)
                return -EIO;
        n->ops->subscribe(n, on_changed, &n_heard);
        if (!subscribed)
                n->ops->subscribe(n, NULL, NULL);
        timer_arm_in(tick, 10 * MS);
        if (loop_run(w.loop) < 0)
                return -EIO;
        netlink_free(n);
        timer_free(tick);
        world_done(&w);
        return n_heard != subscribed && burst.pause_usec > 50 * MS ? PAUSED : (int) n_heard;
}

/* What the kernel says of the way to that address: 0, or ENETUNREACH. */
static int route_error(void) {
        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        const struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(443), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

        return connect(fd, (const struct sockaddr *) &to, sizeof(to)) < 0 ? errno : 0;
}

typedef struct Way {
        Loop *loop;
        int error; /* when it was told */
} Way;

static void on_way(void *userdata) {
        Way *way = userdata;

        way->error = route_error();
        loop_exit(way->loop, 0);
}

static void on_up(Timer *t, void *userdata) {
        set_loopback(true);
}

/* A machine without a route gets one: whoever is told can use it. 0: so it was; 1 to 3: it was not; negative: this machine gives us
 * no network to play with. */
static int hear_a_way(void) {
        Netlink *n = NULL;
        Timer *up = NULL;
        Way way;
        World w;
        int r;

        if (unshare(CLONE_NEWNET) < 0)
                return -errno;
        if (route_error() != ENETUNREACH)
                return 1;
        world_init(&w, LIMIT);
        way = (Way){ w.loop, -1 };
        if (netlink_new(w.loop, &n) < 0 || timer_new(w.loop, "up", on_up, NULL, &up) < 0)
                return -EIO;
        n->ops->subscribe(n, on_way, &way);
        timer_arm_in(up, 10 * MS);
        r = loop_run(w.loop);
        netlink_free(n);
        timer_free(up);
        world_done(&w);
        return r < 0 ? 2 : way.error == 0 ? 0 : 3;
}

TEST_CASE(test_a_way_is_there_when_told) {
        int status = 0;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                int r = hear_a_way();

                exit(r < 0 ? 100 - r : r);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 100 + EPERM)
                skip();
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* The exit status of a child that hears changes. */
static int status_of_burst(bool subscribed) {
        int status = 0;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                int n = hear_changes(subscribed);

                exit(n < 0 ? 100 - n : n); /* not _exit(): coverage is written at the end */
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

TEST_CASE(test_burst_is_one_change) {
        for (int subscribed = 0; subscribed <= 1; subscribed++) {
                int status = PAUSED;

                for (unsigned i = 0; status == PAUSED && i < 50; i++)
                        status = status_of_burst(subscribed);
                if (status == 100 + EPERM)
                        skip();
                assert_int_equal(status, subscribed);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_property),
                cmocka_unit_test(test_dropped_slot_is_silent),
                cmocka_unit_test(test_signal),
                cmocka_unit_test(test_call),
                cmocka_unit_test(test_bad_arguments),
                cmocka_unit_test(test_own_object),
                cmocka_unit_test(test_bus_comes_back),
                cmocka_unit_test(test_no_bus),
                cmocka_unit_test(test_burst_is_one_change),
                cmocka_unit_test(test_a_way_is_there_when_told),
        };
        return cmocka_run_group_tests_name("bus-netlink", tests, broker_start, broker_stop);
}
