/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-count.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include "macro.h"

#if HAS_ASAN

void alloc_count_begin(void) {
}

AllocCount alloc_count_end(void) {
        return (AllocCount){ 0 };
}

bool alloc_count_works(void) {
        return false;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

/* The only state: malloc() has no argument for it. */
static struct {
        bool counting;
        AllocCount count;
} state;

/* Memory from before counting may be freed, so live can fall below 0. */
static void *counted(void *p, size_t size, size_t old) {
        AllocCount *c = &state.count;

        if (!state.counting || !p)
                return p;
        c->n++;
        c->requested += size;
        c->live += malloc_usable_size(p) - old;
        if ((ptrdiff_t) c->live > (ptrdiff_t) c->peak)
                c->peak = c->live;
        return p;
}

void *malloc(size_t size) {
        return counted(__libc_malloc(size), size, 0);
}

void *calloc(size_t n, size_t size) {
        return counted(__libc_calloc(n, size), n * size, 0);
}

void *realloc(void *p, size_t size) {
        size_t old = p ? malloc_usable_size(p) : 0;

        return counted(__libc_realloc(p, size), size, old);
}

void *reallocarray(void *p, size_t n, size_t size) {
        size_t bytes;

        if (__builtin_mul_overflow(n, size, &bytes)) {
                errno = ENOMEM;
                return NULL;
        }
        return realloc(p, bytes);
}

void free(void *p) {
        if (state.counting && p)
                state.count.live -= malloc_usable_size(p);
        __libc_free(p);
}

void alloc_count_begin(void) {
        state.count = (AllocCount){ 0 };
        state.counting = true;
}

AllocCount alloc_count_end(void) {
        state.counting = false;
        return state.count;
}

bool alloc_count_works(void) {
        return true;
}

#endif
