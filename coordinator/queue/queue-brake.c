/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-brake.h"

#include "hashmap.h"
#include "string-util.h"

/* Times that are over are dropped at most once in this time, so that a flood of notices does not walk over all of them each time. */
#define SWEEP_USEC USEC_PER_SEC
/* Maximum number of times of one machine. A notice whose times find no room is held. */
#define TIMES_MAX 48u
/* Maximum number of machines that are counted. A notice for one more is held. */
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

/* The moments at which a notice may take its machine. */
typedef struct Moments {
        usec_t at[3];
        size_t n;
} Moments;

/* A scheduled change is acted upon before_usec ahead of its time. */
static Moments moments_of(const Notice *notice, usec_t before_usec, usec_t now_usec) {
        usec_t announced = notice_announced(notice);
        Moments m = { .at = { MIN(notice->received_usec, now_usec) }, .n = 1 };

        if (announced == USEC_INFINITY || announced <= now_usec)
                return m;
        m.at[m.n++] = announced;
        if (notice->kind == NOTICE_MAINTENANCE && usec_sub(announced, before_usec) > now_usec)
                m.at[m.n++] = usec_sub(announced, before_usec);
        return m;
}

/* Returns the index of the first time that is later than at_usec. */
static size_t counted_find_after(const Counted *c, usec_t at_usec) {
        size_t low = 0, high = c->n_times;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (c->times[middle] <= at_usec)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* Returns false if there is no room. */
static bool counted_add(Counted *c, usec_t at_usec) {
        size_t i = counted_find_after(c, at_usec);

        if (i > 0 && c->times[i - 1] == at_usec)
                return true; /* another try of the same write */
        if (c->n_times == TIMES_MAX)
                return false;
        memmove(c->times + i + 1, c->times + i, (c->n_times - i) * sizeof(usec_t));
        c->times[i] = at_usec;
        c->n_times++;
        return true;
}

/* Returns true if one of the times is less than the window away. */
static bool counted_is_within(const Counted *c, usec_t at_usec) {
        size_t i = counted_find_after(c, usec_sub(at_usec, QUEUE_BRAKE_WINDOW_USEC));

        return i < c->n_times && c->times[i] < usec_add(at_usec, QUEUE_BRAKE_WINDOW_USEC);
}

static void counted_drop_before(Counted *c, usec_t at_usec) {
        size_t n = counted_find_after(c, at_usec);

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

int queue_brake_count(QueueBrake *b, const char *uid, const Notice *notice, usec_t before_usec, usec_t now_usec) {
        Moments m = moments_of(notice, before_usec, now_usec);
        bool has_room = true;
        Counted *c;

        assert(uid);
        sweep(b, now_usec);
        c = hashmap_get(b->counted, uid);
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
        for (size_t i = 0; i < m.n; i++)
                has_room = counted_add(c, m.at[i]) && has_room;
        return has_room;
}

static int count_list(QueueBrake *b, const KubeObject *o, const AnnouncedList *l, usec_t before_usec, usec_t now_usec) {
        int r = 0;

        for (size_t i = 0; i < l->n_items && r >= 0; i++)
                if (announced_is_open(l->items + i))
                        r = queue_brake_count(b, o->meta.uid, l->items[i].notice, before_usec, now_usec);
        return r;
}

int queue_brake_count_view(QueueBrake *b, const ClusterView *view, usec_t before_usec, usec_t now_usec) {
        const KubeNodeClaim *c;
        const KubeNode *n;
        int r = 0;

        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_claims(view, &it, &c);)
                r = count_list(b, &c->object, &c->announced, before_usec, now_usec);
        for (HashmapIterator it = {}; r >= 0 && cluster_view_iterate_nodes(view, &it, &n);)
                r = count_list(b, &n->object, &n->announced, before_usec, now_usec);
        return MIN(r, 0);
}

size_t queue_brake_n_counted(QueueBrake *b, const Notice *notice, usec_t before_usec, usec_t now_usec) {
        Moments m = moments_of(notice, before_usec, now_usec);
        size_t n[ELEMENTSOF(m.at)] = { 0 }, most = 0;
        const Counted *c;

        sweep(b, now_usec);
        HASHMAP_FOREACH (c, b->counted)
                for (size_t i = 0; i < m.n; i++)
                        n[i] += counted_is_within(c, m.at[i]);
        for (size_t i = 0; i < m.n; i++)
                most = MAX(most, n[i]);
        return most;
}

/* AWS announces nothing but scheduled changes for later than minutes from now. */
static bool is_too_far(const Notice *notice) {
        return notice->kind != NOTICE_MAINTENANCE && notice_announced(notice) != USEC_INFINITY &&
               notice_announced(notice) > usec_add(notice->received_usec, QUEUE_BRAKE_WINDOW_USEC);
}

AnnouncedState queue_brake_decide(const Notice *notice, const Announced *same, const Interruption *agents, size_t n_counted, size_t limit) {
        if (interruption_confirms(agents, notice))
                return ANNOUNCED_STANDS;
        if ((same && same->state == ANNOUNCED_HELD) || is_too_far(notice))
                return ANNOUNCED_HELD;
        return n_counted > limit ? ANNOUNCED_HELD : ANNOUNCED_STANDS;
}
