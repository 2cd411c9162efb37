/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon.h"

#include <signal.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

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

void daemon_notify(const char *text, void *userdata) {
        (void) sd_notify(0, text);
}
