/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "reboot-slot-rows.h"
#include "string-util.h"

/* A Node from its annotations, the rest of its metadata, and its status. */
static KubeNode *node_of(InternPool *pool, const char *annotations, const char *meta, const char *status) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = strf("{'metadata':{'name':'n','uid':'u','resourceVersion':'7',"
                                         "'annotations':{%s}%s},'status':{%s}}",
                                         annotations, meta, status);
        KubeObject *o;

        assert_non_null(text);
        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        return (KubeNode *) o;
}

TEST_CASE(test_stand) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(reboot_stand_rows); i++) {
                _cleanup_free_ char *phase = NULL, *annotations = NULL;
                RebootCase c;
                KubeNode *n;

                print_message("  %s\n", reboot_stand_rows[i].what);
                phase = reboot_stand_rows[i].interruption ? strf(spot, reboot_stand_rows[i].interruption) : strdup("");
                annotations = strf("%s%s", reboot_stand_rows[i].annotations, phase);
                n = node_of(pool, annotations, reboot_stand_rows[i].meta, reboot_stand_rows[i].status);
                assert_return_code(reboot_case_read(n, REBOOT_ROWS_NOW, SLOT, &c), 0);
                assert_int_equal(c.request_state, reboot_stand_rows[i].stand);
                assert_int_equal(c.is_stale, reboot_stand_rows[i].stale);
                assert_string_equal(c.node, "n");
                if (c.request_state >= REBOOT_REQUEST_OVER)
                        assert_string_equal(c.id, "a");
                if (c.request_state == REBOOT_REQUEST_HOLDS_SLOT || c.request_state == REBOOT_REQUEST_WAITING ||
                    c.request_state == REBOOT_REQUEST_LEAVING)
                        assert_int_equal(reboot_case_next(&c), REBOOT_ROWS_NOW + 600 * USEC_PER_SEC);
                else
                        assert_int_equal(reboot_case_next(&c), USEC_INFINITY);
                reboot_case_done(&c);
                kube_object_unref(&n->object);
        }
}

/* An interruption that ends no machine, or none for good, is no reason to refuse. */
TEST_CASE(test_interruptions) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(reboot_interruption_rows); i++) {
                _cleanup_free_ char *annotations =
                        strf(ASKED ",'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'s\\',\\'action\\':\\'%s\\',\\'phase\\':\\'%s\\'}'",
                             reboot_interruption_rows[i].action, reboot_interruption_rows[i].phase);
                KubeNode *n = node_of(pool, annotations, "", BOOT("b1"));
                RebootCase c;

                print_message("  %s, %s\n", reboot_interruption_rows[i].action, reboot_interruption_rows[i].phase);
                assert_return_code(reboot_case_read(n, REBOOT_ROWS_NOW, SLOT, &c), 0);
                assert_int_equal(c.request_state, reboot_interruption_rows[i].stand);
                reboot_case_done(&c);
                kube_object_unref(&n->object);
        }
}

/* A grant for longer than any slot lasts is none of ours, whoever it names. */
TEST_CASE(test_too_long) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(reboot_too_long_rows); i++) {
                _cleanup_free_ char *annotations =
                        strf(ASKED ",'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'", reboot_too_long_rows[i].until);
                KubeNode *n = node_of(pool, annotations, "", READY BOOT("b1"));
                RebootCase c;

                print_message("  until %s\n", reboot_too_long_rows[i].until);
                assert_return_code(reboot_case_read(n, REBOOT_ROWS_NOW, SLOT, &c), 0);
                assert_int_equal(c.request_state, reboot_too_long_rows[i].stand);
                assert_int_equal(c.is_stale, reboot_too_long_rows[i].too_long);
                assert_int_equal(c.is_too_long, reboot_too_long_rows[i].too_long);
                reboot_case_done(&c);
                kube_object_unref(&n->object);
        }
}

/* The longest id is one that the coordinator can answer. */
TEST_CASE(test_longest_id) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        RebootCase c;
        KubeNode *n;

        assert_return_code(intern_pool_new(&pool), 0);
        n = node_of(pool, REQUEST_OF(BYTES_128, "e") "," GRANT(BYTES_128, SOON), "", BOOT("b1"));
        assert_return_code(reboot_case_read(n, REBOOT_ROWS_NOW, SLOT, &c), 0);
        assert_int_equal(c.request_state, REBOOT_REQUEST_HOLDS_SLOT);
        assert_string_equal(c.id, BYTES_128);
        assert_string_equal(c.event, "e");
        assert_string_equal(c.boot_id, "b1");
        assert_int_equal(c.granted_until_usec, REBOOT_ROWS_NOW + 600 * USEC_PER_SEC);
        assert_false(c.by_cloud || c.is_sent || c.is_too_long);
        reboot_case_done(&c);
        kube_object_unref(&n->object);
}

TEST_CASE(test_order) {
        const RebootCase early = { .node = (char *) "z", .until_usec = 5 },
                         late = { .node = (char *) "a", .until_usec = 6 },
                         same = { .node = (char *) "zz", .until_usec = 5 };

        assert_true(reboot_case_order(&early, &late) < 0);
        assert_true(reboot_case_order(&late, &early) > 0);
        assert_true(reboot_case_order(&early, &same) < 0);
        assert_int_equal(reboot_case_order(&early, &early), 0);
}

TEST_CASE(test_patch) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_free_ char *grant = NULL, *off = NULL;
        KubeNode *n;

        assert_return_code(intern_pool_new(&pool), 0);
        n = node_of(pool, ASKED, "", "");
        grant = reboot_grant_patch(n, "a", REBOOT_ROWS_NOW);
        assert_string_equal(grant, "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{"
                                   "\"vesper.sh/shutdown-granted\":\"{\\\"id\\\":\\\"a\\\",\\\"until\\\":"
                                   "\\\"2027-01-15T08:00:00Z\\\"}\"}}}");
        off = reboot_grant_patch(n, NULL, 0);
        assert_string_equal(off, "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{"
                                 "\"vesper.sh/shutdown-granted\":null}}}");
        kube_object_unref(&n->object);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stand),
                cmocka_unit_test(test_interruptions),
                cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_longest_id),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_patch),
        };

        return cmocka_run_group_tests_name("reboot-slots", tests, NULL, NULL);
}
