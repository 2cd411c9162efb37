/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * node-cleanup.c: takes everything of the agent's off its Node, once, for a machine from which the agent is
 * removed: the Node is read, node-marks.c says what is ours, one patch takes it off, one deletes our
 * conditions. A conflict reads again. A person's cordon, the coordinator's, and a Node that is being deleted
 * are left as node_patch_undo() says.
 */

#include "kube-client.h"

typedef struct NodeCleanup NodeCleanup;

typedef struct NodeCleanupResult {
        bool found;      /* something of ours stood there */
        bool uncordoned; /* the node became schedulable by this */
        int error; /* 0: nothing of ours is left; else what went wrong, and what the server said of it (may
                      be NULL) */
        const char *message;
} NodeCleanupResult;

/* Once, from the loop; may free the NodeCleanup as its last act. */
typedef void (*node_cleanup_done_t)(const NodeCleanupResult *result, void *userdata);

/* timeout_usec: for all of it. */
int node_cleanup_new(KubeClient *c, const char *node, usec_t timeout_usec, node_cleanup_done_t done,
                     void *userdata, NodeCleanup **ret);
NodeCleanup *node_cleanup_free(NodeCleanup *r); /* cancels */
DEFINE_FREEP(NodeCleanup, node_cleanup_free);
