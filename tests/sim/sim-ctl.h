/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The objects of the simulated world that vesperctl reads, and the texts that its verbs print about one node. Nothing is
 * sent: the objects come from the store of the fake cluster.
 */

#include "explain.h"
#include "intern.h"
#include "sim-world.h"

/* Each list owns its objects. pool outlives them. */
typedef struct SimCtl {
        InternPool *pool;
        CtlSnapshot snapshot; /* all Nodes and NodeClaims */
        ObjectList pools, budgets, pods, pdbs, volumes, namespaces, webhooks;
} SimCtl;

void sim_ctl_read(SimWorld *w, SimCtl *ret);
void sim_ctl_done(SimCtl *c);
/* Fills the facts of `vesperctl explain NODE`. node is borrowed. explain_facts_done() frees them. */
void sim_ctl_facts(const SimCtl *c, const char *node, ExplainFacts *ret);

/* Return the text that `vesperctl VERB NODE` prints, or a note in parentheses if the node is gone. The timeline lacks the
 * sentences about sources that could not be read. Free it. */
char *sim_ctl_explain(SimWorld *w, const char *node);
char *sim_ctl_status(SimWorld *w, const char *node);
char *sim_ctl_timeline(SimWorld *w, const char *node);
