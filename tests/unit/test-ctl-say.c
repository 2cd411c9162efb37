/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "ctl-say.h"
#include "ctl-verbs.h"
#include "kube-kinds.h"

TEST_CASE(test_errors) {
        static const struct {
                unsigned http;
                const char *verb;
                KubeTarget target;
                const char *expected;
                const char *message; /* NULL: "no" */
        } rows[] = {
                { 404, "get", { .kind = &kube_node_kind, .name = "n1" }, "there is no Node 'n1'" },
                { 404, "get", { .kind = &kube_pod_kind, .ns = "a", .name = "p" }, "there is no Pod 'a/p'" },
                { 404, "list", { .kind = &kube_node_claim_kind },
                  "this cluster does not know nodeclaims: install vesper's CustomResourceDefinitions first" },
                { 404, "list", { .kind = &kube_node_kind }, "this cluster does not know nodes" },
                { 403, "list", { .kind = &kube_node_kind },
                  "you may not list nodes: no; a role with {apiGroups: [\"\"], resources: [nodes], verbs: [list]} would allow it, as vesper's ClusterRole vesper-viewer does" },
                { 403, "create", { .kind = &kube_pod_kind, .ns = "a", .name = "p", .subresource = "eviction" },
                  "you may not create Pod 'a/p': no; a role with {apiGroups: [\"\"], resources: [pods/eviction], verbs: [create]} would allow it, as vesper's ClusterRole vesper-operator does" },
                { 403, "get", { .kind = &kube_lease_kind, .ns = "a", .name = "b" },
                  "you may not get Lease 'a/b': no; a role with {apiGroups: [\"coordination.k8s.io\"], resources: [leases], verbs: [get]} would allow it" },
                { 401, "list", { .kind = &kube_node_kind }, "the API server does not accept this credential: no" },
                { 0, "list", { .kind = &kube_node_kind }, "the API server does not answer: no. Which one is asked say --kubeconfig (or KUBECONFIG) and --context" },
                { 500, "patch", { .kind = &kube_node_kind, .name = "n1" }, "failed to patch Node 'n1': no" },
                { 403, "list", { .kind = &kube_node_kind },
                  "you may not act as another (--as): users \"a\" is forbidden: User \"b\" cannot impersonate resource \"users\" in API group \"\"; "
                  "a role with {apiGroups: [\"\"], resources: [users], verbs: [impersonate]} would allow it",
                  "users \"a\" is forbidden: User \"b\" cannot impersonate resource \"users\" in API group \"\"" },
                { 403, "list", { .kind = &kube_node_kind },
                  "you may not act as another (--as): User \"b\" cannot impersonate resource \"uids\" in API group \"authentication.k8s.io\"; "
                  "a role with {apiGroups: [\"authentication.k8s.io\"], resources: [uids], verbs: [impersonate]} would allow it",
                  "User \"b\" cannot impersonate resource \"uids\" in API group \"authentication.k8s.io\"" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const ApiError e = { .http = rows[i].http, .message = (char *) (rows[i].message ?: "no") };
                _cleanup_free_ char *text = ctl_explain_error(&e, rows[i].verb, &rows[i].target);

                assert_string_equal(text, rows[i].expected);
        }
}

TEST_CASE(test_table) {
        _cleanup_(ctl_table_done) CtlTable t = CTL_TABLE(2);
        _cleanup_strbuf_ StrBuf b = {};

        ctl_table_add(&t, "NODE");
        ctl_table_add(&t, "WHY");
        ctl_table_add(&t, NULL);
        ctl_table_addf(&t, "a%s", "\033[2Jb\nc");
        ctl_table_add(&t, "longer-than-its-head");
        ctl_table_add(&t, "");
        ctl_table_print(&t, &b);
        assert_string_equal(strbuf_str(&b), "NODE                   WHY\n"
                                            "-                      a?[2Jb?c\n"
                                            "longer-than-its-head   -\n");
}

TEST_CASE(test_ages) {
        static const struct {
                usec_t usec;
                const char *expected;
        } rows[] = { { 0, "0s" },
                     { 119 * USEC_PER_SEC, "119s" },
                     { 2 * USEC_PER_MINUTE, "2m" },
                     { 2 * USEC_PER_HOUR, "2h" },
                     { 3 * USEC_PER_DAY, "3d" } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf b = {};

                ctl_add_age(&b, rows[i].usec);
                assert_string_equal(strbuf_str(&b), rows[i].expected);
        }
}

/* What looks like something else in YAML stands in quotes; nothing of a text becomes structure. */
TEST_CASE(test_yaml) {
        static const struct {
                const char *json, *expected;
        } rows[] = {
                { "{\"a\":\"b\",\"m\":1,\"t\":true,\"z\":null}", "a: b\nm: 1\nt: true\nz: null\n" },
                { "{\"a\":{\"b\":[\"c\",{\"d\":\"e\",\"f\":[]}],\"g\":{}}}",
                  "a:\n  b:\n    - c\n    - d: e\n      f: []\n  g: {}\n" },
                { "[[\"a\",\"b\"],[]]", "- - a\n  - b\n- []\n" },
                { "{\"a\":\"yes\",\"b\":\"1\",\"c\":\"x: y\",\"d\":\"\",\"e\":\"l1\\nl2\",\"No\":\"~\"}",
                  "a: \"yes\"\nb: \"1\"\nc: \"x: y\"\nd: \"\"\ne: \"l1\\nl2\"\n\"No\": \"~\"\n" },
                { "\"x\"", "x\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *yaml = ctl_format_json(rows[i].json, true);

                assert_string_equal(yaml, rows[i].expected);
        }
}

/* The table that --help, the manual page and completion are made from. */
TEST_CASE(test_verbs) {
        for (const CtlVerb *const *v = ctl_verbs; *v; v++) {
                print_message("  %s\n", (*v)->name);
                assert_ptr_equal(ctl_verb_find((*v)->name), *v);
                assert_true(strlen((*v)->summary) <= 96 && !endswith((*v)->summary, "."));
                assert_non_null(endswith((*v)->text, "."));
                assert_non_null(startswith((*v)->example, "vesperctl "));
                assert_true((*v)->outputs != 0 && (*v)->start && (*v)->free);
                assert_true(((*v)->max_args > 0) == ((*v)->arguments != NULL));
        }
        assert_null(ctl_verb_find("stat"));
        assert_int_equal(ctl_output_from_string("xml"), _CTL_OUTPUT_INVALID);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_errors), cmocka_unit_test(test_table), cmocka_unit_test(test_ages),
                cmocka_unit_test(test_yaml),   cmocka_unit_test(test_verbs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
