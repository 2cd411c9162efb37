/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Interned strings: one copy per distinct text, reference-counted, so that 150,000 pods share their namespaces, label
 * keys and owners. Two interned strings of one pool are equal iff their pointers are.
 */

#include <stddef.h>

#include "macro.h"

typedef struct InternPool InternPool;

int intern_pool_new(InternPool **ret);
InternPool *intern_pool_free(InternPool *p); /* asserts that every string was given back */
DEFINE_FREEP(InternPool, intern_pool_free);

/* NULL on ENOMEM. The result is valid until its intern_unref(). */
const char *intern(InternPool *p, const char *s);
const char *intern_n(InternPool *p, const char *s, size_t size);
void intern_unref(InternPool *p, const char *s); /* NULL is fine */
size_t intern_pool_size(const InternPool *p);
/* Returns the size in memory of an interned text if it has at most two references, else 0. Two: an object
 * and its older state, which is freed when the new one has been decoded. NULL: 0. */
size_t intern_own_bytes(const char *s);
