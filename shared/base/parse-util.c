/* SPDX-License-Identifier: Apache-2.0 */
#include "parse-util.h"

#include <errno.h>
#include <strings.h>

#include "string-util.h"

int parse_uint64(const char *s, uint64_t *ret) {
        uint64_t v = 0;

        assert(ret);
        if (isempty(s))
                return -EINVAL;
        /* A long text of digits is out of range, a wrong letter behind them is still wrong. */
        if (s[strspn(s, "0123456789")] != 0)
                return -EINVAL;

        for (; *s; s++)
                if (__builtin_mul_overflow(v, (uint64_t) 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t) (*s - '0'), &v))
                        return -ERANGE;
        *ret = v;
        return 0;
}

int parse_int64(const char *s, int64_t *ret) {
        bool negative;
        uint64_t v;
        int r;

        assert(ret);
        if (isempty(s))
                return -EINVAL;

        negative = s[0] == '-';
        r = parse_uint64(s + negative, &v);
        if (r < 0)
                return r;
        if (v > (uint64_t) INT64_MAX + negative)
                return -ERANGE;

        *ret = negative ? (int64_t) (0 - v) : (int64_t) v;
        return 0;
}

int parse_uint64_range(const char *s, uint64_t min, uint64_t max, uint64_t *ret) {
        uint64_t v;
        int r;

        assert(min <= max);
        r = parse_uint64(s, &v);
        if (r < 0)
                return r;
        if (v < min || v > max)
                return -ERANGE;

        *ret = v;
        return 0;
}

int parse_bool(const char *s, bool *ret) {
        static const struct {
                const char *text;
                bool value;
        } words[] = {
                { "1", true },  { "yes", true }, { "true", true },   { "on", true },
                { "0", false }, { "no", false }, { "false", false }, { "off", false },
        };

        assert(ret);
        if (!s)
                return -EINVAL;

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcasecmp(s, words[i].text) == 0) {
                        *ret = words[i].value;
                        return 0;
                }
        return -EINVAL;
}

bool annotation_is_true(const char *s) {
        return s && streq(s, "true");
}
