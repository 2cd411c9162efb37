/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The account of one round of a simulated world: requests with their bodies, log lines and notifications to the
 * service manager, of all daemons. Names and uids are replaced, so that the accounts of two rounds with different nodes
 * can be compared line by line. Times are replaced by the seconds since the round began; where that is too exact, as the
 * phase of a poll differs from round to round, times and durations are replaced by one word each.
 *
 * Left out are requests that depend on the moment alone: watches and their lists, Leases, polls of metadata and of
 * the queue. Lines that differ only in the name of a pod, or in their order within one second, are the same.
 */

#include "http-inproc.h"
#include "log.h"
#include "sim-world.h"

SimAccount *sim_account_new(SimWorld *w);
SimAccount *sim_account_free(SimAccount *a);
DEFINE_FREEP(SimAccount, sim_account_free);

/* Drops all lines. The names of this machine, its instance and its claim are replaced by the same words in each round. */
void sim_account_begin(SimAccount *a, size_t machine);
/* The lines since sim_account_begin(). has_times: with the seconds since then. Borrowed until the next call. */
const char *sim_account_text(SimAccount *a, bool has_times);

/* The calls since sim_account_begin(), NULL-terminated, each once, in the order in which they came first; also those that the lines leave
 * out, these without their bodies. Borrowed. */
char *const *sim_account_calls(const SimAccount *a);
/* The next n requests that are this call, of any daemon, get this answer in place of theirs. fault is copied. */
void sim_account_answer(SimAccount *a, const char *call, const HttpFault *fault, unsigned n);
/* How many of these have not come yet. */
unsigned sim_account_answers_left(const SimAccount *a);
/* What stands in the API and at the cloud when all is done: Nodes, NodeClaims, NodePools, budgets and instances, without times and
 * without what only counts changes. Free it. */
char *sim_account_state(SimAccount *a);

/* By sim-process; a NULL: nothing. True: ret_fault was set, and the request has no answer of its own. */
bool sim_account_request(SimAccount *a, const SimProcess *p, const HttpRequest *request, HttpFault *ret_fault);
void sim_account_log(SimAccount *a, const SimProcess *p, LogLevel level, const char *text);
void sim_account_notify(SimAccount *a, const SimProcess *p, const char *text);
