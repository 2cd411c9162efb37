/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "cmocka-test.h"
#include "kube-object.h"
#include "selector.h"
#include "string-util.h"

static void parse(const char *text, JsonDoc **ret) {
        assert_return_code(json_parse(text, strlen(text), strlen(text), ret, NULL), 0);
}

/* Of an object with these labels: app=web, tier="", zone=a. */
#define X16 "xxxxxxxxxxxxxxxx"

TEST_CASE(test_matches) {
        static const KeyValue items[] = { { "app", "web" }, { "tier", "" }, { "zone", "a" } };
        static const KeyValues labels = { (KeyValue *) items, ELEMENTSOF(items) };
        static const struct {
                const char *what, *selector;
                bool matches, empty;
        } rows[] = {
                { "no selector selects nothing", "null", false, true },
                { "an empty one selects everything", "{}", true, true },
                { "empty members are none", "{\"matchLabels\":{},\"matchExpressions\":[]}", true, true },
                { "null members are none", "{\"matchLabels\":null,\"matchExpressions\":null}", true, true },
                { "a label with its value", "{\"matchLabels\":{\"app\":\"web\"}}", true, false },
                { "a label with another value", "{\"matchLabels\":{\"app\":\"db\"}}", false, false },
                { "a label that is absent", "{\"matchLabels\":{\"team\":\"x\"}}", false, false },
                { "an empty value is a value", "{\"matchLabels\":{\"tier\":\"\"}}", true, false },
                { "an absent label is not an empty one", "{\"matchLabels\":{\"team\":\"\"}}", false, false },
                { "all labels must match", "{\"matchLabels\":{\"app\":\"web\",\"zone\":\"b\"}}", false,
                  false },
                { "In",
                  "{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"In\",\"values\":[\"b\",\"a\"]}]}",
                  true, false },
                { "In without the label",
                  "{\"matchExpressions\":[{\"key\":\"team\",\"operator\":\"In\",\"values\":[\"a\"]}]}",
                  false, false },
                { "NotIn",
                  "{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"NotIn\",\"values\":[\"a\"]}]}",
                  false, false },
                { "NotIn of another value",
                  "{\"matchExpressions\":[{\"key\":\"zone\",\"operator\":\"NotIn\",\"values\":[\"c\"]}]}",
                  true, false },
                { "NotIn without the label",
                  "{\"matchExpressions\":[{\"key\":\"team\",\"operator\":\"NotIn\",\"values\":[\"a\"]}]}",
                  true, false },
                { "Exists", "{\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"Exists\"}]}", true,
                  false },
                { "Exists without the label",
                  "{\"matchExpressions\":[{\"key\":\"team\",\"operator\":\"Exists\"}]}", false, false },
                { "DoesNotExist",
                  "{\"matchExpressions\":[{\"key\":\"team\",\"operator\":\"DoesNotExist\",\"values\":[]}]}",
                  true, false },
                { "DoesNotExist with the label",
                  "{\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"DoesNotExist\"}]}", false, false },
                { "labels and expressions together",
                  "{\"matchLabels\":{\"app\":\"web\"},\"matchExpressions\":[{\"key\":\"zone\",\"operator\":"
                  "\"Exists\"},"
                  "{\"key\":\"example.com/team\",\"operator\":\"DoesNotExist\"}]}",
                  true, false },
                { "null values are none",
                  "{\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"Exists\",\"values\":null}]}", true,
                  false },
                { "a key of 63 characters",
                  "{\"matchExpressions\":[{\"key\":\"" X16 X16 X16 "xxxxxxxxxxxxxxx"
                  "\",\"operator\":\"DoesNotExist\"}]}",
                  true, false },
                { "fields of tomorrow are passed over", "{\"matchEverything\":true}", true, true },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_(selector_freep) Selector *s = NULL;

                print_message("%s\n", rows[i].what);
                parse(rows[i].selector, &doc);
                assert_return_code(selector_parse(json_root(doc), pool, &s), 0);
                assert_int_equal(selector_matches(s, &labels), rows[i].matches);
                assert_int_equal(selector_is_empty(s), rows[i].empty);
        }
        assert_int_equal(intern_pool_size(pool), 0);
}

TEST_CASE(test_absent) {
        static const KeyValues none = { 0 };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(selector_freep) Selector *s = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(selector_parse(NULL, pool, &s), 0);
        assert_false(selector_matches(s, &none));
        assert_false(selector_matches(NULL, &none));
        assert_true(selector_is_empty(NULL));
        selector_free(NULL);
}

TEST_CASE(test_refused) {
        static const struct {
                const char *what, *selector;
        } rows[] = {
                { "a text", "\"app=web\"" },
                { "a list", "[]" },
                { "labels as a list", "{\"matchLabels\":[\"app\"]}" },
                { "a label with a number", "{\"matchLabels\":{\"app\":1}}" },
                { "a label with null", "{\"matchLabels\":{\"app\":null}}" },
                { "an empty key", "{\"matchLabels\":{\"\":\"a\"}}" },
                { "a key with a space", "{\"matchLabels\":{\"a b\":\"a\"}}" },
                { "a key that ends with a dash", "{\"matchLabels\":{\"a-\":\"a\"}}" },
                { "a key with an empty prefix", "{\"matchLabels\":{\"/a\":\"a\"}}" },
                { "a key with a prefix in capitals", "{\"matchLabels\":{\"Example.com/a\":\"a\"}}" },
                { "a key with two slashes", "{\"matchLabels\":{\"a/b/c\":\"a\"}}" },
                { "a key of 64 characters", "{\"matchLabels\":{\"" X16 X16 X16 X16 "\":\"a\"}}" },
                { "a value with a slash", "{\"matchLabels\":{\"a\":\"b/c\"}}" },
                { "expressions as a map", "{\"matchExpressions\":{}}" },
                { "an expression that is a text", "{\"matchExpressions\":[\"app\"]}" },
                { "an expression without a key", "{\"matchExpressions\":[{\"operator\":\"Exists\"}]}" },
                { "an expression without an operator", "{\"matchExpressions\":[{\"key\":\"a\"}]}" },
                { "an unknown operator",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Gt\",\"values\":[\"1\"]}]}" },
                { "an operator in small letters",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"exists\"}]}" },
                { "In without values", "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}" },
                { "In with no values",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[]}]}" },
                { "NotIn without values",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\"}]}" },
                { "Exists with values",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\",\"values\":[\"b\"]}]}" },
                { "values as a text",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":\"b\"}]}" },
                { "a second value that is a number",
                  "{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"b\",1]}]}" },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                Selector *s = NULL;

                print_message("%s\n", rows[i].what);
                parse(rows[i].selector, &doc);
                assert_int_equal(selector_parse(json_root(doc), pool, &s), -EINVAL);
                assert_null(s);
                assert_int_equal(intern_pool_size(pool), 0);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_matches),
                cmocka_unit_test(test_absent),
                cmocka_unit_test(test_refused),
        };
        return cmocka_run_group_tests_name("selector", tests, NULL, NULL);
}
