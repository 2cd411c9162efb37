/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "pod-wait.h"
#include "string-util.h"

/* Answers of kube-apiserver 1.34 (pkg/registry/core/pod/storage/eviction.go), as they come over the wire. */
#define TOO_MANY(cause, more) \
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"Cannot evict pod as it would violate " \
        "the pod's disruption " \
        "budget.\",\"reason\":\"TooManyRequests\",\"details\":{" cause more "},\"code\":429}"
#define CAUSE_WEB \
        "\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget web needs 3 " \
        "healthy pods and has 3 " \
        "currently\"}]"
#define CAUSE_PENDING \
        "\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget web is still " \
        "being processed by the " \
        "server.\"}]"
#define HOOK_DENIED "admission webhook \\\"vm.example.com\\\" denied the request"
#define STATUS(reason, message) \
        "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"" reason "\",\"message\":\"" message "\"" \
        "}"

TEST_CASE(test_answers) {
        static const struct {
                const char *what;
                unsigned http;
                const char *body;
                unsigned retry_after_sec; /* the header */
                EvictionAnswer answer;
                const char *by;
                bool final;
        } rows[] = {
                { "not there", 404, STATUS("NotFound", "pods \\\"a\\\" not found"), 0, EVICTION_GONE, NULL,
                  true },
                { "another pod of that name", 409,
                  STATUS("Conflict", "the UID in the precondition (a) does not match"), 0, EVICTION_REPLACED,
                  NULL, true },
                { "its PDB says no", 429, TOO_MANY(CAUSE_WEB, ""), 0, EVICTION_BLOCKED_BY_PDB, "web",
                  false },
                { "its PDB's controller has not looked yet", 429,
                  TOO_MANY(CAUSE_PENDING, ",\"retryAfterSeconds\":10"), 10, EVICTION_PDB_NOT_OBSERVED, "web",
                  false },
                { "a PDB that a message does not name", 429,
                  TOO_MANY("\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"no\"}]", ""), 0,
                  EVICTION_BLOCKED_BY_PDB, NULL, false },
                { "a PDB without a name", 429,
                  TOO_MANY("\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption "
                           "budget \"}]",
                           ""),
                  0, EVICTION_BLOCKED_BY_PDB, NULL, false },
                { "flow control", 429,
                  STATUS("TooManyRequests", "too many requests, please try again later."), 1,
                  EVICTION_FLOW_CONTROL, NULL, false },
                { "flow control in plain text", 429, "Too many requests, please try again later.\\n", 1,
                  EVICTION_FLOW_CONTROL, NULL, false },
                { "two PDBs", 500,
                  STATUS("InternalError", "This pod has more than one PodDisruptionBudget, which the "
                                          "eviction subresource does "
                                          "not support."),
                  0, EVICTION_SEVERAL_PDBS, NULL, false },
                { "its server stumbles", 500, STATUS("InternalError", "etcdserver: leader changed"), 0,
                  EVICTION_SERVER_BUSY, NULL, false },
                { "its server stumbles without a word", 500, "", 0, EVICTION_SERVER_BUSY, NULL, false },
                { "its namespace goes", 403,
                  "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"unable to create new "
                  "content\",\"details\":{"
                  "\"causes\":[{\"reason\":\"NamespaceTerminating\",\"message\":\"namespace x is being "
                  "terminated\"}]}}",
                  0, EVICTION_NAMESPACE_TERMINATING, NULL, false },
                { "a webhook says no", 403, STATUS("Forbidden", HOOK_DENIED ": it is being migrated"), 0,
                  EVICTION_WEBHOOK, "vm.example.com", false },
                { "a webhook says no as a PDB would", 429,
                  STATUS("TooManyRequests", HOOK_DENIED ": it is being migrated"), 10, EVICTION_WEBHOOK,
                  "vm.example.com", false },
                { "a webhook says no without a word", 400, STATUS("BadRequest", HOOK_DENIED " without explanation"), 0,
                  EVICTION_WEBHOOK, "vm.example.com", false },
                { "a webhook's conflict is no other pod", 409, STATUS("Conflict", HOOK_DENIED ": later"), 0,
                  EVICTION_WEBHOOK, "vm.example.com", false },
                { "a webhook's 404 is no pod that is gone", 404, STATUS("NotFound", HOOK_DENIED ": no room"), 0,
                  EVICTION_WEBHOOK, "vm.example.com", false },
                { "a webhook that cannot be called", 500,
                  STATUS("InternalError", "Internal error occurred: failed calling webhook \\\"vm.example.com\\\": "
                                          "failed to call webhook: context deadline exceeded"),
                  0, EVICTION_WEBHOOK, "vm.example.com", false },
                { "words about a webhook that are not the API server's", 403,
                  STATUS("Forbidden", "see admission webhook \\\"vm.example.com\\\" denied the request: no"), 0,
                  EVICTION_FORBIDDEN, NULL, false },
                { "not allowed", 403, STATUS("Forbidden", "User cannot create pods/eviction"), 0,
                  EVICTION_FORBIDDEN, NULL, false },
                { "not known", 401, STATUS("Unauthorized", "Unauthorized"), 0, EVICTION_FORBIDDEN, NULL,
                  false },
                { "not understood", 400, STATUS("BadRequest", "no"), 0, EVICTION_REFUSED_FOR_GOOD, NULL,
                  false },
                { "no such verb", 405, "", 0, EVICTION_REFUSED_FOR_GOOD, NULL, false },
                { "not valid", 422, STATUS("Invalid", "no"), 0, EVICTION_REFUSED_FOR_GOOD, NULL, false },
                { "not now", 503, "", 5, EVICTION_SERVER_BUSY, NULL, false },
                { "too long", 504, STATUS("Timeout", "request did not complete"), 0, EVICTION_SERVER_BUSY,
                  NULL, false },
                { "a code from nowhere", 418, "", 0, EVICTION_SERVER_BUSY, NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                ApiError error = {};
                _cleanup_free_ char *by = NULL;

                print_message("  %s\n", rows[i].what);
                assert_return_code(api_error_from_body(rows[i].http, rows[i].body, strlen(rows[i].body),
                                                       rows[i].retry_after_sec * USEC_PER_SEC, &error),
                                   0);
                assert_string_equal(eviction_answer_to_string(eviction_classify(&error, &by)),
                                    eviction_answer_to_string(rows[i].answer));
                assert_true(streq_ptr(by, rows[i].by));
                assert_int_equal(eviction_classify(&error, NULL), rows[i].answer);
                assert_int_equal(eviction_answer_is_final(rows[i].answer), rows[i].final);
                api_error_done(&error);
        }
}

/* A PDB's name has 253 bytes at most. */
TEST_CASE(test_long_name) {
        for (unsigned n = 253; n <= 254; n++) {
                _cleanup_free_ char *name = new0(char, n + 1), *body = NULL, *by = NULL;
                ApiError error = {};

                memset(name, 'x', n);
                body = strf("{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"TooManyRequests\","
                            "\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption "
                            "budget %s needs\"}]}}",
                            name);
                assert_return_code(api_error_from_body(429, body, strlen(body), 0, &error), 0);
                assert_int_equal(eviction_classify(&error, &by), EVICTION_BLOCKED_BY_PDB);
                assert_true(streq_ptr(by, n == 253 ? name : NULL));
                api_error_done(&error);
        }
}

/* The words that people read are those of the webhook, or of the API server. */
TEST_CASE(test_words_of) {
        static const struct {
                const char *message, *words;
        } rows[] = {
                { "admission webhook \"a.b.c\" denied the request: moving to node-b: 40 %", "moving to node-b: 40 %" },
                { "admission webhook \"a.b.c\" denied the request without explanation",
                  "denied the request without explanation" },
                { "Internal error occurred: failed calling webhook \"a.b.c\": failed to call webhook: timeout",
                  "failed to call webhook: timeout" },
                { "no", "no" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_string_equal(
                        eviction_words(&(ApiError){ .http = 403, .message = (char *) rows[i].message }),
                        rows[i].words);
        assert_string_equal(eviction_words(NULL), "");
}

TEST_CASE(test_no_error) {
        ApiError error = {};
        char *pdb = (char *) "kept";

        assert_int_equal(eviction_classify(NULL, &pdb), EVICTION_ACCEPTED);
        assert_null(pdb);
        assert_true(eviction_answer_is_final(EVICTION_ACCEPTED));

        assert_return_code(api_error_from_transport(-ECONNRESET, "reset", true, &error), 0);
        assert_int_equal(eviction_classify(&error, &pdb), EVICTION_NO_ANSWER);
        assert_null(pdb);
        assert_false(eviction_answer_is_final(EVICTION_NO_ANSWER));
        api_error_done(&error);
}

TEST_CASE(test_words) {
        for (EvictionAnswer a = 0; a < _EVICTION_ANSWER_MAX; a++)
                assert_true(eviction_answer_to_string(a)[0] >= 'A' &&
                            eviction_answer_to_string(a)[0] <= 'Z');
        assert_null(eviction_answer_to_string(_EVICTION_ANSWER_MAX));
        assert_null(eviction_answer_to_string(_EVICTION_ANSWER_INVALID));
}

/* One table for everybody: names read back, who can do something is told what, and ranks put that first. */
TEST_CASE(test_waits) {
        for (PodWait w = 0; w < _POD_WAIT_MAX; w++) {
                assert_int_equal(pod_wait_from_string(pod_wait_to_string(w)), w);
                assert_int_equal(pod_wait_passes(w), pod_wait_remedy(w) == NULL);
                if (pod_wait_remedy(w)) /* whole sentences */
                        assert_true(pod_wait_remedy(w)[0] >= 'A' && pod_wait_remedy(w)[0] <= 'Z' && endswith(pod_wait_remedy(w), "."));
                assert_true(!pod_wait_is_turn(w) || pod_wait_passes(w));
                for (PodWait other = 0; other < _POD_WAIT_MAX; other++)
                        if (!pod_wait_passes(w) && pod_wait_passes(other))
                                assert_true(pod_wait_rank(w) < pod_wait_rank(other));
        }
        assert_int_equal(pod_wait_from_string("Unheard"), _POD_WAIT_INVALID);
        assert_int_equal(pod_wait_from_string(NULL), _POD_WAIT_INVALID);
        for (unsigned i = 0; i < 2; i++) {
                PodWait none = i ? _POD_WAIT_MAX : _POD_WAIT_INVALID;

                assert_null(pod_wait_to_string(none));
                assert_null(pod_wait_remedy(none));
                assert_false(pod_wait_passes(none));
                assert_false(pod_wait_is_of_pdb(none));
                assert_true(pod_wait_rank(none) > pod_wait_rank(POD_WAIT_PROTECTED));
                assert_int_equal(pod_wait_rank(none), pod_wait_rank(_POD_WAIT_INVALID));
        }
        for (EvictionAnswer a = 0; a < _EVICTION_ANSWER_MAX; a++) {
                assert_int_not_equal(pod_wait_of_answer(a), _POD_WAIT_INVALID);
                if (!eviction_answer_is_final(a))
                        assert_string_equal(pod_wait_to_string(pod_wait_of_answer(a)), eviction_answer_to_string(a));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waits),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_long_name),
                cmocka_unit_test(test_words_of),
                cmocka_unit_test(test_no_error),
                cmocka_unit_test(test_words),
        };
        return cmocka_run_group_tests_name("eviction", tests, NULL, NULL);
}
