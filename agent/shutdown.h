/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * shutdown.c: the machine's own shutdown, from its beginning to the moment from which we delay it no longer.
 *
 *      STAYS --logind announces it, or SIGTERM while PID 1 is stopping--> DRAINING --over--> LET_GO
 *        ^                                                                   |                  |
 *        +--------------------------cancelled--------------------------------+------------------+
 *
 * Beginning, it makes a notice of kind "shutdown" with the time that the machine gives, which the reflex
 * acts upon as upon any other. In DRAINING we hold logind's inhibitor, and extend our own stop once it has
 * been asked for. It is over when
 *
 * - the node is drained, and has been told so. A pod whose containers have ended here (containers.h) is not
 *   waited for: it is taken off the API, where its kubelet would need seconds more to do so;
 * - the time is up;
 * - the API server does not answer within 3 s: nothing can be evicted without it. What is terminating
 *   has its time (its kubelet needs no API server for that), then the ordered stop ends the containers;
 * - there is no Node, or nothing is to be done about it: a person opened it, or Drain=no.
 *
 * A stop of our unit while the machine stays (restart, upgrade, crash) ends us at once and drains nothing. Where nobody
 * answers whether it stays, that is asked again for 15 s before.
 */

#include "agent-config.h"
#include "containers.h"
#include "informer.h"
#include "kube-client.h"
#include "metrics.h"
#include "node-voice.h"
#include "power.h"
#include "reflex.h"
#include "wakeup.h"

typedef struct Shutdown Shutdown;

typedef enum ShutdownState {
        SHUTDOWN_STAYS,
        SHUTDOWN_DRAINING,
        SHUTDOWN_LET_GO,
        _SHUTDOWN_STATE_MAX,
} ShutdownState;

/* All borrowed. */
typedef struct ShutdownContext {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        Reflex *reflex;
        IntentLog *intents;
        NodeVoice *voice;
        Metrics *metrics;
        const Informer *pods;
        Containers *containers; /* watched while a shutdown is under way */
} ShutdownContext;

typedef struct ShutdownHandler {
        /* To be acted upon. False: not yet; it is said again after shutdown_wake(). */
        bool (*on_notice)(const Notice *n, void *userdata);
        /* Whether the machine stays is known, or changed. */
        void (*on_power)(PowerState s, void *userdata);
        /* The process is to end now. */
        void (*on_stop)(void *userdata);
        void *userdata;
} ShutdownHandler;

int shutdown_new(const ShutdownContext *context, const ShutdownHandler *h, Shutdown **ret);
Shutdown *shutdown_free(Shutdown *s); /* the inhibitor stays in the store */
DEFINE_FREEP(Shutdown, shutdown_free);
void shutdown_start(Shutdown *s);

/* SIGTERM: on_stop() follows, at once unless the machine ends. */
void shutdown_ask_stop(Shutdown *s);
/* MaxSec= or TooShort= have changed. A shutdown that is under way keeps its deadline. */
void shutdown_reconfigured(Shutdown *s);
/* Something changed in reflex or view: looks again, in the next iteration. */
void shutdown_wake(Shutdown *s);

PowerState shutdown_power(const Shutdown *s);
/* Reports the shutdown that is delayed for the drain. A timer is due at its deadline at the latest. */
void shutdown_next_wakeup(const Shutdown *s, Wakeups *w);
