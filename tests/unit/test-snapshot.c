/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "snapshot.h"
#include "string-util.h"

static KubeObject *decode(const KubeKind *kind, InternPool *pool, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;

        assert_return_code(json_parse(text, strlen(text), strlen(text), &doc, NULL), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), pool, &o), 0);
        return o;
}

static void put(Snapshot *s, SnapshotKind kind, const char *name, const char *ns) {
        _cleanup_free_ char *text = ns ? strf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"}}", name, ns)
                                       : strf("{\"metadata\":{\"name\":\"%s\"}}", name);
        _cleanup_(kube_object_unrefp) KubeObject *o = decode(snapshot_kube_kind(kind), s->pool, text);

        assert_return_code(snapshot_put(s, kind, o), 0);
        assert_int_equal(o->n_ref, 2);
}

static int setup(void **state) {
        return intern_pool_new((InternPool **) state);
}

/* Every object was freed. */
static int teardown(void **state) {
        assert_int_equal(intern_pool_size(*state), 0);
        intern_pool_free(*state);
        return 0;
}

TEST_CASE(test_put_and_get) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        KubeObject *first;

        assert_return_code(snapshot_new(*state, 7, &s), 0);
        assert_int_equal(s->taken_usec, 7);
        for (SnapshotKind i = 0; i < _SNAPSHOT_KIND_MAX; i++)
                assert_false(s->is_known[i]);

        put(s, SNAPSHOT_NODES, "n1", NULL);
        put(s, SNAPSHOT_PODS, "n1", "d");
        assert_true(s->is_known[SNAPSHOT_NODES] && s->is_known[SNAPSHOT_PODS] && !s->is_known[SNAPSHOT_PDBS]);
        first = snapshot_get(s, SNAPSHOT_NODES, "n1");
        assert_non_null(first);
        assert_ptr_equal(snapshot_get(s, SNAPSHOT_PODS, "d/n1")->kind, &kube_scheduled_pod_kind);
        assert_null(snapshot_get(s, SNAPSHOT_PODS, "n1"));
        assert_null(snapshot_get(s, SNAPSHOT_PDBS, "d/n1"));

        put(s, SNAPSHOT_NODES, "n1", NULL); /* replaces */
        assert_int_equal(hashmap_size(s->objects[SNAPSHOT_NODES]), 1);
        assert_ptr_not_equal(snapshot_get(s, SNAPSHOT_NODES, "n1"), first);
}

TEST_CASE(test_forget) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;

        assert_return_code(snapshot_new(*state, 0, &s), 0);
        snapshot_forget(s, SNAPSHOT_PODS);
        put(s, SNAPSHOT_NODES, "n1", NULL);
        put(s, SNAPSHOT_PODS, "a", "d");
        put(s, SNAPSHOT_PODS, "b", "d");
        snapshot_forget(s, SNAPSHOT_PODS);
        assert_false(s->is_known[SNAPSHOT_PODS]);
        assert_int_equal(hashmap_size(s->objects[SNAPSHOT_PODS]), 0);
        assert_true(s->is_known[SNAPSHOT_NODES]);
        assert_non_null(snapshot_get(s, SNAPSHOT_NODES, "n1"));
        put(s, SNAPSHOT_PODS, "b", "d");
        assert_int_equal(hashmap_size(s->objects[SNAPSHOT_PODS]), 1);
}

TEST_CASE(test_sorted) {
        static const char *const names[] = { "m", "a", "z", "a-1", "B", "10", "9" };
        static const char *const expected[] = { "10", "9", "B", "a", "a-1", "m", "z" };
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        _cleanup_free_ KubeObject **list = NULL, **none = NULL;
        size_t n, n_none;

        assert_return_code(snapshot_new(*state, 0, &s), 0);
        assert_return_code(snapshot_sorted(s, SNAPSHOT_NODES, &none, &n_none), 0);
        assert_int_equal(n_none, 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                put(s, SNAPSHOT_NODES, names[i], NULL);
        assert_return_code(snapshot_sorted(s, SNAPSHOT_NODES, &list, &n), 0);
        assert_int_equal(n, ELEMENTSOF(expected));
        for (size_t i = 0; i < n; i++)
                assert_string_equal(list[i]->meta.name, expected[i]);
}

/* Each kind is found by what its objects say of themselves, and by nothing else. */
TEST_CASE(test_kinds) {
        for (SnapshotKind i = 0; i < _SNAPSHOT_KIND_MAX; i++) {
                const KubeKind *k = snapshot_kube_kind(i);
                _cleanup_free_ char *version = *k->group ? strf("%s/%s", k->group, k->version) : strdup(k->version);

                assert_non_null(version);
                assert_int_equal(snapshot_kind_of(version, k->kind), i);
                assert_int_equal(snapshot_kind_of("example.com/v1", k->kind), _SNAPSHOT_KIND_INVALID);
                assert_int_equal(snapshot_kind_of(version, "Secret"), _SNAPSHOT_KIND_INVALID);
        }
        assert_int_equal(snapshot_kind_of("policy/v1beta1", "PodDisruptionBudget"), _SNAPSHOT_KIND_INVALID);
        assert_int_equal(snapshot_kind_of("policy", "PodDisruptionBudget"), _SNAPSHOT_KIND_INVALID);
        assert_int_equal(snapshot_kind_of("", "Node"), _SNAPSHOT_KIND_INVALID);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_put_and_get, setup, teardown),
                cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sorted, setup, teardown),
                cmocka_unit_test(test_kinds),
        };

        return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
