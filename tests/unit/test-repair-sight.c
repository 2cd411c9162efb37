/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "repair-sight-rows.h"
#include "string-util.h"

static InternPool *pool;

static int setup(void **state) {
        return intern_pool_new(&pool);
}

static int teardown(void **state) {
        pool = intern_pool_free(pool);
        return 0;
}

/* As the API server would send it, with ' for ". */
static KubeObject *decode(const KubeKind *kind, char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;

        for (char *p = text; *p; p++)
                if (*p == '\'')
                        *p = '"';
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), pool, &o), 0);
        free(text);
        return o;
}

static KubeObject *make_pool(const char *repair) {
        return decode(&kube_node_pool_kind, strf("{'metadata':{'name':'p'},'spec':{'selector':{'matchLabels':{'a':'b'}}%s%s}}",
                                                 repair ? ",'repair':" : "", strempty(repair)));
}

static KubeObject *make_booted_node(const char *conditions, const char *boot_id) {
        return decode(&kube_node_kind, strf("{'metadata':{'name':'n','uid':'u'},'status':{'nodeInfo':{'bootID':'%s'},'conditions':[%s]}}", boot_id, conditions));
}

static KubeObject *make_node(const char *conditions) {
        return make_booted_node(conditions, "boot-1");
}

TEST_CASE(test_looks) {
        for (size_t i = 0; i < ELEMENTSOF(repair_sight_rows); i++) {
                const RepairSightRow *row = repair_sight_rows + i;
                _cleanup_(kube_object_unrefp) KubeObject *p = make_pool(row->rules);
                _cleanup_(repair_sight_freep) RepairSight *s = NULL;

                print_message("  %s\n", row->what);
                assert_return_code(repair_sight_new("u", row->born_usec, &s), 0);
                for (const RepairStep *step = row->steps; step < row->steps + 6 && step->conditions; step++) {
                        _cleanup_(kube_object_unrefp) KubeObject *n = make_node(step->conditions);
                        RepairVerdict v;

                        assert_int_equal(repair_sight_look(s, (KubeNodePool *) p, (KubeNode *) n, step->at_usec, &v), step->answer);
                        if (step->answer != REPAIR_SIGHT_DUE) {
                                assert_null(v.rule);
                                continue;
                        }
                        assert_int_equal(v.since_usec, step->since_usec);
                        assert_int_equal(v.due_usec, step->due_usec);
                        assert_int_equal(v.rule->action, step->action);
                }
        }
}

TEST_CASE(test_pool_that_is_edited) {
        _cleanup_(kube_object_unrefp) KubeObject *n = make_node(UNREADY), *before = make_pool(NULL);
        _cleanup_(kube_object_unrefp) KubeObject *after = make_pool("[" RULE("Ready", "NotTrue", "", "20m", "Replace") "]");
        _cleanup_(repair_sight_freep) RepairSight *s = NULL;
        RepairVerdict v;

        assert_return_code(repair_sight_new("u", NEVER, &s), 0);
        assert_int_equal(repair_sight_look(s, (KubeNodePool *) before, (KubeNode *) n, 100 * M, &v), REPAIR_SIGHT_DUE);
        assert_int_equal(repair_sight_look(s, (KubeNodePool *) after, (KubeNode *) n, 110 * M, &v), REPAIR_SIGHT_DUE);
        assert_int_equal(v.since_usec, 100 * M);
        assert_int_equal(v.due_usec, 120 * M);
}

/* A machine that was rebooted for another reason is well before its Node shows that. */
TEST_CASE(test_boots) {
        static const struct {
                usec_t at_usec;
                const char *boot_id;
                usec_t due_reboot_usec, due_replace_usec;
        } steps[] = {
                { 100 * M, "boot-1", 105 * M, 120 * M },
                { 104 * M, "boot-2", 109 * M, 120 * M },
                { 108 * M, "boot-2", 109 * M, 120 * M },
                { 108 * M, "boot-3", 109 * M, 120 * M },
        };
        _cleanup_(kube_object_unrefp) KubeObject *reboot = make_pool("[" RULE("Disk", "False", "", "5m", "Reboot") "]");
        _cleanup_(kube_object_unrefp) KubeObject *replace = make_pool("[" RULE("Disk", "False", "", "20m", "Replace") "]");
        _cleanup_(repair_sight_freep) RepairSight *s = NULL;
        RepairVerdict v;

        assert_return_code(repair_sight_new("u", NEVER, &s), 0);
        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *n = make_booted_node(DISK_A, steps[i].boot_id);

                assert_int_equal(repair_sight_look(s, (KubeNodePool *) reboot, (KubeNode *) n, steps[i].at_usec, &v), REPAIR_SIGHT_DUE);
                assert_int_equal(v.due_usec, steps[i].due_reboot_usec);
                assert_int_equal(v.since_usec, 100 * M);
                assert_int_equal(repair_sight_look(s, (KubeNodePool *) replace, (KubeNode *) n, steps[i].at_usec, &v), REPAIR_SIGHT_DUE);
                assert_int_equal(v.due_usec, steps[i].due_replace_usec);
        }
}

/* Rules that say Reboot are passed over for as long as a reboot counts, and what they are about still ails the node. */
TEST_CASE(test_rebooted) {
        _cleanup_(kube_object_unrefp) KubeObject *p = make_pool("[" RULE("Disk", "False", REASON("Dead"), "5m", "Reboot") "," RULE("Disk", "False", "", "20m", "Replace") "]");
        _cleanup_(kube_object_unrefp) KubeObject *reboot = make_pool("[" RULE("Disk", "False", REASON("Dead"), "5m", "Reboot") "]");
        _cleanup_(kube_object_unrefp) KubeObject *none = make_pool("[" RULE("Disk", "False", REASON("Dead"), "5m", "None") "]");
        _cleanup_(kube_object_unrefp) KubeObject *dead = make_node(DISK_B), *slow = make_node(DISK_A), *good = make_node(DISK_OK);
        _cleanup_(repair_sight_freep) RepairSight *s = NULL;
        RepairVerdict v;

        assert_return_code(repair_sight_new("u", NEVER, &s), 0);
        for (unsigned rebooted = 0; rebooted < 2; rebooted++) {
                repair_sight_set_rebooted(s, rebooted);
                assert_int_equal(repair_sight_look(s, (KubeNodePool *) p, (KubeNode *) dead, 100 * M, &v), REPAIR_SIGHT_DUE);
                assert_int_equal(v.rule->action, rebooted ? REPAIR_ACTION_REPLACE : REPAIR_ACTION_REBOOT);
        }
        assert_int_equal(repair_sight_look(s, (KubeNodePool *) reboot, (KubeNode *) dead, 101 * M, &v), REPAIR_SIGHT_REMEMBERS);
        assert_true(repair_sight_ails(s, (KubeNodePool *) reboot));
        assert_false(repair_sight_ails(s, (KubeNodePool *) none));
        print_message("  another reason ends nothing\n");
        assert_int_equal(repair_sight_look(s, (KubeNodePool *) reboot, (KubeNode *) slow, 102 * M, &v), REPAIR_SIGHT_REMEMBERS);
        assert_true(repair_sight_ails(s, (KubeNodePool *) reboot));
        assert_int_equal(repair_sight_look(s, (KubeNodePool *) reboot, (KubeNode *) good, 103 * M, &v), REPAIR_SIGHT_CLEAR);
        assert_false(repair_sight_ails(s, (KubeNodePool *) reboot));
        print_message("  it does not count any more\n");
        repair_sight_set_rebooted(s, false);
        assert_int_equal(repair_sight_look(s, (KubeNodePool *) p, (KubeNode *) dead, 104 * M, &v), REPAIR_SIGHT_DUE);
        assert_int_equal(v.rule->action, REPAIR_ACTION_REBOOT);
}

TEST_CASE(test_vetoes) {
        for (size_t i = 0; i < ELEMENTSOF(repair_veto_rows); i++) {
                _cleanup_(kube_object_unrefp) KubeObject *n =
                        decode(&kube_node_kind, strf("{'metadata':{'name':'n','annotations':{%s}}}", repair_veto_rows[i].annotations));

                print_message("  %s\n", repair_veto_rows[i].annotations);
                assert_int_equal(repair_is_vetoed((KubeNode *) n), repair_veto_rows[i].vetoed);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_looks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pool_that_is_edited, setup, teardown),
                cmocka_unit_test_setup_teardown(test_boots, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rebooted, setup, teardown),
                cmocka_unit_test_setup_teardown(test_vetoes, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
