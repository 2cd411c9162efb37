/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"

#include "marks.h"
#include "string-util.h"

/* Maximum size of a text from outside that a sentence quotes. */
#define QUOTE_BYTES_MAX 128u

int decoder_finish(const Decoder *d) {
        if (d->failed)
                return -ENOMEM;
        return d->object->invalid ? -EINVAL : 0;
}

void decoder_invalid(Decoder *d, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        if (d->object->invalid)
                return;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        d->object->invalid = strbuf_steal(&b);
        if (!d->object->invalid)
                d->failed = true;
}

static void invalid_text(Decoder *d, const char *path, const char *text, const char *what) {
        _cleanup_free_ char *clean = str_sanitize(text, QUOTE_BYTES_MAX);

        if (clean)
                decoder_invalid(d, "%s: '%s' is no %s", path, clean, what);
        else
                d->failed = true;
}

/* The string, or NULL: absent, null, or now invalid. */
static const char *take_string(Decoder *d, const Json *v, const char *path) {
        const char *s = NULL;

        if (json_string(v, &s) == -EINVAL)
                decoder_invalid(d, "%s is no string", path);
        return s;
}

void decode_string(Decoder *d, const Json *v, const char *path, char **ret) {
        const char *s = take_string(d, v, path);

        if (s && free_and_strdup(ret, s) < 0)
                d->failed = true;
}

void decode_interned(Decoder *d, const Json *v, const char *path, const char **ret) {
        const char *s = take_string(d, v, path);

        if (!s)
                return;
        intern_unref(d->pool, *ret);
        *ret = intern(d->pool, s);
        if (!*ret)
                d->failed = true;
}

void decode_int64(Decoder *d, const Json *v, const char *path, int64_t *ret) {
        int64_t n;
        int r = json_int64(v, &n);

        if (r >= 0)
                *ret = n;
        else if (r != -ENODATA)
                decoder_invalid(d, "%s is no integer%s", path, r == -ERANGE ? " in range" : "");
}

void decode_bool(Decoder *d, const Json *v, const char *path, bool *ret) {
        bool b;
        int r = json_bool(v, &b);

        if (r >= 0)
                *ret = b;
        else if (r != -ENODATA)
                decoder_invalid(d, "%s is neither true nor false", path);
}

void decode_time(Decoder *d, const Json *v, const char *path, usec_t *ret) {
        const char *s = take_string(d, v, path);
        usec_t at;

        if (!s)
                return;
        if (rfc3339_parse(s, &at) >= 0)
                *ret = at;
        else
                invalid_text(d, path, s, "time");
}

/* The CRD's pattern: no fractions, no bare number, nothing below a second. */
static int duration_parse_seed(const char *s, usec_t *ret) {
        usec_t sum = 0;

        if (*s == 0)
                return -EINVAL;
        while (*s) {
                uint64_t n = 0, unit;
                const char *digits = s;

                for (; *s >= '0' && *s <= '9'; s++)
                        if (__builtin_mul_overflow(n, UINT64_C(10), &n) ||
                            __builtin_add_overflow(n, (uint64_t) (*s - '0'), &n))
                                return -ERANGE;
                if (s == digits)
                        return -EINVAL;

                unit = *s == 's'   ? USEC_PER_SEC
                       : *s == 'm' ? USEC_PER_MINUTE
                       : *s == 'h' ? USEC_PER_HOUR
                                   : 0;
                if (unit == 0)
                        return -EINVAL;
                s++;
                /* Go's time.Duration, which others read it with, ends at 2^63 nanoseconds. */
                if (__builtin_mul_overflow(n, unit, &n) || __builtin_add_overflow(sum, n, &sum) ||
                    sum > INT64_MAX / 1000)
                        return -ERANGE;
        }
        *ret = sum;
        return 0;
}

void decode_duration(Decoder *d, const Json *v, const char *path, bool allow_never, usec_t *ret) {
        const char *s = take_string(d, v, path);

        if (!s)
                return;
        if (allow_never && streq(s, "Never"))
                *ret = USEC_INFINITY;
        else if (duration_parse_seed(s, ret) < 0)
                invalid_text(d, path, s, "duration");
}

void decode_selector(Decoder *d, const Json *v, const char *path, Selector **ret) {
        int r = selector_parse(v, d->pool, ret);

        if (r == -ENOMEM)
                d->failed = true;
        else if (r == -E2BIG)
                decoder_invalid(d, "%s has more than %u requirements or %u values", path,
                                SELECTOR_REQUIREMENTS_MAX, SELECTOR_VALUES_MAX);
        else if (r < 0)
                decoder_invalid(d, "%s is no label selector", path);
}

void decode_conditions(Decoder *d, const Json *v, Condition **ret, size_t *ret_n) {
        /* The coordinator writes the list of its own kinds back. */
        bool is_written_back = streq(d->object->kind->group, VESPER_GROUP);
        int r = conditions_decode(v, is_written_back, d->pool, ret, ret_n);

        if (r == -ENOMEM)
                d->failed = true;
        else if (r == -E2BIG)
                decoder_invalid(d, "status.conditions has more than %u elements", DECODE_LIST_MAX);
        else if (r < 0)
                decoder_invalid(d, "status.conditions is no list of conditions");
}

bool decode_interruption(Decoder *d, const char *key, Interruption **ret) {
        const char *text = object_meta_annotation(&d->object->meta, key);
        int r = text ? interruption_parse(text, ret) : 0;

        d->failed = d->failed || r == -ENOMEM;
        return r >= 0;
}

void decode_announced(Decoder *d, AnnouncedList *ret, usec_t *ret_let_go_usec) {
        const char *text = object_meta_annotation(&d->object->meta, ANNOTATION_ANNOUNCED),
                   *let_go = object_meta_annotation(&d->object->meta, ANNOTATION_LET_GO);
        int r = text ? announced_list_parse(text, ret) : 0;

        d->failed = d->failed || r == -ENOMEM;
        if (let_go && rfc3339_parse(let_go, ret_let_go_usec) < 0)
                *ret_let_go_usec = 0;
}

const Json *decode_array(Decoder *d, const Json *v, const char *path) {
        if (!v || json_is_null(v))
                return NULL;
        if (json_is_array(v))
                return v;
        decoder_invalid(d, "%s is no list", path);
        return NULL;
}

void *decode_room(Decoder *d, const Json *list, const char *path, size_t max, size_t element_bytes) {
        size_t n = json_size(list);
        void *p;

        if (n == 0)
                return NULL;
        if (n > max) {
                decoder_invalid(d, "%s has more than %zu elements", path, max);
                return NULL;
        }
        p = calloc(n, element_bytes);
        if (!p)
                d->failed = true;
        return p;
}

static const char *element_name(const Json *element, const char *member) {
        const char *name = json_string_or_null(member ? json_get(element, member) : element);

        return isempty(name) ? NULL : name;
}

void decode_names(Decoder *d, const Json *v, const char *path, const char *member, size_t max, char ***ret) {
        const Json *list = decode_array(d, v, path);
        size_t n = 0, bytes = 0;
        char **names, *text;

        JSON_FOREACH (i, list) {
                const char *name = element_name(i, member);

                if (!name) {
                        decoder_invalid(d, "an element of %s has no name", path);
                        continue;
                }
                if (n == max)
                        break;
                n++;
                bytes += strlen(name) + 1;
        }
        if (n == 0)
                return;
        names = malloc((n + 1) * sizeof(*names) + bytes);
        if (!names) {
                d->failed = true;
                return;
        }
        text = (char *) (names + n + 1);
        max = n;
        n = 0;
        JSON_FOREACH (i, list) {
                const char *name = element_name(i, member);

                if (!name)
                        continue;
                if (n == max)
                        break;
                names[n++] = text;
                text = stpcpy(text, name) + 1;
        }
        names[n] = NULL;
        *ret = names;
}
