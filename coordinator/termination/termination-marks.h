/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the coordinator writes on a Node it terminates, as patches: pure functions of the Node in view. Every
 * body carries the resourceVersion that it was decided on (409: look again, decide again). kube/marks.h has
 * the names and the rules.
 */

#include "kube-kinds.h"

/* Cordon, taint, load balancer label and deadline in one merge patch. deadline_usec: wall clock;
 * USEC_INFINITY: none. 1: *ret_body is to be sent (free it); 0: all of it is there already; -ENOMEM. */
int termination_cordon_patch(const KubeNode *n, const char *why, usec_t deadline_usec, char **ret_body);
/* The same without the label: a node that waits for protected pods goes on serving them until its drain begins. */
int termination_hold_patch(const KubeNode *n, const char *why, usec_t deadline_usec, char **ret_body);
/* Takes off what the coordinator put on, finalizer included: the pool lets its node go. The node is
 * un-cordoned only if ours is the last cordon mark, and not while it is being deleted. announced: stays there, or is put there, as
 * ANNOTATION_ANNOUNCED: what its claim said, for who manages it next; a drain for that, and its cordon, stay, too. NULL: nothing.
 * 1, 0 (nothing of ours is there, but for that), -ENOMEM. */
int termination_release_patch(const KubeNode *n, const char *announced, char **ret_body);
/* What becomes of the cordon, and of the label for load balancers, that stand for what the interruption queue told. */
typedef enum HeardCordon {
        HEARD_CORDON_KEEP,
        HEARD_CORDON_PUT,
        HEARD_CORDON_LEAVE, /* our mark goes, and the Node is as schedulable as it is: a person has decided about that */
        HEARD_CORDON_OPEN,  /* our mark goes, and if it is the last the Node is schedulable again */
} HeardCordon;

/* ANNOTATION_HEARD of a Node that is kept; heard NULL takes it off. 1, -ENOMEM. */
int termination_heard_patch(const KubeNode *n, const char *heard, HeardCordon cordon, char **ret_body);
/* This annotation; value NULL takes it off. 1, 0 (it is so already), -ENOMEM. */
int termination_annotation_patch(const KubeObject *o, const char *key, const char *value, char **ret_body);
/* The taint by which Kubernetes' controllers take pods and volumes off a node whose machine is off, and the
 * annotation that it is ours, since now_usec (wall clock). 1, 0 (a taint of that key is there, or ours was),
 * -ENOMEM. */
int termination_out_of_service_patch(const KubeNode *n, usec_t now_usec, char **ret_body);
/* Takes both off again. 1, 0 (none of ours is there), -ENOMEM. */
int termination_in_service_patch(const KubeNode *n, char **ret_body);
/* The finalizers without ours. 1, 0 (it is not there), -ENOMEM. Works for every kind. */
int termination_finalizer_patch(const KubeObject *o, char **ret_body);
/* Of a Node that this NodePool adopts: the finalizers with ours, and the label by which people select its nodes, where it has
 * none. pool "": by a claim of none, no label. 1, 0 (both are there), -ENOMEM. */
int termination_adopt_patch(const KubeNode *n, const char *pool, char **ret_body);
/* The finalizers with ours. 1, 0 (it is there), -ENOMEM. */
int termination_add_finalizer_patch(const KubeObject *o, char **ret_body);
