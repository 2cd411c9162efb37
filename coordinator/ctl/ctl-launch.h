/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How far a NodeClaim is whose machine vesper asks for (spec.replaces), for `vesperctl explain`, `status`
 * and `release`. Pure.
 */

#include "kube-kinds.h"

typedef enum LaunchState {
        LAUNCH_STATE_NOT_ASKED,   /* no request has been recorded */
        LAUNCH_STATE_ASKED,       /* no answer is recorded, or an accepted request has no machine yet */
        LAUNCH_STATE_NO_CAPACITY, /* the cloud's last answer, here and in the next three */
        LAUNCH_STATE_FAILED,
        LAUNCH_STATE_UNKNOWN,
        LAUNCH_STATE_REFUSED,
        LAUNCH_STATE_LAUNCHED,    /* the machine has a providerID and no Node */
        LAUNCH_STATE_REGISTERED,  /* the Node is there and does not take pods yet */
        LAUNCH_STATE_READY,       /* condition Initialized */
        LAUNCH_STATE_DELETED,     /* the claim was deleted before its node took pods */
        _LAUNCH_STATE_MAX,
} LaunchState;

/* Returns the state of a claim that has spec.replaces. */
LaunchState launch_state(const KubeNodeClaim *claim);
/* Returns the state as a reason: "NoCapacity". */
const char *launch_state_to_string(LaunchState s);
/* Returns true if vesper asks, or has asked, for the machine of the claim, and its Node was never seen. */
bool launch_is_without_node(const KubeNodeClaim *claim);
/* Returns "a machine like aws:///z/i-1, zone z, capacity type spot". Free it; NULL on ENOMEM. */
char *launch_request_text(const KubeNodeClaim *claim);
/* Returns when vesper stops asking for the machine; USEC_INFINITY: it never asked, or knows the machine. */
usec_t launch_asked_until(const KubeNodeClaim *claim);
