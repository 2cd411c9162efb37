/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * reboot.c: a reboot under a budget, asked for before it begins: once a shutdown has begun it waits for
 * nobody.
 *
 *      NONE --asked for--> ASKED --granted and proved--> REBOOTING: logind reboots, and shutdown.c drains as
 *       | ^                   |                              before any other
 *       | +----withdrawn------+--patience or the slot is over, taken back, or logind refuses
 *       |                     |
 *       |                     +--granted, and do-not-evict pods are left--> HELD --they are gone, proved anew--> REBOOTING
 *       |                                                                    |
 *       |                              ASKED <--the grant is taken off-------+--the slot is over--> NONE
 *       |
 *       +--on logind's schedule, 10 min before it at the earliest--> ASKED --granted and proved--> GRANTED
 *                                                                        |                            |
 *                                                             REBOOTING <+------its time comes--------+
 *
 * What is scheduled is never put off: who scheduled it has said when. Its slot makes others wait for it;
 * without one, or when that is over, it begins all the same, and says so.
 *
 * HELD: once it has begun, a shutdown ends every pod in the time that the machine gives; so those that opted out
 * are waited for before logind is told. The node is cordoned meanwhile (by-hand.h), and the slot is in use: that ends
 * the waiting, and nobody has been evicted then. A request with force does not wait.
 *
 * For an event: a reboot that was announced, and is taken early (early.h). Its request names the event, and its slot is asked for
 * and proved as any; but then
 *
 *      ASKED, HELD --granted and proved--> TAKEN --reboot_go_on()--> REBOOTING, by logind
 *                                            |----the machine's shutdown begins, whoever told it--> REBOOTING
 *                                            +----the slot is over, or taken off--> NONE
 *
 * In TAKEN its owner drains the node, and has it rebooted by what ends the event.
 *
 * A NodePool may have a node repaired by a reboot: then the coordinator has put this boot's id into the annotation
 * vesper.sh/reboot-for-repair. That is a request like one by hand, made once for as long as the annotation stands, and withdrawn
 * when it goes, unless logind has been told: the GET that proves the slot has to show the annotation, too. A request that a person
 * took back is not made again. [Shutdown] RepairReboots=no never does it.
 *
 * The request stands on the Node as vesper.sh/shutdown-request {"id","bootID","kind","until"}, with "event" and "by" of one for an event; the
 * coordinator answers by vesper.sh/shutdown-granted {"id","until"}, which counts while its id is ours and
 * its time has not passed. Ours goes when the request is over: withdrawn; after the boot, once the node is
 * Ready; or at once where an agent finds one that it does not know (it crashed, and whoever waited has been
 * told), and that it does not take over (reboot_take_over(): the cloud may reboot the machine at any moment).
 *
 * Whose clock. A slot ends by the coordinator's clock, and then it is another's. This node's clock may be
 * anything (a dead RTC, before NTP), and its informer may bring a grant late. So a grant that is seen is
 * proved before it is used: one GET of the Node (a consistent read: it must still stand there for our id)
 * whose own Date, the API server's clock (RFC 9110 6.6.1), must lie REBOOT_REST_USEC before the slot's end;
 * what has passed since that request left is counted as passed there. logind is told in the same moment: a
 * slot that ends before a machine has gone down is bounded by RebootSlotSec= (45 min), not here. Assumed is
 * that no coordinator's clock is ahead of an API server's by more than the rest less a logind's time-out, 20
 * s; one that is behind only makes slots longer. While the API server does not answer nothing is proved and
 * nobody reboots: it is asked each second, until patience is over; an answer without Date ends the request.
 *
 * The request's "until" is for the coordinator's clock, too: where the API server's answer to it shows that
 * ours is wrong it is written anew, or it might be over there from the beginning, and never be granted.
 */

#include "agent-config.h"
#include "kube-client.h"
#include "kube-kinds.h"
#include "wakeup.h"

typedef struct Reboot Reboot;

typedef enum RebootState {
        REBOOT_NONE,
        REBOOT_ASKED,
        REBOOT_HELD,    /* granted: do-not-evict pods are waited for */
        REBOOT_GRANTED, /* scheduled: its time has not come yet */
        REBOOT_TAKEN,   /* granted, for an event: its owner drains the node */
        REBOOT_REBOOTING,
        _REBOOT_STATE_MAX,
} RebootState;

typedef struct RebootHandler {
        void (*on_changed)(void *userdata); /* the state did */
        /* A pod is left that opted out, or that is not known: *ret_what, to be freed, is its name for people (NULL: out of
         * memory). Asked each second in HELD. */
        bool (*is_held)(char **ret_what, void *userdata);
        void *userdata;
} RebootHandler;

int reboot_new(Env *env, const AgentConfig *config, KubeClient *client, const RebootHandler *h, Reboot **ret);
Reboot *reboot_free(Reboot *r);
DEFINE_FREEP(Reboot, reboot_free);

/* -EOPNOTSUPP: no bus to reboot by; -ENOMEM. Asked again: the same request, which may be forced from then on. */
int reboot_request(Reboot *r, bool force);
/* For the event of that id. by_cloud: the coordinator has the cloud reboot the machine. Only in NONE. -EBUSY: not in NONE;
 * -EOPNOTSUPP, -ENOMEM. */
int reboot_request_early(Reboot *r, const char *event, bool by_cloud);
/* In NONE: an agent before this one, in this boot, has requested it for that event, and its grant stands on the Node: that the cloud is
 * told, as the grant says, or (told, of one that is not the coordinator's to have done) as may be. Goes on in TAKEN for so long at most. 1, 0: no such one; -ENOMEM. */
int reboot_take_over(Reboot *r, const KubeNode *n, const char *event, bool told, usec_t for_usec);
/* Of the request that is under way; NULL: it is for no event, or there is none. Borrowed. */
const char *reboot_event(const Reboot *r);
/* Its grant says that the cloud is being told to reboot the machine: that may happen at any moment. */
bool reboot_cloud_is_told(const Reboot *r);
/* In TAKEN, and the node is drained: logind is told. */
void reboot_go_on(Reboot *r);
/* The last request for an event was taken back by a person. */
bool reboot_event_was_cancelled(const Reboot *r);
/* Takes back what was requested; not what logind has on its schedule, nor what logind has been told. */
void reboot_cancel(Reboot *r, const char *why);
void reboot_withdraw(Reboot *r, const char *why);
/* It was requested, by hand or for repair, and is not merely on logind's schedule. */
bool reboot_is_by_hand(const Reboot *r);
/* Its request, or that there is none, stands on the Node as far as is known, and none is due: no write of it is to come. */
bool reboot_is_told(const Reboot *r);
/* In NONE: why the last one that was requested in this life came to its end; NULL: none was. Borrowed. */
const char *reboot_why_ended(const Reboot *r);
/* What the informer brings; borrowed until the next one. NULL: gone. */
void reboot_see_node(Reboot *r, const KubeNode *n);
RebootState reboot_state(const Reboot *r);

/* What logind has on its schedule (schedule.h): kind static; NULL: nothing. */
void reboot_see_schedule(Reboot *r, const char *kind, usec_t at_usec);
/* The wall clock was: what is on the schedule begins at another time than was thought. */
void reboot_clock_was_set(Reboot *r);
/* The machine's shutdown begins, whoever told it. */
void reboot_machine_ends(Reboot *r);

/* A slot that ends sooner counts as over. It covers what the clocks of API servers and coordinators differ,
 * and a logind that takes its time. */
#define REBOOT_REST_USEC (30 * USEC_PER_SEC)

/* Pure: what the Node says to the request of that id when the API server's clock says server_usec (0: has it
 * an answer at all?). *ret_until_usec: the end of the slot; 0 for NONE. */
typedef enum RebootAnswer { REBOOT_ANSWER_NONE, REBOOT_ANSWER_GRANTED, REBOOT_ANSWER_RUN_OUT } RebootAnswer;
RebootAnswer reboot_answer(const KubeNode *n, const char *id, usec_t server_usec, usec_t *ret_until_usec);
/* Reports the request for a slot, and the scheduled shutdown for which a slot is to be asked. Reads and
 * writes for the request begin within REBOOT_WAKEUP_USEC, and a timer ends its patience. */
#define REBOOT_WAKEUP_USEC (2 * USEC_PER_SEC)
void reboot_next_wakeup(const Reboot *r, Wakeups *w);
