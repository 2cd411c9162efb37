/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * by-hand.c: what people on this machine have asked for, by D-Bus (agent-face.h): a drain, a reboot, or both. Each is
 * taken back by its own verb, and the node stays out of service for as long as one of them needs that.
 *
 *      a drain     from its call until it is taken back, or a person un-cordons the node: its notice (manual, without an
 *                  end) is acted upon; beside another notice it stands in that as byHand (notice.h), on the Node, so that
 *                  a restart does not lose it, nor that it is forced
 *      a reboot    until it is granted the node stays in service; granted, the node is cordoned while do-not-evict pods
 *                  are left on it (REBOOT_HELD, reboot.h), unless it is forced. It ends with the agent's life
 *
 * Whoever asked reads what became of it, at any time later and from any life of the agent: by_hand_drain_state() and
 * by_hand_reboot_state() tell whether it stands now, and why not.
 */

#include "informer.h"
#include "reboot.h"
#include "reflex.h"
#include "wakeup.h"

typedef struct ByHand ByHand;

/* All borrowed, all outlive it. */
typedef struct ByHandContext {
        Env *env;
        Reflex *reflex;
        Reboot *reboot;
        IntentLog *intents;
        const Informer *pods; /* of this node */
        bool dry_run;         /* nothing can be asked for */
        /* In IDLE: the notice is to be acted upon. 0 or a negative errno. */
        int (*on_begin)(const Notice *n, void *userdata);
        /* The machine goes down. */
        bool (*machine_ends)(void *userdata);
        void *userdata;
} ByHandContext;

int by_hand_new(const ByHandContext *context, ByHand **ret);
ByHand *by_hand_free(ByHand *h); /* takes nothing back */
DEFINE_FREEP(ByHand, by_hand_free);

/* What an earlier life of the agent was asked for is known: until then nothing can be asked, and nothing be told. */
void by_hand_start(ByHand *h, NoticeByHand drain);

/* Verbs. 0, or a negative errno with *reterr_message (static): -EAGAIN before by_hand_start(), -EOPNOTSUPP, -ENOMEM.
 * Asked again: the same; force may be added. */
int by_hand_drain(ByHand *h, bool force, const char **reterr_message);
int by_hand_cancel_drain(ByHand *h, const char **reterr_message);
int by_hand_reboot(ByHand *h, bool force, const char **reterr_message);
int by_hand_cancel_reboot(ByHand *h, const char **reterr_message);

/* "Unknown" before by_hand_start(); "None"; else
 * - of the drain: "Draining", "Drained";
 * - of the reboot: "Requested", "Held" (granted, and do-not-evict pods are left), "Rebooting" (the machine goes down, whoever
 *   told it). One that logind has on its schedule is not by hand. */
const char *by_hand_drain_state(const ByHand *h);
const char *by_hand_reboot_state(const ByHand *h);
/* For people: what it waits for ("pod a/b, which KEY protects"), or why it does not stand any more. "" where there is
 * nothing to say; free it. NULL: out of memory. */
char *by_hand_drain_reason(const ByHand *h);
char *by_hand_reboot_reason(const ByHand *h);

/* Is a do-not-evict pod on this node, or is that not known yet? *ret_what says which, and by which key (free it; NULL: out of
 * memory). */
bool by_hand_find_protected(const ByHand *h, char **ret_what);
/* Of reflex, for its context: the notice that the node stays out of service for, borrowed, or NULL. */
const Notice *by_hand_stands(const ByHand *h);
/* A person made the node schedulable again. */
void by_hand_overruled(ByHand *h);
/* Reflex, reboot or machine changed: looked at in the next iteration. */
void by_hand_wake(ByHand *h);
/* Reports a request that the reflex does not act upon yet. */
void by_hand_next_wakeup(const ByHand *h, Wakeups *w);
