/* SPDX-License-Identifier: Apache-2.0 */
#include "string-util.h"

#include <errno.h>
#include <stdio.h>

#define WHITESPACE " \t\n\r\v\f"
#define STRF_USUAL 256u

int compare_strings(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

const char *startswith(const char *s, const char *prefix) {
        size_t n = strlen(prefix);

        return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

const char *endswith(const char *s, const char *suffix) {
        size_t n = strlen(s), k = strlen(suffix);

        return n >= k && streq(s + n - k, suffix) ? s + n - k : NULL;
}

const char *full_stop(const char *text) {
        return isempty(text) || endswith(text, ".") ? "" : ".";
}

char *strstrip(char *s) {
        size_t n;

        s += strspn(s, WHITESPACE);
        n = strlen(s);
        while (n > 0 && strchr(WHITESPACE, s[n - 1]))
                n--;
        s[n] = 0;
        return s;
}

int free_and_strdup(char **dst, const char *src) {
        char *copy = NULL;

        assert(dst);
        if (src) {
                copy = strdup(src);
                if (!copy)
                        return -ENOMEM;
        }
        free(*dst);
        *dst = copy;
        return 0;
}

/* Bytes of the well-formed sequence at s, or 0. Table 3-7 of the Unicode standard: only the second byte has
 * narrower limits, and they depend on the first. */
static size_t utf8_sequence(const uint8_t *s, size_t size) {
        uint8_t low = 0x80, high = 0xbf;
        size_t n;

        if (s[0] < 0x80)
                return 1;
        if (s[0] >= 0xc2 && s[0] <= 0xdf)
                n = 2;
        else if (s[0] >= 0xe0 && s[0] <= 0xef)
                n = 3;
        else if (s[0] >= 0xf0 && s[0] <= 0xf4)
                n = 4;
        else
                return 0;
        if (size < n)
                return 0;

        if (s[0] == 0xe0)
                low = 0xa0; /* overlong */
        else if (s[0] == 0xed)
                high = 0x9f; /* surrogates */
        else if (s[0] == 0xf0)
                low = 0x90; /* overlong */
        else if (s[0] == 0xf4)
                high = 0x8f; /* past U+10FFFF */
        if (s[1] < low || s[1] > high)
                return 0;
        for (size_t i = 2; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        return n;
}

size_t utf8_sequence_size(const char *s, size_t size) {
        return utf8_sequence((const uint8_t *) s, size);
}

uint32_t utf8_code_point(const char *s, size_t n) {
        static const uint8_t lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
        uint32_t c;

        assert(n >= 1 && n <= 4);
        c = (uint8_t) s[0] & lead_bits[n];
        for (size_t i = 1; i < n; i++)
                c = c << 6 | ((uint8_t) s[i] & 0x3f);
        return c;
}

bool utf8_is_valid(const char *s, size_t size) {
        size_t n;

        for (size_t i = 0; i < size; i += n) {
                n = utf8_sequence((const uint8_t *) s + i, size - i);
                if (n == 0)
                        return false;
        }
        return true;
}

static bool is_alphanumeric(char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool dns1123_subdomain_is_valid(const char *s) {
        size_t n;

        if (isempty(s))
                return false;
        n = strlen(s);
        if (n > 253)
                return false;

        for (size_t i = 0; i < n; i++) {
                bool label_begins = i == 0 || s[i - 1] == '.', label_ends = i + 1 == n || s[i + 1] == '.';

                if (is_alphanumeric(s[i]))
                        continue;
                if (s[i] == '-' && !label_begins && !label_ends)
                        continue;
                if (s[i] == '.' && !label_begins && i + 1 < n)
                        continue;
                return false;
        }
        return true;
}

bool utf8_is_control(const char *s, size_t n) {
        const uint8_t *p = (const uint8_t *) s;

        if (n == 1)
                return p[0] < 0x20 || p[0] == 0x7f;
        if (n == 2)
                return (p[0] == 0xc2 && p[1] < 0xa0) ||  /* U+0080..U+009F */
                       (p[0] == 0xd8 && p[1] == 0x9c);   /* U+061C */
        if (n != 3 || p[0] != 0xe2)
                return false;
        return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f)) || /* U+200E, U+200F */
               (p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||   /* U+2028..U+202E */
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);     /* U+2066..U+2069 */
}

char *str_sanitize(const char *s, size_t max_bytes) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        size_t size, fits = 0, n;
        bool cut;

        assert(s);
        size = strlen(s);
        cut = size > max_bytes;

        for (size_t i = 0; i < size; i += n) {
                n = utf8_sequence((const uint8_t *) s + i, size - i);
                if (b.size + MAX(n, (size_t) 1) > max_bytes)
                        break;
                if (n == 0 || utf8_is_control(s + i, n)) {
                        n = MAX(n, (size_t) 1);
                        strbuf_add_n(&b, "???", n);
                } else
                        strbuf_add_n(&b, s + i, n);
                if (b.failed)
                        return NULL;
                if (b.size + 3 <= max_bytes)
                        fits = b.size;
        }
        if (cut) {
                strbuf_truncate(&b, fits);
                strbuf_add_n(&b, "...", MIN(max_bytes, (size_t) 3));
        }
        return strbuf_steal(&b);
}

/* Size from which strbuf_steal() returns unused memory. */
#define LARGE_TEXT_BYTES 4096u

/* Room for n more bytes and the NUL. */
static bool strbuf_reserve(StrBuf *b, size_t n) {
        size_t need;

        if (b->failed)
                return false;
        if (__builtin_add_overflow(b->size, n, &need) || __builtin_add_overflow(need, (size_t) 1, &need))
                b->failed = true;
        else if (need > b->allocated && GREEDY_REALLOC(b->data, b->allocated, need) < 0)
                b->failed = true;
        return !b->failed;
}

void strbuf_make_room(StrBuf *b, size_t n) {
        (void) strbuf_reserve(b, n);
}

void strbuf_add_n(StrBuf *b, const char *s, size_t n) {
        if (!strbuf_reserve(b, n))
                return;
        if (n > 0)
                memcpy(b->data + b->size, s, n);
        b->size += n;
        b->data[b->size] = 0;
}

void strbuf_add(StrBuf *b, const char *s) {
        strbuf_add_n(b, s, strlen(s));
}

void strbuf_add_char(StrBuf *b, char c) {
        if (!strbuf_reserve(b, 1))
                return;
        b->data[b->size++] = c;
        b->data[b->size] = 0;
}

void strbuf_addv(StrBuf *b, const char *fmt, va_list ap) {
        va_list again;
        int n;

        if (!strbuf_reserve(b, 0))
                return;

        /* Most texts fit at once; the second round is for those that do not. */
        va_copy(again, ap);
        n = vsnprintf(b->data + b->size, b->allocated - b->size, fmt, ap);
        if (n < 0)
                b->failed = true;
        else if ((size_t) n >= b->allocated - b->size) {
                if (strbuf_reserve(b, (size_t) n))
                        (void) vsnprintf(b->data + b->size, b->allocated - b->size, fmt, again);
        }
        va_end(again);

        if (!b->failed)
                b->size += (size_t) n;
        b->data[b->size] = 0;
}

void strbuf_addf(StrBuf *b, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(b, fmt, ap);
        va_end(ap);
}

void strbuf_truncate(StrBuf *b, size_t size) {
        assert(size <= b->size);
        b->size = size;
        if (b->data)
                b->data[size] = 0;
}

char *strbuf_steal(StrBuf *b) {
        char *data, *fitting;

        if (!strbuf_reserve(b, 0)) {
                strbuf_done(b);
                return NULL;
        }
        data = TAKE_PTR(b->data);
        data[b->size] = 0;
        if (b->size >= LARGE_TEXT_BYTES && b->allocated > b->size + 1) {
                fitting = realloc(data, b->size + 1);
                if (!fitting)
                        free(data);
                data = fitting;
        }
        *b = (StrBuf){ 0 };
        return data;
}

void strbuf_done(StrBuf *b) {
        free(b->data);
        *b = (StrBuf){ 0 };
}

char *strf(const char *fmt, ...) {
        char text[STRF_USUAL];
        char *s;
        va_list ap;
        int n;

        /* Most texts fit, and are formatted once. */
        va_start(ap, fmt);
        n = vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (n < 0)
                return NULL;
        s = malloc((size_t) n + 1);
        if (!s)
                return NULL;
        if ((size_t) n < sizeof(text))
                return memcpy(s, text, (size_t) n + 1);
        va_start(ap, fmt);
        (void) vsnprintf(s, (size_t) n + 1, fmt, ap);
        va_end(ap);
        return s;
}

static bool is_unreserved(char c) {
        return is_alphanumeric(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' || c == '~';
}

char *url_encode(const char *s, bool keep_slash) {
        static const char digits[] = "0123456789ABCDEF";
        _cleanup_strbuf_ StrBuf b = { 0 };

        assert(s);
        while (*s) {
                size_t n = 0;

                while (is_unreserved(s[n]) || (keep_slash && s[n] == '/'))
                        n++;
                strbuf_add_n(&b, s, n);
                s += n;
                if (*s) {
                        strbuf_add_n(&b, (char[]){ '%', digits[(uint8_t) *s >> 4], digits[*s & 15] }, 3);
                        s++;
                }
        }
        return strbuf_steal(&b);
}

void hex_encode(const void *data, size_t size, char *ret) {
        static const char digits[] = "0123456789abcdef";
        const uint8_t *p = data;

        for (size_t i = 0; i < size; i++) {
                *ret++ = digits[p[i] >> 4];
                *ret++ = digits[p[i] & 15];
        }
        *ret = 0;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* 0..63, or -1. */
static int base64_value(char c) {
        const char *p = c != 0 ? strchr(base64_digits, c) : NULL;

        return p ? (int) (p - base64_digits) : -1;
}

/* Decodes a group of four characters; the last group may be padded. Returns the number of bytes written, or -EBADMSG. */
static int base64_decode_group(const char group[4], uint8_t *out) {
        unsigned n_pad = group[3] != '=' ? 0 : group[2] != '=' ? 1 : 2;
        uint32_t bits = 0;

        for (unsigned i = 0; i < 4; i++) {
                int v = i < 4 - n_pad ? base64_value(group[i]) : 0;

                if (v < 0)
                        return -EBADMSG;
                bits = bits << 6 | (uint32_t) v;
        }
        /* RFC 4648, 3.5: the bits under the padding are zero. */
        if (bits & ((1u << (8 * n_pad)) - 1))
                return -EBADMSG;

        for (unsigned i = 0; i < 3 - n_pad; i++)
                out[i] = (uint8_t) (bits >> (16 - 8 * i));
        return (int) (3 - n_pad);
}

int base64_decode(const char *s, size_t size, void **ret, size_t *ret_size) {
        size_t n = 0, n_group = 0, room = size / 4 * 3 + 4;
        uint8_t *data;
        char group[4];
        bool padded = false;

        assert(s || size == 0);
        assert(ret);
        assert(ret_size);

        data = malloc(room);
        if (!data)
                return -ENOMEM;

        for (size_t i = 0; i < size; i++) {
                int k;

                if (s[i] != 0 && strchr(WHITESPACE, s[i]))
                        continue;
                if (padded)
                        goto bad;
                group[n_group++] = s[i];
                if (n_group < 4)
                        continue;

                k = base64_decode_group(group, data + n);
                if (k < 0)
                        goto bad;
                n += (size_t) k;
                n_group = 0;
                padded = k < 3;
        }
        if (n_group > 0)
                goto bad;

        data[n] = 0;
        *ret = data;
        *ret_size = n;
        return 0;

bad:
        erase_and_free(data, n); /* what is decoded is often a secret */
        return -EBADMSG;
}

char *base64_encode(const void *data, size_t size) {
        const uint8_t *p = data;
        size_t bytes;
        char *text, *q;

        if (__builtin_mul_overflow(size / 3 + 1, (size_t) 4, &bytes))
                return NULL;
        text = q = malloc(bytes + 1);
        if (!text)
                return NULL;

        for (size_t i = 0; i < size; i += 3) {
                size_t n = MIN(size - i, (size_t) 3);
                uint32_t bits = (uint32_t) p[i] << 16;

                if (n > 1)
                        bits |= (uint32_t) p[i + 1] << 8;
                if (n > 2)
                        bits |= p[i + 2];
                *q++ = base64_digits[bits >> 18];
                *q++ = base64_digits[bits >> 12 & 63];
                *q++ = n > 1 ? base64_digits[bits >> 6 & 63] : '=';
                *q++ = n > 2 ? base64_digits[bits & 63] : '=';
        }
        *q = 0;
        return text;
}
