/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-aws-auth.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>

#include "string-util.h"
#include "strv.h"

#define SCHEME "AWS4-HMAC-SHA256 "

/* The Authorization header taken apart; all owned. */
typedef struct Authorization {
        char **credential; /* key id, day, region, service, "aws4_request" */
        char **signed_headers;
        char *signature;
} Authorization;

static void authorization_done(Authorization *a) {
        strv_free(a->credential);
        strv_free(a->signed_headers);
        free(a->signature);
}

_printf_(5, 6) static bool refuse(FakeAwsRefusal *r, FakeAwsReason reason, unsigned status, const char *code,
                                  const char *fmt, ...) {
        va_list ap;

        r->reason = reason;
        r->status = status;
        r->code = code;
        va_start(ap, fmt);
        (void) vsnprintf(r->message, sizeof(r->message), fmt, ap);
        va_end(ap);
        return false;
}

static bool parse_authorization(const HttpExchange *x, Authorization *a) {
        const char *header = http_header_find(x->headers, x->n_headers, "Authorization");
        const char *rest = header ? startswith(header, SCHEME) : NULL;
        _cleanup_strv_free_ char **parts = NULL;

        if (!rest)
                return false;
        assert(strv_split(rest, ", ", &parts) >= 0);
        STRV_FOREACH (p, parts) {
                const char *value;

                if ((value = startswith(*p, "Credential=")))
                        assert(strv_split(value, "/", &a->credential) >= 0);
                else if ((value = startswith(*p, "SignedHeaders=")))
                        assert(strv_split(value, ";", &a->signed_headers) >= 0);
                else if ((value = startswith(*p, "Signature=")))
                        assert(free_and_strdup(&a->signature, value) >= 0);
                else
                        return false;
        }
        return strv_length(a->credential) == 5 && streq(a->credential[4], "aws4_request") &&
               strv_length(a->signed_headers) > 0 && a->signature;
}

bool fake_aws_scope(const HttpExchange *x, FakeAwsScope *ret) {
        _cleanup_(authorization_done) Authorization a = { 0 };

        if (!parse_authorization(x, &a))
                return false;
        (void) snprintf(ret->region, sizeof(ret->region), "%s", a.credential[2]);
        (void) snprintf(ret->service, sizeof(ret->service), "%s", a.credential[3]);
        return true;
}

static void digest_hex(const void *data, size_t size, char ret[65]) {
        unsigned char digest[32];

        assert(EVP_Q_digest(NULL, "SHA256", NULL, data ? data : "", size, digest, NULL));
        hex_encode(digest, sizeof(digest), ret);
}

static void mac(const void *key, size_t key_size, const char *text, unsigned char ret[32]) {
        size_t n = 0;
        unsigned char out[32];

        assert(EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key, key_size, (const unsigned char *) text,
                         strlen(text), out, sizeof(out), &n));
        assert(n == sizeof(out));
        memcpy(ret, out, sizeof(out));
}

/* Only what our clients send: a POST without query. */
static char *canonical_request(const HttpExchange *x, char *const *signed_headers) {
        StrBuf b = { 0 };
        char body[65];

        strbuf_addf(&b, "%s\n%s\n\n", http_method_to_string(x->method), x->path);
        STRV_FOREACH (name, signed_headers) {
                const char *value = http_header_find(x->headers, x->n_headers, *name);
                _cleanup_strv_free_ char **words = NULL;
                _cleanup_free_ char *folded = NULL;

                assert(strv_split(strempty(value), " \t", &words) >= 0);
                folded = strv_join(words, " ");
                strbuf_addf(&b, "%s:%s\n", *name, strempty(folded));
        }
        digest_hex(x->body, x->body_size, body);
        strbuf_add_char(&b, '\n');
        STRV_FOREACH (name, signed_headers)
                strbuf_addf(&b, "%s%s", name == signed_headers ? "" : ";", *name);
        strbuf_addf(&b, "\n%s", body);
        return strbuf_steal(&b);
}

static void expected_signature(const HttpExchange *x, const Authorization *a, const char *secret,
                               const char *date, char ret[65]) {
        _cleanup_free_ char *request = NULL, *text = NULL, *start = NULL;
        unsigned char key[32];
        char hash[65];

        request = canonical_request(x, a->signed_headers);
        digest_hex(request, strlen(request), hash);
        text = strf("AWS4-HMAC-SHA256\n%s\n%s/%s/%s/aws4_request\n%s", date, a->credential[1],
                    a->credential[2], a->credential[3], hash);
        start = strf("AWS4%s", secret);
        mac(start, strlen(start), a->credential[1], key);
        for (int i = 2; i < 5; i++)
                mac(key, sizeof(key), a->credential[i], key);
        mac(key, sizeof(key), text, key);
        hex_encode(key, sizeof(key), ret);
}

/* "20150830T123600Z" */
static bool parse_date(const char *s, usec_t *ret) {
        unsigned y, mo, d, h, mi, sec;
        char text[64];

        if (!s || strlen(s) != 16 || sscanf(s, "%4u%2u%2uT%2u%2u%2uZ", &y, &mo, &d, &h, &mi, &sec) != 6)
                return false;
        (void) snprintf(text, sizeof(text), "%04u-%02u-%02uT%02u:%02u:%02uZ", y, mo, d, h, mi, sec);
        return rfc3339_parse(text, ret) >= 0;
}

/* Sorted, in small letters, and with all that must not be changed on the way. */
static bool signed_headers_are_complete(const HttpExchange *x, char *const *names) {
        for (size_t i = 0; names[i]; i++) {
                if (i > 0 && strcmp(names[i - 1], names[i]) >= 0)
                        return false;
                if (!http_header_find(x->headers, x->n_headers, names[i]))
                        return false;
        }
        if (!strv_contains(names, "host"))
                return false;
        for (size_t i = 0; i < x->n_headers; i++) {
                _cleanup_free_ char *name = strdup(x->headers[i].name);

                for (char *p = name; *p; p++)
                        *p |= *p >= 'A' && *p <= 'Z' ? 0x20 : 0;
                if ((startswith(name, "x-amz-") || streq(name, "content-type")) &&
                    !strv_contains(names, name))
                        return false;
        }
        return true;
}

bool fake_aws_verify(const HttpExchange *x, const FakeAwsKeys *keys, usec_t wall, usec_t max_skew,
                     FakeAwsRefusal *ret) {
        const char *date = http_header_find(x->headers, x->n_headers, "X-Amz-Date");
        const char *token = http_header_find(x->headers, x->n_headers, "X-Amz-Security-Token");
        _cleanup_(authorization_done) Authorization a = { 0 };
        char expected[65];
        usec_t at;

        if (!parse_authorization(x, &a))
                return refuse(ret, FAKE_AWS_NOT_SIGNED, 401, "AuthFailure",
                              "No Authorization header that could be read.");
        if (!streq(a.credential[0], keys->access_key_id) || !streq_ptr(token, keys->session_token))
                return refuse(ret, FAKE_AWS_UNKNOWN_KEYS, 401, "AuthFailure",
                              "AWS was not able to validate the provided access credentials");
        if (!parse_date(date, &at) || strncmp(date, a.credential[1], 8) != 0 || strlen(a.credential[1]) != 8)
                return refuse(ret, FAKE_AWS_WRONG_SCOPE, 403, "SignatureDoesNotMatch",
                              "Date in Credential scope does not match X-Amz-Date.");
        if (at > usec_add(wall, max_skew) || wall > usec_add(at, max_skew))
                return refuse(ret, FAKE_AWS_WRONG_CLOCK, 400, "RequestExpired", "Request has expired.");
        if (!signed_headers_are_complete(x, a.signed_headers))
                return refuse(ret, FAKE_AWS_WRONG_SIGNATURE, 403, "SignatureDoesNotMatch",
                              "SignedHeaders is not what must be signed.");

        expected_signature(x, &a, keys->secret_access_key, date, expected);
        if (!streq(expected, a.signature))
                return refuse(
                        ret, FAKE_AWS_WRONG_SIGNATURE, 403, "SignatureDoesNotMatch",
                        "The request signature we calculated does not match the signature you provided.");
        return true;
}

typedef struct Words {
        unsigned status;
        const char *code;
        const char *message; /* NULL: EC2's */
} Words;

static void say(FakeAwsRefusal *r, const Words *words) {
        r->status = words->status;
        r->code = words->code;
        if (words->message)
                (void) snprintf(r->message, sizeof(r->message), "%s", words->message);
}

#define NOT_SIGNED "Request is missing Authentication Token"
#define UNKNOWN_KEYS "The security token included in the request is invalid."
#define WRONG_CLOCK "Signature expired: it is now earlier or later than the service's clock allows (5 min.)"

void fake_aws_refusal_as_query(FakeAwsRefusal *r) {
        static const Words words[_FAKE_AWS_REASON_MAX] = {
                [FAKE_AWS_NOT_SIGNED] = { 403, "MissingAuthenticationToken", NOT_SIGNED },
                [FAKE_AWS_UNKNOWN_KEYS] = { 403, "InvalidClientTokenId", UNKNOWN_KEYS },
                [FAKE_AWS_WRONG_SCOPE] = { 403, "SignatureDoesNotMatch", NULL },
                [FAKE_AWS_WRONG_CLOCK] = { 403, "SignatureDoesNotMatch", WRONG_CLOCK },
                [FAKE_AWS_WRONG_SIGNATURE] = { 403, "SignatureDoesNotMatch", NULL },
                [FAKE_AWS_KEYS_EXPIRED] = { 403, "ExpiredToken", NULL },
        };

        say(r, &words[r->reason]);
}

void fake_aws_refusal_as_json(FakeAwsRefusal *r) {
        static const Words words[_FAKE_AWS_REASON_MAX] = {
                [FAKE_AWS_NOT_SIGNED] = { 403, "MissingAuthenticationTokenException", NOT_SIGNED },
                [FAKE_AWS_UNKNOWN_KEYS] = { 403, "UnrecognizedClientException", UNKNOWN_KEYS },
                [FAKE_AWS_WRONG_SCOPE] = { 403, "InvalidSignatureException", NULL },
                [FAKE_AWS_WRONG_CLOCK] = { 403, "InvalidSignatureException", WRONG_CLOCK },
                [FAKE_AWS_WRONG_SIGNATURE] = { 403, "InvalidSignatureException", NULL },
                [FAKE_AWS_KEYS_EXPIRED] = { 403, "ExpiredTokenException", NULL },
        };

        say(r, &words[r->reason]);
}
