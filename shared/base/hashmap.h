/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * String-keyed hash map with a seeded hash (keys may come from outside), open addressing, and iteration in insertion
 * order, so that a simulation with the same seed takes the same path. Keys are copied by the map unless it was made with
 * HASHMAP_BORROW_KEYS; values are the caller's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "macro.h"

typedef struct Hashmap Hashmap;

typedef enum HashmapFlags {
        HASHMAP_BORROW_KEYS = 1 << 0, /* the key must live as long as its entry (usually inside the value) */
} HashmapFlags;

typedef struct HashmapIterator {
        size_t position;
} HashmapIterator;

int hashmap_new(HashmapFlags flags, Hashmap **ret);
Hashmap *hashmap_free(Hashmap *m);                                          /* values are not touched */
Hashmap *hashmap_free_with(Hashmap *m, void *(*free_value)(void *value));   /* values freed first, in order */
DEFINE_FREEP(Hashmap, hashmap_free);

/* -EEXIST if the key is there (the old value stays); -ENOMEM. */
int hashmap_put(Hashmap *m, const char *key, void *value);
/* Puts or replaces; the old value goes to *ret_old (may be NULL if the caller does not own values). With borrowed keys
 * the entry takes the new key. 0, -ENOMEM. */
int hashmap_replace(Hashmap *m, const char *key, void *value, void **ret_old);
void *hashmap_get(const Hashmap *m, const char *key);   /* NULL if absent; m may be NULL */
bool hashmap_contains(const Hashmap *m, const char *key);
void *hashmap_remove(Hashmap *m, const char *key);      /* the value, or NULL */
size_t hashmap_size(const Hashmap *m);                  /* NULL is empty */
void hashmap_clear(Hashmap *m);
/* Oldest entry's value, or NULL when empty; *ret_key (if wanted) borrowed. */
void *hashmap_first(const Hashmap *m, const char **ret_key);

/* Start with a zeroed iterator. The entry just returned may be removed during the walk; entries added meanwhile may or
 * may not be seen. */
bool hashmap_iterate(const Hashmap *m, HashmapIterator *i, const char **ret_key, void **ret_value);

#define HASHMAP_FOREACH(value, m) \
        for (HashmapIterator _it_##value = { 0 }; hashmap_iterate((m), &_it_##value, NULL, (void **) &(value));)

/* FNV-1a 64: stable across releases and machines, for derived names, never for maps of outside keys. */
uint64_t hash64(const void *data, size_t size);
/* SipHash-2-4 with a key, as the map uses it. */
uint64_t siphash24(const void *data, size_t size, const uint8_t key[16]);
