/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api-error.h"
#include "cmocka-test.h"
#include "string-util.h"

TEST_CASE(test_body) {
        static const struct {
                const char *what;
                unsigned http;
                const char *body;
                usec_t header_usec;
                const char *reason, *message;
                usec_t retry_after_usec;
                int error;
        } rows[] = {
                { "a conflict", 409,
                  "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"changed\",\"code\":409}", 0,
                  "Conflict", "changed", 0, -EBUSY },
                { "it is there already", 409,
                  "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"m\"}", 0, "AlreadyExists",
                  "m", 0, -EEXIST },
                { "not found", 404,
                  "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"pods \\\"a\\\" not found\"}",
                  0, "NotFound", "pods \"a\" not found", 0, -ENOENT },
                { "too many: the body says longer than the header", 429,
                  "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"m\",\"details\":{"
                  "\"retryAfterSeconds\":10}}",
                  USEC_PER_SEC, "TooManyRequests", "m", 10 * USEC_PER_SEC, -EAGAIN },
                { "too many: the header says longer than the body", 429,
                  "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"retryAfterSeconds\":1}}",
                  7 * USEC_PER_SEC, NULL, "m", 7 * USEC_PER_SEC, -EAGAIN },
                { "a wait below zero is none", 503,
                  "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"retryAfterSeconds\":-5}}", 0, NULL,
                  "m", 0, -EAGAIN },
                { "a wait of years is a minute", 503,
                  "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"retryAfterSeconds\":"
                  "9007199254740991}}",
                  0, NULL, "m", USEC_PER_MINUTE, -EAGAIN },
                { "the resource version is gone", 410,
                  "{\"kind\":\"Status\",\"reason\":\"Expired\",\"message\":\"too old\"}", 0, "Expired",
                  "too old", 0, -ESTALE },
                { "refused by admission", 422,
                  "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"no\"}", 0, "Invalid", "no", 0,
                  -EINVAL },
                { "forbidden, as text", 403, "Forbidden: kubelet\n", 0, NULL, "Forbidden: kubelet", 0,
                  -EACCES },
                { "unauthorized", 401,
                  "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"message\":\"Unauthorized\"}", 0,
                  "Unauthorized", "Unauthorized", 0, -EACCES },
                { "a proxy's page", 502, "<html><body>bad</body></html>", 0, NULL,
                  "HTTP status 502 without a message", 0, -EREMOTEIO },
                { "nothing", 500, "", 0, NULL, "HTTP status 500 without a message", 0, -EREMOTEIO },
                { "white space", 500, " \n ", 0, NULL, "HTTP status 500 without a message", 0, -EREMOTEIO },
                { "JSON, but no Status", 500, "{\"reason\":\"Conflict\",\"message\":\"m\"}", 0, NULL,
                  "HTTP status 500 without a message", 0, -EREMOTEIO },
                { "texts of other types", 400,
                  "{\"kind\":\"Status\",\"reason\":7,\"message\":[],\"details\":\"x\"}", 0, NULL,
                  "HTTP status 400 without a message", 0, -EINVAL },
                { "control characters do not reach a log", 400,
                  "{\"kind\":\"Status\",\"message\":\"a\\nb\\u001b[31m\"}", 0, NULL, "a?b?[31m", 0,
                  -EINVAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(api_error_done) ApiError e = { 0 };

                print_message("%s\n", rows[i].what);
                assert_return_code(api_error_from_body(rows[i].http, rows[i].body, strlen(rows[i].body),
                                                       rows[i].header_usec, &e),
                                   0);
                assert_int_equal(e.http, rows[i].http);
                assert_true(streq_ptr(e.reason, rows[i].reason));
                assert_string_equal(e.message, rows[i].message);
                assert_int_equal(e.retry_after_usec, rows[i].retry_after_usec);
                assert_int_equal(api_error_to_errno(&e), rows[i].error);
        }
}

TEST_CASE(test_causes) {
        static const char body[] = "{\"kind\":\"Status\",\"message\":\"Cannot evict "
                                   "pod\",\"reason\":\"TooManyRequests\",\"details\":{\"causes\":["
                                   "{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget "
                                   "web needs 3 healthy pods\"},"
                                   "{\"field\":\"spec\"},7,{},{},{},{},{},{},{\"reason\":\"TheNinth\"}]}}";
        _cleanup_(api_error_done) ApiError e = { 0 };

        assert_return_code(api_error_from_body(429, body, strlen(body), 0, &e), 0);
        assert_int_equal(e.n_causes, API_ERROR_CAUSES_MAX);
        assert_string_equal(e.causes[0].message, "The disruption budget web needs 3 healthy pods");
        assert_string_equal(e.causes[1].field, "spec");
        assert_null(e.causes[1].reason);
        assert_null(e.causes[2].reason);
        assert_true(api_error_has_cause(&e, "DisruptionBudget"));
        assert_false(api_error_has_cause(&e, "TheNinth"));
        assert_false(api_error_has_cause(NULL, "DisruptionBudget"));
}

TEST_CASE(test_long_message) {
        _cleanup_(api_error_done) ApiError e = { 0 };
        static char body[5000];

        memset(body, 'x', sizeof(body));
        assert_return_code(api_error_from_body(500, body, sizeof(body), 0, &e), 0);
        assert_true(strlen(e.message) <= 1024);
        assert_true(strlen(e.message) > 1000);
}

TEST_CASE(test_transport) {
        _cleanup_(api_error_done) ApiError e = { 0 }, bare = { 0 };

        assert_return_code(
                api_error_from_transport(-ECONNREFUSED, "connect to api:443: refused\n", false, &e), 0);
        assert_int_equal(e.http, 0);
        assert_int_equal(e.error, -ECONNREFUSED);
        assert_false(e.maybe_sent);
        assert_string_equal(e.message, "connect to api:443: refused?");
        assert_int_equal(api_error_to_errno(&e), -ECONNREFUSED);

        assert_return_code(api_error_from_transport(-ETIMEDOUT, NULL, true, &bare), 0);
        assert_true(bare.maybe_sent);
        assert_true(strlen(bare.message) > 0);

        api_error_done(&e);
        assert_null(e.message);
        api_error_done(&e);
        api_error_done(NULL);
}

TEST_CASE(test_webhook) {
        static const struct {
                const char *message, *name, *words; /* name NULL: of no webhook */
        } rows[] = {
                { "admission webhook \"vm.example.com\" denied the request: moving", "vm.example.com", "moving" },
                { "admission webhook \"vm.example.com\" denied the request: a: b", "vm.example.com", "a: b" },
                { "admission webhook \"vm.example.com\" denied the request without explanation", "vm.example.com",
                  "denied the request without explanation" },
                { "Internal error occurred: failed calling webhook \"vm.example.com\": failed to call webhook: no",
                  "vm.example.com", "failed to call webhook: no" },
                { "admission webhook \"vm.example.com\" denied the request: ", NULL, NULL },
                { "Internal error occurred: failed calling webhook \"vm.example.com\"", NULL, NULL },
                { "failed calling webhook \"vm.example.com\": no", NULL, NULL },
                { "admission webhook \"\" denied the request: no", NULL, NULL },
                { "admission webhook \"vm.example.com denied the request: no", NULL, NULL },
                { "admission webhook \"a b\" denied the request: no", NULL, NULL },
                { "admission webhook \"vm.example.com\" attempted to modify the object", NULL, NULL },
                { "admission webhook ", NULL, NULL },
                { "Cannot evict pod as it would violate the pod's disruption budget.", NULL, NULL },
                { "", NULL, NULL },
        };
        char long_name[300], text[400];
        ApiWebhook hook;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const ApiError e = { .http = 403, .message = (char *) rows[i].message };

                print_message("  %s\n", rows[i].message);
                hook = (ApiWebhook){};
                assert_int_equal(api_error_is_of_webhook(&e, &hook), rows[i].name != NULL);
                if (!rows[i].name)
                        continue;
                assert_int_equal(hook.name_size, strlen(rows[i].name));
                assert_memory_equal(hook.name, rows[i].name, hook.name_size);
                assert_string_equal(hook.words, rows[i].words);
        }

        print_message("  a name as long as one may be, and one longer\n");
        for (size_t n = 253; n <= 254; n++) {
                memset(long_name, 'a', n);
                long_name[n] = 0;
                snprintf(text, sizeof(text), "admission webhook \"%s\" denied the request: no", long_name);
                assert_int_equal(api_error_is_of_webhook(&(ApiError){ .http = 403, .message = text }, &hook),
                                 n == 253);
        }
        assert_false(api_error_is_of_webhook(&(ApiError){ .http = 500 }, &hook));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_body),
                cmocka_unit_test(test_causes),
                cmocka_unit_test(test_long_message),
                cmocka_unit_test(test_transport),
                cmocka_unit_test(test_webhook),
        };
        return cmocka_run_group_tests_name("api-error", tests, NULL, NULL);
}
