/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "kubelet-labels.h"
#include "macro.h"
#include "string-util.h"

/* The rows follow the admission plugin NodeRestriction. */
TEST_CASE(test_keys) {
        static const struct {
                const char *key;
                bool is_protected;
        } rows[] = {
                { "node-restriction.kubernetes.io/team", true },
                { "a.node-restriction.kubernetes.io/team", true },
                { "anode-restriction.kubernetes.io/team", true }, /* of kubernetes.io, and in no list */
                { "node-role.kubernetes.io/control-plane", true },
                { "kubernetes.io/role", true },
                { "kubernetes.io/os2", true },
                { "kops.k8s.io/instancegroup", true },
                { "k8s.io/x", true },
                { "eks.amazonaws.com/nodegroup", false },
                { "pool", false },
                { "kubernetes.io", false }, /* no prefix at all */
                { "mykubernetes.io/pool", false },
                { "kubernetes.io.example.com/pool", false },
                { "example.com/node-restriction.kubernetes.io", false },
                { "vesper.sh/nodepool", false },
                { "karpenter.sh/nodepool", false },
                { "kubernetes.io/hostname", false },
                { "kubernetes.io/os", false },
                { "kubernetes.io/arch", false },
                { "beta.kubernetes.io/os", false },
                { "beta.kubernetes.io/arch", false },
                { "beta.kubernetes.io/instance-type", false },
                { "node.kubernetes.io/instance-type", false },
                { "node.kubernetes.io/anything", false },
                { "a.node.kubernetes.io/anything", false },
                { "kubelet.kubernetes.io/anything", false },
                { "a.kubelet.kubernetes.io/anything", false },
                { "topology.kubernetes.io/zone", false },
                { "topology.kubernetes.io/region", false },
                { "topology.kubernetes.io/rack", true },
                { "failure-domain.beta.kubernetes.io/zone", false },
                { "failure-domain.beta.kubernetes.io/region", false },
                { "", false },
                { "/x", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].key);
                assert_int_equal(label_key_is_protected_from_kubelets(rows[i].key), rows[i].is_protected);
        }
}

TEST_CASE(test_selectors) {
        static const struct {
                const char *selector, *names; /* NULL: none */
        } rows[] = {
                { "null", NULL },
                { "{}", NULL },
                { "{\"matchLabels\":{\"node-restriction.kubernetes.io/team\":\"a\"}}", NULL },
                { "{\"matchLabels\":{\"pool\":\"a\",\"node-restriction.kubernetes.io/team\":\"a\"}}", "pool" },
                { "{\"matchExpressions\":[{\"key\":\"pool\",\"operator\":\"DoesNotExist\"}]}", "pool" },
                { "{\"matchLabels\":{\"a\":\"1\",\"b\":\"2\"},\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"},"
                  "{\"key\":\"c\",\"operator\":\"Exists\"},{\"key\":\"d\",\"operator\":\"Exists\"},{\"key\":\"e\",\"operator\":\"Exists\"}]}",
                  "a, b, c and 2 more" },
        };
        InternPool *pool;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_(selector_freep) Selector *s = NULL;
                _cleanup_free_ char *names = NULL;

                print_message("%s\n", rows[i].selector);
                assert_return_code(json_parse(rows[i].selector, strlen(rows[i].selector), 1u << 16, &doc, NULL), 0);
                assert_return_code(selector_parse(json_root(doc), pool, &s), 0);
                assert_return_code(selector_kubelet_labels(s, &names), 0);
                assert_true(streq_ptr(names, rows[i].names));
        }
        intern_pool_free(pool);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_keys), cmocka_unit_test(test_selectors) };

        return cmocka_run_group_tests_name("kubelet-labels", tests, NULL, NULL);
}
