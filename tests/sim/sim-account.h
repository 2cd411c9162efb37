/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The account of one round of a simulated world: requests with their bodies, log lines and notifications to
 * the service manager, of all daemons. Names and uids are replaced, so that the accounts of two rounds with
 * different nodes can be compared line by line. Times are replaced by the seconds since the round began. The
 * lines without times have one word for each time and duration, because the phase of a poll differs from
 * round to round.
 *
 * The lines leave out requests that depend on the moment alone: watches and their lists, Leases, polls of
 * metadata and of the queue. Lines that differ only in the name of a pod, or in their order within one
 * second, count as equal.
 */

#include "http-inproc.h"
#include "log.h"
#include "sim-world.h"

SimAccount *sim_account_new(SimWorld *w);
SimAccount *sim_account_free(SimAccount *a);
DEFINE_FREEP(SimAccount, sim_account_free);

/* Drops all lines. The names of this machine, its instance and its claim are replaced by the same words in
 * each round. */
void sim_account_begin(SimAccount *a, size_t machine);
/* Adds a section with the text that a verb of vesperctl prints, behind all lines. If the verb's last text differs in
 * times only, the section has "(as before)" in place of the text. Each longer run of spaces within a line becomes two
 * spaces, because columns of a table are as wide as names. */
void sim_account_add_output(SimAccount *a, const char *verb, const char *when, const char *text);
/* Returns the lines since sim_account_begin(). has_times: with the seconds since then. Borrowed until the
 * next call. */
const char *sim_account_text(SimAccount *a, bool has_times);

/* Returns each different call since sim_account_begin() once, in order of its first request,
 * NULL-terminated. Calls that the lines leave out are listed, too, without their bodies. Borrowed. */
char *const *sim_account_calls(const SimAccount *a);
/* Gives the next n requests of any daemon that are this call this answer instead of their own. fault is
 * copied. */
void sim_account_answer(SimAccount *a, const char *call, const HttpFault *fault, unsigned n);
/* Returns how many of the n requests have not come yet. */
unsigned sim_account_answers_left(const SimAccount *a);
/* Returns the objects in the API and at the cloud: Nodes, NodeClaims, NodePools, budgets and instances,
 * without times, resourceVersion, managedFields and generation. Free it. */
char *sim_account_state(SimAccount *a);

/* Called by sim-process. a: NULL: nothing is recorded. Returns true if ret_fault was set: it replaces the
 * answer. */
bool sim_account_request(SimAccount *a, const SimProcess *p, const HttpRequest *request, HttpFault *ret_fault);
void sim_account_log(SimAccount *a, const SimProcess *p, LogLevel level, const char *text);
void sim_account_notify(SimAccount *a, const SimProcess *p, const char *text);
