/* SPDX-License-Identifier: Apache-2.0 */
#include "eviction-window.h"

/* A busy API server serves evictions beside what follows from each (kubelets, controllers): on two cores
 * 1,000 took 3.5 s with 100 under way, 2.6 s with 200, no less with 256. But each costs libcurl 25 kB: with
 * 160, 3,000 pods keep to 15 MB. And far more are refused: priority and fairness lets 300 of a client wait
 * beside those it serves, which were 44 while others had borrowed the rest of their level; 400 at once met a
 * 429 six times for each pod then. */
#define SIZE 160u
#define SIZE_MIN 8u
#define PER_SECOND 500u
/* At 500 a second the API server finishes 30 of them between two looks at its answers. */
#define CROWD 80u
/* What is admitted is a delete, and the condition that is set before it. */
#define ADMISSION_REQUESTS 2u
#define SLOW_USEC (2 * USEC_PER_SEC)
#define FLOW_CONTROL_USEC USEC_PER_SEC

static TokenBucket bucket(unsigned per_second) {
        return (TokenBucket){ .burst = MAX(per_second / 3, ADMISSION_REQUESTS), .per_minute = (uint64_t) per_second * 60 };
}

void eviction_window_init(EvictionWindow *w, unsigned start, unsigned max, unsigned evictions_per_second) {
        *w = (EvictionWindow){
                .size = start ? start : SIZE,
                .max = max ? max : SIZE,
                .all = bucket(PER_SECOND),
                .evictions = bucket(evictions_per_second ? evictions_per_second : PER_SECOND),
        };
}

static bool is_closed(const EvictionWindow *w, usec_t now_usec, usec_t *ret_at_usec) {
        *ret_at_usec = w->closed_until_usec;
        return now_usec < w->closed_until_usec;
}

/* Cordons and what ends drained nodes have their part of the window: they come first, and what is under way is bounded
 * with them. They do not stop evictions, whose answers let the next ones go. */
static bool has_place(const EvictionWindow *w, size_t n_under_way) {
        return (w->n_evictions < SIZE_MIN ? w->n_evictions : n_under_way) < w->size;
}

bool eviction_window_takes_eviction(EvictionWindow *w, size_t n_under_way, usec_t now_usec, usec_t *ret_at_usec) {
        if (is_closed(w, now_usec, ret_at_usec))
                return false;
        *ret_at_usec = USEC_INFINITY;
        if (!has_place(w, n_under_way) || !token_bucket_has(&w->evictions, 1, now_usec, ret_at_usec) ||
            !token_bucket_take(&w->all, now_usec, ret_at_usec))
                return false;
        (void) token_bucket_take(&w->evictions, now_usec, ret_at_usec);
        w->n_evictions++;
        return true;
}

bool eviction_window_takes_admission(EvictionWindow *w, usec_t now_usec, usec_t *ret_at_usec) {
        if (is_closed(w, now_usec, ret_at_usec))
                return false;
        *ret_at_usec = USEC_INFINITY;
        if (w->n_admitted >= w->size || !token_bucket_has(&w->all, ADMISSION_REQUESTS, now_usec, ret_at_usec))
                return false;
        for (unsigned i = 0; i < ADMISSION_REQUESTS; i++)
                (void) token_bucket_take(&w->all, now_usec, ret_at_usec);
        w->n_admitted++;
        return true;
}

void eviction_window_gives_back_eviction(EvictionWindow *w) {
        assert(w->n_evictions > 0);
        w->n_evictions--;
}

void eviction_window_gives_back_admission(EvictionWindow *w) {
        assert(w->n_admitted > 0);
        w->n_admitted--;
}

static void shrink(EvictionWindow *w, unsigned numerator, unsigned denominator, usec_t now_usec) {
        if (w->last_shrink_usec > 0 && now_usec < usec_add(w->last_shrink_usec, USEC_PER_SEC))
                return; /* one burst of bad news counts once */
        w->last_shrink_usec = now_usec;
        w->size = MAX(w->size * numerator / denominator, MIN(w->max, SIZE_MIN));
}

void eviction_window_learns(EvictionWindow *w, EvictionAnswer a, usec_t took_usec, usec_t retry_after_usec,
                            usec_t now_usec) {
        if (a == EVICTION_WEBHOOK)
                return; /* how long a webhook takes says nothing of the API server */
        if (a == EVICTION_FLOW_CONTROL) {
                shrink(w, 1, 2, now_usec);
                w->closed_until_usec = usec_add(now_usec, MAX(retry_after_usec, FLOW_CONTROL_USEC));
        } else if (took_usec > SLOW_USEC)
                shrink(w, 3, 4, now_usec);
        else if (w->n_evictions + 1 >= w->size && w->size < w->max)
                w->size++;
}

bool eviction_window_is_crowded(const EvictionWindow *w) {
        return w->n_evictions + w->n_admitted >= CROWD;
}
