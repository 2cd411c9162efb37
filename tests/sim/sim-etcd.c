/* SPDX-License-Identifier: Apache-2.0 */
/* etcd is restored from a backup while something goes on. */
#include "sim-restore.h"
#include "sim-test.h"

static const SimOptions usual = {
        .n_nodes = 4,
        .n_pods = 8,
        .stop_sec = 30,
        .grace_sec = 40,
        .n_coordinators = 1,
};

static const char *const kinds[] = { "versions go back", "versions go on, compacted", "and all restart" };

/* Of a node that is being drained the cordon, the evictions and its claim's deletion have never been. */
TEST_CASE(test_node_goes) {
        for (unsigned kind = 0; kind < _SIM_RESTORE_KIND_MAX; kind++)
                for (unsigned tgp = 0; tgp < 2; tgp++) {
                        _cleanup_(sim_world_freep) SimWorld *w = NULL;
                        SimOptions o = usual;

                        print_message("%s%s\n", kinds[kind], tgp > 0 ? ", T within a minute" : "");
                        o.tgp_sec = tgp > 0 ? 60 : 0;
                        w = settled_world(7 + kind, &o);
                        sim_restore_plan(w, (SimRestoreKind) kind, 5 * SEC);
                        sim_world_delete_node(w, 0);
                        require_within(w, 20 * 60, is_gone, 0);
                        require_within(w, 20 * 60, claim_is_released, 0);
                        require(w, !sim_world_instance_alive(w, 0));
                        require_within(w, 60, pods_are_back, 0);
                }
}

/* Its machine has ended, and its finalizers are to go: the deletion of its claim has never been, and the Node may be
 * gone when that is seen. */
TEST_CASE(test_node_finishes) {
        for (unsigned seed = 1; seed <= 8; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = settled_world(seed, &usual);

                sim_restore_plan(w, SIM_RESTORE_BUMPED, 3600 * SEC);
                sim_world_delete_node(w, 0);
                require_within(w, 120, is_ended, 0);
                sim_restore_now(w);
                require_within(w, 20 * 60, is_gone, 0);
                sim_check_promise(w->check); /* from now on nobody says that he removes a node (kept) */
                require_within(w, 20 * 60, claim_is_released, 0);
                require_runs(w, 60 * SEC);
        }
}

/* Watches from versions that the restored etcd has not reached tell nothing. That the view is old shows in writes on the node
 * and its claim that are refused, long before the silence does. */
TEST_CASE(test_old_view) {
        for (unsigned seed = 1; seed <= 4; seed++) {
                _cleanup_(sim_world_freep) SimWorld *w = NULL;
                SimOptions o = usual;

                o.tgp_sec = 60; /* pods are not written: that their watch is mute shows later */
                w = settled_world(seed, &o);
                sim_restore_plan(w, SIM_RESTORE_PLAIN, 5 * SEC);
                sim_world_delete_node(w, 0);
                require_within(w, 120, is_gone, 0);
                require_within(w, 120, claim_is_released, 0);
        }
}

/* An agent would drain its node for a notice, budgets hold it up, and its marks do not stand there any more. */
TEST_CASE(test_notice) {
        for (unsigned kind = 0; kind < _SIM_RESTORE_KIND_MAX; kind++) {
                _cleanup_(sim_world_freep) SimWorld *w = NULL;
                SimOptions o = usual;

                print_message("%s\n", kinds[kind]);
                o.n_agents = o.n_nodes;
                o.n_coordinators = 0;
                o.no_pool = true;
                o.pdb_min = o.n_pods;
                w = settled_world(17 + kind, &o);
                sim_restore_plan(w, (SimRestoreKind) kind, 10 * SEC);
                sim_world_notice(w, 1, 120);
                require_within(w, 4, is_cordoned, 1);
                require_within(w, 11, is_open, 1);
                require_within(w, 25, is_cordoned, 1);
                require(w, sim_world_annotation(w, 1, "vesper.sh/interruption"));
                sim_world_set_pdb_min(w, 1);
                require_within(w, 120, is_empty, 1);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_node_goes),
                cmocka_unit_test(test_node_finishes),
                cmocka_unit_test(test_old_view),
                cmocka_unit_test(test_notice),
        };
        return cmocka_run_group_tests_name("sim-etcd", tests, NULL, NULL);
}
