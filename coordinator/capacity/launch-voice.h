/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Texts about a machine that vesper asks for: Events on its NodeClaim and on the Node whose place it takes, and the journal. */

#include "cloud.h"
#include "termination-context.h"

/* The claim whose place the new one takes; NULL: it is gone. Borrowed. */
const KubeNodeClaim *launch_replaced(const ClusterView *view, const KubeNodeClaim *claim);
/* The Node of a claim, which may be NULL. NULL: there is none. Borrowed. */
const KubeNode *launch_node_of(const ClusterView *view, const KubeNodeClaim *claim);

/* A warning goes to the journal, too. message_id: NULL: none of the catalogue. */
void launch_say(const TerminationContext *context, const KubeNodeClaim *claim, EventType type, const char *message_id,
                const char *reason, const char *message);
/* Reason and sentence for an answer that is no acceptance. Static. */
const char *launch_failure_reason(CloudAnswer answer);
const char *launch_failure_text(CloudAnswer answer);
/* The claim goes without an answer: a machine may be there, and the provider has no operation find. */
extern const char launch_unknown_text[];
/* Free what follows; NULL on ENOMEM. words: the cloud's. */
char *launch_find_message(const char *words);
char *launch_limit_message(const KubeNodeClaim *claim, const char *resource);
char *launch_no_provider_message(const KubeNodeClaim *claim);
/* is_replaced: its NodePool asks for another one. */
char *launch_timeout_message(const KubeNodeClaim *claim, bool is_replaced, usec_t timeout_usec);
