/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"

#include <errno.h>
#include <string.h>

int greedy_realloc(void **p, size_t *allocated, size_t need, size_t element_bytes) {
        size_t n, bytes;
        void *q;

        assert(p);
        assert(allocated);
        assert(element_bytes > 0);

        if (need <= *allocated)
                return 0;

        /* Doubling is a wish, the need is not: if the double overflows, take what is needed. */
        if (__builtin_mul_overflow(*allocated, (size_t) 2, &n) || n < need)
                n = need;
        if (n < 8)
                n = 8;
        if (__builtin_mul_overflow(n, element_bytes, &bytes))
                return -ENOMEM;

        q = realloc(*p, bytes);
        if (!q)
                return -ENOMEM;

        *p = q;
        *allocated = n;
        return 0;
}

void *erase_and_free(void *p, size_t size) {
        if (p)
                explicit_bzero(p, size);
        free(p);
        return NULL;
}

void *memdup(const void *p, size_t size) {
        void *q = malloc(size > 0 ? size : 1);

        if (q && size > 0)
                memcpy(q, p, size);
        return q;
}

char *memdup_str(const void *p, size_t size) {
        char *q;

        if (size == SIZE_MAX)
                return NULL;

        q = malloc(size + 1);
        if (!q)
                return NULL;

        if (size > 0)
                memcpy(q, p, size);
        q[size] = 0;
        return q;
}
