/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: pages of one snapshot, what the watch cache gives, selectors. */
#include "contract-ask.h"

static const char *continue_of(const Answer *a) {
        return answer_string(a, "metadata", "continue", NULL);
}

static Answer list_page(Rig *r, const char *ns, unsigned limit, const char *token) {
        Answer a = rig_list(r, RIG_ADMIN, POD(ns, NULL),
                            &(KubeListOptions){ .limit = limit, .continue_token = token });

        assert_answer(a, 200, NULL);
        return a;
}

static void assert_names(const Answer *a, const char *expected) {
        _cleanup_free_ char *names = answer_names(a);

        assert_string_equal(names, expected);
}

/* The same resourceVersion on every page; how many are left is told until none is. */
TEST_CASE(list_in_pages) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, second = { 0 }, third = { 0 };

        rig_make_namespace(r, "list-pages");
        rig_make_pods(r, "list-pages", "p", 7, RIG_NODE_NAME);
        first = list_page(r, "list-pages", 3, NULL);
        assert_names(&first, "p-0000 p-0001 p-0002");
        assert_int_equal(answer_int(&first, "metadata", "remainingItemCount", NULL), 4);
        assert_non_null(continue_of(&first));

        second = list_page(r, "list-pages", 3, continue_of(&first));
        assert_names(&second, "p-0003 p-0004 p-0005");
        assert_int_equal(answer_int(&second, "metadata", "remainingItemCount", NULL), 1);
        assert_string_equal(answer_version(&second), answer_version(&first));

        third = list_page(r, "list-pages", 3, continue_of(&second));
        assert_names(&third, "p-0006");
        assert_null(continue_of(&third));
        assert_null(json_path(third.json, "metadata", "remainingItemCount", NULL));
        assert_string_equal(answer_version(&third), answer_version(&first));
}

/* What happens between two pages is not on the second. */
TEST_CASE(pages_are_one_snapshot) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, second = { 0 }, gone = { 0 }, marked = { 0 }, now = { 0 };

        rig_make_namespace(r, "list-snapshot");
        rig_make_pods(r, "list-snapshot", "p", 4, RIG_NODE_NAME);
        first = list_page(r, "list-snapshot", 1, NULL);

        gone = rig_delete(r, RIG_ADMIN, POD("list-snapshot", "p-0001"),
                          &(KubeDeleteOptions){ .grace_sec = 0 });
        assert_answer(gone, 200, NULL);
        marked = rig_merge(r, RIG_ADMIN, POD("list-snapshot", "p-0002"),
                           "{'metadata': {'labels': {'late': 'yes'}}}");
        assert_answer(marked, 200, NULL);
        rig_make_pods(r, "list-snapshot", "q", 1, RIG_NODE_NAME);

        second = list_page(r, "list-snapshot", 10, continue_of(&first));
        assert_names(&second, "p-0001 p-0002 p-0003");
        JSON_FOREACH (item, json_get(second.json, "items"))
                assert_null(json_path(item, "metadata", "labels", "late", NULL));

        now = list_page(r, "list-snapshot", 0, NULL);
        assert_names(&now, "p-0000 p-0002 p-0003 q-0000");
}

/* 410 with a token for the rest as it is now. */
TEST_CASE(continue_expires) {
        Rig *r = *state;
        _cleanup_answer_ Answer first = { 0 }, late = { 0 }, rest = { 0 };

        rig_make_namespace(r, "list-expired");
        rig_make_pods(r, "list-expired", "p", 5, RIG_NODE_NAME);
        first = list_page(r, "list-expired", 2, NULL);
        rig_make_pods(r, "list-expired", "q", 1, RIG_NODE_NAME);
        rig_compact(r);

        late = rig_list(r, RIG_ADMIN, POD("list-expired", NULL),
                        &(KubeListOptions){ .limit = 2, .continue_token = continue_of(&first) });
        assert_answer(late, 410, "Expired");
        assert_int_equal(api_error_to_errno(&late.error), -ESTALE);
        assert_non_null(continue_of(&late));

        rest = list_page(r, "list-expired", 10, continue_of(&late));
        assert_names(&rest, "p-0002 p-0003 p-0004 q-0000");
        assert_string_not_equal(answer_version(&rest), answer_version(&first));
}

TEST_CASE(bad_continue_is_refused) {
        Rig *r = *state;
        _cleanup_answer_ Answer a =
                rig_list(r, RIG_ADMIN, NODE(NULL), &(KubeListOptions){ .continue_token = "nonsense" });

        assert_answer(a, 400, "BadRequest");
}

/* From the cache: as one page, whatever was asked. */
TEST_CASE(list_from_the_cache) {
        Rig *r = *state;
        _cleanup_answer_ Answer fresh = { 0 }, cached = { 0 };

        rig_make_namespace(r, "list-cache");
        rig_make_pods(r, "list-cache", "p", 3, RIG_NODE_NAME);
        fresh = list_page(r, "list-cache", 0, NULL); /* after this the cache is as new */
        cached = rig_list(r, RIG_ADMIN, POD("list-cache", NULL),
                          &(KubeListOptions){ .limit = 2, .resource_version = "0" });
        assert_answer(cached, 200, NULL);
        assert_names(&cached, "p-0000 p-0001 p-0002");
        assert_null(continue_of(&cached));
        assert_true(strtoull(answer_version(&cached), NULL, 10) >=
                    strtoull(answer_version(&fresh), NULL, 10));
}

TEST_CASE(list_of_the_past) {
        Rig *r = *state;
        _cleanup_answer_ Answer before = { 0 }, exact = { 0 }, newer = { 0 }, future = { 0 };
        KubeListOptions o = { .resource_version_match = "Exact" };

        rig_make_namespace(r, "list-past");
        rig_make_pods(r, "list-past", "p", 1, RIG_NODE_NAME);
        before = list_page(r, "list-past", 0, NULL);
        rig_make_pods(r, "list-past", "q", 1, RIG_NODE_NAME);

        o.resource_version = answer_version(&before);
        exact = rig_list(r, RIG_ADMIN, POD("list-past", NULL), &o);
        assert_answer(exact, 200, NULL);
        assert_names(&exact, "p-0000");
        assert_string_equal(answer_version(&exact), answer_version(&before));

        o.resource_version_match = "NotOlderThan";
        newer = rig_list(r, RIG_ADMIN, POD("list-past", NULL), &o);
        assert_answer(newer, 200, NULL);
        assert_true(strtoull(answer_version(&newer), NULL, 10) >=
                    strtoull(answer_version(&before), NULL, 10));

        o.resource_version = "999999999";
        future = rig_list(r, RIG_ADMIN, POD("list-past", NULL), &o);
        assert_answer(future, 504, "Timeout");
        assert_true(api_error_has_cause(&future.error, "ResourceVersionTooLarge"));
        assert_true(future.error.retry_after_usec >= USEC_PER_SEC);
}

/* {"v":"meta.k8s.io/v1","rv":999999999,"start":"a\u0000"}, as of a list whose first page came before etcd was restored. */
#define TOKEN_OF_THE_FUTURE "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6OTk5OTk5OTk5LCJzdGFydCI6ImFcdTAwMDAifQ"

TEST_CASE(continue_in_the_future) {
        Rig *r = *state;
        _cleanup_answer_ Answer a = rig_list(r, RIG_ADMIN, NODE(NULL),
                                             &(KubeListOptions){ .limit = 1, .continue_token = TOKEN_OF_THE_FUTURE });

        assert_answer(a, 504, "Timeout");
        assert_true(api_error_has_cause(&a.error, "ResourceVersionTooLarge"));
}

TEST_CASE(select_by_field) {
        static const struct {
                const char *selector, *names;
        } rows[] = {
                { "metadata.name=a-0001", "a-0001" },
                { "metadata.name=nobody", "" },
                { "spec.nodeName=" RIG_NODE_NAME, "a-0000 a-0001" },
                { "spec.nodeName==" RIG_OTHER_NODE_NAME, "b-0000" },
                { "spec.nodeName!=" RIG_NODE_NAME, "b-0000" },
                { "spec.nodeName=" RIG_NODE_NAME ",metadata.name!=a-0000", "a-0001" },
                { "status.phase=Pending", "a-0000 a-0001 b-0000" },
                { "status.phase!=Pending", "" },
        };
        Rig *r = *state;
        _cleanup_answer_ Answer unknown = { 0 };

        rig_make_namespace(r, "list-fields");
        rig_make_pods(r, "list-fields", "a", 2, RIG_NODE_NAME);
        rig_make_pods(r, "list-fields", "b", 1, RIG_OTHER_NODE_NAME);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_list(r, RIG_ADMIN, POD("list-fields", NULL),
                                 &(KubeListOptions){ .field_selector = rows[i].selector });

                assert_answer(a, 200, NULL);
                assert_names(&a, rows[i].names);
        }
        unknown = rig_list(r, RIG_ADMIN, POD("list-fields", NULL),
                           &(KubeListOptions){ .field_selector = "spec.priority=0" });
        assert_answer(unknown, 400, "BadRequest");
}

TEST_CASE(select_by_label) {
        static const struct {
                const char *selector, *names; /* NULL: refused */
        } rows[] = {
                { "app=a", "a-0000 a-0001" },
                { "app!=a", "b-0000" },
                { "app in (a,b)", "a-0000 a-0001 b-0000" },
                { "app notin (a)", "b-0000" },
                { "app", "a-0000 a-0001 b-0000" },
                { "!app", "" },
                { "app=a,late", "a-0001" },
                { "app=a,!late", "a-0000" },
                { "late=yes", "a-0001" },
                { "app in", NULL },
                { "app=a b", NULL },
        };
        Rig *r = *state;
        _cleanup_answer_ Answer marked = { 0 };

        rig_make_namespace(r, "list-labels");
        rig_make_pods(r, "list-labels", "a", 2, RIG_NODE_NAME);
        rig_make_pods(r, "list-labels", "b", 1, RIG_NODE_NAME);
        marked = rig_merge(r, RIG_ADMIN, POD("list-labels", "a-0001"),
                           "{'metadata': {'labels': {'late': 'yes'}}}");
        assert_answer(marked, 200, NULL);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ Answer a =
                        rig_list(r, RIG_ADMIN, POD("list-labels", NULL),
                                 &(KubeListOptions){ .label_selector = rows[i].selector });

                assert_answer(a, rows[i].names ? 200 : 400, "BadRequest");
                if (rows[i].names)
                        assert_names(&a, rows[i].names);
        }
}

/* With a selector nobody counts what is left, but the pages are right. */
TEST_CASE(pages_of_a_selection) {
        Rig *r = *state;
        KubeListOptions o = { .label_selector = "app=a", .limit = 2 };
        _cleanup_answer_ Answer first = { 0 }, second = { 0 };

        rig_make_namespace(r, "list-selection");
        rig_make_pods(r, "list-selection", "a", 3, RIG_NODE_NAME);
        rig_make_pods(r, "list-selection", "b", 3, RIG_NODE_NAME);
        first = rig_list(r, RIG_ADMIN, POD("list-selection", NULL), &o);
        assert_answer(first, 200, NULL);
        assert_names(&first, "a-0000 a-0001");
        assert_null(json_path(first.json, "metadata", "remainingItemCount", NULL));
        o.continue_token = continue_of(&first);
        assert_non_null(o.continue_token);
        second = rig_list(r, RIG_ADMIN, POD("list-selection", NULL), &o);
        assert_answer(second, 200, NULL);
        assert_names(&second, "a-0002");
        assert_null(continue_of(&second));
}

/* Items of a built-in kind do not name it; those of a custom one do. */
TEST_CASE(kinds_of_items) {
        Rig *r = *state;
        _cleanup_answer_ Answer nodes = { 0 }, claims = { 0 };
        const Json *item;

        rig_make_node(r, "list-kind");
        rig_make_claim(r, "list-kind");
        nodes = rig_list(r, RIG_ADMIN, NODE(NULL),
                         &(KubeListOptions){ .field_selector = "metadata.name=list-kind" });
        assert_answer(nodes, 200, NULL);
        assert_string_equal(answer_string(&nodes, "kind", NULL), "NodeList");
        assert_null(json_get(json_first(json_get(nodes.json, "items")), "kind"));

        claims = rig_list(r, RIG_ADMIN, CLAIM(NULL),
                          &(KubeListOptions){ .field_selector = "metadata.name=list-kind" });
        assert_answer(claims, 200, NULL);
        assert_string_equal(answer_string(&claims, "kind", NULL), "NodeClaimList");
        item = json_first(json_get(claims.json, "items"));
        assert_string_equal(json_string_or_null(json_get(item, "kind")), "NodeClaim");
        assert_string_equal(json_string_or_null(json_get(item, "apiVersion")), "vesper.sh/v1alpha1");
}

/* Each once, in order, in pages as an informer asks for them. */
TEST_CASE(list_of_1200) {
        static const size_t sizes[] = { 500, 500, 200 };
        Rig *r = *state;
        _cleanup_free_ char *token = NULL;
        unsigned next = 0;

        rig_make_namespace(r, "list-many");
        rig_make_pods(r, "list-many", "p", 1200, RIG_NODE_NAME);
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                _cleanup_answer_ Answer a = list_page(r, "list-many", 500, token);
                const Json *items = json_get(a.json, "items");

                assert_int_equal(json_size(items), sizes[i]);
                JSON_FOREACH (item, items) {
                        _cleanup_free_ char *name = strf("p-%04u", next++);

                        assert_non_null(name);
                        assert_string_equal(json_string_or_null(json_path(item, "metadata", "name", NULL)),
                                            name);
                }
                assert_return_code(free_and_strdup(&token, continue_of(&a)), 0);
        }
        assert_null(token);
        assert_int_equal(next, 1200);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(list_in_pages),        cmocka_unit_test(pages_are_one_snapshot),
        cmocka_unit_test(continue_expires),     cmocka_unit_test(bad_continue_is_refused),
        cmocka_unit_test(continue_in_the_future),
        cmocka_unit_test(list_from_the_cache),  cmocka_unit_test(list_of_the_past),
        cmocka_unit_test(select_by_field),      cmocka_unit_test(select_by_label),
        cmocka_unit_test(pages_of_a_selection), cmocka_unit_test(kinds_of_items),
        cmocka_unit_test(list_of_1200),
};
CONTRACT_SUITE(list, cases);
