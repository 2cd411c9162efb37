/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Level-triggered work: a key is dirty or it is not. Watch events and timers only mark keys; the queue runs
 * reconcile(key) once per marking, in order, a bounded number per loop iteration so that nothing starves. Marking a key
 * while it runs makes it run again. A run serves every wish made before it, also one for later. reconcile() must not
 * block: it starts what must be waited for and returns; whoever is waited for marks the key.
 */

#include "loop.h"
#include "random.h"

typedef struct WorkQueue WorkQueue;

/* `key` is borrowed for the call. */
typedef void (*work_fn)(const char *key, void *userdata);

/* retry_base_usec, retry_cap_usec: per-key backoff of work_queue_retry(). */
int work_queue_new(Loop *l, Random *r, const char *description, usec_t retry_base_usec, usec_t retry_cap_usec,
                   work_fn fn, void *userdata, WorkQueue **ret);
WorkQueue *work_queue_free(WorkQueue *q);
DEFINE_FREEP(WorkQueue, work_queue_free);

int work_queue_add(WorkQueue *q, const char *key);                            /* dirty now; 0 or -ENOMEM */
int work_queue_add_at(WorkQueue *q, const char *key, usec_t at_usec);         /* dirty then; the earliest wish wins */
int work_queue_retry(WorkQueue *q, const char *key);                          /* dirty after this key's next backoff */
void work_queue_forget(WorkQueue *q, const char *key);                        /* success: its backoff starts over */
void work_queue_remove(WorkQueue *q, const char *key);                        /* not wanted any more, timers included */
size_t work_queue_depth(const WorkQueue *q);                                  /* dirty now */
/* Returns when the queue runs the key next (loop_now()); USEC_INFINITY: not before somebody marks the
 * key. */
usec_t work_queue_due(const WorkQueue *q, const char *key);

/* lost() is told of each key that is not noted for want of memory: whoever marks it may not know what to do about it.
 * It must not free the queue. */
void work_queue_set_lost(WorkQueue *q, void (*lost)(void *userdata));
void work_queue_note_lost(WorkQueue *q); /* of a key that its owner could not even write */
