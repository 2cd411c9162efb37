/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How many requests that end pods are under way at once, and how many leave in a second: pure, for the whole process.
 * Evictions and what is admitted beside them (deletes at a deadline) each have the window's number of places and one
 * rate together; what is admitted comes first. The window shrinks on flow control and when answers get slow, and grows
 * back with each answer.
 */

#include "eviction.h"
#include "token-bucket.h"

typedef struct EvictionWindow {
        unsigned size, max;
        size_t n_evictions, n_admitted; /* under way */
        TokenBucket all;                /* of all that leaves */
        TokenBucket evictions;          /* of evictions, besides */
        usec_t closed_until_usec;       /* flow control: nothing leaves earlier */
        usec_t last_shrink_usec;
} EvictionWindow;

/* 0: the defaults, 160, 160 and 500. */
void eviction_window_init(EvictionWindow *w, unsigned start, unsigned max, unsigned evictions_per_second);
/* May one more leave now? True: it is counted, until its answer. False: *ret_at_usec is when to ask again; USEC_INFINITY:
 * when an answer has come. n_under_way: calls of this process that do not give way, cordons for example. */
bool eviction_window_takes_eviction(EvictionWindow *w, size_t n_under_way, usec_t now_usec, usec_t *ret_at_usec);
bool eviction_window_takes_admission(EvictionWindow *w, usec_t now_usec, usec_t *ret_at_usec);
/* After its answer, or when it did not leave at all. */
void eviction_window_gives_back_eviction(EvictionWindow *w);
void eviction_window_gives_back_admission(EvictionWindow *w);
/* What came of a request that took took_usec. Call it after the request was given back. */
void eviction_window_learns(EvictionWindow *w, EvictionAnswer a, usec_t took_usec, usec_t retry_after_usec,
                            usec_t now_usec);
/* So many are under way that the API server has enough to do however late we look at one of its answers. */
bool eviction_window_is_crowded(const EvictionWindow *w);
