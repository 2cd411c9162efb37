/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-brake.h"

#include "hashmap.h"
#include "string-util.h"

/* Counts that are over are dropped at most once in this time, so that a decision costs no walk over all of them. */
#define SWEEP_USEC USEC_PER_SEC

typedef struct Counted {
        char *uid;
        usec_t received_usec;
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

int queue_brake_count(QueueBrake *b, const char *uid, usec_t received_usec, usec_t now_usec) {
        Counted *c = hashmap_get(b->counted, uid);

        assert(uid);
        if (!c) {
                c = new0(Counted, 1);
                if (!c)
                        return -ENOMEM;
                if (free_and_strdup(&c->uid, uid) < 0 || hashmap_put(b->counted, c->uid, c) < 0) {
                        counted_free(c);
                        return -ENOMEM;
                }
        }
        c->received_usec = MAX(c->received_usec, MIN(received_usec, now_usec));
        return 0;
}

static int count_list(QueueBrake *b, const KubeObject *o, const AnnouncedList *l, usec_t now_usec) {
        int r = 0;

        for (size_t i = 0; i < l->n_items && r >= 0; i++)
                if (usec_add(l->items[i].notice->received_usec, QUEUE_BRAKE_WINDOW_USEC) > now_usec)
                        r = queue_brake_count(b, o->meta.uid, l->items[i].notice->received_usec, now_usec);
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

static void sweep(QueueBrake *b, usec_t now_usec) {
        Counted *c;

        if (now_usec >= b->swept_usec && now_usec < usec_add(b->swept_usec, SWEEP_USEC))
                return;
        b->swept_usec = now_usec;
        HASHMAP_FOREACH (c, b->counted)
                if (now_usec >= usec_add(c->received_usec, QUEUE_BRAKE_WINDOW_USEC)) {
                        (void) hashmap_remove(b->counted, c->uid);
                        counted_free(c);
                }
}

size_t queue_brake_n_counted(QueueBrake *b, usec_t now_usec) {
        sweep(b, now_usec);
        return hashmap_size(b->counted);
}

AnnouncedState queue_brake_decide(const Notice *notice, const Announced *same, const Interruption *agents, size_t n_counted, size_t n_machines) {
        if (interruption_confirms(agents, notice))
                return ANNOUNCED_STANDS;
        if (same && same->state == ANNOUNCED_HELD)
                return ANNOUNCED_HELD;
        return n_counted > queue_brake_limit(n_machines) ? ANNOUNCED_HELD : ANNOUNCED_STANDS;
}
