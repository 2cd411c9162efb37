/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shortest choice that still shows something: delta debugging (ddmin) over a list of things kept or
 * left out. */

#include <stdbool.h>
#include <stddef.h>

/* 1: with these it still shows; 0: it does not; negative: no more time, the best so far stands. */
typedef int (*sim_shows_t)(const bool *keep, size_t n, void *userdata);

/* keep: n of them, those to begin with; what shows() said 1 to last, afterwards. When it returns 0, each
 * single one left is needed; when shows() ended it, its error. */
int sim_shrink(bool *keep, size_t n, sim_shows_t shows, void *userdata);
