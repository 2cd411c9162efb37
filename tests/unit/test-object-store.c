/* SPDX-License-Identifier: Apache-2.0 */
/* What a store tells of changes when the same objects are listed, watched, unreadable, gone. */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "kube-kinds.h"
#include "object-store.h"
#include "string-util.h"

typedef struct Rig {
        InternPool *pool;
        ObjectStore *store;
        StrBuf changes; /* "+a/b ~a/b -a/b" */
} Rig;

static void on_change(KubeObject *old, KubeObject *new, void *userdata) {
        const KubeObject *o = new ? new : old;
        Rig *r = userdata;

        strbuf_addf(&r->changes, "%s%c%s/%s", r->changes.size > 0 ? " " : "", !old ? '+' : !new ? '-' : '~',
                    strempty(o->meta.ns), o->meta.name);
}

static int setup(void **state) {
        Rig *r = new0(Rig, 1);

        assert_non_null(r);
        assert_return_code(intern_pool_new(&r->pool), 0);
        assert_return_code(object_store_new(&kube_pod_kind, r->pool, NULL, on_change, r, &r->store), 0);
        *state = r;
        return 0;
}

static int teardown(void **state) {
        Rig *r = *state;

        object_store_free(r->store);
        assert_int_equal(intern_pool_size(r->pool), 0);
        intern_pool_free(r->pool);
        strbuf_done(&r->changes);
        free(r);
        return 0;
}

static JsonDoc *pod(const char *name, const char *uid, const char *version) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\","
                                         "\"resourceVersion\":\"%s\"}}",
                                         name, uid, version);
        JsonDoc *doc;

        assert_non_null(text);
        assert_return_code(json_parse(text, strlen(text), SIZE_MAX, &doc, NULL), 0);
        return doc;
}

static void take(Rig *r, const char *name, const char *uid, const char *version) {
        _cleanup_(json_doc_freep) JsonDoc *doc = pod(name, uid, version);

        assert_return_code(object_store_take(r->store, json_root(doc)), 0);
}

static void take_deleted(Rig *r, const char *name, const char *uid) {
        _cleanup_(json_doc_freep) JsonDoc *doc = pod(name, uid, "99");

        object_store_take_deleted(r->store, json_root(doc));
}

static void assert_changes(Rig *r, const char *expected) {
        assert_string_equal(strbuf_str(&r->changes), expected);
        strbuf_truncate(&r->changes, 0);
}

TEST_CASE(test_one_object) {
        Rig *r = *state;

        take(r, "a", "u1", "1");
        assert_changes(r, "+ns/a");
        take(r, "a", "u1", "1");
        assert_changes(r, "");
        take(r, "a", "u1", "2");
        assert_changes(r, "~ns/a");
        take(r, "a", "u2", "3"); /* deleted and made anew, which nobody told */
        assert_changes(r, "-ns/a +ns/a");
        take_deleted(r, "a", "u1"); /* that was the other one */
        assert_changes(r, "");
        assert_string_equal(object_store_get(r->store, "ns", "a")->meta.uid, "u2");
        assert_null(object_store_get(r->store, "other", "a"));
        take_deleted(r, "a", "u2");
        take_deleted(r, "a", "u2");
        assert_changes(r, "-ns/a");
        assert_int_equal(object_store_size(r->store), 0);
}

/* What the watch brought before the list's end is no older than the list. */
TEST_CASE(test_list) {
        Rig *r = *state;

        take(r, "a", "u1", "1");
        take(r, "b", "u2", "2");
        take(r, "c", "u3", "3");
        object_store_begin_list(r->store);
        take(r, "c", "u3", "3");
        object_store_begin_list(r->store); /* the first one did not come to its end */
        take(r, "a", "u1", "1");
        take(r, "d", "u4", "4");
        assert_changes(r, "+ns/a +ns/b +ns/c +ns/d");
        object_store_end_list(r->store);
        assert_changes(r, "-ns/b -ns/c");
        object_store_begin_list(r->store);
        object_store_end_list(r->store);
        assert_changes(r, "-ns/a -ns/d");
}

TEST_CASE(test_unreadable) {
        _cleanup_(json_doc_freep) JsonDoc *other_kind = NULL;
        static const char text[] =
                "{\"kind\":\"Secret\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\"}}";
        Rig *r = *state;

        take(r, "a", "u1", "1");
        take(r, "b", "u2", "2");
        assert_changes(r, "+ns/a +ns/b");
        assert_return_code(json_parse(text, strlen(text), SIZE_MAX, &other_kind, NULL), 0);

        /* What was known of its name stays. */
        object_store_begin_list(r->store);
        assert_return_code(object_store_take(r->store, json_root(other_kind)), 0);
        object_store_end_list(r->store);
        assert_changes(r, "-ns/b");
        assert_int_equal(object_store_undecodable(r->store), 1);

        /* Without a name it could be any of them. */
        object_store_begin_list(r->store);
        object_store_pass_over(r->store, NULL, "broken");
        object_store_end_list(r->store);
        assert_changes(r, "");
        assert_int_equal(object_store_undecodable(r->store), 2);
        object_store_begin_list(r->store);
        object_store_end_list(r->store);
        assert_changes(r, "-ns/a");
}

/* The API server takes no name above 253 bytes, and no namespace above 63. */
TEST_CASE(test_names) {
        char name[512];
        Rig *r = *state;

        memset(name, 'n', sizeof(name));
        name[sizeof(name) - 1] = 0;
        take(r, name, "u1", "1");
        take(r, "", "u2", "2");
        assert_int_equal(object_store_undecodable(r->store), 2);
        assert_null(object_store_get(r->store, "ns", name));
        assert_null(object_store_get(r->store, "ns", ""));
        name[253] = 0;
        take(r, name, "u1", "1");
        assert_non_null(object_store_get(r->store, "ns", name));
        assert_int_equal(object_store_size(r->store), 1);
        strbuf_truncate(&r->changes, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_one_object, setup, teardown),
                cmocka_unit_test_setup_teardown(test_list, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unreadable, setup, teardown),
                cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
