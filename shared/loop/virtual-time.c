/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "alloc-util.h"
#include "loop-internal.h"

/* The machines of a simulation have been up for a while: zero and "now" must not look alike. */
#define VIRTUAL_BOOT_USEC (1000 * USEC_PER_SEC)

int virtual_time_new(usec_t start_wall_usec, VirtualTime **ret) {
        VirtualTime *v;

        assert(ret);
        v = new0(VirtualTime, 1);
        if (!v)
                return -ENOMEM;
        v->now_usec = VIRTUAL_BOOT_USEC;
        v->start_wall_usec = start_wall_usec;
        *ret = v;
        return 0;
}

VirtualTime *virtual_time_free(VirtualTime *v) {
        if (!v)
                return NULL;
        assert(v->n_loops == 0);
        free(v->heap.timers);
        return mfree(v);
}

usec_t virtual_time_now(const VirtualTime *v) {
        assert(v);
        return v->now_usec;
}

usec_t virtual_time_wall(const VirtualTime *v, int64_t step_usec) {
        usec_t wall = usec_add(v->start_wall_usec, v->now_usec - VIRTUAL_BOOT_USEC);

        return step_usec < 0 ? usec_sub(wall, 0 - (usec_t) step_usec) : usec_add(wall, (usec_t) step_usec);
}

static Timer *next_timer(const VirtualTime *v, usec_t limit_usec) {
        Timer *t = timer_heap_first(&v->heap);

        return t && t->run_usec <= limit_usec && t->run_usec != USEC_INFINITY ? t : NULL;
}

const Loop *virtual_time_next(const VirtualTime *v, usec_t limit_usec) {
        const Timer *t;

        assert(v);
        t = next_timer(v, limit_usec);
        return t ? t->loop : NULL;
}

int virtual_time_step(VirtualTime *v, usec_t limit_usec) {
        Timer *t;

        assert(v);
        t = next_timer(v, limit_usec);
        if (!t) {
                if (limit_usec != USEC_INFINITY)
                        v->now_usec = MAX(v->now_usec, limit_usec);
                return 0;
        }

        v->now_usec = MAX(v->now_usec, t->run_usec);
        timer_heap_remove(&v->heap, t);
        t->fn(t, t->userdata); /* may free the timer, and its whole process with it */
        return 1;
}

/* loop_run() of one process: the whole world goes on until that process exits. */
int virtual_time_run(Loop *l) {
        while (!l->exited)
                if (virtual_time_step(l->virtual_time, USEC_INFINITY) == 0)
                        return -EDEADLK; /* nothing will ever happen again */
        return l->exit_code;
}

void loop_virtual_step_wall(Loop *l, int64_t delta_usec) {
        assert(l);
        assert(l->virtual_time);
        if (__builtin_add_overflow(l->wall_step_usec, delta_usec, &l->wall_step_usec))
                l->wall_step_usec = delta_usec < 0 ? INT64_MIN : INT64_MAX;
        clock_watches_tell(l);
}

void loop_virtual_pause(Loop *l, usec_t until_usec) {
        TimerHeap *h;

        assert(l);
        assert(l->virtual_time);

        l->paused_until_usec = l->exited ? USEC_INFINITY : until_usec;
        h = l->heap;
        for (size_t i = 0; i < h->n_armed; i++)
                if (h->timers[i]->loop == l)
                        h->timers[i]->run_usec = MAX(h->timers[i]->due_usec, l->paused_until_usec);
        timer_heap_rebuild(h);
}

void loop_virtual_lose_timers(Loop *l, const char *description) {
        assert(l && l->virtual_time && description);
        for (size_t i = l->heap->n_armed; i > 0; i--) {
                Timer *t = l->heap->timers[i - 1];

                if (t->loop != l || strcmp(t->description, description) != 0)
                        continue;
                timer_disarm(t);
                i = l->heap->n_armed + 1; /* disarming a timer moves others in the heap */
        }
}
