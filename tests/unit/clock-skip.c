/* SPDX-License-Identifier: Apache-2.0 */
#include "clock-skip.h"

#include <sys/syscall.h>
#include <unistd.h>

/* The only state: clock_gettime() has no argument for it. */
static usec_t skipped_usec;

void clock_skip(usec_t usec) {
        skipped_usec += usec;
}

/* Not instrumented: the sanitizer calls it before its own start is complete. */
int clock_gettime(clockid_t id, struct timespec *t) __attribute__((no_sanitize("address", "undefined")));
int clock_gettime(clockid_t id, struct timespec *t) {
        int r = (int) syscall(SYS_clock_gettime, id, t);
        usec_t usec = (usec_t) (t->tv_nsec / 1000) + skipped_usec % USEC_PER_SEC;

        if (r < 0)
                return r;
        t->tv_sec += (time_t) (skipped_usec / USEC_PER_SEC + usec / USEC_PER_SEC);
        t->tv_nsec = (long) (usec % USEC_PER_SEC * 1000) + t->tv_nsec % 1000;
        return 0;
}
