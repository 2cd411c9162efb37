/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-client.h"

#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "agent-face.h"
#include "string-util.h"

#define LOOK_USEC USEC_PER_SEC
/* An agent that is restarted is back by then. */
#define ABSENT_LOOKS_MAX 60u

typedef struct AgentView {
        char *state;
        uint64_t pods_left;
} AgentView;

static void view_done(AgentView *v) {
        v->state = mfree(v->state);
}

static int read_view(sd_bus *bus, AgentView *ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_get_property_string(bus, AGENT_BUS_NAME, AGENT_BUS_PATH, AGENT_BUS_INTERFACE, "State",
                                       &error, &ret->state);
        if (r < 0)
                return r;
        return sd_bus_get_property_trivial(bus, AGENT_BUS_NAME, AGENT_BUS_PATH, AGENT_BUS_INTERFACE,
                                           "PodsLeft", NULL, 't', &ret->pods_left);
}

static void show(const AgentView *v, char **shown) {
        _cleanup_free_ char *text = strf("%s: %" PRIu64 " pods left", v->state, v->pods_left);

        if (!text || streq_ptr(text, *shown))
                return;
        (void) sd_notifyf(0, "STATUS=%s", text);
        if (isatty(STDOUT_FILENO))
                puts(text);
        free(*shown);
        *shown = TAKE_PTR(text);
}

static int ask(sd_bus *bus, const char *method, sd_bus_error *error) {
        return sd_bus_call_method(bus, AGENT_BUS_NAME, AGENT_BUS_PATH, AGENT_BUS_INTERFACE, method, error,
                                  NULL, "");
}

typedef enum ClientWish { WISH_DRAIN, WISH_REBOOT } ClientWish;

/* 1: drained; 0: not yet. A reboot is done when we are not there any more. */
static int judge(ClientWish wish, const AgentView *v, bool *begun) {
        if (streq(v->state, "Drained") || streq(v->state, "Ending"))
                return wish == WISH_DRAIN;
        if (streq(v->state, "Cancelled") || streq(v->state, "Idle"))
                return *begun ? -ECANCELED : 0;
        *begun = true;
        return 0;
}

static bool machine_is_stopping(sd_bus *bus) {
        _cleanup_free_ char *state = NULL;

        return sd_bus_get_property_string(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                          "org.freedesktop.systemd1.Manager", "SystemState", NULL,
                                          &state) >= 0 &&
               streq(state, "stopping");
}

/* Every change wakes it: the signal, and that of the properties. */
static int wait_for(Log *l, sd_bus *bus, ClientWish wish) {
        _cleanup_free_ char *shown = NULL;
        unsigned absent = 0;
        bool begun = false;
        int r;

        r = sd_bus_match_signal(bus, NULL, AGENT_BUS_NAME, AGENT_BUS_PATH, NULL, NULL, NULL, NULL);
        if (r < 0)
                return log_error_errno(l, r, "Failed to listen to the agent: %m");
        for (;;) {
                _cleanup_(view_done) AgentView v = { 0 };

                r = read_view(bus, &v);
                if (r < 0) {
                        if (machine_is_stopping(bus))
                                return 0; /* the agent has ended before us */
                        if (++absent > ABSENT_LOOKS_MAX)
                                return log_error_errno(
                                        l, r,
                                        "The agent does not answer any more: %m. See systemctl "
                                        "status vesper-agent; the drain goes on when it runs again.");
                } else {
                        absent = 0;
                        show(&v, &shown);
                        r = judge(wish, &v, &begun);
                        if (r == -ECANCELED)
                                return log_error_errno(
                                        l, r, "%s: see journalctl -u vesper-agent.",
                                        wish == WISH_REBOOT
                                                ? "The request for a reboot was withdrawn, or not granted"
                                                : "The drain was cancelled, or somebody made the node "
                                                  "schedulable again");
                        if (r > 0)
                                return 0;
                }
                while (sd_bus_process(bus, NULL) > 0)
                        ;
                r = sd_bus_wait(bus, LOOK_USEC);
                if (r < 0 && r != -EINTR)
                        return log_error_errno(l, r, "Lost the system bus while the node is drained: %m");
        }
}

static int open_bus(Log *l, sd_bus **ret) {
        int r = sd_bus_open_system(ret);

        return r < 0 ? log_error_errno(l, r, "Failed to reach the agent, as there is no system bus: %m") : 0;
}

static int ask_and_wait(Log *l, const char *method, const char *what, ClientWish wish) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = open_bus(l, &bus);
        if (r < 0)
                return r;
        r = ask(bus, method, &error);
        if (r < 0)
                return log_error_errno(
                        l, r,
                        "The agent of this machine does not %s: %s. See systemctl status vesper-agent.",
                        what, strempty(error.message));
        return wait_for(l, bus, wish);
}

int agent_client_drain(Log *l) {
        return ask_and_wait(l, "Drain", "take the node out of service", WISH_DRAIN);
}

int agent_client_reboot(Log *l) {
        return ask_and_wait(l, "RequestReboot", "ask for a reboot", WISH_REBOOT);
}

int agent_client_cancel(Log *l) {
        _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = open_bus(l, &bus);
        if (r < 0)
                return r;
        if (machine_is_stopping(bus))
                return 0;
        r = ask(bus, "Cancel", &error);
        return r < 0 ? log_error_errno(
                               l, r,
                               "The agent of this machine does not undo its drain: %s. See systemctl status "
                               "vesper-agent.",
                               strempty(error.message))
                     : 0;
}
