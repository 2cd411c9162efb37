/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * acknowledge.c: tells the cloud that a scheduled event may begin now, once this node is drained for it ([Metadata]
 * Acknowledge=). Which events, and when, early-rule.h says.
 *
 *      drained, and the Node says so; its source shows an event that may be acknowledged
 *        --one read of the Node: still drained for it, still cordoned, ack-ok if others are named--> sent --taken--> told
 *        ^                                                                                            |
 *        +-------------------------------------- not taken, or not so: again after a while -----------+
 */

#include "notices.h"
#include "wakeup.h"

typedef struct Acknowledger Acknowledger;

/* All borrowed, all outlive it. */
typedef struct AcknowledgeContext {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        Reflex *reflex;
        Notices *notices;
} AcknowledgeContext;

int acknowledger_new(const AcknowledgeContext *context, Acknowledger **ret);
Acknowledger *acknowledger_free(Acknowledger *a);
DEFINE_FREEP(Acknowledger, acknowledger_free);

/* Notices, reflex or the Node changed: looked at in the next iteration. */
void acknowledger_wake(Acknowledger *a);
/* Reports the event that is to be acknowledged. The acknowledgement is under way, or is tried again within
 * ACKNOWLEDGE_WAKEUP_USEC. */
#define ACKNOWLEDGE_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void acknowledger_next_wakeup(const Acknowledger *a, Wakeups *w);
