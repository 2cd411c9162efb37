/* SPDX-License-Identifier: Apache-2.0 */
#include "work-queue.h"

/*
 * An item exists as long as its key is dirty, is to become dirty at some time, is running, or has failures
 * to remember. A run serves every wish that was made before it: what is to be done later is said again by
 * reconcile(), which sees the whole state. Wishes made during the run count.
 */

#include <errno.h>

#include "alloc-util.h"
#include "backoff.h"
#include "hashmap.h"
#include "list.h"

/* So many runs in one iteration of the loop, then others get their turn. */
#define RUNS_PER_ITERATION 32
#define RETRY_JITTER_PERMILLE 200

typedef struct WorkItem {
        WorkQueue *queue;
        ListNode dirty_node;
        bool dirty;
        bool running;
        Timer *later; /* NULL before the first wish for later */
        Backoff backoff;
        char key[];
} WorkItem;

struct WorkQueue {
        Loop *loop;
        Random *random;
        const char *description;
        usec_t retry_base_usec;
        usec_t retry_cap_usec;
        work_fn fn;
        void *userdata;
        Hashmap *items; /* WorkItem by its key */
        List dirty;
        Timer *drain;
        void (*lost)(void *userdata);
        bool *freed; /* set when the queue is freed by its own fn */
};

static WorkItem *work_item_free(WorkItem *i) {
        WorkQueue *q = i->queue;

        if (i->dirty)
                list_remove(&q->dirty, &i->dirty_node);
        timer_free(i->later);
        hashmap_remove(q->items, i->key);
        return mfree(i);
}

/* Frees the item unless there is a reason to keep it. */
static void work_item_gc(WorkItem *i) {
        bool waiting = i->later && timer_is_armed(i->later);

        if (!i->dirty && !i->running && !waiting && i->backoff.failures == 0)
                work_item_free(i);
}

static int work_item_get(WorkQueue *q, const char *key, WorkItem **ret) {
        _cleanup_free_ WorkItem *i = NULL;
        size_t size;
        int r;

        assert(q);
        assert(key);

        *ret = hashmap_get(q->items, key);
        if (*ret)
                return 0;

        size = strlen(key) + 1;
        i = calloc(1, sizeof(*i) + size);
        if (!i)
                return -ENOMEM;
        memcpy(i->key, key, size);
        i->queue = q;
        i->backoff = (Backoff){
                .base_usec = q->retry_base_usec,
                .cap_usec = q->retry_cap_usec,
                .jitter_permille = RETRY_JITTER_PERMILLE,
        };
        r = hashmap_put(q->items, i->key, i);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(i);
        return 0;
}

static void work_item_mark(WorkItem *i) {
        WorkQueue *q = i->queue;

        if (i->dirty)
                return;
        i->dirty = true;
        list_append(&q->dirty, &i->dirty_node);
        timer_arm_earlier(q->drain, loop_now(q->loop));
}

static void on_later(Timer *t, void *userdata) {
        work_item_mark(userdata);
}

/* False if reconcile() freed the queue. */
static bool work_item_run(WorkItem *i) {
        WorkQueue *q = i->queue;
        bool freed = false;

        list_remove(&q->dirty, &i->dirty_node);
        i->dirty = false;
        if (i->later)
                timer_disarm(i->later);

        i->running = true;
        q->freed = &freed;
        q->fn(i->key, q->userdata);
        if (freed)
                return false;
        q->freed = NULL;
        i->running = false;
        work_item_gc(i);
        return true;
}

static void on_drain(Timer *t, void *userdata) {
        WorkQueue *q = userdata;

        /* Only what is dirty now: a key that marks itself again comes back behind the others. */
        for (size_t n = MIN(q->dirty.size, (size_t) RUNS_PER_ITERATION); n > 0 && q->dirty.size > 0; n--)
                if (!work_item_run(CONTAINER_OF(q->dirty.first, WorkItem, dirty_node)))
                        return;
        if (q->dirty.size > 0)
                timer_arm_earlier(q->drain, loop_now(q->loop));
}

int work_queue_new(Loop *l, Random *r, const char *description, usec_t retry_base_usec,
                   usec_t retry_cap_usec, work_fn fn, void *userdata, WorkQueue **ret) {
        _cleanup_(work_queue_freep) WorkQueue *q = NULL;
        int k;

        assert(l);
        assert(r);
        assert(fn);
        assert(ret);

        q = new0(WorkQueue, 1);
        if (!q)
                return -ENOMEM;
        *q = (WorkQueue){
                .loop = l,
                .random = r,
                .description = description,
                .retry_base_usec = retry_base_usec,
                .retry_cap_usec = retry_cap_usec,
                .fn = fn,
                .userdata = userdata,
        };
        k = hashmap_new(HASHMAP_BORROW_KEYS, &q->items);
        if (k < 0)
                return k;
        k = timer_new(l, description, on_drain, q, &q->drain);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(q);
        return 0;
}

WorkQueue *work_queue_free(WorkQueue *q) {
        WorkItem *i;

        if (!q)
                return NULL;
        if (q->freed)
                *q->freed = true;
        while ((i = hashmap_first(q->items, NULL)))
                work_item_free(i);
        hashmap_free(q->items);
        timer_free(q->drain);
        return mfree(q);
}

void work_queue_set_lost(WorkQueue *q, void (*lost)(void *userdata)) {
        q->lost = lost;
}

void work_queue_note_lost(WorkQueue *q) {
        if (q->lost)
                q->lost(q->userdata);
}

static int noted(WorkQueue *q, int r) {
        if (r < 0)
                work_queue_note_lost(q);
        return r;
}

int work_queue_add(WorkQueue *q, const char *key) {
        WorkItem *i;
        int r;

        r = noted(q, work_item_get(q, key, &i));
        if (r < 0)
                return r;
        work_item_mark(i);
        return 0;
}

static int work_item_mark_at(WorkItem *i, usec_t at_usec) {
        WorkQueue *q = i->queue;
        int r;

        if (at_usec <= loop_now(q->loop)) {
                work_item_mark(i);
                return 0;
        }
        if (at_usec == USEC_INFINITY || i->dirty)
                return 0; /* never, or sooner than wished for */

        if (!i->later) {
                r = timer_new(q->loop, q->description, on_later, i, &i->later);
                if (r < 0)
                        return r;
        }
        timer_arm_earlier(i->later, at_usec);
        return 0;
}

int work_queue_add_at(WorkQueue *q, const char *key, usec_t at_usec) {
        WorkItem *i;
        int r;

        r = noted(q, work_item_get(q, key, &i));
        if (r < 0)
                return r;
        r = noted(q, work_item_mark_at(i, at_usec));
        work_item_gc(i);
        return r;
}

int work_queue_retry(WorkQueue *q, const char *key) {
        usec_t at;
        WorkItem *i;
        int r;

        r = noted(q, work_item_get(q, key, &i));
        if (r < 0)
                return r;
        at = usec_add(loop_now(q->loop), backoff_next(&i->backoff, q->random));
        return noted(q, work_item_mark_at(i, at));
}

void work_queue_forget(WorkQueue *q, const char *key) {
        WorkItem *i = hashmap_get(q->items, key);

        if (!i)
                return;
        backoff_reset(&i->backoff);
        work_item_gc(i);
}

void work_queue_remove(WorkQueue *q, const char *key) {
        WorkItem *i = hashmap_get(q->items, key);

        if (!i)
                return;
        if (i->dirty)
                list_remove(&q->dirty, &i->dirty_node);
        i->dirty = false;
        if (i->later)
                timer_disarm(i->later);
        backoff_reset(&i->backoff);
        work_item_gc(i); /* a running item goes after its run */
}

size_t work_queue_depth(const WorkQueue *q) {
        assert(q);
        return q->dirty.size;
}

usec_t work_queue_due(const WorkQueue *q, const char *key) {
        const WorkItem *i;

        assert(q);
        i = hashmap_get(q->items, key);
        if (!i)
                return USEC_INFINITY;
        return i->dirty ? timer_due(q->drain) : i->later ? timer_due(i->later) : USEC_INFINITY;
}
