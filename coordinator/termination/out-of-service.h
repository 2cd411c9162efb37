/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nodes whose machine is off, and which stay in the API: Kubernetes cannot know that nothing runs there any
 * more, so pods that are to go hang in Terminating, and their volumes stay attached, for ever. The taint
 * node.kubernetes.io/out-of-service=nodeshutdown:NoExecute says so (KEP-2268): Kubernetes' own controllers
 * remove the pods at once, and detach the volumes. That is dangerous where the machine runs: two may then write
 * one volume. So it needs all of this:
 *
 *   the Node           is a pool's (our finalizer), being deleted or not, and the only one with its machine; has
 *                      not been Ready for a minute, seen by a view that stands; has pods that a drain would wait
 *                      for, or volumes
 *   the provider       says that the machine is off, or gone, of an instance that was proved to be this Node's
 *                      (machine-end.h): unknown is neither, nor is one that is about to stop
 *   the answer         is to a question that is at most 30 s old when the patch is sent; the patch carries the
 *                      resourceVersion of the Node that was not Ready
 *
 * The provider is asked at most once a minute per node, less often while the machine runs; its engine bounds how
 * many are asked at once. Beside the taint stands an annotation (ANNOTATION_OUT_OF_SERVICE), that it is ours:
 * both go when the node is Ready again, or is released. A taint that somebody else has put is left alone, and
 * one of ours that a person takes off is not put again before the node was Ready.
 *
 * A machine that is off is not gone: no finalizer goes for it.
 */

#include "termination-context.h"
#include "object-writes.h"
#include "wakeup.h"

typedef struct OutOfService OutOfService;

/* All borrowed. */
int out_of_service_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes,
                       OutOfService **ret);
OutOfService *out_of_service_free(OutOfService *o); /* questions under way are dropped */
DEFINE_FREEP(OutOfService, out_of_service_free);

/* Level-triggered; n NULL: it is gone. ending: its removal has told the cloud to end the machine, and asks about it itself.
 * key: "node/NAME", dirty again when there is more to do. */
void out_of_service_see_node(OutOfService *o, const char *name, const KubeNode *n, bool ending, const char *key);
/* The view lost its watches, or has them back: silences are counted anew. It stands at first. */
void out_of_service_view_changed(OutOfService *o, bool stands);
/* Reports each node that is not Ready and whose machine the provider is to describe, and the describe. The
 * node is reconciled again within OUT_OF_SERVICE_WAKEUP_USEC. While a watch is not synced nothing is
 * reconciled; once all are, every such node is. */
#define OUT_OF_SERVICE_WAKEUP_USEC (7 * USEC_PER_MINUTE)
void out_of_service_next_wakeup(const OutOfService *o, Wakeups *w);
