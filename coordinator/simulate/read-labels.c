/* SPDX-License-Identifier: Apache-2.0 */
#include "read-labels.h"

#include "alloc-util.h"

struct ReadLabels {
        Hashmap *of_any;       /* keys */
        Hashmap *of_namespace; /* namespace -> Hashmap of keys */
        size_t n;
};

int read_labels_new(ReadLabels **ret) {
        _cleanup_(read_labels_freep) ReadLabels *l = new0(ReadLabels, 1);
        int r;

        if (!l)
                return -ENOMEM;
        r = hashmap_new(0, &l->of_any);
        if (r >= 0)
                r = hashmap_new(0, &l->of_namespace);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

static void *keys_free(void *keys) {
        return hashmap_free(keys);
}

ReadLabels *read_labels_free(ReadLabels *l) {
        if (!l)
                return NULL;
        hashmap_free(l->of_any);
        hashmap_free_with(l->of_namespace, keys_free);
        return mfree(l);
}

const Hashmap *read_labels_own(const ReadLabels *l, const char *ns) {
        return hashmap_get(l->of_namespace, ns);
}

bool read_labels_has(const ReadLabels *l, const Hashmap *own, const char *key) {
        return (own && hashmap_contains(own, key)) || (hashmap_size(l->of_any) > 0 && hashmap_contains(l->of_any, key));
}

static int find_or_add_keys(ReadLabels *l, const char *ns, Hashmap **ret) {
        int r;

        *ret = ns ? hashmap_get(l->of_namespace, ns) : l->of_any;
        if (*ret)
                return 0;
        r = hashmap_new(0, ret);
        if (r < 0)
                return r;
        r = hashmap_put(l->of_namespace, ns, *ret);
        if (r < 0)
                *ret = hashmap_free(*ret);
        return r;
}

int read_labels_gather(ReadLabels *l, const char *ns, const Selector *selector) {
        Hashmap *keys;
        size_t n_before;
        int r;

        if (selector_is_empty(selector) || (ns && selector_keeps_to_keys(selector, l->of_any)))
                return 0;
        r = find_or_add_keys(l, ns, &keys);
        if (r < 0)
                return r;
        n_before = hashmap_size(keys);
        r = selector_gather_keys(selector, keys);
        l->n += hashmap_size(keys) - n_before;
        return r;
}

int read_labels_add(ReadLabels *l, const char *ns, const char *key) {
        Hashmap *keys;
        int r;

        if (read_labels_has(l, read_labels_own(l, ns), key))
                return 0;
        r = find_or_add_keys(l, ns, &keys);
        if (r >= 0)
                r = hashmap_put(keys, key, NULL);
        l->n += r >= 0;
        return r;
}

/* Selectors are gathered whole: one that is in both maps by halves was not. */
bool read_labels_has_all(const ReadLabels *l, const char *ns, const Selector *selector) {
        const Hashmap *own = read_labels_own(l, ns);

        return selector_is_empty(selector) || (own && selector_keeps_to_keys(selector, own)) || selector_keeps_to_keys(selector, l->of_any);
}

size_t read_labels_size(const ReadLabels *l) {
        return l->n;
}

size_t read_labels_size_of_all(const ReadLabels *l) {
        return hashmap_size(l->of_any);
}
