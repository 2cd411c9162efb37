/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person gets to know about one termination: journal lines with fields, Events on Node and pods, the
 * Node's conditions, the claim's conditions, messages to the receiver of [Notify]. Writes in the background, never waited for; decides nothing.
 */

#include "blocked-by.h"
#include "claim-status.h"
#include "node-drain.h"
#include "termination-context.h"
#include "wakeup.h"

typedef struct TerminationReport TerminationReport;

int termination_report_new(const TerminationContext *context, const char *node, const char *uid,
                           TerminationReport **ret);
TerminationReport *termination_report_free(TerminationReport *r);
DEFINE_FREEP(TerminationReport, termination_report_free);

void termination_report_see_node(TerminationReport *r); /* the Node in view may be another: late_status_see() */
void termination_report_started(TerminationReport *r, const KubeNodeClaim *claim); /* NULL: it has none */
void termination_report_phase(TerminationReport *r, const char *from, const char *to, const char *why);
/* wall_usec: USEC_INFINITY: the one there was is over. */
void termination_report_deadline(TerminationReport *r, usec_t wall_usec, const char *why);
/* Reports that nothing holds the removal, and that the node is taken out of service now. by_admin: a person, a
 * tool or a repair deleted the Node, and no notice ends its machine. */
void termination_report_begins(TerminationReport *r, bool by_admin);
void termination_report_cordoned(TerminationReport *r);
void termination_report_draining(TerminationReport *r); /* once in each drain; told again it does nothing */
void termination_report_pod(TerminationReport *r, DrainPodEvent e, const KubePod *pod,
                            const DrainBlocker *blocker, const EvictionReport *report, usec_t deadline_usec);
void termination_report_drained(TerminationReport *r, ClaimStatus *s);
/* Of a node that was drained, or whose deadline had passed: reason, what says otherwise. */
void termination_report_drains_again(TerminationReport *r, ClaimStatus *s, const char *reason);
/* left: that were waited for in vain; staying: of pods that stay. */
void termination_report_volumes(TerminationReport *r, ClaimStatus *s, size_t left, size_t staying);
/* T has passed; names what is left. drain NULL: nothing was begun. */
void termination_report_expired(TerminationReport *r, NodeDrain *drain);
void termination_report_machine_ended(TerminationReport *r, ClaimStatus *s);
/* It is neither cordoned nor drained yet, for this reason (WAITING_FOR_BUDGET, REMOVAL_PAUSED). */
void termination_report_held(TerminationReport *r, ClaimStatus *s, const char *reason, const char *message);
/* reason: static, PascalCase. retried: the termination is. Said again only when reason or message changes. */
void termination_report_blocked(TerminationReport *r, ClaimStatus *s, const char *reason, const char *message,
                                bool retried);
void termination_report_unblocked(TerminationReport *r, ClaimStatus *s);
const char *termination_report_blocked_reason(const TerminationReport *r); /* NULL: it is not */
void termination_report_rate_limited(TerminationReport *r);
/* Node and claim are about to go: what was not told yet waits to see whether they do. stays: somebody else's
 * finalizer keeps that one, and all of it is told now. */
void termination_report_finishing(TerminationReport *r, ClaimStatus *s, bool node_stays, bool claim_stays);
void termination_report_node_gone(TerminationReport *r); /* there are no conditions to write any more */
void termination_report_finished(TerminationReport *r, usec_t took_usec);
void termination_report_next_wakeup(const TerminationReport *r, Wakeups *w); /* see late-status.h */
