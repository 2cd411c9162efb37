/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

/*
 * On the real clock: a timer of the kernel on the wall clock that is never due, and is cancelled when that clock is set
 * (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). On the virtual clock: a timer of the loop, armed by the step.
 */

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "alloc-util.h"
#include "file-util.h"
#include "loop-internal.h"

struct ClockWatch {
        Loop *loop;
        clock_set_fn fn;
        void *userdata;
        int fd;                  /* real */
        sd_event_source *source; /* real */
        Timer *timer;            /* virtual */
        ListNode clock_watches;
};

/* Fails with -ECANCELED where the clock was set since: armed it is all the same. */
static int arm(int fd) {
        const struct itimerspec never = { .it_value.tv_sec = (time_t) (INT64_MAX / (int64_t) (1000 * USEC_PER_SEC)) };

        if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) < 0 && errno != ECANCELED)
                return -errno;
        return 0;
}

static int on_cancelled(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ClockWatch *w = userdata;
        uint64_t expired;

        if (read(fd, &expired, sizeof(expired)) < 0 && errno != ECANCELED)
                return 0;
        (void) arm(fd);
        w->fn(w->userdata);
        return 0;
}

static int watch_real(ClockWatch *w) {
        int r;

        w->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        if (w->fd < 0)
                return -errno;
        r = arm(w->fd);
        if (r >= 0)
                r = sd_event_add_io(loop_sd_event(w->loop), &w->source, w->fd, EPOLLIN, on_cancelled, w);
        if (r >= 0)
                (void) sd_event_source_set_description(w->source, "clock-watch");
        return r;
}

static void on_step(Timer *t, void *userdata) {
        ClockWatch *w = userdata;

        w->fn(w->userdata);
}

static int watch_virtual(ClockWatch *w) {
        int r = timer_new(w->loop, "clock-watch", on_step, w, &w->timer);

        if (r >= 0)
                list_append(&w->loop->clock_watches, &w->clock_watches);
        return r;
}

void clock_watches_tell(Loop *l) {
        LIST_FOREACH(w, &l->clock_watches, ClockWatch, clock_watches)
                timer_arm(w->timer, 0);
}

int clock_watch_new(Loop *l, clock_set_fn fn, void *userdata, ClockWatch **ret) {
        _cleanup_(clock_watch_freep) ClockWatch *w = NULL;
        int r;

        assert(l && fn && ret);
        w = new0(ClockWatch, 1);
        if (!w)
                return -ENOMEM;
        *w = (ClockWatch){ .loop = l, .fn = fn, .userdata = userdata, .fd = -EBADF };
        r = loop_sd_event(l) ? watch_real(w) : watch_virtual(w);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(w);
        return 0;
}

ClockWatch *clock_watch_free(ClockWatch *w) {
        if (!w)
                return NULL;
        if (w->timer)
                list_remove(&w->loop->clock_watches, &w->clock_watches);
        timer_free(w->timer);
        sd_event_source_unref(w->source);
        closep(&w->fd);
        return mfree(w);
}
