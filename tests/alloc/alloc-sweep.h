/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The same run again and again, each time without another one of its allocations: the first and the last of
 * each place (a chain of callers) that a run with all memory showed. All of them take minutes: with
 * VESPER_ALLOC_ALL in the environment; VESPER_ALLOC_AT=N is the N-th only, VESPER_ALLOC_TRACE shows its
 * callers.
 */

#include "alloc-fault.h"

/* Arms the fault with fails_at where the part that counts begins, and disarms it at its end; *ret_n is what
 * that said. NULL if all came out well, or what did not; *ret_log (to be freed): what was logged. */
typedef const char *(*alloc_run_t)(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata);

/* Fails the test if any of the runs did not come out well. good: what was expected of each, for messages. */
void alloc_sweep(alloc_run_t run, void *userdata, const char *good);
