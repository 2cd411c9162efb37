/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "marks.h"
#include "reboot-slots.h"
#include "string-util.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define SOON "2027-01-15T08:10:00Z"
#define SLOT (30 * USEC_PER_MINUTE)
#define PAST "2027-01-15T07:59:59Z"

/* As they stand in an annotation, inside a JSON text that is written with ' for ". */
#define REQUEST(boot, kind, until) \
        "'" ANNOTATION_SHUTDOWN_REQUEST "':'{\\'id\\':\\'a\\',\\'bootID\\':\\'" boot \
        "\\',\\'kind\\':\\'" kind "\\',\\'until\\':\\'" until "\\'}'"
#define GRANT(id, until) \
        "'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'" id "\\',\\'until\\':\\'" until "\\'}'"
#define ASKED REQUEST("b1", "reboot", SOON)
#define READY "'conditions':[{'type':'Ready','status':'True'}],"
#define BOOT(id) "'nodeInfo':{'bootID':'" id "'}"

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
        static const char spot[] =
                ",'" ANNOTATION_INTERRUPTION
                "':'{\\'id\\':\\'s\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'%s\\'}'";
        static const struct {
                const char *what, *annotations, *meta, *status;
                const char *interruption; /* phase of a spot notice; NULL: there is none */
                RebootRequestState stand;
                bool stale;
        } rows[] = {
                { "nothing", "", "", BOOT("b1"), NULL, REBOOT_REQUEST_NONE, false },
                { "a request", ASKED, "", READY BOOT("b1"), NULL, REBOOT_REQUEST_WAITING, false },
                { "... to power off", REQUEST("b1", "poweroff", SOON), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_WAITING, false },
                { "... of a node that is not Ready", ASKED, "", BOOT("b1"), NULL, REBOOT_REQUEST_WAITING,
                  false },
                { "... whose boot nobody has reported", ASKED, "", "", NULL, REBOOT_REQUEST_WAITING, false },
                { "... or with nothing in it", ASKED, "", READY BOOT(""), NULL, REBOOT_REQUEST_WAITING, false },
                { "... the same boot, written otherwise", REQUEST("B-1", "reboot", SOON), "", BOOT("b1"),
                  NULL, REBOOT_REQUEST_WAITING, false },
                { "... whose patience is over", REQUEST("b1", "reboot", PAST), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_OVER, false },
                { "... of another boot", ASKED, "", READY BOOT("b2"), NULL, REBOOT_REQUEST_OVER, false },
                { "... to do something else", REQUEST("b1", "explode", SOON), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_INVALID, false },
                { "... of no boot", REQUEST("", "reboot", SOON), "", BOOT("b1"), NULL, REBOOT_REQUEST_INVALID,
                  false },
                { "... without a time", REQUEST("b1", "reboot", "tomorrow"), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_INVALID, false },
                { "... that is no JSON", "'" ANNOTATION_SHUTDOWN_REQUEST "':'yes'", "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_INVALID, false },
                { "... of a node that is being deleted", ASKED,
                  ",'deletionTimestamp':'2027-01-15T07:00:00Z'", BOOT("b1"), NULL, REBOOT_REQUEST_LEAVING,
                  false },
                { "... whose machine ends", ASKED, "", BOOT("b1"), "Draining", REBOOT_REQUEST_LEAVING, false },
                { "... whose machine was said to end, until a person overruled it", ASKED, "", BOOT("b1"),
                  "Released", REBOOT_REQUEST_WAITING, false },
                { "... whose patience ends in this moment", REQUEST("b1", "reboot", "2027-01-15T08:00:00Z"), "",
                  BOOT("b1"), NULL, REBOOT_REQUEST_OVER, false },
                { "granted until this moment", ASKED "," GRANT("a", "2027-01-15T08:00:00Z"), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_EXPIRED, false },
                { "granted", ASKED "," GRANT("a", SOON), "", READY BOOT("b1"), NULL, REBOOT_REQUEST_HOLDS_SLOT,
                  false },
                { "granted, and waits no longer: it has begun",
                  REQUEST("b1", "reboot", PAST) "," GRANT("a", SOON), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_HOLDS_SLOT, false },
                { "granted, and deleted since", ASKED "," GRANT("a", SOON),
                  ",'deletionTimestamp':'2027-01-15T07:00:00Z'", BOOT("b1"), NULL, REBOOT_REQUEST_HOLDS_SLOT,
                  false },
                { "granted, and up again, but not Ready", ASKED "," GRANT("a", SOON), "", BOOT("b2"), NULL,
                  REBOOT_REQUEST_HOLDS_SLOT, false },
                { "granted, and back", ASKED "," GRANT("a", SOON), "", READY BOOT("b2"), NULL,
                  REBOOT_REQUEST_OVER, true },
                { "granted, and not back in time", ASKED "," GRANT("a", PAST), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_EXPIRED, false },
                { "granted, and withdrawn", GRANT("a", SOON), "", BOOT("b1"), NULL, REBOOT_REQUEST_NONE,
                  true },
                { "asked anew, with the answer to the last one", ASKED "," GRANT("z", SOON), "", BOOT("b1"),
                  NULL, REBOOT_REQUEST_WAITING, true },
                { "an answer that cannot be read", ASKED ",'" ANNOTATION_SHUTDOWN_GRANTED "':'yes'", "",
                  BOOT("b1"), NULL, REBOOT_REQUEST_WAITING, true },
                { "an answer without an id", ASKED "," GRANT("", SOON), "", BOOT("b1"), NULL,
                  REBOOT_REQUEST_WAITING, true },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *phase = NULL, *annotations = NULL;
                RebootCase c;
                KubeNode *n;

                print_message("  %s\n", rows[i].what);
                phase = rows[i].interruption ? strf(spot, rows[i].interruption) : strdup("");
                annotations = strf("%s%s", rows[i].annotations, phase);
                n = node_of(pool, annotations, rows[i].meta, rows[i].status);
                assert_return_code(reboot_case_read(n, NOW, SLOT, &c), 0);
                assert_int_equal(c.request_state, rows[i].stand);
                assert_int_equal(c.is_stale, rows[i].stale);
                assert_string_equal(c.node, "n");
                if (c.request_state >= REBOOT_REQUEST_OVER)
                        assert_string_equal(c.id, "a");
                if (c.request_state == REBOOT_REQUEST_HOLDS_SLOT || c.request_state == REBOOT_REQUEST_WAITING ||
                    c.request_state == REBOOT_REQUEST_LEAVING)
                        assert_int_equal(reboot_case_next(&c), NOW + 600 * USEC_PER_SEC);
                else
                        assert_int_equal(reboot_case_next(&c), USEC_INFINITY);
                reboot_case_done(&c);
                kube_object_unref(&n->object);
        }
}

/* An interruption that ends no machine, or none for good, is no reason to refuse. */
TEST_CASE(test_interruptions) {
        static const struct {
                const char *action, *phase;
                RebootRequestState stand;
        } rows[] = {
                { "terminate", "Cordoned", REBOOT_REQUEST_LEAVING }, { "stop", "Drained", REBOOT_REQUEST_LEAVING },
                { "none", "Cordoned", REBOOT_REQUEST_WAITING },        { "reboot", "Draining", REBOOT_REQUEST_WAITING },
                { "terminate", "Released", REBOOT_REQUEST_WAITING },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *annotations =
                        strf(ASKED ",'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'s\\',\\'action\\':\\'%s\\',\\'phase\\':\\'%s\\'}'",
                             rows[i].action, rows[i].phase);
                KubeNode *n = node_of(pool, annotations, "", BOOT("b1"));
                RebootCase c;

                print_message("  %s, %s\n", rows[i].action, rows[i].phase);
                assert_return_code(reboot_case_read(n, NOW, SLOT, &c), 0);
                assert_int_equal(c.request_state, rows[i].stand);
                reboot_case_done(&c);
                kube_object_unref(&n->object);
        }
}

/* A grant for longer than any slot lasts is none of ours, whoever it names. */
TEST_CASE(test_too_long) {
        static const struct {
                const char *until;
                RebootRequestState stand;
                bool too_long;
        } rows[] = {
                { "2027-01-15T08:30:00Z", REBOOT_REQUEST_HOLDS_SLOT, false },
                { "2027-01-15T08:35:00Z", REBOOT_REQUEST_HOLDS_SLOT, false }, /* by the clock of another leader */
                { "2027-01-15T08:35:01Z", REBOOT_REQUEST_WAITING, true },
                { "2099-01-01T00:00:00Z", REBOOT_REQUEST_WAITING, true },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *annotations =
                        strf(ASKED ",'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'a\\',\\'until\\':\\'%s\\'}'", rows[i].until);
                KubeNode *n = node_of(pool, annotations, "", READY BOOT("b1"));
                RebootCase c;

                print_message("  until %s\n", rows[i].until);
                assert_return_code(reboot_case_read(n, NOW, SLOT, &c), 0);
                assert_int_equal(c.request_state, rows[i].stand);
                assert_int_equal(c.is_stale, rows[i].too_long);
                assert_int_equal(c.is_too_long, rows[i].too_long);
                reboot_case_done(&c);
                kube_object_unref(&n->object);
        }
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
        grant = reboot_grant_patch(n, "a", NOW);
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
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_patch),
        };

        return cmocka_run_group_tests_name("reboot-slots", tests, NULL, NULL);
}
