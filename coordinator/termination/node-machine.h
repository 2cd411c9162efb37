/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The machine of one Node that is being removed, as the Node sees it: whether the Node has lost it, and, when the Node is
 * drained, what its end still waits for. That is another Node that needs the machine (shared-machine.h), the rate of
 * terminations ([Provider] TerminationsPerMinute=), and the proof that no pod is left (drain-proof.h). What holds it up is
 * said by termination_report_blocked().
 *
 * What the cloud is asked, and what its answers prove, is machine-end.h's; when a removal gets to its machine is
 * node-termination.h's.
 */

#include "claim-status.h"
#include "machine-end.h"
#include "node-drain.h"
#include "termination-context.h"
#include "termination-report.h"

typedef struct NodeMachine {
        const TerminationContext *context; /* borrowed, as node and report are */
        const char *node;                  /* its name */
        TerminationReport *report;
        MachineEnd *end;       /* NULL: nothing names a machine */
        usec_t described_usec; /* loop_now(): when the cloud was asked last; 0: never */
        bool rate_taken;       /* the rate has let it pass, once and for all */
        bool is_shared;        /* its end waits for another Node that has its providerID */
        bool is_unproved;      /* that its drain cannot prove that no pod is left is told */
} NodeMachine;

/* Fills `end`; the borrowed fields are set already. claim, pool: the Node's, NULL: none. changed: as MachineEndOptions has it. */
int node_machine_init(NodeMachine *m, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool,
                      machine_changed_t changed, void *userdata);
void node_machine_done(NodeMachine *m); /* a zeroed one is fine */

/* Before its end was asked for: the Node has lost it. Pure. */
bool node_machine_is_lost(MachineState s, bool is_ready);
/* When its end was asked for, or may be: it has ended, or is about to, whatever its kubelet says meanwhile. But of a machine that
 * was only not found, or whose identity was never proved, a kubelet that reports knows better. Pure. */
bool node_machine_cannot_come_back(MachineState s, bool is_ready);

/* In what follows there is a machine, unless it is said otherwise; status NULL: its claim is gone, or never was; drain NULL:
 * nothing of ours looks at its pods; past_deadline: T (node-deadline.h) has passed, after which no proof is asked for.
 * The node is requeued for when time alone makes a difference. */

/* Asks the cloud, now and then. */
void node_machine_describe(NodeMachine *m);
/* Its end may be asked for, as far as the node is concerned: does so, unless another Node or the rate holds it, and sends what has
 * its turn at the cloud once the drain has proved that no pod is left. Call again after every change. */
void node_machine_terminate(NodeMachine *m, const KubeNode *n, ClaimStatus *status, NodeDrain *drain, bool past_deadline);
/* A person hears of a proof that is tried in vain, also where there is no machine. */
void node_machine_tell_proof(NodeMachine *m, ClaimStatus *status, const NodeDrain *drain, bool past_deadline);
/* ... and of what keeps the cloud from ending it. */
void node_machine_tell_problem(NodeMachine *m, ClaimStatus *status);
/* The providerID names the machine of another Node, so that there is none: that one is not ended, and a person has to act. */
void node_machine_tell_of_another(NodeMachine *m, const KubeNode *n, ClaimStatus *status);
