/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * node/: this machine's Node object and what surrounds it.
 *
 * node-marks.c: pure. What of ours is on the Node (marks.h), and the bodies of the patches that put it there
 * and take it off. Every body carries the resourceVersion of the Node that it was made from: a stale one is
 * refused with 409, and decided again.
 */

#include "interruption.h"
#include "kube-kinds.h"

/* Returns the interruption on this Node, written in whatever boot. NULL: none that an agent of ours wrote whole. Borrowed. */
const Interruption *node_interruption(const KubeNode *n);
/* Our cordon or our interruption stands on this Node; one that a person overruled is none. */
bool node_has_marks(const KubeNode *n);
/* Among them one that node_patch_undo() takes off. */
bool node_has_marks_to_undo(const KubeNode *n);
/* A person overruled an interruption of this boot: it stands there as Released until the notice is over, for an agent
 * whose disk lost it. id: of its notice; NULL: of any. */
bool node_is_overruled(const KubeNode *n, const char *notice_id, const char *boot_id);
/* The boot in which they were made, or NULL where it cannot be read; free it. -ENOMEM. */
int node_marks_boot_id(const KubeNode *n, char **ret);
/* The interruption of this notice, in this boot, stands on the Node, and nobody has overruled it. */
bool node_is_marked_with(const KubeNode *n, const char *notice_id, const char *boot_id);
/* Unschedulable, and nobody of vesper (agent, coordinator, vesperctl) did it: never claimed, never undone. */
bool node_is_cordoned_by_stranger(const KubeNode *n);
/* Interrupted, yet schedulable: a person un-cordoned, as our first patch sets both at once. */
bool node_was_uncordoned(const KubeNode *n);
/* vesper.sh/deadline (wall clock); 0: none, or not readable. */
usec_t node_claim_deadline(const KubeNode *n);

/* What our conditions say. Of the last three types one that is True and somebody else's is left alone. */
typedef enum DrainConditions {
        NODE_CONDITIONS_NONE,
        NODE_CONDITIONS_PLANNED,  /* MaintenancePlanned=True */
        NODE_CONDITIONS_DRAINING, /* DrainInProgress, MaintenanceInProgress=True; of a shutdown GracefulNodeShutdownInProgress, too */
        NODE_CONDITIONS_DRAINED,  /* DrainInProgress=False, Drained, MaintenanceInProgress=True; GracefulNodeShutdownInProgress=False */
        _NODE_CONDITIONS_MAX,
} DrainConditions;

DrainConditions node_conditions(const KubeNode *n);
/* What is wanted stands there: nothing is to be written. kind: of the notice. */
bool node_conditions_stand(const KubeNode *n, DrainConditions wanted, NoticeKind kind);
/* Ours of that type, in whatever state; else NULL. */
const Condition *node_own_condition(const KubeNode *n, const char *type);

/* Each: the body, or NULL on ENOMEM. */

/* Merge patch. The first act: cordon (claimed unless a stranger has cordoned), annotation, and the load
 * balancers' label where there is none. */
char *node_patch_mark(const KubeNode *n, const char *interruption, const char *boot_id, const char *why,
                      bool *ret_claimed);
/* Merge patch: the annotation alone. */
char *node_patch_interruption(const KubeNode *n, const char *interruption);
/* Merge patch: one annotation; value NULL takes it off. */
char *node_patch_annotation(const KubeNode *n, const char *key, const char *value);
/* Strategic merge patch of the status; NONE deletes those of ours that are there. kind: of the notice, of which the causes
 * come. message: begins with "vesper-agent". */
char *node_patch_conditions(const KubeNode *n, DrainConditions wanted, NoticeKind kind, const char *message,
                            usec_t wall_now_usec);

/* Merge patch that takes off exactly our marks. 1: *ret is it, *ret_uncordons whether the node becomes
 * schedulable by it; 0: nothing is there to take off; -ENOMEM. A node that is being deleted keeps its
 * cordon, as does one that the coordinator or vesperctl has cordoned too. */
int node_patch_undo(const KubeNode *n, char **ret, bool *ret_uncordons);
/* The same after a person un-cordoned: whoever has cordoned the node since then, it was not us. The interruption stays,
 * as Released; but not that of a shutdown, which ends with this boot or is called off. */
int node_patch_overruled(const KubeNode *n, char **ret);
