/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-bench.h"
#include "repair-brake-rows.h"
#include "repair-sight-rows.h"

/*
 * The tables of the pure rules of repairs, shown to a coordinator. Nodes show what a row says when it says
 * so. The decision is read from the API server: the Node is deleted, it is annotated for its agent, or
 * neither.
 */

/* A repair whose Event comes late begins a minute after that Event. */
#define LATE_USEC (65 * USEC_PER_SEC)

static void show(CoordinatorRig *r, const char *conditions) {
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'status':{'conditions':[%s]}}", conditions);
}

static void add_pool(CoordinatorRig *r, const char *rules) {
        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        if (rules)
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'repair':%s}}", rules);
}

/* Creates node n0 as at the first step of the row. A node that never was Ready exists before the
 * coordinator. */
static CoordinatorRig *begin_sight(const RepairSightRow *row) {
        CoordinatorRig *r = coordinator_rig_new();

        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_NODE_STATUS, false);
        fake_add_node(r->cluster, BEACON, "us-east-1b", "i-beacon", NULL);
        add_pool(r, row->rules);
        rig_add_node(r, "n0");
        if (row->born_usec == NEVER) {
                rig_start(r, 0);
                run(r, 7 * M);
                return r;
        }
        show(r, row->steps->conditions);
        rig_run(r, row->steps->at_usec - row->born_usec);
        rig_start(r, 0);
        rig_run(r, USEC_PER_SEC);
        return r;
}

static bool is_acted_upon(CoordinatorRig *r) {
        return is_repaired(r, "n0") || mark_of(r, "n0");
}

/* Runs until this long after the first step. */
static void run_until(CoordinatorRig *r, usec_t begin_usec, const RepairSightRow *row, usec_t at_usec) {
        usec_t until = begin_usec + at_usec - row->steps->at_usec, now = virtual_time_now(r->w.time);

        if (until > now)
                run(r, until - now);
}

/* Plays the row up to this step, whose state then stays. */
static void play_sight(const RepairSightRow *row, size_t last) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = begin_sight(row);
        usec_t begin_usec = virtual_time_now(r->w.time);
        const RepairStep *step = row->steps + last;
        usec_t due_usec = MAX(step->due_usec, step->at_usec);

        for (size_t i = 0; i <= last; i++) {
                run_until(r, begin_usec, row, row->steps[i].at_usec);
                assert_false(is_acted_upon(r));
                show(r, row->steps[i].conditions);
        }
        if (step->answer != REPAIR_SIGHT_DUE) {
                run(r, USEC_PER_HOUR);
                assert_false(is_acted_upon(r));
                return;
        }
        if (due_usec > step->at_usec) {
                run_until(r, begin_usec, row, due_usec - 5 * USEC_PER_SEC);
                assert_false(is_acted_upon(r));
        }
        run_until(r, begin_usec, row, due_usec + LATE_USEC);
        assert_int_equal(is_repaired(r, "n0"), step->action == REPAIR_ACTION_REPLACE);
        assert_int_equal(!!mark_of(r, "n0"), step->action == REPAIR_ACTION_REBOOT);
}

TEST_CASE(test_sight) {
        for (size_t i = 0; i < ELEMENTSOF(repair_sight_rows); i++)
                for (size_t k = 0; k < ELEMENTSOF(repair_sight_rows->steps) &&
                     repair_sight_rows[i].steps[k].conditions; k++) {
                        print_message("  %s, step %zu\n", repair_sight_rows[i].what, k);
                        play_sight(repair_sight_rows + i, k);
                }
}

TEST_CASE(test_vetoes) {
        for (size_t i = 0; i < ELEMENTSOF(repair_veto_rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

                print_message("  %s\n", repair_veto_rows[i].annotations);
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{%s}}}",
                           repair_veto_rows[i].annotations);
                run(r, M);
                silence(r, 0, 1);
                run(r, SEEN + 17 * M);
                assert_int_equal(is_repaired(r, "n0"), !repair_veto_rows[i].vetoed);
        }
}

/* -- how a reboot is proved ----------------------------------------------------------------------------- */

static void show_boot(CoordinatorRig *r, const RepairShown *s) {
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'status':{'nodeInfo':{'bootID':'%s'},'conditions':[{'type':'Ready','status':'%s'},"
                   "{'type':'KernelDeadlock','status':'%s'}]}}",
                   strempty(s->boot_id), s->ready ? "True" : "False", s->ails ? "True" : "False");
}

static bool repair_ended(CoordinatorRig *r, bool proved) {
        return metrics_say(r, proved ? "vesper_coordinator_repairs_total{outcome=\"proved\"} 1\n"
                                     : "vesper_coordinator_repairs_total{outcome=\"failed\"} 1\n");
}

/* Has the coordinator ask node n0 to reboot. The agent asks for a slot, and waits until the row changes
 * that. */
static CoordinatorRig *begin_reboot(usec_t *ret_begun_usec) {
        CoordinatorRig *r = new_rig(1);

        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_NODE_STATUS, false);
        set_rules(r, "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}]");
        set_boot(r, "n0", "b0");
        run(r, 6 * M);
        set_deadlock(r, "n0", "True");
        for (unsigned i = 0; i < 70 && !mark_of(r, "n0"); i++)
                run(r, USEC_PER_SEC);
        assert_string_equal(mark_of(r, "n0"), "b0");
        *ret_begun_usec = virtual_time_now(r->w.time);
        set_request(r, "n0");
        return r;
}

TEST_CASE(test_reboots) {
        for (size_t i = 0; i < ELEMENTSOF(repair_reboot_rows); i++) {
                const RepairRebootRow *row = repair_reboot_rows + i;
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = NULL;
                usec_t begun_usec;
                unsigned n = 0;

                print_message("  %s\n", row->what);
                if (row->unplayed)
                        continue;
                r = begin_reboot(&begun_usec);
                for (unsigned minute = 1; minute <= row->ended_min; minute++) {
                        usec_t until = begun_usec + minute * M - (minute == row->ended_min ? 5 * USEC_PER_SEC : 0);

                        run(r, until - virtual_time_now(r->w.time));
                        assert_false(repair_ended(r, true) || repair_ended(r, false));
                        if (n < 4 && row->shown[n].at_min == minute)
                                show_boot(r, row->shown + n++);
                }
                run(r, 10 * USEC_PER_SEC);
                assert_true(repair_ended(r, row->proved));
                assert_false(repair_ended(r, !row->proved));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sight),
                cmocka_unit_test(test_vetoes),
                cmocka_unit_test(test_reboots),
        };

        return cmocka_run_group_tests_name("repair-rows", tests, NULL, NULL);
}
