/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "macro.h"

/* Zeroed; NULL when memory is short or n * sizeof(t) overflows. */
#define new0(t, n) ((t *) calloc((n), sizeof(t)))

static inline void freep(void *p) {
        free(*(void **) p);
}
#define _cleanup_free_ _cleanup_(freep)

/* free() that returns NULL: p = mfree(p). */
static inline void *mfree(void *p) {
        free(p);
        return NULL;
}

/* Makes room for at least `need` elements of `element_bytes`; grows by doubling; *p and *allocated are untouched on
 * failure. New room is not zeroed. 0 or -ENOMEM. */
int greedy_realloc(void **p, size_t *allocated, size_t need, size_t element_bytes);

#define GREEDY_REALLOC(p, allocated, need) greedy_realloc((void **) &(p), &(allocated), (need), sizeof(*(p)))

/* Overwrites memory in a way the compiler keeps: for secrets. NULL is fine. */
void *erase_and_free(void *p, size_t size);
void *memdup(const void *p, size_t size);          /* NULL on ENOMEM; size 0 gives one byte */
char *memdup_str(const void *p, size_t size);      /* the same with a NUL behind it */
