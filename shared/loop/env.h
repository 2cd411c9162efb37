/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Env: every way in which a daemon touches the world, handed to agent_new() and coordinator_new(). There are no mutable
 * globals; a simulation gives each process an Env of its own. All pointers are borrowed from whoever made the Env (a
 * main(), or a simulation) and outlive the daemon. `bus` and `netlink` may be NULL: the daemon does without.
 */

#include "bus.h"
#include "child-runner.h"
#include "loop.h"
#include "netlink.h"
#include "random.h"
#include "state-store.h"

typedef struct Log Log;                     /* log/log.h */
typedef struct HttpTransport HttpTransport; /* http-client/http-transport.h */

typedef struct Env {
        Loop *loop;
        Random *random;
        Log *log;
        HttpTransport *transport;
        StateStore *state;     /* NULL where a process keeps none (coordinator), or cannot */
        ChildRunner *children;
        Bus *bus;
        Netlink *netlink;
        /* sd_notify() text ("READY=1", "STATUS=..."); NULL where nobody listens. */
        void (*notify)(const char *text, void *userdata);
        /* The service manager's store for descriptors, which survives a crash and a restart of this process: a copy of fd is
         * put there under that name (0 or a negative errno); what was found there at the start is handed out once, owned
         * by the caller (-ENOENT: nothing); what is there under that name is dropped. NULL, all three, where there is none. */
        int (*store_fd)(const char *name, int fd, void *userdata);
        int (*take_stored_fd)(const char *name, void *userdata);
        void (*forget_fd)(const char *name, void *userdata);
        void *notify_userdata; /* of all of these */
        bool stop_extendable;  /* the service manager listens to EXTEND_TIMEOUT_USEC= */
        const char *boot_id; /* 32 hex digits, changes with each boot */
        const char *version; /* of the program, for User-Agent and --version */
} Env;
