/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When the coordinator deletes the NodeClaim of an interrupted node: by what its agent saw and what the interruption queue told
 * ([Policy] Delete= of coordinator.conf). Pure.
 */

#include "coordinator-config.h"
#include "kube-kinds.h"

typedef struct InterruptionDue {
        usec_t at_usec; /* wall clock; USEC_INFINITY: not for an interruption */
        bool replaces;  /* such a notice ends a machine that its cloud does not replace: spot, retirement */
} InterruptionDue;

InterruptionDue interruption_due(const CoordinatorConfig *config, const KubeNode *n, const KubeNodeClaim *claim);
