/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"
#include "loop-internal.h"

static bool runs_before(const Timer *a, const Timer *b) {
        if (a->run_usec != b->run_usec)
                return a->run_usec < b->run_usec;
        if (a->due_usec != b->due_usec)
                return a->due_usec < b->due_usec;
        return a->arming < b->arming;
}

static void set_position(TimerHeap *h, size_t position, Timer *t) {
        h->timers[position] = t;
        t->position = position;
}

static void sift_up(TimerHeap *h, size_t i) {
        Timer *t = h->timers[i];

        for (; i > 0 && runs_before(t, h->timers[(i - 1) / 2]); i = (i - 1) / 2)
                set_position(h, i, h->timers[(i - 1) / 2]);
        set_position(h, i, t);
}

static void sift_down(TimerHeap *h, size_t i) {
        Timer *t = h->timers[i];

        for (size_t child; (child = 2 * i + 1) < h->n_armed; i = child) {
                if (child + 1 < h->n_armed && runs_before(h->timers[child + 1], h->timers[child]))
                        child++;
                if (!runs_before(h->timers[child], t))
                        break;
                set_position(h, i, h->timers[child]);
        }
        set_position(h, i, t);
}

int timer_heap_reserve(TimerHeap *h) {
        return GREEDY_REALLOC(h->timers, h->allocated, h->n_timers + 1);
}

void timer_heap_put(TimerHeap *h, Timer *t) {
        assert(t->position == TIMER_NOT_ARMED);
        assert(h->n_armed < h->n_timers);

        t->arming = h->armings++;
        set_position(h, h->n_armed++, t);
        sift_up(h, t->position);
}

void timer_heap_remove(TimerHeap *h, Timer *t) {
        size_t i = t->position;
        Timer *last;

        assert(i < h->n_armed && h->timers[i] == t);

        last = h->timers[--h->n_armed];
        t->position = TIMER_NOT_ARMED;
        if (last == t)
                return;
        set_position(h, i, last);
        sift_up(h, i);
        sift_down(h, last->position);
}

/* After the keys of many timers changed. */
void timer_heap_rebuild(TimerHeap *h) {
        for (size_t i = h->n_armed / 2; i > 0; i--)
                sift_down(h, i - 1);
}
