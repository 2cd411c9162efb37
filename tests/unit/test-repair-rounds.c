/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-bench.h"
#include "rig-rounds.h"

/* Rounds of repairs: nodes that are replaced, or rebooted, each twice under one coordinator and once under
 * the next. */

#define RULES \
        "[{'condition':'KernelDeadlock','status':'True','after':'1m','action':'Reboot'}," \
        "{'condition':'KernelDeadlock','status':'True','after':'4m','action':'Replace'}," \
        "{'condition':'Ready','status':'NotTrue','after':'9m','action':'Replace'}]"

static CoordinatorRig *new_rounds_rig(void) {
        static const char *const names[] = { "node-a", "node-b", "node-c" };
        CoordinatorRig *r = new_rig(1);

        set_rules(r, RULES);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                rig_add_node(r, names[i]);
                rig_machine(r, names[i])->after = INSTANCE_GONE;
        }
        run(r, M);
        return r;
}

static void set_paused(CoordinatorRig *r, bool paused) {
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':%s}}}",
                   paused ? "'true'" : "null");
}

static void request_slot(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':'{\\'id\\':\\'of-%s\\',\\'bootID\\':\\'%s-boot-1\\',"
                   "\\'kind\\':\\'reboot\\',\\'until\\':\\'2037-01-15T08:00:00Z\\'}'}}}",
                   node, node);
}

static void withdraw(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
}

/* Makes the NodePool have a condition RepairHeld, and the leader grant a slot. */
static void have_hold(CoordinatorRig *r) {
        request_slot(r, "n0");
        run(r, M);
        withdraw(r, "n0");
        set_paused(r, true);
        fake_cluster_set_kubelet(r->cluster, "n0", false);
        run(r, 12 * M);
        assert_string_equal(held(r), "Paused");
        fake_cluster_set_kubelet(r->cluster, "n0", true);
        set_paused(r, false);
        run(r, 2 * M);
        assert_string_equal(held(r), "");
}

static void play_rounds(CoordinatorRig *r, void (*play)(CoordinatorRig *r, const char *node),
                        fake_api_fault_t fault) {
        rig_rounds(r, &(RigRounds) { .play = play, .begin = have_hold, .run = run, .nodes = { "node-a",
                                                            "node-b", "node-c" }, .fault = fault });
}

/* Adds the successor of the deleted node, which proves the repair. */
static void replace(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *name = MUST(strf("for-%s", node));

        assert_null(rig_node(r, node));
        rig_add_node(r, name);
        run(r, 6 * M);
}

static void boot(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *id = MUST(strf("%s-boot-2", node));

        set_boot(r, node, id);
}

/* The kubelet is silent for ever. The repair is held while the pool is paused, then the node is replaced. */
static void play_replaced(CoordinatorRig *r, const char *node) {
        fake_cluster_set_kubelet(r->cluster, node, false);
        run(r, 7 * M);
        set_paused(r, true);
        run(r, 6 * M);
        assert_string_equal(held(r), "Paused");
        set_paused(r, false);
        run(r, 3 * M);
        assert_string_equal(held(r), "");
        replace(r, node);
}

/* The node's machine is off for a while. */
static void play_off(CoordinatorRig *r, const char *node) {
        rig_machine(r, node)->state = INSTANCE_OFF;
        fake_cluster_set_kubelet(r->cluster, node, false);
        run(r, 15 * M);
        assert_string_equal(held(r), "MachineOff");
        rig_machine(r, node)->state = INSTANCE_PRESENT;
        run(r, 4 * M);
        assert_string_equal(held(r), "");
        replace(r, node);
}

/* The repair is announced, and the node becomes healthy in time. Later it is unhealthy again. */
static void play_well_in_time(CoordinatorRig *r, const char *node) {
        fake_cluster_set_kubelet(r->cluster, node, false);
        run(r, 8 * M);
        fake_cluster_set_kubelet(r->cluster, node, true);
        run(r, 2 * M);
        assert_false(is_repaired(r, node));
        fake_cluster_set_kubelet(r->cluster, node, false);
        run(r, 9 * M);
        assert_false(is_repaired(r, node));
        run(r, 2 * M);
        replace(r, node);
}

static void begin_reboot(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *id = MUST(strf("%s-boot-1", node));

        set_deadlock(r, node, "True");
        run(r, M + 10 * USEC_PER_SEC);
        assert_string_equal(mark_of(r, node), id);
}

/* Asks for a slot as the node's agent does, and reboots. */
static void reboot(CoordinatorRig *r, const char *node) {
        request_slot(r, node);
        run(r, 3 * M);
        assert_string_equal(mark_of(r, node), fj_string(rig_node(r, node), "status", "nodeInfo", "bootID",
                                                        NULL));
        boot(r, node);
        run(r, 5 * USEC_PER_SEC);
        withdraw(r, node);
}

static void play_reboot_helps(CoordinatorRig *r, const char *node) {
        begin_reboot(r, node);
        reboot(r, node);
        set_deadlock(r, node, "False");
        run(r, 4 * M);
        assert_non_null(record_of(r, node));
        run(r, 2 * M);
        assert_null(record_of(r, node));
        assert_null(mark_of(r, node));
}

static void play_reboot_in_vain(CoordinatorRig *r, const char *node) {
        begin_reboot(r, node);
        reboot(r, node);
        run(r, 9 * M);
        replace(r, node);
}

static void play_agent_is_away(CoordinatorRig *r, const char *node) {
        begin_reboot(r, node);
        run(r, 8 * M);
        replace(r, node);
}

/* A person vetoes the reboot, and takes that back. The agent asks twice. */
static void play_taken_back(CoordinatorRig *r, const char *node) {
        begin_reboot(r, node);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':'true'}}}");
        run(r, 2 * M);
        assert_null(mark_of(r, node));
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_DO_NOT_REPAIR "':null}}}");
        run(r, M);
        assert_non_null(mark_of(r, node));
        reboot(r, node);
        set_deadlock(r, node, "False");
        run(r, 6 * M);
        assert_null(record_of(r, node));
}

TEST_CASE(test_rounds) {
        static const struct {
                const char *what;
                void (*play)(CoordinatorRig *r, const char *node);
        } rows[] = {
                { "replaced, after a pause", play_replaced },
                { "replaced, after its machine was off", play_off },
                { "well in time, and ill again", play_well_in_time },
                { "rebooted, which helps", play_reboot_helps },
                { "rebooted in vain, and replaced", play_reboot_in_vain },
                { "not rebooted, and replaced", play_agent_is_away },
                { "a reboot that is taken back, and asked for again", play_taken_back },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rounds_rig();

                print_message("  %s\n", rows[i].what);
                play_rounds(r, rows[i].play, NULL);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rounds),
        };

        return cmocka_run_group_tests_name("repair-rounds", tests, NULL, NULL);
}
