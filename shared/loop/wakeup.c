/* SPDX-License-Identifier: Apache-2.0 */
#include "wakeup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc-util.h"

#define TEXT_BYTES_MAX 256u /* names of objects have up to 253 bytes; a longer text is cut */

void wakeups_begin(Wakeups *w, const Loop *l, wakeups_asleep_t asleep, void *userdata) {
        assert(w && l && asleep);
        *w = (Wakeups){ .now_usec = loop_now(l), .asleep = asleep, .userdata = userdata };
}

void wakeups_end(Wakeups *w) {
        char text[2 * TEXT_BYTES_MAX];

        if (!w->what)
                return;
        if (w->reported)
                w->reported(w->what, w->name, w->state, w->userdata);
        if (!w->is_awaited && w->due_usec == USEC_INFINITY) {
                snprintf(text, sizeof(text), "%s %.*s (%s) has no timer, no call and no watch", w->what,
                         (int) TEXT_BYTES_MAX, w->name, w->state);
                w->asleep(text, w->userdata);
        } else if (!w->is_awaited && w->due_usec > usec_add(w->now_usec, w->bound_usec)) {
                snprintf(text, sizeof(text),
                         "%s %.*s (%s) has only a timer in %" PRIu64 " s, later than %" PRIu64 " s",
                         w->what, (int) TEXT_BYTES_MAX, w->name, w->state,
                         (w->due_usec - w->now_usec) / USEC_PER_SEC, w->bound_usec / USEC_PER_SEC);
                w->asleep(text, w->userdata);
        }
        w->what = NULL;
}

void wakeups_unfinished(Wakeups *w, const char *what, const char *name, const char *state,
                        usec_t bound_usec) {
        assert(what && name && state);
        wakeups_end(w);
        w->what = what;
        w->name = name;
        w->state = state;
        w->bound_usec = bound_usec;
        w->due_usec = USEC_INFINITY;
        w->is_awaited = false;
        w->n_unfinished++;
}

void wakeups_at(Wakeups *w, usec_t at_usec) {
        assert(w->what);
        w->due_usec = MIN(w->due_usec, at_usec);
}

void wakeups_timer(Wakeups *w, const Timer *t) {
        if (t)
                wakeups_at(w, timer_due(t));
}

void wakeups_key(Wakeups *w, const WorkQueue *q, const char *key) {
        wakeups_at(w, work_queue_due(q, key));
}

void wakeups_await(Wakeups *w, bool is_awaited) {
        assert(w->what);
        w->is_awaited = w->is_awaited || is_awaited;
}
