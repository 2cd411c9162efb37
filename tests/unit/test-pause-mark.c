/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "kube-kinds.h"
#include "pause-mark.h"
#include "string-util.h"

#define SINCE_SEC 1800000000 /* 2027-01-15T08:00:00Z */

/* The mark of a namespace with these annotations. */
static PauseMark read_mark(InternPool *pool, const char *annotations) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"v\",\"annotations\":%s}}", annotations);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;
        PauseMark m;

        assert_return_code(json_parse(text, strlen(text), 1u << 20, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_namespace_kind, json_root(doc), pool, &o), 0);
        assert_return_code(pause_mark_read(&o->meta, &m), 0);
        kube_object_unref(o);
        return m;
}

#define RECORD(text) "{\"vesper.sh/paused\":\"true\",\"vesper.sh/paused-by\":\"" text "\"}"

TEST_CASE(test_read) {
        static const struct {
                const char *what, *annotations;
                bool is_paused;
                const char *text;
        } rows[] = {
                { "nothing", "{}", false, "" },
                { "not paused", "{\"vesper.sh/paused\":\"false\"}", false, "" },
                { "a record that a pause left behind", "{\"vesper.sh/paused-by\":\"{\\\"by\\\":\\\"a@b\\\"}\"}", false, "" },
                { "a pause of kubectl, or of an older vesperctl", "{\"vesper.sh/paused\":\"true\"}", true, "" },
                { "all of it", RECORD("{\\\"by\\\":\\\"a@b\\\",\\\"command\\\":\\\"release --all\\\",\\\"since\\\":\\\"2027-01-15T08:00:00Z\\\"}"), true,
                  ", set by a@b with 'vesperctl release --all' at 2027-01-15T08:00:00Z" },
                { "some of it", RECORD("{\\\"by\\\":\\\"a@b\\\"}"), true, ", set by a@b" },
                { "the time alone", RECORD("{\\\"since\\\":\\\"2027-01-15T08:00:00Z\\\"}"), true, ", set at 2027-01-15T08:00:00Z" },
                { "no JSON", RECORD("anna"), true, "" },
                { "other types", RECORD("{\\\"by\\\":7,\\\"command\\\":{},\\\"since\\\":\\\"soon\\\"}"), true, "" },
                { "control characters", RECORD("{\\\"by\\\":\\\"a\\\\u001b]0;x\\\\n\\\"}"), true, ", set by a?]0;x?" },
        };
        InternPool *pool;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                PauseMark m = read_mark(pool, rows[i].annotations);
                _cleanup_free_ char *text = pause_mark_text(&m);

                print_message("%s\n", rows[i].what);
                assert_int_equal(m.is_paused, rows[i].is_paused);
                assert_string_equal(text, rows[i].text);
                pause_mark_done(&m);
        }
        intern_pool_free(pool);
}

/* A pause that is written reads back the same, however long and strange the name of its holder is. */
TEST_CASE(test_write) {
        _cleanup_free_ char *patch = NULL, *lifted = pause_mark_lift_patch();
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *annotations = NULL;
        InternPool *pool;
        char name[2000];
        PauseMark m;

        memset(name, '"', sizeof(name) - 1);
        name[sizeof(name) - 1] = 0;
        name[1] = '\n';
        patch = pause_mark_set_patch(name, "release --all", SINCE_SEC * USEC_PER_SEC);
        assert_non_null(patch);
        assert_return_code(json_parse(patch, strlen(patch), 1u << 20, &doc, NULL), 0);
        annotations = json_format(json_path(json_root(doc), "metadata", "annotations", NULL));
        assert_return_code(intern_pool_new(&pool), 0);
        m = read_mark(pool, annotations);
        assert_true(m.is_paused);
        assert_int_equal(strlen(m.by), 256);
        assert_memory_equal(m.by, "\"?\"\"", 4);
        assert_string_equal(m.command, "release --all");
        assert_int_equal(m.since_usec, SINCE_SEC * USEC_PER_SEC);
        pause_mark_done(&m);
        intern_pool_free(pool);
        assert_string_equal(lifted, "{\"metadata\":{\"annotations\":{\"vesper.sh/paused\":null,\"vesper.sh/paused-by\":null}}}");
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_read), cmocka_unit_test(test_write) };

        return cmocka_run_group_tests_name("pause-mark", tests, NULL, NULL);
}
