/* SPDX-License-Identifier: Apache-2.0 */
#include "strv.h"

#include <string.h>

#include "string-util.h"

char **strv_free(char **l) {
        if (l)
                for (char **s = l; *s; s++)
                        free(*s);
        free(l);
        return NULL;
}

size_t strv_length(char *const *l) {
        size_t n = 0;

        if (l)
                while (l[n])
                        n++;
        return n;
}

bool strv_contains(char *const *l, const char *s) {
        STRV_FOREACH (i, l)
                if (streq(*i, s))
                        return true;
        return false;
}

bool strv_equal(char *const *a, char *const *b) {
        size_t n = strv_length(a);

        if (n != strv_length(b))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!streq(a[i], b[i]))
                        return false;
        return true;
}

char **strv_copy(char *const *l) {
        _cleanup_strv_free_ char **copy = new0(char *, strv_length(l) + 1);

        if (!copy)
                return NULL;

        for (size_t i = 0; l && l[i]; i++) {
                copy[i] = strdup(l[i]);
                if (!copy[i])
                        return NULL;
        }
        return TAKE_PTR(copy);
}

/* Takes the string over, also on failure. */
static int strv_consume(char ***l, char *s) {
        size_t n = strv_length(*l);
        char **bigger;

        if (!s)
                return -ENOMEM;

        bigger = reallocarray(*l, n + 2, sizeof(char *));
        if (!bigger) {
                free(s);
                return -ENOMEM;
        }
        bigger[n] = s;
        bigger[n + 1] = NULL;
        *l = bigger;
        return 0;
}

int strv_extend(char ***l, const char *s) {
        assert(l);
        assert(s);
        return strv_consume(l, strdup(s));
}

int strv_split(const char *s, const char *separators, char ***ret) {
        _cleanup_strv_free_ char **l = NULL;
        size_t n = 0;

        assert(s);
        assert(separators);
        assert(ret);

        /* Counted first: one allocation of the array, however long the text. */
        for (const char *p = s + strspn(s, separators); *p; p += strspn(p, separators)) {
                p += strcspn(p, separators);
                n++;
        }

        l = new0(char *, n + 1);
        if (!l)
                return -ENOMEM;

        s += strspn(s, separators);
        for (size_t i = 0; i < n; i++) {
                size_t size = strcspn(s, separators);

                l[i] = memdup_str(s, size);
                if (!l[i])
                        return -ENOMEM;
                s += size;
                s += strspn(s, separators);
        }
        *ret = TAKE_PTR(l);
        return 0;
}

char *strv_join(char *const *l, const char *separator) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        assert(separator);
        STRV_FOREACH (s, l) {
                if (s != l)
                        strbuf_add(&b, separator);
                strbuf_add(&b, *s);
        }
        return strbuf_steal(&b);
}
