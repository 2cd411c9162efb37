/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

/* Who looks after a pod that a deadline will end hears it beforehand, on the pod. */

#define PROTECTED "{'vesper.sh/do-not-evict':'true'}"

/* How many Events with this reason there are, all counts of them together; the message of the last in *ret.
 */
static int64_t n_told(CoordinatorRig *r, const char *name, const char *reason, const char **ret) {
        const cJSON *e;
        int64_t n = 0;

        FAKE_FOREACH (e, r->cluster, FAKE_EVENTS, NULL)
                if (streq_ptr(fj_string(e, "involvedObject", "name", NULL), name) &&
                    streq_ptr(fj_string(e, "reason", NULL), reason)) {
                        n += fj_int(e, 1, "count", NULL);
                        if (ret)
                                *ret = strempty(fj_string(e, "message", NULL));
                }
        return n;
}

static void assert_says_time(CoordinatorRig *r, const char *pod, usec_t wall_usec) {
        char when[RFC3339_MAX];
        const char *message = "";

        rfc3339_format(wall_usec, when);
        assert_int_equal(n_told(r, pod, "DeletionAtDeadline", &message), 1);
        if (!strstr(message, when))
                fail_msg("%s is not in '%s'", when, message);
}

static usec_t deleted_at(CoordinatorRig *r, const char *node) {
        usec_t at = 0;

        assert_return_code(
                rfc3339_parse(fj_string(rig_claim(r, node), "metadata", "deletionTimestamp", NULL), &at), 0);
        return at;
}

/* What holds the pod "web" (grace 60 s) when its node, which may take ten minutes, is deleted. */
TEST_CASE(test_what_is_held) {
        static const struct {
                const char *what, *annotations;
                bool pdb, beside_protected, critical, several;
        } rows[] = {
                { "it opted out", PROTECTED, false, false, false, false },
                { "its PDB", NULL, true, false, false, false },
                { "two PDBs", NULL, true, false, false, true },
                { "another that opted out", NULL, false, true, false, false },
                { "it is critical, and others go first", NULL, false, true, true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                usec_t due;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, "10m");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web",
                                                     .node = "n0",
                                                     .app = "web",
                                                     .grace_sec = 60,
                                                     .annotations = rows[i].annotations });
                if (rows[i].critical)
                        fake_merge(r->cluster, FAKE_PODS, "default", "web",
                                   "{'spec':{'priorityClassName':'system-cluster-critical'}}");
                if (rows[i].pdb)
                        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
                if (rows[i].several)
                        fake_add_pdb(r->cluster, NULL, "web2", "web", true, "1");
                if (rows[i].beside_protected)
                        fake_add_pod(r->cluster,
                                     &(FakePod){ .name = "job", .node = "n0", .annotations = PROTECTED });
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 20 * USEC_PER_SEC);
                due = usec_add(deleted_at(r, "n0"), 9 * USEC_PER_MINUTE);
                assert_says_time(r, "web", due);

                print_message("    once, and true\n");
                rig_run(r, usec_sub(due, loop_wall(r->w.loop)) - 2 * USEC_PER_SEC);
                assert_null(fj_get(fake_get(r->cluster, FAKE_PODS, "default", "web"), "metadata",
                                   "deletionTimestamp", NULL));
                assert_says_time(r, "web", due);
                rig_run(r, 4 * USEC_PER_SEC);
                assert_null(fake_get(r->cluster, FAKE_PODS, "default", "web"));
                assert_true(rig_has_event(r, "web", "PodDeletedAtDeadline"));
        }
}

/* A time is told only where there is one. */
TEST_CASE(test_no_deadline) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        const char *message = "";

        rig_begin(r, 2, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "job", .node = "n0", .annotations = PROTECTED });
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n1", .app = "web", .grace_sec = 30 });
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_delete_node(r, "n1");
        rig_run(r, USEC_PER_HOUR);
        assert_int_equal(n_told(r, "job", "DeletionAtDeadline", NULL), 0);
        assert_int_equal(n_told(r, "web", "DeletionAtDeadline", NULL), 0);
        assert_true(n_told(r, "n0", "DrainBlocked", &message) > 0);
        assert_null(strstr(message, "deleted"));
        assert_non_null(strstr(message, "No terminationGracePeriod is set"));
        assert_true(n_told(r, "n1", "DrainBlocked", &message) > 0);
        assert_null(strstr(message, "deleted"));
        assert_non_null(strstr(message, "disruption budget. This budget allows no eviction as it stands"));

        print_message("  one comes, with an interruption\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'a\\',\\'action\\':"
                   "\\'terminate\\',\\'phase\\':\\'Draining\\',\\'deadline\\':\\'%s\\'}'}}}",
                   "2100-01-01T00:00:00Z");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(n_told(r, "web", "DeletionAtDeadline", &message), 1);
        assert_non_null(strstr(message, "goes at 2100-01-01T00:00:00Z"));
        assert_non_null(strstr(message, "still there at 2099-12-31T23:59:30Z"));

        print_message("  the next one is sooner\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'b\\',\\'action\\':"
                   "\\'terminate\\',\\'phase\\':\\'Draining\\',\\'deadline\\':\\'%s\\'}'}}}",
                   "2099-01-01T00:00:00Z");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(n_told(r, "web", "DeletionAtDeadline", &message), 2);
        assert_non_null(strstr(message, "goes at 2099-01-01T00:00:00Z"));
}

/* The Node's Event says until when it waits, too. */
TEST_CASE(test_node_says_until_when) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *text = NULL;
        char when[RFC3339_MAX];

        rig_begin(r, 1, "10m");
        fake_add_pod(r->cluster,
                     &(FakePod){ .name = "job", .node = "n0", .grace_sec = 60, .annotations = PROTECTED });
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, USEC_PER_MINUTE);
        rfc3339_format(usec_add(deleted_at(r, "n0"), 9 * USEC_PER_MINUTE), when);
        text = MUST(strf("It is deleted at %s", when));
        assert_true(rig_event_says(r, "n0", "DrainBlocked", text));
        assert_false(rig_event_says(r, "n0", "DrainBlocked", "No terminationGracePeriod"));
}

/* A pod that is going with a grace beyond T is told that it is cut. */
TEST_CASE(test_grace_is_cut) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        char when[RFC3339_MAX];
        usec_t end;

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster,
                     &(FakePod){ .name = "db", .node = "n0", .grace_sec = 3600, .stop_sec = 3600 });
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_told(r, "db", "DeletionAtDeadline", NULL), 0);
        end = usec_add(loop_wall(r->w.loop), 2 * USEC_PER_MINUTE);
        end -= end % USEC_PER_SEC;
        rfc3339_format(end, when);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'a\\',\\'action\\':"
                   "\\'terminate\\',\\'phase\\':\\'Draining\\',\\'deadline\\':\\'%s\\'}'}}}",
                   when);
        rig_run(r, 20 * USEC_PER_SEC);
        assert_says_time(r, "db", end - USEC_PER_SEC);
}

/* Its agent drains the node and gets on with it, so that the coordinator stands back until the pod with the longest grace
 * is due. */
TEST_CASE(test_beside_agent) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        usec_t end;

        rig_begin(r, 1, "3m");
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .app = "web", .grace_sec = 120 });
        fake_add_pod(r->cluster, &(FakePod){ .name = "web2", .node = "n0", .app = "web", .grace_sec = 30 });
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "2");
        rig_run(r, 2 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        for (int i = 0; i < 11; i++) {
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                           "':'{\\'id\\':\\'a\\',\\'action\\':\\'drain\\',\\'phase\\':\\'Draining\\',"
                           "\\'podsLeft\\':%d}'}}}",
                           100 - i);
                rig_run(r, 5 * USEC_PER_SEC);
        }
        end = usec_add(deleted_at(r, "n0"), 3 * USEC_PER_MINUTE);
        assert_int_equal(rig_evictions(r, 0), 0); /* it stands back */
        assert_says_time(r, "web", end - 120 * USEC_PER_SEC);
        assert_says_time(r, "web2", end - 30 * USEC_PER_SEC);

        print_message("  and not once more when it drains itself\n");
        rig_run(r, 30 * USEC_PER_SEC);
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "web"));
        assert_true(rig_has_event(r, "web", "PodDeletedAtDeadline"));
        assert_says_time(r, "web2", end - 30 * USEC_PER_SEC);
}

/* What goes by itself is not warned of, and a crowd is told in turns, bounded. */
TEST_CASE(test_bounded) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        size_t told = 0;

        rig_begin(r, 2, "1h");
        for (unsigned i = 0; i < 400; i++) {
                char name[16];

                snprintf(name, sizeof(name), "w%u", i);
                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = "n0", .app = "web" });
                snprintf(name, sizeof(name), "f%u", i);
                if (i < 50)
                        fake_add_pod(
                                r->cluster,
                                &(FakePod){ .name = name, .node = "n1", .grace_sec = 30, .stop_sec = 20 });
        }
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "400");
        rig_run(r, 5 * USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_delete_node(r, "n1");
        rig_run(r, 10 * USEC_PER_SEC);
        for (unsigned i = 0; i < 400; i++) {
                char name[16];

                snprintf(name, sizeof(name), "w%u", i);
                told += n_told(r, name, "DeletionAtDeadline", NULL) > 0;
        }
        assert_in_range(told, 90, 160);
        rig_run(r, 10 * USEC_PER_MINUTE);
        for (unsigned i = 0; i < 400; i++) {
                char name[16];

                snprintf(name, sizeof(name), "w%u", i);
                assert_int_equal(n_told(r, name, "DeletionAtDeadline", NULL), 1);
                snprintf(name, sizeof(name), "f%u", i);
                assert_int_equal(n_told(r, name, "DeletionAtDeadline", NULL), 0);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_held),
                cmocka_unit_test(test_no_deadline),
                cmocka_unit_test(test_node_says_until_when),
                cmocka_unit_test(test_grace_is_cut),
                cmocka_unit_test(test_beside_agent),
                cmocka_unit_test(test_bounded),
        };
        return cmocka_run_group_tests_name("pod-warnings", tests, NULL, NULL);
}
