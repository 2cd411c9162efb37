/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a person asks of vesper by an annotation, and the few objects that verbs read for that. Everything is one
 * call; a call's errors are said in words (ctl-say.h).
 */

#include "ctl-status.h"
#include "ctl.h"

/* Returns a merge patch that pauses removals. The patch records command ("pause") and the person who runs
 * this process. Free it; NULL on ENOMEM. */
char *ctl_pause_patch(const Ctl *ctl, const char *command);

/* reply's error in words on standard error, prefixed by nothing. True: there was one. */
bool ctl_complain_of(const KubeReply *reply, const char *rbac_verb, const KubeTarget *t);

/* One object, behind those that *list has. Negative: cannot be understood, -ENOMEM. */
int ctl_take_object(KubeClient *c, const Json *o, const KubeKind *kind, ObjectList *list);
/* The objects of a page of a list, behind those that *list has. *ret_continue: what to ask for the next page with, to be
 * freed; NULL: it was the last. Negative: cannot be understood. */
int ctl_take_page(KubeClient *c, const KubeReply *reply, const KubeKind *kind, ObjectList *list, char **ret_continue);
/* The same of a list that was not asked for in pages. */
int ctl_take_list(KubeClient *c, const KubeReply *reply, const KubeKind *kind, ObjectList *list);

/* Has its removal begun to touch the node: is it past every wait that comes before the cordon? Pure. */
bool ctl_removal_is_running(const KubeNodeClaim *claim);
