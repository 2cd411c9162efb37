/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-shrink.h"

#include <string.h>

#include "fake-json.h"

typedef struct Shrink {
        bool *keep, *try;
        size_t n;
        sim_shows_t shows;
        void *userdata;
} Shrink;

static size_t n_kept(const Shrink *s) {
        size_t k = 0;

        for (size_t i = 0; i < s->n; i++)
                k += s->keep[i];
        return k;
}

/* Without the kept ones from..to, counted among the kept. */
static int try_without(Shrink *s, size_t from, size_t to) {
        size_t k = 0;
        int r;

        memcpy(s->try, s->keep, s->n * sizeof(bool));
        for (size_t i = 0; i < s->n; i++)
                if (s->keep[i]) {
                        if (k >= from && k < to)
                                s->try[i] = false;
                        k++;
                }
        r = s->shows(s->try, s->n, s->userdata);
        if (r > 0)
                memcpy(s->keep, s->try, s->n * sizeof(bool));
        return r;
}

/* One round with pieces of this size, from the end: what comes late is more often needless. 1: something
 * could go. */
static int round_of(Shrink *s, size_t size) {
        size_t end = n_kept(s);
        int any = 0;

        while (end > 0) {
                size_t from = end > size ? end - size : 0;
                int r = try_without(s, from, end);

                if (r < 0)
                        return r;
                any |= r;
                end = from;
        }
        return any;
}

int sim_shrink(bool *keep, size_t n, sim_shows_t shows, void *userdata) {
        _cleanup_free_ bool *try = MUST(new0(bool, n + 1));
        Shrink s = { keep, try, n, shows, userdata };
        size_t size = MAX(n_kept(&s) / 2, (size_t) 1);

        for (;;) {
                int r = n_kept(&s) > 0 ? round_of(&s, size) : 0;

                if (r < 0)
                        return r;
                if (r == 0 && size == 1)
                        return 0;
                if (r == 0)
                        size /= 2;
        }
}
