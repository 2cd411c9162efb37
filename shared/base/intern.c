/* SPDX-License-Identifier: Apache-2.0 */
#include "intern.h"

#include "hashmap.h"
#include "string-util.h"

typedef struct InternString {
        size_t n_refs;
        char text[];
} InternString;

struct InternPool {
        Hashmap *strings; /* InternString by its own text */
};

int intern_pool_new(InternPool **ret) {
        _cleanup_(intern_pool_freep) InternPool *p = new0(InternPool, 1);
        int r;

        assert(ret);
        if (!p)
                return -ENOMEM;

        r = hashmap_new(HASHMAP_BORROW_KEYS, &p->strings);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(p);
        return 0;
}

InternPool *intern_pool_free(InternPool *p) {
        if (!p)
                return NULL;
        assert(hashmap_size(p->strings) == 0);
        hashmap_free(p->strings);
        return mfree(p);
}

static const char *intern_new(InternPool *p, const char *s, size_t size) {
        InternString *i = malloc(sizeof(*i) + size + 1);

        if (!i)
                return NULL;

        i->n_refs = 1;
        memcpy(i->text, s, size);
        i->text[size] = 0;
        if (hashmap_put(p->strings, i->text, i) < 0)
                return mfree(i);
        return i->text;
}

const char *intern(InternPool *p, const char *s) {
        InternString *i;

        assert(p);
        assert(s);

        i = hashmap_get(p->strings, s);
        if (!i)
                return intern_new(p, s, strlen(s));
        i->n_refs++;
        return i->text;
}

const char *intern_n(InternPool *p, const char *s, size_t size) {
        _cleanup_free_ char *heap = NULL;
        char stack[256]; /* label keys and names are shorter: finding one takes no allocation */
        char *text = stack;

        assert(s || size == 0);

        if (size >= sizeof(stack)) {
                text = heap = malloc(size + 1);
                if (!heap)
                        return NULL;
        }
        if (size > 0)
                memcpy(text, s, size);
        text[size] = 0;
        return intern(p, text);
}

static InternString *intern_string(const char *s) {
        return (InternString *) (void *) ((char *) (uintptr_t) s - offsetof(InternString, text));
}

size_t intern_own_bytes(const char *s) {
        const InternString *i = s ? intern_string(s) : NULL;

        return i && i->n_refs <= 2 ? sizeof(*i) + strlen(s) + 1 : 0;
}

void intern_unref(InternPool *p, const char *s) {
        InternString *i;

        if (!s)
                return;
        assert(p);

        i = intern_string(s);
        assert(i->n_refs > 0);
        if (--i->n_refs > 0)
                return;

        hashmap_remove(p->strings, i->text);
        free(i);
}

size_t intern_pool_size(const InternPool *p) {
        assert(p);
        return hashmap_size(p->strings);
}
