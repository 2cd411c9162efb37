/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cmocka-test.h"
#include "wakeup.h"

static inline void awake_check_asleep(const char *text, void *userdata) {
        fail_msg("asleep: %s", text);
}

/* Fails if an unfinished thing of the object has nothing that wakes it (wakeup.h). next_wakeup: the object's function
 * x_next_wakeup(). Returns the number of unfinished things. */
#define assert_awake(loop, next_wakeup, object) \
        ({ \
                Wakeups _w; \
                wakeups_begin(&_w, (loop), awake_check_asleep, NULL); \
                next_wakeup((object), &_w); \
                wakeups_end(&_w); \
                _w.n_unfinished; \
        })
