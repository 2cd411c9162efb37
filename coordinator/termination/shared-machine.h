/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Several Nodes that name one machine in spec.providerID. The machine is ended for none of them while another one of
 * them needs it: one that is not being deleted, or one whose own drain still waits for pods and whose own deadline has
 * not passed. A pod that comes back for ever, and that its drain lets stay, is not waited for. After that the proof of identity decides whose machine it is (machine-end.h), and all of these Nodes go
 * when it is gone. Reads the view, changes nothing.
 */

#include "termination-context.h"

/* The first other Node that needs the machine of this one; NULL: none does. Borrowed from the view. */
const KubeNode *shared_machine_needed_by(const TerminationContext *context, const KubeNode *n);
/* Why the machine is not ended, and what a person can do about it. NULL: ENOMEM. */
char *shared_machine_message(const KubeNode *n, const KubeNode *needed_by);
