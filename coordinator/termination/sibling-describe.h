/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * "No such machine" counts only where the cloud has shown another one of ours: else it may be the wrong
 * region or account that is asked (cloud.h). So before a machine is looked for that may be gone, one is
 * looked at that must be there. What is learnt stays with the provider.
 */

#include "cloud.h"
#include "cluster-view.h"

typedef struct SiblingDescribe {
        CloudCall *call;
        size_t next; /* so many Nodes were asked about: the cloud may not show the first of them */
} SiblingDescribe;

/* Looks at the machine of a Node in service, each time at that of the next, but not that of the Node of this uid (NULL: of any). Nothing
 * happens while a look is under way, or where there is none. */
void sibling_describe(SiblingDescribe *s, CloudProvider *provider, const ClusterView *view, const char *except_uid);
void sibling_describe_free(SiblingDescribe *s);
