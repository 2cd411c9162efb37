/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-index.h"

#include <stdlib.h>

#include "hashmap.h"

typedef struct Keys {
        const char **keys;
        size_t n, allocated;
} Keys;

struct FakeIndex {
        Hashmap *names;
};

FakeIndex *fake_index_new(void) {
        FakeIndex *x = MUST(new0(FakeIndex, 1));
        int r = hashmap_new(0, &x->names);

        assert(r >= 0);
        return x;
}

static void *keys_free(void *p) {
        Keys *k = p;

        free(k->keys);
        return mfree(k);
}

FakeIndex *fake_index_free(FakeIndex *x) {
        if (!x)
                return NULL;
        hashmap_free_with(x->names, keys_free);
        return mfree(x);
}

static size_t lower_bound(const Keys *k, const char *key) {
        size_t low = 0, high = k->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (strcmp(k->keys[mid], key) < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

void fake_index_put(FakeIndex *x, const char *name, const char *key) {
        Keys *k = hashmap_get(x->names, name);
        size_t at;
        int r;

        if (!k) {
                k = MUST(new0(Keys, 1));
                r = hashmap_put(x->names, name, k);
                assert(r >= 0);
        }
        at = lower_bound(k, key);
        assert((at == k->n || !streq(k->keys[at], key)) && "indexed twice");
        r = GREEDY_REALLOC(k->keys, k->allocated, k->n + 1);
        assert(r >= 0);
        memmove(k->keys + at + 1, k->keys + at, (k->n - at) * sizeof(*k->keys));
        k->keys[at] = key;
        k->n++;
}

void fake_index_remove(FakeIndex *x, const char *name, const char *key) {
        Keys *k = MUST(hashmap_get(x->names, name));
        size_t at = lower_bound(k, key);

        assert(at < k->n && streq(k->keys[at], key) && "not indexed");
        memmove(k->keys + at, k->keys + at + 1, (k->n - at - 1) * sizeof(*k->keys));
        if (--k->n == 0) {
                hashmap_remove(x->names, name);
                keys_free(k);
        }
}

const char *fake_index_at(const FakeIndex *x, const char *name, size_t n) {
        const Keys *k = hashmap_get(x->names, name);

        return k && n < k->n ? k->keys[n] : NULL;
}
