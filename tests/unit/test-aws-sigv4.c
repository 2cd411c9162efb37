/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-sigv4.h"
#include "cmocka-test.h"
#include "string-util.h"

/* AWS's published test suite: 2015-08-30 12:36:00 UTC, us-east-1, "service", and these keys. */
#define SUITE_USEC (UINT64_C(1440938160) * USEC_PER_SEC)
#define SUITE_KEY "AKIDEXAMPLE"
#define SUITE_SECRET "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
#define SUITE_TOKEN \
        "AQoDYXdzEPT//////////" \
        "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTfl" \
        "fKD8YUuwthAx7mSEI/qkPpKPi/" \
        "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HF" \
        "vlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+" \
        "scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKT" \
        "r4rvx3iSIlTJabIQwj2ICCR/oLxBA=="

TEST_CASE(test_vectors) {
        static const struct {
                const char *what;
                HttpMethod method;
                const char *path, *query;
                HttpHeader headers[3];
                size_t n_headers;
                const char *body;
                const char *token;
                const char *signed_headers, *signature;
        } rows[] = {
                { "get-vanilla",
                  HTTP_GET,
                  "/",
                  NULL,
                  { { "Host", "example.amazonaws.com" } },
                  1,
                  NULL,
                  NULL,
                  "host;x-amz-date",
                  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
                { "get-vanilla without a path",
                  HTTP_GET,
                  "",
                  NULL,
                  { { "Host", "example.amazonaws.com" } },
                  1,
                  NULL,
                  NULL,
                  "host;x-amz-date",
                  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31" },
                { "get-vanilla-query-order-key-case",
                  HTTP_GET,
                  "/",
                  "Param2=value2&Param1=value1",
                  { { "Host", "example.amazonaws.com" } },
                  1,
                  NULL,
                  NULL,
                  "host;x-amz-date",
                  "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500" },
                { "post-vanilla",
                  HTTP_POST,
                  "/",
                  NULL,
                  { { "Host", "example.amazonaws.com" } },
                  1,
                  NULL,
                  NULL,
                  "host;x-amz-date",
                  "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b" },
                { "post-x-www-form-urlencoded",
                  HTTP_POST,
                  "/",
                  NULL,
                  { { "Content-Type", "application/x-www-form-urlencoded" },
                    { "Host", "example.amazonaws.com" } },
                  2,
                  "Param1=value1",
                  NULL,
                  "content-type;host;x-amz-date",
                  "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a" },
                { "post-sts-header-before",
                  HTTP_POST,
                  "/",
                  NULL,
                  { { "Host", "example.amazonaws.com" } },
                  1,
                  NULL,
                  SUITE_TOKEN,
                  "host;x-amz-date;x-amz-security-token",
                  "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead" },
                { "get-header-value-trim",
                  HTTP_GET,
                  "/",
                  NULL,
                  { { "Host", "example.amazonaws.com" },
                    { "My-Header1", " value1" },
                    { "My-Header2", " \"a   b   c\"" } },
                  3,
                  NULL,
                  NULL,
                  "host;my-header1;my-header2;x-amz-date",
                  "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sigv4_headers_done) SigV4Headers h = { 0 };
                _cleanup_free_ char *expected = NULL;

                print_message("%s\n", rows[i].what);
                assert_return_code(sigv4_sign(&(SigV4Request){ .method = rows[i].method,
                                                               .path = rows[i].path,
                                                               .query = rows[i].query,
                                                               .headers = rows[i].headers,
                                                               .n_headers = rows[i].n_headers,
                                                               .body = rows[i].body,
                                                               .body_size = strlen(strempty(rows[i].body)),
                                                               .region = "us-east-1",
                                                               .service = "service",
                                                               .access_key_id = SUITE_KEY,
                                                               .secret_access_key = SUITE_SECRET,
                                                               .session_token = rows[i].token,
                                                               .wall_usec = SUITE_USEC },
                                              &h),
                                   0);
                expected = strf("AWS4-HMAC-SHA256 Credential=" SUITE_KEY
                                "/20150830/us-east-1/service/aws4_request, SignedHeaders=%s, Signature=%s",
                                rows[i].signed_headers, rows[i].signature);
                assert_string_equal(http_header_find(h.headers, h.n_headers, "Authorization"), expected);
                assert_string_equal(http_header_find(h.headers, h.n_headers, "X-Amz-Date"),
                                    "20150830T123600Z");
                assert_true(streq_ptr(http_header_find(h.headers, h.n_headers, "X-Amz-Security-Token"),
                                      rows[i].token));
        }
}

/* Spellings of one query that a server takes for the same one. */
TEST_CASE(test_query_spellings) {
        static const struct {
                const char *what, *a, *b;
                bool same;
        } rows[] = {
                { "lower-case hex", "a=%2f", "a=%2F", true },
                { "what needs no encoding", "a=%41-", "a=A-", true },
                { "a slash as it is", "a=/", "a=%2F", true },
                { "a name without a value", "a", "a=", true },
                { "an empty part", "a=1&&b=2&", "b=2&a=1", true },
                { "the same name twice, by value", "a=2&a=1", "a=1&a=2", true },
                { "a plus is no blank", "a=+", "a=%20", false },
                { "no encoding but a per cent", "a=%zz", "a=%25zz", true },
                { "a cut encoding", "a=%4", "a=%254", true },
                { "an equals sign in the value", "a=b=c", "a=b%3Dc", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sigv4_headers_done) SigV4Headers a = { 0 }, b = { 0 };
                SigV4Request q = { .method = HTTP_GET,
                                   .query = rows[i].a,
                                   .headers = &(HttpHeader){ "host", "h" },
                                   .n_headers = 1,
                                   .region = "r",
                                   .service = "s",
                                   .access_key_id = "k",
                                   .secret_access_key = "x" };

                print_message("%s\n", rows[i].what);
                assert_return_code(sigv4_sign(&q, &a), 0);
                q.query = rows[i].b;
                assert_return_code(sigv4_sign(&q, &b), 0);
                assert_int_equal(streq(a.authorization, b.authorization), rows[i].same);
        }
}

TEST_CASE(test_refused) {
        static const HttpHeader host[] = { { "Host", "h" }, { "HOST", "h" } },
                                other[] = { { "Accept", "*" } };
        static const HttpHeader date[] = { { "Host", "h" }, { "x-amz-date", "20150830T123600Z" } };
        static const struct {
                const char *what;
                SigV4Request request;
        } rows[] = {
                { "no host",
                  { .headers = other,
                    .n_headers = 1,
                    .region = "r",
                    .service = "s",
                    .access_key_id = "k",
                    .secret_access_key = "x" } },
                { "host twice",
                  { .headers = host,
                    .n_headers = 2,
                    .region = "r",
                    .service = "s",
                    .access_key_id = "k",
                    .secret_access_key = "x" } },
                { "a date of the caller's",
                  { .headers = date,
                    .n_headers = 2,
                    .region = "r",
                    .service = "s",
                    .access_key_id = "k",
                    .secret_access_key = "x" } },
                { "no region",
                  { .headers = host,
                    .n_headers = 1,
                    .region = "",
                    .service = "s",
                    .access_key_id = "k",
                    .secret_access_key = "x" } },
                { "no key",
                  { .headers = host,
                    .n_headers = 1,
                    .region = "r",
                    .service = "s",
                    .secret_access_key = "x" } },
                { "no secret",
                  { .headers = host, .n_headers = 1, .region = "r", .service = "s", .access_key_id = "k" } },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sigv4_headers_done) SigV4Headers h = { 0 };

                print_message("%s\n", rows[i].what);
                assert_int_equal(sigv4_sign(&rows[i].request, &h), -EINVAL);
                assert_int_equal(h.n_headers, 0);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_vectors),
                cmocka_unit_test(test_query_spellings),
                cmocka_unit_test(test_refused),
        };
        return cmocka_run_group_tests_name("aws-sigv4", tests, NULL, NULL);
}
