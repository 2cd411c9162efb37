/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notices.c: what is announced to this machine, and what becomes of it. Takes in what its sources see (notice/), asks the
 * policy (policy.h) about each notice that stands, and begins the reflex (reflex.h), tells it more, or cancels it.
 *
 *      stands: shown by the last answer of its feed
 *        |--rule: ignore, report----------------> told once
 *        |--rule: before or window, not yet-----> told once; MaintenancePlanned; a timer
 *        +--rule: now, its time, cordon---------> reflex idle: begun, if it was not dealt with before
 *                                                 reflex at work: it takes over if it is graver, else it
 *                                                 can only bring the deadline nearer
 *      its metadata answers for another machine than the Node's providerID names: as if it had not answered
 *      its feed answers without it, and its source says that this cancels it: withdrawn; what else stands takes its place
 *
 * Nothing is acted upon before notices_settle(): what was under way before this start comes first.
 */

#include "agent-config.h"
#include "intent-log.h"
#include "metrics.h"
#include "node-voice.h"
#include "notice-source.h"
#include "reflex.h"
#include "wakeup.h"

typedef struct Notices Notices;

/* All borrowed, all outlive it. */
typedef struct NoticesContext {
        Env *env;
        const AgentConfig *config;
        Reflex *reflex;
        IntentLog *intents;
        NodeVoice *voice;
        Metrics *metrics;
        /* An interruption was begun, and takes over what marks stand on the Node. */
        void (*on_begun)(void *userdata);
        /* In IDLE: marks that nothing stands for may be taken off. */
        bool (*may_clean)(void *userdata);
        /* Returns true if the agent may ask for a slot to take the announced reboot before its time. */
        bool (*may_take_early)(const Notice *n, void *userdata);
        /* What is planned is another: notices_planned(). */
        void (*on_planned)(void *userdata);
        /* A look is over. */
        void (*on_looked)(void *userdata);
        void *userdata;
} NoticesContext;

int notices_new(const NoticesContext *context, Notices **ret);
Notices *notices_free(Notices *n);
DEFINE_FREEP(Notices, notices_free);

/* Begins to look, by the sources that the configuration names. */
int notices_start(Notices *n);
/* The own Node is known, and what it said of earlier was dealt with. providerID: of the Node, or NULL. */
void notices_settle(Notices *n, const char *provider_id);
/* After notices_settle(): what the Node says now. Where the metadata of a source has answered for another machine, its notices do not
 * stand (log), and what was begun for one of them is undone. */
void notices_see_provider_id(Notices *n, const char *provider_id);
/* Reloadable values of config have changed: the next look goes by them. */
void notices_reconfigured(Notices *n);
/* The network came back: a source that backs off looks now. */
void notices_kick(Notices *n);
/* The reflex has changed its state, or the wall clock was set (windows of [Policy] are of that): what stands is looked at
 * anew, in the next iteration. */
void notices_wake(Notices *n);

/* Not of a source (a shutdown): what becomes of it now. */
void notices_act(Notices *n, const Notice *notice, usec_t answered_usec);
/* In IDLE: begun as the policy plans it, whatever became of it before. 0 or -ENOMEM. */
int notices_begin(Notices *n, const Notice *notice, usec_t answered_usec);

/* What the node stays out of service for should the notice in force end: borrowed, or NULL. */
const Notice *notices_stand(const Notices *n);
/* The first that announces a reboot which something on early-rule.h's list ends, and for which `may` says yes; borrowed. */
typedef bool (*notices_may_t)(const Notice *n, void *userdata);
const Notice *notices_find_early(const Notices *n, notices_may_t may, void *userdata);
/* [Policy] Reboot=early */
bool notices_takes_early(const Notices *n);
/* As the last answer of its feed has shown it; borrowed for the moment; NULL: it does not. */
const Notice *notices_standing(const Notices *n, const char *id);
bool notices_is_standing(const Notices *n, const char *id);
/* ... and its rule has it drained for now: its time has come. */
bool notices_is_due(const Notices *n, const char *id);
/* A slot was granted for it: it is drained for now, whatever its rule. NULL: no such one (any more), and what the node is out of
 * service for by that alone is undone; why: static. 0 or -ENOMEM. */
int notices_set_early(Notices *n, const char *id, const char *why);
/* What is taken early stays, also when it is not announced any more: its machine may be rebooted at any moment. */
void notices_hold_early(Notices *n, bool held);
/* By its source: -ENOENT: none that stands announces it; -EOPNOTSUPP: it has nothing to acknowledge. */
int notices_acknowledge(Notices *n, const char *id, notice_acknowledged_t done, void *userdata);
/* Is this notice one that the policy only cordons for? */
bool notices_only_cordon(const Notices *n, const Notice *notice);
/* The first that waits for its time, and when that is (boot-time clock); NULL: none. */
const Notice *notices_planned(const Notices *n, usec_t *ret_begin_usec);
bool notices_acknowledges(const Notices *n); /* an acknowledgement is under way */
/* Reports each source, and the next time at which a setting of [Policy] requires an action. */
void notices_next_wakeup(const Notices *n, Wakeups *w);
