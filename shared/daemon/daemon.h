/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * daemon/: the process around an agent, a coordinator or vesperctl: what every main() of ours does. Only a
 * main() calls it; what a simulation runs as well does not belong here.
 *
 *      program.c       options, configuration, log, signals, reload: what the daemons' main() do alike
 *      options.c       the command line and --help
 *      daemon.c        signals and the service manager
 *      reload.c        the configuration read again
 *      kube-process.c  loop, transport, credential and client on the real world
 */

#include "log.h"
#include "loop.h"

/* Exit status of a wrong command line or configuration. */
#define EXIT_USAGE 2

typedef struct DaemonSignals {
        void (*on_stop)(int signal, void *userdata); /* SIGTERM, SIGINT */
        void (*on_reload)(void *userdata);           /* SIGHUP */
        void *userdata;
} DaemonSignals;

/* Borrows h. From now on these come by the loop, SIGPIPE is ignored, and the service manager's watchdog is
 * fed, if there is one. Says what is wrong. */
int daemon_watch_signals(Loop *l, Log *log, const DaemonSignals *h);

/* Where no service manager's watchdog watches: from now on the process ends by itself, with status 1, once its loop has
 * not turned for limit_usec (whole seconds), so that whoever runs it starts it anew. *ret: what keeps it alive. */
int daemon_watch_loop(Loop *l, usec_t limit_usec, Timer **ret);

/* To the service manager, if there is one: Env.notify. */
void daemon_notify(const char *text, void *userdata);
