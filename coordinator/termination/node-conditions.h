/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The conditions that the coordinator puts on one Node: of each type the newest is what is written, a second
 * after it changed (what does not last so long costs no write), those that wait go in one patch, one patch
 * is under way at a time, and it is tried again until the API server takes it. The patch names the Node's
 * uid: one that was made anew under the same name gets none of them (404 and 422 end it). Never waited for.
 */

#include "kube-client.h"
#include "kube-kinds.h"

typedef struct NodeConditions NodeConditions;

int node_conditions_new(KubeClient *c, HttpGuard guard, const char *node, const char *uid,
                        NodeConditions **ret);
NodeConditions *node_conditions_free(NodeConditions *s); /* what was not sent is not sent any more */
DEFINE_FREEP(NodeConditions, node_conditions_free);

/* type: static (marks.h). The transition is now. Setting what is set changes nothing; short of memory the
 * old text stays. */
void node_conditions_set(NodeConditions *s, const char *type, ConditionStatus status, const char *reason,
                         const char *message);
/* The Node is about to go, and who would read it? What was not told yet is told only if it is still there in
 * 20 seconds. */
void node_conditions_hold(NodeConditions *s);
void node_conditions_end(NodeConditions *s); /* the Node is gone: nothing is told any more */
void node_conditions_flush(NodeConditions *s); /* what was not told yet is told at once */
