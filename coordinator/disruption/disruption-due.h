/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Is a node due for a method: expired, drifted, empty for long enough, quiet for long enough? Of one node by itself, as the
 * scene is: nothing is simulated, and neither budgets nor what a plan has done to other nodes are asked.
 */

#include "disruption-gate.h"

typedef struct NodeDue {
        usec_t since_usec;
        bool by_force; /* past its hard deadline: nothing holds it any more */
        char *why;     /* the caller's */
} NodeDue;

/* At this age an expiring node goes: up to a tenth before expireAfter, a day at most, spread by its uid, so that nodes that
 * came together do not go together. USEC_INFINITY: it does not expire. */
usec_t node_expires_usec(const DisruptionScene *s, uint32_t node);
/* At this age nothing holds it any more; USEC_INFINITY: there is none. */
usec_t node_expires_hard_usec(const DisruptionScene *s, uint32_t node);

/* Of a node that a pool has. 1: it is due; 0: it is not, and `f` says why; -ENOMEM. */
int node_due_by_expiry(const DisruptionScene *s, uint32_t node, NodeDue *ret, GateFindings *f);
int node_due_by_drift(const DisruptionScene *s, uint32_t node, NodeDue *ret, GateFindings *f);
/* All that stands against it but budgets; f->failed: -ENOMEM. */
void gate_emptiness(const DisruptionScene *s, uint32_t node, GateFindings *f);
void gate_consolidation(const DisruptionScene *s, uint32_t node, GateFindings *f);
/* "empty since 2027-01-15T08:00:00Z"; "its 3 pods fit on other nodes". NULL on ENOMEM. */
char *empty_since_text(const DisruptionScene *s, uint32_t node);
char *pods_fit_text(const DisruptionScene *s, uint32_t node);
