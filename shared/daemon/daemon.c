/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

/* Of one process, as alarm(2) is. */
#define TURNS_IN_LIMIT 6u

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        const DaemonSignals *h = userdata;

        if (si->ssi_signo == SIGHUP)
                h->on_reload(h->userdata);
        else
                h->on_stop((int) si->ssi_signo, h->userdata);
        return 0;
}

static int watch(sd_event *e, const DaemonSignals *h) {
        static const int signals[] = { SIGTERM, SIGINT, SIGHUP };
        sigset_t set;
        int r;

        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
                return -errno;
        sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                sigaddset(&set, signals[i]);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                r = sd_event_add_signal(e, NULL, signals[i], on_signal, (void *) h);
                if (r < 0)
                        return r;
        }
        return sd_event_set_watchdog(e, true);
}

int daemon_watch_signals(Loop *l, Log *log, const DaemonSignals *h) {
        int r = watch(loop_sd_event(l), h);

        return r < 0 ? log_error_errno(log, r, "Failed to watch signals: %m") : 0;
}

/* By a handler: what would end others does nothing to PID 1 of a container. */
static void on_alarm(int signal) {
        static const char text[] = "The event loop has not turned for a while: ending, to be restarted.\n";

        (void) !write(STDERR_FILENO, text, sizeof(text) - 1);
        _exit(EXIT_FAILURE);
}

static void on_iteration(Timer *t, void *userdata) {
        usec_t limit_usec = (usec_t) (uintptr_t) userdata;

        (void) alarm((unsigned) (limit_usec / USEC_PER_SEC));
        timer_arm_in(t, limit_usec / TURNS_IN_LIMIT);
}

int daemon_watch_loop(Loop *l, usec_t limit_usec, Timer **ret) {
        const struct sigaction action = { .sa_handler = on_alarm };
        int r;

        *ret = NULL;
        if (sd_watchdog_enabled(0, NULL) > 0)
                return 0;
        if (sigaction(SIGALRM, &action, NULL) < 0)
                return -errno;
        r = timer_new(l, "watch-loop", on_iteration, (void *) (uintptr_t) limit_usec, ret);
        if (r >= 0)
                timer_arm_in(*ret, 0);
        return r;
}

void daemon_notify(const char *text, void *userdata) {
        (void) sd_notify(0, text);
}
