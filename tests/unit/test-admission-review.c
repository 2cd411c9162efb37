/* SPDX-License-Identifier: Apache-2.0 */
#include "admission-rows.h"
#include "cmocka-test.h"
#include "string-util.h"
#include "strv.h"

static char *quoted(const char *s) {
        char *text = strf("%s", s);

        assert_non_null(text);
        for (char *p = text; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return text;
}

TEST_CASE(test_requests) {
        for (size_t i = 0; i < ELEMENTSOF(admission_requests); i++) {
                _cleanup_free_ char *body = quoted(admission_requests[i].body), *message = NULL;
                AdmissionReview r;

                print_message("  %s\n", admission_requests[i].what);
                assert_return_code(admission_review_parse(body, strlen(body), *state, &r, &message), 0);
                assert_null(message);
                assert_string_equal(r.uid, "u");
                assert_int_equal(r.subject, admission_requests[i].subject);
                assert_int_equal(r.dry_run, admission_requests[i].dry_run);
                assert_string_equal(r.username, admission_requests[i].username);
                assert_int_equal(r.object != NULL, admission_requests[i].object != NULL);
                if (r.object)
                        assert_string_equal(r.object->meta.uid, admission_requests[i].object);
                admission_review_done(&r);
                assert_null(r.uid);
        }
}

/* What is kept of a request. */
TEST_CASE(test_members) {
        _cleanup_free_ char *body =
                quoted(REVIEW("{'uid':'u'," NODES
                              ",'operation':'DELETE','userInfo':{'username':'alice','groups':['dev','ops']},"
                              "'oldObject':" NODE "}"));
        _cleanup_free_ char *message = NULL, *groups = NULL;
        AdmissionReview r;

        assert_return_code(admission_review_parse(body, strlen(body), *state, &r, &message), 0);
        groups = strv_join(r.groups, " ");
        assert_string_equal(groups, "dev ops");
        assert_string_equal(r.operation, "DELETE");
        assert_string_equal(r.group, "");
        assert_string_equal(r.resource, "nodes");
        assert_string_equal(r.subresource, "");
        assert_ptr_equal(r.object->kind, &kube_node_kind);
        assert_string_equal(r.object->meta.name, "n1");
        assert_string_equal(object_meta_label(&r.object->meta, "pool"),
                            "a"); /* by which budgets select it */
        admission_review_done(&r);
}

TEST_CASE(test_unreadable) {
        for (size_t i = 0; i < ELEMENTSOF(admission_unreadable); i++) {
                _cleanup_free_ char *body = quoted(admission_unreadable[i].body), *message = NULL;
                AdmissionReview r;

                print_message("  %s\n", admission_unreadable[i].body);
                assert_int_equal(admission_review_parse(body, strlen(body), *state, &r, &message), -EBADMSG);
                assert_non_null(strstr(message, admission_unreadable[i].message));
                assert_null(r.uid);
                assert_null(r.object);
        }
}

TEST_CASE(test_newer) {
        static const struct {
                const char *version, *seen;
                bool may_be_newer;
        } rows[] = {
                { "99", "100", false },
                { "100", "100", false },
                { "101", "100", true },
                { "1000", "999", true }, /* as numbers, not as texts */
                { "18446744073709551615", "100", true },
                { "18446744073709551616", "100", true },
                { NULL, "100", true },
                { "", "100", true },
                { "-1", "100", true },
                { "1a", "100", true },
                { "1", NULL, true }, /* the view has nothing */
                { "1", "", true },
                { "1", "x", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("  %s, seen %s\n", strempty(rows[i].version), strempty(rows[i].seen));
                assert_int_equal(admission_may_be_newer(rows[i].version, rows[i].seen),
                                 rows[i].may_be_newer);
        }
}

/* body, with so many bytes in the place of %s */
static int parse_long(InternPool *pool, const char *before, size_t n, const char *after,
                      char **ret_message) {
        _cleanup_free_ char *head = quoted(before), *tail = quoted(after);
        _cleanup_strbuf_ StrBuf b = { 0 };
        AdmissionReview r;
        int k;

        strbuf_add(&b, head);
        for (size_t i = 0; i < n; i++)
                strbuf_add_char(&b, 'x');
        strbuf_add(&b, tail);
        k = admission_review_parse(strbuf_str(&b), b.size, pool, &r, ret_message);
        admission_review_done(&r);
        return k;
}

TEST_CASE(test_limits) {
        static const char head[] =
                "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u'," NODES
                ",'operation':'DELETE','oldObject':" NODE ",'userInfo':{'username':'";
        static const char label[] =
                "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u'," NODES
                ",'operation':'DELETE','oldObject':{'metadata':{'name':'n1','uid':'u','annotations':{'a':'";
        static const char uid[] =
                "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u'," NODES
                ",'operation':'DELETE','oldObject':{'metadata':{'name':'n1','uid':'";
        static const char name[] =
                "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u'," NODES
                ",'operation':'DELETE','oldObject':{'metadata':{'uid':'u','name':'";
        char *message = NULL;

        assert_return_code(parse_long(*state, head, ADMISSION_STRING_BYTES_MAX, "'}}}", &message), 0);
        assert_null(message);
        assert_int_equal(parse_long(*state, head, ADMISSION_STRING_BYTES_MAX + 1, "'}}}", &message),
                         -EBADMSG);
        assert_non_null(strstr(message, "request.userInfo.username is longer than 4096 bytes"));
        message = mfree(message);

        /* A uid and a name that no budget's status could take; a uid is not longer than 36 bytes, and a name
         * than 253. */
        assert_return_code(parse_long(*state, uid, NODE_CHARGE_UID_BYTES_MAX, "'}}}}", &message), 0);
        assert_int_equal(parse_long(*state, uid, NODE_CHARGE_UID_BYTES_MAX + 1, "'}}}}", &message),
                         -EBADMSG);
        assert_non_null(strstr(message, "request.oldObject.metadata.uid is longer than 64 bytes"));
        message = mfree(message);
        assert_return_code(parse_long(*state, name, NODE_CHARGE_NAME_BYTES_MAX, "'}}}}", &message), 0);
        assert_int_equal(parse_long(*state, name, NODE_CHARGE_NAME_BYTES_MAX + 1, "'}}}}", &message),
                         -EBADMSG);
        assert_non_null(strstr(message, "request.oldObject.metadata.name is longer than 253 bytes"));
        message = mfree(message);

        /* The largest object that the API server takes has room; one byte more has not. */
        assert_return_code(parse_long(*state, label,
                                      ADMISSION_BODY_BYTES_MAX - strlen(label) - strlen("'}}}}}"), "'}}}}}",
                                      &message),
                           0);
        assert_int_equal(parse_long(*state, label,
                                    ADMISSION_BODY_BYTES_MAX - strlen(label) - strlen("'}}}}}") + 1,
                                    "'}}}}}", &message),
                         -E2BIG);
        assert_non_null(strstr(message, "it is larger than 3145728 bytes"));
        free(message);
}

TEST_CASE(test_nesting) {
        _cleanup_free_ char
                *head = quoted("{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':"),
                *message = NULL;
        _cleanup_strbuf_ StrBuf b = { 0 };
        AdmissionReview r;

        strbuf_add(&b, head);
        for (unsigned i = 0; i < 100000; i++)
                strbuf_add_char(&b, '[');
        assert_int_equal(admission_review_parse(strbuf_str(&b), b.size, *state, &r, &message), -EBADMSG);
        assert_non_null(message);
}

static void assert_answer(char *answer, const char *expected) {
        _cleanup_free_ char *text = answer, *want = quoted(expected);

        assert_non_null(text);
        assert_string_equal(text, want);
}

#define ANSWER(response) \
        "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','response':" response "}"

TEST_CASE(test_answers) {
        static const char *const warnings[] = { "the pool is paused", "two\nlines" };

        assert_answer(admission_allow("u", NULL, 0), ANSWER("{'uid':'u','allowed':true}"));
        assert_answer(admission_allow("u", warnings, 2),
                      ANSWER("{'uid':'u','allowed':true,'warnings':['the pool is paused','two?lines']}"));
        /* No details: with retryAfterSeconds a client would try again without telling. */
        assert_answer(admission_refuse("u", "no room"),
                      ANSWER("{'uid':'u','allowed':false,'status':{'status':'Failure','code':429,"
                             "'reason':'TooManyRequests','message':'no room'}}"));
        assert_answer(admission_unavailable("u", "not seen"),
                      ANSWER("{'uid':'u','allowed':false,'status':{'status':'Failure','code':503,"
                             "'reason':'ServiceUnavailable','message':'not seen'}}"));
}

TEST_CASE(test_answers_are_bounded) {
        _cleanup_free_ char *text = NULL, *refused = NULL, *allowed = NULL;
        const char *warnings[ADMISSION_WARNINGS_MAX];

        text = calloc(1, 100001);
        memset(text, 'x', 100000);
        for (size_t i = 0; i < ADMISSION_WARNINGS_MAX; i++)
                warnings[i] = text;
        refused = admission_refuse("u", text);
        allowed = admission_allow("u", warnings, ADMISSION_WARNINGS_MAX);
        assert_in_range(strlen(refused), ADMISSION_MESSAGE_BYTES_MAX, ADMISSION_MESSAGE_BYTES_MAX + 256);
        assert_in_range(strlen(allowed), ADMISSION_WARNINGS_MAX * ADMISSION_WARNING_BYTES_MAX,
                        ADMISSION_WARNINGS_MAX * (ADMISSION_WARNING_BYTES_MAX + 3) + 256);
}

static int setup(void **state) {
        InternPool *pool;

        assert_return_code(intern_pool_new(&pool), 0);
        *state = pool;
        return 0;
}

static int teardown(void **state) {
        assert_int_equal(intern_pool_size(*state), 0);
        intern_pool_free(*state);
        return 0;
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_requests, setup, teardown),
                cmocka_unit_test_setup_teardown(test_members, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
                cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
                cmocka_unit_test(test_newer),
                cmocka_unit_test_setup_teardown(test_nesting, setup, teardown),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_answers_are_bounded),
        };
        return cmocka_run_group_tests_name("admission-review", tests, NULL, NULL);
}
