/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of the specification, one function each:
 *
 *      canonical request = method, path, sorted query, sorted headers, their names, SHA-256 of the body
 *      string to sign    = algorithm, date, scope, SHA-256 of the canonical request
 *      key               = HMAC chain: "AWS4" + secret over day, region, service, "aws4_request"
 *      signature         = HMAC of the string to sign
 */
#include "aws-sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <strings.h>

#include "string-util.h"

#define HASH_BYTES 32u
#define HEX_MAX (2 * HASH_BYTES + 1)
#define ALGORITHM "AWS4-HMAC-SHA256"
#define DATE_CHARS 8

typedef struct Pair {
        char *name;
        char *value;
} Pair;

typedef struct PairList {
        Pair *items;
        size_t n;
        size_t allocated;
} PairList;

static void pair_list_done(PairList *l) {
        for (size_t i = 0; i < l->n; i++) {
                free(l->items[i].name);
                erase_and_free(l->items[i].value, l->items[i].value ? strlen(l->items[i].value) : 0);
        }
        free(l->items);
        *l = (PairList){ 0 };
}

/* Takes both strings, also on failure. */
static int pair_list_add(PairList *l, char *name, char *value) {
        if (!name || !value || GREEDY_REALLOC(l->items, l->allocated, l->n + 1) < 0) {
                free(name);
                free(value);
                return -ENOMEM;
        }
        l->items[l->n++] = (Pair){ name, value };
        return 0;
}

/* By name, then by value: the values only matter for a query. */
static int pair_compare(const void *a, const void *b) {
        const Pair *x = a, *y = b;
        int c = strcmp(x->name, y->name);

        return c != 0 ? c : strcmp(x->value, y->value);
}

static void pair_list_sort(PairList *l) {
        if (l->n > 1)
                qsort(l->items, l->n, sizeof(*l->items), pair_compare);
}

static int sha256_hex(const void *data, size_t size, char ret[HEX_MAX]) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;

        if (EVP_Digest(data ? data : "", size, digest, &n, EVP_sha256(), NULL) != 1 || n != HASH_BYTES)
                return -EIO;
        hex_encode(digest, n, ret);
        return 0;
}

/* `key` and `ret` may be the same. */
static int hmac(const void *key, size_t key_size, const char *text, unsigned char ret[HASH_BYTES]) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;

        if (!HMAC(EVP_sha256(), key, (int) key_size, (const unsigned char *) text, strlen(text), digest, &n))
                return -EIO;
        if (n != HASH_BYTES)
                return -EIO;
        memcpy(ret, digest, HASH_BYTES);
        explicit_bzero(digest, sizeof(digest));
        return 0;
}

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/* Percent-decodes a part of the query and encodes it again, so that only the one canonical spelling remains.
 */
static char *canonical_part(const char *s, size_t size) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        _cleanup_free_ char *decoded = NULL;

        for (size_t i = 0; i < size; i++) {
                int high = i + 2 < size && s[i] == '%' ? hex_digit(s[i + 1]) : -1;
                int low = high >= 0 ? hex_digit(s[i + 2]) : -1;

                if (low >= 0) {
                        strbuf_add_char(&b, (char) (high << 4 | low));
                        i += 2;
                } else
                        strbuf_add_char(&b, s[i]);
        }
        decoded = strbuf_steal(&b);
        return decoded ? url_encode(decoded, false) : NULL;
}

static int add_canonical_query(StrBuf *b, const char *query) {
        _cleanup_(pair_list_done) PairList l = { 0 };
        int r;

        for (const char *p = strempty(query); *p;) {
                size_t size = strcspn(p, "&"), name = strcspn(p, "=&");

                if (size > 0) {
                        const char *value = name < size ? p + name + 1 : p + size;

                        r = pair_list_add(&l, canonical_part(p, name),
                                          canonical_part(value, (size_t) (p + size - value)));
                        if (r < 0)
                                return r;
                }
                p += size + (p[size] == '&');
        }

        pair_list_sort(&l);
        for (size_t i = 0; i < l.n; i++)
                strbuf_addf(b, "%s%s=%s", i > 0 ? "&" : "", l.items[i].name, l.items[i].value);
        return 0;
}

static char *lower_case(const char *s) {
        char *t = strdup(s);

        for (char *p = t; p && *p; p++)
                if (*p >= 'A' && *p <= 'Z')
                        *p = (char) (*p - 'A' + 'a');
        return t;
}

/* Without blanks at the ends, inner runs of them folded into one. */
static char *folded_value(const char *s) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        bool gap = false;

        for (; *s; s++) {
                if (*s == ' ' || *s == '\t') {
                        gap = true;
                        continue;
                }
                if (gap && b.size > 0)
                        strbuf_add_char(&b, ' ');
                gap = false;
                strbuf_add_char(&b, *s);
        }
        return strbuf_steal(&b);
}

static int collect_headers(const SigV4Request *q, const char *date, PairList *ret) {
        bool host = false;
        int r;

        for (size_t i = 0; i < q->n_headers; i++) {
                r = pair_list_add(ret, lower_case(q->headers[i].name), folded_value(q->headers[i].value));
                if (r < 0)
                        return r;
                host = host || streq(ret->items[ret->n - 1].name, "host");
        }
        r = pair_list_add(ret, strdup("x-amz-date"), strdup(date));
        if (r < 0)
                return r;
        if (!isempty(q->session_token)) {
                r = pair_list_add(ret, strdup("x-amz-security-token"), folded_value(q->session_token));
                if (r < 0)
                        return r;
        }

        pair_list_sort(ret);
        for (size_t i = 1; i < ret->n; i++)
                if (streq(ret->items[i - 1].name, ret->items[i].name))
                        return -EINVAL;
        return host ? 0 : -EINVAL;
}

static char *signed_names(const PairList *headers) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        for (size_t i = 0; i < headers->n; i++)
                strbuf_addf(&b, "%s%s", i > 0 ? ";" : "", headers->items[i].name);
        return strbuf_steal(&b);
}

static int canonical_hash(const SigV4Request *q, const PairList *headers, const char *names,
                          char ret[HEX_MAX]) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char body[HEX_MAX];
        int r;

        r = sha256_hex(q->body, q->body_size, body);
        if (r < 0)
                return r;

        strbuf_addf(&b, "%s\n%s\n", http_method_to_string(q->method), isempty(q->path) ? "/" : q->path);
        r = add_canonical_query(&b, q->query);
        if (r < 0)
                return r;
        strbuf_add_char(&b, '\n');
        for (size_t i = 0; i < headers->n; i++)
                strbuf_addf(&b, "%s:%s\n", headers->items[i].name, headers->items[i].value);
        strbuf_addf(&b, "\n%s\n%s", names, body);

        r = b.failed ? -ENOMEM : sha256_hex(b.data, b.size, ret);
        if (b.data)
                explicit_bzero(b.data, b.size); /* holds the session token */
        return r;
}

static int signature_hex(const SigV4Request *q, const char *day, const char *string_to_sign,
                         char ret[HEX_MAX]) {
        _cleanup_free_ char *secret = NULL;
        unsigned char key[HASH_BYTES];
        int r;

        secret = strf("AWS4%s", q->secret_access_key);
        if (!secret)
                return -ENOMEM;

        r = hmac(secret, strlen(secret), day, key);
        explicit_bzero(secret, strlen(secret));
        if (r >= 0)
                r = hmac(key, sizeof(key), q->region, key);
        if (r >= 0)
                r = hmac(key, sizeof(key), q->service, key);
        if (r >= 0)
                r = hmac(key, sizeof(key), "aws4_request", key);
        if (r >= 0)
                r = hmac(key, sizeof(key), string_to_sign, key);
        if (r >= 0)
                hex_encode(key, sizeof(key), ret);
        explicit_bzero(key, sizeof(key));
        return r;
}

static int fill(const SigV4Request *q, const char *scope, const char *names, const char *signature,
                SigV4Headers *h) {
        h->authorization = strf(ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                                q->access_key_id, scope, names, signature);
        if (!h->authorization)
                return -ENOMEM;
        h->headers[h->n_headers++] = (HttpHeader){ "Authorization", h->authorization };

        if (isempty(q->session_token))
                return 0;
        h->session_token = strdup(q->session_token);
        if (!h->session_token)
                return -ENOMEM;
        h->headers[h->n_headers++] = (HttpHeader){ "X-Amz-Security-Token", h->session_token };
        return 0;
}

int sigv4_sign(const SigV4Request *q, SigV4Headers *ret) {
        _cleanup_(pair_list_done) PairList headers = { 0 };
        _cleanup_free_ char *names = NULL, *scope = NULL, *text = NULL;
        char date[RFC3339_MAX], day[DATE_CHARS + 1] = "", request_hash[HEX_MAX], signature[HEX_MAX];
        int r;

        assert(q && ret);
        *ret = (SigV4Headers){ 0 };
        if (isempty(q->region) || isempty(q->service) || isempty(q->access_key_id) ||
            isempty(q->secret_access_key))
                return -EINVAL;

        iso8601_basic_format(q->wall_usec, date);
        memcpy(day, date, DATE_CHARS);
        r = collect_headers(q, date, &headers);
        if (r < 0)
                return r;

        names = signed_names(&headers);
        scope = strf("%s/%s/%s/aws4_request", day, q->region, q->service);
        if (!names || !scope)
                return -ENOMEM;
        r = canonical_hash(q, &headers, names, request_hash);
        if (r < 0)
                return r;
        text = strf(ALGORITHM "\n%s\n%s\n%s", date, scope, request_hash);
        if (!text)
                return -ENOMEM;
        r = signature_hex(q, day, text, signature);
        if (r < 0)
                return r;

        r = fill(q, scope, names, signature, ret);
        if (r < 0) {
                sigv4_headers_done(ret);
                return r;
        }
        memcpy(ret->date, date, sizeof(ret->date));
        /* The one that points into the struct itself: callers use it where it stands. */
        ret->headers[ret->n_headers++] = (HttpHeader){ "X-Amz-Date", ret->date };
        return 0;
}

void sigv4_headers_done(SigV4Headers *h) {
        if (h->session_token)
                erase_and_free(h->session_token, strlen(h->session_token));
        free(h->authorization);
        *h = (SigV4Headers){ 0 };
}
