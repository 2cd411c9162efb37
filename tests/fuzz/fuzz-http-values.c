/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz-draw.h"
#include "http-transport.h"
#include "parse-util.h"
#include "string-util.h"

/*
 * What comes in the headers of any answer, and what goes into a URL: Retry-After is bounded and asks for no
 * less when time has not moved, Date is bounded, headers are found whatever their case and copied as they
 * were, encoding is reversed by decoding, numbers read back.
 */

#define YEAR_10000 (UINT64_C(253402300800) * USEC_PER_SEC)
#define RETRY_AFTER_MAX (366 * USEC_PER_DAY)

static void check_retry_after(Draw *d) {
        static const char *const forms[] = { "%s",
                                             "Sun, 06 Nov 1994 08:49:37 GMT%s",
                                             "Fri, 15 Jan 2027 08:00:%s GMT",
                                             "Fri, %s Jan 2027 08:00:00 GMT",
                                             "1%s",
                                             "31622400%s",
                                             "-%s" };
        const char *form = draw_of(d, forms);
        usec_t now = draw_usec(d, UINT64_C(1800000000) * USEC_PER_SEC), after, later;
        _cleanup_free_ char *text = draw_text(d), *value = NULL;
        const char *hole = strstr(form, "%s");

        value = strf("%.*s%s%s", (int) (hole - form), form, text, hole + 2);
        assert(value);

        HttpHeader h[] = { { "Content-Type", "text/plain" }, { "retry-AFTER", value } };
        HttpResponse response = { .headers = h, .n_headers = ELEMENTSOF(h) };

        after = http_retry_after(&response, now);
        assert(after <= RETRY_AFTER_MAX);
        later = http_retry_after(&response, usec_add(now, USEC_PER_SEC));
        assert(later == after || after > RETRY_AFTER_MAX - USEC_PER_SEC || later + USEC_PER_SEC == after ||
               (after <= USEC_PER_SEC && later == 0) || (after == 0 && later == RETRY_AFTER_MAX));
        h[1].name = "dAtE";
        assert(http_date(&response) < YEAR_10000);
        response.n_headers = 1;
        assert(http_retry_after(&response, now) == 0);
        assert(http_date(&response) == 0);
}

static void check_headers(Draw *d) {
        HttpHeader h[6], *copy = NULL;
        size_t n = draw_below(d, ELEMENTSOF(h) + 1);

        for (size_t i = 0; i < n; i++)
                h[i] = (HttpHeader){ draw_text(d), draw_text(d) };
        assert(http_headers_copy(h, n, &copy) == 0);
        assert((n == 0) == (copy == NULL));
        for (size_t i = 0; i < n; i++) {
                assert(streq(copy[i].name, h[i].name) && streq(copy[i].value, h[i].value));
                assert(streq(http_header_find(copy, n, h[i].name), http_header_find(h, n, h[i].name)));
        }
        free(copy);
        for (size_t i = 0; i < n; i++) {
                free((char *) h[i].name);
                free((char *) h[i].value);
        }
}

static int hex(char c) {
        return c <= '9' ? c - '0' : c - 'A' + 10;
}

static void check_url(const char *text, bool keep_slash) {
        _cleanup_free_ char *encoded = url_encode(text, keep_slash), *back = NULL;
        StrBuf b = { 0 };

        assert(encoded);
        assert(strspn(encoded, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%/") ==
               strlen(encoded));
        assert(keep_slash || !strchr(encoded, '/'));
        for (const char *p = encoded; *p; p++)
                if (*p == '%') {
                        strbuf_add_char(&b, (char) (hex(p[1]) << 4 | hex(p[2])));
                        p += 2;
                } else
                        strbuf_add_char(&b, *p);
        back = strbuf_steal(&b);
        assert(back && streq(back, text));
}

static void check_base64(const char *text, size_t size) {
        _cleanup_free_ char *encoded = base64_encode(text, size);
        _cleanup_free_ void *back = NULL, *any = NULL;
        size_t back_size, any_size;
        int r;

        assert(encoded);
        assert(base64_decode(encoded, strlen(encoded), &back, &back_size) == 0);
        assert(back_size == size && memcmp(back, text, size) == 0);
        r = base64_decode(text, size, &any, &any_size);
        assert(r == 0 || r == -EBADMSG);
        if (r == 0) {
                _cleanup_free_ char *again = base64_encode(any, any_size);

                assert(again && any_size <= size && strlen(again) <= size);
        }
}

static void check_numbers(const char *text) {
        uint64_t u;
        int64_t i;
        bool b;
        int r;

        r = parse_uint64(text, &u);
        assert(r == 0 || r == -EINVAL || r == -ERANGE);
        if (r == 0)
                assert(u == strtoull(text, NULL, 10));
        r = parse_int64(text, &i);
        assert(r == 0 || r == -EINVAL || r == -ERANGE);
        if (r == 0)
                assert(i == strtoll(text, NULL, 10));
        r = parse_uint64_range(text, 5, 10, &u);
        if (r == 0)
                assert(u >= 5 && u <= 10);
        r = parse_bool(text, &b);
        assert(r == 0 || r == -EINVAL);
}

static void check_texts(const char *text) {
        size_t n = strlen(text), max = 16;
        _cleanup_free_ char *clean = str_sanitize(text, max), *copy = strdup(text);

        assert(clean && copy);
        assert(strlen(clean) <= max + 3);
        assert(utf8_is_valid(clean, strlen(clean)));
        for (const char *p = clean; *p; p++)
                assert((unsigned char) *p >= ' ' && *p != 0x7f);
        assert(strlen(strstrip(copy)) <= n);
        if (dns1123_subdomain_is_valid(text))
                assert(n >= 1 && n <= 253 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *text = NULL;

        switch (draw_below(&d, 4)) {
        case 0:
                check_retry_after(&d);
                break;
        case 1:
                check_headers(&d);
                break;
        default:
                text = memdup_str(d.data ? d.data : (const uint8_t *) "", d.size);
                assert(text);
                check_base64(text, d.size);
                check_url(text, draw_bool(&d));
                check_numbers(text);
                check_texts(text);
        }
        return 0;
}
