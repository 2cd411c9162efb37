/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reboot.c: a reboot under a budget, asked for before it begins: once a shutdown has begun it waits for
 * nobody.
 *
 *      NONE --asked for--> ASKED --granted--> REBOOTING: logind reboots, and shutdown.c drains as before any
 *       | ^                   |                    |     other
 *       | +----withdrawn------+--patience is over, taken back, or logind refuses
 *       |
 *       +--logind has one on its schedule, 10 minutes before it at the earliest--> ASKED --granted-->
 * GRANTED
 *                                                                                    +--its time comes, in
 *                                                                                       either case-->
 * REBOOTING
 *
 * What is scheduled is never put off: who scheduled it has said when. Its slot makes others wait for it;
 * without one it begins all the same, and says so.
 *
 * The request stands on the Node as vesper.sh/shutdown-request {"id","bootID","kind","until"}; the
 * coordinator answers by vesper.sh/shutdown-granted {"id","until"}, which counts while its id is ours and
 * its time has not passed. Ours goes when the request is over: withdrawn; after the boot, once the node is
 * Ready; or at once where an agent finds one that it does not know (it crashed, and whoever waited has been
 * told).
 */

#include "agent-config.h"
#include "kube-client.h"
#include "kube-kinds.h"

typedef struct Reboot Reboot;

typedef enum RebootState {
        REBOOT_NONE,
        REBOOT_ASKED,
        REBOOT_GRANTED, /* scheduled: its time has not come yet */
        REBOOT_REBOOTING,
        _REBOOT_STATE_MAX,
} RebootState;

/* on_changed: the state did. */
int reboot_new(Env *env, const AgentConfig *config, KubeClient *client, void (*on_changed)(void *userdata),
               void *userdata, Reboot **ret);
Reboot *reboot_free(Reboot *r);
DEFINE_FREEP(Reboot, reboot_free);

/* -EOPNOTSUPP: no bus to reboot by; -ENOMEM. Asked again: the same request. */
int reboot_request(Reboot *r);
/* why: static. */
void reboot_withdraw(Reboot *r, const char *why);
/* What the informer brings; borrowed until the next one. NULL: gone. */
void reboot_see_node(Reboot *r, const KubeNode *n);
RebootState reboot_state(const Reboot *r);

/* What logind has on its schedule (schedule.h): kind static; NULL: nothing. */
void reboot_see_schedule(Reboot *r, const char *kind, usec_t at_usec);
/* The machine's shutdown begins, whoever told it. */
void reboot_machine_ends(Reboot *r);

/* Pure: what the Node says to the request of that id, now (wall clock). */
typedef enum RebootAnswer { REBOOT_ANSWER_NONE, REBOOT_ANSWER_GRANTED, REBOOT_ANSWER_RUN_OUT } RebootAnswer;
RebootAnswer reboot_answer(const KubeNode *n, const char *id, usec_t now_usec);
