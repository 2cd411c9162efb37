/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * early.c: announced reboots that are taken before their time ([Policy] Reboot=early), one after the other. Which may be,
 * early-rule.h says.
 *
 *      stands, and may be taken --a request for a slot (reboot.h)--> ASKED
 *      granted and proved; do-not-evict pods are gone --its id is written to ANNOTATION_REBOOT_TAKEN--> MARKED
 *      MARKED --notices_set_early(): the node is drained for its notice, as if its time had come--> DRAINED
 *      DRAINED, and the Node says so:
 *              by cloud        the coordinator, which reads that, has the cloud reboot the machine
 *              by ack          acknowledge.c tells the cloud
 *              by machine      logind is told
 *
 * The mark is written before the drain, and never taken off for what still stands: whatever dies in between, no event is the
 * cause of two reboots. What comes to nothing (nobody grants a slot; the slot is over; the cloud has not rebooted the machine
 * EARLY_GONE_USEC after the drain; a person un-cordons) is undone, and left: one that was marked to its own time, the others
 * until EARLY_AGAIN_USEC have passed; what a person has taken back is not asked for again by this process.
 *
 * Once the coordinator has noted in the grant that the cloud is being told, the node stays drained, also if the event is called
 * off: until the machine goes down, or EARLY_GONE_USEC are over.
 *
 * After the boot the marks of the drain go as those of any earlier boot do (resume.h). An agent that starts in the middle, in the
 * same boot, takes its predecessor's request off (reboot.h) and undoes the drain, once: nobody reboots then. Not where the cloud may have
 * been told already, by the coordinator as its grant says, or by an acknowledgement of which nobody has kept whether it was sent: then
 * request and drain stay until the machine goes down, or for EARLY_GONE_USEC.
 */

#include "notices.h"
#include "reboot.h"
#include "wakeup.h"

#define EARLY_GONE_USEC (10 * USEC_PER_MINUTE)
#define EARLY_AGAIN_USEC (6 * USEC_PER_HOUR)

typedef struct Early Early;

/* All borrowed, all outlive it. */
typedef struct EarlyContext {
        Env *env;
        const AgentConfig *config;
        KubeClient *client;
        Reflex *reflex;
        Notices *notices;
        Reboot *reboot;
        /* The machine goes down, or that is not known. */
        bool (*machine_ends)(void *userdata);
        void *userdata;
} EarlyContext;

int early_new(const EarlyContext *context, Early **ret);
Early *early_free(Early *e); /* takes nothing back */
DEFINE_FREEP(Early, early_free);

/* An agent before this one, in this boot, had begun what goes on now, and got as far as `phase`: was that taken early, it is undone, or,
 * where the cloud may have been told, kept for EARLY_GONE_USEC. */
void early_resumed(Early *e, const KubeNode *node, const Notice *n, IntentPhase phase);
/* Returns true if the agent asks, now or later, for a slot to take the announced reboot before its time. */
bool early_may_take(const Early *e, const Notice *n);
/* Notices, reboot, reflex or the Node changed: looked at in the next iteration. Not before what was under way has been dealt
 * with. */
void early_wake(Early *e);
/* Reports the reboot that is taken early, if this module takes its next step, and the time from which the
 * next reboot may be asked for. A step is tried again within EARLY_WAKEUP_USEC. */
#define EARLY_WAKEUP_USEC USEC_PER_MINUTE
void early_next_wakeup(const Early *e, Wakeups *w);
