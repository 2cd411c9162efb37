/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymous-names.h"

#include "string-util.h"

int anonymous_names_init(AnonymousNames *a) {
        return hashmap_new(0, &a->names);
}

void anonymous_names_done(AnonymousNames *a) {
        for (size_t i = 0; i < a->n_made; i++)
                free(a->made[i]);
        free(a->made);
        hashmap_free(a->names);
}

int anonymous_names_add(AnonymousNames *a, const char *name) {
        int r = hashmap_put(a->names, name, a);

        return r == -EEXIST ? 0 : r;
}

static unsigned char letter_or_slash(char c) {
        return c ? (unsigned char) c : '/';
}

static int compare_namespaces(const void *a, const void *b) {
        const char *x = *(const char *const *) a, *y = *(const char *const *) b;

        while (*x && *x == *y) {
                x++;
                y++;
        }
        return (int) letter_or_slash(*x) - (int) letter_or_slash(*y);
}

static int width_of(size_t n) {
        int width = 1;

        for (; n >= 10; n /= 10)
                width++;
        return width;
}

int anonymous_names_make(AnonymousNames *a, char letter, NameOrder order) {
        _cleanup_free_ const char **sorted = NULL;
        HashmapIterator it = { 0 };
        size_t n = hashmap_size(a->names), k = 0;
        void *value;

        assert(!a->made);
        sorted = new0(const char *, n + 1);
        a->made = new0(char *, n + 1);
        if (!sorted || !a->made)
                return -ENOMEM;
        while (hashmap_iterate(a->names, &it, &sorted[k], &value))
                k++;
        qsort(sorted, n, sizeof(*sorted), order == NAME_ORDER_PLAIN ? compare_strings : compare_namespaces);
        for (size_t i = 0; i < n; i++) {
                int r;

                a->made[i] = strf("%c%0*zu", letter, width_of(n), i);
                if (!a->made[i])
                        return -ENOMEM;
                a->n_made++;
                r = hashmap_replace(a->names, sorted[i], a->made[i], NULL);
                if (r < 0)
                        return r;
        }
        return 0;
}

const char *anonymous_names_get(const AnonymousNames *a, const char *name) {
        return hashmap_get(a->names, name);
}
