/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of `vesperctl explain` share while they look for causes: the node, and what belongs to it. Pure. */

#include "drain-plan.h"
#include "explain.h"
#include "interruption.h"
#include "node-deadline.h"
#include "reboot-slots.h"

typedef struct Explain {
        const ExplainFacts *f;
        const KubeNode *node;
        const KubeNodeClaim *claim;  /* NULL: none */
        const KubeNodePool *pool;    /* of the claim, or that selects it; NULL: none */
        const KubeNodePool *other;   /* that selects it, too; NULL: none */
        const Interruption *interruption; /* the agent's, if it stands; NULL: none */
        const Interruption *heard;   /* the drain for what the interruption queue announced; NULL: there is none */
        AnnouncedList announced;     /* all that it announced; the items are borrowed */
        RebootCase reboot;
        NodeDeadline deadline;
        DrainRules rules;
        const Condition *blocked;    /* TerminationBlocked, where it is True */
        ExplainCauses *causes;
} Explain;

/* Each adds one cause, about an object without namespace, or about the Node. */
ExplainCause *explain_add(Explain *x, bool holds, const char *reason, const KubeKind *kind, const char *name,
                          usec_t since_usec);
ExplainCause *explain_add_for_node(Explain *x, bool holds, const char *reason, usec_t since_usec);
/* Somebody's text, with a full stop. */
void explain_say_sentence(Explain *x, ExplainCause *c, const char *text);
/* Returns the NodePool of that name; NULL: there is none, or it could not be read. */
const KubeNodePool *explain_pool_named(const ExplainFacts *f, const char *name);
bool explain_has_phase(const Explain *x, const char *phase);
/* Returns true if the Node has vesper's finalizer. */
bool explain_is_ours(const Explain *x);

/* explain-service.c: a node that is not being removed. Each adds a cause if there is something to report. */
void explain_service(Explain *x); /* who manages the node, or why nobody does; always adds one */
void explain_overruled(Explain *x); /* the machine may end, and a person opened the node */
void explain_kubelet(Explain *x);   /* the node is not Ready, or its machine is off */
void explain_planned(Explain *x);   /* the agent's condition MaintenancePlanned */
void explain_reboot(Explain *x);    /* the slot that the agent asks for or holds */
/* Returns the agent's condition MaintenancePlanned while no drain and no slot has followed from it. NULL: there is none. */
const Condition *explain_plan(const Explain *x);
bool explain_asks_for_slot(const Explain *x);
bool explain_reboots_early(const Explain *x);

/* explain-gates.c: what comes before a drain. holds: it does so now; else it would. */
void explain_leader(Explain *x, bool holds);
void explain_pause(Explain *x, bool holds);
/* NodeDisruptionBudgets that select it, have not paid for it and have no room: how many. */
size_t explain_budgets(Explain *x, bool holds);
/* That it waits for one, in the coordinator's words. */
void explain_told_budget(Explain *x);
/* Whoever deletes the Node now is refused, or passes without having been asked. */
void explain_webhook(Explain *x);

/* explain-successor.c: machines that vesper asks for. */
void explain_launch(Explain *x);    /* a claim that has spec.replaces and no Node; always adds a cause */
void explain_place(Explain *x);     /* whose place the claim takes, and how far it is; nothing without spec.replaces */
void explain_successor(Explain *x); /* which claim takes this one's place, and how far that is; nothing if none was named */

/* explain-machine.c: what comes behind it: the cloud, and finalizers of others. */
void explain_machine(Explain *x);
void explain_last_error(Explain *x, const KubeNodeClaim *claim);
/* ours: vesper's is among them, so that the others hold nothing yet. */
void explain_finalizers(Explain *x, const KubeObject *o, bool ours);
