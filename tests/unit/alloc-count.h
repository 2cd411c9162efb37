/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counts the heap allocations of a program. A program that links alloc-count.c has its own malloc(),
 * calloc(), realloc(), reallocarray() and free() in front of libc's, for itself and for every library that
 * it uses. A reader that copies its list for each element allocates bytes that grow with the square of the
 * list, so the count shows it on any machine.
 */

#include <stdbool.h>
#include <stddef.h>

typedef struct AllocCount {
        size_t n;         /* allocations */
        size_t requested; /* bytes, over all allocations; a realloc() counts with its whole new size */
        size_t live;      /* bytes that are allocated now and were not when counting began */
        size_t peak;      /* maximum of live */
} AllocCount;

/* Sets all figures to 0. */
void alloc_count_begin(void);
AllocCount alloc_count_end(void);
/* Returns false in a sanitized program, whose allocator cannot be counted. */
bool alloc_count_works(void);
