/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-brake.h"

#include "hashmap.h"
#include "string-util.h"

/* Times that are over are dropped at most once in this time, so that a flood of notices does not walk over all of them each time. */
#define SWEEP_USEC USEC_PER_SEC
/* Maximum number of times of one machine. A machine that has as many counts in every window: no sender can push a time out. */
#define TIMES_MAX 32u
/* Maximum number of machines that are counted. At the limit every further notice is held. */
#define COUNTED_MAX 20000u

typedef struct Counted {
        char *uid;
        usec_t times[TIMES_MAX]; /* in ascending order */
        size_t n_times;
} Counted;

struct QueueBrake {
        Hashmap *counted; /* uid -> Counted */
        usec_t swept_usec;
};

static void *counted_free(void *p) {
        Counted *c = p;

        free(c->uid);
        return mfree(c);
}

int queue_brake_new(QueueBrake **ret) {
        _cleanup_(queue_brake_freep) QueueBrake *b = new0(QueueBrake, 1);
        int r;

        assert(ret);
        if (!b)
                return -ENOMEM;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &b->counted);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

QueueBrake *queue_brake_free(QueueBrake *b) {
        if (!b)
                return NULL;
        hashmap_free_with(b->counted, counted_free);
        return mfree(b);
}

size_t queue_brake_limit(size_t n_machines) {
        return MAX((size_t) QUEUE_BRAKE_MIN, n_machines * QUEUE_BRAKE_PERCENT / 100);
}

static void counted_add(Counted *c, usec_t at_usec) {
        size_t i;

        if (c->n_times == TIMES_MAX)
                return;
        for (i = c->n_times++; i > 0 && c->times[i - 1] > at_usec; i--)
                c->times[i] = c->times[i - 1];
        c->times[i] = at_usec;
}

/* Returns true if one of the times is less than the window away. */
static bool counted_is_within(const Counted *c, usec_t at_usec) {
        if (c->n_times == TIMES_MAX)
                return true;
        for (size_t i = 0; i < c->n_times; i++)
                if (usec_sub(MAX(c->times[i], at_usec), MIN(c->times[i], at_usec)) < QUEUE_BRAKE_WINDOW_USEC)
                        return true;
        return false;
}

static void counted_drop_before(Counted *c, usec_t at_usec) {
        size_t n = 0;

        while (n < c->n_times && c->times[n] <= at_usec)
                n++;
        memmove(c->times, c->times + n, (c->n_times - n) * sizeof(usec_t));
        c->n_times -= n;
}

/* Drops the times that no window reaches any more. */
static void sweep(QueueBrake *b, usec_t now_usec) {
        Counted *c;

        if (now_usec >= b->swept_usec && now_usec < usec_add(b->swept_usec, SWEEP_USEC))
                return;
        b->swept_usec = now_usec;
        HASHMAP_FOREACH (c, b->counted) {
                counted_drop_before(c, usec_sub(now_usec, QUEUE_BRAKE_WINDOW_USEC));
                if (c->n_times > 0)
                        continue;
                (void) hashmap_remove(b->counted, c->uid);
                counted_free(c);
        }
}

int queue_brake_count(QueueBrake *b, const char *uid, const Notice *notice, usec_t now_usec) {
        Counted *c = hashmap_get(b->counted, uid);

        assert(uid && notice);
        sweep(b, now_usec);
        if (!c && hashmap_size(b->counted) >= COUNTED_MAX)
                return 0;
        if (!c) {
                c = new0(Counted, 1);
                if (!c)
                        return -ENOMEM;
                if (free_and_strdup(&c->uid, uid) < 0 || hashmap_put(b->counted, c->uid, c) < 0) {
                        counted_free(c);
                        return -ENOMEM;
                }
        }
        counted_add(c, MIN(notice->received_usec, now_usec));
        if (notice_announced(notice) != USEC_INFINITY && notice_announced(notice) > now_usec)
                counted_add(c, notice_announced(notice));
        return 0;
}

static int count_list(QueueBrake *b, const KubeObject *o, const AnnouncedList *l, usec_t now_usec) {
        int r = 0;

        for (size_t i = 0; i < l->n_items && r >= 0; i++)
                if (announced_is_open(l->items + i))
                        r = queue_brake_count(b, o->meta.uid, l->items[i].notice, now_usec);
        return r;
}

int queue_brake_count_view(QueueBrake *b, const ClusterView *view, usec_t now_usec) {
        const KubeNodeClaim *c;
        const KubeNode *n;
        int r = 0;

        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_claims(view, &it, &c);)
                r = count_list(b, &c->object, &c->announced, now_usec);
        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_nodes(view, &it, &n);)
                r = count_list(b, &n->object, &n->announced, now_usec);
        return r;
}

size_t queue_brake_n_counted(QueueBrake *b, const Notice *notice, usec_t now_usec) {
        usec_t announced = notice_announced(notice);
        size_t n_now = 0, n_then = 0;
        const Counted *c;

        sweep(b, now_usec);
        if (hashmap_size(b->counted) >= COUNTED_MAX)
                return SIZE_MAX;
        HASHMAP_FOREACH (c, b->counted) {
                n_now += counted_is_within(c, now_usec);
                n_then += announced != USEC_INFINITY && announced > now_usec && counted_is_within(c, announced);
        }
        return MAX(n_now, n_then);
}

AnnouncedState queue_brake_decide(const Notice *notice, const Announced *same, const Interruption *agents, size_t n_counted, size_t limit) {
        if (interruption_confirms(agents, notice))
                return ANNOUNCED_STANDS;
        if (same && same->state == ANNOUNCED_HELD)
                return ANNOUNCED_HELD;
        return n_counted > limit ? ANNOUNCED_HELD : ANNOUNCED_STANDS;
}
