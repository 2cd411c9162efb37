/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A person pauses the removal of nodes: the annotation vesper.sh/paused on a NodePool, or on the namespace of the
 * coordinator's Lease for all of them. No removal begins while it is there; those under way go on. When it is taken off, what
 * has piled up begins at the pace of resume-pace.h, in the order of deletion.
 *
 *      paused ---annotation gone---> resuming ---pace has ended---> (nothing is held)
 *         ^------annotation---------------+
 *
 * The pool's condition Paused says the same, and by it the next leader knows that a pool was paused or is resuming.
 * Interruptions, deadlines and nodes that are not Ready are not held: that is for the caller to know.
 */

#include "termination-context.h"
#include "wakeup.h"
#include "work-queue.h"

typedef struct Pauses Pauses;

/* queue: by which pools are looked at again ("pool/NAME"). The view is complete. */
int pauses_new(const TerminationContext *context, WorkQueue *queue, Pauses **ret);
Pauses *pauses_free(Pauses *p);
DEFINE_FREEP(Pauses, pauses_free);

/* Of this pool (NULL: of none) none is to begin now. */
bool pauses_is_paused(const Pauses *p, const KubeNodePool *pool);
/* May the removal of this Node begin? True is said once, and uses its turn up. False: *ret_message (to be freed; NULL: no
 * memory) says why not, and the node is asked to be reconciled when that has changed. begun_usec: since when it is to go. */
bool pauses_let_begin(Pauses *p, const KubeNode *n, const KubeNodePool *pool, usec_t begun_usec, char **ret_message);
void pauses_forget_node(Pauses *p, const char *node);
/* The annotations may have changed: of this pool (NULL: of the namespace). */
void pauses_see(Pauses *p, const KubeNodePool *pool);
void pauses_forget_pool(Pauses *p, const char *pool);
/* A removal is held up by the cloud, or by a proof that fails: no time to become quicker. Said once of each removal, or one
 * that stays stuck would keep all others at the pace they have. */
void pauses_note_trouble(Pauses *p);
/* For its condition. True: paused, *ret_message says how (to be freed; NULL: no memory). False: not; *ret_reason is
 * "Resuming..." while that goes on, else NULL. *ret_reason is static. */
bool pauses_condition(const Pauses *p, const KubeNodePool *pool, const char **ret_reason, char **ret_message);
/* Reports each node that waits for its turn after a pause, unless a person has paused its removal again.
 * Also reports each lifted pause whose nodes still begin one by one. The next turn comes within
 * PAUSES_WAKEUP_USEC. */
#define PAUSES_WAKEUP_USEC (2 * USEC_PER_MINUTE)
void pauses_next_wakeup(const Pauses *p, Wakeups *w);
/* Returns true if pauses_next_wakeup() is responsible for the node: it waits for its turn, or a person has
 * paused its removal. */
bool pauses_has_node(const Pauses *p, const char *node);
