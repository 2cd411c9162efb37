/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-query.h"

#include "strv.h"

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

char *fake_url_decode(const char *s, size_t size, bool plus_is_space) {
        char *out = MUST(new0(char, size + 1));
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                if (s[i] == '%' && i + 2 < size && hex_digit(s[i + 1]) >= 0 && hex_digit(s[i + 2]) >= 0) {
                        out[n++] = (char) (hex_digit(s[i + 1]) * 16 + hex_digit(s[i + 2]));
                        i += 2;
                } else if (s[i] == '+' && plus_is_space)
                        out[n++] = ' ';
                else
                        out[n++] = s[i];
        }
        return out;
}

void fake_query_init(FakeQuery *q, const char *query) {
        _cleanup_strv_free_ char **parts = NULL;
        int k = strv_split(strempty(query), "&", &parts);

        assert(k >= 0);
        *q = (FakeQuery){ 0 };
        k = hashmap_new(0, &q->values);
        assert(k >= 0);
        STRV_FOREACH (part, parts) {
                const char *eq = strchr(*part, '=');
                size_t n = eq ? (size_t) (eq - *part) : strlen(*part);
                _cleanup_free_ char *key = fake_url_decode(*part, n, true);
                char *value = eq ? fake_url_decode(eq + 1, strlen(eq + 1), true) : MUST(strdup(""));

                if (hashmap_put(q->values, key, value) < 0) {
                        free(value);
                        q->repeated = true;
                }
        }
}

void fake_query_done(FakeQuery *q) {
        hashmap_free_with(q->values, mfree);
        *q = (FakeQuery){ 0 };
}

const char *fake_query_get(const FakeQuery *q, const char *key) {
        return hashmap_get(q->values, key);
}

void fake_query_init_form(FakeQuery *q, const HttpExchange *x) {
        _cleanup_free_ char *text = MUST(memdup_str(x->body ? x->body : "", x->body_size));

        fake_query_init(q, text);
}

char **fake_query_list(const FakeQuery *q, const char *prefix) {
        char **l = NULL;

        for (unsigned n = 1;; n++) {
                _cleanup_free_ char *name = MUST(strf("%s.%u", prefix, n));
                const char *value = fake_query_get(q, name);
                int k;

                if (!value)
                        return l;
                k = strv_extend(&l, value);
                assert(k >= 0);
        }
}

static bool is_known(const char *key, const char *known) {
        return endswith(known, ".") ? startswith(key, known) != NULL : streq(key, known);
}

const char *fake_query_unknown(const FakeQuery *q, const char *const *known, size_t n_known) {
        HashmapIterator it = { 0 };
        const char *key;

        while (hashmap_iterate(q->values, &it, &key, NULL)) {
                bool found = false;

                for (size_t i = 0; i < n_known && known[i]; i++)
                        found = found || is_known(key, known[i]);
                if (!found)
                        return key;
        }
        return NULL;
}
